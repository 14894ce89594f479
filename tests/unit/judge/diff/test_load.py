"""Listings read back from files: documents, results, arrays and recordings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.judge.diff import read_listing

TOOL = {"name": "add", "inputSchema": {"type": "object"}}


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def request_of(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def reply_to(id: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def recorded(sender: str, message: Any) -> dict[str, Any]:
    return {"at": 0.0, "from": sender, "message": message}


def test_the_document_is_read_as_it_is() -> None:
    document = {"format": "trunkline.listing/1", "server": {"name": "s"}, "tools": [TOOL]}
    assert read_listing(json.dumps(document, indent=2)) == document
    assert read_listing(b"\xef\xbb\xbf" + json.dumps(document).encode()) == document


def test_a_result_and_an_array_are_tools() -> None:
    assert read_listing(json.dumps({"tools": [TOOL]})) == {"tools": [TOOL]}
    assert read_listing(json.dumps([TOOL])) == {"tools": [TOOL]}


def test_recording_gives_all_pages_and_the_server_info() -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "s", "version": "1"},
        "capabilities": {"tools": {}},
    }
    text = lines(
        {"trunkline-trace": 1},
        recorded("client", request_of(0, "initialize")),
        recorded("server", reply_to(0, **hello)),
        recorded("client", request_of(1, "tools/list")),
        recorded("client", request_of("1", "prompts/list")),
        recorded("server", reply_to(1, tools=[TOOL], nextCursor="x")),
        recorded("server", reply_to("1", prompts=[{"name": "p"}])),
        recorded("client", request_of(2, "tools/list", cursor="x")),
        recorded("server", reply_to(2, tools=[{"name": "b"}])),
    )
    assert read_listing(text) == {
        "server": {"name": "s", "version": "1"},
        "revision": "2025-11-25",
        "capabilities": {"tools": {}},
        "tools": [TOOL, {"name": "b"}],
        "prompts": [{"name": "p"}],
    }


def test_a_list_that_was_asked_for_again_replaces_the_old_one() -> None:
    text = lines(
        request_of(1, "tools/list"),
        reply_to(1, tools=[TOOL]),
        request_of(2, "tools/list"),
        reply_to(2, tools=[]),
    )
    assert read_listing(text) == {"tools": []}


def test_an_answer_alone_is_known_by_its_look() -> None:
    assert read_listing(lines(reply_to(1, tools=[TOOL]))) == {"tools": [TOOL]}


def test_the_versions_that_a_server_speaks_are_kept() -> None:
    text = lines(
        request_of(1, "server/discover"),
        reply_to(1, supportedVersions=["2026-07-28"], capabilities={}),
        reply_to(2, tools=[]),
    )
    assert read_listing(text)["supportedVersions"] == ["2026-07-28"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("hello", "neither a listing nor a recording"),
        ("5", "neither a listing nor a recording"),
        ("{}", "an object without tools"),
        ('{"a": 1}', "an object without tools"),
        ("[1, 2]", "but not of tools"),
        ('{"tools": 5}', "tools are not an array"),
        ('{"format": "trunkline.listing/2", "tools": []}', 'expected "trunkline.listing/1"'),
        (lines(request_of(1, "tools/list")), "without a list request"),
        (lines(reply_to(1, tools=[], nextCursor="x")), "before the last page of tools"),
        (lines(request_of(1, "tools/list"), reply_to(1, tools=5)), "no array of tools"),
        ("[" * 5000, "neither a listing nor a recording"),
    ],
)
def test_file_that_is_not_a_listing_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_listing(text)
