"""The rows about what peers can do agree with each other, and each is found by its lookup."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pytest

from tests.cases import for_each
from trunkline.spec import lookup
from trunkline.spec.lookup.meta_key_check import meta_grammar
from trunkline.spec.lookup.revision_diff import diff
from trunkline.spec.mcp.advice import ADVICE
from trunkline.spec.mcp.capabilities import CAPABILITIES
from trunkline.spec.mcp.headers import HEADERS
from trunkline.spec.mcp.meta import GRAMMARS, META_KEYS
from trunkline.spec.mcp.methods import METHODS
from trunkline.spec.mcp.transports import TRANSPORTS
from trunkline.spec.revisions import REVISIONS, V2024_11_05, V2025_11_25, V2026_07_28
from trunkline.spec.rows import Advice, Capability, Header, MetaKey, Method, Role
from trunkline.spec.types import TypeView, need, parse, type_

FIRST: Final = REVISIONS[0]


class Table(NamedTuple):
    rows: tuple[Any, ...]
    # What tells the rows of one revision apart.
    keys: Callable[[Any], Iterable[Hashable]]
    find: Callable[[Any, str], object]
    every: Callable[[str], tuple[Any, ...]]


TABLES: Final = {
    "methods": Table(
        METHODS,
        lambda row: [(row.name, sender, row.form) for sender in row.senders],
        lambda row, revision: lookup.method(row.name, revision),
        lookup.methods,
    ),
    "capabilities": Table(
        CAPABILITIES,
        lambda row: [(row.name, row.role)],
        lambda row, revision: lookup.capability(row.name, revision, row.role),
        lookup.capabilities,
    ),
    "transports": Table(
        TRANSPORTS,
        lambda row: [row.name],
        lambda row, revision: lookup.transport(row.name, revision),
        lookup.transports,
    ),
    "headers": Table(
        HEADERS,
        lambda row: [row.name.lower()],
        lambda row, revision: lookup.header(row.name, revision),
        lookup.headers,
    ),
    "meta keys": Table(
        META_KEYS,
        lambda row: [row.key],
        lambda row, revision: lookup.meta_key(row.key, revision),
        lookup.meta_keys,
    ),
}

EVERY_ROW: Final = [
    pytest.param(table, row, id=f"{name}: {row.name} {getattr(row, 'role', '')} {row.when.since}")
    for name, table in TABLES.items()
    for row in table.rows
]

each_row = for_each(("table", "row"), EVERY_ROW)
each_table = pytest.mark.parametrize("table", [*TABLES.values()], ids=[*TABLES])
each_revision = pytest.mark.parametrize("revision", REVISIONS)


def revisions_of(row: Any) -> list[str]:
    return [revision for revision in REVISIONS if row.when.holds(revision)]


def role_of(row: Any) -> str:
    return getattr(row, "role", "")


# Every row


@each_row
def test_a_row_is_what_its_lookup_finds_in_each_revision_of_its_window(
    table: Table, row: Any
) -> None:
    assert revisions_of(row), "a row that never holds"
    for revision in REVISIONS:
        holds = row.when.holds(revision)
        assert (table.find(row, revision) is row) == holds
        assert (row in table.every(revision)) == holds


@each_revision
@each_table
def test_one_row_of_a_name_holds_at_a_time(table: Table, revision: str) -> None:
    keys = Counter(key for row in table.every(revision) for key in table.keys(row))
    assert [key for key, count in keys.items() if count > 1] == []


@each_table
def test_the_windows_of_a_name_stand_below_each_other_and_meet(table: Table) -> None:
    for earlier, later in pairwise(table.rows):
        if (earlier.name, role_of(earlier)) == (later.name, role_of(later)):
            assert earlier.when.until == later.when.since
    names = [(row.name, role_of(row)) for row in table.rows]
    groups = [name for name, following in pairwise([*names, None]) if name != following]
    # A name that came up twice would have rows with those of another in between.
    assert len(groups) == len(set(groups))


@each_row
def test_a_row_says_in_a_sentence_what_it_is(table: Table, row: Any) -> None:
    assert re.fullmatch(r"\S.*[^.]\.", row.doc)
    assert ". " not in row.doc


@each_row
def test_a_row_says_where_it_comes_from(table: Table, row: Any) -> None:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d) · [a-z_/+-]+(#[a-z0-9-]+)?", row.anchor)
    assert found
    # The newest revision in which the row holds has the newest text about it.
    assert found[1] == revisions_of(row)[-1]


@each_row
def test_advice_is_a_text_of_whole_sentences(table: Table, row: Any) -> None:
    for text in (row.adopt, row.instead):
        assert not text or re.fullmatch(r"[A-Z].*[^.]\.", text)


@each_row
def test_only_a_row_that_comes_later_is_adopted(table: Table, row: Any) -> None:
    if row.when.since == FIRST:
        assert not row.adopt


@each_row
def test_row_that_ends_without_successor_says_what_to_use_instead(table: Table, row: Any) -> None:
    ends = row.when.until is not None and table.find(row, row.when.until) is None
    assert bool(row.instead) == ends


@each_row
def test_a_new_name_belongs_to_a_row_that_begins_as_this_one_ends(table: Table, row: Any) -> None:
    if row.renamed_to:
        following = table.find(row._replace(name=row.renamed_to), row.when.until)
        assert following is not None
        assert following.when.since == row.when.until  # type: ignore[attr-defined]


@each_row
def test_no_row_claims_to_be_removed(table: Table, row: Any) -> None:
    assert row.status in ("stable", "experimental", "deprecated")


# Methods and capabilities


@pytest.mark.parametrize(
    "row",
    [row for row in METHODS if row.capability],
    ids=lambda row: f"{row.name} {row.when.since}",
)
def test_the_capability_of_a_method_is_one_that_its_holder_can_declare(row: Method) -> None:
    for revision in revisions_of(row):
        for sender in row.senders:
            for role in row.declared_by(sender):
                assert lookup.capability(row.capability, revision, role) is not None


def test_capability_of_a_method_is_declared_by_its_receiver() -> None:
    get = lookup.method("tasks/get", V2025_11_25)
    assert get is not None
    assert get.declared_by("client") == ("server",)
    assert get.declared_by("server") == ("client",)


def test_a_sender_declares_what_it_will_announce() -> None:
    changed = lookup.method("notifications/roots/list_changed", V2025_11_25)
    assert changed is not None
    assert changed.declared_by("client") == ("client",)


def test_both_sides_declare_an_extension() -> None:
    get = lookup.method("tasks/get", V2026_07_28)
    assert get is not None
    assert get.declared_by("client") == ("client", "server")


def test_method_without_capability_is_declared_by_neither_side() -> None:
    ping = lookup.method("ping", V2025_11_25)
    assert ping is not None
    assert ping.declared_by("client") == ()


@each_revision
def test_stream_of_a_method_is_a_lasting_request(revision: str) -> None:
    for row in lookup.methods(revision):
        if row.stream:
            opening = lookup.method(row.stream, revision)
            assert opening is not None
            assert opening.lasting


def flattened(view: TypeView, revision: str, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place and kind of each capability that a type has fields for."""
    for name, field in view.fields.items():
        kind = {"boolean": "flag", "map<any>": "object", "JSONObject": "object"}.get(field.type)
        if field.type.startswith("map<") and field.type != "map<any>":
            kind = "map"
        yield f"{before}{name}", kind or "object"
        if kind is None:
            yield from flattened(need(field.type, revision), revision, f"{before}{name}.")


@pytest.mark.parametrize("role", ["client", "server"])
@each_revision
def test_capabilities_are_the_fields_of_the_type_that_declares_them(
    revision: str, role: Role
) -> None:
    view = need(f"{role.capitalize()}Capabilities", revision)
    rows = [row for row in lookup.capabilities(revision, role) if not row.extension]
    assert {(row.name, row.kind) for row in rows} == set(flattened(view, revision))


@pytest.mark.parametrize("row", CAPABILITIES, ids=lambda row: f"{row.role} {row.name}")
def test_a_capability_depends_on_what_the_same_side_can_declare(row: Capability) -> None:
    for revision in revisions_of(row):
        for name in row.depends:
            assert lookup.capability(name, revision, row.role) is not None


@pytest.mark.parametrize("row", CAPABILITIES, ids=lambda row: f"{row.role} {row.name}")
def test_a_capability_inside_another_depends_on_it(row: Capability) -> None:
    if len(row.path) > 1:
        assert ".".join(row.path[:-1]) in row.depends


def test_the_id_of_an_extension_is_one_key() -> None:
    tasks = lookup.capability("extensions.io.modelcontextprotocol/tasks", role="client")
    assert tasks is not None
    assert tasks.path == ("extensions", "io.modelcontextprotocol/tasks")
    created = lookup.capability("tasks.requests.tools.call", V2025_11_25)
    assert created is not None
    assert created.path == ("tasks", "requests", "tools", "call")


def test_rules_are_sentences() -> None:
    for row in CAPABILITIES:
        assert all(re.fullmatch(r"[A-Z].*[^.]\.", rule) for rule in row.rules)


# Transports


@each_revision
def test_a_revision_has_its_transports_and_ours(revision: str) -> None:
    official = {row.name: row.status for row in lookup.transports(revision) if not row.custom}
    ours = {row.name for row in lookup.transports(revision) if row.custom}
    assert ours == {"tcp", "unix", "websocket"}
    if revision == V2024_11_05:
        assert official == {"stdio": "stable", "http+sse": "stable"}
    else:
        assert official == {
            "stdio": "stable",
            "http+sse": "deprecated",
            "streamable-http": "stable",
        }


def test_a_stream_of_bytes_is_cut_into_lines() -> None:
    assert {row.framing for row in TRANSPORTS if row.kind == "stream"} == {"newline"}


def test_only_streamable_http_gives_each_request_a_channel() -> None:
    assert {row.name for row in TRANSPORTS if row.multiplexing} == {"streamable-http"}


# Headers


@pytest.mark.parametrize("row", [row for row in HEADERS if row.mirrors], ids=lambda row: row.name)
def test_a_header_mirrors_methods_that_exist(row: Header) -> None:
    for mirror in row.mirrors:
        if mirror.method != "*":
            found = lookup.method(mirror.method, V2026_07_28)
            assert found is not None
            assert found.extension == mirror.extension


@pytest.mark.parametrize(
    ("row", "method", "pointer"),
    [
        (row, mirror.method, mirror.pointer)
        for row in HEADERS
        for mirror in row.mirrors
        if mirror.method != "*"
    ],
)
def test_a_header_mirrors_a_field_of_the_params(row: Header, method: str, pointer: str) -> None:
    found = lookup.method(method, V2026_07_28)
    assert found is not None
    assert found.params is not None
    start, params, field = pointer.split("/")
    assert (start, params) == ("", "params")
    assert field in need(found.params, V2026_07_28).fields


@each_revision
def test_sessions_and_resumption_live_from_the_second_revision_to_the_fourth(
    revision: str,
) -> None:
    there = FIRST < revision < V2026_07_28
    assert (lookup.header("Mcp-Session-Id", revision) is not None) == there
    assert (lookup.header("Last-Event-ID", revision) is not None) == there


def test_only_names_and_arguments_may_travel_in_base64() -> None:
    assert {row.name for row in HEADERS if row.base64} == {"Mcp-Name", "Mcp-Param-{Name}"}


# Keys of _meta


@pytest.mark.parametrize("row", META_KEYS, ids=lambda row: row.key)
def test_the_type_of_a_key_exists(row: MetaKey) -> None:
    expr = parse(row.type)
    for revision in revisions_of(row):
        assert expr.kind == "primitive" or type_(expr.name, revision) is not None


@each_revision
def test_the_keys_of_requests_are_those_of_their_type(revision: str) -> None:
    fields = need("RequestMetaObject", revision).fields
    rows = {row.key: row for row in lookup.meta_keys(revision) if "request" in row.on}
    anywhere = {row.key for row in rows.values() if "result" in row.on}
    assert rows.keys() - anywhere == fields.keys()
    for name, field in fields.items():
        assert rows[name].type == field.type
        assert (rows[name].required == "must") == field.required


def test_the_keys_of_results_and_notifications_are_those_of_their_types() -> None:
    for place, name in (("result", "ResultMetaObject"), ("notification", "NotificationMetaObject")):
        fields = need(name, V2026_07_28).fields
        for key, field in fields.items():
            row = lookup.meta_key(key, V2026_07_28)
            assert row is not None
            assert place in row.on
            assert row.type == field.type


@each_revision
def test_one_grammar_of_keys_holds_in_each_revision(revision: str) -> None:
    assert [row for row in GRAMMARS if row.when.holds(revision)] == [meta_grammar(revision)]


# Advice


def test_every_row_of_advice_is_given() -> None:
    given: defaultdict[str, set[tuple[str, str, str, str]]] = defaultdict(set)
    for before, after in pairwise(REVISIONS):
        for change in diff(before, after).changes:
            key = (change.subject, change.how, change.to_do, change.renamed_to)
            given[after].add(key)
    idle = [
        row
        for row in ADVICE
        if (row.subject, row.how, row.says, row.renamed_to) not in given[row.since]
    ]
    assert idle == []


@pytest.mark.parametrize("row", ADVICE, ids=lambda row: f"{row.how} {row.name} {row.since}")
def test_advice_says_what_to_do_or_the_new_name(row: Advice) -> None:
    assert bool(row.says) != bool(row.renamed_to)
    assert (row.how == "renamed") == bool(row.renamed_to)
    assert not row.says or re.fullmatch(r"[A-Z].*[^.]\.", row.says)
