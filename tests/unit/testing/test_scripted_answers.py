"""What a test answers when a handler asks."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from tests.unit.testing.scenes import Trip, differs
from trunkline import Context, Server
from trunkline.mcp.types import ElicitResult
from trunkline.testing import (
    AskedQuestion,
    UnansweredQuestion,
    run_in_both_eras_sync,
)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "decline None"),
        ("decline", "decline None"),
        ("cancel", "cancel None"),
        ("aisle", "accept aisle"),
        ({"value": "window"}, "accept window"),
        (ElicitResult("accept", content={"value": "aisle"}), "accept aisle"),
        (ElicitResult("cancel"), "cancel None"),
    ],
)
def test_an_answer_is_written_briefly(answer: Any, told: str) -> None:
    app = Server("tests")

    @app.tool
    async def seat(context: Context) -> str:
        answer = await context.elicit("Which seat?", Literal["aisle", "window"])
        return f"{answer.action} {answer.content}"

    given: Any
    for given in ({"elicitation-1": answer}, [answer], lambda _: answer):
        assert run_in_both_eras_sync(app, "seat", None, given).result.text == told


def test_models_roots_and_pages_are_answered_too() -> None:
    app = Server("tests")

    @app.tool
    async def everything(context: Context) -> str:
        reply, roots, page = await asyncio.gather(
            context.sample("Capital of Norway?", max_tokens=5),
            context.roots(),
            context.elicit_url("Pay here", "https://example.com/", key="pay"),
        )
        return f"{reply.content.text} {[root.uri for root in roots]} {page.action}"  # type: ignore[union-attr]  # a text

    async def later(question: AskedQuestion) -> Any:
        await asyncio.sleep(0)
        return {"sampling": "Oslo", "roots": ["file:///a"], "elicitation": True}[question.kind]

    answers = {"Capital of Norway?": "Oslo", "roots": ["file:///a"], "pay": True}
    for given in (answers, later):
        both = run_in_both_eras_sync(app, "everything", None, given)
        assert both.result.text == "Oslo ['file:///a'] accept"
        assert both.rounds == 2


def test_a_page_is_declined_by_false() -> None:
    app = Server("tests")

    @app.tool
    async def pay(context: Context) -> str:
        return (await context.elicit_url("Pay here", "https://example.com/")).action

    assert run_in_both_eras_sync(app, "pay", None, [False]).result.text == "decline"


@pytest.mark.parametrize("answers", [None, {"day": "Friday"}, [], {"other": 1}])
def test_a_question_without_an_answer_is_named(answers: Any) -> None:
    app = Server("tests")

    @app.tool
    async def ask(context: Context) -> str:
        await context.elicit("Which day?", str, key="day")
        await context.elicit("Which hour?", int, key="hour")
        return "done"

    with pytest.raises(UnansweredQuestion, match=r"Which (day|hour)\?") as caught:
        run_in_both_eras_sync(app, "ask", None, answers)
    missing = "hour" if answers == {"day": "Friday"} else "day"
    assert f"{missing} (elicitation/create)" in str(caught.value)
    assert isinstance(caught.value, AssertionError)


def test_unused_answers_are_reported() -> None:
    app = Server("tests")

    @app.tool
    async def ask(context: Context) -> str:
        return (await context.elicit("Sure?", bool)).action

    assert "1 of the answers were not used" in differs(app, "ask", None, [True, "more"])
    # By key they may serve several tests.
    run_in_both_eras_sync(app, "ask", None, {"Sure?": True, "Else?": False})


def test_an_answer_that_fits_no_form_is_a_mistake_of_the_test() -> None:
    app = Server("tests")

    @app.tool
    async def ask(context: Context) -> str:
        await context.elicit("Where to?", Trip)
        await context.roots()
        return ""

    with pytest.raises(TypeError, match=r"2 fields \(city, days\)"):
        run_in_both_eras_sync(app, "ask", None, ["Oslo"])
    with pytest.raises(TypeError, match="a list of URIs"):
        run_in_both_eras_sync(app, "ask", None, [{"city": "Oslo"}, "file:///a"])
