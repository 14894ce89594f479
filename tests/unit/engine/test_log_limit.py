"""Warnings that clients cause: so many of each kind per minute, then their number."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from tests.rigs.clock import TimerLoop
from trunkline.engine.log_limit import INTERVAL_S, MAX_LOGGED, LogLimit


def made(**options: Any) -> tuple[TimerLoop, LogLimit]:
    loop = TimerLoop()
    return loop, LogLimit(cast(asyncio.AbstractEventLoop, loop), **options)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


def test_warnings_beyond_the_limit_are_counted_and_the_count_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, limit = made()
    for n in range(MAX_LOGGED + 7):
        limit.warning("fault %d of %s", n, "a client")
    assert warnings(caplog) == [f"fault {n} of a client" for n in range(MAX_LOGGED)]
    caplog.clear()
    loop.move(INTERVAL_S)
    assert warnings(caplog) == ["7 more warnings suppressed: fault %d of %s"]
    assert loop.timers == []


def test_each_kind_has_its_share(caplog: pytest.LogCaptureFixture) -> None:
    _, limit = made()
    for n in range(100):
        limit.warning("loud %d", n)
    limit.warning("rare %d", 1)
    assert warnings(caplog)[-1] == "rare 1"


def test_after_a_minute_they_are_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    loop, limit = made()
    for _ in range(MAX_LOGGED):
        limit.warning("fault")
    loop.move(INTERVAL_S)
    assert loop.timers == []
    limit.warning("fault")
    assert warnings(caplog) == ["fault"] * (MAX_LOGGED + 1)


def test_the_end_reports_at_once_and_leaves_no_timer(caplog: pytest.LogCaptureFixture) -> None:
    loop, limit = made(is_shared=True)
    for _ in range(MAX_LOGGED + 1):
        limit.warning("fault")
    limit.connection_ended()  # one of several
    assert len(loop.timers) == 1
    limit.end()
    limit.end()
    assert warnings(caplog)[-1] == "1 more warnings suppressed: fault"
    assert (warnings(caplog)[-2], loop.timers) == ("fault", [])


def test_the_limit_of_one_connection_ends_with_it(caplog: pytest.LogCaptureFixture) -> None:
    loop, limit = made()
    for _ in range(MAX_LOGGED + 1):
        limit.warning("fault")
    limit.connection_ended()
    assert warnings(caplog)[-1] == "1 more warnings suppressed: fault"
    assert loop.timers == []
