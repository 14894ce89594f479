"""What tools, resources and prompts return, and what becomes of it."""

from __future__ import annotations

import base64
import datetime
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from msgspec import UNSET, Meta, Raw, Struct

from tests.rigs.types import Node, Options, Pair, Place, Unit, Wind
from trunkline.client.requests.tool_result import ToolResult, tool_result
from trunkline.errors import TrunklineError
from trunkline.mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from trunkline.server.handlers.content import Image
from trunkline.server.handlers.output import (
    DERIVE,
    Output,
    OutputMismatch,
    ToolOutput,
    contents_of,
    messages_of,
    output_of,
)
from trunkline.spec.revisions import LATEST

CANARY = "canary-7f3a"
PNG = b"\x89PNG\r\n\x1a\n123"


class Forecast(Struct):
    city: str
    days: Annotated[int, Meta(ge=1)] = 1


class Model(pydantic.BaseModel):
    count: int = pydantic.Field(serialization_alias="howMany")


# Of the tool below.
LINE = inspect.currentframe().f_lineno + 4  # type: ignore[union-attr]  # CPython has frames


def returning(annotation: Any, **options: Any) -> Output:
    def tool() -> Any: ...

    tool.__annotations__ = {} if annotation is ... else {"return": annotation}
    return output_of(tool, **options)


def structured(result: CallToolResult) -> Any:
    """Return the structure, having looked that the text says the same."""
    assert isinstance(result.structured_content, Raw)
    raw = bytes(result.structured_content)
    # A string is sent bare.
    text = json.loads(raw) if raw.startswith(b'"') else raw.decode()
    assert result.content == [TextContent(text)]
    return msgspec.json.decode(raw)


# annotation, value, structure, a value that does not fit, and the end of the sentence.
FITTING: list[tuple[Any, Any, Any, Any, str]] = [
    (int, 3, 3, CANARY, "expected an integer, got a string"),
    (int, 3, 3, True, "expected an integer, got a boolean"),
    (float, 1.5, 1.5, CANARY, "expected a number, got a string"),
    (bool, True, True, 1, "expected a boolean, got an integer"),
    (list[str], ["a"], ["a"], ["a", 1], '"[1]": expected a string, got an integer'),
    (tuple[int, str], (1, "a"), [1, "a"], (1,), "expected an array of length 2"),
    (set[int], {1}, [1], {CANARY}, '"[0]": expected an integer, got a string'),
    (
        dict[str, int],
        {"a": 1},
        {"a": 1},
        {"a": CANARY},
        '"[...]": expected an integer, got a string',
    ),
    (dict, {"a": [None]}, {"a": [None]}, [1], "expected an object, got an array"),
    (
        Forecast,
        Forecast("Rome"),
        {"city": "Rome", "days": 1},
        Forecast(CANARY, 0),
        '"days": expected an integer >= 1',
    ),
    (Forecast, {"city": "Rome"}, {"city": "Rome"}, {}, '"city": it is required'),
    (Forecast | None, None, None, 3, "expected an object or null, got an integer"),
    (
        Place,
        Place(1.0),
        {"lat": 1.0, "name": "here"},
        Place(CANARY),
        '"lat": expected a number, got a string',
    ),  # type: ignore[arg-type]  # on purpose
    (Wind, Wind(1), {"speed": 1}, Wind(CANARY), '"speed": expected an integer, got a string'),  # type: ignore[arg-type]  # on purpose
    (
        Options,
        {"a": 1},
        {"a": 1},
        {"a": CANARY},
        '"a": expected an integer, got a string',
    ),
    (Pair, Pair(1), [1, "r"], [CANARY], '"[0]": expected an integer, got a string'),
    (
        Model,
        Model(count=1),
        {"howMany": 1},
        {"count": CANARY},
        '"count": does not fit (int parsing)',
    ),
    (Unit, Unit.KELVIN, "k", CANARY, "not one of the allowed values"),
    (
        datetime.date,
        datetime.date(2026, 1, 2),
        "2026-01-02",
        CANARY,
        "expected a date like 2026-01-31",
    ),
    (Annotated[int, Meta(ge=3)], 3, 3, 2, "expected an integer >= 3"),
    (Annotated[int, pydantic.Field(ge=3)], 3, 3, 2, "expected an integer >= 3"),
    (
        ToolOutput[Forecast],
        Forecast("Rome"),
        {"city": "Rome", "days": 1},
        7,
        "expected an object, got an integer",
    ),
    (Awaitable[int], 3, 3, CANARY, "expected an integer, got a string"),
]


@pytest.mark.parametrize(
    ("annotation", "value", "structure", "bad", "sentence"),
    FITTING,
    ids=[str(row[0])[:50] for row in FITTING],
)
def test_a_value_is_sent_as_a_structure_and_one_that_does_not_fit_is_not(
    annotation: Any, value: Any, structure: Any, bad: Any, sentence: str
) -> None:
    output = returning(annotation)
    assert output.schema is not None
    for _ in range(2):  # the first one makes the reader
        assert structured(output.render(value)) == structure
        with pytest.raises(OutputMismatch) as refused:
            output.render(bad)
        assert (
            str(refused.value)
            == f"tool() (test_output.py:{LINE}) returned a value that does not fit its output "
            f"schema: {sentence}"
        )
        assert CANARY not in str(refused.value)


CONTENT: list[tuple[Any, Any, list[Any]]] = [
    (str, "hi", [TextContent("hi")]),
    (str, "Zürich 🌧", [TextContent("Zürich 🌧")]),
    (..., "hi", [TextContent("hi")]),
    (Any, "hi", [TextContent("hi")]),
    (None, None, []),
    (..., None, []),
    (str | None, "hi", [TextContent("hi")]),
    (str | None, None, []),
    (TextContent, TextContent("hi"), [TextContent("hi")]),
    (list[TextContent], [TextContent("hi")], [TextContent("hi")]),
    (ImageContent | str, "hi", [TextContent("hi")]),
    (
        list[TextContent | ImageContent | str],
        ["a", TextContent("b")],
        [TextContent("a"), TextContent("b")],
    ),
    (tuple[TextContent, ...], (TextContent("hi"),), [TextContent("hi")]),
    (..., [TextContent("a"), "b"], [TextContent("a"), TextContent("b")]),
    (..., ResourceLink("n", "file:///x"), [ResourceLink("n", "file:///x")]),
    (bytes, PNG, [ImageContent(base64.b64encode(PNG).decode(), "image/png")]),
    (
        ...,
        [PNG, "a map"],
        [ImageContent(base64.b64encode(PNG).decode(), "image/png"), TextContent("a map")],
    ),
    (list[bytes], [b"\xff\xd8\xff"], [ImageContent("/9j/", "image/jpeg")]),
]


@pytest.mark.parametrize(
    ("annotation", "value", "content"), CONTENT, ids=[str(r[0])[:50] for r in CONTENT]
)
def test_content_is_sent_once_and_promises_nothing(
    annotation: Any, value: Any, content: list[Any]
) -> None:
    output = returning(annotation)
    assert (output.schema, output.wrapped, output.wraps) == (None, None, False)
    assert output.render(value) == CallToolResult(content)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBPVP8 ", "image/webp"),
        (b"RIFF1234WAVEfmt ", "audio/wav"),
        (b"OggS\x00", "audio/ogg"),
        (b"fLaC\x00", "audio/flac"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"RIFF1234AVI ", "application/octet-stream"),
        (bytearray(b"abc"), "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_bytes_are_known_by_their_first_few(data: bytes, kind: str) -> None:
    (block,) = returning(...).render(data).content
    assert isinstance(block, ImageContent | AudioContent | EmbeddedResource)
    found = block.resource if isinstance(block, EmbeddedResource) else block
    assert found.mime_type == kind
    text = found.blob if isinstance(found, ResourceContents) else found.data
    assert base64.b64decode(str(text)) == data


@pytest.mark.parametrize(
    "value", [{"a": 1}, Forecast("Rome"), Place(1.0), Wind(1), Model(count=1), {}]
)
def test_an_object_of_which_nothing_was_said_is_a_structure(value: Any) -> None:
    result = returning(...).render(value)
    assert isinstance(structured(result), dict)


@pytest.mark.parametrize("value", [[1, 2], ["a", "b"], [], 3, 1.5, True, Pair(1)])
def test_anything_else_of_which_nothing_was_said_is_its_json_as_a_text(value: Any) -> None:
    result = returning(...).render(value)
    assert result == CallToolResult([TextContent(msgspec.json.encode(value).decode())])


def test_a_text_of_which_nothing_was_said_is_sent_without_quotes() -> None:
    day, path = datetime.date(2026, 7, 28), PurePosixPath("/a")
    for annotation in (..., Any, object):
        assert returning(annotation).render(day).content == [TextContent("2026-07-28")]
        assert returning(annotation).render(path).content == [TextContent("/a")]
    plain = returning(datetime.date, output_schema=None)
    assert plain.render(day) == CallToolResult([TextContent("2026-07-28")])


# -- schemas ---------------------------------------------------------------------------------


def test_a_schema_with_an_object_at_the_root_is_not_wrapped() -> None:
    output = returning(Forecast)
    assert output.wraps is False
    assert output.wrapped is output.schema


def test_another_schema_is_wrapped_for_older_revisions() -> None:
    output = returning(list[int])
    assert output.wraps is True
    assert output.wrapped == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
        "required": ["result"],
    }


def test_definitions_of_a_wrapped_schema_stand_where_references_point() -> None:
    output = returning(list[Node])
    wrapped = output.wrapped
    assert wrapped is not None
    assert wrapped["properties"]["result"] == {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    assert list(wrapped["$defs"]) == ["Node"]
    assert output.schema is not None
    assert list(output.schema["$defs"]) == ["Node"]


def test_a_class_that_contains_itself_is_not_wrapped() -> None:
    assert returning(Node).wraps is False


def test_a_text_is_a_structure_where_that_is_asked_for() -> None:
    output = returning(str, output_schema=str)
    assert output.schema == {"type": "string"}
    assert structured(output.render("hi")) == "hi"
    assert output.wraps


def test_no_structure_is_sent_where_none_is_wanted() -> None:
    output = returning(Forecast, output_schema=None)
    assert output.schema is None
    assert output.render(Forecast("Rome")) == CallToolResult(
        [TextContent('{"city":"Rome","days":1}')]
    )


def test_a_type_given_as_the_schema_is_used_instead_of_the_annotation() -> None:
    output = returning(dict, output_schema=Forecast)
    assert structured(output.render({"city": "Rome"})) == {"city": "Rome"}
    with pytest.raises(OutputMismatch, match="it is required"):
        output.render({})


def test_a_schema_written_by_hand_is_listed_as_it_is_and_checked() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "x-mine": 1}
    output = returning(..., output_schema=schema)
    assert output.schema is schema
    assert output.wrapped is schema
    assert structured(output.render({"n": 1})) == {"n": 1}
    with pytest.raises(OutputMismatch) as refused:
        output.render({"n": CANARY})
    assert str(refused.value).endswith(
        'returned a value that does not fit its output schema: "n" breaks "type": expected integer'
    )


def test_a_wrapped_schema_written_by_hand_keeps_its_references() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    wrapped = returning(..., output_schema=schema).wrapped
    assert wrapped is not None
    from trunkline.server.handlers.schema_validator import SchemaCheck

    check = SchemaCheck(wrapped)
    assert check.problem({"result": [1]}) is None
    assert check.problem({"result": ["a"]}) == '"result[0]" breaks "type": expected integer'
    assert "$id" not in schema


@pytest.mark.parametrize("annotation", [complex, complex | int, list[complex] | set[int]])
def test_a_type_without_a_schema_is_refused_when_the_tool_is_registered(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"no output schema: .* pass output_schema=None"):
        returning(annotation)
    assert returning(annotation, output_schema=None).schema is None


def test_unresolvable_return_annotation_is_named_in_the_error() -> None:
    with pytest.raises(TypeError, match='annotation of what it returns names "Nowhere"'):
        returning("Nowhere")


class Tools:
    async def method(self) -> Forecast:
        return Forecast("Rome")

    def __call__(self) -> Forecast:
        return Forecast("Rome")


def wrapped() -> Forecast:
    return Forecast("Rome")


@functools.wraps(wrapped)
def wrapper(*args: Any) -> Any:
    return wrapped()


@pytest.mark.parametrize(
    "function", [Tools().method, Tools(), functools.partial(Tools()), wrapper, wrapped]
)
def test_the_annotation_is_found_under_the_wrapping(function: Callable[..., Any]) -> None:
    assert output_of(function, DERIVE).schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "default": 1},
        },
        "required": ["city"],
    }


# -- what cannot be sent ---------------------------------------------------------------------

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        {"a": float("nan")},
        [float("inf")],
        float("-inf"),
        {"a": None, "b": [1.0, {"c": float("nan")}]},
        {"a": object()},
        object(),
        CYCLE,
        "\ud800",
        {"a": "\ud800"},
        {(1, 2): 3},
        ToolOutput(1, text="\ud800"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_value_not_expressible_in_json_is_an_output_mismatch(value: Any) -> None:
    with pytest.raises(OutputMismatch, match="returned a value that cannot be sent") as refused:
        returning(...).render(value)
    assert isinstance(refused.value, TrunklineError | TypeError)


def test_a_null_that_was_none_is_sent() -> None:
    assert structured(returning(...).render({"a": None, "b": 1.5})) == {"a": None, "b": 1.5}


# -- results with more around them -----------------------------------------------------------


def test_a_result_puts_its_own_text_beside_the_structure() -> None:
    result = returning(Forecast).render(
        ToolOutput(Forecast("Rome"), "Sun", content=["more", PNG], meta={"k": 1})
    )
    assert result.content[0] == TextContent("Sun")
    assert result.content[1] == TextContent("more")
    assert isinstance(result.content[2], ImageContent)
    assert bytes(result.structured_content) == b'{"city":"Rome","days":1}'
    assert result.meta == {"k": 1}
    assert result.is_error is None


def test_a_result_without_a_text_has_that_of_its_value() -> None:
    assert structured(returning(Forecast).render(ToolOutput(Forecast("Rome")))) == {
        "city": "Rome",
        "days": 1,
    }
    assert returning(...).render(ToolOutput("hi")) == CallToolResult([TextContent("hi")])
    assert returning(...).render(ToolOutput(None, text="")) == CallToolResult([])


@pytest.mark.parametrize("annotation", [..., dict, str | None])
def test_data_in_a_result_is_structured_with_no_output_schema_too(annotation: Any) -> None:
    output = returning(annotation, output_schema=None)
    result = output.render(ToolOutput({"x": 1}, text="one"))
    assert result.content == [TextContent("one")]
    assert structured_or_unset(result) == {"x": 1}
    assert structured(output.render(ToolOutput([1, 2]))) == [1, 2]
    assert structured(output.render(ToolOutput(False))) is False
    failed = output.render(ToolOutput({"code": 1}, is_error=True))
    assert (structured_or_unset(failed), failed.is_error) == ({"code": 1}, True)


def test_content_in_a_result_is_not_structured() -> None:
    for value in ("hi", None, TextContent("hi"), PNG, [TextContent("hi"), "x"]):
        for output in (returning(...), returning(..., output_schema=None)):
            assert output.render(ToolOutput(value)).structured_content is UNSET


def test_the_value_of_a_result_has_to_fit() -> None:
    with pytest.raises(OutputMismatch, match="expected an object"):
        returning(ToolOutput[Forecast]).render(ToolOutput(7, "seven"))


def test_a_failed_result_need_not_fit_and_has_no_structure() -> None:
    output = returning(Forecast)
    assert output.render(ToolOutput("no such city", is_error=True)) == CallToolResult(
        [TextContent("no such city")], is_error=True
    )
    assert output.render(ToolOutput({"code": 1}, is_error=True)) == CallToolResult(
        [TextContent('{"code":1}')], is_error=True
    )
    assert structured_or_unset(returning(...).render(ToolOutput({"code": 1}, is_error=True))) == {
        "code": 1
    }


def structured_or_unset(result: CallToolResult) -> Any:
    return msgspec.json.decode(bytes(result.structured_content))


def test_a_finished_result_passes_as_it_is() -> None:
    finished = CallToolResult([TextContent("x")], structured_content=[1])
    assert returning(...).render(finished) == finished
    assert returning(CallToolResult).schema is None
    failed = CallToolResult([], is_error=True)
    assert returning(Forecast).render(failed) == failed


def test_a_finished_result_has_to_keep_what_was_promised() -> None:
    output = returning(Forecast)
    good = CallToolResult([], structured_content={"city": "Rome"})
    assert output.render(good) == good
    with pytest.raises(OutputMismatch, match="without structured_content"):
        output.render(CallToolResult([]))
    with pytest.raises(OutputMismatch, match="it is required"):
        output.render(CallToolResult([], structured_content={}))


def received(**members: Any) -> ToolResult[Any]:
    return tool_result(Raw(msgspec.json.encode({"content": [], **members})), None, LATEST)


@pytest.mark.parametrize("annotation", [..., ToolResult, ToolResult[int], str | ToolResult[int]])
def test_result_of_a_client_is_sent_on(annotation: Any) -> None:
    output = returning(annotation)
    assert output.schema is None
    result = received(
        content=[{"type": "text", "text": "3"}, {"type": "text", "text": "apples"}],
        structuredContent={"count": 3},
        isError=True,
        _meta={"k": 1},
    )
    assert output.render(result) == CallToolResult(
        [TextContent("3"), TextContent("apples")],
        meta={"k": 1},
        is_error=True,
        structured_content={"count": 3},
    )
    assert output.render(received()) == CallToolResult([])


def test_result_of_a_client_keeps_what_was_promised() -> None:
    output = returning(int)
    assert output.render(received(structuredContent=3)).structured_content == 3
    with pytest.raises(OutputMismatch, match="expected an integer, got a string"):
        output.render(received(structuredContent=CANARY))
    with pytest.raises(OutputMismatch, match="without structured_content"):
        output.render(received())


def test_value_that_another_server_wrapped_is_unwrapped_where_the_schema_has_it_so() -> None:
    wrapped = received(structuredContent={"result": 3}, _meta={"trunkline/wrapped": True})
    inner = returning(int).render(wrapped)
    assert (inner.structured_content, inner.meta) == (3, None)
    assert returning(dict).render(wrapped).structured_content == {"result": 3}
    assert returning(...).render(wrapped).structured_content == {"result": 3}


def test_class_of_results_of_another_library_names_ours() -> None:
    advice = r"a (Call)?ToolResult of (fastmcp\.tools|mcp\.types): return a ToolOutput of trunkline"
    # One that JSON cannot express, and a model, which it can.
    plain = type("ToolResult", (), {"__module__": "fastmcp.tools"})
    model = type("CallToolResult", (pydantic.BaseModel,), {"__module__": "mcp.types"})
    for cls in (plain, model):
        with pytest.raises(OutputMismatch, match=advice):
            returning(...).render(cls())
        with pytest.raises(TypeError, match=advice):
            returning(cls)


def test_class_of_the_author_may_be_called_tool_result() -> None:
    own = type("ToolResult", (Forecast,), {})
    assert structured(returning(...).render(own("Rome"))) == {"city": "Rome", "days": 1}
    assert structured(returning(own).render(own("Rome"))) == {"city": "Rome", "days": 1}


def test_results_and_outputs_print_without_secrets() -> None:
    result = ToolOutput({"api_key": CANARY, "city": "Rome"}, meta={"token": CANARY})
    assert CANARY not in repr(result)
    assert "Rome" in repr(result)
    output = returning(Forecast)
    output.render(Forecast(CANARY))
    assert CANARY not in repr(output)
    assert repr(output).endswith("structured>")


def test_nothing_is_made_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from trunkline.server.handlers import output as module

    made: list[str] = []
    plain = {name: getattr(module, name) for name in ("Decoder", "schema_of")}
    for name, function in plain.items():

        def counted(*args: Any, _name: str = name, _made: Any = function, **kw: Any) -> Any:
            made.append(_name)
            return _made(*args, **kw)

        monkeypatch.setattr(module, name, counted)
    output = returning(Forecast)
    assert made == []
    output.render(Forecast("Rome"))
    output.render(Forecast("Rome"))
    assert made == ["Decoder"]
    assert output.schema is output.schema
    assert made == ["Decoder", "schema_of"]


# -- resources and prompts -------------------------------------------------------------------

URI = "file:///x"


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("hi", [ResourceContents(URI, text="hi", mime_type="text/plain")]),
        (b"abc", [ResourceContents(URI, blob="YWJj", mime_type="application/octet-stream")]),
        (PNG, [ResourceContents(URI, blob=base64.b64encode(PNG).decode(), mime_type="image/png")]),
        ({"a": 1}, [ResourceContents(URI, text='{"a":1}', mime_type="application/json")]),
        (["a"], [ResourceContents(URI, text='["a"]', mime_type="application/json")]),
        ([], [ResourceContents(URI, text="[]", mime_type="application/json")]),
        (
            Forecast("Rome"),
            [ResourceContents(URI, text='{"city":"Rome","days":1}', mime_type="application/json")],
        ),
        (ResourceContents("file:///y", text="z"), [ResourceContents("file:///y", text="z")]),
        (
            [ResourceContents("file:///y", text="z"), "hi"],
            [
                ResourceContents("file:///y", text="z"),
                ResourceContents(URI, text="hi", mime_type="text/plain"),
            ],
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_return_value_of_a_resource_becomes_its_contents(value: Any, contents: Any) -> None:
    assert contents_of(value, URI, None) == contents


def test_a_resource_has_the_type_it_was_registered_with() -> None:
    assert contents_of("<p>", URI, "text/html") == [
        ResourceContents(URI, text="<p>", mime_type="text/html")
    ]
    assert contents_of({"a": 1}, URI, "application/x+json")[0].mime_type == "application/x+json"


def test_a_resource_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(OutputMismatch):
        contents_of({"a": float("nan")}, URI, None)


ASSISTANT = PromptMessage(TextContent("hello"), "assistant")


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hi", [PromptMessage(TextContent("hi"), "user")]),
        (ASSISTANT, [ASSISTANT]),
        (TextContent("hi"), [PromptMessage(TextContent("hi"), "user")]),
        (["hi", ASSISTANT], [PromptMessage(TextContent("hi"), "user"), ASSISTANT]),
        ((ASSISTANT,), [ASSISTANT]),
        ([], []),
        (PNG, [PromptMessage(ImageContent(base64.b64encode(PNG).decode(), "image/png"), "user")]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_return_value_of_a_prompt_becomes_its_messages(value: Any, messages: Any) -> None:
    assert messages_of(value) == GetPromptResult(messages)


def test_a_finished_prompt_passes_as_it_is() -> None:
    finished = GetPromptResult([], description="x")
    assert messages_of(finished) == finished


@pytest.mark.parametrize("value", [None, 3, {"role": CANARY}, [None], [["hi"]], Forecast(CANARY)])
def test_prompt_value_that_is_not_a_message_is_refused(value: Any) -> None:
    with pytest.raises(OutputMismatch, match="a prompt is made of texts") as refused:
        messages_of(value)
    assert CANARY not in str(refused.value)


def test_text_of_a_result_comes_before_an_image_that_is_its_value() -> None:
    def tool() -> ToolOutput[Any]:
        return ToolOutput(Image(data=PNG, format="png"), text="a chart")

    rendered = output_of(tool).render(tool())
    assert [type(block).__name__ for block in rendered.content] == ["TextContent", "ImageContent"]
