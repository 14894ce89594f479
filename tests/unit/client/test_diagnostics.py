"""What goes to the log, and how often."""

from __future__ import annotations

import logging

import pytest

from trunkline.client.diagnostics import TOLD, Complaints


def test_the_first_of_a_kind_are_told_and_the_rest_in_sum(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "trunkline")
    complaints = Complaints()
    for number in range(TOLD + 5):
        complaints.say("one %d", number)
    complaints.say("another %d", 0)
    for _ in range(TOLD + 2):
        complaints.report(ValueError("x"), "it")
    levels = [record.levelno for record in caplog.records]
    assert levels.count(logging.WARNING) == TOLD + 1
    assert levels.count(logging.ERROR) == TOLD
    assert levels.count(logging.DEBUG) == 7
    complaints.end()
    assert caplog.records[-1].getMessage().startswith("7 more complaints")
    complaints.end()
    assert len(caplog.records) == len(levels) + 1


def test_a_connection_without_complaint_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints()
    complaints.end()
    complaints.say("once", kind="k")
    complaints.end()
    assert [record.getMessage() for record in caplog.records] == ["once"]
