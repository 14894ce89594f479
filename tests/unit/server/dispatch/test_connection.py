"""One client of a server: every request is answered once, and nothing is left of it after."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tests.rigs.messages import META, PER_REQUEST, initialize_params, message
from tests.rigs.server_connection import connected
from trunkline import (
    Context,
    Server,
    ServerLimits,
    ToolError,
    TransportError,
    TrunklineError,
    memory_pair,
)
from trunkline.jsonrpc import Policy
from trunkline.jsonrpc.framing.framing import Oversize, Truncated
from trunkline.jsonrpc.limits import TransportName
from trunkline.mcp import CallToolResult, PromptMessage, ResourceContents, TextContent
from trunkline.server.api.app import Server as ServerClass
from trunkline.server.dispatch.connection import Connection
from trunkline.spec.revisions import REVISIONS
from trunkline.transports.base import TransportBase


def sequential(**options: Any) -> Server:
    policy = Policy.mcp("2025-03-26").replace(batch_order="sequential")
    return Server("test", policy=policy, revisions=["2025-03-26"], **options)


def call(id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def test_a_notification_handler_that_raises_spoils_no_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Server("test")
    heard: list[dict[str, Any]] = []

    @app.notification("x/bad")
    async def bad(params: dict[str, Any]) -> None:
        raise ValueError("token=hunter2canary")

    @app.notification("x/good")
    def good(params: dict[str, Any]) -> None:
        heard.append(params)

    async def main() -> None:
        async with connected(app, "2025-03-26") as wire:
            ping = {"jsonrpc": "2.0", "method": "ping"}
            wire.send([{**ping, "id": 1}, {"jsonrpc": "2.0", "method": "x/bad"}, {**ping, "id": 2}])
            assert [each["id"] for each in (await wire.until(1))[0]] == [1, 2]
            wire.tell("x/good", {"a": 1})
            for _ in range(200):
                if heard:
                    break
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert heard == [{"a": 1}]
    assert "handler of notification" in caplog.text
    assert "hunter2canary" not in caplog.text


def test_the_result_of_a_method_of_ones_own_says_what_every_result_says() -> None:
    app = Server("test", version="1")

    @app.method("x/whole")
    def whole() -> dict[str, Any]:
        return {"a": 1, "_meta": {"com.example/k": 2}}

    @app.method("x/number")
    async def number(n: int) -> int:
        return n

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            wire.ask(1, "x/whole", {"_meta": META})
            result = (await wire.answer(1))["result"]
            assert (result["a"], result["resultType"]) == (1, "complete")
            assert result["_meta"]["com.example/k"] == 2
            assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "test"
            wire.ask(2, "x/number", {"_meta": META, "n": 7})
            assert (await wire.answer(2))["result"]["result"] == 7
            wire.ask(3, "x/number", {"_meta": META, "n": "seven"})
            assert (await wire.answer(3))["error"]["code"] == -32602

    asyncio.run(main())


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_type_of_a_result_is_sent_where_the_revision_has_it(revision: str) -> None:
    app = ServerClass("typed")

    @app.tool
    def typed() -> CallToolResult:
        return CallToolResult([TextContent("done")], result_type="complete")

    async def scene() -> None:
        async with connected(app, revision) as wire:
            meta = {"_meta": META} if revision == PER_REQUEST else {}
            wire.ask(1, "tools/call", {"name": "typed", **meta})
            result = (await wire.answer(1))["result"]
            assert result["content"] == [{"type": "text", "text": "done"}]
            assert result.get("resultType") == ("complete" if revision == PER_REQUEST else None)

    asyncio.run(scene())


def test_requests_of_a_batch_run_one_after_the_other_where_the_policy_says_so() -> None:
    app = sequential()
    order: list[str] = []

    @app.tool
    async def slow(n: int) -> str:
        order.append(f"begin {n}")
        await asyncio.sleep(0.01)
        order.append(f"end {n}")
        return str(n)

    @app.tool(inline=True)
    def quick(n: int) -> str:
        order.append(f"quick {n}")
        return str(n)

    async def main() -> None:
        async with connected(app, "2025-03-26") as wire:
            calls = [
                call(1, "slow", n=1),
                call(2, "quick", n=2),
                call(3, "none"),
                call(4, "slow", n=4),
            ]
            wire.send([*calls, *(call(id, "quick", n=id) for id in range(5, 500))])
            (answers,) = await wire.until(1)
            assert [each["id"] for each in answers] == list(range(1, 500))
            assert answers[2]["error"]["code"] == -32602

    asyncio.run(main())
    assert order[:5] == ["begin 1", "end 1", "quick 2", "begin 4", "end 4"]
    assert order[5:] == [f"quick {n}" for n in range(5, 500)]


def test_a_stopped_server_begins_nothing_more_of_a_batch_and_answers_all_of_it() -> None:
    app = sequential(limits=ServerLimits(grace=0.05))
    begun: list[int] = []

    @app.tool
    async def hold(n: int) -> str:
        begun.append(n)
        await asyncio.sleep(60)
        return ""

    async def main() -> None:
        async with connected(app, "2025-03-26") as wire:
            wire.send([call(id, "hold", n=id) for id in range(1, 6)])
            await asyncio.sleep(0.01)
            app.stop()
            (answers,) = await wire.until(1)
            assert [each["error"]["data"] for each in answers] == [{"retryAfterMs": 1000}] * 5

    asyncio.run(main())
    assert begun == [1]


def test_requests_that_were_cancelled_while_they_waited_do_not_count() -> None:
    app = Server("test", limits=ServerLimits(in_flight=1, waiting=3))
    go = asyncio.Event()

    @app.tool
    async def hold() -> str:
        await go.wait()
        return "held"

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "hold")
            for round in range(4):
                ids = [10 * round + n for n in (2, 3, 4)]
                for id in ids:
                    wire.call(id, "hold")
                for id in ids:
                    wire.tell("notifications/cancelled", {"requestId": id})
            wire.ask("p", "ping")
            assert (await wire.answer("p"))["result"] == {}
            go.set()
            assert "result" in await wire.answer(1)
            assert [each["id"] for each in wire.got] == ["p", 1]
            assert not wire.ended

    asyncio.run(main())


@pytest.mark.parametrize("how", ["cancel", "timeout", "stop"])
def test_handler_on_a_thread_sees_that_its_call_is_cancelled(how: str) -> None:
    app = Server("test", limits=ServerLimits(grace=0.05))
    saw = threading.Event()
    began = threading.Event()

    @app.tool(timeout=0.1 if how == "timeout" else None)
    def work(ctx: Context) -> str:
        began.set()
        for _ in range(1000):
            if ctx.cancelled:
                saw.set()
                break
            threading.Event().wait(0.01)
        return "late"

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "work")
            await asyncio.get_running_loop().run_in_executor(None, began.wait, 10)
            if how == "cancel":
                wire.tell("notifications/cancelled", {"requestId": 1})
            elif how == "stop":
                app.stop()
            else:
                assert (await wire.answer(1))["result"]["isError"] is True
            await asyncio.get_running_loop().run_in_executor(None, saw.wait, 10)
            assert saw.is_set()
            if how == "cancel":
                wire.ask(2, "ping")
                await wire.answer(2)
                assert [each["id"] for each in wire.got] == [2]

    asyncio.run(main())


def test_an_exception_that_cannot_be_shown_is_answered_and_leaves_nothing() -> None:
    app = Server("test")

    class Broken(ToolError):
        def __str__(self) -> str:
            raise RuntimeError("no")

    @app.tool
    async def later() -> str:
        raise Broken

    @app.tool(inline=True)
    def now() -> str:
        raise Broken

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "later")
            wire.call(2, "now")
            for id in (1, 2):
                assert (await wire.answer(id))["error"]["code"] == -32603

    asyncio.run(main())


def test_a_handlers_own_timeout_error_is_a_failure_like_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Server("test")

    @app.tool(timeout=60)
    async def upstream() -> str:
        raise TimeoutError("the socket")

    @app.tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.sleep(60)
        return ""

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "upstream")
            wire.call(2, "slow")
            first = (await wire.answer(1))["result"]["content"][0]["text"]
            second = (await wire.answer(2))["result"]["content"][0]["text"]
            assert "failed unexpectedly (reference" in first
            assert second == "The tool 'slow' exceeded its timeout."

    asyncio.run(main())
    assert "the socket" in caplog.text


def test_handlers_clean_up_before_the_lifespan_ends_also_when_serving_is_cancelled() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(_: ServerClass) -> Any:
        yield "state"
        seen.append("lifespan")

    app = Server("test", lifespan=lifespan)

    @app.tool
    async def hold(ctx: Context) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(f"handler with {ctx.state}")
        return ""

    async def main() -> None:
        near, far = memory_pair()
        serving = asyncio.create_task(app.serve(far))
        await near.connect()
        params = {"name": "hold", "_meta": META}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        near.send(json.dumps(request).encode())
        await asyncio.sleep(0.02)
        serving.cancel()
        await asyncio.wait([serving], timeout=10)

    asyncio.run(main())
    assert seen == ["handler with state", "lifespan"]
    assert app._core.runtime.in_flight == 0


def test_list_changed_is_sent_only_for_declared_lists() -> None:
    app = Server("test", capabilities={"prompts": False})

    async def main() -> None:
        async with connected(app) as wire:
            for name in "abcdef":
                app.add_tool(lambda: 1, name)
                app.add_prompt(lambda: "1", name)
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            assert await wire.until(1) == [changed]
            await asyncio.sleep(0.06)
            assert wire.got == [changed]

    asyncio.run(main())


def test_tools_may_be_added_and_lists_read_from_many_threads() -> None:
    app = Server("test", page_size=10)

    @app.tool
    def grow(ctx: Context, n: int) -> str:
        ctx.app.add_tool(lambda: n, f"t{n}")
        return ""

    async def main() -> None:
        async with connected(app) as wire:
            for n in range(200):
                wire.call(n, "grow", n=n)
                wire.ask(f"l{n}", "tools/list")
            for n in range(200):
                assert "result" in await wire.answer(n)
                assert "result" in await wire.answer(f"l{n}")
            names: list[str] = []
            cursor: str | None = None
            for page in range(100):
                wire.ask(f"p{page}", "tools/list", {"cursor": cursor} if cursor else {})
                result = (await wire.answer(f"p{page}"))["result"]
                names += [tool["name"] for tool in result["tools"]]
                cursor = result.get("nextCursor")
                if cursor is None:
                    break
            assert sorted(names) == sorted(["grow", *(f"t{n}" for n in range(200))])

    asyncio.run(main())


def test_progress_from_many_threads_only_grows() -> None:
    app = Server("test")

    @app.tool
    def work(ctx: Context) -> str:
        def report() -> None:
            for n in range(200):
                ctx.progress(n)

        threads = [threading.Thread(target=report) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ""

    async def main() -> None:
        async with connected(app) as wire:
            wire.ask(1, "tools/call", {"name": "work", "_meta": {"progressToken": "t"}})
            await wire.answer(1)
            steps = [each["params"]["progress"] for each in wire.got if "method" in each]
            assert len(steps) > 1
            assert steps == sorted(set(steps))

    asyncio.run(main())


def test_a_server_is_stopped_from_any_thread_and_served_on_one_loop() -> None:
    app = Server("test")

    async def main() -> None:
        near, far = memory_pair()
        serving = asyncio.create_task(app.serve(far))
        await near.connect()
        await asyncio.sleep(0.01)
        refused: list[BaseException] = []

        def elsewhere() -> None:
            try:
                asyncio.run(app.serve(memory_pair()[1]))
            except RuntimeError as error:
                refused.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.get_running_loop().run_in_executor(None, thread.join, 10)
        assert "another event loop" in str(refused[0])
        threading.Thread(target=app.stop).start()
        await asyncio.wait_for(serving, 10)

    asyncio.run(main())


def test_a_transport_in_use_is_not_served_twice_and_the_first_goes_on() -> None:
    app = Server("test")

    async def main() -> None:
        async with connected(app) as wire:
            with pytest.raises(TransportError, match="connected already"):
                await app.serve(wire.far)
            wire.ask(1, "ping")
            assert (await wire.answer(1))["result"] == {}

    asyncio.run(main())


def test_values_of_the_protocol_that_a_handler_made_are_checked_before_they_go_out() -> None:
    app = Server("test")
    app.add_tool(lambda: CallToolResult("hello"), "bad")  # type: ignore[arg-type]  # on purpose
    app.add_prompt(lambda: PromptMessage("just text", "user"), "slip")  # type: ignore[arg-type]  # on purpose
    app.add_resource(lambda: ResourceContents("r://both"), "r://both")
    app.add_resource(lambda: ResourceContents("r://wrong", text=5), "r://wrong")  # type: ignore[arg-type]  # on purpose
    app.add_resource(lambda: None, "r://none")

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "bad")
            assert (await wire.answer(1))["result"]["isError"] is True
            wire.ask(2, "prompts/get", {"name": "slip"})
            message = (await wire.answer(2))["result"]["messages"][0]
            assert message["content"] == {"type": "text", "text": "just text"}
            for id, uri, code in (
                (3, "r://both", -32603),
                (4, "r://wrong", -32603),
                (5, "r://none", -32002),
            ):
                wire.ask(id, "resources/read", {"uri": uri})
                assert (await wire.answer(id))["error"]["code"] == code

    asyncio.run(main())


def test_a_template_that_cannot_take_a_name_leaves_it_to_the_next() -> None:
    app = Server("test")

    @app.resource("item://{id}")
    def numbered(id: int) -> str:
        return f"number {id}"

    @app.resource("item://{+name}")
    def named(name: str) -> str:
        return f"name {name}"

    async def main() -> None:
        async with connected(app) as wire:
            for id, uri, text in ((1, "item://7", "number 7"), (2, "item://abc", "name abc")):
                wire.ask(id, "resources/read", {"uri": uri})
                assert (await wire.answer(id))["result"]["contents"][0]["text"] == text

    asyncio.run(main())


def test_completions_are_cut_to_a_hundred_whatever_a_handler_returns() -> None:
    from trunkline.mcp import CompleteResultCompletion

    app = Server("test")
    app.add_prompt(lambda style: style, "p")

    @app.completion(prompt="p", argument="style")
    def suggest(typed: str) -> Any:
        many = [str(n) for n in range(150)]
        return {"typed": CompleteResultCompletion(many), "one": "abc", "none": None}.get(
            typed, many
        )

    async def main() -> None:
        async with connected(app) as wire:
            for typed, count, more in (
                ("typed", 100, True),
                ("many", 100, True),
                ("one", 1, False),
                ("none", 0, False),
            ):
                params = {
                    "ref": {"type": "ref/prompt", "name": "p"},
                    "argument": {"name": "style", "value": typed},
                }
                wire.ask(typed, "completion/complete", params)
                completion = (await wire.answer(typed))["result"]["completion"]
                assert (len(completion["values"]), completion["hasMore"]) == (count, more)

    asyncio.run(main())


def test_asking_for_what_a_client_did_not_declare_is_refused_before_it_is_sent() -> None:
    app = Server("test")

    @app.tool
    async def ask(ctx: Context, method: str, params: dict[str, Any]) -> str:
        try:
            await ctx.request(method, params, timeout=1)
        except TrunklineError as error:
            return f"{type(error).__name__} {error}"
        return "asked"

    async def main() -> None:
        capabilities = {"sampling": {}, "elicitation": {}}
        async with connected(app, "2025-11-25", capabilities) as wire:
            questions = [
                (
                    "sampling/createMessage",
                    {"messages": [], "maxTokens": 1, "tools": []},
                    "sampling.tools",
                ),
                (
                    "elicitation/create",
                    {"mode": "url", "message": "m", "url": "u"},
                    "elicitation.url",
                ),
                ("roots/list", {}, "roots"),
            ]
            for id, (method, params, needed) in enumerate(questions):
                wire.call(id, "ask", method=method, params=params)
                text = (await wire.answer(id))["result"]["content"][0]["text"]
                assert text.startswith("LocalProtocolError")
                assert needed in text
            assert not [each for each in wire.got if "method" in each]

    asyncio.run(main())


def test_late_reply_is_not_warned_of_and_elicited_content_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    app = Server("test")

    @app.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.request(
                "elicitation/create", {"message": "m", "requestedSchema": {}}, timeout=0.01
            )
        except TrunklineError as error:
            return type(error).__name__
        return "answered"

    async def main() -> None:
        async with connected(app, "2025-11-25", {"elicitation": {}}) as wire:
            wire.call(1, "ask")
            assert (await wire.answer(1))["result"]["content"][0]["text"] == "RequestTimeout"
            question = next(each for each in wire.got if each.get("method") == "elicitation/create")
            answer = {"action": "accept", "content": {"diagnosis": "hunter2canary"}}
            wire.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
            wire.send({"jsonrpc": "2.0", "id": 999, "result": answer})
            wire.send({"jsonrpc": "2.0", "error": {"code": 1, "message": "no id"}})
            wire.ask(2, "ping")
            await wire.answer(2)

    asyncio.run(main())
    assert "hunter2canary" not in caplog.text
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each.getMessage() for each in warnings] == [
        "unexpected reply from the client to 999: never asked",
        "unexpected reply from the client without an id: never asked",
    ]


def test_decorators_that_say_something_are_not_used_bare() -> None:
    app = Server("test")
    for bare in (app.resource, app.method, app.notification):
        with pytest.raises(TypeError, match="parentheses"):
            bare(lambda: 1)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="proceed"):
        app.middleware(lambda context, proceed: proceed())  # type: ignore[arg-type]  # is no coroutine function
    with pytest.raises(TypeError, match="inline"):
        app.add_tool(lambda: 1, "t", inline=True, timeout=5)
    with pytest.raises(TypeError, match="is sent as a text"):
        app.add_prompt(_takes_a_list, "p")
    assert app.tool(name="named")(_takes_a_list) is _takes_a_list
    assert "named" in app._core.catalog.tools


def _takes_a_list(items: list[str]) -> str:
    return ",".join(items)


# -- invalid messages in a row ---------------------------------------------------------------

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()


class Recorded(TransportBase):
    """A transport that a test feeds, and what was sent."""

    backlog = written = 0
    is_connected = True

    def __init__(self, name: TransportName) -> None:
        super().__init__(name)
        self.sent: list[Any] = []

    def send(self, frame: bytes, route: Any = None) -> None:
        self.sent.append(json.loads(frame))

    def receive(self, *frames: bytes) -> None:
        for each in frames:
            self.on_message(each, None)

    async def connect(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def attached(name: TransportName, revision: str = "") -> tuple[Recorded, Connection]:
    transport = Recorded(name)
    connection = Connection(Server("test")._core, cast(Any, transport))
    connection.attach()
    if revision:
        params = initialize_params(revision)
        transport.receive(json.dumps(message("initialize", params, 0)).encode())
    return transport, connection


@pytest.mark.parametrize("name", ["tcp", "unix", "websocket"])
@pytest.mark.parametrize("invalid", [b"{}", b"nonsense", Truncated(1, 2), Oversize(b"{", None, 9)])
def test_socket_is_closed_after_1000_invalid_messages_in_a_row(
    name: TransportName, invalid: Any
) -> None:
    async def main() -> None:
        transport, connection = attached(name)
        transport.receive(*[invalid] * 999)
        assert connection._why is None
        transport.receive(*[invalid] * 5)
        assert str(connection._why) == "1000 invalid messages in a row"
        assert len(transport.sent) == 1000

    asyncio.run(main())


@pytest.mark.parametrize("valid", [PING, b'{"jsonrpc":"2.0","method":"x"}'])
def test_valid_message_ends_the_row_of_invalid_ones(valid: bytes) -> None:
    async def main() -> None:
        transport, connection = attached("tcp")
        for _ in range(3):
            transport.receive(*[b"{}"] * 999, valid)
        assert connection._why is None
        transport.receive(*[b"{}"] * 1000)
        assert connection._why is not None

    asyncio.run(main())


def test_batch_with_invalid_elements_is_one_invalid_message() -> None:
    async def main() -> None:
        transport, connection = attached("tcp", "2025-03-26")
        batch = b"[" + b",".join([b"{}"] * 500 + [PING]) + b"]"
        transport.receive(*[batch] * 3, *[b"{}"] * 996)
        assert connection._why is None
        transport.receive(b"{}")
        assert connection._why is not None

    asyncio.run(main())


@pytest.mark.parametrize("name", ["stdio", "http", "sse", "default"])
def test_connection_that_is_not_a_socket_goes_on_after_invalid_messages(
    name: TransportName,
) -> None:
    async def main() -> None:
        transport, connection = attached(name)
        transport.receive(*[b"{}"] * 3000)
        assert connection._why is None
        assert len(transport.sent) == 3000

    asyncio.run(main())


def test_a_request_without_an_id_is_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []
    app = Server("garden")

    @app.tool
    def water() -> str:
        ran.append("tool")
        return "wet"

    @app.method("garden/water")
    def water_all() -> dict[str, Any]:
        ran.append("method")
        return {}

    async def main() -> list[Any]:
        async with connected(app) as wire:
            wire.tell("tools/call", {"name": "water"})
            wire.tell("garden/water")
            wire.tell("notifications/unheard-of")
            wire.ask(1, "ping")
            await wire.answer(1)
            return wire.got

    with caplog.at_level(logging.DEBUG, logger="trunkline.server"):
        got = asyncio.run(main())
    assert [each["id"] for each in got] == [1]
    assert ran == []
    logged = [(each.levelname, each.getMessage()) for each in caplog.records]
    for method in ("tools/call", "garden/water"):
        text = f"request '{method}' of the client has no id: ignored, as a notification"
        assert ("WARNING", text) in logged
    assert ("DEBUG", "notification 'notifications/unheard-of' has no handler") in logged


def test_warnings_about_requests_without_an_id_are_limited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with connected(Server("garden")) as wire:
            for _ in range(50):
                wire.tell("tools/list")
            wire.ask(1, "ping")
            await wire.answer(1)

    asyncio.run(main())
    assert len([each for each in caplog.records if "has no id" in each.getMessage()]) <= 11


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_the_name_and_version_of_a_client_steer_nothing(revision: str) -> None:
    app = Server("garden")

    @app.tool
    def water() -> str:
        return "wet"

    @app.tool
    async def fail() -> str:
        raise ToolError("dry")

    app.resource("garden://map")(lambda: "beds")
    app.prompt(name="plan")(lambda: "Plan the beds.")
    asked: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("resources/list", {}),
        ("prompts/list", {}),
        ("tools/call", {"name": "water"}),
        ("tools/call", {"name": "fail"}),
        ("tools/call", {"name": "none"}),
        ("resources/read", {"uri": "garden://map"}),
        ("prompts/get", {"name": "plan"}),
        ("ping", {}),
    ]

    async def talk(info: dict[str, str]) -> list[Any]:
        async with connected(app, PER_REQUEST) as wire:  # without a handshake of its own
            params = {**initialize_params(revision), "clientInfo": info}
            wire.ask(0, "initialize", params)
            replies = [await wire.answer(0)]
            wire.tell("notifications/initialized")
            for id, (method, given) in enumerate(asked, start=1):
                wire.ask(id, method, given)
                replies.append(await wire.answer(id))
            assert wire.got == replies
            return replies

    clients = [
        {"name": "claude-desktop", "version": "0.7.0"},
        {"name": "vscode-copilot", "version": "1.2.3"},
        {"name": "mcp-inspector", "version": "0.0.1"},
        {"name": "", "version": ""},
    ]
    first, *others = [asyncio.run(talk(info)) for info in clients]
    assert others == [first] * len(others)
