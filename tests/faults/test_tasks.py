"""Long work that goes wrong: stores that fail, servers that die, clients that leave, and races."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import Piped, address, piped
from tests.rigs.conditions import WAIT_S, until, until_async
from tests.rigs.leaks import alive, children, grown, run
from tests.rigs.messages import HANDSHAKE, PER_REQUEST
from tests.unit.client.scripted import SILENT, Place, Refused, discovery, text
from tests.unit.server.task_talk import CAPABILITIES, EXTENSION, OVER, Talk, accept, talking
from trunkline import (
    Cancelled,
    Client,
    ConnectionLost,
    Context,
    PeerError,
    RequestAborted,
    RequestTimeout,
    Server,
    ServerLimits,
    TaskSettings,
    TrunklineError,
)
from trunkline.engine.handler_run import HandlerRun
from trunkline.engine.tasks.lifecycle import RunningTask
from trunkline.store import Key, MemoryStore, StoreLimits, StoreUnavailable

FORMS = [HANDSHAKE, PER_REQUEST]
DEFAULT_LIMITS = StoreLimits()


@pytest.fixture
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what others may have changed looked at more often than anybody would wait for."""
    monkeypatch.setattr("trunkline.engine.tasks.runner.CHECK_INTERVAL_S", 0.1)


class FaultyStore(MemoryStore):
    """A store that does not answer when it is asked for certain things.

    `fails` holds operations, or an operation and the kind of key it is about. What fails may
    have happened all the same, and a store that hangs gives no answer at all.
    """

    def __init__(self, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        super().__init__(limits)
        self.fails: set[str] = set()
        self.happens = False
        self.hangs = False
        self.failed = 0
        self.reason = "canary-address-of-the-engine"

    async def _do(self, name: str, kind: str, work: Callable[[], Any]) -> Any:
        if not self.fails & {name, f"{name} {kind}"}:
            return await work()
        self.failed += 1
        if self.happens:
            await work()
        if self.hangs:
            await asyncio.Event().wait()
        raise StoreUnavailable(self.reason)

    async def get(self, key: Key) -> Any:
        return await self._do("get", key.kind, lambda: super(FaultyStore, self).get(key))

    async def put(self, key: Key, value: bytes, *, ttl: float | None) -> Any:
        work = super().put
        return await self._do("put", key.kind, lambda: work(key, value, ttl=ttl))

    async def compare_and_set(self, key: Key, value: bytes, **options: Any) -> Any:
        work = super().compare_and_set
        return await self._do("set", key.kind, lambda: work(key, value, **options))

    async def delete(self, key: Key, **options: Any) -> Any:
        work = super().delete
        return await self._do("delete", key.kind, lambda: work(key, **options))

    async def scan(self, prefix: Key, **options: Any) -> Any:
        work = super().scan
        return await self._do("scan", prefix.kind, lambda: work(prefix, **options))

    async def publish(self, channel: Key, data: bytes) -> None:
        work = super().publish
        await self._do("publish", channel.kind, lambda: work(channel, data))

    async def subscribe(self, *channels: Key) -> Any:
        work = super().subscribe
        return await self._do("subscribe", channels[0].kind, lambda: work(*channels))

    async def names(self) -> list[tuple[str, str]]:
        """Return what is kept of tasks."""
        self.fails.clear()
        kinds = ("task", "task-of", "task-runner")
        pages = [(kind, await self.scan(Key("", kind, ""), limit=1000)) for kind in kinds]
        return [(kind, key.name) for kind, page in pages for key in page.keys]


class Workshop:
    """A server whose tools are tasks, and what became of them."""

    def __init__(
        self, store: FaultyStore | None = None, limits: dict[str, Any] | None = None, **tasks: Any
    ) -> None:
        self.store = store or FaultyStore()
        self.app = app = Server(
            "workshop",
            store=self.store,
            limits=ServerLimits(**{"grace": 0.05, "linger": 0.05, **(limits or {})}),
            tasks=TaskSettings(**{"poll_interval": 0.001, "quick": 0, **tasks}),
        )
        self.gate = asyncio.Event()
        self.begun = 0
        self.ended: list[str] = []

        async def work() -> str:
            self.begun += 1
            try:
                await self.gate.wait()
            except BaseException as error:
                self.ended.append(type(error).__name__)
                raise
            return "done"

        app.add_tool(work, "work", task="optional")
        app.add_tool(work, "long_only", task="required")

        @app.tool(task="optional")
        async def quick() -> str:
            return "at once"

        @app.tool(task="optional")
        async def asks(ctx: Context) -> str:
            answer = await ctx.elicit("Which?", str, key="which")
            return f"for {answer.content}"

        @app.tool(task="optional")
        async def stubborn() -> str:
            self.begun += 1
            while not self.gate.is_set():
                try:
                    await self.gate.wait()
                except asyncio.CancelledError:
                    self.ended.append("swallowed")
            return "too late"

        @app.tool
        async def echo(text: str) -> str:
            return text

    def is_idle(self) -> bool:
        return not self.app._core.services.tasks.running and not len(
            self.app._core.services.tasks.result_waiters
        )

    def is_closed(self) -> bool:
        """Return True if the lifespan was exited, to its last step."""
        life = self.app._core.runtime._life
        is_exiting = life._opening is not None and life._opening[1].locked()
        return not life.is_held and not is_exiting

    async def still_serves(self, talk: Talk) -> None:
        result = await talk.ask("tools/call", name="echo", arguments={"text": "on"})
        assert result["content"][0]["text"] == "on"


def is_temporary(error: Any) -> bool:
    """Say whether an error tells a client to come again, and nothing of why."""
    assert "canary" not in str(error)
    return bool(error["code"] == -32603 and error["data"]["retryAfterMs"] > 0)


# Stores that fail


CREATION = ["subscribe task-wake", "put task-runner", "set task"]


@pytest.mark.parametrize("happens", [False, True], ids=["fails", "fails after it happened"])
@pytest.mark.parametrize(
    ("revision", "where"),
    # Only one of the two forms has lists.
    [*((each, where) for each in FORMS for where in CREATION), (HANDSHAKE, "put task-of")],
)
def test_a_store_that_fails_when_a_task_is_made_refuses_the_call_and_keeps_nothing(
    revision: str, where: str, happens: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        shop = Workshop()
        shop.store.happens = happens
        async with talking(shop.app, revision) as talk:
            shop.store.fails = {where}
            extra: dict[str, Any] = {"task": {}} if revision == HANDSHAKE else {}
            error = await talk.refused("tools/call", name="long_only", arguments={}, **extra)
            assert is_temporary(error)
            assert shop.store.failed
            assert shop.begun == 0
            assert shop.is_idle()
            kept = await shop.store.names()
            assert [each for each in kept if each[0] != "task-runner"] == []
            # When the store is there again, so are tasks.
            shop.gate.set()
            await talk.until(await talk.begin("long_only"), "completed")
        # A sign of life that may not have been given is not taken back; it ends by itself.
        kept = await shop.store.names()
        signs = [each for each in kept if each[0] == "task-runner"]
        assert len(signs) == (happens and where == "put task-runner")

    run(script, timers_too=True)
    assert "task not started" in caplog.text


@pytest.mark.parametrize("where", ["get", "get task"])
@pytest.mark.parametrize("revision", FORMS)
def test_a_store_that_fails_when_it_is_read_has_every_request_answered(
    revision: str, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        shop = Workshop()
        async with talking(shop.app, revision) as talk:
            task = await talk.begin("work")
            shop.store.fails = {where}
            methods = ["tasks/get", "tasks/cancel"]
            methods += ["tasks/result"] if revision == HANDSHAKE else ["tasks/update"]
            for method in methods:
                params: dict[str, Any] = {"taskId": task["taskId"]}
                if method == "tasks/update":
                    params["inputResponses"] = {}
                assert is_temporary(await talk.refused(method, **params)), method
            await shop.still_serves(talk)
            assert shop.app._core.runtime.in_flight == 0
            shop.store.fails.clear()
            shop.gate.set()
            assert (await talk.until(task))["status"] == "completed"

    run(script, timers_too=True)
    assert "failed, store error" in caplog.text


@pytest.mark.parametrize("revision", FORMS)
def test_a_store_that_fails_when_it_lists_has_the_request_answered(revision: str) -> None:
    async def script() -> None:
        shop = Workshop()
        async with talking(shop.app, revision) as talk:
            shop.store.fails = {"scan"}
            error = await talk.refused("tasks/list")
            assert error["code"] == -32601 if revision == PER_REQUEST else is_temporary(error)

    run(script, timers_too=True)


@pytest.mark.usefixtures("_looks_often")
@pytest.mark.parametrize("happens", [False, True], ids=["fails", "fails after it happened"])
def test_a_store_that_fails_when_an_answer_is_brought_lets_it_be_brought_again(
    happens: bool,
) -> None:
    async def script() -> None:
        shop = Workshop()
        shop.store.happens = happens
        async with talking(shop.app, PER_REQUEST) as talk:
            task = await talk.begin("asks")
            await talk.until(task, "input_required")
            shop.store.fails = {"set task"}
            params = {"taskId": task["taskId"], "inputResponses": {"which": accept("this")}}
            assert is_temporary(await talk.refused("tasks/update", **params))
            shop.store.fails.clear()
            await talk.ask("tasks/update", **params)
            assert (await talk.until(task))["status"] == "completed"
            assert shop.is_idle()

    run(script, timers_too=True)


@pytest.mark.parametrize("happens", [False, True], ids=["fails", "fails after it happened"])
@pytest.mark.usefixtures("_looks_often")
@pytest.mark.parametrize("revision", FORMS)
def test_a_store_that_fails_when_a_task_is_cancelled_lets_it_be_cancelled_again(
    revision: str, happens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.rigs.conditions.WAIT_S", 1.0)

    async def script() -> None:
        shop = Workshop()
        shop.store.happens = happens
        async with talking(shop.app, revision) as talk:
            task = await talk.begin("work")
            shop.store.fails = {"set task"}
            assert is_temporary(await talk.refused("tasks/cancel", taskId=task["taskId"]))
            shop.store.fails.clear()
            await talk.reply("tasks/cancel", taskId=task["taskId"])
            assert (await talk.until(task))["status"] == "cancelled"
            # Nobody goes on working for nothing.
            await until_async(lambda: shop.ended == ["CancelledError"])
            await until_async(shop.is_idle)

    run(script, timers_too=True)


@pytest.mark.parametrize("happens", [False, True], ids=["fails", "fails after it happened"])
@pytest.mark.parametrize("where", ["set task", "get task"])
@pytest.mark.parametrize("revision", FORMS)
def test_a_store_that_fails_when_a_task_ends_is_tried_until_it_is_there_again(
    revision: str,
    where: str,
    happens: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._MIN_RETRY_DELAY_S", 0.005)

    async def script() -> None:
        shop = Workshop()
        shop.store.happens = happens
        async with talking(shop.app, revision) as talk:
            task = await talk.begin("work")
            shop.store.fails = {where}
            shop.gate.set()
            # What has happened all the same is found when it is tried again.
            once = happens and where == "set task"
            await until_async(lambda: shop.store.failed >= (1 if once else 3))
            await shop.still_serves(talk)
            shop.store.fails.clear()
            assert (await talk.until(task))["status"] == "completed"
            await until_async(shop.is_idle)

    run(script, timers_too=True)
    assert "task outcome not stored" in caplog.text


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("revision", FORMS)
def test_a_store_that_hangs_when_a_task_ends_does_not_hold_up_the_end_of_the_server(
    revision: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._CLEANUP_TIMEOUT_S", 0.05)
    monkeypatch.setattr("tests.rigs.conditions.WAIT_S", 1.0)

    async def script() -> None:
        shop = Workshop()
        async with talking(shop.app, revision) as talk:
            await talk.begin("work")
            shop.store.hangs = True
            shop.store.fails = {"set task"}
            shop.gate.set()
            await until_async(lambda: shop.store.failed)
            shop.app.stop(at_once=at_once)
            await until_async(lambda: talk.wire.ended)
        await until_async(shop.is_closed)

    run(script, timers_too=True)


@pytest.mark.parametrize("how", ["cancel", "leave", "stop"])
@pytest.mark.parametrize("where", CREATION)
def test_store_that_hangs_at_task_creation_does_not_block_cancel_or_close(
    where: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._CLEANUP_TIMEOUT_S", 0.05)

    async def script() -> None:
        shop = Workshop()
        shop.store.hangs = True
        async with talking(shop.app, PER_REQUEST) as talk:
            shop.store.fails = {where}
            id = talk.send("tools/call", name="long_only", arguments={})
            await until_async(lambda: shop.store.failed)
            await shop.still_serves(talk)
            if how == "cancel":
                talk.wire.tell("notifications/cancelled", {"requestId": id})
                await until_async(lambda: shop.app._core.runtime.in_flight == 0)
                await shop.still_serves(talk)
                assert not [each for each in talk.wire.got if each.get("id") == id]
            elif how == "stop":
                shop.app.stop()
                assert is_temporary((await talk.wire.answer(id))["error"])
        await until_async(shop.is_closed)
        assert shop.begun == 0
        assert shop.is_idle()
        assert await shop.store.names() == []

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_store_errors_are_logged_without_secrets(
    revision: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._MIN_RETRY_DELAY_S", 0.005)

    async def script() -> None:
        shop = Workshop()
        shop.store.reason = "no answer from redis://user:canary-of-the-store@example.org/"
        async with talking(shop.app, revision) as talk:
            task = await talk.begin("work")
            for where in ("get", "set task", "delete", "publish", "touch"):
                shop.store.fails = {where}
                await talk.reply("tasks/get", taskId=task["taskId"])
                await talk.reply("tasks/cancel", taskId=task["taskId"])
                await talk.reply("tools/call", name="long_only", arguments={}, task={})
            shop.store.fails = {"set task"}
            shop.gate.set()
            await until_async(lambda: shop.store.failed > 5)
            shop.store.fails.clear()
            await until_async(shop.is_idle)

    run(script, timers_too=True)
    shown = [caplog.handler.format(each) for each in caplog.records]
    assert [each for each in shown if "no answer from" in each]
    assert [each for each in shown if "canary" in each] == []


def test_an_answer_that_is_too_large_to_be_kept_is_refused_and_another_may_be_given() -> None:
    async def script() -> None:
        shop = Workshop(FaultyStore(StoreLimits(value_bytes=10_000)))
        async with talking(shop.app, PER_REQUEST) as talk:
            task = await talk.begin("asks")
            await talk.until(task, "input_required")
            params: dict[str, Any] = {"taskId": task["taskId"]}
            for large in ({"which": accept("x" * 20_000)}, {"which": accept("x" * 2_000_000)}):
                assert "error" in await talk.reply("tasks/update", inputResponses=large, **params)
            # Nor are answers to what was not asked kept, however many there are.
            others = {f"k{n}": accept("x" * 100) for n in range(10_000)}
            await talk.ask("tasks/update", inputResponses=others, **params)
            await talk.ask("tasks/update", inputResponses={"which": accept("y")}, **params)
            ended = await talk.until(task)
            assert ended["result"]["content"][0]["text"] == "for y"

    run(script, timers_too=True)


def test_a_full_store_refuses_tasks_and_nothing_else_and_has_room_again_in_time() -> None:
    async def script() -> None:
        shop = Workshop(FaultyStore(StoreLimits(keys=10)), ttl=3.0)
        shop.gate.set()
        async with talking(shop.app, PER_REQUEST) as talk:
            made = 0
            while made < 20:
                reply = await talk.reply("tools/call", name="long_only", arguments={})
                if "error" in reply:
                    break
                made += 1
            assert 0 < made < 10
            assert is_temporary(reply["error"])
            await shop.still_serves(talk)
            await until_async(shop.is_idle)
            # What has expired makes room.
            deadline = asyncio.get_running_loop().time() + WAIT_S
            while "error" in await talk.reply("tools/call", name="long_only", arguments={}):
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.05)

    run(script, timers_too=True)


# Time to live, restarts, and dead servers


@pytest.mark.parametrize("revision", FORMS)
def test_a_task_that_expires_between_two_polls_is_gone_and_its_handler_is_stopped(
    revision: str,
) -> None:
    async def script() -> None:
        shop = Workshop(ttl=1.0)
        async with talking(shop.app, revision) as talk:
            task = await talk.begin("work")
            assert (await talk.ask("tasks/get", taskId=task["taskId"]))["status"] == "working"
            waiting = talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: shop.ended == ["CancelledError"])
            for method in ("tasks/get", "tasks/cancel"):
                error = await talk.refused(method, taskId=task["taskId"])
                assert error["code"] == -32602
                assert task["taskId"] not in str(error)
            assert "error" in await talk.wire.answer(waiting)
            await until_async(shop.is_idle)
            kept = await shop.store.names()
            assert {kind for kind, _ in kept} <= {"task-runner"}

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_expired_task_raises_peer_error_in_the_client(revision: str) -> None:
    async def script() -> None:
        shop = Workshop(ttl=0.1)
        async with Client(shop.app, revision=revision) as client:
            call = await client.call_tool_as_task("work")
            with pytest.raises(PeerError) as raised:
                await call.result()
            assert "not found" in str(raised.value)
            assert call.id is not None
            assert call.id not in f"{raised.value} {call!r} {client!r}"
            # And when it is asked for much later.
            with pytest.raises(PeerError):
                await client.task(call.id).result()
            with pytest.raises(PeerError):
                await client.task(call.id).cancel()

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_after_a_restart_a_task_of_before_is_not_known_and_our_client_says_so(
    revision: str, tmp_path: Path
) -> None:
    path = tmp_path / "end"

    async def script() -> None:
        before = children()
        client = Client(address("server.py", '{"linger": 0.1}'), revision=revision)
        await client.connect()
        (pid,) = children() - before
        call = await client.call_tool_as_task("long_work", {"path": str(path)})
        assert call.id is not None
        waiting = asyncio.create_task(call.result())
        hidden = asyncio.create_task(client.call_tool("long_work", {"path": str(path)}))
        await until_async(Path(f"{path}.begun").exists)
        os.kill(pid, signal.SIGKILL)
        for each in (waiting, hidden):
            with pytest.raises(ConnectionLost):
                await each
        await client.connect()
        with pytest.raises(PeerError) as raised:
            await client.task(call.id).result()
        assert raised.value.code == -32602
        assert "not found" in str(raised.value)
        assert (await client.call_tool("echo", {"text": "on"})).text == "on"
        await client.close()

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_task_of_a_dead_server_has_failed_on_another_server(revision: str) -> None:
    async def script() -> None:
        store = FaultyStore()
        dead, other = Workshop(store), Workshop(store)
        async with Client(dead.app, revision=revision) as first:
            call = await first.call_tool_as_task("work")
            assert call.id is not None
            async with Client(other.app, revision=revision) as second:
                assert await second.task(call.id).refresh() == "working"
                waiting = asyncio.create_task(second.task(call.id).result())
                await asyncio.sleep(0.05)
                # As if it had been killed: it gives no sign of life any more.
                (runner,) = {
                    name for kind, name in await store.names() if kind == "task-runner"
                } - {other.app._core.services.tasks._runner.name}
                await store.delete(Key("", "task-runner", runner))
                with pytest.raises(PeerError, match="has ended"):
                    await waiting
                with pytest.raises(PeerError, match="has ended"):
                    await second.task(call.id).result()
            # What is not dead after all stops working for nothing.
            dead.gate.set()
            await until_async(dead.is_idle)
            with pytest.raises(PeerError, match="has ended"):
                await call.result()

    run(script, timers_too=True)


# Clients that leave


@pytest.mark.usefixtures("census")
@pytest.mark.parametrize("revision", FORMS)
def test_a_task_goes_on_without_its_client_and_can_be_come_back_to(revision: str) -> None:
    async def script() -> None:
        shop = Workshop()
        client = Client(shop.app, revision=revision)
        await client.connect()
        call = await client.call_tool_as_task("work")
        assert call.id is not None
        waiting = asyncio.create_task(call.result())
        await asyncio.sleep(0.01)
        await client.close()
        with pytest.raises(RequestAborted):
            await waiting
        await until_async(lambda: not shop.app._core.runtime.connections)
        assert (shop.begun, shop.ended) == (1, [])
        async with Client(shop.app, revision=revision) as another:
            again = another.task(call.id)
            assert await again.refresh() == "working"
            shop.gate.set()
            assert (await again.result()).text == "done"
            assert (await another.task(call.id).result()).text == "done"
        await until_async(shop.is_idle)
        assert alive(RunningTask) == []

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_a_task_in_hand_outlives_the_connection_that_it_was_begun_on(revision: str) -> None:
    async def script() -> None:
        shop = Workshop()
        client = Client(shop.app, revision=revision)
        await client.connect()
        call = await client.call_tool_as_task("work")
        other = await client.call_tool_as_task("work")
        await client.close()
        with pytest.raises(TrunklineError):
            await call.result()
        await client.connect()
        await other.cancel()
        shop.gate.set()
        assert (await call.result()).text == "done"
        with pytest.raises(Cancelled):
            await other.result()
        await client.close()
        await until_async(shop.is_idle)

    run(script, timers_too=True)


def test_a_thousand_calls_that_wait_for_results_are_gone_with_their_client() -> None:
    async def script() -> None:
        shop = Workshop(waiting_results_each=1000)
        async with talking(shop.app, HANDSHAKE) as talk:
            tasks = [await talk.begin("work") for _ in range(10)]
            for task in tasks:
                for _ in range(100):
                    talk.send("tasks/result", taskId=task["taskId"])
            await until_async(lambda: len(shop.app._core.services.tasks.result_waiters) == 1000)
        await until_async(lambda: not len(shop.app._core.services.tasks.result_waiters))
        assert len(shop.app._core.services.tasks.running) == 10
        # Others may wait in their place.
        async with talking(shop.app, HANDSHAKE) as talk:
            waiting = talk.send("tasks/result", taskId=tasks[0]["taskId"])
            await until_async(lambda: len(shop.app._core.services.tasks.result_waiters) == 1)
            shop.gate.set()
            assert "result" in await talk.wire.answer(waiting)
        await until_async(shop.is_idle)

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_a_server_that_was_stopped_takes_tasks_when_it_is_served_again(revision: str) -> None:
    async def script() -> None:
        shop = Workshop()
        for _ in range(3):
            async with talking(shop.app, revision) as talk:
                task = await talk.begin("work")
                shop.app.stop()
                await until_async(lambda talk=talk: talk.wire.ended)  # type: ignore[misc]  # bound to this one
            await until_async(shop.is_closed)
            async with talking(shop.app, revision) as talk:
                found = await talk.ask("tasks/get", taskId=task["taskId"])
                assert found["status"] == "failed"
        assert shop.ended == ["CancelledError"] * 3

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_cancelling_a_plain_call_cancels_its_task_but_not_a_task_handle(revision: str) -> None:
    async def script() -> None:
        shop = Workshop()
        async with Client(shop.app, revision=revision) as client:
            call = await client.call_tool_as_task("work")
            hidden = asyncio.create_task(client.call_tool("long_only"))
            await until_async(lambda: shop.begun == 2)
            hidden.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hidden
            await until_async(lambda: shop.ended == ["CancelledError"])
            # The one that somebody holds goes on.
            shop.gate.set()
            assert (await call.result()).text == "done"

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_a_client_that_leaves_while_its_task_asks_may_answer_by_another_connection(
    revision: str,
) -> None:
    async def script() -> None:
        shop = Workshop()
        asked = asyncio.Event()

        async def thinks(_: Any) -> None:
            asked.set()
            await asyncio.Event().wait()

        client = Client(shop.app, revision=revision, on_elicit=thinks)
        await client.connect()
        call = await client.call_tool_as_task("asks")
        assert call.id is not None
        waiting = asyncio.create_task(call.result())
        await asyncio.wait_for(asked.wait(), 5)
        await client.close()
        with pytest.raises(RequestAborted):
            await waiting

        async def answers(_: Any) -> dict[str, Any]:
            return {"value": "that"}

        async with Client(shop.app, revision=revision, on_elicit=answers) as another:
            assert (await another.task(call.id).result()).text == "for that"
        await until_async(shop.is_idle)

    run(script, timers_too=True)


# Races, floods and ends


@pytest.mark.parametrize("revision", FORMS)
def test_a_cancel_that_races_the_end_leaves_one_of_the_two_and_everybody_agrees(
    revision: str,
) -> None:
    async def script() -> None:
        shop = Workshop()
        found: set[str] = set()
        async with talking(shop.app, revision) as talk:
            for n in range(60):
                shop.gate.clear()
                task = await talk.begin("work")
                id = task["taskId"]

                async def finish(ticks: int) -> None:
                    for _ in range(ticks):
                        await asyncio.sleep(0)
                    shop.gate.set()

                ending = asyncio.create_task(finish(n % 12))
                cancel = talk.send("tasks/cancel", taskId=id)
                await ending
                reply = await talk.wire.answer(cancel)
                ended = await talk.until(task)
                assert ended == {**await talk.ask("tasks/get", taskId=id)}
                found.add(ended["status"])
                if revision == HANDSHAKE:
                    assert ("error" in reply) == (ended["status"] == "completed")
                    await talk.reply("tasks/result", taskId=id)
                else:
                    assert ("result" in ended) == (ended["status"] == "completed")
                talk.wire.got.clear()
            await until_async(shop.is_idle)
        assert found <= {"completed", "cancelled"}

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", FORMS)
def test_many_cancels_and_looks_at_once_are_all_answered(revision: str) -> None:
    async def script() -> None:
        shop = Workshop()
        async with talking(shop.app, revision) as talk:
            tasks = [await talk.begin("work") for _ in range(20)]
            methods = ["tasks/cancel", "tasks/get"] * 5
            if revision == HANDSHAKE:
                methods += ["tasks/result"] * 5
            ids = [talk.send(method, taskId=task["taskId"]) for task in tasks for method in methods]
            shop.gate.set()
            for id in ids:
                await talk.wire.answer(id)
            for task in tasks:
                assert (await talk.until(task))["status"] in OVER
            await until_async(shop.is_idle)
            assert shop.app._core.runtime.in_flight == 0

    run(script, timers_too=True)


def test_tasks_and_waiting_results_beyond_the_limits_are_refused_with_when_to_come_again() -> None:
    async def script() -> None:
        shop = Workshop(running_each=5, waiting_results=10)
        async with talking(shop.app, HANDSHAKE) as talk:
            tasks = [await talk.begin("work") for _ in range(5)]
            for _ in range(20):
                error = await talk.refused("tools/call", name="work", arguments={}, task={})
                assert is_temporary(error)
            id = tasks[0]["taskId"]
            waiting = [talk.send("tasks/result", taskId=id) for _ in range(10)]
            await until_async(lambda: len(shop.app._core.services.tasks.result_waiters) == 10)
            assert is_temporary(await talk.refused("tasks/result", taskId=id))
            # Whoever cancels makes room.
            talk.wire.tell("notifications/cancelled", {"requestId": waiting.pop()})
            waiting.append(talk.send("tasks/result", taskId=id))
            await shop.still_serves(talk)
            shop.gate.set()
            for each in waiting:
                assert "result" in await talk.wire.answer(each)
            await until_async(shop.is_idle)

    run(script, timers_too=True)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("revision", FORMS)
def test_a_task_that_never_ends_does_not_hold_up_the_end_of_its_server(
    revision: str, at_once: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Longer than a busy machine takes to delete what the store has of this server.
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._CLEANUP_TIMEOUT_S", 2.0)

    async def script() -> None:
        shop = Workshop()
        try:
            async with talking(shop.app, revision) as talk:
                task = await talk.begin("stubborn")
                shop.app.stop(at_once=at_once)
                await until_async(lambda: talk.wire.ended)
            await until_async(shop.is_closed)
            stored = await shop.store.get(Key("", "task", task["taskId"]))
            assert b'"failed"' in stored.value
            assert {kind for kind, _ in await shop.store.names()} <= {"task", "task-of"}
        finally:
            shop.gate.set()  # or a failure would wait for it without end

    run(script, timers_too=True)
    assert "task still runs" in caplog.text


def test_a_server_may_be_stopped_at_the_very_moment_when_its_last_task_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    async def script() -> None:
        for ticks in range(25):
            shop = Workshop()
            async with talking(shop.app, PER_REQUEST) as talk:
                await talk.begin("work")
            shop.gate.set()
            for _ in range(ticks):
                await asyncio.sleep(0)
            shop.app.stop()
            await until_async(shop.is_closed)

    run(script, timers_too=True)
    gc.collect()
    assert [str(each.exc_value) for each in unraisable] == []


def test_an_answer_that_does_not_fit_its_form_kills_no_task() -> None:
    async def script() -> None:
        shop = Workshop()
        async with talking(shop.app, PER_REQUEST) as talk:
            task = await talk.begin("asks")
            await talk.until(task, "input_required")
            id = task["taskId"]
            # A text was asked for.
            for misfit in (3, None, ["x"], {"value": "x"}):
                answers = {"which": accept(misfit)}
                error = await talk.refused("tasks/update", taskId=id, inputResponses=answers)
                assert error["code"] == -32602
                assert (await talk.ask("tasks/get", taskId=id))["status"] == "input_required"
            await talk.ask("tasks/update", taskId=id, inputResponses={"which": accept("x")})
            over = await talk.until(task, "completed")
            assert over["result"]["content"][0]["text"] == "for x"

    run(script, timers_too=True)


def _declared() -> dict[str, Any]:
    extensions: dict[str, Any] = {"extensions": {EXTENSION: {}}}
    return {"io.modelcontextprotocol/clientCapabilities": {**CAPABILITIES, **extensions}}


def _begun(server: Piped, path: Path) -> str:
    """Begin a task in a process, and return its id."""
    params = {"name": "long_work", "arguments": {"path": str(path)}}
    server.send(server.request("tools/call", "begin", **params, _meta=_declared()))
    id: str = server.answer("begin")["result"]["taskId"]
    until(Path(f"{path}.begun").exists)
    return id


@pytest.mark.parametrize("how", ["SIGTERM", "SIGTERM, then SIGINT", "end of input"])
def test_a_process_ends_in_order_though_a_task_is_at_work(how: str, tmp_path: Path) -> None:
    path = tmp_path / "end"
    grace = 600 if "then" in how else 0.1
    with piped("server.py", f'{{"grace": {grace}, "linger": 0.1}}') as server:
        _begun(server, path)
        if how == "end of input":
            server.end_input()
        else:
            os.kill(server.pid, signal.SIGTERM)
            if "then" in how:  # two of one kind might be taken for one
                os.kill(server.pid, signal.SIGINT)
        assert server.rest() == []
        assert server.wait() == 0
        assert Path(f"{path}.ended").read_text() == "CancelledError"
        assert "lifespan left" in server.log()
        assert "Traceback" not in server.log()


def test_a_task_that_ends_while_its_process_is_to_stop_is_let_end(tmp_path: Path) -> None:
    path = tmp_path / "end"
    with piped("server.py", '{"grace": 10}') as server:
        _begun(server, path)
        os.kill(server.pid, signal.SIGTERM)
        path.touch()
        assert server.rest() == []
        assert server.wait() == 0
        assert not Path(f"{path}.ended").exists()


@pytest.mark.usefixtures("census", "_looks_often")
@pytest.mark.parametrize("revision", FORMS)
def test_a_thousand_tasks_leave_no_more_memory_than_none(revision: str) -> None:
    first, times, each = 30, 50, 20

    async def script() -> None:
        # Their records are kept for a while, and that is not to be counted.
        shop = Workshop(
            FaultyStore(StoreLimits(keys=200)), ttl=0.02, running_each=50, kept_each=500
        )
        probe = Key("", "probe", "probe")
        async with talking(shop.app, revision) as talk:

            async def one(n: int) -> None:
                talk.wire.got.clear()
                extra: dict[str, Any] = {"task": {}} if revision == HANDSHAKE else {}
                id = talk.send("tools/call", name="quick", arguments={}, **extra)
                async with asyncio.timeout(10):
                    while not [each for each in talk.wire.got if each.get("id") == id]:
                        await asyncio.sleep(0)
                    while shop.app._core.services.tasks.running:
                        await asyncio.sleep(0)

            async def expire() -> None:
                """Wait until the store holds no task: a write drops records that have expired."""
                others = 2  # the probe, and the heartbeat of the server
                async with asyncio.timeout(10):
                    while len(shop.store._records) > others:
                        await shop.store.put(probe, b"", ttl=None)
                        await asyncio.sleep(0.001)

            async def many(n: int) -> None:
                for k in range(each):
                    await one(k)
                await expire()
                if n + 1 in (first, first + times):
                    # Memory is measured now.
                    await until_async(lambda: not len(shop.app._core.services.tasks.retention))

            # One thing that is kept of each would be a thousand.
            assert await grown(many, times, first=first) < 500
            await until_async(shop.is_idle)
            talk.wire.got.clear()
            assert alive(RunningTask, HandlerRun, Context) == []

    run(script, timers_too=True)


# In whatever order


class FlakyStore(FaultyStore):
    """A store that takes its time, and fails now and then, before or after it has done a thing."""

    def __init__(self, chance: random.Random, share: float) -> None:
        super().__init__()
        self._chance = chance
        self.share = share

    async def _do(self, name: str, kind: str, work: Callable[[], Any]) -> Any:
        for _ in range(self._chance.choice([0, 0, 0, 1, 2, 5])):
            await asyncio.sleep(0)
        if self._chance.random() < self.share:
            if self._chance.random() < 0.5:
                await work()
            raise StoreUnavailable("now and then")
        return await work()


class Erratic:
    """A client that begins, looks at, answers and cancels tasks by chance."""

    def __init__(self, talk: Talk, chance: random.Random) -> None:
        self._talk = talk
        self._chance = chance
        self._is_core = talk.revision == HANDSHAKE
        self._ids: list[int] = []
        self._tasks: dict[str, None] = {}

    def act(self) -> None:
        what, chance = self._chance.random(), self._chance
        if what < 0.4:
            tool = chance.choice(["work", "quick", "asks", "long_only"])
            self._send("tools/call", name=tool, arguments={}, task={})
        elif what < 0.8 and self._tasks:
            id = chance.choice(list(self._tasks))
            update = {"inputResponses": {"which": accept("y")}} if not self._is_core else {}
            method = chance.choice(
                ["get", "get", "cancel", "result" if self._is_core else "update"]
            )
            self._send(f"tasks/{method}", taskId=id, **(update if method == "update" else {}))
        elif what < 0.9 and self._ids:
            params = {"requestId": chance.choice(self._ids)}
            self._talk.wire.tell("notifications/cancelled", params)
        for message in self._talk.wire.got:
            self._hear(message)

    def _send(self, method: str, **params: Any) -> None:
        if not self._is_core:
            params.pop("task", None)
        self._ids.append(self._talk.send(method, **params))

    def _hear(self, message: dict[str, Any]) -> None:
        result = message.get("result", {})
        id = result.get("task", result).get("taskId")
        if id is not None:
            self._tasks[id] = None
        if message.get("method") == "elicitation/create" and self._chance.random() < 0.5:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": accept("z")}
            self._talk.wire.send(answer)


@pytest.mark.usefixtures("_looks_often")
@pytest.mark.parametrize("seed", range(12))
def test_in_whatever_order_tasks_are_begun_looked_at_and_cancelled_nothing_is_left(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._MIN_RETRY_DELAY_S", 0.002)
    monkeypatch.setattr("trunkline.engine.tasks.lifecycle._CLEANUP_TIMEOUT_S", 0.05)
    chance = random.Random(seed)
    revision = FORMS[seed % 2]
    how = ("leave", "stop", "stop at once")[seed % 3]

    async def script() -> None:
        store = FlakyStore(chance, chance.choice([0, 0.05, 0.2]))
        shop = Workshop(store, ttl=chance.choice([0.05, 60.0]), running_each=30)
        async with talking(shop.app, revision) as talk:
            client = Erratic(talk, chance)
            for step in range(40):
                client.act()
                if step == 30:
                    shop.gate.set()
                await asyncio.sleep(chance.choice([0, 0, 0, 0.001]))
            store.share = 0
            if how != "leave":
                shop.app.stop(at_once=how != "stop")
                await until_async(lambda: talk.wire.ended)
        shop.app.stop()
        await until_async(shop.is_closed)
        answered = [each["id"] for each in talk.wire.got if "method" not in each]
        assert len(answered) == len(set(answered))
        assert shop.is_idle()
        assert shop.app._core.runtime.in_flight == 0
        # Whoever asks another server of what is kept learns that nobody works at it any more.
        kept = [name for kind, name in await store.names() if kind == "task"]
        async with talking(Workshop(store).app, revision) as talk:
            for name in kept:
                reply = await talk.reply("tasks/get", taskId=name)
                # Or it has expired meanwhile.
                assert "error" in reply or reply["result"]["status"] in OVER

    run(script, timers_too=True)


# Our client, and servers with ideas of their own


TASK = {
    "taskId": "t1",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttlMs": 1000,
    "pollIntervalMs": 1,
}


def state(status: str = "working", **members: Any) -> dict[str, Any]:
    return {"resultType": "complete", **TASK, "status": status, **members}


DONE = text("done", resultType="complete")


class Taskmaster(Place):
    """A server of 2026-07-28 that makes a task of every call, and tells what it likes of it."""

    def __init__(self, get: Any, **answers: Any) -> None:
        capabilities: dict[str, Any] = {"tools": {}, "extensions": {EXTENSION: {}}}
        given = {
            "server/discover": discovery(capabilities=capabilities),
            "tools/call": {**state(), "resultType": "task"},
            "tasks/get": get,
            "tasks/cancel": {"resultType": "complete"},
            "tasks/update": {"resultType": "complete"},
        }
        super().__init__({**given, **answers})


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.client.tasks.poller.MIN_POLL_INTERVAL_S", 0.001)
    monkeypatch.setattr("trunkline.client.tasks.poller.FIRST_POLL_INTERVAL_S", 0.001)


STATES: dict[str, Any] = {
    "a status of its own": state("resting"),
    "no status": {"resultType": "complete", "taskId": "t1"},
    "a number": 7,
    "a list": [],
    "another task": state("completed", taskId="t2", result=DONE),
    "completed without a result": state("completed"),
    "failed without an error": state("failed"),
    "an error of no kind": state("failed", error="broken"),
    "a result of no kind": state("completed", result="done"),
    "an error that is deep": state("failed", error={"code": 1, "message": "x", "data": [[[]]]}),
    "not found": Refused(-32602, "Task not found"),
    "an unknown method": Refused(-32601, "Method not found"),
    "cancelled": state("cancelled"),
}


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("what", STATES)
def test_malformed_task_status_ends_the_call_with_a_typed_error(
    what: str,
) -> None:
    async def script() -> None:
        place = Taskmaster(STATES[what])
        async with Client(place, max_timeout=0.5) as client:
            calls = await asyncio.gather(client.call_tool("t"), return_exceptions=True)
            ended: object = calls[0]
            if what == "another task":
                # By whatever name: it is the answer to our question.
                assert not isinstance(ended, BaseException)
            else:
                assert isinstance(ended, TrunklineError)
                assert isinstance(ended, Cancelled) == (what == "cancelled")
            assert client.is_connected
            place.answers["tools/call"] = DONE
            assert (await client.call_tool("t")).text == "done"

    run(script, timers_too=True)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("wish", [0, -1, 1e300, 10**30, 0.0000001, None])
def test_how_often_a_server_wants_to_be_asked_is_taken_within_reason(wish: Any) -> None:
    async def script() -> None:
        place = Taskmaster(state(pollIntervalMs=wish))
        place.answers["tools/call"] = {**state(pollIntervalMs=wish), "resultType": "task"}
        async with Client(place, max_timeout=0.1) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("t")
            assert place.line.methods().count("tasks/get") < 200
            # The server is told that nobody waits any more.
            await place.line.until("tasks/cancel")

    run(script, timers_too=True)


@pytest.mark.usefixtures("_quick")
def test_a_task_that_asks_without_end_is_left_and_ended() -> None:
    form = {
        "mode": "form",
        "message": "Name?",
        "requestedSchema": {"type": "object", "properties": {}},
    }

    async def script() -> None:
        asked = 0

        def get(_: Any) -> Any:
            nonlocal asked
            asked += 100
            requests = {
                f"k{asked + n}": {"method": "elicitation/create", "params": form}
                for n in range(100)
            }
            return state("input_required", inputRequests=requests)

        place = Taskmaster(get)
        async with Client(place, on_elicit=lambda _: {}) as client:
            with pytest.raises(RequestAborted) as raised:
                await client.call_tool("t")
            assert "1000 input requests" in str(raised.value)
            await place.line.until("tasks/cancel")
            assert place.line.methods().count("tasks/update") <= 1000

    run(script, timers_too=True)


@pytest.mark.full
@pytest.mark.usefixtures("_quick")
def test_a_server_that_goes_silent_about_a_task_is_left_in_time() -> None:
    async def script() -> None:
        place = Taskmaster(SILENT)
        async with Client(place, timeout=0.1) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("t")
            with pytest.raises(RequestTimeout):
                await client.task("t1").refresh()
            assert client.is_connected

    run(script, timers_too=True)


@pytest.mark.usefixtures("_quick")
def test_a_client_closes_though_a_task_is_waited_for_in_many_places(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    async def script() -> None:
        place = Taskmaster(state())
        client = Client(place)
        await client.connect()
        call = await client.call_tool_as_task("t")

        async def follow() -> None:
            async for _ in call:
                pass

        waits = [asyncio.create_task(client.call_tool("t")) for _ in range(10)]
        waits += [asyncio.create_task(call.result()) for _ in range(10)]
        follows = [asyncio.create_task(follow()) for _ in range(10)]
        await place.line.until("tasks/get", times=10)
        await client.close()
        ended = await asyncio.gather(*waits, *follows, return_exceptions=True)
        assert {type(each) for each in ended} == {ConnectionLost}

    run(script, timers_too=True)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
