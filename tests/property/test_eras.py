"""Any handler is the same in both eras: what it asks, what it is told, what it does once.

The one invariant: a handler made of asks, things done once, branches on answers, and any of
these side by side, gives the same with and without being run again, and does nothing twice.
What it does outside of `once` before it asks is found out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, TypeAlias
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.effort import examples
from trunkline import Context, Server
from trunkline.server import ServerLimits
from trunkline.testing import AskedQuestion, ErasDiffer, run_in_both_eras_sync

# A step is a word and what belongs to it.
Step: TypeAlias = tuple[Any, ...]
Program: TypeAlias = list[Step]

# More than any of these programs asks, so that limits are not what is tested.
LIMITS = ServerLimits(rounds=200)


def programs(depth: int = 2) -> some.SearchStrategy[Program]:
    """Return handlers as values."""
    steps = some.one_of(
        some.tuples(some.just("ask"), some.sampled_from(["form", "model", "roots"])),
        # As many turns of the loop as a round takes to end, and more.
        some.tuples(some.just("once"), some.integers(0, 12)),
        some.tuples(some.just("pause"), some.integers(1, 3)),
    )
    if depth:
        inner = programs(depth - 1)
        steps = some.one_of(
            steps,
            some.tuples(some.just("if"), inner, inner),
            some.tuples(some.just("together"), some.lists(inner, min_size=1, max_size=3)),
        )
    return some.lists(steps, max_size=4)


class Play:
    """One run of a program."""

    def __init__(self, context: Context, done: list[str]) -> None:
        self.context = context
        self.done = done

    async def run(self, program: Program, path: str, *, is_alone: bool) -> list[Any]:
        """Run the steps; return what each of them learnt."""
        learnt: list[Any] = []
        for number, (word, *rest) in enumerate(program):
            place = f"{path}.{number}"
            if word == "ask":
                learnt.append(await self.ask(rest[0], place, is_alone=is_alone))
            elif word == "once":
                learnt.append(await self.once(rest[0], place))
            elif word == "pause":
                for _ in range(rest[0]):
                    await asyncio.sleep(0)
            elif word == "if":
                chosen = crc32(repr(learnt).encode()) % 2
                learnt.append(await self.run(rest[chosen], place, is_alone=is_alone))
            else:
                learnt.append(await self.together(rest[0], place))
        return learnt

    async def ask(self, kind: str, place: str, *, is_alone: bool) -> Any:
        # Counted keys are for questions one after the other; side by side they are named.
        key = None if is_alone else place
        if kind == "form":
            answer = await self.context.elicit(f"{place}?", int, key=key)
            return answer.action, answer.content
        if kind == "model":
            reply = await self.context.sample(f"{place}?", max_tokens=5, key=key)
            return reply.content.text  # type: ignore[union-attr]  # a text
        return [root.uri for root in await self.context.roots(key=key)]

    async def once(self, turns: int, place: str) -> Any:
        async def work() -> str:
            for _ in range(turns):
                await asyncio.sleep(0)
            self.done.append(place)
            return f"did {place}"

        return await self.context.once(place, work, type=str)

    async def together(self, branches: list[Program], place: str) -> list[Any]:
        runs = (
            self.run(each, f"{place}/{number}", is_alone=False)
            for number, each in enumerate(branches)
        )
        return list(await asyncio.gather(*runs))


def answer(question: AskedQuestion) -> Any:
    """Answer by the text of the question alone, or its key where it has none."""
    number = crc32((question.text or question.key).encode())
    if question.kind == "elicitation":
        return "decline" if number % 5 == 0 else number % 7
    return f"model {number % 7}" if question.kind == "sampling" else [f"file:///{number % 7}"]


def server(program: Program, done: list[str], careless: list[str] | None = None) -> Server:
    app = Server("tests", limits=LIMITS)

    @app.tool
    async def play(context: Context) -> str:
        if careless is not None:
            careless.append("again")
        return repr(await Play(context, done).run(program, "p", is_alone=True))

    return app


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(program=programs(), is_remade=some.booleans())
def test_a_program_is_the_same_in_both_eras_and_does_nothing_twice(
    program: Program, is_remade: bool
) -> None:
    done: list[str] = []
    made = (lambda: server(program, done)) if is_remade else server(program, done)
    both = run_in_both_eras_sync(made, "play", None, answer)
    assert not both.result.is_error
    # Once in each era.
    assert set(Counter(done).values()) <= {2}
    asked = [each.key for each in both.questions]
    assert len(asked) == len(set(asked))
    assert sorted(asked) == sorted(each.key for each in both.runs[0].questions)
    # Questions put together travel together, so there are no more rounds than questions.
    assert (both.rounds > 1) == bool(asked)
    assert both.rounds <= len(asked) + 1


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(program=programs(depth=1))
def test_side_effect_before_a_client_request_outside_once_raises_eras_differ(
    program: Program,
) -> None:
    careless: list[str] = []
    app = server(program, [], careless)
    asks = bool(run_in_both_eras_sync(app, "play", None, answer, ignore=["careless"]).questions)
    if not asks:
        run_in_both_eras_sync(app, "play", None, answer)
        return
    with pytest.raises(ErasDiffer, match="careless: "):
        run_in_both_eras_sync(app, "play", None, answer)
