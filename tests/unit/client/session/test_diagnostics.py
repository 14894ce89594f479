"""What goes to the log, and how often."""

from __future__ import annotations

import logging

import pytest

from trunkline.client.session.diagnostics import MAX_LOGGED, RateLimitedLog


def test_rate_limited_log_writes_the_first_warnings_and_counts_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "trunkline")
    server_log = RateLimitedLog()
    for number in range(MAX_LOGGED + 5):
        server_log.warning("one %d", number)
    server_log.warning("another %d", 0)
    for _ in range(MAX_LOGGED + 2):
        server_log.exception(ValueError("x"), "it")
    levels = [record.levelno for record in caplog.records]
    assert levels.count(logging.WARNING) == MAX_LOGGED + 1
    assert levels.count(logging.ERROR) == MAX_LOGGED
    assert levels.count(logging.DEBUG) == 7
    server_log.end()
    assert caplog.records[-1].getMessage().startswith("7 more warnings")
    server_log.end()
    assert len(caplog.records) == len(levels) + 1


def test_rate_limited_log_without_suppressed_warnings_ends_silently(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server_log = RateLimitedLog()
    server_log.end()
    server_log.warning("once", kind="k")
    server_log.end()
    assert [record.getMessage() for record in caplog.records] == ["once"]
