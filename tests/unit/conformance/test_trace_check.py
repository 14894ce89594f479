"""`conformance/trace_check.py`: which findings have an explanation, and which rows apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.trace_check import Judged, Row, judge_recording, load, stale, totals

from ...cases import for_each

ROW = """
[[suite]]
rule = "mcp.id.echoed"
where = "/id"
scenarios = ["ping", "tools-list"]
why = "because"
"""


def entry(sender: str, connection: str, **message: Any) -> str:
    text = json.dumps({"jsonrpc": "2.0", **message})
    return json.dumps({"from": sender, "connection": connection, "transport": "x", "raw": text})


def session(connection: str) -> list[str]:
    """Return the beginning of a session."""
    info = {"name": "x", "version": "1"}
    common = {"protocolVersion": "2025-11-25", "capabilities": {}}
    asked, told = {**common, "clientInfo": info}, {**common, "serverInfo": info}
    return [
        entry("client", connection, id="i", method="initialize", params=asked),
        entry("server", connection, id="i", result=told),
        entry("client", connection, method="notifications/initialized"),
    ]


def judged(lines: list[str], *rows: Row) -> Judged:
    return judge_recording(lines, rows)


FOREIGN = Row("suite", "mcp.method.vendor", "/method", "ping", "an unknown method")
UNKNOWN = [
    *session("ping 1"),
    entry("client", "ping 1", id=1, method="x/y"),
    entry("server", "ping 1", id=1, error={"code": -32601, "message": "no"}),
]
WRONG = [
    *session("ping 1"),
    entry("client", "ping 1", id=1, method="ping"),
    entry("server", "ping 1", id=2, result={}),
    entry("server", "ping 1", id=1, result={}),
]


def test_a_finding_of_the_suite_needs_a_row_for_its_rule_place_and_scenario() -> None:
    found = judged(UNKNOWN, FOREIGN)
    assert (found.unexplained, [row for _, row in found.explained]) == ([], [FOREIGN])
    assert (found.messages, found.conversations) == (5, 1)
    assert judged(UNKNOWN, FOREIGN._replace(scenario="*")).unexplained == []
    for other in (
        {"rule": "mcp.method.no-longer"},
        {"where": "/params"},
        {"scenario": "tools-list"},
        {"side": "server"},
    ):
        found = judged(UNKNOWN, FOREIGN._replace(**other))
        assert len(found.unexplained) == 1
        assert found.explained == []


def test_an_error_on_our_side_cannot_be_explained() -> None:
    row = Row("server", "mcp.id.echoed", "/id", "ping", "because")
    (found,) = judged(WRONG, row).unexplained
    assert (found.side, found.scenario, found.finding.rule) == ("server", "ping", "mcp.id.echoed")
    assert judged(WRONG, row).lines()[0].startswith("1x server in ping: error mcp.id.echoed")


def test_a_request_without_a_reply_is_a_remark_about_the_other_side() -> None:
    lines = [*session("ping 1"), entry("client", "ping 1", id=1, method="ping")]
    (found,) = judged(lines).unexplained
    assert (found.side, found.finding.rule) == ("server", "trace.unanswered")
    row = Row("server", "trace.unanswered", "", "ping", "the connection was closed")
    assert judged(lines, row).unexplained == []
    lines = [*session("ping 1"), entry("server", "ping 1", id=1, method="ping")]
    assert [each.side for each in judged(lines).unexplained] == ["suite"]


def test_conversations_are_judged_by_themselves() -> None:
    both = [line for pair in zip(session("a 1"), session("b 2"), strict=True) for line in pair]
    found = judged(both)
    assert (found.unexplained, found.conversations) == ([], 2)
    assert judged([line.replace("b 2", "a 1") for line in both]).unexplained != []


def test_a_line_that_cannot_be_read_is_a_fault_of_ours() -> None:
    assert [each.side for each in judged(["nonsense"]).unexplained] == ["server"]


def test_rows_that_explain_nothing_are_stale() -> None:
    unused = FOREIGN._replace(scenario="tools-list")
    found = [judged(UNKNOWN, FOREIGN, unused), judged(session("x 1"), FOREIGN, unused)]
    assert stale([FOREIGN, unused], found) == [unused]
    assert totals(found) == {
        "messages": 8,
        "conversations": 2,
        "server": 0,
        "server_remarks": 0,
        "suite": 1,
        "suite_unexplained": 0,
        "rows": 1,
    }
    assert totals([judged(WRONG), judged(UNKNOWN)])["server"] == 1
    assert totals([judged(WRONG), judged(UNKNOWN)])["suite_unexplained"] == 1


def test_a_row_is_one_for_each_of_its_scenarios() -> None:
    first, second = load(ROW)
    assert first == Row("suite", "mcp.id.echoed", "/id", "ping", "because")
    assert second == first._replace(scenario="tools-list")
    assert load(ROW.replace('where = "/id"\n', ""))[0].where == ""


@for_each(
    ("text", "message"),
    [
        (ROW.replace('why = "because"', ""), "a row needs"),
        (ROW.replace('"because"', '""'), "a row needs"),
        (ROW.replace('["ping", "tools-list"]', "[]"), "a row needs"),
        (ROW.replace('rule = "mcp.id.echoed"', ""), "a row needs"),
        (ROW + 'level = "warn"', "a row needs"),
        (ROW.replace("suite", "client"), "no side is called 'client'"),
        (ROW + ROW.replace("because", "again"), "suite mcp.id.echoed /id ping is there 2 times"),
    ],
)
def test_rows_that_lack_something_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(text)


def test_the_rows_of_the_file_explain_no_errors_of_ours() -> None:
    rows = load()
    assert {row.side for row in rows} == {"suite", "server"}
    assert {row.rule for row in rows if row.side == "server"} == {
        "mcp.method.deprecated",
        "mcp.type.not-yet",
        "trace.unanswered",
    }
