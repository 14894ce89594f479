from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

import pytest
from msgspec import UNSET, Raw
from msgspec.json import encode

from trunkline.jsonrpc.messages import SentRequest
from trunkline.mcp.types import (
    CallToolRequestParams,
    GetTaskRequestParams,
    InitializeRequestParams,
    ReadResourceRequestParams,
    RequestParams,
)
from trunkline.spec.mcp.meta import PROTOCOL_VERSION
from trunkline.transports.http.client.message import (
    UNREADABLE,
    FactsReader,
    SentFacts,
    error_in,
    error_text,
    negotiated_version,
    read_arguments,
    read_messages,
)

VERSION = b'{"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}'


def test_a_frame_is_one_message_or_a_batch() -> None:
    (one,) = read_messages(b'{"method": "ping", "id": 1}')
    assert (one.method, one.id) == ("ping", 1)
    assert [each.id for each in read_messages(b' [{"id": "a"}, {"id": 2}]')] == ["a", 2]


@pytest.mark.parametrize(
    "frame", [b"", b"[", b"7", b'"x"', b'{"method": 7}', b"\xff", b"[" * 100_000]
)
def test_anything_else_is_unreadable(frame: bytes) -> None:
    with pytest.raises(UNREADABLE):
        read_messages(frame)


def test_facts_of_a_frame_without_a_route_are_decoded() -> None:
    read = FactsReader().read
    assert read(b'{"method": "x", "id": 1, "params": ' + VERSION + b"}", None) == SentFacts(
        "x", (1,), "2026-07-28"
    )
    for params in (b"{}", VERSION.replace(b'"2026-07-28"', b"7")):
        assert read(b'{"method": "x", "params": ' + params + b"}", None).version is None
    assert read(b'{"id": 1, "result": {}}', None) == SentFacts(None, ())
    assert read(b"[]", None) == SentFacts(None, ())
    batch = b'[{"method": "a", "id": 1}, {"method": "b"}, {"method": "c", "id": "x"}]'
    assert read(batch, None) == SentFacts("a", (1, "x"))
    named = b'{"method": "tools/call", "id": 1, "params": {"name": %b}}'
    assert read(named % b'"add"', None).name == "add"
    assert read(named % b"7", None).name is None


@pytest.mark.parametrize(("id", "cancelled"), [(b"7", 7), (b'"a"', "a"), (b"[1]", None)])
def test_facts_of_a_cancellation_have_the_id_of_its_request(id: bytes, cancelled: Any) -> None:
    frame = b'{"method": "%b", "params": {"requestId": ' + id + b"}}"
    read = FactsReader().read
    assert read(frame % b"notifications/cancelled", None).cancelled_id == cancelled
    assert read(frame % b"notifications/other", None).cancelled_id is None


META = {PROTOCOL_VERSION: "2026-07-28", "other": 1}


class Names(StrEnum):
    ADD = "add"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", CallToolRequestParams("add")),
        ("tools/call", CallToolRequestParams("add", Raw(encode(META)), {"a": 1})),
        ("tools/call", CallToolRequestParams("add", META)),
        ("tools/call", CallToolRequestParams("add", {"progressToken": 1})),
        ("tools/call", CallToolRequestParams("add", {PROTOCOL_VERSION: 7})),
        ("tools/call", CallToolRequestParams(Names.ADD)),
        ("tools/call", CallToolRequestParams(7)),  # type: ignore[arg-type]  # of a careless caller
        ("resources/read", ReadResourceRequestParams("file:///a")),
        ("tasks/get", GetTaskRequestParams("t1", META)),
        ("ping", RequestParams(META)),
        ("initialize", InitializeRequestParams({}, {}, "2025-11-25")),  # type: ignore[arg-type]  # unread
        ("server/discover", {"_meta": META}),
        ("prompts/get", {"name": "add", "_meta": META}),
        ("ping", None),
    ],
)
def test_facts_of_a_request_are_those_of_its_frame(method: str, params: Any) -> None:
    request = SentRequest(3, method, params)
    read = FactsReader().read
    frame = encode(request)
    assert read(frame, request) == read(frame, None)


def test_frame_whose_request_is_known_is_not_decoded() -> None:
    read = FactsReader().read
    meta: Any = Raw(encode(META))
    for id in (1, 2):
        request = SentRequest(id, "tools/call", CallToolRequestParams("add", meta))
        assert read(b"", request) == SentFacts("tools/call", (id,), "2026-07-28", "add")
    # Another `_meta` has another version.
    request = SentRequest(3, "tools/call", CallToolRequestParams("add"))
    assert read(b"", request) == SentFacts("tools/call", (3,), None, "add")


def test_arguments_are_read_as_they_are_on_the_wire() -> None:
    assert read_arguments(b'{"params": {"arguments": {"a": 1}}}') == {"a": 1}
    for frame in (b"{}", b'{"params": {}}', b'{"params": {"arguments": ' + b"[" * 100_000):
        assert read_arguments(frame) == {}


@pytest.mark.parametrize(
    ("result", "version"),
    [
        (b'{"protocolVersion": "2025-11-25"}', b"2025-11-25"),
        (b'{"protocolVersion": ""}', None),
        (b'{"protocolVersion": "\\u00e9"}', None),
        (b'{"protocolVersion": "1\\r\\nX: y"}', None),
        (b'{"protocolVersion": 7}', None),
        (b"{}", None),
        (b"[]", None),
    ],
)
def test_a_negotiated_version_is_one_that_a_header_can_carry(
    result: bytes, version: bytes | None
) -> None:
    assert negotiated_version(Raw(result)) == version


def test_an_error_is_an_object_and_not_a_text() -> None:
    found = error_in(b'{"id": 7, "error": {"code": 1}}')
    assert found is not None
    assert (found.id, bytes(cast("Any", found.error))) == (7, b'{"code": 1}')
    for body in (b'{"error": "invalid_token"}', b"{}", b"<html>", b'{"error": null}', b""):
        assert error_in(body) is None
    assert read_messages(b"{}")[0].error is UNSET


@pytest.mark.parametrize(
    ("error", "text"),
    [('{"message": "Not found"}', "Not found"), ('{"message": 7}', ""), ('{"code": 1}', "")],
)
def test_the_text_of_an_error_is_its_message(error: str, text: str) -> None:
    found = error_in(f'{{"error": {error}}}'.encode())
    assert found is not None
    assert error_text(found) == text
