"""`spec/types.py`: a type in one revision, and type expressions."""

from __future__ import annotations

import pytest

from trunkline.spec.profiles import UnknownRevision
from trunkline.spec.revisions import (
    LATEST,
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)
from trunkline.spec.types import Expr, UnknownType, need, parse, type_, types

STRING = Expr("primitive", "string")
TOOL = Expr("name", "Tool")


def test_a_type_has_the_fields_of_its_revision() -> None:
    assert [*need("Tool", V2024_11_05).fields] == ["description", "inputSchema", "name"]
    assert "outputSchema" in need("Tool", V2025_06_18).fields
    assert "execution" in need("Tool", V2025_11_25).fields
    assert "execution" not in need("Tool", V2026_07_28).fields


def test_a_field_may_become_required() -> None:
    assert not need("RequestParams", V2025_11_25).fields["_meta"].required
    assert need("RequestParams", V2026_07_28).fields["_meta"].required


def test_a_field_may_be_optional_in_one_revision_between_two() -> None:
    name = "CancelledNotificationParams"
    required = [need(name, revision).fields["requestId"].required for revision in REVISIONS]
    assert required == [True, True, True, False, True]


def test_a_field_may_change_its_type() -> None:
    assert need("CallToolResult", V2025_11_25).fields["structuredContent"].type == "map<any>"
    assert need("CallToolResult", V2026_07_28).fields["structuredContent"].type == "any"


def test_a_type_may_change_its_kind() -> None:
    assert need("ElicitRequestParams", V2025_06_18).kind == "object"
    assert need("ElicitRequestParams", V2025_11_25).kind == "union"


def test_a_union_has_the_members_of_its_revision() -> None:
    assert "ElicitRequest" not in need("ServerRequest", V2025_03_26).of
    assert "ElicitRequest" in need("ServerRequest", V2025_06_18).of
    assert type_("ServerRequest", V2026_07_28) is None


def test_a_type_may_be_open_in_some_revisions() -> None:
    assert need("RequestParams", V2025_06_18).open is True
    assert need("RequestParams", V2025_11_25).open is None


def test_limits_come_with_the_field() -> None:
    assert dict(need("Annotations").fields["priority"].limits) == {"minimum": 0, "maximum": 1}


def test_the_newest_revision_is_the_default() -> None:
    assert type_("Tool") is type_("Tool", LATEST)
    assert types() is types(LATEST)


def test_an_unknown_type_is_none() -> None:
    assert type_("Toll") is None
    assert type_("AudioContent", V2024_11_05) is None


def test_a_needed_type_that_is_missing_says_where_it_is() -> None:
    with pytest.raises(UnknownType) as caught:
        need("InitializeRequest")
    assert str(caught.value) == (
        "2026-07-28 has no type 'InitializeRequest'; "
        "it is in 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"
    )
    with pytest.raises(LookupError, match="has no type 'Toll'; no revision has it"):
        need("Toll")


@pytest.mark.parametrize("lookup", [types, lambda revision: type_("Tool", revision)])
def test_an_unknown_revision_is_refused_with_the_list(lookup: object) -> None:
    assert callable(lookup)
    with pytest.raises(
        UnknownRevision, match=r"'2023-01-01' is not a released revision.*2024-11-05.*2026-07-28"
    ):
        lookup("2023-01-01")


def test_lookups_return_the_same_object_each_time() -> None:
    assert need("Tool") is need("Tool")
    assert need("Tool").fields["name"] is need("Tool").fields["name"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_all_types_of_a_revision_are_those_that_can_be_looked_up(revision: str) -> None:
    every = types(revision)
    assert len(every) == len(list(every)) > 50
    assert [view.name for view in every.values()] == list(every)
    assert all(type_(name, revision) is view for name, view in every.items())
    assert "NoSuchType" not in every
    with pytest.raises(KeyError):
        every["NoSuchType"]


def test_types_and_their_views_are_immutable() -> None:
    view = need("Tool")
    with pytest.raises(TypeError):
        types()["Tool"] = view  # type: ignore[index]
    with pytest.raises(TypeError):
        view.fields["name"] = view.fields["title"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        view.open = False  # type: ignore[misc]


def test_tasks_are_core_in_one_revision_and_an_extension_in_the_next() -> None:
    core, extension = need("Task", V2025_11_25), need("Task", V2026_07_28)
    assert "ttl" in core.fields
    assert core.extension == ""
    assert "ttlMs" in extension.fields
    assert extension.extension == "io.modelcontextprotocol/tasks"
    assert type_("Task", V2025_06_18) is None


def test_an_extension_marks_the_field_it_adds_to_the_core() -> None:
    view = need("SubscriptionFilter")
    assert view.extension == ""
    assert view.fields["taskIds"].extension == "io.modelcontextprotocol/tasks"
    assert view.fields["toolsListChanged"].extension == ""


@pytest.mark.parametrize(
    ("status", "carried"),
    [
        ("working", set()),
        ("input_required", {"inputRequests"}),
        ("completed", {"result"}),
        ("failed", {"error"}),
        ("cancelled", set()),
    ],
)
def test_a_task_carries_what_its_status_asks_for(status: str, carried: set[str]) -> None:
    always = {*need("Task").fields} | {"_meta", "resultType"}
    view = need(f"GetTaskResult.{status}")
    assert {*view.fields} - always == carried
    assert view.fields["status"].expr == Expr("constant", value=status)
    assert view.fields["resultType"].expr == Expr("constant", value="complete")


def test_create_task_result_has_a_constant_result_type() -> None:
    assert need("CreateTaskResult").fields["resultType"].expr == Expr("constant", value="task")


def test_expr_of_a_type_is_one_expression() -> None:
    assert need("Cursor").expr == STRING
    assert need("RequestId").expr == Expr("union", of=(STRING, Expr("primitive", "integer")))
    assert {part.value for part in need("Role").expr.of} == {"assistant", "user"}
    assert need("Tool").expr == TOOL


# Expressions


@pytest.mark.parametrize("name", ["string", "integer", "number", "boolean", "null", "any"])
def test_primitives(name: str) -> None:
    assert parse(name) == Expr("primitive", name)


@pytest.mark.parametrize(
    "name", ["Tool", "Tool.inputSchema", "A.b[]", "A.b{}.c-d", "strings", "_m"]
)
def test_names(name: str) -> None:
    assert parse(name) == Expr("name", name)


@pytest.mark.parametrize(
    ("text", "value"), [("'text'", "text"), ("''", ""), ("'a | b<'", "a | b<"), ("-32602", -32602)]
)
def test_constants(text: str, value: object) -> None:
    assert parse(text) == Expr("constant", value=value)  # type: ignore[arg-type]


def test_lists_and_maps_hold_one_type() -> None:
    assert parse("list<Tool>") == Expr("list", of=(TOOL,))
    assert parse("map<list<string>>") == Expr("map", of=(Expr("list", of=(STRING,)),))


def test_unions_keep_their_order_and_reach_into_lists() -> None:
    union = Expr("union", of=(TOOL, STRING))
    assert parse("Tool | string") == union
    assert parse("list<Tool | string>") == Expr("list", of=(union,))
    assert parse("map<string> | 'x' | 1").of[1:] == (
        Expr("constant", value="x"),
        Expr("constant", value=1),
    )


def test_spaces_do_not_matter() -> None:
    assert parse(" list< Tool|string >  ") == parse("list<Tool | string>")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no type"),
        ("Tool |", "has no type"),
        ("| Tool", "has no type"),
        ("list<>", "has no type"),
        ("list<Tool", "has no '>'"),
        ("list<Tool string>", "has no '>'"),
        ("Tool>", "is malformed at '>'"),
        ("Tool string", "is malformed at ' string'"),
        ("'open", "has no type"),
        ("Tool & string", "is malformed at ' & string'"),
    ],
)
def test_malformed_type_expression_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


def test_an_expression_is_parsed_once() -> None:
    assert parse("list<Tool>") is parse("list<Tool>")
