"""The method rows say what the official schema files say, in both directions.

`digests/` holds the methods of those files and what they are made of. The tasks extension
is not in them: its rows are held against the types of the extension.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from trunkline.spec.lookup import method, methods
from trunkline.spec.mcp.methods import (
    EXTENSION_METHODS,
    METHODS,
    REPEATABLE_NOTIFICATIONS,
    REPEATABLE_REQUESTS,
)
from trunkline.spec.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_11_25,
    V2026_07_28,
)
from trunkline.spec.rows import Method
from trunkline.spec.types import Expr, need, parse, type_, types

DIGESTS: Final[dict[str, dict[str, Any]]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "digests").glob("*.json"))
}
EXTENSION_ROWS: Final = [row for row in METHODS if row.extension]

each_revision = pytest.mark.parametrize("revision", REVISIONS)
each_extension_row = pytest.mark.parametrize("row", EXTENSION_ROWS, ids=lambda row: row.name)


def core(revision: str) -> dict[str, Method]:
    """Return the methods that the official file of a revision should have."""
    return {row.name: row for row in methods(revision) if not row.extension}


def members(expression: str | None) -> frozenset[Expr]:
    """Return what a result may be; the order of a union does not matter."""
    if expression is None:
        return frozenset()
    expr = parse(expression)
    return frozenset(expr.of if expr.kind == "union" else [expr])


def differences(ours: Method, theirs: dict[str, Any]) -> Iterator[str]:
    if ours.kind != theirs["kind"]:
        yield f"{ours.name}: {ours.kind}, officially {theirs['kind']}"
    if set(ours.senders) != set(theirs["by"]):
        yield f"{ours.name}: sent by {ours.by}, officially {theirs['by']}"
    if ours.params != theirs["params"]:
        yield f"{ours.name}: params {ours.params}, officially {theirs['params']}"
    if members(ours.result) != members(theirs["result"]):
        yield f"{ours.name}: result {ours.result}, officially {theirs['result']}"
    if ours.form != theirs["form"]:
        yield f"{ours.name}: {ours.form}, officially {theirs['form']}"


def params_of(shapes: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """Return whether each method of a digest must have params."""
    fields = (shape.get("fields", {}) for shape in shapes.values())
    return {
        of["method"]["type"][1:-1]: of["params"]["required"]
        for of in fields
        if of.get("method", {}).get("type", "").startswith("'") and "params" in of
    }


@each_revision
def test_every_official_method_has_a_row(revision: str) -> None:
    assert DIGESTS[revision]["methods"].keys() - core(revision).keys() == set()


@each_revision
def test_every_row_is_an_official_method(revision: str) -> None:
    assert core(revision).keys() - DIGESTS[revision]["methods"].keys() == set()


@each_revision
def test_kind_direction_types_and_form_are_the_official_ones(revision: str) -> None:
    found = [
        line
        for name, theirs in DIGESTS[revision]["methods"].items()
        for line in differences(core(revision)[name], theirs)
    ]
    assert found == []


@each_revision
def test_params_are_required_where_the_official_file_requires_them(revision: str) -> None:
    official = params_of(DIGESTS[revision]["types"])
    assert len(official) == len(DIGESTS[revision]["methods"])
    assert {name: row.params_required for name, row in core(revision).items()} == official


def test_a_difference_is_seen() -> None:
    # The comparison above is worth what it finds: give it one of each.
    row = Method("x", "request", "client", "XParams", "XResult | YResult")
    theirs = {
        "kind": "notification",
        "by": ["client", "server"],
        "params": None,
        "result": "XResult",
        "form": "inside-result",
    }
    assert len(list(differences(row, theirs))) == 5


def test_order_of_a_union_does_not_matter() -> None:
    row = Method("x", "request", "both", None, "XResult | YResult")
    theirs = {
        "kind": "request",
        "by": ["client", "server"],
        "params": None,
        "result": "YResult | XResult",
        "form": "wire",
    }
    assert list(differences(row, theirs)) == []


# The extension


def test_the_tasks_extension_has_three_requests_and_a_notification() -> None:
    assert [row.name for row in EXTENSION_ROWS] == [
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "notifications/tasks",
    ]


@each_extension_row
def test_the_types_of_an_extension_row_belong_to_the_extension(row: Method) -> None:
    for name in (row.params, row.result):
        if name is not None:
            assert need(name, V2026_07_28).extension == row.extension


@each_extension_row
def test_an_extension_row_has_a_message_type_with_its_name(row: Method) -> None:
    named = [
        view
        for view in types(V2026_07_28).values()
        if "method" in view.fields and view.fields["method"].type == f"'{row.name}'"
    ]
    assert [(view.extension, view.fields["params"].type) for view in named] == [
        (row.extension, row.params)
    ]


# What the files cannot say


@pytest.mark.parametrize("row", METHODS, ids=lambda row: f"{row.name} {row.when.since}")
def test_types_exist_in_every_revision_of_the_row(row: Method) -> None:
    named = [row.params] if row.params else []
    named += [member.name for member in members(row.result)]
    for revision in REVISIONS:
        if row.when.holds(revision):
            assert [name for name in named if type_(name, revision) is None] == []


@pytest.mark.parametrize("row", METHODS, ids=lambda row: f"{row.name} {row.when.since}")
def test_method_is_a_notification_iff_its_name_has_the_prefix(row: Method) -> None:
    assert (row.kind == "notification") == row.name.startswith("notifications/")
    assert (row.kind == "notification") == (row.result is None)


@each_revision
def test_the_handshake_and_ping_are_required_until_discover_is(revision: str) -> None:
    required = {row.name for row in methods(revision) if row.required}
    if revision == V2026_07_28:
        assert required == {"server/discover"}
    else:
        assert required == {"initialize", "ping", "notifications/initialized"}


def test_only_waiting_methods_last() -> None:
    lasting = {(row.name, row.when.since) for row in METHODS if row.lasting}
    assert lasting == {("subscriptions/listen", V2026_07_28), ("tasks/result", V2025_11_25)}


def test_every_request_draws_one_reply() -> None:
    # A stream of subscriptions/listen carries notifications; its one result ends it.
    assert {row.replies for row in METHODS} == {"one"}


def test_servers_send_no_requests_in_the_newest_revision() -> None:
    on_the_wire = [row for row in methods(V2026_07_28) if row.form == "wire"]
    assert {row.by for row in on_the_wire if row.kind == "request"} == {"client"}


@each_revision
def test_change_notifications_travel_on_listen_streams_in_the_newest_revision(
    revision: str,
) -> None:
    on_a_stream = {row.name for row in methods(revision) if row.stream}
    changes = {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/tasks",
    }
    assert on_a_stream == (changes if revision == V2026_07_28 else set())
    assert {row.stream for row in methods(revision)} <= {"", "subscriptions/listen"}


def test_completion_has_a_capability_since_the_second_revision() -> None:
    gates = []
    for revision in REVISIONS:
        row = method("completion/complete", revision)
        assert row is not None
        gates.append(row.capability)
    assert gates == ["", *["completions"] * 4]


def test_deprecated_methods_are_those_of_the_registry() -> None:
    deprecated = {row.name for row in methods(V2026_07_28) if row.status == "deprecated"}
    assert deprecated == {"sampling/createMessage", "roots/list", "notifications/message"}
    assert {row.status for row in methods(V2024_11_05)} == {"stable"}


def test_tasks_are_experimental_in_the_core_alone() -> None:
    experimental = {row.name for row in METHODS if row.status == "experimental"}
    assert experimental == {
        "tasks/get",
        "tasks/result",
        "tasks/list",
        "tasks/cancel",
        "notifications/tasks/status",
    }
    assert {row.when for row in METHODS if row.status == "experimental"} == {
        (V2025_11_25, V2026_07_28)
    }


@pytest.mark.parametrize(
    ("names", "kind"),
    [(REPEATABLE_REQUESTS, "request"), (REPEATABLE_NOTIFICATIONS, "notification")],
)
def test_every_repeatable_method_is_sent_by_clients(names: frozenset[str], kind: str) -> None:
    for name in names:
        rows = [row for row in METHODS if row.name == name]
        assert all(row.kind == kind for row in rows), name
        # In some revision; in others the server alone may send it.
        is_sent = any("client" in row.senders for row in rows)
        assert is_sent or name in EXTENSION_METHODS, name
