"""An endpoint as an ASGI application: requests, bodies, streams, limits and the end of clients."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Route

from tests.cases import for_each
from tests.rigs.conditions import until_async
from tests.rigs.http_endpoint import alone
from tests.rigs.memory import held_by
from tests.unit.transports.http.asgi_call import (
    WAIT,
    AsgiCall,
    in_session,
    initialize,
    request,
    tool,
)
from trunkline import Context, HttpLimits, HttpSettings, Server
from trunkline.auth import ApiKeys, AuditEvent, AuthSettings, JwtBearer
from trunkline.auth.server.resource_server import ResourceServer
from trunkline.jsonrpc import Limits, Policy
from trunkline.transports.http import asgi as adapter
from trunkline.transports.http.asgi import AsgiResponder
from trunkline.transports.http.open_requests import OpenRequests

SOON = 0.005


def new_server(**options: Any) -> SimpleNamespace:
    """A server, what its handlers have done, and what they wait for."""
    server = Server("hosted", version="1.0.0", **options)
    seen = SimpleNamespace(server=server, log=[], begun=asyncio.Event(), go_on=asyncio.Event())

    @server.tool(inline=True)
    def double(number: int) -> int:
        return 2 * number

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    def on_a_thread(text: str) -> str:
        return text

    @server.tool
    async def count(ctx: Context, to: int, size: int = 0) -> str:
        for each in range(1, to + 1):
            await ctx.progress(each, to, "x" * size)
        return "counted"

    @server.tool
    async def wait() -> str:
        seen.begun.set()
        try:
            await seen.go_on.wait()
        except asyncio.CancelledError:
            seen.log.append("cancelled")
            raise
        seen.log.append("finished")
        return "waited"

    return seen


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[SimpleNamespace]:
    """An application that is closed in the end."""
    made = new_server(**options.pop("server", {}))
    made.app = made.server.asgi(**options)
    async with made.app:
        yield made


def responder_of() -> AsgiResponder:
    account = alone()
    return AsgiResponder(True, account, OpenRequests(10, account._accounts))


def is_listening(made: SimpleNamespace) -> bool:
    return any(made.server._core.services.streams._listeners.values())


@pytest.fixture
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_TICK_S", SOON)


# -- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "given"), [("double", {"number": 4}), ("echo", {"text": "a"})])
def test_an_answer_that_is_there_at_once_is_two_messages_and_one_receive(
    name: str, given: dict[str, Any]
) -> None:
    async def main() -> None:
        async with serving() as made:
            call = await tool(name, **given).run(made.app)
            assert [each["type"] for each in call.sent] == [
                "http.response.start",
                "http.response.body",
            ]
            assert (call.status, call.receives) == (200, 1)
            assert call.headers == {
                "content-type": "application/json",
                "content-length": str(len(call.body)),
            }
            assert call.answer["result"]["content"][0]["text"] in ("8", "a")
            assert not made.app._server._unwatched

    asyncio.run(main())


def test_an_answer_of_a_thread_comes_later() -> None:
    async def main() -> None:
        async with serving() as made:
            call = await tool("on_a_thread", text="b").run(made.app)
            assert call.answer["result"]["content"][0]["text"] == "b"

    asyncio.run(main())


def test_progress_makes_the_response_a_stream() -> None:
    async def main() -> None:
        async with serving() as made:
            call = await tool("count", to=3).run(made.app)
            assert call.headers["content-type"] == "text/event-stream"
            assert "content-length" not in call.headers
            assert [each["params"]["progress"] for each in call.messages[:-1]] == [1, 2, 3]
            assert call.messages[-1]["result"]["content"][0]["text"] == "counted"
            assert call.is_complete

    asyncio.run(main())


def test_a_session_is_opened_used_and_ended() -> None:
    async def main() -> None:
        async with serving() as made:
            opened = await initialize().run(made.app)
            id = opened.headers["mcp-session-id"]
            assert made.app.sessions == 1
            ready = await in_session("notifications/initialized", id=None, session=id).run(made.app)
            assert (ready.status, ready.body, ready.headers["content-length"]) == (202, b"", "0")
            given = {"name": "double", "arguments": {"number": 2}}
            call = await in_session("tools/call", given, session=id).run(made.app)
            assert call.answer["result"]["structuredContent"] == {"result": 4}
            ended = await AsgiCall(method="DELETE", headers={"mcp-session-id": id}).run(made.app)
            assert (ended.status, "content-length" in ended.headers) == (204, False)
            assert made.app.sessions == 0
            late = await in_session("tools/call", given, session=id).run(made.app)
            assert late.status == 404

    asyncio.run(main())


def test_bodies_may_be_any_bytes_like_object_and_come_in_parts() -> None:
    async def main() -> None:
        async with serving() as made:
            body = (await tool("double", number=3).receive())["body"]
            for parts in (
                [bytearray(body)],
                [memoryview(body)],
                [body[:1], body[1:50], b"", body[50:]],
                [body, b""],
                [memoryview(body)[:10], bytearray(body[10:])],
            ):
                call = await tool("double", number=3).parts(*parts).run(made.app)
                assert call.answer["result"]["structuredContent"] == 6

    asyncio.run(main())


def test_a_body_in_tiny_parts_takes_about_its_size_in_memory() -> None:
    size = 256 * 1024
    body = b"x" * size

    class Endless(AsgiCall):
        """Sends the body in parts of two bytes, and not its end."""

        at = 0

        async def receive(self) -> dict[str, Any]:
            if self.at == size:
                await asyncio.Event().wait()
            self.at += 2
            return {"type": "http.request", "body": body[self.at - 2 : self.at], "more_body": True}

    async def main() -> None:
        async with serving() as made:
            call = Endless(headers={"accept": "application/json, text/event-stream"})
            # Driven by hand: nothing else runs while memory is counted.
            steps = made.app(call.scope, call.receive, call.send)
            assert held_by(lambda: steps.send(None)) < 2 * size
            assert call.at == size
            steps.close()

    asyncio.run(main())


def test_headers_of_each_response_are_a_list_of_its_own() -> None:
    async def main() -> None:
        async with serving() as made:
            calls = [await tool("count", to=1).run(made.app) for _ in range(2)]
            calls += [await tool("echo", text="a").run(made.app) for _ in range(2)]
            for each in calls:
                each.sent[0]["headers"].append((b"x", b"1"))
            assert [len(each.sent[0]["headers"]) for each in calls] == [4, 4, 3, 3]

    asyncio.run(main())


def test_middleware_of_starlette_wraps_the_application() -> None:
    async def pass_on(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    async def main() -> None:
        async with serving() as made:
            wrapped = Starlette(
                routes=[Mount("/", made.app)],
                middleware=[
                    Middleware(GZipMiddleware, minimum_size=1),
                    Middleware(BaseHTTPMiddleware, dispatch=pass_on),
                ],
            )
            zipped = tool("echo", {"accept-encoding": "gzip"}, text="a")
            await zipped.run(wrapped)
            assert json.loads(gzip.decompress(zipped.body))["id"] == 1
            stream = await tool("count", to=2).run(wrapped)
            assert len(stream.messages) == 3
            # A client that leaves cancels its request through all of it.
            leaving = tool("wait")
            task = leaving.begin(wrapped)
            await asyncio.wait_for(made.begun.wait(), WAIT)
            leaving.disconnect()
            await until_async(lambda: made.log)
            await asyncio.wait([task], timeout=WAIT)
            assert made.log == ["cancelled"]

    asyncio.run(main())


# -- refusals --------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_413_with_the_id_and_is_not_read_to_its_end() -> None:
    async def main() -> None:
        policy = Policy(limits=Limits(http=2000))
        async with serving(server={"policy": policy}) as made:
            size = len((await tool("echo", text="").receive())["body"])
            fits = await tool("echo", text="x" * (2000 - size)).run(made.app)
            assert fits.status == 200
            over = await tool("echo", text="x" * (2001 - size)).run(made.app)
            assert (over.status, over.answer["id"]) == (413, 1)
            body = (await tool("echo", text="x" * 9000).receive())["body"]
            parts = [body[at : at + 500] for at in range(0, len(body), 500)]
            call = await tool("echo").parts(*parts).run(made.app)
            assert (call.status, call.answer["id"], call.receives) == (413, 1, 5)
            declared = tool("echo", {"content-length": "9000"})
            await declared.parts(*parts).run(made.app)
            assert (declared.status, declared.answer["id"], declared.receives) == (413, 1, 3)

    asyncio.run(main())


def test_headers_are_limited_and_not_given_twice() -> None:
    plain = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    cases: dict[str, tuple[list[tuple[bytes, bytes]], int]] = {
        "too many": ([*plain, *((b"x-%d" % each, b"") for each in range(99))], 431),
        "just as many as are allowed": ([*plain, *((b"x-%d" % i, b"") for i in range(98))], 400),
        "one too long": ([*plain, (b"x", b"1" * 8193)], 431),
        "too many bytes": ([*plain, *((b"x-%d" % each, b"1" * 8000) for each in range(9))], 431),
        "two hosts": ([*plain, (b"host", b"localhost")], 400),
        "two sessions": ([*plain, (b"mcp-session-id", b"a"), (b"mcp-session-id", b"b")], 400),
        "two lengths": ([*plain, (b"content-length", b"1"), (b"content-length", b"1")], 400),
        "a length that is none": ([*plain, (b"content-length", b"x")], 400),
        "no host": ([(b"content-type", b"application/json")], 400),
        "another type": ([(b"host", b"localhost"), (b"content-type", b"text/plain")], 415),
    }

    async def main() -> None:
        async with serving() as made:
            for name, (headers, status) in cases.items():
                call = await AsgiCall(b"{}", headers=headers).run(made.app)
                assert (name, call.status) == (name, status)
                refused_by_head = name != "just as many as are allowed"
                assert (name, call.receives) == (name, 0 if refused_by_head else 1)

    asyncio.run(main())


def test_a_host_that_is_not_allowed_is_refused_with_a_hint_for_the_operator(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with serving() as made:
            for _ in range(15):
                call = await tool("echo", {"host": "mcp.example.org"}, text="").run(made.app)
                assert (call.status, call.receives) == (421, 0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    hints = [each.getMessage() for each in caplog.records]
    assert hints[0] == (
        "request refused: Host 'mcp.example.org' is not a name of this server; "
        'allow it with asgi(hosts=["..."])'
    )
    assert len([each for each in hints if each == hints[0]]) == 10
    assert len(hints) == 11  # the last one counts the others
    assert "5 more" in hints[-1]


def test_hosts_and_settings_together_name_the_hosts() -> None:
    async def main() -> None:
        given = HttpSettings(hosts=["a.example"], public_url="https://c.example/mcp")
        async with serving(hosts=["b.example"], http=given) as made:
            for host, status in {
                "a.example": 200,
                "b.example:8443": 200,
                "c.example": 200,
                "localhost:1": 200,
                "127.0.0.1": 200,
                "d.example": 421,
                "sub.a.example": 421,
            }.items():
                call = await tool("echo", {"host": host}, text="").run(made.app)
                assert (host, call.status) == (host, status)

    asyncio.run(main())


def test_a_short_body_is_read_before_its_request_is_refused() -> None:
    async def main() -> None:
        async with serving() as made:
            for headers, receives in (
                ({"content-length": "30"}, 3),
                ({"content-length": "65537"}, 0),
                ({"content-length": "0"}, 0),
                ({"content-length": "30", "expect": "100-continue"}, 0),
                ({}, 0),
            ):
                call = tool("echo", {"host": "other.example", **headers})
                await call.parts(b"1" * 10, b"2" * 10, b"3" * 10).run(made.app)
                assert (call.status, call.receives) == (421, receives)

    asyncio.run(main())


def test_more_requests_at_once_than_allowed_are_503() -> None:
    async def main() -> None:
        # One place is for newcomers.
        async with serving(limits=HttpLimits(requests=3)) as made:
            waiting = [tool("wait") for _ in range(2)]
            tasks = [each.begin(made.app) for each in waiting]
            await until_async(lambda: len(made.app._server.active) == 2)
            await asyncio.wait_for(made.begun.wait(), WAIT)
            refused = await tool("echo", text="").run(made.app)
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert json.loads(refused.body)["error"]["data"] == {"retryAfterMs": 1000}
            made.go_on.set()
            await asyncio.gather(*tasks)
            assert [each.status for each in waiting] == [200, 200]
            assert (await tool("echo", text="").run(made.app)).status == 200

    asyncio.run(main())


def test_requests_that_give_way_to_others_of_their_client_count_no_longer() -> None:
    async def main() -> None:
        async with serving(limits=HttpLimits(requests=16)) as made:
            waiting = tool("wait").begin(made.app)
            await asyncio.wait_for(made.begun.wait(), WAIT)
            flood = [AsgiCall(client=("127.0.0.2", 1)).parts(b"[", ends=False) for _ in range(18)]
            tasks = [each.begin(made.app) for each in flood[:8]]
            await until_async(lambda: len(made.app._server.active) == 9)
            # All in one turn of the event loop: the earlier ones have not been answered.
            tasks += [each.begin(made.app) for each in flood[8:]]
            quiet = await tool("echo", text="").begin(made.app)
            assert quiet.status == 200
            await until_async(lambda: len(made.app._server.active) == 9)
            made.go_on.set()
            await waiting
            for each in flood:
                each.disconnect()
            await asyncio.gather(*tasks)
            assert "OpenRequests 0 of" in repr(made.app._server._requests)

    asyncio.run(main())


def test_a_defect_behind_the_endpoint_is_answered_and_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving() as made:

            def fail(*_: Any) -> None:
                raise KeyError("secret of the server")

            monkeypatch.setattr(made.app._server.routes, "handle", fail)
            call = await tool("echo", text="").run(made.app)
            assert (call.status, b"secret" in call.body) == (500, False)

    asyncio.run(main())
    assert "internal error while serving an HTTP request" in caplog.text


# -- paths -----------------------------------------------------------------------------------


PATHS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "by itself": ("/mcp", {"path": "/mcp"}, True),
    "with a slash": ("/mcp", {"path": "/mcp/"}, True),
    "given with a slash": ("/mcp/", {"path": "/mcp"}, True),
    "below the path": ("/mcp", {"path": "/mcp/x"}, False),
    "mounted": ("/mcp", {"path": "/api/mcp", "root_path": "/api"}, True),
    "mounted at the path itself": ("/mcp", {"path": "/mcp/", "root_path": "/mcp"}, True),
    "mounted there without a slash": ("/mcp", {"path": "/mcp", "root_path": "/mcp"}, True),
    "the root of a mount": ("/", {"path": "/mcp/", "root_path": "/mcp"}, True),
    "the root without a slash": ("/", {"path": "/mcp", "root_path": "/mcp"}, True),
    "a root path with a slash": ("/mcp", {"path": "/api/mcp", "root_path": "/api/"}, True),
    "a root that the proxy cut off": ("/mcp", {"path": "/mcp", "root_path": "/api"}, True),
    "a longer name": ("/mcp", {"path": "/apis/mcp", "root_path": "/api"}, False),
    "no path": ("/", {"path": ""}, True),
    "encoded": ("/mcp", {"path": "/mcp", "raw_path": b"/%6dcp"}, False),
    "encoded slash": ("/a/mcp", {"path": "/a/mcp", "raw_path": b"/a%2Fmcp"}, False),
    "encoded mount point": (
        "/mcp",
        {"path": "/\u00fc/mcp", "root_path": "/\u00fc", "raw_path": b"/%C3%BC/mcp"},
        True,
    ),
    "no raw path": ("/mcp", {"path": "/mcp", "raw_path": None}, True),
    "a query": ("/mcp", {"path": "/mcp", "query_string": b"a=%20"}, True),
    "case": ("/mcp", {"path": "/MCP"}, False),
}


@for_each(("path", "scope", "is_served"), PATHS.values(), ids=PATHS)
def test_the_path_is_that_below_the_mount_point_or_the_whole(
    path: str, scope: dict[str, Any], is_served: bool
) -> None:
    async def main() -> None:
        async with serving(path=path) as made:
            call = tool("double", number=1)
            call.scope |= {"raw_path": scope["path"].encode(), **scope}
            await call.run(made.app)
            assert call.status == (200 if is_served else 404)

    asyncio.run(main())


def test_starlette_may_mount_it_anywhere() -> None:
    async def main() -> None:
        async with serving() as made:
            server = made.server
            for routes, paths in (
                ([Mount("/mcp", server.asgi(path="/"))], ["/mcp/"]),
                ([Mount("/mcp", server.asgi())], ["/mcp/", "/mcp/mcp", "/mcp/mcp/"]),
                ([Mount("/", server.asgi(path="/mcp"))], ["/mcp", "/mcp/"]),
                ([Mount("/api", server.asgi(path="/mcp"))], ["/api/mcp", "/api/mcp/"]),
                ([Mount("/a", routes=[Mount("/b", server.asgi())])], ["/a/b/mcp", "/a/b/mcp/"]),
                ([Route("/mcp", server.asgi())], ["/mcp"]),
            ):
                app = Starlette(routes=routes)
                for path in paths:
                    call = tool("double", number=1)
                    call.scope |= {"path": path, "raw_path": path.encode()}
                    await call.run(app)
                    assert (path, call.status) == (path, 200)

    asyncio.run(main())


def test_health_is_answered_below_the_mount_point() -> None:
    async def main() -> None:
        async with serving() as made:
            for path, root in (("/healthz", ""), ("/api/readyz", "/api")):
                call = AsgiCall(method="GET", path=path, root_path=root, headers=[])
                await call.run(made.app)
                assert (call.status, call.body) == (200, b"ok\n")
            call = await AsgiCall(method="HEAD", path="/healthz").run(made.app)
            assert (call.status, call.body, call.headers["content-length"]) == (200, b"", "3")

    asyncio.run(main())


# -- the end of clients ----------------------------------------------------------------------


def test_a_client_that_leaves_cancels_its_request() -> None:
    async def main() -> None:
        async with serving() as made:
            call = tool("wait")
            task = call.begin(made.app)
            await asyncio.wait_for(made.begun.wait(), WAIT)
            call.disconnect()
            await asyncio.wait_for(task, WAIT)
            await until_async(lambda: made.log)
            assert (made.log, call.sent) == (["cancelled"], [])
            assert not made.app._server.active

    asyncio.run(main())


def test_a_client_that_leaves_a_session_does_not_cancel_its_request() -> None:
    async def main() -> None:
        async with serving() as made:
            id = (await initialize().run(made.app)).headers["mcp-session-id"]
            call = in_session("tools/call", {"name": "wait", "arguments": {}}, session=id)
            task = call.begin(made.app)
            await asyncio.wait_for(made.begun.wait(), WAIT)
            call.disconnect()
            await asyncio.wait_for(task, WAIT)
            made.go_on.set()
            await until_async(lambda: made.log)
            assert (made.log, call.sent) == (["finished"], [])

    asyncio.run(main())


def test_a_client_that_leaves_a_stream_ends_it() -> None:
    async def main() -> None:
        async with serving() as made:
            wanted = {"notifications": {"toolsListChanged": True}}
            call = request("subscriptions/listen", wanted)
            task = call.begin(made.app)
            await call.until(b"acknowledged")
            assert is_listening(made)
            call.disconnect()
            await asyncio.wait_for(task, WAIT)
            assert not call.is_complete
            await until_async(lambda: not is_listening(made))

    asyncio.run(main())


def test_a_client_that_leaves_in_its_body_is_not_served() -> None:
    async def main() -> None:
        async with serving() as made:
            call = tool("wait").parts(b"{", b'"a', ends=False)
            call.disconnect()
            await call.run(made.app)
            assert (call.sent, made.begun.is_set()) == ([], False)
            call = tool("wait").parts()
            call.disconnect()
            await call.run(made.app)
            assert (call.sent, made.begun.is_set()) == ([], False)

    asyncio.run(main())


def test_a_server_that_cancels_the_application_cancels_the_request() -> None:
    async def main() -> None:
        async with serving() as made:
            task = tool("wait").begin(made.app)
            await asyncio.wait_for(made.begun.wait(), WAIT)
            task.cancel()
            await asyncio.wait([task], timeout=WAIT)
            assert task.cancelled()
            await until_async(lambda: made.log)
            assert made.log == ["cancelled"]

    asyncio.run(main())


def test_a_server_that_cannot_send_any_more_ends_the_request() -> None:
    async def main() -> None:
        async with serving() as made:
            call = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})

            async def send(message: Any) -> None:
                raise OSError("the connection is closed")

            call.send = send  # type: ignore[method-assign]
            await call.run(made.app)
            await until_async(lambda: not is_listening(made))
            assert not made.app._server.active

    asyncio.run(main())


def test_a_receive_that_raises_or_repeats_itself_does_not_keep_the_request() -> None:
    async def main() -> None:
        async with serving() as made:
            call = tool("wait")
            call.incoming.put_nowait({"type": "http.request", "body": b"", "more_body": False})
            task = call.begin(made.app)
            await until_async(lambda: call.receives == 3)
            assert not task.done()
            call.incoming.put_nowait(None)  # type: ignore[arg-type]  # as of a defective server
            await asyncio.wait_for(task, WAIT)
            await until_async(lambda: made.log)
            assert made.log == ["cancelled"]

    asyncio.run(main())


# -- slow clients and time -------------------------------------------------------------------


class Slow:
    """An exchange that is told how its client reads."""

    def __init__(self) -> None:
        self.slow: list[bool] = []

    def note_slow(self, is_slow: bool) -> None:
        self.slow.append(is_slow)


def test_unsent_bytes_count_as_unread_and_make_the_client_slow() -> None:
    exchange = Slow()
    responder = responder_of()
    responder.exchange = exchange  # type: ignore[assignment]
    responder.start(())
    responder.write(b"x" * 65536)
    assert (responder.unread, exchange.slow) == (65536, [])
    responder.write(b"y")
    responder.write(b"")
    assert (responder.unread, exchange.slow) == (65537, [True])
    assert responder.take() == b"x" * 65536 + b"y"
    assert (responder.take(), responder.unread) == (b"", 65537)
    responder.taken(40_000)
    assert exchange.slow == [True]
    responder.taken(25_537)
    assert (responder.unread, exchange.slow) == (0, [True, False])


def test_after_its_end_or_that_of_its_client_a_responder_drops_everything() -> None:
    ended = responder_of()
    ended.respond(200, b"1")
    ended.respond(500, b"2")
    ended.start(())
    ended.write(b"3")
    ended.end()
    assert (ended.status, ended.body, ended.take(), ended.unread) == (200, b"1", b"", 0)
    gone = responder_of()
    gone.lost()
    gone.respond(200, b"1")
    gone.start(())
    gone.write(b"2")
    assert (gone.is_gone, gone.status, gone.body, gone.unread) == (True, 0, b"", 0)
    streaming = responder_of()
    streaming.start(((b"a", b"b"),))
    streaming.start(())
    streaming.respond(500, b"")
    assert (streaming.status, streaming.headers) == (200, [(b"a", b"b")])


def test_a_handler_waits_for_a_client_that_reads_slowly() -> None:
    async def main() -> None:
        async with serving() as made:
            call = tool("count", to=200, size=100_000)
            call.reads.clear()
            task = call.begin(made.app)
            server = made.app._server
            await until_async(
                lambda: server.active and next(iter(server.active)).unread > 4_000_000
            )
            before = next(iter(server.active)).unread
            for _ in range(20):
                await asyncio.sleep(0)
            assert next(iter(server.active)).unread == before < 6_000_000
            call.reads.set()
            await asyncio.wait_for(task, WAIT)
            assert [each["params"]["progress"] for each in call.messages[:-1]] == [*range(1, 201)]

    asyncio.run(main())


def test_large_answer_is_handed_over_in_parts_and_counts_for_its_client_until_then() -> None:
    async def main() -> None:
        async with serving() as made:
            accounts = made.server._core.runtime.accounts
            call = tool("echo", text="x" * 1_000_000)
            call.reads.clear()
            task = call.begin(made.app)
            await until_async(lambda: accounts.bytes.used >= 1_000_000 and not accounts.calls.used)
            (account,) = accounts
            size = account.budget.used
            call.reads.set()
            await asyncio.wait_for(task, WAIT)
            assert call.answer["result"]["content"][0]["text"] == "x" * 1_000_000
            assert len(call.body) == size == int(call.headers["content-length"])
            parts = [len(each["body"]) for each in call.sent[1:]]
            assert parts == [adapter._PART_BYTES] * 3 + [size - 3 * adapter._PART_BYTES]
            assert call.is_complete
            assert (len(accounts), accounts.bytes.used) == (0, 0)

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_client_that_does_not_read_a_large_answer_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adapter, "_UNREAD_TIMEOUT_S", 0.05)

    async def main() -> None:
        async with serving() as made:
            call = tool("echo", text="x" * 1_000_000)
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)
                if len(sent) > 2:  # the head, and a part
                    await asyncio.Event().wait()

            async with asyncio.timeout(WAIT):
                await made.app(call.scope, call.receive, send)
            assert sent[-1]["more_body"]
            assert made.server._core.runtime.budget.used == 0

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_a_body_that_does_not_come_is_408() -> None:
    async def main() -> None:
        async with serving(limits=HttpLimits(body_timeout=0.02)) as made:
            for call in (tool("wait").parts(), tool("wait").parts(b"{", ends=False)):
                await call.run(made.app)
                assert (call.status, call.is_complete) == (408, True)
            assert not made.begun.is_set()

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_body_that_drips_is_408_after_body_timeout() -> None:
    async def main() -> None:
        async with serving(limits=HttpLimits(body_timeout=0.05)) as made:
            call = tool("wait").parts(b"{", ends=False)
            running = call.begin(made.app)
            while not running.done():
                call.incoming.put_nowait({"type": "http.request", "body": b" ", "more_body": True})
                await asyncio.sleep(SOON)
            assert (call.status, call.is_complete) == (408, True)

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_body_has_a_second_more_for_each_16_kib_that_came() -> None:
    async def main() -> None:
        async with serving(limits=HttpLimits(body_timeout=0.05)) as made:
            server = made.app._server
            call = tool("echo").parts(b" " * 160 * 1024, ends=False)
            running = call.begin(made.app)
            await until_async(lambda: [each.since for each in server.active] > [0.0])
            (responder,) = server.active
            server._tick_one(responder, responder.since + 10.0)
            assert responder.ending is None
            server._tick_one(responder, responder.since + 10.1)
            assert responder.ending is not None
            await running
            assert call.status == 408

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_a_client_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_UNREAD_TIMEOUT_S", 0.05)

    async def main() -> None:
        async with serving() as made:
            call = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            call.reads.clear()
            await call.run(made.app)
            assert call.sent == []
            await until_async(lambda: not is_listening(made))
            # Nothing is unread on a stream without messages: it stays.
            quiet = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            task = quiet.begin(made.app)
            await quiet.until(b"acknowledged")
            await asyncio.sleep(0.2)
            assert not task.done()
            quiet.disconnect()
            await asyncio.wait_for(task, WAIT)

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_an_answer_that_takes_long_becomes_a_stream_that_is_kept_alive() -> None:
    async def main() -> None:
        limits = HttpLimits(stream_after=0.02, keep_alive=0.02)
        async with serving(limits=limits) as made:
            call = tool("wait")
            task = call.begin(made.app)
            await call.until(b":\n\n:\n\n")
            assert call.headers["content-type"] == "text/event-stream"
            made.go_on.set()
            await asyncio.wait_for(task, WAIT)
            assert call.messages[-1]["result"]["content"][0]["text"] == "waited"

    asyncio.run(main())


@pytest.mark.usefixtures("quick_ticks")
def test_timers_end_with_the_last_request_and_the_last_session() -> None:
    async def main() -> None:
        limits = HttpLimits(session_idle=0.1)
        async with serving(limits=limits) as made:
            server = made.app._server
            assert (server._timer, server._watch_timer) == (None, None)
            await tool("echo", text="").run(made.app)
            assert server._timer is not None
            await until_async(lambda: server._timer is None)
            await tool("on_a_thread", text="").run(made.app)
            await until_async(lambda: server._timer is None and server._watch_timer is None)
            await initialize().run(made.app)
            assert made.app.sessions == 1
            await until_async(lambda: server._timer is None)
            assert made.app.sessions == 0

    asyncio.run(main())


# -- principals, logs ------------------------------------------------------------------------


def test_the_principal_may_come_from_the_scope() -> None:
    async def main() -> None:
        async with serving(auth=lambda request: request.scope["user"]) as made:
            opened = await initialize(user="ada").run(made.app)
            id = opened.headers["mcp-session-id"]
            ours = await in_session("ping", session=id, user="ada").run(made.app)
            assert ours.status == 200
            theirs = await in_session("ping", session=id, user="eve").run(made.app)
            assert theirs.status == 404

    asyncio.run(main())


@pytest.mark.parametrize("mount", ["", "/api"])
def test_a_protected_application_has_its_metadata_and_its_challenge(mount: str) -> None:
    url = f"https://mcp.example.org{mount}/mcp"
    verifier = JwtBearer(issuer="https://login.example.org", audience=url)
    known = "/.well-known/oauth-protected-resource"

    async def main() -> None:
        async with serving(auth=verifier, http=HttpSettings(public_url=url)) as made:
            for path in (known, f"{known}{mount}/mcp"):
                found = await AsgiCall(method="GET", path=path, root_path=mount).run(made.app)
                assert (found.status, found.answer["resource"]) == (200, url)
            refused = await initialize().run(made.app)
            assert refused.status == 401
            challenge = refused.headers["www-authenticate"]
            assert f'resource_metadata="https://mcp.example.org{known}{mount}/mcp"' in challenge

    asyncio.run(main())


def test_a_protected_application_has_to_know_its_url() -> None:
    verifier = JwtBearer(issuer="https://login.example.org", audience="trips")
    with pytest.raises(ValueError, match="public_url"):
        new_server().server.asgi(auth=verifier)
    # An audience that is a URL is that of the application.
    verifier = JwtBearer(issuer="https://login.example.org", audience="https://a.example/mcp")
    new_server().server.asgi(auth=verifier)
    new_server().server.asgi(auth=lambda request: "ann")


def test_requests_are_logged_if_wanted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving(http=HttpSettings(access_log=True)) as made:
            await tool("echo", text="").run(made.app)
            await AsgiCall(path="/nowhere?secret=1", client=None).run(made.app)

    with caplog.at_level(logging.INFO, "trunkline.access"):
        asyncio.run(main())
    first, second = (each.getMessage() for each in caplog.records if each.name.endswith("access"))
    assert first.startswith("127.0.0.1 'POST' '/mcp' 200 ")
    assert second.startswith("unix 'POST' '/nowhere' 404 ")


# -- credentials before a body ---------------------------------------------------------------

KEY, RECORD = ApiKeys.generate(subject="build")
BAD = "Bearer tlk_made-up"


def test_body_of_a_stranger_is_not_received_to_its_end() -> None:
    async def main() -> None:
        events: list[AuditEvent] = []
        auth = AuthSettings(verifiers=[ApiKeys([RECORD])], audit=events.append)
        async with serving(auth=auth) as made:
            call = AsgiCall(headers={"authorization": BAD}).parts(b" ", b" ", ends=False)
            await call.run(made.app)
            assert (call.status, call.receives) == (401, 1)
            assert 'error="invalid_token"' in call.headers["www-authenticate"]
            assert [each.code for each in events] == [401]
            # A small one is received, so that the client reads the answer.
            headers = {"authorization": BAD, "content-length": "3"}
            small = AsgiCall(headers=headers).parts(b" ", b" ", b" ")
            await small.run(made.app)
            assert (small.status, small.receives) == (401, 3)
            assert [each.code for each in events] == [401, 401]

    asyncio.run(main())


def test_body_is_not_asked_for_if_the_credential_is_not_valid() -> None:
    async def main() -> None:
        async with serving(auth=ApiKeys([RECORD])) as made:
            headers = {"authorization": BAD, "expect": "100-continue", "content-length": "2"}
            call = await AsgiCall(headers=headers).parts(b" ", b" ").run(made.app)
            # The HTTP server asks for it when it is received.
            assert (call.status, call.receives) == (401, 0)
            headers["authorization"] = f"Bearer {KEY}"
            known = await AsgiCall(headers=headers).parts(b" ", b" ").run(made.app)
            assert (known.status, known.receives) == (400, 2)

    asyncio.run(main())


@for_each("required", [True, False])
def test_body_in_parts_of_a_known_caller_is_received(required: bool) -> None:
    async def main() -> None:
        auth = AuthSettings(verifiers=[ApiKeys([RECORD])], required=required)
        async with serving(auth=auth) as made:
            for credential in [f"Bearer {KEY}"] + [""] * (not required):
                headers = {"authorization": credential} if credential else {}
                whole = tool("echo", headers, text="a")
                body = whole.incoming.get_nowait()["body"]
                call = await whole.parts(body[:10], body[10:20], body[20:]).run(made.app)
                assert call.answer["result"]["content"][0]["text"] == "a"
            stranger = AsgiCall(headers={"authorization": BAD}).parts(b" ", ends=False)
            assert (await stranger.run(made.app)).status == 401

    asyncio.run(main())


def test_head_is_not_checked_apart_if_the_body_comes_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check_head(self: ResourceServer, request: Any) -> None:
        raise AssertionError("it costs a second verification")

    monkeypatch.setattr(ResourceServer, "check_head", check_head)

    async def main() -> None:
        async with serving(auth=ApiKeys([RECORD])) as made:
            call = await tool("echo", {"authorization": f"Bearer {KEY}"}, text="a").run(made.app)
            assert call.status == 200
            assert (
                await tool("echo", {"authorization": BAD}, text="a").run(made.app)
            ).status == 401

    asyncio.run(main())
