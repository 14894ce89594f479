"""Differences between the two eras, as the report shows them."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.unit.testing.scenes import Trip, differs
from trunkline import Context, RequestError, Server, ToolError, ToolOutput
from trunkline.errors import PeerError
from trunkline.mcp.types import AudioContent, ResourceLink
from trunkline.spec.error_kinds import ErrorKind
from trunkline.testing import (
    run_in_both_eras_sync,
)


def test_a_failed_tool_and_an_error_are_outcomes_like_others() -> None:
    app = Server("tests")

    @app.tool
    async def fail(context: Context) -> str:
        await context.elicit("Sure?", bool)
        raise ToolError("no luck")

    @app.tool
    async def refuse(context: Context) -> str:
        await context.elicit("Sure?", bool)
        raise RequestError(ErrorKind.RESOURCE_NOT_FOUND, "not there")

    failed = run_in_both_eras_sync(app, "fail", None, [True])
    assert (failed.result.is_error, failed.result.text) == (True, "no luck")
    refused = run_in_both_eras_sync(app, "refuse", None, [True])
    assert isinstance(refused.error, PeerError)
    # One meaning, and a number that is not the same in both revisions.
    codes = [run.error.code for run in refused.runs if run.error is not None]
    assert codes == [-32002, -32602]
    with pytest.raises(PeerError, match="not there"):
        _ = refused.result


def test_reports_count_as_effects() -> None:
    app = Server("tests")
    runs = itertools.count()

    @app.tool
    async def report(context: Context) -> str:
        if next(runs) != 1:  # so that the first run of the second era is the silent one
            context.log("info", "working")
        await context.elicit("Sure?", bool)
        context.log("info", "working")
        if next(runs) > 3:
            context.log("info", "more")
        return "done"

    report_text = differs(app, "report", None, [True], ignore=["runs"])
    assert "notifications/message" in report_text


def test_reports_that_a_second_run_does_not_repeat_pass() -> None:
    app = Server("tests")

    @app.tool
    async def report(context: Context) -> str:
        context.log("info", "before")
        context.progress(1)
        await context.elicit("Sure?", bool)
        context.log("debug", "after")
        context.progress(2)
        return "done"

    both = run_in_both_eras_sync(app, "report", None, [True])
    assert [len(run.reports) for run in both.runs] == [4, 4]


def test_different_results_are_shown_beside_each_other() -> None:
    app = Server("tests")
    runs: list[int] = []

    @app.tool
    async def which(context: Context) -> str:
        await context.elicit("Sure?", bool)
        runs.append(1)
        return f"run {len(runs)}"

    report_text = differs(app, "which", None, [True])
    assert "The results differ:\n  2025-11-25: 'run 1'\n  2026-07-28: 'run 2'" in report_text


def test_a_different_structure_or_failure_is_a_difference() -> None:
    app = Server("tests")

    @app.tool
    async def failing(context: Context) -> str:
        if context.revision == "2026-07-28":
            raise ToolError("not here")
        return "fine"

    @app.tool
    async def refusing(context: Context) -> str:
        if context.revision == "2026-07-28":
            raise RequestError(ErrorKind.INVALID_PARAMS, "not here")
        return "fine"

    @app.tool
    async def codes(context: Context) -> str:
        is_new = context.revision == "2026-07-28"
        raise RequestError(ErrorKind.INVALID_PARAMS if is_new else ErrorKind.INTERNAL_ERROR, "no")

    assert "failed, 'not here'" in differs(app, "failing")
    assert "One era answers with an error" in differs(app, "refusing")
    assert "The errors differ" in differs(app, "codes")


def test_elicitation_that_changes_between_runs_is_reported() -> None:
    app = Server("tests")
    numbers = itertools.count()

    @app.tool
    async def unsteady(context: Context) -> str:
        answer = await context.elicit(f"Sure of {next(numbers)}?", bool, key="sure")
        return answer.action

    report_text = differs(app, "unsteady", None, {"sure": True})
    assert "One era answers with an error" in report_text
    assert "has changed since it was answered" in report_text
    assert "The questions differ" in report_text
    assert "Sure of 0?" in report_text


def test_questions_put_together_may_come_in_any_order() -> None:
    app = Server("tests")

    @app.tool
    async def together(context: Context) -> str:
        names = ["a", "b"] if context.revision == "2026-07-28" else ["b", "a"]
        found = await asyncio.gather(*(context.elicit(f"{n}?", str, key=n) for n in names))
        return " ".join(sorted(str(each.content) for each in found))

    both = run_in_both_eras_sync(app, "together", None, {"a": "1", "b": "2"})
    assert both.result.text == "1 2"


def test_a_tool_that_fails_unexpectedly_fails_alike_whatever_the_log_calls_it() -> None:
    app = Server("tests")

    @app.tool
    async def broken(context: Context) -> str:
        await context.elicit("Sure?", bool)
        raise KeyError("private")

    both = run_in_both_eras_sync(app, "broken", None, [True])
    assert both.result.is_error
    assert both.handshake.text != both.per_request.text


@pytest.mark.parametrize("older", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_loss_by_an_older_revision_is_not_a_difference(older: str) -> None:
    app = Server("tests", revisions=[older, "2026-07-28"])

    @app.tool
    async def number(context: Context) -> int:
        await context.sample("How many?", max_tokens=5)
        return 7

    @app.tool
    async def trip() -> Trip:
        return Trip("Oslo")

    @app.tool
    async def listed() -> list[Trip]:
        return [Trip("Oslo"), Trip("Bergen", 1)]

    @app.tool
    async def blocks() -> list[Any]:
        link = ResourceLink("a", "test://a", description="A thing")
        return ["text", AudioContent("aGVq", "audio/wav"), link]

    for name in ("number", "trip", "listed", "blocks"):
        both = run_in_both_eras_sync(app, name, None, {"sampling": "7"})
        assert both.runs[0].revision == older
        assert not both.result.is_error


def test_different_structured_result_under_equal_text_is_reported() -> None:
    app = Server("tests")

    @app.tool
    async def weigh(context: Context) -> ToolOutput[dict[str, int]]:
        grams = 2 if context.revision == "2026-07-28" else 1
        return ToolOutput({"grams": grams}, text="Weighed.")

    report_text = differs(app, "weigh")
    assert "The structured results differ" in report_text
    assert "The results differ" not in report_text
