"""Other names of methods, taken and given as a policy says."""

from __future__ import annotations

import pytest

from trunkline.jsonrpc import Policy
from trunkline.mcp.names import official, spoken
from trunkline.spec.lookup import method, methods
from trunkline.spec.mcp.methods import ALIASES, METHODS, Alias
from trunkline.spec.revisions import REVISIONS, V2025_11_25, V2026_07_28
from trunkline.spec.types import UnknownRevision

PREFIXED = Policy()
ACCEPTING = Policy(method_names="accept-bare")
BARE = Policy(method_names="emit-bare")

OTHERS = {
    "initialized": "notifications/initialized",
    "cancelled": "notifications/cancelled",
    "progress": "notifications/progress",
    "message": "notifications/message",
    "resources/updated": "notifications/resources/updated",
    "tools/list_changed": "notifications/tools/list_changed",
    "notifications/roots/listChanged": "notifications/roots/list_changed",
    "roots/listChanged": "notifications/roots/list_changed",
    "logging/logMessage": "notifications/message",
    "sampling/create_message": "sampling/createMessage",
    "logging/set_level": "logging/setLevel",
    "tool/execute": "tools/call",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_taken_only_by_a_policy_that_says_so(name: str) -> None:
    assert official(name, PREFIXED, V2025_11_25) == name
    assert official(name, ACCEPTING, V2025_11_25) == OTHERS[name]
    assert official(name, BARE, V2025_11_25) == OTHERS[name]


@pytest.mark.parametrize("policy", [PREFIXED, ACCEPTING, BARE])
@pytest.mark.parametrize("revision", REVISIONS)
def test_official_names_stay_and_come_back(policy: Policy, revision: str) -> None:
    for row in methods(revision):
        assert official(row.name, policy, revision) == row.name
        assert official(spoken(row.name, policy), policy, revision) == row.name


def test_an_alias_of_what_a_revision_lacks_is_unheard_of() -> None:
    assert official("initialized", ACCEPTING, V2026_07_28) == "initialized"
    assert official("logging/set_level", ACCEPTING, V2026_07_28) == "logging/set_level"
    assert official("progress", ACCEPTING, V2026_07_28) == "notifications/progress"


@pytest.mark.parametrize("name", ["", "nothing", "notifications/", "Initialized", "x" * 100_000])
def test_unheard_of_names_stay(name: str) -> None:
    for policy in (PREFIXED, ACCEPTING, BARE):
        assert official(name, policy, V2025_11_25) == name
        assert spoken(name, policy) == name


def test_notifications_are_sent_bare_only_by_a_policy_that_says_so() -> None:
    assert spoken("notifications/progress", PREFIXED) == "notifications/progress"
    assert spoken("notifications/progress", ACCEPTING) == "notifications/progress"
    assert spoken("notifications/progress", BARE) == "progress"
    assert spoken("notifications/tools/list_changed", Policy.erlmcp()) == "tools/list_changed"
    assert spoken("tools/call", BARE) == "tools/call"


def test_requests_are_never_sent_under_another_name() -> None:
    for row in METHODS:
        assert (spoken(row.name, BARE) == row.name) == (row.kind == "request")


@pytest.mark.parametrize("row", ALIASES, ids=lambda row: row.spelling)
def test_an_alias_leads_to_a_method_and_is_none_itself(row: Alias) -> None:

    assert any(method(row.official, revision) for revision in REVISIONS)
    assert not any(method(row.spelling, revision) for revision in REVISIONS)


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(UnknownRevision):
        official("progress", ACCEPTING, "2020-01-01")
