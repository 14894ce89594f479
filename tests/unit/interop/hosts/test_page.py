"""`interop/hosts/page.py`: the table, and where it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interop.hosts import page
from interop.hosts.facts import Facts
from interop.hosts.page import BEGIN, END, HEADS, Outcome, Row, columns, markdown, write

CALLS = {"stock_level": "ok", "order_item": "ok", "count_shelves": "ok", "audit_books": "failed"}
FACTS = Facts(
    revision="2025-11-25",
    capabilities={"elicitation": {}},
    calls=CALLS,
    question="decline",
    wants_progress=True,
    progress=3,
)


def cells(row: Row) -> dict[str, str]:
    """Return the cells of a row of the page, by their heads."""
    *_, line = markdown([row]).splitlines()
    return dict(zip(HEADS, line.removeprefix("| ").removesuffix(" |").split(" | "), strict=True))


def test_what_is_the_same_over_both_transports_is_said_once() -> None:
    outcome = Outcome(FACTS, ["warning `rule`"])
    found = cells(Row("Host", "1.0", {"stdio": outcome, "HTTP": outcome}))
    assert found == {
        "Host": "Host",
        "Version": "1.0",
        "stdio": "2025-11-25",
        "HTTP": "2025-11-25",
        "Project file": "none",
        "Declares": "elicitation",
        "Tool": "ok",
        "Question": "decline",
        "Progress": "3 reports",
        "Failing tool": "failed",
        "Findings about the host": "warning `rule`",
    }


def test_what_differs_is_said_of_each() -> None:
    old = replace(FACTS, revision="2024-11-05", capabilities={}, question="", wants_progress=False)
    old.calls = {**CALLS, "order_item": "error -32600"}
    row = Row("Host", "1.0", {"stdio": Outcome(old), "HTTP": Outcome(FACTS, ["error `rule`"])})
    found = cells(row)
    assert (found["stdio"], found["HTTP"]) == ("2024-11-05", "2025-11-25")
    assert found["Declares"] == "stdio: nothing; HTTP: elicitation"
    assert found["Question"] == "stdio: not declared, error -32600; HTTP: decline"
    assert found["Progress"] == "stdio: not asked for; HTTP: 3 reports"
    assert found["Findings about the host"] == "stdio: none; HTTP: error `rule`"


def test_the_file_of_a_project_is_read_or_the_run_is_marked() -> None:
    good = {"stdio": Outcome(FACTS), "HTTP": Outcome(FACTS)}
    # What only this run shows is not told of both transports.
    ran = {**good, "project": Outcome(replace(FACTS, question="cancel"))}
    found = cells(Row("Host", "1.0", ran, "read if trusted"))
    assert (found["Project file"], found["Question"]) == ("read if trusted", "decline")
    failed = {**good, "project": Outcome(Facts(), failure="did not connect")}
    assert cells(Row("Host", "1.0", failed, "read if trusted"))["Project file"] == "FAIL"


def test_a_run_that_failed_is_marked() -> None:
    outcomes = {
        "stdio": Outcome(Facts(), failure="did not connect"),
        "HTTP": Outcome(replace(FACTS, calls={}), failure="did not call"),
    }
    found = cells(Row("Host", "1.0", outcomes))
    assert (found["stdio"], found["HTTP"]) == ("FAIL", "FAIL 2025-11-25")
    assert (found["Tool"], found["Failing tool"]) == ("not called", "not called")


def test_a_host_that_did_not_run_or_call_has_the_reason_in_its_row() -> None:
    missing = cells(Row("Host", "1.0", {}, missing="not run: npm did not install it"))
    assert missing["stdio"] == "not run: npm did not install it"
    outcome = Outcome(replace(FACTS, calls={}), without_model="needs a login")
    found = cells(Row("Host", "1.0", {"stdio": outcome, "HTTP": outcome}))
    assert (found["stdio"], found["Tool"]) == ("2025-11-25", "not called: needs a login")


def test_the_columns_of_a_terminal_begin_below_their_heads() -> None:
    row = Row("A host", "1.0", {"stdio": Outcome(FACTS), "HTTP": Outcome(FACTS)})
    heads, line = columns([row]).splitlines()
    assert heads.index("Declares") == line.index("elicitation")


def test_the_table_replaces_what_is_between_its_marks_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "interop.md"
    path.write_text(f"before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n")
    monkeypatch.setattr(page, "PAGE", path)
    row = Row("Host", "1.0", {"stdio": Outcome(FACTS), "HTTP": Outcome(FACTS)})
    write([row])
    assert path.read_text() == f"before\n\n{BEGIN}\n\n{markdown([row])}\n\n{END}\n\nafter\n"
