"""What the tests of every front share: all the ways in which a value can be shown."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable

import pytest

Showings = Callable[[object], str]


@pytest.fixture
def showings(caplog: pytest.LogCaptureFixture) -> Showings:
    """Return a function that shows a value by repr, str, format and logging."""

    def show(value: object) -> str:
        caplog.clear()
        with caplog.at_level(logging.DEBUG):
            logging.getLogger("compat").debug("%s %r", value, value)
            logging.getLogger("compat").debug("within: %s", [value, {"it": value}])
        shown = [repr(value), str(value), f"{value}", format(value), "%s %r" % (value, value)]  # noqa: UP031
        return "\n".join([*shown, caplog.text])

    return show


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on an event loop of its own, for at most 30 s."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), 30))
    return True
