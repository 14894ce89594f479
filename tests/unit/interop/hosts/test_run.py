"""`interop/hosts/run.py`: what fails a run, and what does not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from interop.hosts import run
from interop.hosts.facts import Facts
from interop.hosts.model import SCRIPT
from interop.hosts.page import Outcome
from interop.hosts.rows import HOSTS, NEEDS_LOGIN, Host
from interop.hosts.run import missing_program, problems, ways_of
from interop.hosts.scene import Run

HOST = next(host for host in HOSTS if not host.without_model)
WITHOUT_MODEL = next(host for host in HOSTS if host.without_model)
FACTS = Facts(
    revision="2025-11-25",
    capabilities={"elicitation": {}},
    calls={step.tool: "ok" for step in SCRIPT},
    question="decline",
)
RUN = Run([], [step.answer for step in SCRIPT], set())


def test_a_host_that_connected_called_and_handed_on_passes() -> None:
    assert problems(HOST, RUN, FACTS, []) == []
    # Some exit with a status of their own after a tool that fails.
    assert problems(HOST, RUN._replace(failure="exited with 1"), FACTS, []) == []


def test_an_error_of_our_side_fails_a_run() -> None:
    assert problems(HOST, RUN, FACTS, ["error mcp.x"]) == ["judge: error mcp.x"]
    assert problems(WITHOUT_MODEL, RUN, FACTS, ["error mcp.x"]) == ["judge: error mcp.x"]


@pytest.mark.parametrize("host", [HOST, WITHOUT_MODEL], ids=["with model", "without"])
def test_a_host_that_did_not_connect_fails_with_its_reason(host: Host) -> None:
    ended = Run([], [], set(), "exited with 1: unknown option")
    found = problems(host, ended, Facts(), [])
    assert found == ["did not connect", "exited with 1: unknown option"]


def test_a_tool_that_was_not_called_fails_a_run_unless_no_model_runs() -> None:
    called = {tool: how for tool, how in FACTS.calls.items() if tool != "audit_books"}
    facts = replace(FACTS, calls=called)
    assert problems(HOST, RUN, facts, []) == ["did not call audit_books"]
    assert WITHOUT_MODEL.without_model == NEEDS_LOGIN
    assert problems(WITHOUT_MODEL, Run([], [], set()), replace(FACTS, calls={}), []) == []


def test_a_result_that_did_not_reach_the_model_fails_a_run() -> None:
    ended = RUN._replace(results=RUN.results[1:])
    assert problems(HOST, ended, FACTS, []) == ["its model was not given '12 lamps in stock'"]


def test_a_question_that_could_not_be_asked_may_reach_the_model_in_any_form() -> None:
    results = [step.answer for step in SCRIPT if step.tool != "order_item"]
    facts = replace(FACTS, capabilities={}, question="")
    assert problems(HOST, RUN._replace(results=results), facts, []) == []
    assert problems(HOST, RUN._replace(results=results), FACTS, []) != []


def test_a_host_that_was_not_installed_is_named_with_the_reason(tmp_path: Path) -> None:
    why = missing_program(HOST, tmp_path)
    assert why == f"not run: npm did not install {HOST.package} on this system"
    program = tmp_path / "node_modules" / HOST.program[-1]
    program.parent.mkdir(parents=True)
    program.touch()
    assert missing_program(HOST, tmp_path) == ""


def test_a_run_that_fails_is_repeated_once_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began: list[tuple[str, str]] = []

    async def run_one(host: Host, way: str, folder: Path, *_: object) -> Outcome:
        began.append((way, folder.name.rpartition("-")[2]))
        return Outcome(FACTS, failure="slow" if began[-1] == ("HTTP", "HTTP") else "")

    monkeypatch.setattr(run, "run_one", run_one)
    outcomes = asyncio.run(run.run_all([HOST], tmp_path, tmp_path, ""))
    assert began == [*((way, way) for way in ways_of(HOST)), ("HTTP", "again")]
    assert not any(outcome.failure for outcome in outcomes.values())
    assert f"once more, alone: {HOST.name}, HTTP" in capsys.readouterr().out


def test_runs_that_take_too_long_in_all_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run_one(*_: object) -> Outcome:
        await asyncio.sleep(600)
        raise AssertionError

    monkeypatch.setattr(run, "run_one", run_one)
    monkeypatch.setattr(run, "LIMIT_S", 0.05)
    assert asyncio.run(run.run_all([HOST], tmp_path, tmp_path, "")) == {}
    assert "no end after 0.05 s" in capsys.readouterr().out


def test_a_host_without_a_file_in_the_project_comes_to_the_server_by_two_ways() -> None:
    assert ways_of(Host(**{**vars(HOST), "project": ""})) == ["stdio", "HTTP"]
    assert ways_of(Host(**{**vars(HOST), "project": "read"})) == ["stdio", "HTTP", "project"]
