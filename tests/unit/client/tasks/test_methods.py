"""Calls that become tasks, in both forms, against servers that do as they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.unit.client.scripted import (
    NEWEST_HANDSHAKE,
    SILENT,
    Place,
    Refused,
    discovery,
    initialized,
    run,
    text,
    use,
)
from tests.unit.client.subscriptions.test_stream import ID
from trunkline.client import Client
from trunkline.client.session import session
from trunkline.client.tasks import input_requests, poller, retry
from trunkline.errors import (
    Cancelled,
    ConnectionLost,
    InputRequestFailed,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
)
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import LATEST

TASKS = "io.modelcontextprotocol/tasks"
FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MIN_POLL_INTERVAL_S", "FIRST_POLL_INTERVAL_S", "USUAL_POLL_INTERVAL_S"):
        monkeypatch.setattr(poller, name, 0.001)
    monkeypatch.setattr(retry, "FIRST_DELAY_S", 0.001)


def task(status: str, **members: Any) -> dict[str, Any]:
    when = "2026-01-01T00:00:00Z"
    common = {"taskId": "t1", "status": status, "createdAt": when, "lastUpdatedAt": when}
    return common | {"ttlMs": None, "pollIntervalMs": 1} | members


class Shop(Place):
    """A server of 2026-07-28 whose tool is a task; its states are given one after the other."""

    def __init__(self, *states: dict[str, Any], **answers: Any) -> None:
        self.states = list(states)
        self.updates: list[dict[str, Any]] = []
        capabilities = {"tools": {}, "extensions": {TASKS: {}}}
        given: dict[str, Any] = {
            "server/discover": discovery(capabilities=capabilities),
            "tools/call": {"resultType": "task", **task("working")},
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }
        super().__init__(given | answers)

    def _get(self, message: dict[str, Any]) -> Any:
        assert message["params"]["taskId"] == "t1"
        state = self.states[0] if len(self.states) == 1 else self.states.pop(0)
        return {"resultType": "complete", **state}

    def _update(self, message: dict[str, Any]) -> Any:
        assert message["params"]["taskId"] == "t1"
        self.updates.append(message["params"]["inputResponses"])
        return {"resultType": "complete"}

    def _cancel(self, message: dict[str, Any]) -> Any:
        assert message["params"]["taskId"] == "t1"
        self.states = [task("cancelled", statusMessage="as you wish")]
        return {"resultType": "complete"}


DONE = task("completed", result=text("done", resultType="complete"))


# -- hidden in a call, since 2026-07-28 ------------------------------------------------------


def test_a_call_that_becomes_a_task_is_a_call() -> None:
    shop = Shop(task("working"), task("working", pollIntervalMs=None), DONE)

    async def work(client: Client) -> None:
        assert (await client.call_tool("x", {"a": 1})).text == "done"
        assert (await client.call_tool("x", timeout=5)).text == "done"
        call = client.submit_tool("x")
        assert (await call).text == "done"

    use(shop, work)
    meta = shop.line.last("tools/call")["params"]["_meta"]
    assert TASKS in meta["io.modelcontextprotocol/clientCapabilities"]["extensions"]
    assert (
        "io.modelcontextprotocol/protocolVersion" in shop.line.last("tasks/get")["params"]["_meta"]
    )
    assert shop.line.methods().count("tasks/get") == 5
    assert "tasks/cancel" not in shop.line.methods()


def test_a_client_without_tasks_takes_none() -> None:
    shop = Shop(DONE)

    async def work(client: Client) -> None:
        with pytest.raises(RemoteProtocolError, match="type-unknown"):
            await client.call_tool("x")
        with pytest.raises(RemoteProtocolError, match="type-unknown"):
            await client.call_tool_as_task("x")

    use(shop, work, tasks=False)


def test_a_tool_that_failed_is_a_result() -> None:
    shop = Shop(task("completed", result=text("no luck", isError=True)))
    found = use(shop, lambda client: client.call_tool("x"))
    assert found.is_error
    assert found.text == "no luck"


def test_a_task_that_failed_is_the_error_of_the_call() -> None:
    error = {"code": -32603, "message": "broken", "data": {"why": 1}}
    shop = Shop(task("failed", error=error))
    with pytest.raises(PeerError) as caught:
        use(shop, lambda client: client.call_tool("x"))
    assert (caught.value.code, caught.value.message) == (-32603, "broken")
    assert caught.value.data == {"why": 1}
    assert caught.value.kind == "INTERNAL_ERROR"
    assert caught.value.method == "tools/call"


def test_a_task_that_was_cancelled_is_a_call_that_was() -> None:
    shop = Shop(task("cancelled", statusMessage="by the owner"))
    with pytest.raises(Cancelled, match="by the owner"):
        use(shop, lambda client: client.call_tool("x"))
    assert "tasks/cancel" not in shop.line.methods()


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (task("completed"), "/result"),
        (task("completed", result=None), "/result"),
        (task("failed"), "failed-has-error"),
        ({"taskId": "t1"}, "status"),
        (task("lost"), "status"),
    ],
)
def test_a_task_that_cannot_be_understood_is_the_servers_fault(
    state: dict[str, Any], rule: str
) -> None:
    shop = Shop(state)
    with pytest.raises(RemoteProtocolError, match=rule):
        use(shop, lambda client: client.call_tool("x"))


def test_a_failed_task_with_a_result_has_one() -> None:
    # As in 2025-11-25, where a tool that failed makes a task that failed.
    shop = Shop(task("failed", error=None, result=text("no", isError=True)))
    assert use(shop, lambda client: client.call_tool("x")).is_error


def test_a_task_that_has_ended_when_it_is_created_is_asked_for_its_result() -> None:
    shop = Shop(DONE, **{"tools/call": {"resultType": "task", **task("completed")}})
    assert use(shop, lambda client: client.call_tool("x")).text == "done"
    assert shop.line.methods().count("tasks/get") == 1


def test_a_server_that_calls_the_state_of_a_task_a_task_is_understood() -> None:
    shop = Shop(**{"tasks/get": {"resultType": "task", **DONE}})
    assert use(shop, lambda client: client.call_tool("x")).text == "done"


def test_input_requests_of_one_poll_are_answered_by_one_update() -> None:
    # A server need not take some of the answers, so this one does not.
    shop, asked = Shop(task("input_required", inputRequests={"a": FORM, "b": FORM})), list[str]()

    async def elicit(params: Any) -> dict[str, Any]:
        asked.append(params.message)
        if len(asked) == 1:
            # The first one answers after the second, and polls go on all the while.
            polls = shop.line.methods().count("tasks/get")
            await shop.line.until("tasks/get", polls + 3)
            assert len(asked) == 2
            assert shop.updates == []
        return {}

    def update(message: dict[str, Any]) -> Any:
        shop._update(message)
        if set(message["params"]["inputResponses"]) == {"a", "b"}:
            shop.states = [DONE]
        return {"resultType": "complete"}

    shop.answers["tasks/update"] = update
    assert use(shop, lambda client: client.call_tool("x"), on_elicit=elicit).text == "done"
    assert len(asked) == 2
    assert [list(each) for each in shop.updates] == [["a", "b"]]
    assert shop.updates[0]["b"]["action"] == "accept"


def test_input_requests_of_a_later_poll_are_answered_by_another_update() -> None:
    first = {"a": FORM, "b": FORM}
    later = {**first, "c": {**FORM, "params": {**FORM["params"], "message": "Later?"}}}
    shop = Shop(
        task("input_required", inputRequests=first), task("input_required", inputRequests=later)
    )
    asked = list[str]()

    async def elicit(params: Any) -> dict[str, Any]:
        asked.append(params.message)
        if params.message != "Later?":
            # Whoever is asked later need not wait for who was asked first.
            while not shop.updates:
                await asyncio.sleep(0.001)
        return {}

    def update(message: dict[str, Any]) -> Any:
        shop._update(message)
        if len(shop.updates) == 2:
            shop.states = [DONE]
        return {"resultType": "complete"}

    shop.answers["tasks/update"] = update
    assert use(shop, lambda client: client.call_tool("x"), on_elicit=elicit).text == "done"
    assert sorted(asked) == ["Later?", "Name?", "Name?"]
    assert [list(each) for each in shop.updates] == [["c"], ["a", "b"]]


def test_of_questions_that_were_asked_together_none_is_answered_where_one_cannot_be() -> None:
    other = {**FORM, "params": {**FORM["params"], "message": "Age?"}}
    shop = Shop(task("input_required", inputRequests={"a": FORM, "b": other}))

    async def elicit(params: Any) -> Any:
        if params.message == "Age?":
            raise KeyError("secret")
        return {}

    with pytest.raises(InputRequestFailed) as caught:
        use(shop, lambda client: client.call_tool("x"), on_elicit=elicit)
    assert caught.value.key == "b"
    assert shop.updates == []


def test_a_question_that_cannot_be_answered_ends_the_call_and_the_task() -> None:
    def fail(params: Any) -> Any:
        raise KeyError("secret")

    for options, kind in (
        ({"on_elicit": fail}, InputRequestFailed),
        ({}, RemoteProtocolError),
    ):
        shop = Shop(task("input_required", inputRequests={"a": FORM}))

        async def work(client: Client, shop: Shop = shop, kind: Any = kind) -> None:
            with pytest.raises(kind):
                await client.call_tool("x")
            await shop.line.until("tasks/cancel")

        use(shop, work, **options)
        assert shop.updates == []


def test_an_answer_that_the_server_refuses_ends_the_call() -> None:
    shop = Shop(
        task("input_required", inputRequests={"a": FORM}), **{"tasks/update": Refused(-32602)}
    )
    with pytest.raises(PeerError):
        use(shop, lambda client: client.call_tool("x"), on_elicit=lambda params: {})


def test_input_requests_of_a_task_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_requests, "MAX_INPUT_REQUESTS", 2)
    questions = dict.fromkeys("abc", FORM)
    shop = Shop(task("input_required", inputRequests=questions))

    async def work(client: Client) -> None:
        with pytest.raises(Exception, match="more than 2 input requests"):
            await client.call_tool("x")

    use(shop, work, on_elicit=lambda params: {})


def test_cancelled_caller_cancels_the_task() -> None:
    shop = Shop(task("working"))

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool("x"))
        await shop.line.until("tasks/get", 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert shop.line.last("tasks/cancel")["params"]["taskId"] == "t1"
        shop.states = [task("working")]
        call = client.submit_tool("x")
        await shop.line.until("tasks/get", 5)
        call.cancel()
        await shop.line.until("tasks/cancel", 2)

    use(shop, work)


def test_time_that_runs_out_ends_the_task() -> None:
    shop = Shop(task("working"))

    async def work(client: Client) -> None:
        with pytest.raises(RequestTimeout, match="the maximum"):
            await client.call_tool("x")
        assert "tasks/cancel" in shop.line.methods()

    use(shop, work, max_timeout=0.05)


@pytest.mark.parametrize("answer", ["silent", "working"])
def test_the_time_of_a_call_is_that_of_its_task(answer: str) -> None:
    shop = Shop(task("working"))
    if answer == "silent":
        shop.answers["tasks/get"] = SILENT

    async def work(client: Client) -> None:
        with pytest.raises(RequestTimeout, match=r"tools/call: no result within 0\.02 s"):
            await client.call_tool("x", timeout=0.02)
        assert shop.line.methods().count("tasks/cancel") == 1
        # Whoever holds the task has no such time.
        held = await client.call_tool_as_task("x", timeout=0.02)
        shop.answers["tasks/get"] = shop._get
        shop.states = [task("working")] * 100 + [DONE]
        assert (await held.result()).text == "done"

    use(shop, work)


def test_a_task_without_a_time_of_its_own_has_the_longest() -> None:
    shop = Shop(task("working"))

    async def work(client: Client) -> None:
        with pytest.raises(RequestTimeout, match=r"within 0\.2 s, the maximum"):
            await client.call_tool("x")
        shop.states = [task("working")]
        with pytest.raises(RequestTimeout, match=r"within 0\.2 s, the maximum"):
            await client.submit_tool("x")

    use(shop, work, timeout=0.02, max_timeout=0.2)


def test_each_change_of_a_task_gives_its_call_the_time_again() -> None:
    shop = Shop(task("working"))

    async def work(client: Client) -> None:
        clock = SessionClock(client)
        waiting = asyncio.ensure_future(client.call_tool("x", timeout=10))
        for count in range(1, 6):
            await shop.line.until("tasks/get", shop.line.methods().count("tasks/get") + 2)
            clock.passed += 8
            shop.states = [task("working", statusMessage=f"{count} of 5")]
        await shop.line.until("tasks/get", shop.line.methods().count("tasks/get") + 2)
        assert not waiting.done()
        shop.states = [DONE]
        assert (await waiting).text == "done"

    use(shop, work, max_timeout=100)


class SessionClock:
    """The clock of a connection, which can be put forward."""

    def __init__(self, client: Client) -> None:
        session = client._connection.session
        assert session is not None
        self.passed = 0.0
        usual = session.clock
        session.clock = lambda: usual() + self.passed


def test_wait_for_an_input_request_does_not_count_toward_the_timeout() -> None:
    shop = Shop(task("input_required", inputRequests={"a": FORM}))

    def update(message: dict[str, Any]) -> Any:
        shop.states = [DONE]
        return shop._update(message)

    shop.answers["tasks/update"] = update

    async def elicit(params: Any) -> dict[str, Any]:
        await asyncio.sleep(0.2)
        return {}

    async def work(client: Client) -> None:
        assert (await client.call_tool("x", timeout=0.1)).text == "done"

    use(shop, work, on_elicit=elicit)
    assert len(shop.updates) == 1


HICCUP = Refused(-32603, "Service unavailable", {"retryAfterMs": 1})


@pytest.mark.parametrize(
    "hiccup", [HICCUP, Refused(-32603), Refused(-32000, "later", {"retryAfterMs": 1})]
)
def test_failed_poll_does_not_end_the_task(hiccup: Refused) -> None:
    shop, polls = Shop(task("working"), task("working"), task("working"), DONE), list[int]()

    def get(message: dict[str, Any]) -> Any:
        polls.append(1)
        return hiccup if len(polls) % 2 else shop._get(message)

    shop.answers["tasks/get"] = get

    async def work(client: Client) -> None:
        assert (await client.call_tool("x")).text == "done"
        assert len(polls) == 8
        shop.states = [task("working"), task("working"), DONE]
        held = client.task("t1")
        assert [each async for each in held] == ["working", "completed"]
        assert (await client.task("t1").result()).text == "done"

    use(shop, work)
    assert "tasks/cancel" not in shop.line.methods()


def test_unanswered_poll_does_not_end_the_task() -> None:
    shop, polls = Shop(DONE), list[int]()

    def get(message: dict[str, Any]) -> Any:
        polls.append(1)
        return SILENT if len(polls) < 3 else shop._get(message)

    shop.answers["tasks/get"] = get

    async def work(client: Client) -> None:
        assert (await client.task("t1", timeout=0.01).result()).text == "done"

    use(shop, work)


def test_poll_error_is_raised_after_the_maximum_of_retries() -> None:
    shop = Shop(**{"tasks/get": HICCUP})

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="Service unavailable"):
            await client.call_tool("x")
        assert shop.line.methods().count("tasks/get") == retry.MAX_RETRIES + 1
        await shop.line.until("tasks/cancel")
        # Who comes back to it later begins anew.
        held = client.task("t1")
        for _ in range(2):
            with pytest.raises(PeerError, match="Service unavailable"):
                await held.result()
        assert shop.line.methods().count("tasks/get") == 3 * (retry.MAX_RETRIES + 1)
        shop.answers["tasks/get"] = shop._get
        shop.states = [DONE]
        assert (await held.result()).text == "done"

    use(shop, work)


@pytest.mark.parametrize("hiccup", [HICCUP, SILENT])
def test_an_answer_that_could_not_be_brought_is_brought_again(hiccup: Any) -> None:
    shop, tries, asked = (
        Shop(task("input_required", inputRequests={"a": FORM})),
        list[int](),
        list[Any](),
    )

    def update(message: dict[str, Any]) -> Any:
        tries.append(1)
        if len(tries) < 3:
            return hiccup
        shop.states = [DONE]
        return shop._update(message)

    shop.answers["tasks/update"] = update

    async def elicit(params: Any) -> dict[str, Any]:
        asked.append(params)
        return {}

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x", timeout=0.02)
        assert (await held.result()).text == "done"

    use(shop, work, on_elicit=elicit)
    assert (len(asked), len(tries)) == (1, 3)


def test_update_refused_because_it_was_already_taken_is_ignored() -> None:
    shop = Shop(task("input_required", inputRequests={"a": FORM}))

    def update(message: dict[str, Any]) -> Any:
        if shop.updates:
            return Refused(-32602, "there is no such question")
        shop._update(message)
        shop.states = [task("working")]
        asyncio.get_running_loop().call_later(0.05, shop.states.__setitem__, 0, DONE)
        return SILENT

    shop.answers["tasks/update"] = update

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x", timeout=0.01)
        assert (await held.result()).text == "done"

    use(shop, work, on_elicit=lambda params: {})
    assert shop.line.methods().count("tasks/update") == 2


def test_input_request_whose_update_was_refused_is_handled_again_by_the_next_wait() -> None:
    shop, asked = Shop(task("input_required", inputRequests={"a": FORM})), list[Any]()

    def update(message: dict[str, Any]) -> Any:
        if not shop.updates:
            shop._update(message)
            return Refused(-32602, "not now")
        shop.states = [DONE]
        return shop._update(message)

    shop.answers["tasks/update"] = update

    async def elicit(params: Any) -> dict[str, Any]:
        asked.append(params)
        return {}

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        with pytest.raises(PeerError, match="not now"):
            await held.result()
        assert (await held.result()).text == "done"

    use(shop, work, on_elicit=elicit)
    assert len(asked) == 2


def test_closing_a_client_cancels_tasks_without_a_handle() -> None:
    shop, order = Shop(task("working", pollIntervalMs=60000)), list[str]()

    def cancel(message: dict[str, Any]) -> Any:
        line = shop.line
        order.append("open" if line.is_connected else "ended")
        # What closes the connection waits for the answer.
        asyncio.get_running_loop().call_later(0.01, lambda: answered.append(line.is_connected))
        # What comes besides the answer is not heard.
        line.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        line.say({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        result = {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"}}
        asyncio.get_running_loop().call_later(0.02, line.say, result)
        return SILENT

    shop.answers["tasks/cancel"] = cancel
    told, answered = list[str](), list[bool]()

    async def main() -> None:
        client = Client(shop, on_notification=lambda method, params: told.append(method))
        await client.connect()
        waiting = asyncio.ensure_future(client.call_tool("x"))
        await shop.line.until("tasks/get")
        # Closed twice, it ends once.
        await asyncio.gather(client.close(), client.close())
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await waiting
        assert shop.line.methods().count("tasks/cancel") == 1
        assert answered == [True]

        # A task that somebody holds goes on, and so does nothing of one that has ended.
        await client.connect()
        held = await client.call_tool_as_task("x")
        looking = asyncio.ensure_future(held.result())
        await shop.line.until("tasks/get")
        shop.states = [DONE]
        assert (await client.call_tool("x")).text == "done"
        await client.close()
        with pytest.raises(ConnectionLost):
            await looking
        assert "tasks/cancel" not in shop.line.methods()

    run(main())
    assert order == ["open"]
    assert told == []


def test_close_does_not_wait_forever_for_the_reply_to_tasks_cancel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "_CLOSING_TIMEOUT_S", 0.01)
    shop = Shop(task("working"), **{"tasks/cancel": SILENT})

    async def main() -> None:
        for how in ("silent", "gone"):
            client = Client(shop)
            await client.connect()
            waiting = asyncio.ensure_future(client.call_tool("x"))
            await shop.line.until("tasks/get")
            if how == "gone":
                shop.answers["tasks/cancel"] = lambda message: shop.line.end() or SILENT
            await client.close()
            with pytest.raises(ConnectionLost):
                await waiting
            assert shop.line.closed == 1

    run(main())


@pytest.mark.parametrize("way", ["cancelled", "late", "held"])
def test_a_task_that_comes_too_late_for_its_caller_is_ended(way: str) -> None:
    shop, calls = Shop(task("working")), list[Any]()

    def call(message: dict[str, Any]) -> Any:
        calls.append(message["id"])
        return SILENT

    shop.answers["tools/call"] = call

    async def work(client: Client) -> None:
        verb = client.call_tool_as_task if way == "held" else client.call_tool
        waiting = asyncio.ensure_future(verb("x", timeout=0.01 if way == "late" else 5))
        await shop.line.until("tools/call")
        if way != "late":
            waiting.cancel()
        with pytest.raises((asyncio.CancelledError, RequestTimeout)):
            await waiting
        result = {"resultType": "task", **task("working")}
        for _ in range(2):
            shop.line.say({"jsonrpc": "2.0", "id": calls[0], "result": result})
        await shop.line.until("tasks/cancel")
        await asyncio.sleep(0.01)
        assert shop.line.methods().count("tasks/cancel") == 1

    use(shop, work)


def test_late_reply_that_is_not_a_task_is_ignored() -> None:
    shop, ids = Shop(task("working")), list[Any]()

    def silent(message: dict[str, Any]) -> Any:
        ids.append(message["id"])
        return SILENT

    async def work(client: Client) -> None:
        # Of a poll too, though there are servers that call the state of a task a task.
        shop.answers["tools/call"] = shop.answers["tasks/get"] = silent
        for verb in (client.call_tool, client.call_tool, lambda id: client.task(id).refresh()):
            waiting = asyncio.ensure_future(verb("t1"))
            await asyncio.sleep(0.01)
            waiting.cancel()
        answers = [text("late"), {"resultType": "task", "odd": 1}, {"resultType": "task", **DONE}]
        for id, answer in zip(ids, answers, strict=True):
            shop.line.say({"jsonrpc": "2.0", "id": id, "result": answer})
        await asyncio.sleep(0.01)
        assert "tasks/cancel" not in shop.line.methods()

    use(shop, work)


def test_a_task_that_has_just_begun_is_looked_at_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "MIN_POLL_INTERVAL_S", 0.1)

    async def main() -> None:
        state = poller.TaskState("t1", "working", poll_interval_ms=1000)
        new = poller.TaskPoller(Client(Shop(DONE))._sender, "t1", state)
        waits = [new._next_poll() for _ in range(5)]
        for wait, least in zip(waits, (0.05, 0.2, 0.8, 1.0, 1.0), strict=True):
            assert least <= wait <= 1.1 * least
        # One that was come back to is looked at as its server wishes.
        old = poller.TaskPoller(Client(Shop(DONE))._sender, "t1")
        old.state = state
        assert 1.0 <= old._next_poll() <= 1.1

    run(main())


def test_lost_connection_raises_at_once() -> None:
    shop = Shop(task("working", pollIntervalMs=60000))

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool("x"))
        await shop.line.until("tools/call")
        await asyncio.sleep(0.01)
        shop.line.end()
        with pytest.raises(ConnectionLost):
            await waiting
        await client.connect()
        waiting = asyncio.ensure_future(client.call_tool("x"))
        await asyncio.sleep(0.01)
        await client.close()
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await waiting

    use(shop, work)


def test_a_task_goes_over_to_a_new_connection() -> None:
    shop = Shop(task("working"), task("working"), task("working"), DONE)
    assert use(shop, lambda client: client.call_tool("x"), policy=Policy(max_id=3)).text == "done"
    assert len(shop.lines) == 3


@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [
        (None, 0.25, 0.28),
        (0, 0.25, 0.28),
        (-5, 0.25, 0.28),
        (1, 0.1, 0.11),
        (2000, 2.0, 2.2),
        (10**400, 60.0, 66.0),
    ],
)
def test_polls_come_as_the_server_wishes_within_reason(
    wish: int | None, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "MIN_POLL_INTERVAL_S", 0.1)
    monkeypatch.setattr(poller, "FIRST_POLL_INTERVAL_S", 0.25)
    monkeypatch.setattr(poller, "USUAL_POLL_INTERVAL_S", 5.0)

    async def main() -> None:
        state = poller.TaskState("t1", "working", poll_interval_ms=wish)
        waits = []
        for _ in range(5):
            each = poller.TaskPoller(Client(Shop(DONE))._sender, "t1", state)
            waits.append(each._next_interval())
        assert len(set(waits)) > 1
        assert least <= min(waits)
        assert max(waits) <= most
        if not wish or wish < 0:
            for _ in range(20):
                last = each._next_interval()
            assert 5.0 <= last <= 5.5

    run(main())


# -- in the open, since 2026-07-28 -----------------------------------------------------------


def test_a_task_can_be_held_asked_and_waited_for() -> None:
    shop = Shop(task("working", statusMessage="on it"), DONE)

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x", {"a": 1}, result_type=str)
        assert (held.id, held.status, held.done()) == ("t1", "working", False)
        assert repr(held) == "<TaskHandle, working>"
        assert "tasks/get" not in shop.line.methods()
        assert await held.refresh() == "working"
        assert held.message == "on it"
        assert (await held.result()).value == "done"
        assert (held.status, held.done()) == ("completed", True)
        polls = shop.line.methods().count("tasks/get")
        assert (await held.result()).value == "done"
        await held.cancel()
        assert [each async for each in held] == ["completed"]
        assert shop.line.methods().count("tasks/get") == polls
        assert "tasks/cancel" not in shop.line.methods()
        assert "task" not in shop.line.last("tools/call")["params"]

    use(shop, work)


def test_a_tool_that_is_done_at_once_has_no_task() -> None:
    place = Place({"tools/call": {"resultType": "complete", **text("quick")}})

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert (held.id, held.status, held.done(), held.message) == (None, "completed", True, None)
        assert await held.refresh() == "completed"
        assert (await held.result()).text == "quick"
        assert [each async for each in held] == ["completed"]
        await held.cancel()
        assert repr(held) == "<TaskHandle, done at once>"
        assert place.line.methods()[-1] == "tools/call"

    use(place, work)


def test_a_call_that_asks_first_and_becomes_a_task_then_is_one() -> None:
    def call(message: dict[str, Any]) -> Any:
        if "inputResponses" in message["params"]:
            return {"resultType": "task", **task("working")}
        return {"resultType": "input_required", "inputRequests": {"name": FORM}}

    shop = Shop(DONE, **{"tools/call": call})

    async def work(client: Client) -> None:
        assert (await client.call_tool_as_task("x")).id == "t1"
        assert (await client.call_tool("x")).text == "done"

    use(shop, work, on_elicit=lambda params: {})


def test_cancelled_wait_on_a_task_handle_does_not_cancel_the_task() -> None:
    shop = Shop(task("working"))

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        waiting = asyncio.ensure_future(held.result())
        await shop.line.until("tasks/get", 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert "tasks/cancel" not in shop.line.methods()
        await held.cancel()
        assert not held.done()
        with pytest.raises(Cancelled, match="as you wish"):
            await held.result()
        assert held.status == "cancelled"
        with pytest.raises(Cancelled):
            await held.result()

    use(shop, work)


def test_a_task_can_be_come_back_to() -> None:
    shop = Shop(task("working"), DONE)

    async def work(client: Client) -> None:
        id = (await client.call_tool_as_task("x")).id
        shop.line.end()
        await client.connect()
        held = client.task(str(id), result_type=str)
        assert held.status is None
        assert (await held.result()).value == "done"
        shop.answers["tasks/get"] = Refused(-32602, "Task not found")
        with pytest.raises(PeerError, match="Task not found"):
            await client.task("t1").refresh()
        with pytest.raises(ValueError, match="timeout"):
            client.task("t1", timeout=0)

    use(shop, work)


def test_task_status_is_polled_without_notifications() -> None:
    shop = Shop(task("working"), task("working", statusMessage="half"), task("working"), DONE)

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert [each async for each in held] == ["working", "working", "working", "completed"]
        assert (await held.result()).text == "done"

    use(shop, work)


def test_task_status_is_read_from_notifications_where_the_server_sends_them() -> None:
    shop = Shop(task("working"))

    def listen(message: dict[str, Any]) -> Any:
        asked = message["params"]["notifications"]
        params = {"notifications": asked, "_meta": {ID: message["id"]}}
        method = "notifications/subscriptions/acknowledged"
        shop.line.say({"jsonrpc": "2.0", "method": method, "params": params})
        return SILENT

    def send_status(state: dict[str, Any]) -> None:
        id = shop.line.last("subscriptions/listen")["id"]
        params = state | {"_meta": {ID: id}}
        shop.line.say({"jsonrpc": "2.0", "method": "notifications/tasks", "params": params})

    shop.answers["subscriptions/listen"] = listen

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        seen: list[str] = []
        async for status in held:
            seen.append(status)
            if len(seen) == 1:
                asked = shop.line.last("subscriptions/listen")["params"]["notifications"]
                assert asked == {"taskIds": ["t1"]}
                send_status(task("input_required", inputRequests={}))
                send_status(task("working", statusMessage="again"))
                shop.states = [DONE]
                send_status(DONE)
        assert seen == ["working", "input_required", "working", "completed"]
        # Once when it began, to miss nothing; and once for the result.
        assert shop.line.methods().count("tasks/get") == 1
        assert "notifications/cancelled" in shop.line.methods()
        assert (await held.result()).text == "done"
        assert shop.line.methods().count("tasks/get") == 2

    use(shop, work)


def test_a_stream_that_ends_before_the_task_does_is_followed_by_polls() -> None:
    shop = Shop(task("working"))

    def listen(message: dict[str, Any]) -> Any:
        meta = {ID: message["id"]}
        params = {"notifications": {"taskIds": ["t1"]}, "_meta": meta}
        method = "notifications/subscriptions/acknowledged"
        shop.line.say({"jsonrpc": "2.0", "method": method, "params": params})
        asyncio.get_running_loop().call_later(
            0.01,
            shop.line.say,
            {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"}},
        )
        shop.states = [task("working"), task("working"), DONE]
        return SILENT

    shop.answers["subscriptions/listen"] = listen

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert [each async for each in held] == ["working", "completed"]

    use(shop, work)


def test_a_task_that_is_iterated_has_its_questions_answered() -> None:
    shop = Shop(task("input_required", inputRequests={"a": FORM}))

    def update(message: dict[str, Any]) -> Any:
        shop.states = [task("working"), DONE]
        return {"resultType": "complete"}

    shop.answers["tasks/update"] = update

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        seen = [each async for each in held]
        assert seen == ["working", "input_required", "working", "completed"]

    use(shop, work, on_elicit=lambda params: {})


def test_a_revision_without_such_a_verb_says_so() -> None:
    async def work(client: Client) -> None:
        with pytest.raises(LocalProtocolError, match="tasks/list"):
            await client.list_tasks()

    use(Shop(DONE), work)

    async def older(client: Client) -> None:
        with pytest.raises(LocalProtocolError, match="tasks/get"):
            client.task("t1")
        held = await client.call_tool_as_task("x")
        assert (held.id, (await held.result()).text) == (None, "quick")
        assert place.line.last("tools/call")["params"] == {"name": "x"}

    place = Place({"tools/call": text("quick")}, revision="2025-06-18")
    use(place, older, revision="2025-06-18")


# -- 2025-11-25 ------------------------------------------------------------------------------


CORE = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}


def core(status: str, **members: Any) -> dict[str, Any]:
    when = "2026-01-01T00:00:00Z"
    common = {"taskId": "t1", "status": status, "createdAt": when, "lastUpdatedAt": when}
    return common | {"ttl": None, "pollInterval": 1} | members


def listed(support: str | None, *names: str) -> dict[str, Any]:
    """A list of tools that say this of themselves and tasks."""
    tool: dict[str, Any] = {"inputSchema": {"type": "object"}}
    if support is not None:
        tool["execution"] = {"taskSupport": support}
    return {"tools": [{"name": name, **tool} for name in names]}


class Works(Place):
    """A server of 2025-11-25 whose tool only runs as a task, as it says."""

    def __init__(self, *, capabilities: dict[str, Any] = CORE, **answers: Any) -> None:
        self.status: dict[str, Any] = core("working")
        given: dict[str, Any] = {
            "tools/list": listed("required", "x"),
            "initialize": initialized(NEWEST_HANDSHAKE, capabilities=capabilities),
            "tools/call": self._call,
            "tasks/get": lambda message: self.status,
            "tasks/result": SILENT,
            "tasks/cancel": self._cancel,
        }
        super().__init__(given | answers, revision=NEWEST_HANDSHAKE)

    def _call(self, message: dict[str, Any]) -> Any:
        if "task" not in message["params"]:
            return Refused(-32601, "this tool is a task")
        return {"task": core("working")}

    def _cancel(self, message: dict[str, Any]) -> Any:
        self.status = core("cancelled", statusMessage="as you wish")
        self.finish({"code": -32800, "message": "cancelled"}, is_error=True)
        return self.status

    def finish(self, outcome: dict[str, Any], *, is_error: bool = False) -> None:
        if "tasks/result" in self.line.methods():
            id = self.line.last("tasks/result")["id"]
            member = "error" if is_error else "result"
            self.line.say({"jsonrpc": "2.0", "id": id, member: outcome})


def use_core(
    place: Place, work: Callable[[Client], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    return use(place, work, revision=NEWEST_HANDSHAKE, **options)


@pytest.mark.parametrize("options", [{}, {"timeout": 5}])
def test_a_tool_that_must_be_a_task_is_called_again_as_one(options: dict[str, Any]) -> None:
    place = Works()

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool("x", {"a": 1}, **options))
        await place.line.until("tasks/get", 3)
        assert place.line.methods()[2:5] == ["tools/call", "tools/list", "tools/call"]
        assert place.line.last("tasks/result")["params"] == {"taskId": "t1"}
        place.finish(text("done"))
        assert (await waiting).text == "done"
        assert place.line.methods().count("tools/call") == 2
        params = place.line.last("tools/call")["params"]
        assert (params["arguments"], params["task"]) == ({"a": 1}, {})
        assert "tasks/cancel" not in place.line.methods()

    use_core(place, work)


@pytest.mark.parametrize(
    ("listing", "options"),
    [
        (listed("optional", "x"), {}),
        (listed("forbidden", "x"), {}),
        (listed(None, "x"), {}),
        (listed("required", "y"), {}),
        (Refused(-32601, "no list"), {}),
        ({"tools": 5}, {}),
        (SILENT, {"timeout": 0.05}),
        (listed("required", "x"), {"tasks": False}),
    ],
)
def test_a_tool_that_ran_and_failed_is_not_called_a_second_time(
    listing: Any, options: dict[str, Any]
) -> None:
    # Its error may have the number of one that says that a tool has to be a task.
    place = Works(**{"tools/call": Refused(-32601, "my own"), "tools/list": listing})

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="my own"):
            await client.call_tool("x")
        with pytest.raises(PeerError, match="my own"):
            await client.call_tool("x", timeout=0.05)
        with pytest.raises(PeerError, match="my own"):
            await client.submit_tool("x")
        with pytest.raises(PeerError, match="my own"):
            await client.submit("tools/call", {"name": ["x"]})
        assert place.line.methods().count("tools/call") == 4
        assert "task" not in place.line.last("tools/call")["params"]
        if options.get("tasks") is False:
            assert "tools/list" not in place.line.methods()
            await client.list_tools()
            with pytest.raises(PeerError, match="my own"):
                await client.call_tool("x")
            assert "task" not in place.line.last("tools/call")["params"]

    use_core(place, work, **options)


def test_the_list_of_tools_is_asked_for_once() -> None:
    place = Works(**{"tools/call": Refused(-32601, "my own"), "tools/list": listed(None, "x")})

    async def work(client: Client) -> None:
        for _ in range(3):
            with pytest.raises(PeerError, match="my own"):
                await client.call_tool("x")
        assert place.line.methods().count("tools/list") == 1

    use_core(place, work)


@pytest.mark.parametrize("how", ["call", "options", "submit"])
def test_a_tool_that_is_known_to_be_a_task_is_called_as_one_at_once(how: str) -> None:
    place = Works(**{"tasks/result": text("done")})

    async def work(client: Client) -> None:
        await client.list_tools()
        if how == "call":
            found = await client.call_tool("x", {"a": 1})
        elif how == "options":
            found = await client.call_tool("x", {"a": 1}, timeout=5)
        else:
            found = await client.submit_tool("x", {"a": 1})
        assert found.text == "done"
        assert place.line.methods().count("tools/call") == 1
        params = place.line.last("tools/call")["params"]
        assert (params["arguments"], params["task"]) == ({"a": 1}, {})

    use_core(place, work)


def test_a_call_in_hand_of_what_is_known_to_be_a_task_can_be_cancelled() -> None:
    place = Works()

    async def work(client: Client) -> None:
        await client.list_tools()
        call = client.submit_tool("x")
        await place.line.until("tasks/result")
        call.cancel()
        await place.line.until("tasks/cancel")
        assert call.cancelled()
        assert place.line.methods().count("tools/call") == 1

    use_core(place, work)


def test_known_task_support_of_tools_is_forgotten_when_the_list_changes() -> None:
    def call(message: dict[str, Any]) -> Any:
        return Refused(-32601, "no task") if "task" in message["params"] else text("quick")

    def new(message: dict[str, Any]) -> Any:
        # The word of the change comes before the list it makes stale.
        place.line.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return listed("required", "x")

    place = Works(**{"tools/call": call})

    async def work(client: Client) -> None:
        await client.list_tools()
        place.line.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await asyncio.sleep(0.01)
        assert (await client.call_tool("x")).text == "quick"

        place.answers["tools/list"] = new
        await client.list_tools()
        assert (await client.call_tool("x")).text == "quick"

        # Without a word it is found out by the first call that goes wrong.
        place.answers["tools/list"] = listed("required", "x")
        await client.list_tools()
        with pytest.raises(PeerError, match="no task"):
            await client.call_tool("x")
        assert (await client.call_tool("x")).text == "quick"

        await client.list_tools()
        await client.close()
        await client.connect()
        assert (await client.call_tool("x")).text == "quick"

    use_core(place, work)


def test_a_tool_is_called_as_a_task_although_a_change_crossed_the_list() -> None:
    def crossed(message: dict[str, Any]) -> Any:
        place.line.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return listed("required", "x")

    place = Works(**{"tools/list": crossed, "tasks/result": text("done")})

    async def work(client: Client) -> None:
        await client.list_tools()
        assert (await client.call_tool("x")).text == "done"
        assert place.line.methods().count("tools/call") == 1
        assert place.line.last("tools/call")["params"]["task"] == {}

    use_core(place, work)


REFUSED_AS_RESULT = text("Tool x requires task augmentation", isError=True)


def refused_unless_task(message: dict[str, Any]) -> Any:
    """Refuse a plain call as some servers do: with a result."""
    return {"task": core("working")} if "task" in message["params"] else REFUSED_AS_RESULT


@pytest.mark.parametrize("how", ["call", "with a timeout", "submit"])
def test_a_refusal_that_is_a_result_is_followed_by_a_task_if_the_list_says_so(how: str) -> None:
    place = Works(**{"tools/call": refused_unless_task, "tasks/result": text("done")})

    async def called(client: Client) -> Any:
        if how == "submit":
            return await client.submit_tool("x")
        return await client.call_tool("x", timeout=None if how == "call" else 10)

    async def work(client: Client) -> None:
        assert (await called(client)).text == "done"
        assert (await called(client)).text == "done"
        assert place.line.methods().count("tools/list") == 1
        assert place.line.methods().count("tools/call") == 3

    use_core(place, work)


@pytest.mark.parametrize("how", ["call", "with a timeout", "submit"])
@pytest.mark.parametrize("support", ["optional", "forbidden"])
def test_a_result_that_is_an_error_stands_if_the_list_requires_no_task(
    how: str, support: str
) -> None:
    place = Works(**{"tools/call": REFUSED_AS_RESULT, "tools/list": listed(support, "x")})

    async def called(client: Client) -> Any:
        if how == "submit":
            return await client.submit_tool("x")
        return await client.call_tool("x", timeout=None if how == "call" else 10)

    async def work(client: Client) -> None:
        for _ in range(3):
            found = await called(client)
            assert (found.is_error, found.text) == (True, "Tool x requires task augmentation")
        # The list is known now.
        assert place.line.methods().count("tools/list") == 1
        assert place.line.methods().count("tools/call") == 3

    use_core(place, work)


def test_a_result_that_is_an_error_stands_if_the_list_cannot_be_read() -> None:
    place = Works(**{"tools/call": REFUSED_AS_RESULT, "tools/list": Refused(-32603, "no")})

    async def work(client: Client) -> None:
        assert (await client.call_tool("x")).is_error
        assert (await client.submit_tool("x")).is_error

    use_core(place, work)


def test_caller_cancelled_during_the_tool_list_request_sends_cancelled_for_it() -> None:
    place = Works(**{"tools/list": SILENT})

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool("x"))
        asked = await place.line.until("tools/list")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        cancelled = await place.line.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]
        assert place.line.methods().count("tools/call") == 1

    use_core(place, work)


def test_a_server_that_takes_no_tasks_is_not_asked_for_one() -> None:
    place = Works(capabilities={"tools": {}, "tasks": {}})

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="this tool is a task"):
            await client.call_tool("x")
        with pytest.raises(PeerError):
            await client.call_tool("x", timeout=5)
        place.answers["tools/call"] = text("quick")
        assert (await client.call_tool_as_task("x", ttl=5)).id is None
        assert place.line.methods().count("tools/call") == 3
        assert "task" not in place.line.last("tools/call")["params"]

    use_core(place, work)


def test_unrelated_error_does_not_repeat_the_call_as_a_task() -> None:
    place = Works(**{"tools/call": Refused(-32602, "no such tool")})

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="no such tool"):
            await client.call_tool("x")
        assert place.line.methods().count("tools/call") == 1

    use_core(place, work)


def test_a_task_of_the_core_that_failed_or_was_cancelled_says_so() -> None:
    place = Works()

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x", ttl=2.5)
        assert place.line.last("tools/call")["params"]["task"] == {"ttl": 2500}
        waiting = asyncio.ensure_future(held.result())
        await place.line.until("tasks/result")
        await held.cancel()
        with pytest.raises(Cancelled, match="as you wish"):
            await waiting
        assert (held.status, held.done()) == ("cancelled", True)

        place.status = core("working")
        held = await client.call_tool_as_task("x")
        waiting = asyncio.ensure_future(held.result())
        await place.line.until("tasks/result", 2)
        place.finish({"code": -32603, "message": "broken"}, is_error=True)
        with pytest.raises(PeerError, match="broken"):
            await waiting

        place.answers["tasks/result"] = text("no luck", isError=True)
        held = await client.call_tool_as_task("x")
        assert (await held.result()).is_error
        assert held.status == "failed"

    use_core(place, work)


def test_cancelling_an_ended_task_raises_no_error() -> None:
    place = Works(**{"tasks/cancel": Refused(-32602)})

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        with pytest.raises(PeerError):
            await held.cancel()
        place.status = core("completed")
        await held.cancel()
        assert held.status == "completed"

    use_core(place, work)


def test_cancelled_caller_cancels_a_core_task() -> None:
    place = Works()

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool("x"))
        await place.line.until("tasks/get", 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert "tasks/cancel" in place.line.methods()

    use_core(place, work)


def test_a_result_that_does_not_come_although_the_task_has_ended_is_given_up() -> None:
    place = Works()
    place.status = core("completed")

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x", timeout=0.02)
        with pytest.raises(RequestTimeout, match="tasks/result"):
            await held.result()

    use_core(place, work)


def test_the_time_of_a_call_is_that_of_its_task_in_the_core() -> None:
    place = Works()

    async def work(client: Client) -> None:
        with pytest.raises(RequestTimeout, match=r"no result within 0\.01 s"):
            await client.call_tool("x", timeout=0.01)
        await place.line.until("tasks/cancel")
        place.status = core("working")
        with pytest.raises(RequestTimeout, match="the maximum"):
            await client.call_tool("x", timeout=1)
        await place.line.until("tasks/cancel", 2)

    use_core(place, work, max_timeout=0.1)


def test_progress_on_a_task_of_the_core_gives_its_call_the_time_again() -> None:
    place, told = Works(), list[float]()

    async def work(client: Client) -> None:
        clock = SessionClock(client)
        waiting = asyncio.ensure_future(
            client.call_tool("x", timeout=10, on_progress=lambda now, *_: told.append(now))
        )
        await place.line.until("tasks/result")
        call = place.line.last("tools/call")
        token = call["params"]["_meta"]["progressToken"]
        for count in range(5):
            await place.line.until("tasks/get", place.line.methods().count("tasks/get") + 2)
            clock.passed += 8
            params = {"progressToken": token, "progress": count}
            method = "notifications/progress"
            place.line.say({"jsonrpc": "2.0", "method": method, "params": params})
        await place.line.until("tasks/get", place.line.methods().count("tasks/get") + 2)
        assert told == [0, 1, 2, 3, 4]
        assert not waiting.done()
        place.finish(text("done"))
        assert (await waiting).text == "done"

    use_core(place, work, max_timeout=100)


def test_unavailable_result_of_a_core_task_is_requested_again() -> None:
    place, tries = Works(), list[int]()

    def result(message: dict[str, Any]) -> Any:
        tries.append(1)
        return HICCUP if len(tries) < 3 else text("done")

    place.answers["tasks/result"] = result

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert (await held.result()).text == "done"
        # What a task has failed with is another thing.
        tries.clear()
        place.status = core("failed")
        with pytest.raises(PeerError, match="Service unavailable"):
            await (await client.call_tool_as_task("x")).result()
        assert len(tries) == 1

    use_core(place, work)


def test_a_task_of_the_core_that_comes_too_late_for_its_caller_is_ended() -> None:
    place = Works()
    usual = place.answers["tools/call"]

    async def work(client: Client) -> None:
        held = list[Any]()

        def call(message: dict[str, Any]) -> Any:
            held.append((message["id"], usual(message) if callable(usual) else usual))
            return SILENT

        place.answers["tools/call"] = call
        waiting = asyncio.ensure_future(client.call_tool_as_task("x"))
        await place.line.until("tools/call")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        place.line.say({"jsonrpc": "2.0", "id": held[0][0], "result": held[0][1]})
        await place.line.until("tasks/cancel")

    use_core(place, work)


def test_a_tool_that_may_not_be_a_task_is_called_without() -> None:
    def call(message: dict[str, Any]) -> Any:
        return Refused(-32601) if "task" in message["params"] else text("quick")

    for support in (None, "forbidden"):
        place = Works(**{"tools/call": call, "tools/list": listed(support, "x")})

        async def work(client: Client, place: Place = place) -> None:
            for _ in range(2):
                held = await client.call_tool_as_task("x")
                assert (held.id, (await held.result()).text) == (None, "quick")
            # The second time it is known.
            assert place.line.methods()[2:] == ["tools/call", "tools/list", *2 * ["tools/call"]]

        use_core(place, work)


@pytest.mark.parametrize("listing", [listed("optional", "x"), listed(None, "y"), Refused(-32603)])
def test_a_task_that_fails_at_once_is_not_called_a_second_time(listing: Any) -> None:
    place = Works(**{"tools/call": Refused(-32601, "my own"), "tools/list": listing})

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="my own"):
            await client.call_tool_as_task("x")
        assert place.line.methods().count("tools/call") == 1

    use_core(place, work)


def test_a_server_that_answers_a_task_with_a_result_is_done() -> None:
    place = Works(**{"tools/call": text("quick")})

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert (held.id, (await held.result()).text) == (None, "quick")

    use_core(place, work)


def test_status_of_a_core_task_is_read_from_notifications_and_polls() -> None:
    place = Works()
    place.status = core("working", pollInterval=60000)

    def send_status(**members: Any) -> None:
        params = core(**members)
        place.line.say({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params})

    async def work(client: Client) -> None:
        held = client.task("t1")
        seen: list[str] = []
        async for status in held:
            seen.append(status)
            if len(seen) == 1:
                place.status = core("working", statusMessage="half")
                send_status(status="input_required")
            if len(seen) == 3:
                place.status = core("completed")
        assert seen == ["working", "input_required", "working", "completed"]

    use_core(place, work)


def test_the_tasks_of_a_server_are_listed_in_2025() -> None:
    def page(message: dict[str, Any]) -> Any:
        if message["params"].get("cursor"):
            return {"tasks": [core("completed") | {"taskId": "t2"}]}
        return {"tasks": [core("working")], "nextCursor": "more"}

    place = Works(**{"tasks/list": page})

    async def work(client: Client) -> None:
        found = await client.list_tasks()
        assert [(each.task_id, each.status) for each in found] == [
            ("t1", "working"),
            ("t2", "completed"),
        ]

    use_core(place, work)


def test_the_newest_revision_is_the_one_with_the_extension() -> None:
    assert LATEST == "2026-07-28"


@pytest.mark.parametrize("whose", ["call", "client"])
def test_progress_is_reported_until_a_core_task_ends(whose: str) -> None:
    place, seen = Works(), list[float]()

    def record_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    def report(progress: float) -> None:
        token = place.line.last("tools/call")["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": progress}
        place.line.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    async def work(client: Client) -> None:
        own: Any = record_progress if whose == "call" else None
        waiting = asyncio.ensure_future(client.call_tool("x", on_progress=own))
        await place.line.until("tasks/get", 2)
        report(1)
        await place.line.until("tasks/get", 4)
        place.finish(text("done"))
        assert (await waiting).text == "done"
        report(2)
        await asyncio.sleep(0.01)
        assert seen == [1]
        place.answers["tools/call"] = text("quick")
        await client.call_tool_as_task("x", on_progress=own)
        report(3)
        await asyncio.sleep(0.01)
        assert seen == [1]

    use_core(place, work, on_progress=record_progress if whose == "client" else None)


@pytest.mark.parametrize("whose", ["call", "client"])
@pytest.mark.parametrize("how", ["call_tool", "call_tool_as_task", "submit_tool"])
def test_status_messages_of_a_task_of_the_extension_are_its_progress(how: str, whose: str) -> None:
    begun = {"resultType": "task", **task("working", statusMessage="begun")}
    states = (
        task("working", statusMessage="begun"),
        task("working"),
        task("working", statusMessage="step 1 (1 of 2)"),
        task("input_required", statusMessage="step 1 (1 of 2)"),
        task("completed", statusMessage="step 2 (2 of 2)", result=DONE["result"]),
    )
    shop = Shop(*states, **{"tools/call": begun})
    seen: list[Any] = []

    def record_progress(*report: Any) -> None:
        seen.append(report)

    async def work(client: Client) -> None:
        own: Any = record_progress if whose == "call" else None
        if how == "call_tool_as_task":
            handle = await client.call_tool_as_task("x", on_progress=own)
            assert handle.message == "begun"
            assert seen == [(1, None, "begun")]
            assert (await handle.result()).text == "done"
            assert handle.message == "step 2 (2 of 2)"
        else:
            assert (await getattr(client, how)("x", on_progress=own)).text == "done"

    use(shop, work, on_progress=record_progress if whose == "client" else None)
    texts = ["begun", "step 1 (1 of 2)", "step 2 (2 of 2)"]
    assert seen == [(number, None, text) for number, text in enumerate(texts, 1)]


def test_message_of_a_task_that_failed_is_not_its_progress() -> None:
    error = {"code": -32603, "message": "broken"}
    shop = Shop(task("working"), task("failed", statusMessage="broken", error=error))
    seen: list[Any] = []

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="broken"):
            await client.call_tool("x", on_progress=lambda *report: seen.append(report))

    use(shop, work)
    assert seen == []


def test_progress_callback_of_a_task_that_raises_does_not_end_the_call() -> None:
    shop = Shop(task("working", statusMessage="half"), DONE)

    def raises(*report: Any) -> None:
        raise ValueError("no")

    found = use(shop, lambda client: client.call_tool("x", on_progress=raises))
    assert found.text == "done"


def test_a_task_of_the_core_goes_over_to_a_new_connection() -> None:
    place = Works()

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool("x"))
        while len(place.lines) < 2:
            await asyncio.sleep(0.001)
        first = place.lines[0]
        id = first.last("tasks/result")["id"]
        # The old connection is kept for the result that comes by it.
        first.say({"jsonrpc": "2.0", "id": id, "result": text("done")})
        assert (await waiting).text == "done"

    use_core(place, work, policy=Policy(max_id=6))


def test_task_is_polled_when_acknowledged_notifications_do_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(poller, "MAX_POLL_INTERVAL_S", 0.01)
    shop = Shop(task("working"), task("working"), DONE)

    def listen(message: dict[str, Any]) -> Any:
        params = {"notifications": {"taskIds": ["t1"]}, "_meta": {ID: message["id"]}}
        method = "notifications/subscriptions/acknowledged"
        shop.line.say({"jsonrpc": "2.0", "method": method, "params": params})
        return SILENT

    shop.answers["subscriptions/listen"] = listen

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert [each async for each in held] == ["working", "completed"]

    use(shop, work)


def test_leaving_the_iteration_of_a_task_sends_cancelled_for_its_stream() -> None:
    shop = Shop(task("working"))

    def listen(message: dict[str, Any]) -> Any:
        params = {"notifications": {"taskIds": ["t1"]}, "_meta": {ID: message["id"]}}
        method = "notifications/subscriptions/acknowledged"
        shop.line.say({"jsonrpc": "2.0", "method": method, "params": params})
        return SILENT

    shop.answers["subscriptions/listen"] = listen

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        async for status in held:
            assert status == "working"
            break
        await shop.line.until("notifications/cancelled")

    use(shop, work)


def test_a_strict_client_asks_for_tasks_where_they_were_declared() -> None:
    shop = Shop(DONE)
    assert use(shop, lambda client: client.call_tool("x"), strict=True).text == "done"
    shop.answers["server/discover"] = discovery()

    async def work(client: Client) -> None:
        with pytest.raises(LocalProtocolError, match=TASKS):
            await client.task("t1").refresh()

    use(shop, work, strict=True)


def test_task_missing_from_the_acknowledgement_is_polled() -> None:
    shop = Shop(task("working"), DONE)

    def listen(message: dict[str, Any]) -> Any:
        params = {"notifications": {}, "_meta": {ID: message["id"]}}
        method = "notifications/subscriptions/acknowledged"
        shop.line.say({"jsonrpc": "2.0", "method": method, "params": params})
        return SILENT

    shop.answers["subscriptions/listen"] = listen

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        assert [each async for each in held] == ["working", "completed"]
        assert "notifications/cancelled" in shop.line.methods()

    use(shop, work)


def acknowledging(shop: Shop, *, ends: bool = False) -> Callable[[dict[str, Any]], Any]:
    """Return what acknowledges a stream of a task, and may end it in the same moment."""

    def listen(message: dict[str, Any]) -> Any:
        id = message["id"]
        params = {"notifications": message["params"]["notifications"], "_meta": {ID: id}}
        method = "notifications/subscriptions/acknowledged"
        said = [{"jsonrpc": "2.0", "method": method, "params": params}]
        if ends:
            params = {"requestId": id, "reason": "restart"}
            said += [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}]

        def deliver() -> None:
            for each in said:
                shop.line._deliver(json.dumps(each).encode())

        asyncio.get_running_loop().call_later(0.01, deliver)
        return SILENT

    return listen


def test_however_many_read_the_changes_of_a_task_there_is_one_stream() -> None:
    shop = Shop(task("working"))
    shop.answers["subscriptions/listen"] = acknowledging(shop)

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")

        async def read() -> list[str]:
            return [each async for each in held]

        reading = [asyncio.ensure_future(read()) for _ in range(3)]
        await shop.line.until("tasks/get")
        id = shop.line.last("subscriptions/listen")["id"]
        params = DONE | {"_meta": {ID: id}}
        shop.line.say({"jsonrpc": "2.0", "method": "notifications/tasks", "params": params})
        assert await asyncio.gather(*reading) == [["working", "completed"]] * 3
        assert shop.line.methods().count("subscriptions/listen") == 1
        assert client._connection.session is not None
        assert not client._connection.session.streams._open

    use(shop, work)


def test_a_stream_of_a_task_that_ends_with_its_acknowledgement_is_followed_by_polls() -> None:
    shop = Shop(task("working"), task("working"), DONE)
    shop.answers["subscriptions/listen"] = acknowledging(shop, ends=True)

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        async with asyncio.timeout(5):
            assert [each async for each in held] == ["working", "completed"]

    use(shop, work)


def test_repr_of_a_task_state_hides_its_id() -> None:
    state = poller.TaskState("secret-id", "working")
    assert "secret-id" not in repr(state)
    assert "secret-id" not in repr(state.__rich_repr__())
    assert "working" in repr(state)


def test_unsupported_input_request_is_raised_by_iteration_and_result() -> None:
    shop = Shop(task("input_required", inputRequests={"a": FORM}))

    async def work(client: Client) -> None:
        held = await client.call_tool_as_task("x")
        with pytest.raises(RemoteProtocolError, match="declared"):
            async for _ in held:
                pass
        with pytest.raises(RemoteProtocolError, match="declared"):
            await held.result()
        assert "tasks/cancel" not in shop.line.methods()

    use(shop, work)


def test_a_task_of_the_core_that_is_gone_has_no_result() -> None:
    place = Works(**{"tasks/get": Refused(-32602, "Task not found")})

    async def work(client: Client) -> None:
        with pytest.raises(PeerError, match="Task not found"):
            await client.call_tool("x")

    use_core(place, work)


def test_caller_cancelled_before_the_task_exists_cancels_the_call() -> None:
    place = Works(**{"tools/call": SILENT})

    async def work(client: Client) -> None:
        waiting = asyncio.ensure_future(client.call_tool_as_task("x"))
        asked = await place.line.until("tools/call")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        cancelled = await place.line.until("notifications/cancelled")
        assert cancelled["params"]["requestId"] == asked["id"]
        place.answers["tools/call"] = Refused(-32602, "no such tool")
        with pytest.raises(PeerError, match="no such tool"):
            await client.call_tool_as_task("x")
        with pytest.raises(ValueError, match="ttl"):
            await client.call_tool_as_task("x", ttl=0)

    use_core(place, work)


@pytest.mark.parametrize("most", [3, 4, 5])
def test_a_task_of_the_core_is_begun_by_a_new_connection_where_ids_are_used_up(most: int) -> None:
    place = Works(**{"tasks/result": text("done")})

    async def work(client: Client) -> None:
        for _ in range(4):
            held = await client.call_tool_as_task("x")
            assert (await held.result()).text == "done"
        assert len(place.lines) > 1

    use_core(place, work, policy=Policy(max_id=most))


def test_a_call_in_hand_that_must_be_a_task_becomes_one() -> None:
    place = Works()

    async def work(client: Client) -> None:
        call = client.submit_tool("x", result_type=str)
        await place.line.until("tasks/get", 2)
        assert not call.done()
        place.finish(text("done"))
        assert (await call).value == "done"

        call = client.submit_tool("x")
        await place.line.until("tasks/result", 2)
        call.cancel()
        await place.line.until("tasks/cancel")
        assert call.cancelled()

        place.answers["tools/call"] = Refused(-32602, "no such tool")
        with pytest.raises(PeerError, match="no such tool"):
            await client.submit_tool("x")
        place.answers["tools/call"] = text("quick")
        assert (await client.submit_tool("x")).text == "quick"
        assert (await client.submit("tools/call", {"name": "x"}))["content"][0]["text"] == "quick"

    use_core(place, work)
