"""`spec/requirements.py`: finding requirements by id, by ref and by what they ask of whom."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trunkline.spec.profiles import UnknownRevision
from trunkline.spec.requirements import (
    ACTORS,
    JUDGES,
    LEVELS,
    Judge,
    Level,
    UnknownRequirement,
    requirement,
    requirements,
)
from trunkline.spec.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)


def ids(**filters: str) -> set[str]:
    return {row.id for row in requirements(**filters)}  # type: ignore[arg-type]


def test_an_id_finds_its_row() -> None:
    row = requirement("mcp.id.not-null")
    assert (row.id, row.ref, row.level) == ("mcp.id.not-null", "BP-003", "must-not")
    assert row.same_as == "jsonrpc.id.not-null"


def test_a_ref_with_one_row_finds_that() -> None:
    assert requirement("BP-003") is requirement("mcp.id.not-null")
    assert requirement("SEC-45").id == "mcp.resources.no-traversal"


def test_a_ref_with_several_rows_names_them_all() -> None:
    with pytest.raises(UnknownRequirement) as caught:
        requirement("BP-008")
    assert str(caught.value) == (
        "BP-008 has 2 requirements: mcp.jsonrpc.error-code, mcp.jsonrpc.error-message"
    )


def test_the_rows_of_a_ref_are_found_together() -> None:
    assert ids(ref="BP-008") == {"mcp.jsonrpc.error-code", "mcp.jsonrpc.error-message"}
    assert ids(ref="BP-036", revision=V2025_03_26) == {
        "mcp.version.negotiated-preferred",
        "mcp.capability.negotiated-preferred",
    }


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("mcp.id.not-nul", "mcp.id.not-null"),
        ("mcp.progress.grow", "mcp.progress.grows"),
        ("jsonrpc.id.not-null", "mcp.id.not-null"),
        ("BP-0003", "BP-003"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(asked: str, near: str) -> None:
    with pytest.raises(LookupError) as caught:
        requirement(asked)
    assert str(caught.value) == f"no requirement {asked!r}; did you mean {near!r}?"


def test_a_name_that_resembles_none_gets_no_hint() -> None:
    with pytest.raises(UnknownRequirement) as caught:
        requirement("?")
    assert str(caught.value) == "no requirement '?'"


def test_a_very_long_name_is_refused_without_being_compared() -> None:
    with pytest.raises(UnknownRequirement) as caught:
        requirement("mcp.id.not-null" * 10)
    assert "did you mean" not in str(caught.value)


def test_an_unknown_ref_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownRequirement, match=r"no requirement has the ref 'SEC-99'; did you"):
        requirements(ref="SEC-99")


def test_without_filters_there_is_everything_in_order() -> None:
    rows = requirements()
    assert rows[0].ref == "BP-001"
    assert rows[-1].ref == "SEC-63"
    assert all(requirement(row.id) is row for row in rows)


def test_a_revision_selects_what_it_asks() -> None:
    assert "mcp.id.session-unique" in ids(revision=V2025_11_25)
    assert "mcp.id.session-unique" not in ids(revision=V2026_07_28)
    assert "mcp.id.open-unique" not in ids(revision=V2025_11_25)
    assert "mcp.id.open-unique" in ids(revision=V2026_07_28)
    batches = {name for name in ids(revision=V2025_03_26) if name.startswith("mcp.batch.")}
    assert "mcp.batch.removed" not in batches
    assert "mcp.batch.server-receives" in batches
    assert {n for n in ids(revision=V2025_06_18) if n.startswith("mcp.batch.")} == {
        "mcp.batch.removed"
    }
    assert not {n for n in ids(revision=V2024_11_05) if n.startswith("mcp.batch.")}


def test_every_row_is_asked_by_some_revision() -> None:
    assert set.union(*(ids(revision=revision) for revision in REVISIONS)) == ids()


def test_requirement_of_both_is_found_for_client_and_for_server() -> None:
    for actor in ("client", "server", "both"):
        assert "mcp.progress.grows" in ids(actor=actor)
    assert "mcp.progress.grows" not in ids(actor="host")
    assert "mcp.rounds.kinds" in ids(actor="server")
    assert "mcp.rounds.kinds" not in ids(actor="client")
    assert "mcp.rounds.kinds" not in ids(actor="both")


def test_every_actor_has_something_to_do() -> None:
    for actor in ACTORS:
        assert requirements(actor=actor)


@pytest.mark.parametrize("judge", JUDGES)
def test_a_judge_selects_its_rows_alone(judge: Judge) -> None:
    assert {row.judge for row in requirements(judge=judge)} == {judge}


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_selects_its_rows_alone(level: Level) -> None:
    assert {row.level for row in requirements(level=level)} == {level}


def test_filters_narrow_one_another() -> None:
    rows = requirements(V2026_07_28, actor="server", judge="trace", level="must")
    assert {"mcp.rounds.kinds", "mcp.progress.grows"} <= {row.id for row in rows}
    every = ids(revision=V2026_07_28) & ids(actor="server") & ids(judge="trace") & ids(level="must")
    assert {row.id for row in rows} == every


def test_an_unknown_revision_is_refused_with_the_list() -> None:
    with pytest.raises(
        UnknownRevision, match=r"'2023-01-01' is not a released revision.*2024-11-05.*2026-07-28"
    ):
        requirements("2023-01-01")


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        ({"actor": "sever"}, "unknown actor 'sever'; expected one of client, server, both, host"),
        (
            {"judge": "probe"},
            "unknown judge 'probe'; expected one of trace, probe-server, probe-client",
        ),
        (
            {"level": "MUST"},
            "unknown level 'MUST'; expected one of must, must-not, should, should-not, may",
        ),
    ],
)
def test_a_misspelt_filter_is_refused_not_answered_with_nothing(
    filters: dict[str, str], text: str
) -> None:
    with pytest.raises(LookupError, match=text):
        ids(**filters)


def test_the_rows_are_loaded_by_the_first_lookup() -> None:
    script = (
        "import sys; from trunkline.spec import requirements as r; "
        "name = 'trunkline.spec.mcp.requirements'; "
        "assert name not in sys.modules; r.requirement('BP-003'); assert name in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_row_is_immutable() -> None:
    with pytest.raises(AttributeError):
        requirement("BP-003").level = "may"  # type: ignore[misc]
