"""Lone surrogates: found, marked, replaced in texts and left in identifiers, in linear time."""

from __future__ import annotations

import json
import re
import tracemalloc
from time import process_time
from typing import Any

import pytest

from trunkline.errors import InvalidMessage
from trunkline.jsonrpc import Codec, Policy
from trunkline.jsonrpc.codec.surrogates import find_in_identifier, mark, replace

MIB = 1024 * 1024
CODEC = Codec(Policy.mcp("2025-11-25"), expect="calls")


def repaired(text: bytes) -> bytes | None:
    marked = mark(text)
    return None if marked is None else replace(*marked)


def read(message: Any) -> Any:
    """What the codec makes of a message, written as Python and JavaScript write it."""
    return CODEC.decode(json.dumps(message).encode())


def rejected(message: Any) -> str:
    with pytest.raises(InvalidMessage) as caught:
        read(message)
    assert caught.value.rule == "jsonrpc.text.surrogate"
    assert caught.value.code == -32700
    return caught.value.where


# Which escapes are replaced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\uD83D"', "\ufffd"),
        (rb'"\udE00"', "\ufffd"),
        (rb'"\ud83d\ude00 \ud83d"', "\U0001f600 \ufffd"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\ud83d\ude00\ude00"', "\U0001f600\ufffd"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\u0041"', "\ufffdA"),
        (rb'"\ud83d\\ude00"', "\ufffd\\ude00"),
        (rb'"\\\ud83d\\"', "\\\ufffd\\"),
        (rb'"\\\\\ud83d\""', '\\\\\ufffd"'),
        (rb'"\udbff\udfff\udbff"', "\U0010ffff\ufffd"),
        (rb'"\ufdd0\ud83d"', "\ufdd0\ufffd"),
        ('"é\\ud83dé"'.encode(), "é\ufffdé"),
    ],
)
def test_each_lone_surrogate_becomes_one_replacement_character(text: bytes, expected: str) -> None:
    written = repaired(text)
    assert written is not None
    assert json.loads(written) == expected
    assert re.sub("[\ud800-\udfff]", "\ufffd", json.loads(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'"a"',
        rb'"\ud83d\ude00"',
        rb'"\\ud83d"',
        rb'"\\\\ud83d"',
        rb'"\u0041\u00e9\uffff"',
        rb'"\ud83"',
        b'"\xed\xa0\x80"',
        b'"\\ud83d\0"',
    ],
)
def test_a_text_without_one_is_left_alone(text: bytes) -> None:
    assert mark(text) is None


def test_a_text_that_has_every_mark_is_left_alone() -> None:
    every = b"".join(rb"\ufd%02x" % low for low in range(0xD0, 0xF0))
    assert mark(b'"' + every + rb'\ud83d"') is None
    assert mark(b'"' + every[6:] + rb'\ud83d"') is not None


# Where they are read


def call(params: Any, method: str = "tools/call") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def result(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "result": value}


TEXTS: list[dict[str, Any]] = [
    call({"name": "t", "arguments": {"text": "\ud83d", "name": "\ud83d", "uri": "\ud83d"}}),
    call({"name": "t", "arguments": {"id": ["\ud83d"], "cursor": {"requestState": "\ud83d"}}}),
    call({"name": "t", "arguments": {"params": {"name": "\ud83d"}}}),
    call({"level": "info", "data": {"name": "\ud83d"}}, "notifications/message"),
    call({"message": "name? \ud83d"}, "elicitation/create"),
    call({"clientInfo": {"name": "\ud83d", "version": "1"}}, "initialize"),
    result({"content": [{"type": "text", "text": "\ud83d"}]}),
    result({"content": [], "structuredContent": {"name": "\ud83d", "uri": "\ud83d"}}),
    result({"action": "accept", "content": {"name": "\ud83d", "uri": "\ud83d", "id": "\ud83d"}}),
    result({"tools": [{"name": "t", "description": "\ud83d", "title": "\ud83d"}]}),
    result({"resources": [{"uri": "file:///a", "name": "\ud83d"}]}),
    result({"messages": [{"role": "user", "content": {"type": "text", "text": "\ud83d"}}]}),
    {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "\ud83d", "data": "\ud83d"}},
    {"jsonrpc": "2.0", "id": 7, "method": "a", "unknown": {"id": "\ud83d"}},
]

IDENTIFIERS: dict[str, dict[str, Any]] = {
    "/id": {"jsonrpc": "2.0", "id": "\ud83d", "method": "a"},
    "/method": {"jsonrpc": "2.0", "id": 7, "method": "a\ud83d"},
    "/params/name": call({"name": "a\ud83db", "arguments": {}}),
    "/params/uri": call({"uri": "\ud83d"}, "resources/read"),
    "/params/cursor": call({"cursor": "\ud83d"}, "tools/list"),
    "/params/requestState": call({"name": "t", "requestState": "\ud83d"}),
    "/params/taskId": call({"taskId": "\ud83d"}, "tasks/get"),
    "/params/_meta/progressToken": call({"name": "t", "_meta": {"progressToken": "\ud83d"}}),
    "/params/ref/name": call({"ref": {"name": "\ud83d"}}, "completion/complete"),
    "/params/ref/uri": call({"ref": {"uri": "\ud83d"}}, "completion/complete"),
    "/params/notifications/resourceSubscriptions/2": call(
        {"notifications": {"resourceSubscriptions": ["a", "b", "\ud83d"]}}, "subscriptions/listen"
    ),
    "/params/inputResponses/x/roots/0/uri": call(
        {"name": "t", "inputResponses": {"x": {"roots": [{"uri": "\ud83d"}]}}}
    ),
    "/result/nextCursor": result({"tools": [], "nextCursor": "\ud83d"}),
    "/result/requestState": result({"requestState": "\ud83d"}),
    "/result/tools/1/name": result({"tools": [{"name": "t"}, {"name": "\ud83d"}]}),
    "/result/prompts/0/arguments/0/name": result(
        {"prompts": [{"arguments": [{"name": "\ud83d"}]}]}
    ),
    "/result/resources/0/uri": result({"resources": [{"uri": "\ud83d", "name": "\ud83d"}]}),
    "/result/resourceTemplates/0/uriTemplate": result(
        {"resourceTemplates": [{"uriTemplate": "\ud83d"}]}
    ),
    "/result/contents/0/uri": result({"contents": [{"uri": "\ud83d"}]}),
    "/result/content/0/uri": result({"content": [{"type": "resource_link", "uri": "\ud83d"}]}),
    "/result/content/0/resource/uri": result({"content": [{"resource": {"uri": "\ud83d"}}]}),
    "/result/messages/0/content/resource/uri": result(
        {"messages": [{"content": {"resource": {"uri": "\ud83d"}}}]}
    ),
    "/result/inputRequests/x/params/url": result(
        {"inputRequests": {"x": {"params": {"url": "\ud83d"}}}}
    ),
}


@pytest.mark.parametrize("message", TEXTS, ids=range(len(TEXTS)))
def test_a_text_is_read_with_the_replacement_character(message: dict[str, Any]) -> None:
    expected = json.loads(json.dumps(message).replace(r"\ud83d", r"\ufffd"))
    found = json.loads(CODEC.encode(read(message)))
    assert found == {name: expected[name] for name in found}
    assert found.keys() >= message.keys() - {"unknown"}


@pytest.mark.parametrize("message", TEXTS, ids=range(len(TEXTS)))
def test_raw_params_and_results_have_the_replacement_character(message: dict[str, Any]) -> None:
    found: Any = CODEC.envelope(json.dumps(message).encode())
    raw = (
        bytes(found.params) if "params" in message else bytes(getattr(found, "result", b"") or b"")
    )
    assert b"\\ud83d" not in raw
    assert b"\\ufdd0" not in raw


@pytest.mark.parametrize("where", IDENTIFIERS)
def test_an_identifier_is_rejected_with_its_place(where: str) -> None:
    assert rejected(IDENTIFIERS[where]) == where


@pytest.mark.parametrize("message", TEXTS, ids=range(len(TEXTS)))
def test_a_strict_codec_rejects_every_one(message: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage) as caught:
        Codec(CODEC.policy.replace(strictness="strict")).decode(json.dumps(message).encode())
    assert caught.value.rule == "jsonrpc.text.surrogate"
    assert caught.value.id == 7


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"name": "t", "arguments": {"\ud83d": 1}}, "/params/arguments"),
        (
            {"name": "t", "arguments": {"a": [{"b": 1, "c\ud83d \ud83d": 1}]}},
            "/params/arguments/a/0",
        ),
        ({"\ud83d": 1}, "/params"),
        ({"inputResponses": {"\ud83d": {}}}, "/params/inputResponses"),
    ],
)
def test_a_member_name_is_rejected_wherever_it_is(params: Any, where: str) -> None:
    assert rejected(call(params)) == where


def test_a_colon_after_a_text_inside_a_string_makes_it_no_name() -> None:
    assert read(call({"name": "t", "arguments": {"a": '\ud83d": "b'}}))
    assert read(call({"name": "t", "arguments": {"a": ["\ud83d", ":"]}}))


def test_the_id_of_the_request_is_in_the_answer_unless_it_has_one_itself() -> None:
    for id, expected in ((7, 7), ("a", "a"), ("\ud83d", None)):
        with pytest.raises(InvalidMessage) as caught:
            read({"jsonrpc": "2.0", "id": id, "method": "a\ud83d"})
        assert caught.value.id == expected
        assert caught.value.answerable


def test_a_large_message_is_read_and_one_with_a_doubtful_place_is_rejected() -> None:
    filler = "x" * MIB
    assert read(call({"name": "t", "arguments": {"text": "\ud83d", "filler": filler}}))
    assert read(call({"name": "t", "arguments": {"name": "\ud83d", "filler": filler[:-1000]}}))
    rejected(call({"name": "t", "arguments": {"name": "\ud83d", "filler": filler}}))
    rejected(call({"name": "\ud83d", "arguments": {"filler": filler}}))


# What a hostile text costs

HOSTILE: dict[str, bytes] = {
    "surrogates": rb'"' + rb"\ud83d" * 170_000 + rb'"',
    "strings": b'["' + b'","'.join([rb"\ud83d"] * 110_000) + b'"]',
    "names": b'{"id":"' + b'","id":"'.join([rb"\ud83d"] * 65_000) + b'"}',
    "names before arrays": b"[" + b'{"id":["a","a"]},' * 60_000 + rb'"\ud83d"]',
    "nested names": b'{"id":[' * 140_000 + rb'"\ud83d"' + b"]}" * 140_000,
    "backslashes": rb'"\ud83d' + rb"\\" * 520_000 + rb'"',
    "quotes": rb'"\ud83d' + rb"\"" * 520_000 + rb'"',
    "pairs": rb'"\ud83d' + rb"\ud83d\ude00" * 87_000 + rb'"',
    "blanks": rb'{"a":"\ud83d"' + b" " * MIB + b"}",
    "an array that does not end": b'{"id":[' + b'"a",' * 260_000 + rb'"\ud83d"]}',
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_text_is_searched_in_linear_time_and_memory(what: str) -> None:
    text = HOSTILE[what]
    calibration = process_time()
    for _ in range(2_000_000):
        pass
    calibration = process_time() - calibration
    start = process_time()
    marked = mark(text)
    assert marked is not None
    find_in_identifier(*marked)
    replace(*marked)
    # Some 20 ms for 1 MiB, where the loop takes 40; a quadratic search takes minutes.
    assert process_time() - start < 20 * calibration + 1


def test_a_text_of_surrogates_is_not_kept_many_times() -> None:
    text = HOSTILE["surrogates"]
    tracemalloc.start()
    repaired(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(text)
