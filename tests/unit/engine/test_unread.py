"""Unread answers: weighed, and a connection ends only if none of them is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline import ServerLimits, TransportError
from trunkline.accounts.budget import ByteBudget
from trunkline.engine.counters import Counters
from trunkline.engine.unread import UnreadAnswers
from trunkline.transports.base import HIGH_WATER

MIB = 1024 * 1024
TIMEOUT = 10.0


class Line:
    """A transport whose counters are set by the test."""

    def __init__(self) -> None:
        self.backlog = 0
        self.written = 0
        self.calls: list[str] = []

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")


class Scene:
    """Unread answers with a budget of 40 MiB, on a clock that the test moves."""

    def __init__(self, line: Any = None) -> None:
        self.line: Any = Line() if line is None else line
        self.budget = ByteBudget(40 * MIB, ByteBudget(1000 * MIB))
        self.peer: Any = SimpleNamespace(batched_bytes=0)
        self.counters = Counters()
        self.ended: list[TransportError] = []
        core: Any = SimpleNamespace(
            limits=ServerLimits(unread_timeout=TIMEOUT), counters=self.counters
        )
        self.unread = UnreadAnswers(core, self.budget, self.peer, self.line, self.ended.append)
        self.now = 0.0
        self.timer: Callable[[], object] | None = None
        self.unread._loop = self  # type: ignore[assignment]  # as much of a loop as it needs

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, act: Callable[[], object]) -> Any:
        self.delay, self.timer = delay, act
        return SimpleNamespace(cancel=lambda: setattr(self, "timer", None))

    def tick(self, seconds: float, taken: int = 0) -> None:
        """Let the timer fire for so long, while the client takes some bytes each time."""
        until = self.now + seconds
        while self.now < until and self.timer is not None and not self.ended:
            self.now += self.delay
            self.line.written += taken
            timer, self.timer = self.timer, None
            timer()


def run(script: Callable[[Scene], object], line: Any = None) -> None:
    async def main() -> None:
        script(Scene(line))

    asyncio.run(main())


def test_a_client_that_takes_nothing_for_the_whole_timeout_is_closed() -> None:
    def script(scene: Scene) -> None:
        scene.line.backlog = 11 * MIB
        scene.unread.weigh()
        scene.tick(TIMEOUT - 1)
        assert scene.ended == []
        scene.tick(2)
        assert "has not read any of" in str(scene.ended[0])
        assert scene.counters.closed_unread == 1

    run(script)


def test_a_client_that_takes_one_byte_at_a_time_is_not_closed() -> None:
    def script(scene: Scene) -> None:
        scene.line.backlog = 39 * MIB
        scene.unread.weigh()
        scene.tick(100 * TIMEOUT, taken=1)
        assert scene.ended == []
        # And the timeout begins again with each byte.
        scene.tick(TIMEOUT - 1)
        assert scene.ended == []
        scene.tick(2)
        assert scene.ended

    run(script)


def test_a_client_with_less_than_a_quarter_of_its_budget_unread_is_not_closed() -> None:
    def script(scene: Scene) -> None:
        scene.line.backlog = 10 * MIB
        scene.unread.weigh()
        scene.tick(100 * TIMEOUT)
        assert scene.ended == []
        # The time before does not count when more is unread.
        scene.line.backlog = 11 * MIB
        scene.tick(TIMEOUT - 1)
        assert scene.ended == []

    run(script)


def test_unread_output_is_charged_to_the_budgets_until_read_or_closed() -> None:
    def script(scene: Scene) -> None:
        overall = scene.budget.parent
        assert overall is not None
        scene.line.backlog, scene.peer.batched_bytes = 3 * MIB, MIB
        scene.unread.weigh()
        assert scene.budget.used == overall.used == 4 * MIB
        scene.line.backlog, scene.peer.batched_bytes = 1000, 0
        scene.tick(2)
        # A little is not weighed, and not watched.
        assert scene.budget.used == overall.used == 0
        assert scene.timer is None
        scene.line.backlog = 5 * MIB
        scene.unread.weigh()
        scene.unread.close()
        assert scene.budget.used == overall.used == 0
        assert scene.timer is None
        scene.unread.weigh()
        assert scene.budget.used == 0

    run(script)


def test_the_input_is_paused_once_while_the_whole_budget_is_unread() -> None:
    def script(scene: Scene) -> None:
        scene.line.backlog = 40 * MIB
        scene.unread.weigh()
        assert not scene.unread.is_over
        assert scene.line.calls == []
        scene.line.backlog = 40 * MIB + 1
        scene.unread.weigh()
        scene.unread.weigh()
        assert scene.unread.is_over
        assert scene.line.calls == ["pause"]
        scene.line.backlog = MIB
        scene.unread.drained()
        scene.unread.drained()
        assert scene.line.calls == ["pause", "resume"]
        assert not scene.unread.is_over

    run(script)


def test_a_transport_that_cannot_pause_is_closed_with_the_whole_budget_unread() -> None:
    def script(scene: Scene) -> None:
        scene.line.backlog = 41 * MIB
        scene.unread.weigh()
        assert "does not read the answers" in str(scene.ended[0])
        assert scene.counters.closed_unread == 1

    run(script, SimpleNamespace(backlog=0, written=0))


@pytest.mark.parametrize("backlog", [HIGH_WATER, HIGH_WATER + 1])
def test_the_input_is_paused_only_where_the_transport_reports_that_it_has_drained(
    backlog: int,
) -> None:
    def script(scene: Scene) -> None:
        scene.budget.limit = 1000
        scene.line.backlog = backlog
        scene.unread.weigh()
        assert scene.line.calls == (["pause"] if backlog > HIGH_WATER else [])

    run(script)
