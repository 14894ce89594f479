"""What is remembered of a conversation, and what one message of it is."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge import TraceEntry
from trunkline.judge.rules.state import (
    BoundedDict,
    ObservedCall,
    ObservedMessage,
    ObservedTool,
    State,
    declares,
    fingerprint,
    key_of,
    object_at,
)


def seen(**members: Any) -> ObservedMessage:
    return ObservedMessage(members, TraceEntry(), 0, "client")


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"id": 1, "method": "a"}, "request"),
        ({"method": "a"}, "notification"),
        ({"id": None, "method": "a"}, "notification"),
        ({"id": 1, "result": {}}, "reply"),
        ({"id": 1, "error": {}}, "reply"),
        ({"id": 1}, "other"),
    ],
)
def test_a_message_is_of_one_kind(members: dict[str, Any], kind: str) -> None:
    assert seen(**members).kind == kind


def test_only_a_request_has_a_key() -> None:
    assert seen(id=1, method="a").key == ("client", "int", 1)
    assert seen(id=1, result={}).key is None


def test_meta_is_that_of_the_params_or_of_the_result() -> None:
    assert seen(id=1, method="a", params={"_meta": {"a": 1}}).meta == {"a": 1}
    assert seen(id=1, result={"_meta": {"b": 1}}, params={"_meta": {"a": 1}}).meta == {"b": 1}
    assert seen(id=1, result=[], params=[]).meta == {}


def test_the_code_is_that_of_an_error() -> None:
    assert seen(id=1, error={"code": 5}).code == 5
    assert seen(id=1, error=5).code is None
    assert seen(id=1, result={"code": 5}).code is None


def test_a_call_keeps_what_later_messages_refer_to() -> None:
    prefix = "io.modelcontextprotocol/"
    meta = {"progressToken": "p", prefix + "protocolVersion": "v"}
    call = ObservedCall(
        seen(id=1, method="tools/call", params={"name": "a", "task": {}, "_meta": meta})
    )
    assert (call.name, call.token, call.version, call.wants_task) == ("a", "p", "v", True)
    assert not call.meta_complete
    assert call.filter == {}
    meta[prefix + "clientCapabilities"] = {"roots": {}}
    params = {"notifications": {"a": True}, "task": 1, "_meta": meta}
    listen = ObservedCall(seen(id=1, method="subscriptions/listen", params=params))
    assert (listen.filter, listen.declared) == ({"a": True}, {"roots": {}})
    assert (listen.meta_complete, listen.wants_task) == (True, False)


def test_ids_differ_by_sender_and_by_type() -> None:
    assert key_of("client", 7) == key_of("client", 7)
    assert len({key_of("client", 7), key_of("server", 7), key_of("client", "7")}) == 3
    assert [key_of("client", id) for id in (None, True, 7.0, [])] == [None] * 4


def test_a_member_that_is_not_an_object_is_an_empty_one() -> None:
    assert object_at({"a": {"b": 1}}, "a") == {"b": 1}
    assert object_at({"a": [1]}, "a") == {}
    assert object_at({}, "a") == {}


def test_a_capability_that_is_switched_off_is_not_declared() -> None:
    assert declares({"a": {"b": {}}}, "a.b")
    assert not declares({"a": {"b": False}}, "a.b")
    assert not declares({"a": None}, "a")
    assert not declares({"extensions": {"x": {"y": {}}}}, "extensions.x.y")
    assert declares({"extensions": {}}, "extensions")


def test_a_fingerprint_does_not_depend_on_the_order_of_members() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(["a", "b"]) != fingerprint(["b", "a"])
    assert fingerprint(object()) == 0


def test_setting_a_key_again_evicts_nothing_from_a_bounded_dict() -> None:
    kept: BoundedDict[int, str] = BoundedDict(2)
    for number in (1, 2, 1):
        kept[number] = ""
    assert (set(kept), kept.evicted) == ({1, 2}, False)


def test_a_tool_keeps_schemas_up_to_a_length() -> None:
    schema = {"description": "x" * (16384 - len('{"description":""}'))}
    tool = ObservedTool({"inputSchema": schema, "outputSchema": schema})
    assert (tool.input, tool.output, tool.has_output) == (schema, schema, True)
    longer = {"description": schema["description"] + "x"}
    tool = ObservedTool({"inputSchema": longer, "outputSchema": longer})
    assert (tool.input, tool.output, tool.has_output) == (None, None, True)
    assert not ObservedTool({"outputSchema": None}).has_output


def test_a_tool_knows_which_arguments_are_headers() -> None:
    properties = {"a": {"type": "string", "x-mcp-header": "A"}, "c": True}
    (row,) = ObservedTool({"inputSchema": {"properties": properties}}).headers
    assert (row.header, row.path) == ("Mcp-Param-A", ("a",))


def test_a_tool_with_a_faulty_header_has_none() -> None:
    properties = {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"x-mcp-header": 1}}
    tool = ObservedTool({"inputSchema": {"properties": properties}})
    assert (tool.headers, tool.has_faulty_header) == ((), True)


def test_an_entry_without_a_stream_is_part_of_no_exchange() -> None:
    assert State().exchange(TraceEntry()) is None
    assert State().exchange(TraceEntry(stream=1)) is None
