"""Hidden places: which findings they drop, and what the rules see in their stead."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge import Conversation, TraceEntry
from trunkline.judge.rules.schema_check import fits
from trunkline.judge.rules.state import fingerprint
from trunkline.judge.unknown import HiddenPlaces, Unknown
from trunkline.redaction import HIDDEN


@pytest.mark.parametrize(
    ("where", "is_hidden"),
    [("/a", True), ("/a/b", True), ("/a/b/0", True), ("/ab", False), ("", False), ("/c", False)],
)
def test_a_place_is_hidden_with_all_below_it(where: str, is_hidden: bool) -> None:
    assert (where in HiddenPlaces(["/a"])) is is_hidden


def test_the_whole_message_may_be_hidden() -> None:
    assert "/x" in HiddenPlaces([""])
    assert isinstance(HiddenPlaces([""]).removed_from({}), Unknown)
    assert not HiddenPlaces([])


def test_hidden_values_are_replaced_in_a_copy() -> None:
    message: dict[str, Any] = {"a": {"x/y": [1, 2]}, "b": "text"}
    pointers = ["/a/x~1y/1", "/missing", "/b", "/a/x~1y/x", "/a/x~1y/99"]
    copy = HiddenPlaces(pointers).removed_from(message)
    assert copy["a"]["x/y"][0] == 1
    assert isinstance(copy["a"]["x/y"][1], Unknown)
    assert isinstance(copy["b"], Unknown)
    assert message == {"a": {"x/y": [1, 2]}, "b": "text"}


def test_unknown_values_equal_nothing_and_fit_nothing_for_certain() -> None:
    first, second = Unknown(), Unknown()
    assert first != second
    assert str(first) != str(second)
    assert fingerprint(first) == fingerprint(second)
    assert fits(first, {"type": "integer"}) is None
    assert fits({"a": first, "b": 1}, {"properties": {"b": {"type": "string"}}}) is False
    assert fits("a", {"enum": [first, "b"]}) is None


def tool_call(id: int, arguments: object, *hidden: str) -> TraceEntry:
    message = {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": "login", "arguments": arguments},
    }
    return TraceEntry(sender="client", transport="stdio", message=message, hidden=hidden)


def reply(id: int, result: object, *hidden: str) -> TraceEntry:
    message = {"jsonrpc": "2.0", "id": id, "result": result}
    return TraceEntry(sender="server", transport="stdio", message=message, hidden=hidden)


def test_arguments_and_results_that_were_hidden_break_no_schema() -> None:
    schema = {"type": "object", "properties": {"token": {"type": "integer"}}}
    tool = {"name": "login", "inputSchema": schema, "outputSchema": schema}
    output = {"content": [], "structuredContent": {"token": HIDDEN}}
    for hidden in ((), ("/params/arguments/token", "/result/structuredContent/token")):
        talk = Conversation("2025-11-25")
        talk.feed({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "client")
        talk.feed({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}, "server")
        talk.feed(tool_call(2, {"token": HIDDEN}, *hidden[:1]))
        found = {each.rule for each in talk.feed(reply(2, output, *hidden[1:]))}
        assert ("mcp.tools.structured-conforms" in found) is not bool(hidden)
        assert ("mcp.tools.inputs-validated" in found) is not bool(hidden)


def test_findings_at_a_hidden_place_are_dropped_and_others_are_not() -> None:
    bad = {"name": HIDDEN, "inputSchema": 5, "title": 7}
    entry = reply(1, {"tools": [bad]}, "/result/tools/0/title")
    talk = Conversation("2025-11-25")
    talk.feed({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "client")
    places = {each.where for each in talk.feed(entry)}
    assert "/result/tools/0/inputSchema" in places
    assert "/result/tools/0/title" not in places


def test_ids_that_were_hidden_are_not_one_id() -> None:
    talk = Conversation("2026-07-28")
    found = []
    for _ in range(3):
        message = {"jsonrpc": "2.0", "id": HIDDEN, "method": "ping"}
        found += talk.feed(TraceEntry(sender="client", message=message, hidden=("/id",)))
        answer = {"jsonrpc": "2.0", "id": HIDDEN, "result": {}}
        found += talk.feed(TraceEntry(sender="server", message=answer, hidden=("/id",)))
    assert not [each for each in found if each.where.startswith("/id")]


def test_states_that_were_hidden_are_not_shared_by_calls() -> None:
    talk = Conversation("2026-07-28")
    asked = {"resultType": "input_required", "requestState": HIDDEN, "inputRequests": {}}
    for id in (1, 2):
        talk.feed(tool_call(id, {"n": id}))
        found = talk.feed(reply(id, asked, "/result/requestState"))
        assert "mcp.rounds.state-not-shared" not in {each.rule for each in found}
    retry = tool_call(3, {"n": 1})
    retry.message["params"] |= {"requestState": HIDDEN, "inputResponses": {}}
    places = HiddenPlaces(["/params/requestState"])
    entry = TraceEntry(sender="client", message=retry.message, hidden=("/params/requestState",))
    assert not [each for each in talk.feed(entry) if each.where in places]
