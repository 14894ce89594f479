"""What is narrowed holds only what its revision knows, and narrowing again changes nothing."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import fields

from tests.cases import for_each
from tests.effort import share
from trunkline.jsonrpc import ErrorObject
from trunkline.judge import judge_type
from trunkline.mcp import types as wire
from trunkline.mcp.shaping import narrow
from trunkline.mcp.tables import FORMERLY, MERGED, class_name, drops, knows
from trunkline.spec.revisions import REVISIONS
from trunkline.spec.types import types

STRUCTS: Final[dict[str, type[Struct]]] = {
    name: value
    for name in wire.__all__
    if isinstance(value := getattr(wire, name), type)
    and issubclass(value, Struct)
    and value.__name__ == name
}
BLOCKS: Final = (wire.AudioContent, wire.ResourceLink, wire.ToolUseContent, wire.ToolResultContent)
CASES: Final = [(name, v) for v in REVISIONS for name in STRUCTS if knows(name, v)]
each_case = for_each(("name", "revision"), CASES)
some_cases = for_each(("name", "revision"), share(CASES))
quickly = settings(
    max_examples=8,
    deadline=None,
    # A type with many members takes long to draw; how long is no failure.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# What narrowing is no answer to: members that a revision requires and nobody gave, texts of
# another form, and what is known but on its way out.
ELSEWHERE: Final = {
    "mcp.extension.id",
    "mcp.method.deprecated",
    "mcp.result.input-empty",
    "mcp.root.file",
    "mcp.type.deprecated",
    "mcp.type.format",
    "mcp.type.limit",
    "mcp.type.required",
}

texts = st.text("ab", max_size=3)
# Members whose values depend on each other, or are judged by more than their type.
CHOSEN: Final[dict[tuple[str, str], st.SearchStrategy[Any]]] = {
    ("ElicitRequestParams", "elicitation_id"): st.none(),
    ("ElicitRequestParams", "mode"): st.just("form"),
    ("ElicitRequestParams", "requested_schema"): st.just({}),
    ("ElicitRequestParams", "url"): st.none(),
    ("ElicitResult", "content"): st.just({"a": 1}),
    ("GetTaskResult", "error"): st.none(),
    ("GetTaskResult", "result"): st.none(),
    ("GetTaskResult", "status"): st.just("input_required"),
    ("ResourceContents", "blob"): st.none(),
    ("TaskStatusNotificationParams", "error"): st.none(),
    ("TaskStatusNotificationParams", "result"): st.none(),
    ("TaskStatusNotificationParams", "status"): st.just("input_required"),
}


def of_hint(hint: Any, revision: str | None) -> st.SearchStrategy[Any]:
    """Return values of a type; with a revision, only such as that revision has."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return of_hint(args[0], revision)
    if origin is Union or origin is UnionType:
        parts = [part for part in args if revision is None or is_known(part, revision)]
        return st.one_of([of_hint(part, revision) for part in parts])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        return st.lists(of_hint(args[0], revision), max_size=2)
    if origin is dict:
        return st.dictionaries(texts, of_hint(args[1], revision), max_size=1)
    if hint is ErrorObject:
        return st.just(ErrorObject(1, "no"))
    if isinstance(hint, type) and issubclass(hint, Struct):
        return of_struct(hint, revision)
    return {
        str: texts,
        int: st.integers(0, 1),
        float: st.just(0.5),
        bool: st.booleans(),
        type(None): st.none(),
        UnsetType: st.just(UNSET),
        # Open places are not looked into, and what is judged there is not ours.
        Any: st.just({}),
    }[hint]


def is_known(part: Any, revision: str) -> bool:
    if get_origin(part) is list and not knows("SamplingMessageContentBlock", revision):
        inner = get_args(part)[0]
        return wire.ToolUseContent not in get_args(inner)
    return getattr(part, "__name__", "") not in STRUCTS or knows(part.__name__, revision)


@cache
def of_struct(kind: type[Struct], revision: str | None) -> st.SearchStrategy[Any]:
    dropped: frozenset[str] = frozenset()
    if revision is not None and knows(kind.__name__, revision):
        dropped = drops(kind.__name__, revision)
    wanted = {f.name: f.type for f in fields(kind) if f.encode_name not in dropped}
    return st.builds(
        kind,
        **{
            name: CHOSEN[kind.__name__, name]
            if (kind.__name__, name) in CHOSEN
            else of_hint(hint, revision)
            for name, hint in wanted.items()
        },
    )


@cache
def row_of(name: str, revision: str) -> str:
    """Return the type by which a value of a Struct is judged."""
    if name in MERGED:
        return " | ".join(MERGED[name])
    rows = {class_name(row): row for row in types(revision)}
    return rows.get(name) or FORMERLY[name]


def faults(value: Struct, revision: str) -> list[str]:
    found = judge_type(msgspec.to_builtins(value), row_of(type(value).__name__, revision), revision)
    return [str(finding) for finding in found if finding.rule not in ELSEWHERE]


@pytest.mark.parametrize("name", STRUCTS)
def test_a_narrowed_value_has_only_what_its_revision_knows(name: str) -> None:
    @quickly
    @given(of_struct(STRUCTS[name], None))
    def check(value: Struct) -> None:
        for revision in (each for each in REVISIONS if knows(name, each)):
            found = narrow(value, revision)
            assert type(found) is type(value)
            assert faults(found, revision) == []
            assert narrow(found, revision) is found

    check()


@some_cases
def test_a_value_that_a_revision_knows_whole_is_not_touched(name: str, revision: str) -> None:
    @quickly
    @given(of_struct(STRUCTS[name], revision))
    def check(value: Struct) -> None:
        assert narrow(value, revision) is value

    check()


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_is_replaced_by_one_that_the_revision_has(kind: type[Struct]) -> None:
    @quickly
    @given(of_struct(kind, None))
    def check(block: Struct) -> None:
        for revision in REVISIONS:
            found = narrow(block, revision)
            assert knows(type(found).__name__, revision)
            assert faults(found, revision) == []

    check()


@each_case
def test_raw_json_is_left_as_it_is_wherever_it_stands(name: str, revision: str) -> None:
    raw = Raw(b"{}")
    kind = STRUCTS[name]
    known = [f for f in fields(kind) if f.encode_name not in drops(name, revision)]
    value = kind(**{f.name: raw for f in known})
    assert narrow(value, revision) is value
