"""The requirement rows are complete, readable and honest about how they are judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import pytest

from tools.requirements_table import full, main, span, tables
from trunkline.spec.jsonrpc import LOCAL_RULES, RULES
from trunkline.spec.mcp.requirements import REQUIREMENTS
from trunkline.spec.mcp.tasks_extension import EXTENSION
from trunkline.spec.requirements import ACTORS, JUDGES, LEVELS, Requirement
from trunkline.spec.revisions import REVISIONS, V2025_11_25, V2026_07_28, Window

# The statements there are. Between these runs the numbers are free, and stay so.
BASE_PROTOCOL: Final = {
    "JSON-RPC": range(1, 23),
    "handshake": range(30, 40),
    "versions and metadata": range(40, 54),
    "both eras": range(60, 68),
    "stdio": range(70, 78),
    "HTTP with sessions": range(80, 99),
    "HTTP without sessions": range(110, 128),
    "rounds": range(130, 139),
    "subscriptions and caching": range(140, 150),
    "utilities": range(150, 171),
}
SECURITY: Final = {
    "transport, authorization, state": range(1, 38),
    "server features": range(41, 50),
    "client features": range(51, 64),
}
REFS: Final = [
    *(f"BP-{number:03}" for run in BASE_PROTOCOL.values() for number in run),
    *(f"SEC-{number:02}" for run in SECURITY.values() for number in run),
]

TOPICS: Final = frozenset(
    (
        *("jsonrpc", "id", "batch", "lifecycle", "version", "meta", "capability"),
        *("progress", "cancel", "pagination", "logging"),
        *("tools", "resources", "prompts", "completion", "sampling", "elicitation", "roots"),
        *("subscriptions", "rounds", "caching", "tasks"),
        *("stdio", "http", "headers", "sse", "session", "auth", "security"),
    )
)
# A full stop inside a sentence is part of a number or a name, so no space follows it.
SENTENCE: Final = re.compile(r"[A-Z](?:[^.!?\n]|[.!?](?=\S))*\.")
ID: Final = re.compile(r"mcp\.([a-z]+)\.[a-z0-9]+(?:-[a-z0-9]+)*")
PAGE: Final = re.compile(r"(\d{4}-\d\d-\d\d) · [a-z_/-]+")
PROPOSAL: Final = re.compile(r"SEP-\d+ · [a-z-]+")

UNJUDGED: Final = ("unit", "none")
PROBES: Final = {
    "probe-server": ("server", "authorization-server"),
    "probe-client": ("client",),
}


def revisions_of(window: Window) -> list[str]:
    return [revision for revision in REVISIONS if window.holds(revision)]


def failing(keeps: Callable[[Requirement], object]) -> list[str]:
    """Return the ids of the rows that do not keep a rule of this file."""
    return [row.id for row in REQUIREMENTS if not keeps(row)]


def repeated(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def test_there_are_139_base_statements_and_59_on_security() -> None:
    assert Counter(ref.partition("-")[0] for ref in REFS) == {"BP": 139, "SEC": 59}


def test_every_statement_has_a_row() -> None:
    assert [ref for ref in REFS if ref not in {row.ref for row in REQUIREMENTS}] == []


def test_no_row_belongs_to_a_statement_that_does_not_exist() -> None:
    assert failing(lambda row: row.ref in REFS) == []


def test_rows_are_in_the_order_of_the_statements() -> None:
    places = [REFS.index(row.ref) for row in REQUIREMENTS]
    assert places == sorted(places)


def test_no_id_names_two_rows() -> None:
    assert repeated(row.id for row in REQUIREMENTS) == []


def test_no_two_rows_say_the_same() -> None:
    assert repeated(row.says for row in REQUIREMENTS) == []


def test_an_id_is_a_topic_and_a_point() -> None:
    assert failing(lambda row: (found := ID.fullmatch(row.id)) and found[1] in TOPICS) == []


def test_every_topic_is_used() -> None:
    assert {row.id.split(".")[1] for row in REQUIREMENTS} == TOPICS


def test_level_actor_and_judge_are_known_words() -> None:
    assert failing(lambda row: row.level in LEVELS) == []
    assert failing(lambda row: row.actor in ACTORS) == []
    assert failing(lambda row: row.judge in JUDGES) == []


def test_row_text_is_one_short_sentence() -> None:
    assert failing(lambda row: SENTENCE.fullmatch(row.says)) == []
    assert failing(lambda row: len(row.says) < 160) == []


def test_a_reason_is_one_short_sentence() -> None:
    assert failing(lambda row: row.why == "" or SENTENCE.fullmatch(row.why)) == []
    assert failing(lambda row: len(row.why) < 160) == []


def test_unjudged_row_has_a_reason() -> None:
    assert failing(lambda row: row.why or row.judge not in UNJUDGED) == []


def test_how_many_rows_each_judge_has_changes_only_on_purpose() -> None:
    assert Counter(row.judge for row in REQUIREMENTS) == {
        "trace": 141,
        "probe-server": 96,
        "probe-client": 59,
        "unit": 56,
        "none": 34,
    }


def test_a_permission_is_never_judged() -> None:
    assert failing(lambda row: row.level != "may" or row.judge == "none") == []


def test_only_a_permission_is_excused_as_one() -> None:
    assert failing(lambda row: row.level == "may" or "permission" not in row.why) == []


def test_a_probe_is_aimed_at_the_party_that_has_to_comply() -> None:
    assert failing(lambda row: row.actor in PROBES.get(row.judge, ACTORS)) == []


def test_only_what_a_probe_judges_is_marked_as_visible_in_recordings_too() -> None:
    assert failing(lambda row: not row.also_trace or row.judge in PROBES) == []


def test_host_requirement_is_unjudged() -> None:
    assert failing(lambda row: row.actor != "host" or row.judge in UNJUDGED) == []


def test_a_window_begins_and_ends_with_released_revisions() -> None:
    assert failing(lambda row: row.when.since in REVISIONS) == []
    assert failing(lambda row: row.when.until in (None, *REVISIONS)) == []
    assert failing(lambda row: revisions_of(row.when)) == []


def test_an_anchor_names_a_page_of_the_newest_revision_that_asks() -> None:
    def is_right(row: Requirement) -> bool:
        page = PAGE.fullmatch(row.anchor)
        if page is None:
            return bool(row.extension and PROPOSAL.fullmatch(row.anchor))
        return page[1] == revisions_of(row.when)[-1]

    assert failing(is_right) == []


def test_the_rule_that_a_row_repeats_exists_in_the_message_layer() -> None:
    known = {"", *RULES, *LOCAL_RULES}
    assert failing(lambda row: row.same_as in known) == []


def test_no_rule_of_the_message_layer_is_repeated_twice() -> None:
    assert repeated(row.same_as for row in REQUIREMENTS if row.same_as) == []


def test_an_extension_is_one_whose_types_are_known() -> None:
    assert failing(lambda row: row.extension in ("", EXTENSION)) == []


def test_tasks_are_asked_of_the_core_in_one_revision_and_of_an_extension_in_the_next() -> None:
    tasks = [row for row in REQUIREMENTS if row.id.startswith("mcp.tasks.")]
    core = [row for row in tasks if not row.extension]
    assert {tuple(revisions_of(row.when)) for row in core} == {(V2025_11_25,)}
    extended = [row for row in tasks if row.extension]
    assert {tuple(revisions_of(row.when)) for row in extended} == {(V2026_07_28,)}


def test_a_statement_that_changes_level_has_rows_that_do_not_overlap() -> None:
    advised = [row for row in REQUIREMENTS if row.id.endswith(".negotiated-preferred")]
    required = [row for row in REQUIREMENTS if row.id.endswith(".negotiated-only")]
    assert {(row.ref, row.level) for row in advised} == {("BP-036", "should")}
    assert {(row.ref, row.level) for row in required} == {("BP-036", "must")}
    for row in advised:
        assert not {*revisions_of(row.when)} & {*revisions_of(required[0].when)}


# The printed table


def test_the_table_counts_every_row_once_in_each_of_its_parts() -> None:
    lines = list(tables(REQUIREMENTS))
    total = next(line for line in lines if line.startswith("total")).split()[1:]
    assert total == [
        *(str(sum(row.judge == judge for row in REQUIREMENTS)) for judge in JUDGES),
        str(len(REQUIREMENTS)),
    ]
    totals = {line.split()[0]: line.split()[-1] for line in lines if line}
    for words in (LEVELS, ACTORS):
        assert sum(int(totals[word]) for word in words) == len(REQUIREMENTS)


def test_the_full_list_shows_the_sentence_the_judge_and_the_reason() -> None:
    row = next(row for row in REQUIREMENTS if row.judge == "unit" and row.extension)
    text = "\n".join(full([row]))
    for part in (row.id, row.ref, row.says, row.judge, row.why, row.anchor, row.extension):
        assert part in text


def test_full_list_marks_a_probe_that_recordings_can_replace() -> None:
    row = next(row for row in REQUIREMENTS if row.also_trace)
    assert f"{row.judge} + trace" in "\n".join(full([row]))


def test_the_full_list_is_printed_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    short = capsys.readouterr().out
    assert main(["--all"]) == 0
    long = capsys.readouterr().out
    assert REQUIREMENTS[-1].says not in short
    assert long.startswith(short.rstrip("\n"))
    assert all(row.says in long for row in REQUIREMENTS)


def test_a_window_is_printed_as_the_revisions_it_holds_in() -> None:
    assert span(Window()) == "every revision"
    assert span(Window(V2026_07_28)) == "2026-07-28"
    assert span(Window(until=V2026_07_28)) == "2024-11-05 to 2025-11-25"
