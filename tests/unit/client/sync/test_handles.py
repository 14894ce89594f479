"""What a `SyncClient` hands out: calls, batches, tasks and streams of changes."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from trunkline import Cancelled, PeerError, Server, TrunklineError
from trunkline.client.sync.client import SyncClient
from trunkline.errors import ConnectionLost, LocalProtocolError

WAIT = 20.0


class Stage:
    """A server whose tools begin and end when a test says so."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.ended: list[str] = []
        self.go = threading.Event()
        self.app = Server("stage")
        self.app.tool(self.echo)
        self.app.tool(self.held)
        self.app.tool(task="optional")(self.task)

        @self.app.resource("x:a")
        async def a() -> str:
            return "a"

    async def echo(self, text: str) -> str:
        return text

    async def held(self, text: str = "held") -> str:
        self.begun.release()
        try:
            while not self.go.is_set():
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return text

    async def task(self) -> str:
        return await self.held("done at last")

    def is_begun(self) -> None:
        assert self.begun.acquire(timeout=WAIT)


@pytest.fixture
def stage() -> Stage:
    return Stage()


# Calls


def test_several_calls_are_under_way_at_once(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        calls = [client.submit_tool("held", {"text": str(n)}) for n in range(5)]
        for _ in calls:
            stage.is_begun()
        assert not any(call.done() for call in calls)
        assert repr(calls[0]) == "<SyncPendingCall 'tools/call', pending>"
        stage.go.set()
        assert [call.result(WAIT).text for call in calls] == ["0", "1", "2", "3", "4"]
        assert calls[0].done()
        assert not calls[0].cancelled()
        assert not calls[0].cancel()
        assert calls[0].exception() is None
        assert calls[0].method == "tools/call"
    # What has come is there after the end, too.
    assert calls[4].result().text == "4"


def test_a_wait_that_times_out_leaves_the_call_under_way(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        call = client.submit_tool("held")
        with pytest.raises(TimeoutError, match=r"no answer to tools/call within 0\.01 s; it"):
            call.result(0.01)
        with pytest.raises(TimeoutError):
            call.exception(0.01)
        with pytest.raises(ValueError, match="above 0"):
            call.result(0)
        assert not call.done()
        stage.go.set()
        assert call.result(WAIT).text == "held"
    assert stage.ended == []


def test_cancelled_call_is_cancelled_on_the_server_and_in_waiting_threads(stage: Stage) -> None:
    with SyncClient(stage.app) as client, ThreadPoolExecutor(2) as pool:
        call = client.submit_tool("held")
        stage.is_begun()
        waiting = [pool.submit(call.result) for _ in range(2)]
        assert call.cancel()
        for each in waiting:
            assert isinstance(each.exception(WAIT), Cancelled)
        assert call.cancelled()
        assert isinstance(call.exception(), Cancelled)
        client.call_tool("echo", {"text": "the server has heard of it by now"})
        assert stage.ended == ["cancelled"]


def test_callbacks_of_a_call_are_called_with_it(stage: Stage) -> None:
    told: list[object] = []
    with SyncClient(stage.app) as client:
        call = client.submit_tool(
            "echo", {"text": "hi"}, on_success=lambda result: told.append(result.text)
        )
        # A callback may wait for the call that it is told of.
        call.add_done_callback(lambda it: told.append((it is call, it.result().text)))
        failing = client.submit("no/such", on_error=lambda error: told.append(type(error)))
        assert isinstance(failing.exception(WAIT), PeerError)
        client.call_tool("echo", {"text": "all of it was told by now"})
        assert told == ["hi", (True, "hi"), PeerError]


def test_result_waits_for_the_callbacks_queued_before_it(stage: Stage) -> None:
    told: list[str] = []
    begun, go = threading.Event(), threading.Event()

    def on_success(result: object) -> None:
        begun.set()
        assert go.wait(WAIT)
        told.append("told")

    with SyncClient(stage.app) as client:
        call = client.submit_tool("echo", {"text": "hi"}, on_success=on_success)
        assert begun.wait(WAIT)
        assert call.done()
        threading.Timer(0.1, go.set).start()
        assert call.result(WAIT).text == "hi"
        assert told == ["told"]


def test_a_call_that_cannot_be_sent_raises_at_once(stage: Stage) -> None:
    with (
        SyncClient(stage.app) as client,
        pytest.raises(LocalProtocolError, match="it was last in 2025-11-25"),
    ):
        client.submit("ping")


def test_calls_end_with_the_client(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        call = client.submit_tool("held")
    with pytest.raises(ConnectionLost, match="the client was closed"):
        call.result()


# Batches


def test_a_batch_is_sent_when_the_block_is_left(stage: Stage) -> None:
    with SyncClient(stage.app, revision="2025-03-26") as client:
        with client.batch() as batch:
            echo = batch.submit_tool("echo", {"text": "hi"})
            ping = batch.submit("ping")
            batch.notify("acme/hello")
            assert not echo.done()
        assert echo.result(WAIT).text == "hi"
        assert ping.result(WAIT) == {}


def test_a_batch_that_is_left_by_an_exception_is_not_sent(stage: Stage) -> None:
    with SyncClient(stage.app, revision="2025-03-26") as client:
        with pytest.raises(KeyError), client.batch() as batch:
            call = batch.submit_tool("echo", {"text": "hi"})
            raise KeyError
        with pytest.raises(Cancelled):
            call.result()


def test_a_revision_without_batches_refuses_one(stage: Stage) -> None:
    with (
        SyncClient(stage.app) as client,
        pytest.raises(LocalProtocolError, match="no batches"),
        client.batch(),
    ):
        pass


# Tasks


def test_a_task_is_asked_waited_for_and_come_back_to(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        task = client.call_tool_as_task("task", result_type=str)
        assert task.id is not None
        assert (task.status, task.done()) == ("working", False)
        assert repr(task) == "<SyncTaskHandle, working>"
        assert task.refresh() == "working"
        with pytest.raises(TimeoutError, match="nothing within"):
            task.result(0.05)
        stage.go.set()
        assert task.result(WAIT).value == "done at last"
        assert list(client.task(task.id)) == ["completed"]
        assert client.task(task.id).result().text == "done at last"
        assert isinstance(task.message, str | None)
    assert stage.ended == []


def test_the_statuses_of_a_task_are_iterated_to_the_end(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        task = client.call_tool_as_task("task")
        seen = []
        for status in task:
            seen.append(status)
            stage.go.set()
        assert seen == ["working", "completed"]


def test_an_iteration_that_is_left_early_leaves_nothing_behind(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        task = client.call_tool_as_task("task")
        for status in task:
            assert status == "working"
            break
        task.cancel()
        with pytest.raises(Cancelled):
            task.result(WAIT)
    assert stage.ended == ["cancelled"]


def test_a_tool_that_was_done_at_once_has_no_id(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        task = client.call_tool_as_task("echo", {"text": "hi"})
        assert task.id is None
        assert task.result().text == "hi"
        assert list(task) == ["completed"]


# Streams of changes


def test_a_stream_gives_changes_as_they_come(stage: Stage) -> None:
    with SyncClient(stage.app) as client:
        stream = client.listen(uris=["x:a"])
        with pytest.raises(TrunklineError, match="`with client"):
            next(stream)
        with pytest.raises(TrunklineError, match="`with client"):
            _ = stream.honoured
        with stream as changes:
            assert changes.honoured.uris == changes.wanted.uris == ("x:a",)
            with pytest.raises(TimeoutError, match="nothing within"):
                changes.get(0.01)
            for n in range(3):
                stage.app.notify_resource_updated("x:a")
                change = next(changes) if n else changes.get(WAIT)
                assert change is not None
                assert change.uri == "x:a"
            assert "open" in repr(changes)
        assert list(changes) == []
        assert changes.get() is None
        assert changes.reason is None


def test_a_stream_ends_with_the_client(stage: Stage) -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        SyncClient(stage.app) as client,
        client.listen(uris=["x:a"]) as changes,
    ):
        waiting = pool.submit(next, changes)
        client.close()
        assert isinstance(waiting.exception(WAIT), TrunklineError)


def test_a_stream_of_nothing_is_refused(stage: Stage) -> None:
    with SyncClient(stage.app) as client, pytest.raises(ValueError, match="name what to listen"):
        client.listen()
