"""Asking while the client waits: the revisions in which a server sends requests."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest
from msgspec import Struct

from tests.rigs.conditions import until_async
from tests.rigs.server_connection import WAIT, ServerConnection, connected
from tests.unit.server.rounds_wire import EVERYTHING
from trunkline import Context, Server
from trunkline.errors import PeerError, RequestAborted, RequestError
from trunkline.jsonrpc import Policy
from trunkline.server import AcceptedElicitation, ServerLimits
from trunkline.spec.error_kinds import ErrorKind

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
WITH_FORMS = HANDSHAKES[2:]


class Trip(Struct):
    city: str
    days: int = 3
    seat: Literal["aisle", "window"] = "aisle"


async def next_request(wire: ServerConnection) -> Any:
    """Return the first request that the server has sent."""
    while True:
        for message in wire.got:
            if "method" in message and "id" in message:
                wire.got.remove(message)
                return message
        await asyncio.sleep(0.005)


def answered(wire: ServerConnection, question: Any, result: Any) -> None:
    wire.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


def planner() -> Server:
    app = Server("tests")

    @app.tool
    async def plan(context: Context) -> str:
        answer = await context.elicit("Where to?", Trip)
        return repr(answer)

    @app.tool
    async def summarise(context: Context) -> str:
        reply = await context.sample("Summarise", max_tokens=9, system="Be brief")
        return f"{reply.model}: {reply.content.text}"  # type: ignore[union-attr]  # a text

    @app.tool
    async def folders(context: Context) -> str:
        return ", ".join(root.uri for root in await context.roots())

    @app.tool
    async def visit(context: Context) -> str:
        return (await context.elicit_url("Pay", "https://example.com/pay")).action

    @app.tool
    async def once_twice(context: Context) -> str:
        one = await context.once("one", lambda: (1, 2), type=list[int])
        return f"{one} {await context.once('two', _two, type=str)}"

    async def _two() -> str:
        return "two"

    return app


@pytest.mark.parametrize("revision", WITH_FORMS)
def test_a_form_is_a_request_and_its_answer_a_typed_value(revision: str) -> None:
    async def main() -> None:
        async with connected(planner(), revision, EVERYTHING) as wire:
            wire.call(1, "plan")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            params = question["params"]
            assert question["method"] == "elicitation/create"
            assert params["message"] == "Where to?"
            assert list(params["requestedSchema"]["properties"]) == ["city", "days", "seat"]
            assert params.get("mode") == ("form" if revision == "2025-11-25" else None)
            content = {"city": "Oslo", "seat": "window"}
            answered(wire, question, {"action": "accept", "content": content})
            reply = await wire.answer(1)
        expected = repr(AcceptedElicitation(Trip("Oslo", 3, "window")))
        assert reply["result"]["content"][0]["text"] == expected

    asyncio.run(main())


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_sampling_and_roots_work_in_every_handshake_revision(revision: str) -> None:
    async def main() -> None:
        async with connected(planner(), revision, EVERYTHING) as wire:
            wire.call(1, "summarise")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            assert question["params"]["systemPrompt"] == "Be brief"
            assert question["params"]["maxTokens"] == 9
            text = {"type": "text", "text": "Short."}
            answered(wire, question, {"role": "assistant", "model": "m", "content": text})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "m: Short."
            wire.call(2, "folders")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            assert question["method"] == "roots/list"
            answered(wire, question, {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]})
            assert (await wire.answer(2))["result"]["content"][0]["text"] == "file:///a, file:///b"
            wire.call(3, "once_twice")
            assert (await wire.answer(3))["result"]["content"][0]["text"] == "[1, 2] two"

    asyncio.run(main())


def test_an_address_to_visit_has_an_id_in_the_one_revision_that_has_them() -> None:
    async def main() -> None:
        async with connected(planner(), "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "visit")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            params = question["params"]
            assert params["mode"] == "url"
            assert params["url"] == "https://example.com/pay"
            assert params["elicitationId"]
            answered(wire, question, {"action": "accept"})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "accept"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("revision", "tool", "capabilities", "name"),
    [
        ("2025-11-25", "plan", {}, "elicitation"),
        ("2025-11-25", "visit", {"elicitation": {}}, "elicitation.url"),
        ("2025-06-18", "visit", {"elicitation": {}}, "elicitation.url"),
        ("2025-06-18", "plan", {}, "elicitation"),
        ("2025-03-26", "plan", EVERYTHING, "2025-03-26 does not have"),
        ("2024-11-05", "plan", EVERYTHING, "2024-11-05 does not have"),
        ("2024-11-05", "summarise", {}, "sampling"),
        ("2024-11-05", "folders", {}, "roots"),
    ],
)
def test_client_request_without_the_capability_fails_the_tool_and_is_not_sent(
    revision: str, tool: str, capabilities: dict[str, Any], name: str
) -> None:
    async def main() -> None:
        async with connected(planner(), revision, capabilities) as wire:
            wire.call(1, tool)
            result = (await wire.answer(1))["result"]
            assert result["isError"] is True
            (block,) = result["content"]
            assert block["text"].startswith(f"{tool!r} needs ")
            assert name in block["text"]
            assert len(wire.got) == 1

    asyncio.run(main())


@pytest.mark.parametrize("method", ["resources/read", "prompts/get"])
def test_client_request_without_the_capability_is_an_error_of_resources_and_prompts(
    method: str,
) -> None:
    app = planner()

    @app.resource("note://asked")
    async def note(context: Context) -> str:
        return (await context.elicit("Sure?", bool)).action

    @app.prompt
    async def ask(context: Context) -> str:
        return (await context.elicit("Sure?", bool)).action

    params = {"uri": "note://asked"} if method == "resources/read" else {"name": "ask"}

    async def main() -> None:
        async with connected(app, "2025-11-25", {}) as wire:
            wire.ask(1, method, params)
            error = (await wire.answer(1))["error"]
            assert error["code"] == -32600
            assert error["data"] == {"requiredCapabilities": {"elicitation": {}}}

    asyncio.run(main())


def test_missing_capability_that_a_tool_raises_by_its_kind_stays_an_error() -> None:
    app = Server("tests")

    @app.tool
    async def strict() -> str:
        raise RequestError(ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY, "declare more")

    async def main() -> None:
        async with connected(app, "2025-11-25", {}) as wire:
            wire.call(1, "strict")
            assert (await wire.answer(1))["error"]["code"] == -32600

    asyncio.run(main())


def test_policy_whose_tool_failures_are_errors_has_no_result_for_a_missing_capability() -> None:
    app = Server("tests", policy=Policy.pierre())

    @app.tool
    async def plan(context: Context) -> str:
        return (await context.elicit("Where to?", Trip)).action

    async def main() -> None:
        async with connected(app, "2025-06-18", {}) as wire:
            wire.call(1, "plan")
            error = (await wire.answer(1))["error"]
            assert error["data"]["requiredCapabilities"] == {"elicitation": {}}

    asyncio.run(main())


@pytest.mark.parametrize(
    "result",
    [
        {"action": "accept", "content": {"days": 3}},
        {"action": "accept", "content": {"city": 7}},
        {"action": "perhaps"},
        {},
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_not_shown(result: Any) -> None:
    async def main() -> None:
        async with connected(planner(), "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            answered(wire, question, result)
            reply = await wire.answer(1)
            assert reply["error"]["code"] == -32602
            assert "'elicitation-1'" in reply["error"]["message"]

    asyncio.run(main())


def test_an_error_of_the_client_reaches_the_handler() -> None:
    app = Server("tests")
    raised: list[BaseException] = []

    @app.tool
    async def plan(context: Context) -> str:
        try:
            await context.sample("Hm?", max_tokens=1)
        except PeerError as error:
            raised.append(error)
        return "went on"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            error = {"code": -1, "message": "User rejected sampling request"}
            wire.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "went on"

    asyncio.run(main())
    assert [error.code for error in raised] == [-1]  # type: ignore[attr-defined]  # caught as such


def test_a_tool_on_a_thread_waits_for_its_answer() -> None:
    app = Server("tests")

    @app.tool
    def blocking(context: Context) -> str:
        name = context.once("name", lambda: threading.current_thread().name, type=str).wait()
        answer = context.elicit("Name?", str, key="name").wait()
        return f"{name.startswith('trunkline-handler')} {answer.content}"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "blocking")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            answered(wire, question, {"action": "accept", "content": {"value": "Ada"}})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "True Ada"

    asyncio.run(main())


def test_waiting_thread_is_released_when_its_request_is_cancelled() -> None:
    app = Server("tests")
    ended = threading.Event()

    @app.tool
    def blocking(context: Context) -> str:
        try:
            return context.elicit("Name?", str).wait().action
        finally:
            ended.set()

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "blocking")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            wire.tell("notifications/cancelled", {"requestId": 1})
            assert await asyncio.to_thread(ended.wait, 5)
            # The client hears that its answer is no longer wanted.
            await until_async(lambda: wire.got)
            assert wire.got[0]["method"] == "notifications/cancelled"
            assert wire.got[0]["params"]["requestId"] == question["id"]

    asyncio.run(main())


def test_a_cancelled_handler_can_wait_for_a_thread_of_its_own_that_asks() -> None:
    app = Server("tests")
    ended: list[str] = []

    @app.tool
    async def starts_a_thread(context: Context) -> str:
        asking = asyncio.ensure_future(
            asyncio.to_thread(lambda: context.elicit("Name?", str).wait().action)
        )
        try:
            return await asyncio.shield(asking)
        finally:
            # Cleanup that leaves no thread behind.
            await asyncio.wait([asking])
            ended.append("cancelled" if asking.cancelled() else "not cancelled")

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "starts_a_thread")
            async with asyncio.timeout(WAIT):
                question = await next_request(wire)
                wire.tell("notifications/cancelled", {"requestId": 1})
                while not ended:
                    await asyncio.sleep(0.005)
            notes = [each["params"]["requestId"] for each in wire.got]
            assert notes == [question["id"]]

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_a_question_that_is_not_answered_in_time_ends_with_a_typed_error() -> None:
    app = Server("tests", limits=ServerLimits(ask_timeout=0.05))
    raised: list[BaseException] = []

    @app.tool
    async def plan(context: Context) -> str:
        for seconds in (None, 0.02):
            try:
                await context.elicit("Where to?", str, timeout=seconds)
            except RequestAborted as error:
                raised.append(error)
        return "gave up"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            reply = await wire.answer(1)
            assert reply["result"]["content"][0]["text"] == "gave up"

    asyncio.run(main())
    assert [str(error) for error in raised] == [
        "elicitation/create: no reply from the client within 0.05 s",
        "elicitation/create: no reply from the client within 0.02 s",
    ]


def test_concurrent_elicitations_are_open_at_the_same_time() -> None:
    app = Server("tests")

    @app.tool
    async def both(context: Context) -> str:
        one, two = await asyncio.gather(context.elicit("One?", str), context.elicit("Two?", str))
        return f"{one.content} {two.content}"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "both")
            async with asyncio.timeout(5):
                first, second = await next_request(wire), await next_request(wire)
            for question, text in ((second, "b"), (first, "a")):
                answered(wire, question, {"action": "accept", "content": {"value": text}})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "a b"

    asyncio.run(main())


@pytest.mark.parametrize("key", ["", "x" * 201, 7, "\ud800"])
def test_a_key_that_cannot_be_one_is_refused(key: Any) -> None:
    app = Server("tests")

    @app.tool
    async def plan(context: Context) -> str:
        try:
            context.elicit("Where to?", str, key=key)
        except (TypeError, ValueError) as error:
            return str(error)
        return "asked"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            text = (await wire.answer(1))["result"]["content"][0]["text"]
            assert "a key" in text

    asyncio.run(main())


def test_a_question_is_awaited_once() -> None:
    app = Server("tests")

    @app.tool
    async def plan(context: Context) -> str:
        once = context.once("x", lambda: 1, type=int)
        await once
        try:
            await once
        except RuntimeError as error:
            return str(error)
        return "twice"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            text = (await wire.answer(1))["result"]["content"][0]["text"]
            assert "awaited once" in text

    asyncio.run(main())


def test_once_converts_its_value_to_the_given_type() -> None:
    app = Server("tests")

    @app.tool
    async def plan(context: Context) -> str:
        trip = await context.once("trip", lambda: {"city": "Oslo"}, type=Trip)
        try:
            await context.once("wrong", lambda: "x", type=int)
        except TypeError as error:
            return f"{trip.city}: {error}"
        return "fitted"

    async def main() -> None:
        async with connected(app, "2025-11-25") as wire:
            wire.call(1, "plan")
            text = (await wire.answer(1))["result"]["content"][0]["text"]
            assert text.startswith("Oslo: the result of once('wrong') is not")

    asyncio.run(main())


def test_wait_for_an_elicitation_does_not_count_toward_the_handler_timeout() -> None:
    app = Server("tests")

    @app.tool(timeout=0.2)
    async def plan(context: Context) -> str:
        one, two = await asyncio.gather(context.elicit("One?", str), context.elicit("Two?", str))
        assert context.deadline is not None
        return f"{one.content} {two.content}"

    @app.tool(timeout=0.05)
    async def dawdle(context: Context) -> str:
        await context.elicit("One?", str)
        await asyncio.sleep(5)
        return "late"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            async with asyncio.timeout(5):
                first, second = await next_request(wire), await next_request(wire)
            for question in (first, second):
                await asyncio.sleep(0.25)
                answered(wire, question, {"action": "accept", "content": {"value": "x"}})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "x x"
            wire.call(2, "dawdle")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            answered(wire, question, {"action": "accept", "content": {"value": "x"}})
            late = (await wire.answer(2))["result"]
            assert late["isError"]
            assert "exceeded its timeout" in late["content"][0]["text"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda ctx: ctx.elicit(5, str), id="message"),
        pytest.param(lambda ctx: ctx.elicit_url("x", "not an address"), id="address"),
        pytest.param(lambda ctx: ctx.elicit_url("x", "javascript:alert(1)"), id="scheme"),
        pytest.param(lambda ctx: ctx.elicit("x", str, timeout="5"), id="timeout text"),
        pytest.param(lambda ctx: ctx.elicit("x", str, timeout=float("nan")), id="timeout nan"),
        pytest.param(lambda ctx: ctx.roots(timeout=0), id="timeout zero"),
        pytest.param(lambda ctx: ctx.elicit("x", dict[str, int]), id="form"),
    ],
)
def test_invalid_client_request_raises_before_anything_is_sent(ask: Any) -> None:
    app = Server("tests")

    @app.tool
    async def plan(context: Context) -> str:
        try:
            ask(context)
        except (TypeError, ValueError) as error:
            return type(error).__name__
        return "asked"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "plan")
            text = (await wire.answer(1))["result"]["content"][0]["text"]
            assert text in ("TypeError", "ValueError")
            assert len(wire.got) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("revision", "declared", "tool"),
    [
        ("2025-06-18", {"elicitation": {"url": {}}}, "visit"),
        ("2024-11-05", {"sampling": {"tools": {}}}, "use_tools"),
        ("2025-06-18", {"elicitation": {}}, "several"),
    ],
)
def test_capability_unknown_to_the_revision_counts_as_not_declared(
    revision: str, declared: dict[str, Any], tool: str
) -> None:
    app = planner()

    @app.tool
    async def use_tools(context: Context) -> str:
        assert not context.client.supports("sampling.tools")
        own = {"name": "t", "inputSchema": {"type": "object"}}
        await context.sample("Hm?", max_tokens=1, tools=[own])
        return "asked"

    @app.tool
    async def several(context: Context) -> str:
        await context.elicit("Which?", list[Literal["a", "b"]])
        return "asked"

    async def main() -> None:
        async with connected(app, revision, declared) as wire:
            wire.call(1, tool)
            assert (await wire.answer(1))["result"]["isError"] is True
            assert len(wire.got) == 1

    asyncio.run(main())


def test_a_cancel_is_not_caught_by_a_thread_that_catches_errors() -> None:
    app = Server("tests")
    went_on: list[str] = []
    ended = threading.Event()

    @app.tool
    def blocking(context: Context) -> str:
        try:
            try:
                context.elicit("Name?", str).wait()
            except Exception:  # noqa: BLE001  # what this test is about
                went_on.append("caught")
            went_on.append("went on")
        finally:
            ended.set()
        return "done"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "blocking")
            async with asyncio.timeout(5):
                await next_request(wire)
            wire.tell("notifications/cancelled", {"requestId": 1})
            assert await asyncio.to_thread(ended.wait, 5)

    asyncio.run(main())
    assert went_on == []


def test_waiting_thread_is_released_when_its_handler_times_out() -> None:
    app = Server("tests")
    begun, ended = threading.Event(), threading.Event()

    async def forever() -> None:
        await asyncio.sleep(60)

    @app.tool(timeout=0.05)
    def stuck(context: Context) -> str:
        begun.set()
        try:
            return str(context.once("x", forever).wait())
        finally:
            ended.set()

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            for id in range(100):
                wire.call(id, "stuck")
                assert (await wire.answer(id))["result"]["isError"]
                # Beside busy cores the time may be over before a thread has begun.
                if begun.is_set():
                    break
            assert begun.is_set()
            assert await asyncio.to_thread(ended.wait, 30)

    asyncio.run(main())


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_question_is_withdrawn_when_the_handler_that_put_it_has_ended(
    timeout: float | None,
) -> None:
    app = Server("tests")
    raised: list[BaseException] = []

    @app.tool(timeout=timeout)
    async def leave(context: Context) -> str:
        async def background(number: int) -> None:
            try:
                if number:
                    await asyncio.sleep(0.05)
                await context.elicit(f"Still there {number}?", str)
            except RequestAborted as error:
                raised.append(error)

        context.app.left = [asyncio.create_task(background(each)) for each in (0, 1)]
        await asyncio.sleep(0.01)
        return "gone"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "leave")
            async with asyncio.timeout(5):
                question = await next_request(wire)
                await wire.answer(1)
                await asyncio.gather(*app.left)  # type: ignore[attr-defined]  # set above
            notes = [each for each in wire.got if each.get("method") == "notifications/cancelled"]
            assert [each["params"]["requestId"] for each in notes] == [question["id"]]

    asyncio.run(main())
    assert len(raised) == 2


def test_a_client_that_does_not_answer_fills_no_log(caplog: Any) -> None:
    async def main() -> None:
        async with connected(planner(), "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "summarise")
            async with asyncio.timeout(5):
                question = await next_request(wire)
            error = {"code": -1, "message": "User rejected sampling request"}
            wire.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
            result = (await wire.answer(1))["result"]
            assert result["isError"]
            assert "did not get an answer" in result["content"][0]["text"]

    asyncio.run(main())
    assert "its request to the client was not answered" in caplog.text
    assert "Traceback" not in caplog.text


def test_elicitations_can_run_in_a_task_group() -> None:
    app = Server("tests")

    @app.tool
    async def both(context: Context) -> str:
        async with asyncio.TaskGroup() as group:
            one = group.create_task(context.elicit("One?", str))
            two = group.create_task(context.elicit("Two?", str))
        return f"{one.result().content} {two.result().content}"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "both")
            async with asyncio.timeout(5):
                first, second = await next_request(wire), await next_request(wire)
            for question, text in ((second, "b"), (first, "a")):
                answered(wire, question, {"action": "accept", "content": {"value": text}})
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "a b"

    asyncio.run(main())


def test_threads_of_one_handler_get_keys_of_their_own() -> None:
    app = Server("tests")

    @app.tool
    def many(context: Context) -> str:
        keys: list[Any] = []

        def put() -> None:
            keys.append(context.elicit("Same?", str))

        threads = [threading.Thread(target=put) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert context._request.run is not None
        return f"{len(keys)} {sorted(context._request.run._keys)[-1]}"

    async def main() -> None:
        async with connected(app, "2025-11-25", EVERYTHING) as wire:
            wire.call(1, "many")
            text = (await wire.answer(1))["result"]["content"][0]["text"]
            assert text == "8 elicitation-8"

    asyncio.run(main())
