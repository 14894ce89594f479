"""An ASGI application of a server: when its lifespan is entered and exited, and on which loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.canaries import CANARY
from tests.rigs.conditions import until_async
from tests.unit.transports.http.asgi_call import (
    WAIT,
    AsgiCall,
    in_session,
    initialize,
    request,
    tool,
)
from trunkline import HttpSettings, Server


def new_server(**options: Any) -> SimpleNamespace:
    """A server that notes when its lifespan begins and ends, and what its handlers do."""
    seen = SimpleNamespace(log=[], fails=[])

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[str]:
        if seen.fails:
            raise seen.fails.pop()
        seen.log.append("entered")
        await asyncio.sleep(0.01)  # others come meanwhile
        # Exited by another task, this raises.
        async with asyncio.TaskGroup():
            yield "state"
        seen.log.append("exited")

    server = Server("hosted", version="1.0.0", lifespan=lifespan, **options)

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def wait() -> str:
        seen.log.append("waiting")
        try:
            await seen.go_on.wait()
        except asyncio.CancelledError:
            seen.log.append("cancelled")
            raise
        seen.log.append("finished")
        return "waited"

    seen.server, seen.app = server, server.asgi()
    return seen


class Lifespan:
    """The lifespan events of an HTTP server."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._sent: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self.task = asyncio.create_task(app(scope, self._events.get, self._sent.put))

    async def tell(self, event: str) -> dict[str, str]:
        await self._events.put({"type": f"lifespan.{event}"})
        return await asyncio.wait_for(self._sent.get(), WAIT)


# -- without lifespan events -----------------------------------------------------------------


def test_the_first_request_enters_the_lifespan_and_the_end_of_the_loop_exits_it() -> None:
    made = new_server()

    async def main() -> None:
        calls = [tool("echo", text=f"{each}") for each in range(5)]
        await asyncio.gather(*(each.run(made.app) for each in calls))
        assert [each.status for each in calls] == [200] * 5
        assert made.log == ["entered"]
        assert made.server.state == "state"

    asyncio.run(main())
    assert made.log == ["entered", "exited"]
    assert made.server.state is None


def test_the_end_of_the_loop_ends_sessions_streams_and_handlers() -> None:
    made = new_server()

    async def main() -> None:
        made.go_on = asyncio.Event()
        await initialize().run(made.app)
        stream = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        tasks = [stream.begin(made.app), tool("wait").begin(made.app)]
        await stream.until(b"acknowledged")
        await until_async(lambda: "waiting" in made.log)
        assert not any(each.done() for each in tasks)

    asyncio.run(main())
    assert made.log == ["entered", "waiting", "cancelled", "exited"]
    assert not made.server._core.runtime.connections


def test_another_event_loop_may_follow_but_not_run_beside() -> None:
    made = new_server()

    async def main() -> None:
        assert (await tool("echo", text="").run(made.app)).status == 200
        await asyncio.to_thread(beside)

    def beside() -> None:
        async def call() -> None:
            with pytest.raises(RuntimeError, match="served on another event loop"):
                await tool("echo", text="").run(made.app)

        asyncio.run(call())

    asyncio.run(main())
    asyncio.run(main())
    assert made.log == ["entered", "exited"] * 2


def test_a_loop_that_is_closed_without_cancelling_keeps_the_lifespan() -> None:
    made = new_server()

    async def call() -> None:
        assert (await tool("echo", text="").run(made.app)).status == 200

    loop = asyncio.new_event_loop()
    loop.run_until_complete(call())
    made.app._run.task._log_destroy_pending = False  # that it is never finished is the case here
    loop.close()
    with pytest.raises(RuntimeError, match="'hosted'> is being served on another event loop"):
        # Its lifespan was never exited, and is not entered a second time.
        asyncio.run(call())
    assert made.log == ["entered"]


def test_a_lifespan_that_fails_is_tried_again_by_the_next_request() -> None:
    made = new_server()

    async def main() -> None:
        made.fails = [LookupError("no database")]
        calls = [tool("echo", text="").begin(made.app) for _ in range(3)]
        await asyncio.wait(calls, timeout=WAIT)
        assert [type(each.exception()) for each in calls] == [LookupError] * 3
        assert (await tool("echo", text="").run(made.app)).status == 200

    asyncio.run(main())
    assert made.log == ["entered", "exited"]


def test_a_request_that_is_cancelled_does_not_stop_the_start() -> None:
    made = new_server()

    async def main() -> None:
        first = tool("echo", text="").begin(made.app)
        await until_async(lambda: made.log)
        first.cancel()
        assert (await tool("echo", text="").run(made.app)).status == 200

    asyncio.run(main())
    assert made.log == ["entered", "exited"]


def test_the_lifespan_has_the_context_of_the_author_not_of_a_request() -> None:
    shared: contextvars.ContextVar[str] = contextvars.ContextVar("shared")
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[None]:
        seen.append(shared.get())
        yield

    server = Server("hosted", lifespan=lifespan)

    @server.tool
    async def which() -> str:
        return shared.get()

    shared.set("author")
    app = server.asgi()

    async def main() -> None:
        shared.set("request")
        call = await tool("which").run(app)
        assert call.answer["result"]["content"][0]["text"] == "request"

    asyncio.run(main())
    assert seen == ["author"]


# -- with lifespan events, or `async with` ---------------------------------------------------


def test_lifespan_events_enter_and_exit() -> None:
    made = new_server()

    async def main() -> None:
        life = Lifespan(made.app)
        assert await life.tell("startup") == {"type": "lifespan.startup.complete"}
        assert made.log == ["entered"]
        assert (await tool("echo", text="").run(made.app)).status == 200
        assert await life.tell("shutdown") == {"type": "lifespan.shutdown.complete"}
        assert made.log == ["entered", "exited"]
        await asyncio.wait_for(life.task, WAIT)

    asyncio.run(main())


def test_shutdown_finishes_what_runs_then_exits_the_lifespan() -> None:
    made = new_server()

    async def main() -> None:
        made.go_on = asyncio.Event()
        life = Lifespan(made.app)
        await life.tell("startup")
        session = (await initialize().run(made.app)).headers["mcp-session-id"]
        stream = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        listening, call = stream.begin(made.app), tool("wait")
        waiting = call.begin(made.app)
        await stream.until(b"acknowledged")
        await until_async(lambda: "waiting" in made.log)
        ending = asyncio.create_task(life.tell("shutdown"))
        # The stream is answered first: its client can go elsewhere.
        await asyncio.wait_for(listening, WAIT)
        assert "result" in stream.messages[-1]
        refused = await tool("echo", text="").run(made.app)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert (await in_session("ping", session=session).run(made.app)).status == 503
        ready = await AsgiCall(method="GET", path="/readyz").run(made.app)
        alive = await AsgiCall(method="GET", path="/healthz").run(made.app)
        assert (ready.status, alive.status) == (503, 200)
        assert made.log == ["entered", "waiting"]
        made.go_on.set()
        assert await ending == {"type": "lifespan.shutdown.complete"}
        await asyncio.wait_for(waiting, WAIT)
        assert call.answer["result"]["content"][0]["text"] == "waited"
        assert made.log == ["entered", "waiting", "finished", "exited"]
        assert (await tool("echo", text="").run(made.app)).status == 503
        # Started again, it serves again.
        assert await Lifespan(made.app).tell("startup") == {"type": "lifespan.startup.complete"}
        assert (await tool("echo", text="").run(made.app)).status == 200

    asyncio.run(main())
    assert made.log[4:] == ["entered", "exited"]


def test_a_lifespan_that_fails_fails_the_start_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = new_server()

    async def main() -> None:
        made.fails = [LookupError(f"Bearer {CANARY}{CANARY}")]
        life = Lifespan(made.app)
        assert await life.tell("startup") == {
            "type": "lifespan.startup.failed",
            "message": "the lifespan of hosted raised LookupError",
        }
        await asyncio.wait_for(life.task, WAIT)

    asyncio.run(main())
    assert "lifespan of hosted failed" in caplog.text
    assert CANARY not in caplog.text


def test_an_exit_that_fails_is_reported_too() -> None:
    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[None]:
        yield
        raise LookupError

    async def main() -> None:
        life = Lifespan(Server("hosted", lifespan=lifespan).asgi())
        await life.tell("startup")
        assert (await life.tell("shutdown"))["type"] == "lifespan.shutdown.failed"

    asyncio.run(main())


def test_asgi_app_is_an_async_context_manager() -> None:
    made = new_server()

    async def main() -> None:
        for _ in range(2):
            async with made.app as app:
                assert app is made.app
                assert (await tool("echo", text="").run(app)).status == 200
        await made.app.close()
        assert made.log == ["entered", "exited"] * 2

    asyncio.run(main())


def test_an_application_that_never_served_is_closed_at_once() -> None:
    made = new_server()

    async def main() -> None:
        await made.app.close()
        made.app.stop()
        made.app.stop_accepting()

    asyncio.run(main())
    assert made.log == []


def test_the_server_stops_its_application() -> None:
    made = new_server()

    async def main() -> None:
        made.go_on = asyncio.Event()
        waiting = tool("wait")
        task = waiting.begin(made.app)
        await until_async(lambda: "waiting" in made.log)
        await asyncio.to_thread(made.server.stop)
        await until_async(lambda: made.app._run.is_stopping)
        assert (await tool("echo", text="").run(made.app)).status == 503
        made.server.stop(at_once=True)
        await asyncio.wait_for(task, WAIT)
        assert waiting.status == 503
        await until_async(lambda: made.log[-1] == "exited")
        assert made.log == ["entered", "waiting", "cancelled", "exited"]

    asyncio.run(main())


# -- other scopes, options -------------------------------------------------------------------


def test_websockets_are_closed_and_other_scopes_raise() -> None:
    made = new_server()

    async def main() -> None:
        call = AsgiCall(type="websocket")
        call.incoming.put_nowait({"type": "websocket.connect"})
        await call.run(made.app)
        assert [each["type"] for each in call.sent] == ["websocket.close"]
        with pytest.raises(ValueError, match="'mail' is not supported"):
            await AsgiCall(type="mail").run(made.app)

    asyncio.run(main())
    assert made.log == []


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"path": "mcp"}, "path"),
        ({"path": "/a/../mcp"}, "path"),
        ({"path": "/m%63p"}, "plain"),
        ({"hosts": "mcp.example.org"}, "HttpSettings.hosts"),
        ({"hosts": ["*.example.org"]}, "HttpSettings.hosts"),
        ({"hosts": ["*"], "http": HttpSettings()}, "HttpSettings.hosts"),
        ({"http": HttpSettings(metrics="127.0.0.1:9000")}, "HttpSettings.metrics"),
        ({"http": HttpSettings(websocket=True)}, "HttpSettings.websocket"),
    ],
)
def test_faults_of_options_are_found_before_anything_is_served(
    options: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        Server("hosted").asgi(**options)


def test_repr_of_the_asgi_app_shows_its_state() -> None:
    made = new_server()

    async def main() -> None:
        assert repr(made.app) == "<AsgiApp 'hosted' at '/mcp', not started>"
        async with made.app:
            assert repr(made.app) == "<AsgiApp 'hosted' at '/mcp', serving>"
        assert repr(made.app) == "<AsgiApp 'hosted' at '/mcp', stopping>"

    asyncio.run(main())


def test_nothing_is_logged_by_an_ordinary_run(caplog: pytest.LogCaptureFixture) -> None:
    made = new_server()

    async def main() -> None:
        async with made.app:
            await tool("echo", text="").run(made.app)

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert caplog.records == []
