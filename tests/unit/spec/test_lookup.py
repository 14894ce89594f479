"""`spec/lookup` and the front of `spec`: rows by name and revision."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from trunkline import spec
from trunkline.spec import lookup
from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.lookup import (
    capabilities,
    capability,
    error,
    errors,
    explain_method,
    header,
    headers,
    meta_key,
    meta_keys,
    method,
    method_status,
    methods,
    specification,
    transport,
    transports,
)
from trunkline.spec.profiles import PROFILE_NAMES, UnknownProfile, UnknownRevision, profile
from trunkline.spec.revisions import (
    LATEST,
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)

# --- methods


def test_a_method_is_as_its_revision_has_it() -> None:
    results = []
    for revision in REVISIONS:
        found = method("tools/call", revision)
        assert found is not None
        results.append(found.result)
    assert results == [
        "CallToolResult",
        "CallToolResult",
        "CallToolResult",
        "CallToolResult | CreateTaskResult",
        "InputRequiredResult | CallToolResult",
    ]


def test_a_method_may_change_its_direction() -> None:
    senders = {}
    for revision in (V2025_11_25, V2026_07_28):
        found = method("notifications/progress", revision)
        assert found is not None
        senders[revision] = found.senders
    assert senders == {V2025_11_25: ("client", "server"), V2026_07_28: ("server",)}


def test_a_method_may_move_into_a_result() -> None:
    before, after = (method("elicitation/create", r) for r in (V2025_11_25, V2026_07_28))
    assert before is not None
    assert after is not None
    assert (before.form, after.form) == ("wire", "inside-result")


def test_a_method_of_another_revision_is_none() -> None:
    assert method("server/discover", V2025_11_25) is None
    assert method("ping", V2026_07_28) is None
    assert method("tool/call") is None


def test_methods_come_in_the_order_of_the_rows() -> None:
    names = [row.name for row in methods(V2024_11_05)]
    assert names[:3] == ["initialize", "ping", "resources/list"]
    assert names[-1] == "notifications/message"
    assert len(names) == 24


def test_the_rows_of_a_revision_are_cut_once() -> None:
    assert methods(V2025_06_18) is methods(V2025_06_18)


@pytest.mark.parametrize(
    ("name", "revision", "status"),
    [
        ("tools/call", LATEST, "stable"),
        ("tasks/get", V2025_11_25, "experimental"),
        ("roots/list", V2026_07_28, "deprecated"),
        ("ping", V2026_07_28, "removed"),
        ("notifications/tasks/status", V2026_07_28, "removed"),
        ("tasks/get", V2025_06_18, None),
        ("tool/call", LATEST, None),
    ],
)
def test_a_method_has_a_status(name: str, revision: str, status: str | None) -> None:
    assert method_status(name, revision) == status


# --- why a method is or is not there


def test_a_method_that_is_there_is_introduced() -> None:
    assert explain_method("sampling/createMessage", V2026_07_28) == (
        "MCP 2026-07-28 has sampling/createMessage: a request that the server sends inside a"
        " result. It was added in 2024-11-05, and is deprecated."
    )


def test_a_method_of_an_extension_is_introduced_with_it() -> None:
    assert explain_method("tasks/update") == (
        "MCP 2026-07-28 has tasks/update in the extension io.modelcontextprotocol/tasks:"
        " a request that the client sends. It was added in 2026-07-28."
    )


def test_either_side_sends_what_both_may() -> None:
    assert "a request that either side sends" in explain_method("ping", V2025_06_18)


def test_explain_method_names_the_revision_that_adds_a_method() -> None:
    assert explain_method("elicitation/create", V2025_03_26) == (
        "MCP 2025-03-26 does not have elicitation/create yet: it was added in 2025-06-18."
    )


def test_explain_method_says_what_replaces_a_removed_method() -> None:
    assert explain_method("resources/subscribe") == (
        "MCP 2026-07-28 no longer has resources/subscribe: it was last in 2025-11-25."
        " Open a stream with subscriptions/listen and name the URI under resourceSubscriptions."
    )


def test_explain_method_suggests_the_nearest_name() -> None:
    assert explain_method("tool/call") == (
        "No revision of MCP has a method 'tool/call'. Did you mean 'tools/call'?"
    )


def test_explain_method_makes_no_suggestion_without_a_near_name() -> None:
    assert explain_method("qqqq") == "No revision of MCP has a method 'qqqq'."


def test_a_name_without_end_is_not_repeated() -> None:
    assert explain_method("x" * 1_000_000) == (
        "No revision of MCP has a method with such a long name."
    )


# --- capabilities


def test_a_capability_of_one_side_needs_no_role() -> None:
    found = capability("resources.subscribe")
    assert found is not None
    assert (found.role, found.kind) == ("server", "flag")


def test_a_capability_of_both_sides_needs_a_role() -> None:
    with pytest.raises(ValueError, match="both sides can declare 'tasks'"):
        capability("tasks", V2025_11_25)
    for role in ("client", "server"):
        found = capability("tasks", V2025_11_25, role)
        assert found is not None
        assert found.role == role


def test_a_capability_of_the_other_side_is_none() -> None:
    assert capability("tools", LATEST, "client") is None
    assert capability("sampling", LATEST, "server") is None


def test_a_capability_of_another_revision_is_none() -> None:
    assert capability("elicitation", V2025_03_26) is None
    assert capability("roots.listChanged", V2026_07_28) is None


def test_capabilities_can_be_asked_for_by_side() -> None:
    both, ours = capabilities(V2024_11_05), capabilities(V2024_11_05, "client")
    assert [row.name for row in ours] == ["experimental", "roots", "roots.listChanged", "sampling"]
    assert both[: len(ours)] == ours
    assert {row.role for row in both[len(ours) :]} == {"server"}


# --- transports, headers, keys


def test_a_transport_may_become_deprecated() -> None:
    first, second = (transport("http+sse", r) for r in (V2024_11_05, V2025_03_26))
    assert first is not None
    assert second is not None
    assert (first.status, second.status) == ("stable", "deprecated")


def test_a_transport_of_our_own_is_in_every_revision_and_says_so() -> None:
    for revision in REVISIONS:
        found = transport("tcp", revision)
        assert found is not None
        assert found.custom
        assert found in transports(revision)


def test_a_transport_of_another_revision_is_none() -> None:
    assert transport("streamable-http", V2024_11_05) is None
    assert transport("carrier-pigeon") is None


@pytest.mark.parametrize(
    "name", ["MCP-Protocol-Version", "mcp-protocol-version", "Mcp-Protocol-VERSION"]
)
def test_a_header_is_found_in_any_case(name: str) -> None:
    found = header(name)
    assert found is not None
    assert found.name == "MCP-Protocol-Version"


@pytest.mark.parametrize("name", ["Mcp-Param-Region", "mcp-param-x-y", "Mcp-Param-{Name}"])
def test_a_header_is_found_by_its_family(name: str) -> None:
    found = header(name)
    assert found is not None
    assert found.name == "Mcp-Param-{Name}"


@pytest.mark.parametrize("name", ["Mcp-Param-", "Mcp-Para", "X-Mcp-Param-Region", ""])
def test_header_outside_a_family_is_none(name: str) -> None:
    assert header(name) is None


def test_a_family_has_a_window_too() -> None:
    assert header("Mcp-Param-Region", V2025_11_25) is None


def test_the_headers_of_the_first_revision_are_one() -> None:
    assert [row.name for row in headers(V2024_11_05)] == ["Origin"]


def test_a_key_has_a_meaning_in_its_revisions() -> None:
    found = meta_key("io.modelcontextprotocol/clientCapabilities")
    assert found is not None
    assert (found.required, found.type) == ("must", "ClientCapabilities")
    assert meta_key("io.modelcontextprotocol/clientCapabilities", V2025_11_25) is None
    assert meta_key("com.example/mine") is None


def test_the_first_revision_knows_one_key() -> None:
    assert [row.key for row in meta_keys(V2024_11_05)] == ["progressToken"]


# --- errors


def test_a_number_means_what_its_profile_and_revision_say() -> None:
    def symbol(number: int, name: str, revision: str) -> str:
        row = error(number, name, revision)
        assert row is not None
        return row.symbol

    assert symbol(-32002, "mcp", V2025_11_25) == "RESOURCE_NOT_FOUND"
    assert symbol(-32002, "erlmcp", V2025_11_25) == "TOOL_NOT_FOUND"
    assert symbol(-32602, "mcp", LATEST) == "INVALID_PARAMS"
    assert error(-31999) is None


def test_a_symbol_finds_the_number_that_is_sent() -> None:
    before, after = (error("RESOURCE_NOT_FOUND", revision=r) for r in (V2025_11_25, V2026_07_28))
    assert before is not None
    assert after is not None
    assert (before.number, after.number) == (-32002, -32602)
    assert error(ErrorKind.RESOURCE_NOT_FOUND) is after


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_symbol_finds_the_row_that_its_profile_sends(name: str, revision: str) -> None:
    for symbol in profile(name).symbols(revision):
        assert error(symbol, name, revision) is profile(name).of_kind(symbol, revision)


def test_a_symbol_that_is_only_read_is_found_and_says_so() -> None:
    found = error("URL_ELICITATION_REQUIRED", revision=V2026_07_28)
    assert found is not None
    assert not found.sent


def test_error_of_an_unknown_symbol_is_none() -> None:
    assert error("RESOURCE_NOT_FUOND") is None
    assert error("URL_ELICITATION_REQUIRED", revision=V2025_06_18) is None


def test_errors_are_the_rows_of_a_profile_that_hold() -> None:
    assert {row.number for row in errors(V2026_07_28)} >= {-32020, -32021, -32022, -32002}
    assert -32020 not in {row.number for row in errors(V2025_11_25)}
    assert errors(profile="erlmcp") == tuple(
        row for row in profile("erlmcp").codes if row.when.holds(LATEST)
    )


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UnknownProfile):
        error("PARSE_ERROR", "nobody")
    with pytest.raises(UnknownProfile):
        errors(profile="nobody")


# --- all together


def test_a_specification_has_every_table() -> None:
    whole = specification(V2025_06_18)
    assert (whole.revision, whole.base) == (V2025_06_18, "JSON-RPC 2.0")
    assert whole.methods is methods(V2025_06_18)
    assert whole.capabilities == capabilities(V2025_06_18)
    assert whole.transports == transports(V2025_06_18)
    assert whole.headers == headers(V2025_06_18)
    assert whole.meta_keys == meta_keys(V2025_06_18)
    assert whole.errors == errors(V2025_06_18)


@pytest.mark.parametrize(
    "ask",
    [
        lambda revision: method("tools/call", revision),
        lambda revision: explain_method("tools/call", revision),
        lambda revision: method_status("tools/call", revision),
        lambda revision: capability("tools", revision),
        lambda revision: transport("stdio", revision),
        lambda revision: header("Origin", revision),
        lambda revision: meta_key("progressToken", revision),
        lambda revision: error(-32700, revision=revision),
        lambda revision: error("PARSE_ERROR", revision=revision),
        methods,
        capabilities,
        transports,
        headers,
        meta_keys,
        errors,
        specification,
    ],
)
@pytest.mark.parametrize("revision", ["2024-10-07", "", "2026-07-29", "draft"])
def test_a_revision_that_was_not_released_is_refused(
    ask: Callable[[str], object], revision: str
) -> None:
    with pytest.raises(UnknownRevision, match=V2025_11_25):
        ask(revision)


def test_the_newest_revision_is_meant_where_none_is_given() -> None:
    assert methods() is methods(LATEST)
    assert method("tools/call") is method("tools/call", LATEST)
    assert capabilities() == capabilities(LATEST)
    assert transports() == transports(LATEST)
    assert headers() == headers(LATEST)
    assert meta_keys() == meta_keys(LATEST)
    assert errors() == errors(LATEST)
    assert specification() == specification(LATEST)


def test_asking_for_what_is_not_there_leaves_nothing_behind() -> None:
    # Names come from peers: remembering them would let one fill the memory.
    method("tools/call")
    before = len(lookup._METHODS._slices), len(lookup._METHODS.of(LATEST).by_key)
    for number in range(100):
        assert method(f"x{number}") is None
        with pytest.raises(UnknownRevision):
            method("tools/call", f"x{number}")
    assert (len(lookup._METHODS._slices), len(lookup._METHODS.of(LATEST).by_key)) == before


# --- the front of the package

FRONT = """
    Detail Diff MetaProblem SpecChange Specification all_types capabilities capability
    check_meta_key diff error errors explain_method header headers http_condition http_status
    http_statuses json_schema meta_key meta_keys
    method method_status methods specification transport transports type
"""


def test_the_front_has_the_pinned_names() -> None:
    assert sorted(spec.__all__) == sorted(FRONT.split())
    assert dir(spec) == sorted(FRONT.split())


def test_the_front_hands_out_what_the_modules_define() -> None:
    from trunkline.spec import types
    from trunkline.spec.lookup import meta_key_check, revision_diff, schemas

    homes = {
        "diff": revision_diff.diff,
        "Diff": revision_diff.Diff,
        "SpecChange": revision_diff.SpecChange,
        "Detail": revision_diff.Detail,
        "check_meta_key": meta_key_check.check_meta_key,
        "MetaProblem": meta_key_check.MetaProblem,
        "json_schema": schemas.json_schema,
        "type": types.type_,
        "all_types": types.types,
    }
    for name in spec.__all__:
        expected = homes[name] if name in homes else getattr(lookup, name)
        assert getattr(spec, name) is expected


def test_a_module_of_the_package_stays_a_module() -> None:
    # A function of the same name would be replaced by the module whenever that is loaded.
    for name in spec.__all__:
        assert f"trunkline.spec.{name}" not in sys.modules


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        spec.nothing  # noqa: B018


def test_the_front_loads_nothing_until_asked_and_then_only_the_table() -> None:
    script = (
        "import sys\n"
        "def loaded():\n"
        "    names = (name.removeprefix('trunkline.spec.') for name in sys.modules)\n"
        "    return sorted(name for name in names if name.startswith('mcp.') or name == 'lookup')\n"
        "from trunkline import spec\n"
        "print(*loaded())\n"
        "spec.method('tools/call')\n"
        "print(*loaded())\n"
        "print(*(name for name in ('msgspec', 'asyncio', 'dataclasses', 'inspect', 'difflib')"
        " if name in sys.modules))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.splitlines() == ["", "lookup mcp.methods mcp.tasks_extension", ""]
