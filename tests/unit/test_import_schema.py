"""`tools/import_schema.py`: digests of made-up schema files, in both dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.import_schema import SchemaError, digest_of, draft, layout, main
from trunkline.spec.rows import Field, Type

TEXT = {"type": "string"}
ENVELOPE = {"jsonrpc": {"type": "string", "const": "2.0"}, "id": {"$ref": "#/$defs/Id"}}


def ref(name: str, folder: str = "$defs") -> dict[str, str]:
    return {"$ref": f"#/{folder}/{name}"}


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], **more}


def const(value: object) -> dict[str, Any]:
    return {"const": value, "type": "string"}


# The same facts as the oldest and the newest files would spell them.
INHERITED = obj({"_meta": obj({"token": TEXT})}, additionalProperties={})
OLD: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "definitions": {
        "ClientNotification": {"anyOf": [ref("DoneNotification", "definitions")]},
        "ClientRequest": {
            "anyOf": [ref("PingRequest", "definitions"), ref("PaintRequest", "definitions")]
        },
        "Colour": {"type": "string", "enum": ["red", "blue"], "description": "Prose."},
        "DoneNotification": obj({"method": const("done")}, "method"),
        "EmptyResult": ref("Result", "definitions"),
        "Id": {"type": ["string", "integer"]},
        "MetaObject": {"type": "object"},
        "PaintRequest": obj(
            {
                "method": const("paint"),
                "params": obj(
                    {
                        "colour": ref("Colour", "definitions"),
                        "strokes": {"type": "array", "items": obj({"width": {"type": "number"}})},
                        "title": {**TEXT, "description": "Prose.", "maxLength": 9},
                    },
                    "colour",
                ),
            },
            "method",
            "params",
        ),
        "PaintResult": obj(
            {"_meta": {"type": "object", "additionalProperties": {}}, "area": {"type": "integer"}},
            "area",
            additionalProperties={},
        ),
        "PingRequest": obj({"method": const("ping"), "params": INHERITED}, "method"),
        "Request": obj({"method": TEXT, "params": INHERITED}, "method"),
        "Result": obj(
            {"_meta": {"type": "object", "additionalProperties": {}}}, additionalProperties={}
        ),
        "ServerRequest": {"anyOf": [ref("PingRequest", "definitions")]},
    },
}
NEW: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "ClientNotification": obj(
            {"jsonrpc": ENVELOPE["jsonrpc"], "method": const("done")}, "method", "jsonrpc"
        ),
        "ClientRequest": {"anyOf": [ref("PingRequest"), ref("PaintRequest")]},
        "Colour": {"type": "string", "enum": ["red", "blue"]},
        "DoneNotification": obj(
            {"jsonrpc": ENVELOPE["jsonrpc"], "method": const("done")}, "method", "jsonrpc"
        ),
        "EmptyResult": ref("Result"),
        "Id": {"anyOf": [TEXT, {"type": "integer"}]},
        "MetaObject": {"type": "object"},
        "PaintRequest": obj(
            {**ENVELOPE, "method": const("paint"), "params": ref("PaintRequestParams")},
            "method",
            "params",
            "id",
            "jsonrpc",
        ),
        "PaintRequestParams": obj(
            {
                "colour": ref("Colour"),
                "strokes": {"type": "array", "items": ref("PaintRequestParams.strokes[]")},
                "title": {**TEXT, "maxLength": 9},
            },
            "colour",
        ),
        "PaintRequestParams.strokes[]": obj({"width": {"type": "number"}}),
        "PaintResult": {"allOf": [ref("Result"), obj({"area": {"type": "integer"}}, "area")]},
        "PingRequest": obj(
            {**ENVELOPE, "method": const("ping"), "params": ref("RequestParams")},
            "method",
            "id",
            "jsonrpc",
        ),
        "Request": obj({"method": TEXT, "params": ref("RequestParams")}, "method"),
        "RequestMetaObject": obj({"token": TEXT}),
        "RequestParams": obj({"_meta": ref("RequestMetaObject")}, additionalProperties={}),
        "Result": obj({"_meta": ref("MetaObject")}, additionalProperties={}),
        "ServerRequest": ref("PingRequest"),
    },
}


def types_of(definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = digest_of("made-up", {"$defs": definitions})["types"]
    return found


def methods_of(**definitions: Any) -> dict[str, Any]:
    found: dict[str, Any] = digest_of("made-up", {"$defs": definitions})["methods"]
    return found


def test_the_same_facts_look_the_same_in_both_dialects() -> None:
    assert digest_of("made-up", OLD) == digest_of("made-up", NEW)


def test_shapes() -> None:
    types = digest_of("made-up", OLD)["types"]
    assert types["Colour"] == {"kind": "enum", "values": ["red", "blue"]}
    assert types["EmptyResult"] == {"kind": "alias", "type": "Result"}
    assert types["Id"] == {"kind": "union", "of": ["string", "integer"]}
    assert types["MetaObject"] == {"kind": "alias", "type": "map<any>"}
    assert types["ServerRequest"] == {"kind": "union", "of": ["PingRequest"]}
    assert types["PaintRequestParams"] == {
        "kind": "object",
        "fields": {
            "colour": {"type": "Colour", "required": True},
            "strokes": {"type": "list<PaintRequestParams.strokes[]>", "required": False},
            "title": {"type": "string", "required": False, "maxLength": 9},
        },
    }
    assert types["PaintResult"] == {
        "kind": "object",
        "fields": {
            "_meta": {"type": "MetaObject", "required": False},
            "area": {"type": "integer", "required": True},
        },
        "open": True,
    }


def test_types_are_in_order_and_named_after_their_place() -> None:
    names = [*digest_of("made-up", OLD)["types"]]
    assert names == sorted(names)
    assert {"PaintRequestParams.strokes[]", "RequestParams", "RequestMetaObject"} <= {*names}


def test_no_prose_is_kept() -> None:
    assert "Prose" not in json.dumps(digest_of("made-up", OLD))


def test_methods() -> None:
    assert digest_of("made-up", NEW)["methods"] == {
        "ping": {
            "kind": "request",
            "by": ["client", "server"],
            "params": "RequestParams",
            "result": "EmptyResult",
            "form": "wire",
        },
        "paint": {
            "kind": "request",
            "by": ["client"],
            "params": "PaintRequestParams",
            "result": "PaintResult",
            "form": "wire",
        },
        "done": {
            "kind": "notification",
            "by": ["client"],
            "params": None,
            "result": None,
            "form": "wire",
        },
    }


def test_a_response_type_names_the_result() -> None:
    rows = methods_of(
        ClientRequest={"anyOf": [ref("PaintRequest")]},
        PaintRequest=obj({"method": const("paint")}, "method"),
        PaintResultResponse=obj({**ENVELOPE, "result": {"anyOf": [ref("More"), ref("Paint")]}}),
        More=TEXT,
        Paint=TEXT,
    )
    assert rows["paint"]["result"] == "More | Paint"


def test_an_input_request_travels_inside_a_result() -> None:
    rows = methods_of(
        InputRequest={"anyOf": [ref("AskRequest")]},
        AskRequest=obj({"method": const("ask")}, "method"),
        AskResult=TEXT,
    )
    assert rows["ask"]["form"] == "inside-result"
    assert rows["ask"]["by"] == ["server"]


def test_a_request_that_tasks_augment_may_be_answered_with_one() -> None:
    rows = methods_of(
        ClientRequest={"anyOf": [ref("CallToolRequest")]},
        CallToolRequest=obj({"method": const("tools/call")}, "method"),
        CallToolResult=TEXT,
        CreateTaskResult=TEXT,
    )
    assert rows["tools/call"]["result"] == "CallToolResult | CreateTaskResult"


def test_envelope_types_keep_their_members() -> None:
    types = types_of({"JSONRPCThing": obj(ENVELOPE, "id"), "Thing": obj({**ENVELOPE, "x": {}})})
    assert [*types["JSONRPCThing"]["fields"]] == ["jsonrpc", "id"]
    assert [*types["Thing"]["fields"]] == ["x"]


def test_an_id_without_an_envelope_is_a_field() -> None:
    assert [*types_of({"Thing": obj({"id": TEXT})})["Thing"]["fields"]] == ["id"]


@pytest.mark.parametrize(
    ("schema", "expression"),
    [
        ({}, "any"),
        ({"type": "object"}, "map<any>"),
        ({"type": "object", "properties": {}, "additionalProperties": True}, "map<any>"),
        ({"type": "object", "additionalProperties": {"type": "array"}}, "map<list<any>>"),
        ({"type": "object", "additionalProperties": obj({"a": {}})}, "map<Thing.x{}>"),
        ({"type": "object", "properties": {}}, "Thing.x"),
        ({"enum": ["a", "b"], "type": "string"}, "'a' | 'b'"),
        ({"const": -32602, "type": "integer"}, "-32602"),
        ({"type": ["integer", "null"]}, "integer | null"),
        ({"anyOf": [{"type": ["string", "integer"]}, TEXT, {"type": "array"}]},
         "string | integer | list<any>"),
    ],
)  # fmt: skip
def test_expressions(schema: dict[str, Any], expression: str) -> None:
    fields = types_of({"Thing": obj({"x": schema})})["Thing"]["fields"]
    assert fields["x"] == {"type": expression, "required": False}


def test_members_of_parts_are_merged_and_the_last_word_counts() -> None:
    types = types_of(
        {
            "Error": obj({"code": {"type": "integer"}, "text": TEXT}, "code"),
            "Busy": obj(
                {"error": {"allOf": [ref("Error"), obj({"code": {"const": -7}}, "text")]}}, "error"
            ),
        }
    )
    assert types["Busy.error"]["fields"] == {
        "code": {"type": "-7", "required": True},
        "text": {"type": "string", "required": True},
    }


def test_openness_is_said_only_where_the_file_says_it() -> None:
    types = types_of(
        {
            "Closed": obj({"a": {}}, additionalProperties=False),
            "Open": obj({"a": {}}, additionalProperties=True),
            "Plain": obj({"a": {}}),
        }
    )
    assert [types[name].get("open") for name in ("Closed", "Open", "Plain")] == [False, True, None]


def test_object_without_additional_properties_is_not_a_map() -> None:
    types = types_of({"A": obj({"x": {"type": "object", "additionalProperties": False}})})
    assert types["A.x"] == {"kind": "object", "fields": {}, "open": False}


@pytest.mark.parametrize(
    ("definitions", "why"),
    [
        ({"A": {"type": "string", "contentEncoding": "base64"}}, "A: unknown keyword"),
        ({"A": obj({"b": {"not": {}}})}, "A.b: unknown keyword not"),
        ({"A": {"type": "array", "items": {**TEXT, "maxLength": 3}}}, "A\\[\\]: a limit where"),
        ({"A": {"enum": ["a"], "default": "a"}}, "A: a limit where"),
        ({"A": obj({}, default={})}, "A: a limit where"),
        (
            {"A": {"$ref": "#/$defs/B", "type": "object"}, "B": TEXT},
            "cannot read \\$ref beside type",
        ),
        ({"A": {"anyOf": [TEXT], "required": ["x"]}}, "cannot read anyOf beside required"),
        ({"A": obj({"b": {}}, "b", "c")}, "A: nothing is said of c"),
        ({"ClientRequest": obj({"method": const("odd")})}, "its only member has no name"),
        ({"A": {"type": "file"}}, "A: cannot read"),
        ({"A": obj({"b": {}}, additionalProperties=TEXT)}, "typed further members"),
        ({"A": obj({"b": {"const": 1.5}})}, "neither text nor an integer"),
        ({"A": obj({"b": {"const": "it's"}})}, "neither text nor an integer"),
        (
            {"A": obj({"_meta": obj({"x": {}})}), "B": obj({"_meta": obj({"y": {}})})},
            "two unlike types",
        ),
        (
            {
                "ClientRequest": {"anyOf": [ref("OddRequest")]},
                "OddRequest": obj({"method": const("odd")}),
            },
            "no type OddResult",
        ),
        (
            {
                "ServerRequest": {"anyOf": [ref("AskRequest")]},
                "InputRequest": {"anyOf": [ref("AskRequest")]},
                "AskRequest": obj({"method": const("ask")}),
                "AskResult": TEXT,
            },
            "ask: sent in two ways",
        ),
    ],
)
def test_unsupported_schema_is_refused_with_its_location(
    definitions: dict[str, Any], why: str
) -> None:
    with pytest.raises(SchemaError, match=why):
        digest_of("made-up", {"$defs": definitions})


# The command


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "2024-11-05.json").write_text(json.dumps(OLD))
    (folder / "2025-03-26.json").write_text(json.dumps(NEW))
    return folder


def run(digests: Path, schemas: Path, *options: str) -> int:
    return main([str(digests), "--schemas", str(schemas), *options])


def test_written_digests_pass_the_check(
    tmp_path: Path, schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = tmp_path / "digests"
    assert run(digests, schemas) == 0
    assert sorted(path.name for path in digests.iterdir()) == ["2024-11-05.json", "2025-03-26.json"]
    assert run(digests, schemas, "--check") == 0
    assert capsys.readouterr().out.endswith("2 revisions, 0 differences\n")


def test_each_difference_is_listed(
    tmp_path: Path, schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = tmp_path / "digests"
    run(digests, schemas)
    path = digests / "2024-11-05.json"
    digest = json.loads(path.read_text())
    digest["types"]["Old"] = {"kind": "alias", "type": "string"}
    digest["types"]["Result"]["fields"]["_meta"]["required"] = True
    del digest["methods"]["done"]
    path.write_text(json.dumps(digest))
    (schemas / "2025-03-26.json").unlink()
    capsys.readouterr()
    assert run(digests, schemas, "--check") == 1
    assert capsys.readouterr().out.splitlines() == [
        "2024-11-05 types Result fields _meta required: true in the digest, "
        "false in the schema file",
        "2024-11-05 types Old: only in the digest",
        "2024-11-05 methods done: only in the schema file",
        "2025-03-26: only in the digest",
        "1 revisions, 4 differences",
    ]


def test_the_folder_of_schema_files_has_to_be_given(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path)])


def test_short_things_stay_on_one_line() -> None:
    value = {"short": [1, 2], "long": {"a": "x" * 60, "b": "y" * 60}, "list": ["z" * 60, "z" * 60]}
    text = layout(value)
    assert json.loads(text) == value
    assert ' "short": [1, 2],\n' in text
    assert len(text.splitlines()) == 11


# The draft


def drafted(*digests: dict[str, Any]) -> dict[str, list[Type]]:
    """Return the rows of a draft, by name."""
    by_revision = {digest["revision"]: digest for digest in digests}
    source = "\n".join(draft(by_revision)).replace("from ..", "from trunkline.spec.")
    module: dict[str, Any] = {}
    exec(source, module)
    rows: dict[str, list[Type]] = {}
    for row in module["TYPES"]:
        rows.setdefault(row.name, []).append(row)
    return rows


def digest(revision: str, **types: Any) -> dict[str, Any]:
    return {"revision": revision, "types": types, "methods": {}}


def thing(**fields: Any) -> dict[str, Any]:
    return {"kind": "object", "fields": fields}


def field(type_: str, required: bool = False, **limits: Any) -> dict[str, Any]:
    return {"type": type_, "required": required, **limits}


FIRST, SECOND, THIRD = "2024-11-05", "2025-03-26", "2025-06-18"


def held(row: Field, *revisions: str) -> str:
    """Return a letter per revision: required, optional, or not there."""
    letters = []
    for revision in revisions:
        needed = row.required if isinstance(row.required, bool) else row.required.holds(revision)
        letters.append(("r" if needed else "o") if row.when.holds(revision) else "-")
    return "".join(letters)


def test_a_draft_of_one_revision_has_no_windows() -> None:
    (row,) = drafted(digest(FIRST, A=thing(x=field("string", True, format="uri"))))["A"]
    assert row == Type("A", "object", (Field("x", "string", True, limits=(("format", "uri"),)),))


def test_a_draft_gives_a_field_the_window_it_holds_in() -> None:
    a, ax = thing(), thing(x=field("string"))
    (row,) = drafted(digest(FIRST, A=a), digest(SECOND, A=ax), digest(THIRD, A=a))["A"]
    assert [held(field, FIRST, SECOND, THIRD) for field in row.fields] == ["-o-"]


def test_a_draft_has_a_row_for_each_type_of_a_field() -> None:
    shapes = [thing(x=field("string")), thing(x=field("string")), thing(x=field("integer"))]
    digests = [digest(r, A=s) for r, s in zip((FIRST, SECOND, THIRD), shapes, strict=True)]
    (row,) = drafted(*digests)["A"]
    assert [(field.type, held(field, FIRST, SECOND, THIRD)) for field in row.fields] == [
        ("string", "oo-"),
        ("integer", "--o"),
    ]


@pytest.mark.parametrize(
    ("needed", "rows"),
    [
        ((False, True, True), ["orr"]),
        ((True, False, False), ["roo"]),
        ((True, False, True), ["r--", "-o-", "--r"]),
    ],
)
def test_a_draft_says_when_a_field_is_required(needed: tuple[bool, ...], rows: list[str]) -> None:
    revisions = (FIRST, SECOND, THIRD)
    digests = [
        digest(r, A=thing(x=field("string", flag)))
        for r, flag in zip(revisions, needed, strict=True)
    ]
    (row,) = drafted(*digests)["A"]
    assert [held(field, *revisions) for field in row.fields] == rows


def test_a_draft_splits_a_type_only_where_its_kind_changes_or_it_was_gone() -> None:
    alias = {"kind": "alias", "type": "string"}
    rows = drafted(
        digest(FIRST, A=thing(), B=thing()),
        digest(SECOND, A=alias),
        digest(THIRD, A=alias, B=thing()),
    )
    assert [(row.kind, row.when.since, row.when.until) for row in rows["A"]] == [
        ("object", FIRST, SECOND),
        ("alias", SECOND, None),
    ]
    assert [(row.when.since, row.when.until) for row in rows["B"]] == [
        (FIRST, SECOND),
        (THIRD, None),
    ]


def test_a_draft_gives_the_members_of_a_union_windows_and_the_newest_order() -> None:
    (row,) = drafted(
        digest(FIRST, A={"kind": "union", "of": ["X", "Y", "W"]}),
        digest(SECOND, A={"kind": "union", "of": ["W", "X", "Z"]}),
    )["A"]
    found = [(m.type, m.when.holds(FIRST), m.when.holds(SECOND)) for m in row.of]
    assert found == [
        ("W", True, True),
        ("X", True, True),
        ("Y", True, False),
        ("Z", False, True),
    ]


def test_a_draft_says_when_a_type_is_open() -> None:
    opened = {**thing(x=field("any")), "open": True}
    (row,) = drafted(digest(FIRST, A=thing(x=field("any"))), digest(SECOND, A=opened))["A"]
    assert not isinstance(row.open, bool | None)
    assert row.open.holds(SECOND)
    assert not row.open.holds(FIRST)


def test_a_draft_is_printed(
    tmp_path: Path, schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = tmp_path / "digests"
    run(digests, schemas)
    capsys.readouterr()
    assert main([str(digests), "--draft"]) == 0
    printed = capsys.readouterr().out
    assert '    Type("Colour", "enum", of=(\n        Member("\'red\'"),\n' in printed
