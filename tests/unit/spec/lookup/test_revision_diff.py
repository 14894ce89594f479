"""`spec/lookup/revision_diff.py`: what changes between two revisions, and what to do about it."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

from trunkline.spec.lookup.revision_diff import Detail, SpecChange, diff
from trunkline.spec.profiles import UnknownRevision
from trunkline.spec.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)
from trunkline.spec.rows import How, Subject

NEWEST = diff(V2025_11_25, V2026_07_28)


def names(subject: Subject, how: How, before: str, after: str) -> list[str]:
    return [change.name for change in diff(before, after).of(subject, how)]


def only(subject: Subject, name: str, before: str, after: str, role: str = "") -> SpecChange:
    found = [
        change
        for change in diff(before, after).of(subject)
        if change.name == name and change.role == role
    ]
    assert len(found) == 1
    return found[0]


def newest(subject: Subject, name: str, role: str = "") -> SpecChange:
    return only(subject, name, V2025_11_25, V2026_07_28, role)


# --- as a whole


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_does_not_differ_from_itself(revision: str) -> None:
    assert diff(revision, revision).changes == ()


@pytest.mark.parametrize(("before", "after"), [*permutations(REVISIONS, 2)])
def test_a_thing_changes_in_one_way(before: str, after: str) -> None:
    changes = diff(before, after).changes
    assert len({(change.subject, change.name, change.role) for change in changes}) == len(changes)


@pytest.mark.parametrize(("newer", "older"), [*pairwise(reversed(REVISIONS))])
def test_the_way_back_has_the_same_differences_turned_round(newer: str, older: str) -> None:
    def set_of(how: How, before: str, after: str) -> set[tuple[str, str, str]]:
        changes = diff(before, after).changes
        return {(c.subject, c.role, c.name) for c in changes if c.how == how}

    there = diff(older, newer).changes
    renamed = [change for change in there if change.how == "renamed"]
    assert set_of("removed", newer, older) == set_of("added", older, newer) | {
        (change.subject, change.role, change.renamed_to) for change in renamed
    }
    assert set_of("added", newer, older) == set_of("removed", older, newer) | {
        (change.subject, change.role, change.name) for change in renamed
    }
    # What changes is told by columns, or on the way there by its advice alone.
    advised = {(c.subject, c.role, c.name) for c in there if c.how == "changed" and not c.details}
    assert set_of("changed", newer, older) == set_of("changed", older, newer) - advised


@pytest.mark.parametrize(("newer", "older"), [*pairwise(reversed(REVISIONS))])
def test_the_way_back_has_no_advice(newer: str, older: str) -> None:
    for change in diff(newer, older).changes:
        assert (change.to_do, change.renamed_to) == ("", "")


def test_a_diff_names_its_revisions() -> None:
    assert (NEWEST.before, NEWEST.after) == (V2025_11_25, V2026_07_28)


def test_changes_can_be_asked_for_by_subject_and_kind() -> None:
    methods = NEWEST.of("method")
    assert {change.subject for change in methods} == {"method"}
    assert {change.how for change in methods} == {"added", "removed", "renamed", "changed"}
    removed = NEWEST.of("method", "removed")
    assert set(removed) < set(methods)
    assert {change.how for change in removed} == {"removed"}


@pytest.mark.parametrize(("before", "after"), [("draft", V2026_07_28), (V2025_11_25, "draft")])
def test_a_revision_that_was_not_released_is_refused(before: str, after: str) -> None:
    with pytest.raises(UnknownRevision, match="draft"):
        diff(before, after)


# --- the newest step, as a migration guide would tell it


def test_the_newest_revision_removes_methods_and_says_what_to_do() -> None:
    removed = {change.name: change.to_do for change in NEWEST.of("method", "removed")}
    assert removed.keys() == {
        "initialize",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
        "logging/setLevel",
        "tasks/result",
        "tasks/list",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/elicitation/complete",
    }
    assert all(removed.values())
    assert "subscriptions/listen" in removed["resources/subscribe"]
    assert "server/discover" in removed["initialize"]
    assert removed["ping"].startswith("Send nothing")


def test_the_newest_revision_adds_methods_and_says_what_to_do() -> None:
    added = {change.name: change.to_do for change in NEWEST.of("method", "added")}
    assert added.keys() == {
        "server/discover",
        "subscriptions/listen",
        "tasks/update",
        "notifications/subscriptions/acknowledged",
    }
    assert all(added.values())


def test_a_method_under_a_new_name_is_renamed() -> None:
    assert NEWEST.of("method", "renamed") == (
        SpecChange(
            "method",
            "renamed",
            "notifications/tasks/status",
            renamed_to="notifications/tasks",
            to_do="Read notifications/tasks on a subscriptions/listen stream whose filter has the"
            " task's id.",
        ),
    )


def test_changed_method_lists_its_changed_columns() -> None:
    change = newest("method", "sampling/createMessage")
    assert change.how == "changed"
    assert change.details == (
        Detail("result", "CreateMessageResult | CreateTaskResult", "CreateMessageResult"),
        Detail("form", "wire", "inside-result"),
        Detail("status", "stable", "deprecated"),
    )
    assert change.to_do.startswith("Put it into the inputRequests")


def test_yes_and_no_are_said_as_words() -> None:
    assert Detail("params required", "no", "yes") in newest("method", "tools/list").details


def test_a_column_without_value_is_none() -> None:
    assert newest("method", "notifications/tools/list_changed").details == (
        Detail("only on the stream of", "none", "subscriptions/listen"),
    )


def test_a_method_may_change_in_what_no_column_holds() -> None:
    change = newest("method", "notifications/cancelled")
    assert change.details == ()
    assert change.to_do.startswith("Over HTTP close the response stream")


def test_changed_capability_has_its_role() -> None:
    removed = {(c.role, c.name) for c in NEWEST.of("capability", "removed")}
    assert {("client", "roots.listChanged"), ("client", "tasks"), ("server", "tasks")} <= removed
    added = {(c.role, c.name) for c in NEWEST.of("capability", "added")}
    assert {("client", "extensions"), ("server", "extensions")} <= added


def test_unchanged_capability_is_not_listed() -> None:
    assert "tools" not in [change.name for change in NEWEST.of("capability")]


def test_headers_come_and_go() -> None:
    assert names("header", "removed", V2025_11_25, V2026_07_28) == [
        "Mcp-Session-Id",
        "Last-Event-ID",
    ]
    assert names("header", "added", V2025_11_25, V2026_07_28) == [
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-{Name}",
        "X-Accel-Buffering",
    ]
    assert newest("header", "MCP-Protocol-Version").details == (
        Detail("required on", "every request after initialize", "every POST"),
    )


def test_meta_keys_come_and_go() -> None:
    assert len(NEWEST.of("meta key", "added")) == 9
    assert names("meta key", "removed", V2025_11_25, V2026_07_28) == [
        "io.modelcontextprotocol/related-task",
        "io.modelcontextprotocol/model-immediate-response",
    ]


def test_a_transport_changes() -> None:
    change = newest("transport", "streamable-http")
    assert change.to_do.startswith("Drop GET, DELETE, sessions")
    assert {detail.what for detail in change.details} == {"required", "optional"}


def test_an_error_changes_its_number() -> None:
    assert newest("error", "RESOURCE_NOT_FOUND") == SpecChange(
        "error",
        "changed",
        "RESOURCE_NOT_FOUND",
        details=(Detail("number", "-32002", "-32602"),),
        to_do="Answer with -32602; still read -32002 from older servers.",
    )


def test_an_error_may_no_longer_be_sent() -> None:
    assert newest("error", "URL_ELICITATION_REQUIRED").details == (
        Detail("may be sent", "yes", "no"),
    )


def test_errors_come_and_go() -> None:
    assert "MISSING_REQUEST_META" in names("error", "added", V2025_11_25, V2026_07_28)
    assert "NOT_INITIALIZED" in names("error", "removed", V2025_11_25, V2026_07_28)


# --- types and fields


def test_types_come_and_go() -> None:
    assert "DiscoverResult" in names("type", "added", V2025_11_25, V2026_07_28)
    assert "InitializeResult" in names("type", "removed", V2025_11_25, V2026_07_28)


def test_a_type_under_a_new_name_is_renamed() -> None:
    change = only("type", "ResourceReference", V2025_03_26, V2025_06_18)
    assert (change.how, change.renamed_to) == ("renamed", "ResourceTemplateReference")
    assert "ResourceTemplateReference" not in names("type", "added", V2025_03_26, V2025_06_18)


def test_a_type_may_change_its_kind() -> None:
    change = only("type", "EnumSchema", V2025_06_18, V2025_11_25)
    assert Detail("kind", "object", "union") in change.details


def test_order_of_a_union_does_not_matter() -> None:
    assert "TaskStatus" not in [change.name for change in NEWEST.of("type")]


def test_fields_come_with_advice_for_all_of_their_name() -> None:
    for name in ("CallToolResult.resultType", "CompleteResult.resultType"):
        change = newest("field", name)
        assert change.how == "added"
        assert change.to_do.startswith("Set it on every result")


def test_advice_on_the_very_field_goes_before_advice_on_its_name() -> None:
    assert newest("field", "ListToolsResult.ttlMs").to_do.endswith("0 disables caching.")
    assert newest("field", "CreateTaskResult.ttlMs").to_do.endswith("null means without limit.")


def test_a_field_under_a_new_name_is_renamed() -> None:
    change = newest("field", "Task.ttl")
    assert (change.how, change.renamed_to) == ("renamed", "Task.ttlMs")
    assert "Task.ttlMs" not in names("field", "added", V2025_11_25, V2026_07_28)


def test_a_field_changes_its_type_or_becomes_required() -> None:
    assert newest("field", "CallToolResult.structuredContent").details == (
        Detail("type", "map<any>", "any"),
    )
    assert Detail("required", "no", "yes") in newest("field", "RequestParams._meta").details


def test_advice_on_a_field_belongs_to_the_revision_that_asks_for_it() -> None:
    name = "CancelledNotificationParams.requestId"
    optional = only("field", name, V2025_06_18, V2025_11_25)
    assert (optional.details, optional.to_do) == ((Detail("required", "yes", "no"),), "")
    assert newest("field", name).to_do == "Always send it."


def test_fields_of_a_new_type_are_not_listed() -> None:
    assert not [c for c in NEWEST.of("field") if c.name.startswith("DiscoverResult.")]


# --- over several revisions


def test_method_added_and_removed_in_between_is_not_listed() -> None:
    changes = diff(V2025_06_18, V2026_07_28).of("method")
    assert "tasks/list" not in [change.name for change in changes]


def test_over_several_revisions_the_newest_advice_counts() -> None:
    change = only("method", "elicitation/create", V2025_03_26, V2026_07_28)
    assert change.how == "added"
    assert change.to_do.startswith("Put it into the inputRequests")


def test_diff_of_the_first_two_revisions_matches_the_changelog() -> None:
    steps = diff(V2024_11_05, V2025_03_26)
    assert [change.name for change in steps.of("capability", "added")] == ["completions"]
    assert [change.name for change in steps.of("transport", "added")] == ["streamable-http"]
    assert [change.name for change in steps.of("transport", "changed")] == ["http+sse"]
    assert "JSONRPCBatchRequest" in [change.name for change in steps.of("type", "added")]
    assert "Tool.annotations" in [change.name for change in steps.of("field", "added")]
    assert [change.name for change in steps.of("method")] == ["completion/complete"]
