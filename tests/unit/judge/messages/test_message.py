from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import UNSET

from trunkline.jsonrpc import (
    Batch,
    ErrorObject,
    Failure,
    Notification,
    Policy,
    Request,
    Success,
    decode,
)
from trunkline.judge import judge
from trunkline.judge.finding import CUT_RULE, MAX_FINDINGS
from trunkline.spec.revisions import REVISIONS, V2025_03_26, V2025_11_25
from trunkline.spec.types import UnknownRevision

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"%s}}'


def findings_of(message: Any, revision: str = V2025_11_25, **facts: Any) -> list[tuple[str, str]]:
    return [(item.rule, item.where) for item in judge(message, revision, **facts)]


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, bytes.decode])
def test_text_is_judged_in_every_form(form: Any) -> None:
    assert findings_of(form(CALL % b"")) == []
    assert findings_of(form(CALL.replace(b'"a"', b"7") % b"")) == [
        ("mcp.type.json-type", "/params/name")
    ]


def test_message_objects_are_judged() -> None:
    assert findings_of(Request("ping", id=1)) == []
    assert findings_of(Notification("notifications/initialized")) == []
    assert findings_of(Success(1, {}), request=Request("ping", id=1)) == []
    assert findings_of(Failure(UNSET, ErrorObject(-32700, "Parse error"))) == []
    assert findings_of(Request("tools/call", {}, id=1)) == [("mcp.type.required", "/params/name")]
    assert findings_of(Success(1, {}), request=Request("tools/list", id=2)) == [
        ("mcp.reply.id", "/id"),
        ("mcp.type.required", "/result/tools"),
    ]


def test_a_batch_that_was_read_is_judged_with_its_faults() -> None:
    read = decode(
        '[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","id":1,"method":"x"}]'
    )
    assert isinstance(read, Batch)
    assert findings_of(read, V2025_03_26) == [
        ("jsonrpc.message.object", "/1"),
        ("mcp.method.unknown", "/2/method"),
    ]
    assert findings_of(Batch(read.messages), V2025_03_26) == [("mcp.method.unknown", "/1/method")]


def test_parsed_json_is_judged() -> None:
    assert findings_of(PING) == []
    assert findings_of([PING, {**PING, "id": 2}], V2025_03_26) == []
    for value in (None, 7, "text", True):
        assert findings_of(value)[0][0].startswith("jsonrpc.")


def test_value_without_json_form_is_a_finding() -> None:
    assert findings_of({**PING, "params": {"a": math.nan}}) == [
        ("jsonrpc.number.finite", "/params/a")
    ]
    assert findings_of({**PING, "params": {"a": object()}})[0][0] == "jsonrpc.value.unserialisable"
    loop: dict[str, Any] = {}
    loop["a"] = loop
    assert findings_of({**PING, "params": loop})[0][0] == "jsonrpc.value.cyclic"


def test_a_fault_of_the_envelope_does_not_hide_the_others() -> None:
    assert findings_of({"id": 1.5, "method": "tools/call", "params": {}}) == [
        ("jsonrpc.id.type", "/id"),
        ("jsonrpc.version.required", "/jsonrpc"),
        ("mcp.type.required", "/params/name"),
    ]


def test_a_text_that_is_written_otherwise_is_read_as_well() -> None:
    spaced = (
        b' {"jsonrpc": "2.0",\n "id": 1, "method": "tools/call", "params": {"name": "\\u0061"}} '
    )
    assert findings_of(spaced) == []
    assert findings_of(CALL % b',"arguments":{"x":1.50}') == []


def test_duplicate_member_is_a_finding_at_any_depth() -> None:
    assert findings_of(CALL % b',"arguments":{"x":{"a":1,"a":1}}') == [
        ("jsonrpc.text.duplicate-key", "/params/arguments/x/a")
    ]


def test_a_lone_surrogate_is_named_and_the_rest_is_judged() -> None:
    surrogate = "jsonrpc.text.surrogate"
    assert findings_of(CALL % rb',"arguments":{"x":"cut \ud83d"}') == [
        (surrogate, "/params/arguments/x")
    ]
    assert findings_of(CALL % rb',"arguments":{"x\ud83d":1}') == [(surrogate, "/params/arguments")]
    assert findings_of(CALL % rb',"arguments":7,"_meta":{"progressToken":"\ud83d"}') == [
        (surrogate, "/params/_meta/progressToken"),
        ("mcp.type.json-type", "/params/arguments"),
    ]
    batch = (
        b"[" + CALL % rb',"arguments":{"x":"\ud83d"}' + b"," + CALL.replace(b"1", b"2") % b"" + b"]"
    )
    assert (surrogate, "/0/params/arguments/x") in findings_of(batch, V2025_03_26)


def test_nesting_is_a_finding() -> None:
    for depth in (300, 5000, 1_000_000):
        nested = b"[" * depth + b"]" * depth
        assert [rule for rule, _ in findings_of(CALL % (b',"arguments":{"x":%s}' % nested))] == [
            "jsonrpc.limit.depth"
        ]
    shallow = b"[" * 200 + b"]" * 200
    assert findings_of(CALL % (b',"arguments":{"x":[%s,%s]}' % (shallow, shallow))) == []


def test_unknown_methods_are_explained() -> None:
    found = judge({**PING, "method": "tool/list"}, V2025_11_25)
    assert "did you mean 'tools/list'?" in found[0].expected
    gone = judge({**PING, "method": "resources/subscribe"})
    assert "removed in 2026-07-28" in gone[0].expected
    assert "subscriptions/listen" in gone[0].expected


def test_a_request_may_be_given_in_several_forms() -> None:
    reply = Success(1, {})
    for request in ("tools/list", Request("tools/list", id=1), {**PING, "method": "tools/list"}):
        assert findings_of(reply, request=request) == [("mcp.type.required", "/result/tools")]
    assert findings_of(reply, request={"id": 1}) == [("mcp.result.of-unknown-method", "/result")]
    with pytest.raises(TypeError, match="method name"):
        judge(reply, request=7)  # type: ignore[arg-type]


def test_an_unknown_sender_or_revision_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="'client' or 'server'"):
        judge(PING, sender="proxy")  # type: ignore[arg-type]
    with pytest.raises(UnknownRevision):
        judge(PING, "2025-01-01")


def test_a_policy_replaces_the_official_rules_of_the_envelope() -> None:
    assert findings_of([PING], policy=Policy.mcp(V2025_11_25).replace(batch="accept")) == []
    lenient = Policy.mcp(V2025_11_25).replace(strictness="lenient")
    assert findings_of({"id": 1, "method": "ping"}, policy=lenient) == []


def test_the_code_of_a_profile_is_known_to_it_alone() -> None:
    failure = Failure(1, ErrorObject(-32001, "No"))
    assert findings_of(failure, "2026-07-28") == [("mcp.error.legacy-range", "/error/code")]
    profile = Policy.mcp().replace(codes="erlmcp")
    assert findings_of(failure, "2026-07-28", policy=profile) == []


def test_a_flood_of_unknown_members_is_cut() -> None:
    found = judge({**PING, **{f"k{number}": 1 for number in range(20_000)}}, V2025_11_25)
    assert (len(found), found[-1].rule) == (MAX_FINDINGS + 1, CUT_RULE)


def test_a_message_that_is_too_large_is_not_read() -> None:
    text = CALL % (b',"arguments":{"x":"%s"}' % (b"a" * (16 * 1024 * 1024)))
    assert findings_of(text) == [("jsonrpc.limit.message-size", "")]


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_that_is_judged_raises(revision: str) -> None:
    odd: list[Any] = [None, True, 7, 1.5, "x", [], {}, [[]], {"a": []}, "", "\ud800"]
    for name in ("jsonrpc", "id", "method", "params", "result", "error"):
        for value in odd:
            for base in (PING, {"jsonrpc": "2.0", "id": 1, "result": {}}, {}):
                for sender in ("client", "server", None):
                    judge({**base, name: value}, revision, sender, "tools/call")
    for value in odd:
        judge(value, revision)


TYPED = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "starred", "stars": 5}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@pytest.mark.parametrize(
    ("extensions", "is_known"),
    [
        ({}, False),
        ({"io.modelcontextprotocol/tasks": {}}, False),
        ({"com.example/stars": {}}, True),
    ],
)
def test_a_type_of_result_may_be_that_of_an_extension_the_request_declares(
    extensions: dict[str, object], is_known: bool
) -> None:
    params = {"name": "x", "_meta": {CAPABILITIES: {"extensions": extensions}}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    found = judge(TYPED, "2026-07-28", "server", request)
    assert ("mcp.result.type-unknown" in {each.rule for each in found}) is not is_known
