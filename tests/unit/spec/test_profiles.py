"""`spec/profiles`: looking errors up by symbol and by number, whoever's rows they are."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.profiles import (
    PROFILE_NAMES,
    Profile,
    UnknownProfile,
    UnknownRevision,
    UnknownSymbol,
    candidates,
    is_reserved,
    profile,
)
from trunkline.spec.profiles.erlmcp import range_group, range_severity
from trunkline.spec.revisions import (
    LATEST,
    REVISIONS,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)
from trunkline.spec.rows import ALWAYS, ErrorCode

OLD = Window(until=V2026_07_28)
NEW = Window(V2026_07_28)


def code(number: int, symbol: str, *, when: Window = ALWAYS, sent: bool = True) -> ErrorCode:
    return ErrorCode(number, symbol, symbol.capitalize(), "test", when=when, sent=sent)


# --- finding a profile


def test_a_profile_is_loaded_once() -> None:
    assert profile("erlmcp") is profile("erlmcp")


def test_an_unknown_profile_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownProfile, match="erlmcp-spek") as caught:
        profile("erlmcp-spek")
    assert all(name in str(caught.value) for name in PROFILE_NAMES)
    assert isinstance(caught.value, LookupError)


def test_asking_for_one_profile_loads_no_other() -> None:
    script = (
        "import sys\n"
        "from trunkline.spec.profiles import profile\n"
        "profile('mcp').number('PARSE_ERROR')\n"
        "print(*(name for name in sys.modules if name.startswith('trunkline.spec.profiles.')))\n"
        "print(*(name for name in ('msgspec', 'asyncio', 'dataclasses', 'inspect', 'difflib')"
        " if name in sys.modules))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.splitlines() == ["trunkline.spec.profiles.mcp", ""]


def test_a_profile_shows_its_name() -> None:
    assert repr(profile("pierre-a2a")) == "<Profile 'pierre-a2a', 15 codes>"


def test_a_profile_takes_no_new_attributes() -> None:
    with pytest.raises(AttributeError):
        profile("mcp").extra = 1  # type: ignore[attr-defined]


# --- by symbol


def test_a_symbol_is_found_as_a_member_and_as_text() -> None:
    mcp = profile("mcp")
    assert mcp.number(ErrorKind.PARSE_ERROR) == mcp.number("PARSE_ERROR") == -32700


def test_a_symbol_has_the_row_its_number_comes_from() -> None:
    row = profile("mcp").of_kind(ErrorKind.UNSUPPORTED_PROTOCOL_VERSION, V2026_07_28)
    assert row == ErrorCode(
        -32022,
        ErrorKind.UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        "protocol",
        retry="fallback",
        http=400,
        data=("supported", "requested"),
        when=NEW,
    )


def test_the_latest_revision_is_meant_where_none_is_given() -> None:
    mcp = profile("mcp")
    for kind in mcp.symbols():
        assert mcp.number(kind) == mcp.number(kind, LATEST)


def test_a_misspelt_symbol_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownSymbol, match=r"did you mean 'RESOURCE_NOT_FOUND'\?"):
        profile("mcp").number("RESOURCE_NOT_FUOND")


def test_a_symbol_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(UnknownSymbol) as caught:
        profile("mcp").number("QQQQ")
    assert str(caught.value) == f"profile 'mcp' has no symbol 'QQQQ' in {LATEST}"


def test_a_symbol_outside_its_window_is_unknown() -> None:
    mcp = profile("mcp")
    assert mcp.number(ErrorKind.URL_ELICITATION_REQUIRED, V2025_11_25) == -32042
    with pytest.raises(UnknownSymbol, match=V2025_06_18):
        mcp.number(ErrorKind.URL_ELICITATION_REQUIRED, V2025_06_18)


def test_a_symbol_that_is_only_read_is_refused_and_says_so() -> None:
    with pytest.raises(
        UnknownSymbol, match=r"reads URL_ELICITATION_REQUIRED \(-32042\) but never sends it"
    ):
        profile("mcp").number(ErrorKind.URL_ELICITATION_REQUIRED, V2026_07_28)


def test_symbols_are_those_that_can_be_sent() -> None:
    rows = (code(1, "A"), code(2, "B", sent=False), code(3, "C", when=OLD))
    assert Profile("test", rows).symbols(V2025_11_25) == ("A", "C")
    assert Profile("test", rows).symbols(V2026_07_28) == ("A",)


@pytest.mark.parametrize("revision", ["2024-10-07", "", "2026-07-29", "draft"])
def test_a_revision_that_was_not_released_is_refused(revision: str) -> None:
    mcp = profile("mcp")
    with pytest.raises(UnknownRevision, match="2025-11-25"):
        mcp.number(ErrorKind.PARSE_ERROR, revision)
    with pytest.raises(UnknownRevision):
        mcp.meaning(-32700, revision)
    with pytest.raises(UnknownRevision):
        mcp.accepts(-32700, revision)
    with pytest.raises(UnknownRevision):
        candidates(-32700, revision)


# --- by number


def test_a_shared_number_means_its_first_row() -> None:
    shared = Profile("test", (code(5, "FIRST"), code(5, "SECOND")))
    meaning = shared.meaning(5)
    assert meaning is not None
    assert meaning.symbol == "FIRST"
    assert shared.number("SECOND") == 5


def test_the_first_row_is_looked_for_in_the_revision_asked_about() -> None:
    changing = Profile("test", (code(5, "BEFORE", when=OLD), code(5, "AFTER")))
    before, after = changing.meaning(5, V2025_11_25), changing.meaning(5, V2026_07_28)
    assert before is not None
    assert after is not None
    assert (before.symbol, after.symbol) == ("BEFORE", "AFTER")


def test_undefined_number_has_no_meaning() -> None:
    assert profile("mcp").meaning(-32099) is None
    assert profile("mcp").meaning(0) is None


def test_a_number_that_is_only_read_has_a_meaning_and_is_not_accepted() -> None:
    readable = Profile("test", (code(7, "OLD_NEWS", sent=False),))
    assert readable.meaning(7) == readable.codes[0]
    assert not readable.accepts(7)


def test_a_number_is_accepted_if_any_symbol_sends_it() -> None:
    mixed = Profile("test", (code(7, "READ", sent=False), code(7, "SENT")))
    assert mixed.accepts(7)
    assert not mixed.accepts(8)


def test_a_bare_number_has_a_reading_in_each_profile_that_knows_it() -> None:
    # the row: K-25
    readings = {name: row.symbol for name, row in candidates(-32002, V2025_11_25)}
    assert readings == {
        "mcp": "RESOURCE_NOT_FOUND",
        "erlmcp": "TOOL_NOT_FOUND",
        "erlmcp-guide": "REQUEST_CANCELLED",
        "erlmcp-spec": "TOOL_NOT_FOUND",
        "pierre": "AUTHENTICATION_FAILED",
    }


def test_a_number_no_profile_knows_has_no_candidates() -> None:
    assert candidates(424242) == ()


# --- a list that contradicts itself


def test_a_number_listed_twice_under_one_symbol_is_refused() -> None:
    with pytest.raises(ValueError, match="5 is listed twice as SAME"):
        Profile("test", (code(5, "SAME"), code(5, "SAME", sent=False)))


def test_a_symbol_with_two_numbers_to_send_is_refused() -> None:
    with pytest.raises(ValueError, match="SAME would be sent as 5 and as 6"):
        Profile("test", (code(5, "SAME"), code(6, "SAME")))


def test_a_contradiction_in_one_revision_is_enough() -> None:
    with pytest.raises(ValueError, match=f"in {V2026_07_28}"):
        Profile("test", (code(5, "SAME", when=NEW), code(6, "SAME")))


def test_a_symbol_may_change_its_number_between_revisions() -> None:
    changing = Profile("test", (code(5, "SAME", when=OLD), code(6, "SAME", when=NEW)))
    assert changing.number("SAME", V2025_11_25) == 5
    assert changing.number("SAME", V2026_07_28) == 6


def test_a_symbol_may_be_read_under_a_second_number() -> None:
    both = Profile("test", (code(5, "SAME", sent=False), code(6, "SAME")))
    assert both.number("SAME") == 6


# --- what goes on the wire


def test_mcp_sends_its_own_numbers() -> None:
    assert profile("mcp").to_send(ErrorKind.HEADER_MISMATCH) == (-32020, None)


@pytest.mark.parametrize(
    ("name", "kind", "revision", "expected"),
    [
        pytest.param(
            "erlmcp", "RESOURCE_NOT_FOUND", V2025_11_25, (-32001, None), id="K-24: free before"
        ),
        pytest.param(
            "erlmcp", "RESOURCE_NOT_FOUND", V2026_07_28, (32001, -32001), id="K-24: moves after"
        ),
        pytest.param(
            "erlmcp", "COMPLETION_FAILED", V2026_07_28, (32113, -32113), id="K-24: below -32099 too"
        ),
        pytest.param(
            "erlmcp", "CUSTOM_SERVER_ERROR", V2026_07_28, (32000, -32000), id="K-24: the last one"
        ),
        pytest.param(
            "erlmcp", "ELICITATION_FAILED", V2026_07_28, (1090, None), id="K-24: positive stays"
        ),
        pytest.param(
            "erlmcp", "INVALID_PARAMS", V2026_07_28, (-32602, None), id="K-24: JSON-RPC stays"
        ),
        pytest.param(
            "pierre", "TOKEN_EXPIRED", V2026_07_28, (-32603, None), id="K-24: shared stays"
        ),
        pytest.param(
            "erlmcp", "RESOURCE_TEMPLATE_NOT_FOUND", V2026_07_28, (32021, -32021), id="K-25: -32021"
        ),
        pytest.param("erlmcp", "INVALID_URI", V2026_07_28, (32022, -32022), id="K-25: -32022"),
        pytest.param(
            "pierre",
            "AUTHENTICATION_FAILED",
            V2026_07_28,
            (32002, -32002),
            id="K-24: -32002 retired",
        ),
        pytest.param(
            "erlmcp", "URL_ELICITATION_REQUIRED", V2025_11_25, (-32042, None), id="K-25: they agree"
        ),
        pytest.param(
            "erlmcp",
            "URL_ELICITATION_REQUIRED",
            V2026_07_28,
            (32042, -32042),
            id="K-24: -32042 retired",
        ),
        pytest.param(
            "erlmcp",
            "UNSUPPORTED_PROTOCOL_VERSION",
            V2025_11_25,
            (-32061, None),
            id="K-13: its own",
        ),
        pytest.param(
            "erlmcp", "UNSUPPORTED_PROTOCOL_VERSION", V2026_07_28, (-32022, None), id="K-13: always"
        ),
        pytest.param(
            "erlmcp-guide",
            "UNSUPPORTED_PROTOCOL_VERSION",
            V2026_07_28,
            (-32022, None),
            id="K-13: 1010",
        ),
        pytest.param(
            "pierre", "HEADER_MISMATCH", V2026_07_28, (-32020, None), id="no word: MCP's block"
        ),
        pytest.param(
            "pierre", "MESSAGE_TOO_LARGE", V2025_11_25, (-32600, None), id="no word: JSON-RPC"
        ),
        pytest.param("erlmcp-spec", "USER_REJECTED", V2025_11_25, (-1, None), id="no word: -1"),
    ],
)
def test_the_number_sent_respects_what_mcp_keeps(
    name: str, kind: str, revision: str, expected: tuple[int, int | None]
) -> None:
    assert profile(name).to_send(kind, revision) == expected


@pytest.mark.parametrize("number", [-32020, -32021, -32022])
def test_a_number_that_mcp_allocated_is_used_by_every_profile(number: int) -> None:
    row = profile("mcp").meaning(number, V2026_07_28)
    assert row is not None
    stubborn = Profile("test", (code(77, row.symbol),))
    assert stubborn.to_send(row.symbol, V2026_07_28) == (number, None)
    assert stubborn.to_send(row.symbol, V2025_11_25) == (77, None)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_unknown_symbol_is_not_sent(name: str) -> None:
    with pytest.raises(UnknownSymbol, match=name):
        profile(name).to_send("NOBODY_KNOWS")


def test_a_refusal_that_is_only_read_is_not_sent() -> None:
    with pytest.raises(UnknownSymbol, match="never sends it"):
        profile("erlmcp").to_send("REFUSAL_QUEUE_CAP_EXCEEDED")


def test_a_moved_number_is_read_as_the_one_it_stands_for() -> None:
    erlmcp = profile("erlmcp")
    meaning = erlmcp.meaning(32021, V2026_07_28)
    assert meaning is not None
    assert (meaning.number, meaning.symbol) == (-32021, "RESOURCE_TEMPLATE_NOT_FOUND")
    assert erlmcp.meaning(32021, V2025_11_25) is None
    assert erlmcp.meaning(32603, V2026_07_28) is None
    assert profile("mcp").meaning(32700, V2026_07_28) is None


def test_a_moved_number_is_accepted_where_it_moves() -> None:
    erlmcp = profile("erlmcp")
    assert erlmcp.accepts(32001, V2026_07_28)
    assert not erlmcp.accepts(32001, V2025_11_25)
    assert not erlmcp.accepts(32603, V2026_07_28)


# --- erlmcp by range


@pytest.mark.parametrize(
    ("lowest", "highest", "group"),
    [
        (-32700, -32600, "jsonrpc"),
        (-32010, -32000, "mcp_core"),
        (-32020, -32011, "content"),
        (-32030, -32021, "resource"),
        (-32040, -32031, "tool"),
        (-32050, -32041, "prompt"),
        (-32060, -32051, "auth"),
        (-32070, -32061, "protocol"),
        (-32080, -32071, "pagination"),
        (-32090, -32081, "task"),
        (-32100, -32091, "progress"),
        (-32109, -32101, "unknown"),
        (-32113, -32110, "completion"),
        (-32599, -32114, "unknown"),
        (-32768, -32701, "unknown"),
        (-31999, 2000, "unknown"),
    ],
)
def test_a_range_is_one_group_from_end_to_end(lowest: int, highest: int, group: str) -> None:
    # the row: R-EM-03
    assert {range_group(number) for number in range(lowest, highest + 1)} == {group}


@pytest.mark.parametrize(
    ("lowest", "highest", "severity"),
    [
        (-32700, -32700, "critical"),
        (-32603, -32603, "critical"),
        (-32602, -32601, "error"),
        (-32600, -32600, "critical"),
        (-32113, -32110, "warning"),
        (-32109, -32100, "info"),
        (-32099, -32080, "error"),
        (-32079, -32000, "warning"),
        (-31999, 2000, "info"),
    ],
)
def test_a_range_has_one_severity_from_end_to_end(lowest: int, highest: int, severity: str) -> None:
    # the row: R-EM-04
    assert {range_severity(number) for number in range(lowest, highest + 1)} == {severity}


def test_a_missing_resource_is_graded_by_its_symbol_and_its_number_by_its_range() -> None:
    # the rows: K-26, E-83, E-84
    row = profile("erlmcp").of_kind(ErrorKind.RESOURCE_NOT_FOUND)
    assert (row.category, row.severity) == ("resource", "error")
    assert (range_group(row.number), range_severity(row.number)) == ("mcp_core", "warning")


# --- symbols


@pytest.mark.parametrize("kind", ErrorKind)
def test_a_kind_is_its_own_name_as_text(kind: ErrorKind) -> None:
    assert kind == kind.name == str(kind)
    assert hash(kind) == hash(kind.name)


# -- codes of applications ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number", "before", "since"),
    [
        ("mcp", -32050, True, False),
        ("mcp", -32000, True, False),
        ("mcp", -32099, True, False),
        ("mcp", -32100, False, False),
        ("mcp", -32768, False, False),
        ("mcp", -32769, True, True),
        ("mcp", -31999, True, True),
        ("mcp", 1001, True, True),
        ("mcp", -32602, True, True),
        ("mcp", -32022, True, True),
        ("mcp", -32002, True, False),
        ("erlmcp", -32110, True, False),
        ("pierre", -32110, False, False),
    ],
)
def test_an_application_may_send_what_no_specification_reserves_and_what_the_profile_sends(
    name: str, number: int, before: bool, since: bool
) -> None:
    codes = profile(name)
    assert codes.allows(number, V2025_11_25) == before
    assert codes.allows(number, V2026_07_28) == since


def test_mcp_reserves_the_block_since_2026_07_28_and_json_rpc_a_part_of_it_always() -> None:
    assert [is_reserved(-32050, revision) for revision in REVISIONS] == [False] * 4 + [True]
    assert all(is_reserved(-32500, revision) for revision in REVISIONS)
    assert not is_reserved(-32050, by="jsonrpc")
    assert not is_reserved(-32500, V2025_11_25, by="mcp")
