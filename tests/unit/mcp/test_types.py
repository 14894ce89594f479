"""The Structs of MCP at work: reading, writing, refusing, printing, and loading late."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import UNSET, Struct, ValidationError

import trunkline.mcp
from tests.cases import for_each
from trunkline.mcp import tables
from trunkline.mcp import types as wire
from trunkline.mcp.types import (
    Annotations,
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    CompleteRequestParams,
    CompleteResultCompletion,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestParams,
    EmbeddedResource,
    GetTaskResult,
    ImageContent,
    InitializeRequestParams,
    InputRequiredResult,
    ListRootsRequest,
    ListToolsResult,
    ProgressNotificationParams,
    PromptMessage,
    PromptReference,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    ResourceTemplateReference,
    TextContent,
    Tool,
    ToolUseContent,
)
from trunkline.spec.revisions import REVISIONS
from trunkline.spec.types import Expr, FieldView, TypeView, need, type_

STRUCTS: Final[dict[str, type[Struct]]] = {
    name: value
    for name in wire.__all__
    if isinstance(value := getattr(wire, name), type) and issubclass(value, Struct)
}
each_struct = for_each("name", STRUCTS)

# Sample values, made from the rows

SCALARS: Final[dict[str, list[Any]]] = {
    "string": ["text"],
    "integer": [0, 7],
    "number": [0, 1, 0.5],
    "boolean": [True, False],
    "null": [None],
    "any": [None, 1, "x", [], {"a": [1.5]}],
}


def samples(expr: Expr, revision: str) -> list[Any]:
    """Return valid values of a type, each of its alternatives among them."""
    if expr.kind == "primitive":
        return SCALARS[expr.name]
    if expr.kind == "constant":
        return [expr.value]
    if expr.kind == "name":
        view = need(expr.name, revision)
        if view.kind == "object":
            return objects(view, revision)
        # Recursive: one level will do.
        return SCALARS["any"] if expr.name == "JSONValue" else samples(view.expr, revision)
    inner = [value for part in expr.of for value in samples(part, revision)]
    if expr.kind == "list":
        return [[], inner[:100]]
    return [{}, {f"k{i}": v for i, v in enumerate(inner)}] if expr.kind == "map" else inner


def objects(view: TypeView, revision: str) -> list[Any]:
    """Return an object as small as may be, one with everything, and all that is between."""
    fields = view.fields
    values = {name: member_samples(view, field, revision) for name, field in fields.items()}
    least = {name: values[name][0] for name, field in fields.items() if field.required}
    most = {name: found[-1] for name, found in values.items()}
    single = [{**least, name: value} for name, found in values.items() for value in found]
    return [least, most, *single]


def member_samples(view: TypeView, field: FieldView, revision: str) -> list[Any]:
    # An object whose members a later revision lists is read as that, and loses any other.
    listed_later = field.type == "map<any>" and type_(f"{view.name}.{field.name}") is not None
    return [{}] if listed_later else samples(field.expr, revision)


def values_of(name: str, revision: str) -> list[Any]:
    """Return sample values of a Struct in one revision."""
    if name in tables.MERGED:
        found = [samples(Expr("name", part), revision) for part in tables.MERGED[name]]
        return [value for several in found for value in several]
    row = tables._row_names(revision).get(tables.class_name(name), tables.FORMERLY.get(name, ""))
    return samples(Expr("name", row), revision)


def known_in(name: str) -> list[str]:
    return [revision for revision in REVISIONS if tables.knows(name, revision)]


def same(one: object, other: object) -> bool:
    """Compare as JSON, in which 1, 1.0 and true differ and the order of members does not matter."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@each_struct
def test_decoded_value_is_encoded_unchanged(name: str) -> None:
    decoder = msgspec.json.Decoder(STRUCTS[name])
    for revision in known_in(name):
        for value in values_of(name, revision):
            text = msgspec.json.encode(decoder.decode(json.dumps(value)))
            assert same(json.loads(text), value), (revision, value)


@each_struct
def test_unlisted_members_are_ignored(name: str) -> None:
    decoder = msgspec.json.Decoder(STRUCTS[name])
    value = values_of(name, known_in(name)[-1])[1]
    more = {"x-stranger": {"deep": [1, 2]}, **value, "another": None}
    assert decoder.decode(json.dumps(more)) == decoder.decode(json.dumps(value))


def kind(value: object) -> str:
    return type(value).__name__


def fitting(fields: list[tuple[str, FieldView]]) -> set[str]:
    """Return the kinds of JSON values that a member may be, in any revision."""
    found = {kind(v) for revision, field in fields for v in samples(field.expr, revision)}
    anything = any("any" in (field.type, need_type(field, r)) for r, field in fields)
    return {kind(v) for v in WRONG} if anything else found


def need_type(field: FieldView, revision: str) -> str:
    return need(field.type, revision).expr.name if field.expr.kind == "name" else ""


WRONG: Final[list[Any]] = [{}, [], "no such text", 12, 0.25, True, None]


@each_struct
def test_a_value_of_a_wrong_type_is_refused(name: str) -> None:
    decoder = msgspec.json.Decoder(STRUCTS[name])
    revisions = known_in(name)
    views = [(r, f) for r in revisions for f in (tables.members(name, r) or {}).values()]
    most = values_of(name, revisions[-1])[1]
    optional = {f.encode_name for f in msgspec.structs.fields(STRUCTS[name]) if f.default is None}
    for member in {field.name for _, field in views}:
        fits = fitting([(r, field) for r, field in views if field.name == member])
        fits |= {"NoneType"} if member in optional else set()
        for wrong in WRONG:
            if kind(wrong) not in fits:
                with pytest.raises(ValidationError):
                    decoder.decode(json.dumps({**most, member: wrong}))


@each_struct
def test_a_member_that_is_always_required_is_missed(name: str) -> None:
    decoder = msgspec.json.Decoder(STRUCTS[name])
    least = values_of(name, known_in(name)[-1])[0]
    for field in msgspec.structs.fields(STRUCTS[name]):
        if field.required:
            rest = {key: value for key, value in least.items() if key != field.encode_name}
            with pytest.raises(ValidationError, match="missing required field"):
                decoder.decode(json.dumps(rest))


# Unions


BLOCKS: Final[list[tuple[dict[str, Any], Any]]] = [
    ({"type": "text", "text": "hi"}, TextContent("hi")),
    ({"type": "image", "data": "QQ==", "mimeType": "image/png"}, ImageContent("QQ==", "image/png")),
    ({"type": "audio", "data": "QQ==", "mimeType": "audio/wav"}, AudioContent("QQ==", "audio/wav")),
    ({"type": "resource_link", "name": "n", "uri": "u:1"}, ResourceLink("n", "u:1")),
    (
        {"type": "resource", "resource": {"uri": "u:1", "text": "t"}},
        EmbeddedResource(wire.ResourceContents("u:1", text="t")),
    ),
]


@pytest.mark.parametrize(("value", "block"), BLOCKS)
def test_a_content_block_is_read_as_what_its_type_says(value: dict[str, Any], block: Any) -> None:
    result = msgspec.json.decode(json.dumps({"content": [value]}), type=CallToolResult)
    assert result.content == [block]
    assert type(result.content[0]) is type(block)
    # The type may also stand last.
    backwards = dict(reversed(value.items()))
    message = {"role": "user", "content": backwards}
    assert msgspec.json.decode(json.dumps(message), type=PromptMessage).content == block


@pytest.mark.parametrize("block", [{"text": "hi"}, {"type": "video", "text": "hi"}, {"type": 1}])
def test_a_content_block_without_a_known_type_is_refused(block: object) -> None:
    with pytest.raises(ValidationError, match=r"\$\.content\[0\]"):
        msgspec.json.decode(json.dumps({"content": [block]}), type=CallToolResult)


def test_a_block_knows_its_own_type() -> None:
    assert TextContent("hi").type == "text"
    assert CallToolResult([TextContent("hi")]).content[0].type == "text"
    assert InputRequiredResult().result_type == "input_required"


def test_a_sampling_message_has_one_block_or_several() -> None:
    use = {"type": "tool_use", "id": "1", "name": "n", "input": {}}
    value = {"role": "assistant", "model": "m", "content": use}
    one = msgspec.convert(value, CreateMessageResult)
    several = msgspec.convert({**value, "content": [use, use]}, CreateMessageResult)
    assert one.content == ToolUseContent("1", {}, "n")
    assert several.content == [one.content, one.content]


def test_a_reference_to_a_resource_is_one_type_under_both_of_its_names() -> None:
    assert wire.ResourceReference is ResourceTemplateReference
    argument = {"name": "n", "value": "v"}
    for reference, expected in (
        ({"type": "ref/resource", "uri": "u:{x}"}, ResourceTemplateReference("u:{x}")),
        ({"type": "ref/prompt", "name": "p"}, PromptReference("p")),
    ):
        params = msgspec.convert({"argument": argument, "ref": reference}, CompleteRequestParams)
        assert params.ref == expected


def test_input_requests_are_decoded_by_their_method() -> None:
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    asked = {
        "a": {
            "method": "sampling/createMessage",
            "params": {"maxTokens": 1, "messages": [message]},
        },
        "b": {"method": "roots/list"},
        "c": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}},
    }
    result = msgspec.convert({"inputRequests": asked}, InputRequiredResult)
    assert result.input_requests is not None
    kinds = [type(request) for request in result.input_requests.values()]
    assert kinds == [CreateMessageRequest, ListRootsRequest, ElicitRequest]


@pytest.mark.parametrize(
    "value",
    [
        {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
        {"message": "m", "mode": "form", "requestedSchema": {"type": "object", "x-more": 1}},
        {"message": "m", "mode": "url", "url": "https://example.org", "elicitationId": "1"},
    ],
)
def test_a_question_to_the_user_is_one_type_whether_form_or_page(value: dict[str, Any]) -> None:
    # A form may leave `mode` out, so no tag could tell the two apart.
    assert msgspec.to_builtins(msgspec.convert(value, ElicitRequestParams)) == value


def test_a_task_is_read_in_the_words_of_either_revision() -> None:
    common = {"taskId": "1", "status": "completed", "createdAt": "c", "lastUpdatedAt": "u"}
    old = msgspec.convert({**common, "ttl": None}, GetTaskResult)
    new = msgspec.convert({**common, "ttlMs": 5, "result": {"content": []}}, GetTaskResult)
    assert (old.ttl, old.ttl_ms, new.ttl, new.ttl_ms) == (None, UNSET, UNSET, 5)


# Limits


@pytest.mark.parametrize("priority", [0, 1, 0.0, 0.25, 1.0])
def test_a_fraction_is_read_as_written(priority: float) -> None:
    read = msgspec.json.decode(json.dumps({"priority": priority}), type=Annotations)
    assert (type(read.priority), read.priority) == (type(priority), priority)


@pytest.mark.parametrize("priority", [-1, 2, -0.1, 1.01])
def test_priority_outside_0_to_1_is_refused(priority: float) -> None:
    with pytest.raises(ValidationError, match=r"\$\.priority"):
        msgspec.convert({"priority": priority}, Annotations)


def test_at_most_a_hundred_completions_are_read() -> None:
    assert len(msgspec.convert({"values": ["x"] * 100}, CompleteResultCompletion).values) == 100
    with pytest.raises(ValidationError, match="length <= 100"):
        msgspec.convert({"values": ["x"] * 101}, CompleteResultCompletion)


def test_a_time_to_live_is_not_negative() -> None:
    with pytest.raises(ValidationError, match=r"\$\.ttlMs"):
        msgspec.convert({"tools": [], "ttlMs": -1}, ListToolsResult)


def test_a_whole_number_is_written_as_one() -> None:
    params = msgspec.json.decode(
        b'{"progress":1,"progressToken":"t"}', type=ProgressNotificationParams
    )
    assert b'"progress":1,' in msgspec.json.encode(params)


# What is kept and what is not


def test_a_schema_keeps_the_keywords_that_no_row_lists() -> None:
    schema = {"type": "object", "$defs": {"x": {}}, "additionalProperties": False}
    tool = msgspec.convert({"name": "n", "inputSchema": schema, "outputSchema": schema}, Tool)
    assert tool.input_schema == tool.output_schema == schema


def test_meta_keeps_every_key() -> None:
    meta = {"example.org/mine": [1], "progressToken": 3}
    params = msgspec.convert({"name": "n", "_meta": meta}, CallToolRequestParams)
    assert params.meta == meta
    assert msgspec.convert(params.meta, wire.RequestMetaObject).progress_token == 3


def test_a_capability_that_was_any_object_keeps_what_was_listed_later() -> None:
    value = {"sampling": {"tools": {}, "mine": 1}, "elicitation": {}}
    assert msgspec.to_builtins(msgspec.convert(value, ClientCapabilities)) == {
        "sampling": {"tools": {}},
        "elicitation": {},
    }


def test_an_absent_member_is_none_and_is_not_written() -> None:
    assert TextContent("hi").annotations is None
    assert msgspec.json.encode(TextContent("hi")) == b'{"type":"text","text":"hi"}'


def test_null_is_read_as_absent_in_what_a_program_sees() -> None:
    found = msgspec.convert({"tools": [], "nextCursor": None, "_meta": None}, ListToolsResult)
    assert found == ListToolsResult([])
    assert msgspec.json.encode(found) == b'{"tools":[]}'


@pytest.mark.parametrize("member", ["arguments", "_meta", "task", "requestState"])
def test_null_is_refused_in_params_that_a_client_sends(member: str) -> None:
    with pytest.raises(ValidationError, match=rf"\$\.{member}"):
        msgspec.convert({"name": "n", member: None}, CallToolRequestParams)


def test_structured_content_that_is_null_is_not_absent() -> None:
    assert msgspec.convert({"content": []}, CallToolResult).structured_content is UNSET
    null = msgspec.convert({"content": [], "structuredContent": None}, CallToolResult)
    assert null.structured_content is None


def test_a_value_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TextContent("hi").text = "ho"  # type: ignore[misc]


# Printing


def test_a_secret_is_not_printed() -> None:
    params = CallToolRequestParams("login", arguments={"password": "hunter2", "user": "ann"})
    for text in (repr(params), str(params), f"{params}"):
        assert "hunter2" not in text
        assert "ann" in text
    nested = CallToolResult([TextContent("hi", meta={"apiKey": "hunter2"})])
    assert "hunter2" not in repr(nested)
    assert "hunter2" not in repr(ListToolsResult([Tool({"secret": "hunter2"}, "n")]))


@each_struct
def test_every_struct_prints_through_redaction(name: str) -> None:
    value = values_of(name, known_in(name)[-1])[0]
    assert repr(msgspec.convert(value, STRUCTS[name])).startswith(f"{STRUCTS[name].__name__}(")
    assert issubclass(STRUCTS[name], wire.Wire)


# Loading


def loaded(statement: str) -> set[str]:
    """Return the modules that `statement` loads in a fresh interpreter."""
    script = f"import sys; sys.path[:] = {sys.path!r}\n{statement}\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_the_package_alone_builds_nothing() -> None:
    modules = loaded("import trunkline.mcp; getattr(trunkline.mcp, '__wrapped__', None)")
    assert "trunkline.mcp" in modules
    assert {"msgspec", "trunkline.mcp.types", "trunkline.mcp.tables"} & modules == set()


def test_the_first_name_builds_the_structs() -> None:
    modules = loaded("from trunkline.mcp import Tool")
    assert {"msgspec", "trunkline.mcp.types"} <= modules
    # Neither the tables nor the rows behind them.
    assert {"trunkline.mcp.tables", "trunkline.spec.mcp.types"} & modules == set()


def test_no_decoder_is_made_by_loading() -> None:
    assert wire.__file__ is not None
    assert "Decoder" not in Path(wire.__file__).read_text(encoding="utf-8")


def test_the_package_offers_every_type_and_its_modules() -> None:
    assert sorted(trunkline.mcp.__all__) == sorted([*wire.__all__, "tables", "types"])
    assert dir(trunkline.mcp) == sorted(trunkline.mcp.__all__)
    for name in trunkline.mcp.__all__:
        assert getattr(trunkline.mcp, name) is not None
    assert trunkline.mcp.Tool is Tool


@pytest.mark.parametrize("name", ["Nothing", "_private", "__wrapped__"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(trunkline.mcp, name)


def test_text_of_a_resource_is_that_of_its_contents() -> None:
    def contents(**members: str) -> ResourceContents:
        return ResourceContents("x:a", **members)

    assert ReadResourceResult([contents(text="one")]).text == "one"
    assert (
        ReadResourceResult([contents(text="one"), contents(blob="eA=="), contents(text="")]).text
        == "one\n"
    )
    assert ReadResourceResult([contents(blob="eA==")]).text == ""
    assert ReadResourceResult([]).text == ""
    assert b"text" not in msgspec.json.encode(ReadResourceResult([]))


def test_text_of_a_sampled_message_is_that_of_its_blocks() -> None:
    one, two = TextContent("one"), TextContent("two")
    picture = ImageContent("eA==", "image/png")
    assert CreateMessageResult(one, "m", "assistant").text == "one"
    assert CreateMessageResult([one, picture, two], "m", "assistant").text == "one\ntwo"
    assert CreateMessageResult(picture, "m", "assistant").text == ""


# -- binary data -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ImageContent, AudioContent])
def test_the_data_of_images_and_audio_are_decoded(kind: type[Any]) -> None:
    assert kind("AP8=", "image/png").to_bytes() == b"\x00\xff"
    assert kind("", "image/png").to_bytes() == b""
    assert kind("AAAA\r\nAP8=\n", "image/png").to_bytes() == b"\x00\x00\x00\x00\xff"


@pytest.mark.parametrize("text", ["AP8", "A P8=!", "\xff\xff\xff\xff", "=AP8", "AP8=AP8="])
def test_data_that_are_not_base64_raise_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # of the interpreter
        ImageContent(text, "image/png").to_bytes()
    with pytest.raises(ValueError):  # of the interpreter
        ResourceContents("note://a", blob=text).to_bytes()


def test_resource_contents_are_the_bytes_of_the_blob_or_the_text() -> None:
    assert ResourceContents("note://a", blob="AP8=").to_bytes() == b"\x00\xff"
    assert ResourceContents("note://a", blob="").to_bytes() == b""
    assert ResourceContents("note://a", text="\u00e9").to_bytes() == b"\xc3\xa9"
    assert ResourceContents("note://a").to_bytes() == b""


def test_the_meta_of_initialize_is_a_typed_member() -> None:
    info = {"name": "script", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    meta = {"progressToken": "t-1", "example.org/trace": "t-1"}
    read = msgspec.convert({**params, "_meta": meta}, InitializeRequestParams)
    assert read.meta == meta
    assert msgspec.to_builtins(read)["_meta"] == meta
    assert msgspec.convert(params, InitializeRequestParams).meta is UNSET
    for wrong in (5, "text", [], None):
        with pytest.raises(ValidationError, match=r"\$\._meta"):
            msgspec.convert({**params, "_meta": wrong}, InitializeRequestParams)
