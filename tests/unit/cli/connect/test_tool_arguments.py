"""Words as arguments: what a schema makes of them, and how a mistake is pointed at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trunkline.cli.command import UsageError
from trunkline.cli.connect import tool_arguments
from trunkline.cli.connect.tool_arguments import (
    ArgumentMismatch,
    argument_schemas,
    argument_template,
    closest_name,
    coerce,
    parse_arguments,
    type_summary,
    unknown_arguments,
    value_choices,
)

CANARY = "canary-4471"


def schema(
    required: tuple[str, ...] = (), closed: bool = True, **properties: Any
) -> dict[str, Any]:
    made = {"type": "object", "properties": properties, "required": list(required)}
    return {**made, "additionalProperties": False} if closed else made


def read(*words: str, **properties: Any) -> dict[str, Any]:
    return parse_arguments(words, schema(**properties), "the tool 'x'")


def fault(*words: str, within: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as raised:
        parse_arguments(words, within, "the tool 'x'")
    return str(raised.value)


# Types


@pytest.mark.parametrize("kind", ["object", "integer", "boolean", "null"])
def test_argument_with_undecodable_bytes_is_a_mismatch(kind: str) -> None:
    with pytest.raises(ArgumentMismatch):
        coerce('{"a": "\udcff"}', {"type": kind})


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", "integer", 3),
        ("-3", "integer", -3),
        ("+3", "integer", 3),
        ("3.0", "integer", 3),
        ("3", "number", 3),
        ("2.5", "number", 2.5),
        ("1e3", "number", 1000.0),
        ("true", "boolean", True),
        ("No", "boolean", False),
        ("1", "boolean", True),
        ("0", "boolean", False),
        ("null", "null", None),
        ("3", "string", "3"),
        ("null", "string", "null"),
        ("", "string", ""),
        ('{"a": 1}', "object", {"a": 1}),
        ("[1, 2]", "array", [1, 2]),
        ("", "array", []),
    ],
)
def test_a_text_is_what_its_type_says(text: str, kind: str, value: Any) -> None:
    made = coerce(text, {"type": kind})
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", "integer"),
        ("2.5", "integer"),
        ("", "integer"),
        ("1_000", "integer"),
        ("0x10", "integer"),
        ("true", "integer"),
        ("Infinity", "number"),
        ("NaN", "number"),
        ("maybe", "boolean"),
        ("2", "boolean"),
        ("", "null"),
        ("[1]", "object"),
        ("{", "object"),
        ("[1", "array"),
    ],
)
def test_a_text_that_is_something_else_is_unfit(text: str, kind: str) -> None:
    with pytest.raises(ArgumentMismatch):
        coerce(text, {"type": kind})


def test_a_list_is_json_or_has_commas() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    assert coerce("1,2", numbers) == [1, 2]
    assert coerce("[1,2]", numbers) == [1, 2]
    assert coerce("a,b", {"type": "array", "items": {"type": "string"}}) == ["a", "b"]
    with pytest.raises(ArgumentMismatch, match="a list, each an integer"):
        coerce("1,x", numbers)
    with pytest.raises(ArgumentMismatch, match="as JSON"):
        coerce("a", {"type": "array", "items": {"type": "object"}})


def test_union_value_is_the_first_match_with_string_last() -> None:
    either = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}
    assert coerce("3", either) == 3
    assert coerce("null", either) is None
    assert coerce("three", either) == "three"
    assert coerce("3", {"type": ["string", "integer"]}) == 3
    with pytest.raises(ArgumentMismatch, match="true or false or an integer"):
        coerce("x", {"oneOf": [{"type": "integer"}, {"type": "boolean"}]})


def test_a_choice_is_one_of_its_values() -> None:
    choice = {"enum": ["red", 3, True, None]}
    assert [coerce(text, choice) for text in ("red", "3", "true", "null")] == ["red", 3, True, None]
    with pytest.raises(ArgumentMismatch, match="one of red, 3, True, None"):
        coerce("1", choice)
    assert coerce("7", {"const": 7}) == 7
    # As a text first, if it is one.
    assert coerce("3", {"enum": ["3", 3]}) == "3"


def test_references_are_followed_and_never_for_ever() -> None:
    root = {"$defs": {"n": {"$ref": "#/$defs/m"}, "m": {"type": "integer"}, "~1": {}}}
    assert coerce("3", {"$ref": "#/$defs/n"}, root) == 3
    circle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert coerce("x", {"$ref": "#/$defs/a"}, circle) == "x"
    nested: dict[str, Any] = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}
    assert coerce("x", {"$ref": "#/$defs/a"}, nested) == "x"
    assert coerce("3", {"$ref": "http://elsewhere"}, {}) == 3


def test_choices_within_choices_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    resolved = tool_arguments._resolved

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        assert looks < 200_000
        return resolved(*args)

    monkeypatch.setattr(tool_arguments, "_resolved", counted)
    # Ten branches, each of which has ten, and so on.
    again = {"anyOf": [{"$ref": "#/$defs/a"}] * 10}
    root = {"$defs": {"a": again}, "properties": {"x": again}, "additionalProperties": False}
    assert type_summary(again, root)
    assert parse_arguments(["x=1"], root, "it") == {"x": 1}
    with pytest.raises(UsageError, match="given twice"):
        parse_arguments(["x=1", "x=2"], root, "it")


def test_allof_goes_by_its_first() -> None:
    assert coerce("3", {"allOf": [{"type": "string"}, {"minLength": 1}]}) == "3"


@pytest.mark.parametrize("odd", [True, {}, None, 7, {"type": "odd"}, {"type": 3}])
def test_without_a_schema_it_is_json_if_it_can_be(odd: Any) -> None:
    assert coerce("[1]", odd) == [1]
    assert coerce("[1", odd) == "[1"


# Words


def test_a_word_has_a_key_and_a_value() -> None:
    assert read("a=1", "b=x=y", a={"type": "integer"}, b={"type": "string"}) == {"a": 1, "b": "x=y"}


@pytest.mark.parametrize("word", ["a", "=1", ":=1", ""])
def test_a_word_without_a_key_is_misuse(word: str) -> None:
    assert "key=value" in fault(word, within=schema())


def test_a_colon_makes_it_json_whatever_the_schema() -> None:
    assert read('a:=["x,y"]', a={"type": "string"}) == {"a": ["x,y"]}
    assert "takes JSON" in fault("a:=[", within=schema(a={}))


def test_a_text_can_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("from a file\n")
    assert read(f"a=@{file}", a={"type": "string"}) == {"a": "from a file\n"}
    assert read("a=@@home", a={"type": "string"}) == {"a": "@home"}


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_misuse(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "text"
    if content is not None:
        file.write_bytes(content)
    assert "the file" in fault(f"a=@{file}", within=schema(a={"type": "string"}))
    assert "needs the name of a file" in fault("a=@", within=schema(a={}))


def test_a_list_grows_by_each_word_of_its_key() -> None:
    several = {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}
    assert read("a=1", "a=2", a=several) == {"a": [1, 2]}
    assert read("a:=[1]", "a=2", a=several) == {"a": [1, 2]}
    assert "given twice" in fault("a:=null", "a=2", within=schema(a=several))


def test_items_without_a_type_make_a_list() -> None:
    numbers = {"items": {"type": "integer"}}
    assert read("a=1", "a=2", a=numbers) == {"a": [1, 2]}
    assert coerce("1,2", numbers) == [1, 2]
    assert type_summary(numbers) == "integer[]"


def test_a_single_value_cannot_be_given_twice() -> None:
    assert "given twice" in fault("a=1", "a=2", within=schema(a={"type": "integer"}))


def test_a_dot_leads_into_an_object() -> None:
    place = {
        "type": "object",
        "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
    }
    assert read("p.lat=1.5", "p.name=2", p=place) == {"p": {"lat": 1.5, "name": "2"}}
    either = {"anyOf": [place, {"type": "null"}]}
    assert read("p.name=2", p=either) == {"p": {"name": "2"}}


@pytest.mark.parametrize(
    "given",
    [
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"type": "array", "items": {"type": "object"}},
        {"enum": ["a"]},
        {"const": 1},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"$ref": "#/$defs/text"},
    ],
)
def test_member_of_a_non_object_argument_is_refused(given: dict[str, Any]) -> None:
    within = {**schema(a=given), "$defs": {"text": {"type": "string"}}}
    said = fault("a.b=1", within=within)
    assert said.startswith("a takes ")
    assert said.endswith(", which has no members\n  a.b=1\n  ^^^")


@pytest.mark.parametrize(
    "given",
    [
        True,
        {},
        {"description": "anything"},
        {"type": ["object", "string"]},
        {"anyOf": [{"type": "string"}, {}]},
        {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/it"}]},
        {"$ref": "#/$defs/it"},
    ],
)
def test_member_of_a_possible_object_is_accepted(given: Any) -> None:
    within = {**schema(a=given), "$defs": {"it": {"properties": {"b": {"type": "integer"}}}}}
    assert parse_arguments(["a.b=1"], within, "the tool 'x'") == {"a": {"b": 1}}


def test_a_key_with_a_dot_goes_before_an_object() -> None:
    assert read("p.lat=1", **{"p.lat": {"type": "string"}}) == {"p.lat": "1"}


def test_a_value_cannot_have_members_as_well() -> None:
    assert "already has a value" in fault("p=1", "p.a=2", within=schema(p={}))


# Mistakes


def test_a_mistake_is_pointed_at() -> None:
    said = fault("days=three", within=schema(days={"type": "integer"}))
    assert said == "days takes an integer, not 'three'\n  days=three\n       ^^^^^"


def test_unknown_key_is_refused_with_a_suggestion_or_the_known_keys() -> None:
    within = schema(city={}, days={})
    assert fault("cty=x", within=within) == (
        "the tool 'x' has no argument 'cty'; did you mean 'city'?\n  cty=x\n  ^^^"
    )
    assert "it takes: city, days" in fault("qqq=x", within=within)
    assert "it takes none" in fault("a=1", within=schema())


def test_an_unknown_key_is_sent_where_the_schema_is_open() -> None:
    assert parse_arguments(["a=1", "b=x"], schema(closed=False), "it") == {"a": 1, "b": "x"}
    by = {"additionalProperties": {"type": "string"}}
    assert parse_arguments(["a=1"], by, "it") == {"a": "1"}


def test_an_argument_that_an_open_schema_does_not_name_is_reported() -> None:
    given = schema(closed=False, duration={"type": "number"}, steps={"type": "integer"})
    assert unknown_arguments({"duration": 1, "steps": 2}, given) == []
    assert unknown_arguments({"duraton": 1}, given) == [
        "'duraton' is not in the schema of the tool; did you mean 'duration'?"
    ]
    assert unknown_arguments({"c": 1}, given) == [
        "'c' is not in the schema of the tool; it takes: duration, steps"
    ]
    # The close name is given already: it is not what was meant.
    assert unknown_arguments({"duraton": 1, "duration": 2}, given) == [
        "'duraton' is not in the schema of the tool; it takes: duration, steps"
    ]


def test_members_of_an_object_are_reported_with_their_place() -> None:
    inner = {"type": "object", "properties": {"depth": {"type": "integer"}}}
    root = {**schema(closed=False, options={"$ref": "#/$defs/O"}), "$defs": {"O": inner}}
    assert unknown_arguments({"options": {"dept": 1}}, root) == [
        "'options.dept' is not in the schema of the tool; did you mean 'options.depth'?"
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"properties": {}},
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^x": {}}},
        {"allOf": [{"properties": {"other": {}}}]},
        {"anyOf": [{"properties": {"other": {}}}]},
        {"unevaluatedProperties": True},
    ],
)
def test_arguments_that_a_schema_expects_beside_its_own_are_not_reported(
    more: dict[str, Any],
) -> None:
    assert unknown_arguments({"other": 1}, {**schema(closed=False, a={}), **more}) == []


def test_a_close_name_is_reported_although_the_schema_allows_others() -> None:
    given = {**schema(closed=False, duration={}), "additionalProperties": True}
    assert len(unknown_arguments({"duraton": 1}, given)) == 1


def test_reports_are_limited_and_escaped() -> None:
    given = schema(closed=False, a={})
    assert len(unknown_arguments({f"name{at}": 1 for at in range(500)}, given)) == 20
    (told,) = unknown_arguments({"\033[2J": 1}, given)
    assert "\033" not in told


def test_missing_arguments_are_named_with_their_description() -> None:
    within = schema(("city", "days"), city={"type": "string", "description": "where\nto"}, days={})
    assert fault(within=within) == (
        "2 arguments are missing for the tool 'x':\n  city: string  where to\n  days: any"
    )
    opened = schema(("city",), closed=False, city={"type": "string"})
    assert "(did you mean it by 'cty'?)" in fault("cty=x", within=opened)


@pytest.mark.parametrize("word", [f"api_key={CANARY}", f"api_key:={CANARY}", f"auth.x={CANARY}"])
def test_a_secret_is_not_echoed(word: str) -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}
    within = schema(api_key={"type": "integer"}, auth=inner)
    said = fault(word, within=within)
    assert CANARY not in said
    assert "[redacted]" in said


def test_a_secret_within_a_value_is_not_echoed() -> None:
    said = fault(f'a={{"password": "{CANARY}"}}', within=schema(a={"type": "integer"}))
    assert CANARY not in said


def test_error_messages_contain_no_terminal_escapes() -> None:
    assert "\x1b" not in fault("a=\x1b[1m", within=schema(a={"type": "integer"}))
    hostile = {"type": "string", "description": "\x1b[2J"}
    assert "\x1b" not in fault(within=schema(("\x1b[1m",), **{"\x1b[1m": hostile}))


# In short


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"anyOf": [{"type": "array", "items": {}}, {"type": "null"}]}, "any[] | null"),
        ({"enum": ["a", "b"]}, "a | b"),
        ({"const": 3}, "3"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}}, "object"),
        ({"properties": {}}, "object"),
        (True, "any"),
    ],
)
def test_a_schema_in_short(given: Any, shown: str) -> None:
    assert type_summary(given) == shown


# Names


def test_a_misspelt_name_is_guessed_among_names_of_any_size() -> None:
    assert closest_name("forcast", ["x" * 10_000_000, "forecast", "add"]) == "forecast"
    assert closest_name("x" * 10_000_000, ["forecast"]) is None
    assert closest_name("a", []) is None


# Suggestions

SUGGESTED = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 3},
        "place": {"$ref": "#/$defs/Place"},
        "mode": {"enum": ["a b", 2, None]},
        "maybe": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "many": {"type": "array", "items": {"const": "x"}},
        "next": {"$ref": "#"},
    },
    "required": ["city", "place", "mode", "maybe", "many"],
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"lat": {"type": "number"}, "note": {"type": "string"}},
            "required": ["lat"],
        }
    },
}


def test_members_of_objects_are_arguments_too() -> None:
    names = list(argument_schemas(SUGGESTED))
    assert names[:5] == ["city", "days", "place", "place.lat", "place.note"]
    # A schema that contains itself ends.
    assert "next.next.city" in names
    assert "next.next.next.city" not in names
    assert argument_schemas("nonsense") == {}


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("mode", ["a b", "2", "null"]),
        ("maybe", ["true", "false"]),
        ("many", ["x"]),
        ("city", []),
        ("next", []),
    ],
)
def test_values_that_can_be_listed_are(name: str, choices: list[str]) -> None:
    assert value_choices(SUGGESTED["properties"][name], SUGGESTED) == choices  # type: ignore[index]


def test_a_template_has_what_is_required_and_what_has_a_default() -> None:
    assert argument_template(SUGGESTED) == {
        "city": "",
        "days": 3,
        "place": {"lat": 0},
        "mode": "a b",
        "maybe": False,
        "many": [],
    }
    assert argument_template(None) == {}
    loop = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert argument_template(loop) == {"a": {"a": {"a": {}}}}
