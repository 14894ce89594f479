"""Standing in for workers: whom is read when, and what is heard of one that is gone.

The client and the pipes to workers are played here, so that each moment can be looked at. How
the whole of it behaves is in `tests/terminal/test_serve.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.json import decode, encode

from tests.rigs.conditions import until_async
from tests.rigs.leaks import nothing_left
from trunkline.cli.exit_codes import USAGE_ERROR
from trunkline.cli.reload import stdio_front
from trunkline.cli.reload.stdio_front import StdioFront, _WorkerPipes
from trunkline.cli.reload.supervisor import WorkerRejected
from trunkline.cli.reload.worker import WorkerReport
from trunkline.errors import TransportError
from trunkline.jsonrpc.policy import Policy
from trunkline.transports.base import HIGH_WATER, LOW_WATER

WAIT = 30.0
MUCH = HIGH_WATER + 1
REPORT = WorkerReport(True, [])


class FakePipes:
    """One side of what is joined: takes what it is sent, and says what it is told to say."""

    def __init__(self, *_: object) -> None:
        self.on_message: Callable[[Any, Any], object]
        self.on_error: Callable[[Any], object]
        self.on_drained: Callable[[], object]
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.backlog = 0
        self.is_paused = False
        self.is_closed = False
        self.sent: list[Any] = []

    async def connect(self) -> None:
        """Begin."""

    async def close(self) -> None:
        self.is_closed = True

    async def finish(self) -> None:
        """Say that nothing more will come."""

    def send(self, frame: bytes) -> None:
        self.backlog += len(frame)
        self.sent.append(decode(frame))

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def say(self, **members: Any) -> None:
        self.on_message(encode({"jsonrpc": "2.0", **members}), None)

    def drain(self) -> None:
        """Take all there is."""
        self.backlog = 0
        self.on_drained()

    def answer(self, **result: Any) -> None:
        """Answer what it was asked last."""
        self.say(id=self.sent[-1]["id"], result=result)

    @property
    def answers(self) -> dict[Any, Any]:
        """What it was sent that answers something, by id."""
        return {each["id"]: each for each in self.sent if "method" not in each}

    @property
    def methods(self) -> list[str]:
        return [each["method"] for each in self.sent if "method" in each]


class Hand:
    """A worker, as far as anybody here looks at it."""

    def __init__(self) -> None:
        self.pipes: Any = (-1, -1)
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.is_stopping = False

    def stop(self) -> None:
        self.is_stopping = True
        self.finish(0)

    def finish(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(status)

    async def end(self) -> int:
        return await self.ended


class FrontWithWorkers:
    """A client, whoever stands in, and workers that are adopted one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stdio_front, "_DRAIN_TIMEOUT_S", 0.01)
        monkeypatch.setattr(stdio_front, "_PING_TIMEOUT_S", 0.01)
        self.host = FakePipes()
        self.pipes: list[FakePipes] = []
        monkeypatch.setattr(stdio_front, "StdioServer", lambda _: self.host)
        monkeypatch.setattr(stdio_front, "_WorkerPipes", self._made)
        self.front: Any = StdioFront(None)

    def _made(self, *_: object) -> FakePipes:
        self.pipes.append(FakePipes())
        return self.pipes[-1]

    async def begin(self) -> tuple[Hand, FakePipes]:
        """Let a first worker serve."""
        worker: Any = Hand()
        await self.front.adopt(worker, REPORT)
        return worker, self.pipes[-1]

    async def replace(self) -> tuple[Hand, FakePipes, asyncio.Task[None]]:
        """Begin to put another in its place: it is asked for a sign that it serves."""
        worker: Any = Hand()
        adopting = asyncio.create_task(self.front.adopt(worker, REPORT))
        count = len(self.pipes)
        await until_async(lambda: len(self.pipes) > count and self.pipes[-1].sent)
        return worker, self.pipes[-1], adopting

    async def shake_hands(self, pipes: FakePipes) -> None:
        """Make a handshake, with one wish that later workers are told of."""
        self.host.say(id="hello", method="initialize", params={})
        pipes.say(id="hello", result={"protocolVersion": "r", "capabilities": {}})
        self.host.say(id="level", method="logging/setLevel", params={"level": "debug"})
        pipes.say(id="level", result={})
        pipes.drain()

    def call(self, id: Any, size: int = 0) -> None:
        self.host.say(id=id, method="tools/call", params={"text": "x" * size})


def run(
    monkeypatch: pytest.MonkeyPatch, script: Callable[[FrontWithWorkers], Awaitable[None]]
) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            scene = FrontWithWorkers(monkeypatch)
            await script(scene)
            for each in scene.pipes:
                if not each.ended.done():
                    each.ended.set_result(None)
            scene.host.backlog = 0
            await scene.front.close()
            assert scene.host.is_closed
            assert all(each.is_closed for each in scene.pipes)

    with nothing_left():
        asyncio.run(bounded())


# Without a client


def test_standard_streams_that_cannot_be_used_end_it_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refuse() -> None:
        raise TransportError("there is no standard input")

    async def script(scene: FrontWithWorkers) -> None:
        ends: list[int] = []
        scene.front.on_end = ends.append
        monkeypatch.setattr(scene.host, "connect", refuse)
        await scene.front.serve_without_worker()
        assert ends == [USAGE_ERROR]

    run(monkeypatch, script)
    assert capsys.readouterr().err == "trunkline serve: there is no standard input\n"


# When the client is read


def test_a_client_waits_while_its_worker_has_much_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, pipes = await scene.begin()
        scene.call(1, HIGH_WATER // 2)
        assert not scene.host.is_paused
        scene.call(2, HIGH_WATER // 2)
        assert scene.host.is_paused
        pipes.drain()
        assert not scene.host.is_paused

    run(monkeypatch, script)


def test_a_client_does_not_wait_for_a_worker_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        worker, pipes = await scene.begin()
        scene.call(1, MUCH)
        assert scene.host.is_paused
        worker.finish(9)
        assert scene.front.on_worker_exit(worker, 9)
        assert not scene.host.is_paused
        pipes.ended.set_result(None)
        await until_async(lambda: 1 in scene.host.answers)
        scene.call(2)
        assert "it is restarted when" in scene.host.answers[2]["error"]["message"]

    run(monkeypatch, script)


def test_a_client_does_not_wait_for_a_worker_that_was_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, before = await scene.begin()
        scene.call(1, MUCH)
        _, after, adopting = await scene.replace()
        assert scene.host.is_paused  # it is still the turn of the one before
        after.answer()
        await adopting
        assert not scene.host.is_paused
        scene.call(2)
        assert after.sent[-1]["id"] == 2
        # What the other takes later changes nothing for the better or worse.
        scene.call(3, MUCH)
        before.drain()
        assert scene.host.is_paused

    run(monkeypatch, script)


def test_a_client_waits_while_much_is_held_back_whatever_a_worker_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, before = await scene.begin()
        await scene.shake_hands(before)
        _, after, adopting = await scene.replace()
        after.answer(protocolVersion="r")
        await until_async(lambda: after.methods[-1] == "logging/setLevel")
        scene.call(1, MUCH)
        assert 1 not in [each["id"] for each in before.sent]
        assert scene.host.is_paused
        before.drain()
        assert scene.host.is_paused
        after.answer()
        await adopting
        assert after.sent[-1]["id"] == 1
        assert scene.host.is_paused  # it has that to read now
        after.drain()
        assert not scene.host.is_paused

    run(monkeypatch, script)


def test_held_messages_go_to_the_old_worker_if_the_new_one_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, before = await scene.begin()
        await scene.shake_hands(before)
        worker, after, adopting = await scene.replace()
        after.answer(protocolVersion="r")
        await until_async(lambda: after.methods[-1] == "logging/setLevel")
        scene.call(1, MUCH)
        worker.finish(3)
        with pytest.raises(WorkerRejected, match="exited with status 3"):
            await adopting
        assert before.sent[-1]["id"] == 1
        before.drain()
        assert not scene.host.is_paused

    run(monkeypatch, script)


def test_a_client_that_is_made_to_wait_for_little_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Nothing says that so small a backlog has become smaller.
    async def script(scene: FrontWithWorkers) -> None:
        _, before = await scene.begin()
        await scene.shake_hands(before)
        _, after, adopting = await scene.replace()
        after.answer(protocolVersion="r")
        await until_async(lambda: after.methods[-1] == "logging/setLevel")
        scene.call(1, MUCH)
        after.answer()
        after.send = lambda frame: setattr(after, "backlog", LOW_WATER + 1)  # type: ignore[method-assign]  # most of it is taken at once
        await adopting
        assert not scene.host.is_paused

    run(monkeypatch, script)


def test_progress_is_not_kept_for_a_worker_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, before = await scene.begin()
        scene.call(1, MUCH)
        _, after, adopting = await scene.replace()
        after.answer()
        await adopting
        scene.host.say(method="notifications/progress", params={})
        assert "notifications/progress" in after.methods
        assert "notifications/progress" not in before.methods

    run(monkeypatch, script)


# When workers are read


def test_output_of_an_exited_worker_reaches_a_slow_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        worker, pipes = await scene.begin()
        for id in (1, 2, 3):
            scene.call(id)
        scene.host.backlog = HIGH_WATER
        pipes.answer(n=3)
        assert pipes.is_paused
        worker.finish(9)
        assert scene.front.on_worker_exit(worker, 9)
        # Many times as long as is waited for a worker that has nothing to say.
        await asyncio.sleep(0.2)
        assert set(scene.host.answers) == {3}
        scene.host.drain()
        assert not pipes.is_paused
        pipes.say(id=1, result={})
        pipes.ended.set_result(None)
        await until_async(lambda: 2 in scene.host.answers)
        answers = scene.host.answers
        assert ["error" in answers[id] for id in (1, 2, 3)] == [False, True, False]

    run(monkeypatch, script)


def test_pipe_kept_open_by_another_process_is_not_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        worker, pipes = await scene.begin()
        scene.call(1)
        worker.finish(9)
        assert scene.front.on_worker_exit(worker, 9)
        await until_async(lambda: 1 in scene.host.answers)
        assert not pipes.ended.done()

    run(monkeypatch, script)


def test_a_client_that_takes_nothing_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, pipes = await scene.begin()
        scene.call(1)
        scene.host.backlog = MUCH
        pipes.say(method="notifications/message", params={})
        assert pipes.is_paused
        await scene.front.close()
        assert "was stopped" in scene.host.answers[1]["error"]["message"]

    run(monkeypatch, script)


def test_a_client_that_has_ended_its_output_is_not_answered_for_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        worker, pipes = await scene.begin()
        scene.call(1)
        scene.call(2)
        scene.host.on_error(None)
        pipes.say(id=2, result={})
        worker.finish(0)
        await scene.front.close()
        assert list(scene.host.answers) == [2]

    run(monkeypatch, script)


def test_a_client_that_takes_something_is_given_the_rest_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, pipes = await scene.begin()
        scene.call(1)
        scene.host.backlog = MUCH
        pipes.say(method="notifications/message", params={})
        closing = asyncio.create_task(scene.front.close())
        taken = 0
        while not closing.done() and taken < 4:
            # Little by little, and never twice without anything.
            scene.host.backlog -= 1
            taken += 1
            await asyncio.sleep(0.005)
        assert not closing.done()
        scene.host.drain()
        pipes.say(id=1, result={})
        pipes.ended.set_result(None)
        await closing
        assert "result" in scene.host.answers[1]

    run(monkeypatch, script)


def test_a_client_that_takes_something_for_ever_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, pipes = await scene.begin()
        scene.call(1)
        scene.host.backlog = 2 * MUCH
        pipes.say(method="notifications/message", params={})

        async def take() -> None:
            while True:
                scene.host.backlog -= 1
                await asyncio.sleep(0.005)

        taking = asyncio.create_task(take())
        await scene.front.close()
        taking.cancel()
        assert "error" in scene.host.answers[1]

    run(monkeypatch, script)


def test_a_worker_that_is_about_to_take_over_is_read_on_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        await scene.begin()
        _, after, adopting = await scene.replace()
        scene.host.backlog = HIGH_WATER
        after.say(method="notifications/message", params={})
        assert after.is_paused
        scene.host.drain()
        assert not after.is_paused
        after.answer()
        await adopting

    run(monkeypatch, script)


def test_workers_are_read_on_when_the_client_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        worker, pipes = await scene.begin()
        scene.host.backlog = HIGH_WATER
        pipes.say(method="notifications/message", params={})
        assert pipes.is_paused
        scene.host.on_error(stdio_front.TransportError("the client stopped reading"))
        assert not pipes.is_paused
        worker.finish(0)

    run(monkeypatch, script)


# Taking over


def test_a_worker_that_ends_with_its_last_answer_does_not_take_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(scene: FrontWithWorkers) -> None:
        _, before = await scene.begin()
        worker, after, adopting = await scene.replace()
        after.answer()
        worker.finish(4)
        assert not scene.front.on_worker_exit(worker, 4)
        with pytest.raises(WorkerRejected, match="exited with status 4"):
            await adopting
        scene.call(1)
        assert before.sent[-1]["id"] == 1

    run(monkeypatch, script)


# Pipes


def test_the_directions_of_pipes_end_one_by_one() -> None:
    async def script() -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        pipes = _WorkerPipes(Policy(), (ours_in, ours_out))
        came = asyncio.Queue[Any]()
        pipes.on_message = lambda frame, _: came.put_nowait(frame)
        pipes.on_error = came.put_nowait
        await pipes.connect()
        pipes.send(b"{}")
        await pipes.finish()
        assert os.read(theirs_in, 100) == b"{}\n"
        assert os.read(theirs_in, 100) == b""
        os.write(theirs_out, b"[]\n")
        assert await asyncio.wait_for(came.get(), 10) == b"[]"
        os.close(theirs_out)
        assert await asyncio.wait_for(came.get(), 10) is None
        await pipes.close()
        os.close(theirs_in)

    with nothing_left():
        asyncio.run(script())


def test_a_pipe_that_breaks_has_nothing_left_to_write_and_says_so() -> None:
    async def script() -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        pipes = _WorkerPipes(Policy(), (ours_in, ours_out))
        drained = asyncio.Event()
        pipes.on_drained = drained.set
        await pipes.connect()
        pipes.send(b"x" * (2 * HIGH_WATER))
        await asyncio.sleep(0.05)
        assert not drained.is_set()
        os.close(theirs_in)
        await asyncio.wait_for(drained.wait(), WAIT)
        assert pipes.backlog == 0
        await pipes.close()
        os.close(theirs_out)

    with nothing_left():
        asyncio.run(script())
