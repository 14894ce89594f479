"""Tests that are coroutines: each on an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final, ParamSpec

# Seconds after which a test that hangs is ended.
WAIT_S: Final = 60.0

_P = ParamSpec("_P")


def on_a_loop(test: Callable[_P, Coroutine[Any, Any, None]]) -> Callable[_P, None]:
    """Run a test on an event loop of its own, for `WAIT_S` at most."""

    @wraps(test)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), WAIT_S))

    return run
