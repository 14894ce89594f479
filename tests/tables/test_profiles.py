"""Every row of every error profile, in every revision."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.cases import for_each
from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.profiles import PROFILE_NAMES, Profile, UnknownSymbol, candidates, profile
from trunkline.spec.profiles import erlmcp as erlmcp_rows
from trunkline.spec.profiles.erlmcp import range_group, range_severity
from trunkline.spec.profiles.pierre import SERVER_ERRORS
from trunkline.spec.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)
from trunkline.spec.rows import ErrorCode

STANDARD = {
    "PARSE_ERROR": -32700,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
}
HANDSHAKE = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
PER_REQUEST = Window(V2026_07_28)

COMBINATIONS = list(product(PROFILE_NAMES, REVISIONS))
ROWS = [
    pytest.param(name, row, id=f"{name} {row.number} {row.symbol} since {row.when.since}")
    for name in PROFILE_NAMES
    for row in profile(name).codes
]


def first_row(owner: Profile, number: int, revision: str) -> ErrorCode:
    return next(row for row in owner.codes if row.number == number and row.when.holds(revision))


# --- every row


@for_each(("name", "row"), ROWS)
def test_a_row_is_found_both_ways_where_it_holds(name: str, row: ErrorCode) -> None:
    owner = profile(name)
    for revision in filter(row.when.holds, REVISIONS):
        assert owner.meaning(row.number, revision) == first_row(owner, row.number, revision)
        if row.sent:
            assert owner.of_kind(row.symbol, revision) == row
            assert owner.number(row.symbol, revision) == row.number
            assert row.symbol in owner.symbols(revision)
        elif row.symbol not in owner.symbols(revision):
            with pytest.raises(UnknownSymbol, match="never sends it"):
                owner.number(row.symbol, revision)


@for_each(("name", "row"), ROWS)
def test_a_number_is_accepted_where_a_row_that_holds_may_be_sent(name: str, row: ErrorCode) -> None:
    owner = profile(name)
    for revision in filter(row.when.holds, REVISIONS):
        sent = [
            r for r in owner.codes if r.number == row.number and r.sent and r.when.holds(revision)
        ]
        assert owner.accepts(row.number, revision) == bool(sent)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_row_is_well_formed(name: str) -> None:
    for row in profile(name).codes:
        assert row.symbol.isidentifier(), row
        assert row.symbol == row.symbol.upper(), row
        assert row.message.strip() == row.message != "", row
        assert row.category, row
        assert row.severity in ("critical", "error", "warning", "info"), row
        assert row.retry in ("retry", "abort", "fallback"), row
        assert row.http is None or 400 <= row.http <= 599, row
        assert len(set(row.data)) == len(row.data), row
        assert any(row.when.holds(revision) for revision in REVISIONS), row


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_row_is_listed_once(name: str) -> None:
    assert [row for row, times in Counter(profile(name).codes).items() if times > 1] == []


@pytest.mark.parametrize(("name", "revision"), COMBINATIONS)
def test_every_profile_sends_the_five_of_json_rpc(name: str, revision: str) -> None:
    owner = profile(name)
    assert {kind: owner.number(kind, revision) for kind in STANDARD} == STANDARD
    assert {kind: owner.to_send(kind, revision) for kind in STANDARD} == {
        kind: (number, None) for kind, number in STANDARD.items()
    }


@pytest.mark.parametrize("kind", STANDARD)
def test_a_code_of_json_rpc_is_the_same_in_every_profile_and_revision(kind: str) -> None:
    numbers = {profile(name).number(kind, revision) for name, revision in COMBINATIONS}
    assert numbers == {STANDARD[kind]}


@pytest.mark.parametrize(("name", "revision"), COMBINATIONS)
def test_the_five_of_json_rpc_are_read_as_themselves(name: str, revision: str) -> None:
    for symbol, number in STANDARD.items():
        meaning = profile(name).meaning(number, revision)
        assert meaning is not None
        assert meaning.symbol == symbol


@pytest.mark.parametrize(("name", "revision"), COMBINATIONS)
def test_every_candidate_is_what_its_profile_reads(name: str, revision: str) -> None:
    for row in profile(name).codes:
        meaning = profile(name).meaning(row.number, revision)
        expected = [(name, meaning)] if meaning is not None else []
        assert [pair for pair in candidates(row.number, revision) if pair[0] == name] == expected


# --- the vocabulary


@pytest.mark.parametrize("kind", ErrorKind)
def test_a_kind_is_used_by_at_least_one_profile(kind: ErrorKind) -> None:
    assert any(row.symbol == kind for name in PROFILE_NAMES for row in profile(name).codes)


def test_a_symbol_of_two_profiles_is_a_kind() -> None:
    owners: dict[str, set[str]] = {}
    for name in PROFILE_NAMES:
        for row in profile(name).codes:
            owners.setdefault(str(row.symbol), set()).add(name)
    shared = {symbol for symbol, names in owners.items() if len(names) > 1}
    assert shared - set(ErrorKind) == set()


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_kind_is_written_as_a_member_in_rows(name: str) -> None:
    plain = [row.symbol for row in profile(name).codes if not isinstance(row.symbol, ErrorKind)]
    assert [symbol for symbol in plain if symbol in set(ErrorKind)] == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_mcp_can_send_every_kind_that_its_revision_has_a_use_for(revision: str) -> None:
    handshake_only = {
        "USER_REJECTED",
        "NOT_INITIALIZED",
        "ALREADY_INITIALIZED",
        "SESSION_NOT_FOUND",
        "SESSION_EXPIRED",
    }
    per_request_only = {"MISSING_REQUEST_META", "INVALID_REQUEST_STATE", "INVALID_INPUT_RESPONSES"}
    one_revision = {
        "URL_ELICITATION_REQUIRED",
        "INVALID_ELICITATION_MODE",
        "TASK_REQUIRED",
        "TASK_NOT_ALLOWED",
    }
    one_revision.add("TASK_ALREADY_COMPLETED")
    missing = handshake_only if PER_REQUEST.holds(revision) else per_request_only
    if revision != V2025_11_25:
        missing = missing | one_revision
    if not Window(V2025_11_25).holds(revision):
        missing = missing | {"TASK_NOT_FOUND"}
    assert set(ErrorKind) - set(profile("mcp").symbols(revision)) == missing


# --- mcp


MCP_NUMBERS = {
    "handshake": {-32700, -32600, -32601, -32602, -32603, -32002, -1, 401, 403},
    V2025_11_25: {-32700, -32600, -32601, -32602, -32603, -32002, -1, -32042, 401, 403},
    V2026_07_28: {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, 401, 403},
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_mcp_sends_the_numbers_of_its_revision_and_no_other(revision: str) -> None:
    mcp = profile("mcp")
    sent = {mcp.number(kind, revision) for kind in mcp.symbols(revision)}
    assert sent == MCP_NUMBERS.get(revision, MCP_NUMBERS["handshake"])
    assert {number for number in range(-33000, 33000) if mcp.accepts(number, revision)} == sent


@pytest.mark.parametrize("revision", REVISIONS)
def test_mcp_reads_what_it_sends_and_what_the_newest_revision_retired(revision: str) -> None:
    mcp = profile("mcp")
    read = {number for number in range(-33000, 33000) if mcp.meaning(number, revision)}
    retired = {-32002, -32042} if PER_REQUEST.holds(revision) else set()
    assert read == MCP_NUMBERS.get(revision, MCP_NUMBERS["handshake"]) | retired


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_refusal_of_access_is_outside_the_range_that_json_rpc_reserves(revision: str) -> None:
    for name in ("mcp", "erlmcp", "pierre"):
        if name == "mcp" or PER_REQUEST.holds(revision):
            for kind in ("UNAUTHORIZED", "INSUFFICIENT_PERMISSIONS", "AUTHORIZATION_FAILED"):
                number = profile(name).to_send(kind, revision)[0]
                is_generic = number in (-32600, -32602, -32603)
                assert is_generic or number not in range(-32768, -31999), (name, kind)
                assert name != "mcp" or not is_generic


@pytest.mark.parametrize("revision", REVISIONS)
def test_mcp_never_sends_the_number_of_a_missing_resource_for_a_tool(revision: str) -> None:
    # the row: K-17
    mcp = profile("mcp")
    senders = {kind for kind in mcp.symbols(revision) if mcp.number(kind, revision) == -32002}
    assert senders == (set() if PER_REQUEST.holds(revision) else {"RESOURCE_NOT_FOUND"})
    assert mcp.to_send(ErrorKind.TOOL_NOT_FOUND, revision) == (-32602, None)


@pytest.mark.parametrize(
    ("number", "symbol", "data"),
    [
        (-32020, "HEADER_MISMATCH", ()),
        (-32021, "MISSING_REQUIRED_CLIENT_CAPABILITY", ("requiredCapabilities",)),
        (-32022, "UNSUPPORTED_PROTOCOL_VERSION", ("supported", "requested")),
    ],
)
def test_the_new_numbers_of_mcp_begin_with_the_newest_revision(
    number: int, symbol: str, data: tuple[str, ...]
) -> None:
    mcp = profile("mcp")
    row = mcp.meaning(number, V2026_07_28)
    assert row is not None
    assert (row.symbol, row.http, row.data, row.sent) == (symbol, 400, data, True)
    assert [revision for revision in HANDSHAKE if mcp.meaning(number, revision) is not None] == []


@pytest.mark.parametrize(
    ("kind", "revision", "number", "http", "data"),
    [
        pytest.param(
            "METHOD_NOT_FOUND", V2025_11_25, -32601, None, (), id="unknown method, handshake"
        ),
        pytest.param(
            "METHOD_NOT_FOUND", V2026_07_28, -32601, 404, (), id="unknown method, per request"
        ),
        pytest.param("MISSING_REQUEST_META", V2026_07_28, -32602, 400, (), id="no _meta"),
        pytest.param("HEADER_MISMATCH", V2025_06_18, -32600, 400, (), id="bad version header"),
        pytest.param("SESSION_NOT_FOUND", V2025_11_25, -32600, 404, (), id="session gone"),
        pytest.param("ORIGIN_NOT_ALLOWED", V2025_11_25, -32600, 403, (), id="Origin"),
        pytest.param("AUTHENTICATION_FAILED", V2026_07_28, -32600, 401, (), id="bad token"),
        pytest.param(
            "INSUFFICIENT_PERMISSIONS",
            V2026_07_28,
            403,
            403,
            ("requiredScopes", "missingScopes"),
            id="scope",
        ),
        pytest.param("MESSAGE_TOO_LARGE", V2026_07_28, -32600, 413, ("maxSize", "unit"), id="K-40"),
        pytest.param("OVERLOADED", V2026_07_28, -32603, 503, ("retryAfterMs",), id="overload"),
        pytest.param("INVALID_CURSOR", V2024_11_05, -32602, None, (), id="K-66"),
        pytest.param("INVALID_TOOL_ARGUMENTS", V2024_11_05, -32602, None, (), id="K-68"),
        pytest.param("TOOL_EXECUTION_FAILED", V2025_11_25, -32603, None, (), id="K-69"),
        pytest.param("USER_REJECTED", V2025_11_25, -1, None, (), id="K-76"),
        pytest.param("TASK_NOT_FOUND", V2025_11_25, -32602, None, (), id="K-77"),
        pytest.param("TASK_REQUIRED", V2025_11_25, -32601, None, (), id="task required"),
        pytest.param(
            "UNSUPPORTED_PROTOCOL_VERSION",
            V2025_11_25,
            -32602,
            None,
            ("supported", "requested"),
            id="K-13",
        ),
    ],
)
def test_an_mcp_refusal_goes_out_as_the_specification_asks(
    kind: str, revision: str, number: int, http: int | None, data: tuple[str, ...]
) -> None:
    row = profile("mcp").of_kind(kind, revision)
    assert (row.number, row.http, row.data) == (number, http, data)


# --- one event, many numbers


@pytest.mark.parametrize(
    ("kind", "name", "revision", "number"),
    [
        *(
            pytest.param("RESOURCE_NOT_FOUND", "mcp", r, -32002, id=f"K-16 mcp {r}")
            for r in HANDSHAKE
        ),
        pytest.param("RESOURCE_NOT_FOUND", "mcp", V2026_07_28, -32602, id="K-16 mcp 2026-07-28"),
        pytest.param("RESOURCE_NOT_FOUND", "erlmcp", V2025_11_25, -32001, id="K-16 erlmcp"),
        pytest.param(
            "RESOURCE_NOT_FOUND", "erlmcp-guide", V2025_11_25, -32008, id="K-16 erlmcp-guide"
        ),
        pytest.param(
            "RESOURCE_NOT_FOUND", "erlmcp-spec", V2025_11_25, -32001, id="K-16 erlmcp-spec"
        ),
        pytest.param(
            "REFUSED_RESOURCE_NOT_FOUND", "erlmcp-spec", V2025_11_25, 1017, id="K-16 refusal C"
        ),
        pytest.param("RESOURCE_NOT_FOUND", "pierre", V2025_11_25, -32601, id="K-16 pierre"),
        pytest.param("RESOURCE_NOT_FOUND", "pierre-a2a", V2025_11_25, -32009, id="K-16 pierre-a2a"),
        *(pytest.param("TOOL_NOT_FOUND", "mcp", r, -32602, id=f"K-17 mcp {r}") for r in REVISIONS),
        pytest.param("TOOL_NOT_FOUND", "erlmcp", V2025_11_25, -32002, id="K-17 erlmcp"),
        pytest.param("TOOL_NOT_FOUND", "erlmcp-guide", V2025_11_25, -32009, id="K-17 erlmcp-guide"),
        pytest.param("TOOL_NOT_FOUND", "erlmcp-spec", V2025_11_25, -32002, id="K-17 erlmcp-spec"),
        pytest.param("TOOL_NOT_FOUND", "pierre", V2025_11_25, -32601, id="K-17 pierre"),
        *(
            pytest.param("PROMPT_NOT_FOUND", "mcp", r, -32602, id=f"K-18 mcp {r}")
            for r in REVISIONS
        ),
        pytest.param("PROMPT_NOT_FOUND", "erlmcp", V2025_11_25, -32003, id="K-18 erlmcp"),
        pytest.param(
            "PROMPT_NOT_FOUND", "erlmcp-guide", V2025_11_25, -32010, id="K-18 erlmcp-guide"
        ),
        pytest.param(
            "CLIENT_NOT_REGISTERED", "pierre-a2a", V2025_11_25, -32003, id="K-18 pierre-a2a"
        ),
        *(pytest.param("NOT_INITIALIZED", "mcp", r, -32600, id=f"K-19 mcp {r}") for r in HANDSHAKE),
        *(
            pytest.param("ALREADY_INITIALIZED", "mcp", r, -32600, id=f"K-19 mcp again {r}")
            for r in HANDSHAKE
        ),
        pytest.param("NOT_INITIALIZED", "erlmcp", V2025_11_25, -32005, id="K-19 erlmcp"),
        pytest.param("ALREADY_INITIALIZED", "erlmcp", V2025_11_25, -32005, id="K-19 erlmcp again"),
        pytest.param(
            "NOT_INITIALIZED", "erlmcp-guide", V2025_11_25, -32003, id="K-19 erlmcp-guide"
        ),
        pytest.param(
            "REFUSED_NOT_INITIALIZED", "erlmcp-spec", V2025_11_25, 1074, id="K-19 refusal C"
        ),
        pytest.param(
            "REFUSED_ALREADY_INITIALIZED",
            "erlmcp-spec",
            V2025_11_25,
            1075,
            id="K-19 refusal C again",
        ),
        pytest.param(
            "UNSUPPORTED_PROTOCOL_VERSION", "erlmcp", V2025_11_25, -32061, id="K-13 erlmcp code"
        ),
        pytest.param(
            "PROTOCOL_VERSION_MISMATCH", "erlmcp", V2025_11_25, -32062, id="K-13 erlmcp document"
        ),
        pytest.param(
            "UNSUPPORTED_PROTOCOL_VERSION",
            "erlmcp-guide",
            V2025_11_25,
            1010,
            id="K-13 erlmcp-guide",
        ),
        pytest.param(
            "UNSUPPORTED_PROTOCOL_VERSION", "pierre", V2025_11_25, -32602, id="K-13 pierre"
        ),
        pytest.param("MESSAGE_TOO_LARGE", "erlmcp", V2025_11_25, -32012, id="K-40 erlmcp"),
        pytest.param("INVALID_TOOL_ARGUMENTS", "erlmcp", V2025_11_25, -32034, id="K-68 erlmcp"),
        pytest.param("INVALID_TOOL_ARGUMENTS", "pierre", V2025_11_25, -32602, id="K-68 pierre"),
        pytest.param("TOOL_EXECUTION_FAILED", "erlmcp", V2025_11_25, -32031, id="K-69 erlmcp"),
        pytest.param("TOOL_EXECUTION_FAILED", "pierre", V2025_11_25, -32000, id="K-69 pierre"),
        pytest.param("USER_REJECTED", "erlmcp", V2025_11_25, -32046, id="K-76 erlmcp"),
        pytest.param("TASK_NOT_FOUND", "erlmcp", V2025_11_25, -32081, id="K-77 erlmcp"),
        pytest.param(
            "EXPERIMENTAL_TASK_NOT_FOUND", "erlmcp", V2025_11_25, 1095, id="K-77 erlmcp again"
        ),
    ],
)
def test_an_event_has_the_number_its_profile_gives_it(
    kind: str, name: str, revision: str, number: int
) -> None:
    assert profile(name).number(kind, revision) == number
    meaning = profile(name).meaning(number, revision)
    assert meaning is not None
    shares = number in STANDARD.values() or meaning in erlmcp_rows.DEFINED
    assert shares or meaning.symbol == kind


@pytest.mark.parametrize(
    ("number", "symbol"),
    [
        pytest.param(1046, "REFUSAL_RESOURCE_NOT_FOUND", id="K-16"),
        pytest.param(1048, "REFUSAL_TOOL_NOT_FOUND", id="K-17"),
        pytest.param(1050, "REFUSAL_PROMPT_NOT_FOUND", id="K-18"),
        pytest.param(1076, "REFUSAL_SERVER_UNINITIALIZED", id="K-19"),
        pytest.param(1027, "REFUSAL_INVALID_PROTOCOL_VERSION", id="K-13"),
    ],
)
def test_a_refusal_of_erlmcp_is_read_and_never_sent(number: int, symbol: str) -> None:
    erlmcp = profile("erlmcp")
    for revision in REVISIONS:
        meaning = erlmcp.meaning(number, revision)
        assert meaning is not None
        assert meaning.symbol == symbol
        assert not erlmcp.accepts(number, revision)


# --- between profiles


@pytest.mark.parametrize(("name", "revision"), COMBINATIONS)
def test_whatever_is_sent_is_accepted_and_read_back(name: str, revision: str) -> None:
    owner = profile(name)
    for kind in {*owner.symbols(revision), *profile("mcp").symbols(revision)}:
        number, original = owner.to_send(kind, revision)
        assert owner.accepts(number, revision), kind
        if kind not in owner.symbols(revision) or number in range(-32099, -32019):
            continue  # MCP's number for it, which MCP reads
        meaning = owner.meaning(number, revision)
        assert meaning is not None, kind
        assert meaning.number == (number if original is None else original), kind


@pytest.mark.parametrize("name", [name for name in PROFILE_NAMES if name != "mcp"])
def test_profiles_send_no_own_meanings_in_the_reserved_block_in_the_newest_revision(
    name: str,
) -> None:
    # the row: K-24
    owner, mcp = profile(name), profile("mcp")
    for kind in owner.symbols(V2026_07_28):
        number, original = owner.to_send(kind, V2026_07_28)
        if -32768 <= number <= -32000:
            assert original is None
            assert number in STANDARD.values() or mcp.number(kind, V2026_07_28) == number, kind
        elif original is not None:
            assert (number, -32768 <= original <= -32000) == (-original, True), kind


@pytest.mark.parametrize(("name", "revision"), COMBINATIONS)
def test_two_symbols_with_different_numbers_are_never_sent_as_one(name: str, revision: str) -> None:
    owner = profile(name)
    versions = {
        "UNSUPPORTED_PROTOCOL_VERSION",
        "PROTOCOL_VERSION_MISMATCH",
    }  # K-13: one number on purpose
    origin: dict[int, int] = {}
    for kind in owner.symbols(revision):
        if kind not in versions:
            number = owner.to_send(kind, revision)[0]
            assert origin.setdefault(number, owner.number(kind, revision)) == owner.number(
                kind, revision
            )


@pytest.mark.parametrize(
    ("name", "revision"), [pair for pair in COMBINATIONS if not PER_REQUEST.holds(pair[1])]
)
def test_a_number_borrowed_from_mcp_has_no_other_meaning_here(name: str, revision: str) -> None:
    owner, mcp = profile(name), profile("mcp")
    for kind in set(mcp.symbols(revision)) - set(owner.symbols(revision)):
        meaning = owner.meaning(owner.to_send(kind, revision)[0], revision)
        assert meaning is None or meaning.number in STANDARD.values(), kind


# --- erlmcp


def test_erlmcp_defines_122_codes_and_accepts_118_of_them() -> None:
    # the rows: E-37, E-86
    assert len(erlmcp_rows.DEFINED) == 122
    unsent = sorted(row.number for row in erlmcp_rows.DEFINED if not row.sent)
    assert unsent == [-32104, -32103, -32102, -32101]
    for revision in REVISIONS:
        accepted = [n for n in range(-33000, 2000) if profile("erlmcp").accepts(n, revision)]
        assert len(accepted) == 118
        assert set(accepted) == {row.number for row in erlmcp_rows.DEFINED} - set(unsent)


def test_erlmcp_lists_51_refusals_with_a_status_and_sends_none() -> None:
    assert len(erlmcp_rows.REFUSALS) == 51
    assert all(1001 <= row.number <= 1089 for row in erlmcp_rows.REFUSALS)
    assert all(row.symbol.startswith("REFUSAL_") for row in erlmcp_rows.REFUSALS)
    assert {row.sent for row in erlmcp_rows.REFUSALS} == {False}
    assert Counter(row.http for row in erlmcp_rows.REFUSALS) == {
        400: 14, 401: 5, 403: 1, 404: 3, 409: 4, 413: 1, 415: 2, 429: 8, 503: 13,
    }  # fmt: skip
    assert Counter(row.severity for row in erlmcp_rows.REFUSALS) == {
        "error": 30,
        "warning": 15,
        "critical": 6,
    }


def test_an_erlmcp_number_names_one_symbol() -> None:
    rows = (*erlmcp_rows.DEFINED, *erlmcp_rows.REFUSALS)
    assert len({row.number for row in rows}) == len({row.symbol for row in rows}) == 173
    assert profile("erlmcp").codes == (*rows, *erlmcp_rows.SHARED)


def test_erlmcp_borrows_a_number_only_for_a_symbol_it_does_not_have() -> None:
    own = {row.symbol: row for row in erlmcp_rows.DEFINED}
    numbers = {row.number for row in erlmcp_rows.DEFINED}
    for row in erlmcp_rows.SHARED:
        assert row.symbol not in own
        assert row.number in numbers


def test_erlmcp_has_the_holes_its_ranges_hide() -> None:
    # the row: K-24
    for number in (-32041, -32100, *range(-32109, -32104)):
        assert profile("erlmcp").meaning(number) is None


def test_erlmcp_categories_and_severities_are_those_of_the_ranges_but_for_the_documented_ones() -> (
    None
):
    # the row: K-26
    by_symbol = {-32001, -32002, -32003, -32101, -32102, -32103, -32104, *range(1090, 1100)}
    differs = {row.number for row in erlmcp_rows.DEFINED if row.category != range_group(row.number)}
    assert differs == by_symbol
    graded = {
        row.number for row in erlmcp_rows.DEFINED if row.severity != range_severity(row.number)
    }
    assert graded == {-32001, -32002, -32003}
    assert Counter(row.severity for row in erlmcp_rows.DEFINED) == {
        "warning": 80, "error": 25, "info": 14, "critical": 3,
    }  # fmt: skip


def test_erlmcp_says_retry_where_its_documentation_does() -> None:
    # the row: R-EM-07
    retried = {row.number for row in profile("erlmcp").codes if row.retry == "retry"}
    assert retried == {-32008, -32009, -32010, -32603, 1005, *range(1056, 1061)}


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (-32001, ("uri",)),
        (-32002, ("tool",)),
        (-32003, ("prompt",)),
        (-32012, ("maxSize", "unit")),
        (-32062, ("clientVersion", "serverVersion")),
        (-32085, ("taskId", "timeoutMs")),
        (-32112, ("argument", "details")),
        (-32601, ("method",)),
        (-32700, ()),
        (1099, ("taskId", "currentState", "expectedState")),
    ],
)
def test_an_erlmcp_constructor_fills_the_members_of_the_original(
    number: int, data: tuple[str, ...]
) -> None:
    row = profile("erlmcp").meaning(number)
    assert row is not None
    assert row.data == data


def test_59_erlmcp_codes_come_with_data() -> None:
    assert sum(bool(row.data) for row in erlmcp_rows.DEFINED) == 59


# --- the other lists


def test_the_erlmcp_spec_table_has_97_entries() -> None:
    codes = profile("erlmcp-spec").codes
    assert (
        len(codes) == len({row.number for row in codes}) == len({row.symbol for row in codes}) == 97
    )
    assert {row.number for row in codes if row.number > 0} == set(range(1001, 1090))
    assert Counter(row.category for row in codes) == {"json_rpc": 5, "mcp_protocol": 92}
    assert {row.number for row in codes if row.severity == "warning"} == {
        1062,
        1063,
        1064,
        1078,
        1089,
    }
    retried = {-32603, -32010, *range(1062, 1072), 1079, 1089}
    assert {row.number for row in codes if row.retry == "retry"} == retried


def test_an_erlmcp_spec_symbol_is_made_from_its_name() -> None:
    for row in profile("erlmcp-spec").codes:
        if row.number > 0 and row.number != 1089:
            words = (
                row.message.removeprefix("refused: ").replace("-", "_").replace(" ", "_").upper()
            )
            assert row.symbol == f"REFUSED_{words}"
    assert profile("erlmcp-spec").number("REFUSED_RATE_LIMITED") == 1063
    assert profile("erlmcp-spec").number("REFUSED_RATE_LIMITED_1089") == 1089


def test_the_erlmcp_guide_lists_five_ten_and_eleven() -> None:
    # the rows: R-EM-96, K-27
    numbers = [row.number for row in profile("erlmcp-guide").codes]
    assert sorted(numbers) == sorted(
        [*STANDARD.values(), *range(-32010, -32000), *range(1001, 1011), 1089]
    )


def test_the_erlmcp_guide_and_erlmcp_agree_on_json_rpc_alone() -> None:
    guide, code = profile("erlmcp-guide"), profile("erlmcp")
    agreed = {
        row.number
        for row in guide.codes
        if (meaning := code.meaning(row.number, V2025_11_25)) and meaning.symbol == row.symbol
    }
    assert agreed == set(STANDARD.values())


def test_pierre_has_seven_numbers_of_its_own() -> None:
    # the rows: R-PI-06, P-27, K-29
    lowest, highest = SERVER_ERRORS
    own = {row.number for row in profile("pierre").codes} - set(STANDARD.values())
    assert own == set(range(-32006, -31999))
    assert all(lowest <= number <= highest for number in own)


def test_pierre_a2a_has_ten_numbers_of_its_own() -> None:
    # the row: R-PI-32
    own = {row.number: row.symbol for row in profile("pierre-a2a").codes if row.number > -32600}
    assert own == {
        -32001: "AUTHENTICATION_FAILED",
        -32003: "CLIENT_NOT_REGISTERED",
        -32000: "DATABASE_ERROR",
        -32004: "CLIENT_DEACTIVATED",
        -32005: "RATE_LIMITED",
        -32006: "SESSION_EXPIRED",
        -32007: "INVALID_SESSION_TOKEN",
        -32008: "INSUFFICIENT_PERMISSIONS",
        -32009: "RESOURCE_NOT_FOUND",
        -32010: "SERVICE_UNAVAILABLE",
    }
