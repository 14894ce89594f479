"""What a tool gave back, in every shape that servers give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from msgspec import Raw, Struct
from msgspec.json import encode

from tests.unit.client.scripted import text
from trunkline.client.requests.tool_result import ToolResult, tool_result
from trunkline.client.session.decode import NotComplete, read, read_own, where_and_what
from trunkline.errors import RemoteProtocolError, ResultTypeMismatch, ToolFailed
from trunkline.mcp import CallToolResult, ListToolsResult, TextContent
from trunkline.spec.revisions import LATEST, REVISIONS

STRUCTURED = pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", LATEST])


class Forecast(Struct):
    city: str
    degrees: float = 0.0


def result(value: dict[str, Any], kind: Any = None, revision: str = LATEST) -> ToolResult[Any]:
    return tool_result(Raw(encode(value)), kind, revision)


def structured(value: Any, *texts: str) -> dict[str, Any]:
    return text(*texts, structuredContent=value)


def test_a_text_is_its_value() -> None:
    found = result(text("one", "two"))
    assert found.text == "one\ntwo"
    assert found.value == "one\ntwo"
    assert found.structured_content is None
    assert found.is_error is False
    assert found.meta == {}
    assert [block.text for block in found.content] == ["one", "two"]


@STRUCTURED
def test_structured_content_becomes_the_type_asked_for(revision: str) -> None:
    value = {"city": "Oslo", "degrees": 4}
    found = result(structured(value, "text"), Forecast, revision)
    assert found.value == Forecast("Oslo", 4.0)
    assert found.value is found.value
    assert found.structured_content == value


def test_without_a_type_the_structured_content_is_the_value() -> None:
    assert result(structured({"a": 1}, "text")).value == {"a": 1}
    assert result(structured(None, "text")).value is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [(int, 5), (list[int], [1, 2]), (str, "x"), (list[Forecast], []), (bool, True)],
)
def test_non_object_value_is_read_plain_or_wrapped(kind: Any, value: Any) -> None:
    assert result(structured(value), kind, LATEST).value == value
    # Some servers wrap in every revision, also where they need not.
    for revision in REVISIONS:
        assert result(structured({"result": value}), kind, revision).value == value


@pytest.mark.parametrize(
    ("value", "shown"), [(3, "3"), ("hi", "hi"), ([1, 2], "[1,2]"), (None, "null"), (True, "true")]
)
def test_untyped_wrapped_value_is_recognised_by_its_text_content(value: Any, shown: str) -> None:
    def came(text: str) -> Any:
        content = [{"type": "text", "text": text}]
        return {"content": content, "structuredContent": {"result": value}}

    assert result(came(shown), None, "2025-11-25").value == value
    whole = {"result": value}
    assert result(came(encode(whole).decode()), None, "2025-11-25").value == whole
    assert result(came("in short"), None, "2025-11-25").value == whole


def test_an_object_that_has_a_result_is_not_unwrapped() -> None:
    value = {"result": {"city": "Oslo"}}
    assert result(structured(value), dict[str, Any], "2025-11-25").value == value
    assert result(structured(value), Forecast, "2025-11-25").value == Forecast("Oslo")


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_text_of_json_becomes_the_type_asked_for(revision: str) -> None:
    found = result(text('{"city": "Oslo"}'), Forecast, revision)
    assert found.value == Forecast("Oslo")
    assert result(text("plain"), str, revision).value == "plain"
    assert result(text("[1, 2]"), list[int], revision).value == [1, 2]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (structured({"city": 5}), "/structuredContent/city"),
        (structured({"degrees": 1}), "/structuredContent"),
        (text("no json"), "/content"),
        (text(), "/content"),
    ],
)
def test_result_type_mismatch_names_the_place_and_the_type(value: Any, where: str) -> None:
    found = result(value, Forecast)
    with pytest.raises(ResultTypeMismatch) as caught:
        _ = found.value
    assert caught.value.where == where
    assert "Forecast" in caught.value.expected


def test_a_failed_tool_has_no_value() -> None:
    found = result(text("no such city", isError=True), Forecast)
    assert found.is_error
    assert found.text == "no such city"
    with pytest.raises(ToolFailed, match="no such city") as caught:
        _ = found.value
    assert caught.value.result is found
    with pytest.raises(ToolFailed, match="did not say why"):
        _ = result(text(isError=True)).value


def test_meta_is_kept() -> None:
    assert result(text("x", _meta={"a": 1})).meta == {"a": 1}


def test_an_absent_result_type_is_complete() -> None:
    assert result(text("x")).text == "x"
    assert result(text("x", resultType="complete")).text == "x"
    assert result(text("x", resultType=None)).text == "x"


@pytest.mark.parametrize("kind", ["input_required", "task", "odd", "", 5])
def test_result_of_another_result_type_raises_not_complete(kind: Any) -> None:
    with pytest.raises(NotComplete, match=r"mcp\.result\.type-unknown") as caught:
        result(text("x", resultType=kind))
    assert caught.value.got == kind


def test_result_type_member_is_ignored_in_revisions_without_result_types() -> None:
    assert result(text("x", resultType="odd"), None, "2025-11-25").text == "x"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({}, ""),
        ({"content": "x"}, "/content"),
        ({"content": [{"type": "text"}]}, "/content/0"),
        ({"content": [{"type": "hologram"}]}, "/content/0/type"),
    ],
)
def test_malformed_tool_result_raises_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        result(value)
    assert caught.value.where.startswith(where)
    assert "tools/call" in caught.value.expected


def test_null_for_an_absent_member_is_accepted_and_a_null_value_is_kept() -> None:
    found = result(text("x", isError=None, _meta=None, structuredContent={"a": None}))
    assert found.structured_content == {"a": None}
    assert found.meta == {}


def test_a_negative_time_to_live_counts_as_none() -> None:
    page = encode({"tools": [], "ttlMs": -5, "cacheScope": "private"})
    assert read(page, ListToolsResult, "tools/list", LATEST).ttl_ms == 0


def test_places_are_pointers() -> None:
    error = ValueError("Expected `str`, got `int` - at `$.tools[3].name`")
    assert where_and_what(error) == ("/tools/3/name", "Expected `str`, got `int`")
    assert where_and_what(ValueError("odd")) == ("", "odd")


# -- wrapped values --------------------------------------------------------------------------


class Options(Struct):
    a: int = 0
    b: str = ""


@dataclass
class Plain:
    a: int = 0


class Keys(TypedDict, total=False):
    a: int


class Holder(Struct):
    result: int = 0


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Options | None, Options(7)),
        (Options, Options(7)),
        (Plain, Plain(7)),
        (Keys, {"a": 7}),
    ],
)
def test_a_wrapped_value_is_not_taken_for_one_of_defaults(
    kind: Any, value: Any, revision: str
) -> None:
    assert result(structured({"result": {"a": 7}}), kind, revision).value == value
    # Without a wrapping nothing is looked for within.
    assert result(structured({"a": 7}), kind, revision).value == value


@pytest.mark.parametrize(
    "kind", [Holder, Holder | None, dict[str, Any], dict[str, Any] | None, Any]
)
def test_where_both_would_do_the_text_decides(kind: Any) -> None:
    whole, wrapped = {"result": 5}, {"result": {"result": 5}}
    expected = Holder(5) if "Holder" in str(kind) else whole
    assert result(structured(whole, '{"result": 5}'), kind).value == expected
    assert result(structured(wrapped, '{"result": 5}'), kind).value == expected


def test_mismatch_of_a_wrapped_value_is_reported_inside_the_wrapper() -> None:
    with pytest.raises(ResultTypeMismatch) as caught:
        _ = result(structured({"result": {"city": 5}}), Forecast).value
    assert caught.value.where == "/structuredContent/result/city"


# -- what is nested too deep -----------------------------------------------------------------


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_too_deeply_nested_tool_result_raises() -> None:
    raw = Raw(b'{"content":' + deep(600) + b"}")
    with pytest.raises(RemoteProtocolError, match="tools/call"):
        tool_result(raw, None, LATEST)


def test_a_text_nested_too_deep_to_compare_decides_nothing() -> None:
    inner = deep(900)
    raw = b'{"content":[{"type":"text","text":"%b"}],"structuredContent":{"result":%b}}'
    found = tool_result(Raw(raw % (inner, inner)), None, LATEST)
    try:
        assert isinstance(found.value, dict | list)
    except RemoteProtocolError:
        pass  # how deep is too deep is the decoder's affair


# -- results of one's own requests -----------------------------------------------------------


def test_custom_request_raises_for_a_result_that_is_not_complete() -> None:
    asks = encode({"resultType": "input_required", "inputRequests": {}})
    for kind in (dict[str, Any], Options):
        with pytest.raises(NotComplete):
            read_own(asks, kind, "acme/own", LATEST)
        read_own(asks, kind, "acme/own", "2025-11-25")
    with pytest.raises(RemoteProtocolError, match="acme/own"):
        read_own(b"5", dict[str, Any], "acme/own", LATEST)


def test_result_that_is_sent_on_has_no_meta_of_its_connection() -> None:
    found = result(
        text(
            "one",
            structuredContent={"a": 1},
            isError=False,
            _meta={
                "io.modelcontextprotocol/serverInfo": {"name": "remote", "version": "1"},
                "io.modelcontextprotocol/related-task": {"taskId": "7"},
                "traceparent": "00-1-2-00",
                "example.com/k": 1,
            },
        )
    )
    assert found.to_call_tool_result() == CallToolResult(
        [TextContent("one")],
        meta={"example.com/k": 1},
        is_error=False,
        structured_content={"a": 1},
    )
    assert result(text("one")).to_call_tool_result() == CallToolResult([TextContent("one")])


def test_structure_that_is_sent_on_has_no_line_breaks() -> None:
    raw = b'{"content": [], "structuredContent": {\n"a": 1\n}}'
    found = tool_result(Raw(raw), None, LATEST).to_call_tool_result()
    assert b"\n" not in encode(found)
    assert found.structured_content == {"a": 1}
