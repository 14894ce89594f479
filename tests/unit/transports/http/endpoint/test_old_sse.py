"""HTTP+SSE of 2024-11-05: the stream, its address for messages, and who may use that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cases import for_each
from tests.http_client.old_sse import OldSseTransport
from tests.rigs.conditions import until_async
from tests.unit.transports.http.asgi_call import WAIT, AsgiCall, in_session, initialize
from trunkline import Client, Context, HttpLimits, HttpSettings, Server
from trunkline.auth import Principal
from trunkline.jsonrpc import Limits, Policy
from trunkline.jsonrpc.framing.sse import Event, EventReader
from trunkline.spec.revisions import REVISIONS, V2026_07_28
from trunkline.transports.http import asgi as adapter

HANDSHAKES = [each for each in REVISIONS if each != V2026_07_28]
SOON = 0.005


class SseSession:
    """A client: its stream, and POSTs to the address in it."""

    def __init__(self, app: Any, path: str = "/sse", **options: Any) -> None:
        options.setdefault("headers", {"accept": "text/event-stream"})
        self._app = app
        self._options = {name: value for name, value in options.items() if name == "user"}
        self.call = AsgiCall(method="GET", path=path, **options)
        self.task = self.call.begin(app)

    async def opened(self) -> SseSession:
        await self.call.until(b"event: endpoint\n")
        return self

    @property
    def events(self) -> list[Event]:
        found = EventReader().feed(self.call.body)
        assert all(isinstance(each, Event) for each in found)
        return found  # type: ignore[return-value]

    @property
    def uri(self) -> str:
        return self.events[0].data

    @property
    def messages(self) -> list[Any]:
        return [json.loads(each.data) for each in self.events[1:]]

    async def post(self, message: Any, **options: Any) -> AsgiCall:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        options = {"path": self.uri, **self._options, **options}
        return await AsgiCall(body, **options).run(self._app)

    async def ask(self, method: str, params: Any = None, id: int = 1, **options: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        posted = await self.post(message, **options)
        assert (posted.status, posted.body) == (202, b"")
        await until_async(lambda: any(each.get("id") == id for each in self.messages))
        return next(each for each in self.messages if each.get("id") == id)

    async def initialize(self, version: str = HANDSHAKES[0]) -> Any:
        client = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
        answer = await self.ask("initialize", {"protocolVersion": version, **client}, 100)
        ready = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert ready.status == 202
        return answer["result"]

    async def leave(self) -> None:
        self.call.disconnect()
        await asyncio.wait_for(self.task, WAIT)


def new_server(**options: Any) -> SimpleNamespace:
    server = Server("old", version="1.0.0", **options)
    made = SimpleNamespace(server=server, log=[], go_on=asyncio.Event())

    @server.tool(inline=True)
    def double(number: int) -> int:
        return 2 * number

    @server.tool
    async def count(ctx: Context, to: int) -> str:
        for each in range(1, to + 1):
            await ctx.progress(each, to)
        return "counted"

    @server.tool
    async def header(ctx: Context, name: str) -> str:
        return str(ctx.headers.get(name))

    @server.tool
    async def wait() -> str:
        made.log.append("waiting")
        try:
            await made.go_on.wait()
        except asyncio.CancelledError:
            made.log.append("cancelled")
            raise
        return "waited"

    return made


@asynccontextmanager
async def serving(
    settings: dict[str, Any] | None = None, path: str = "/mcp", **options: Any
) -> AsyncIterator[SimpleNamespace]:
    made = new_server(**options.pop("server", {}))
    http = HttpSettings(old_sse=True, **(settings or {}))
    made.app = made.server.asgi(path, http=http, **options)
    async with made.app:
        made.old = made.app._run.endpoint._old_sse
        yield made


def tool(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}}


# -- messages --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", HANDSHAKES)
def test_every_revision_with_a_handshake_may_be_negotiated(version: str) -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            assert session.call.headers["content-type"] == "text/event-stream"
            assert (await session.initialize(version))["protocolVersion"] == version
            answer = await session.ask("tools/call", tool("double", number=4))
            assert answer["result"]["content"][0]["text"] == "8"
            await session.ask("tools/call", tool("count", to=3), 2)
            progress = [each["params"]["progress"] for each in session.messages if "params" in each]
            assert progress == [1, 2, 3]
            assert [each.event for each in session.events] == [
                "endpoint",
                *["message"] * (len(session.events) - 1),
            ]
            assert all(each.id is None for each in session.events)
            await session.leave()

    asyncio.run(main())


def test_the_first_event_is_an_address_that_cannot_be_guessed() -> None:
    async def main() -> None:
        async with serving() as made:
            sessions = [await SseSession(made.app).opened() for _ in range(20)]
            ids = set()
            for each in sessions:
                parts = urlsplit(each.uri)
                assert (parts.scheme, parts.netloc, parts.path) == ("", "", "/messages")
                ids |= set(parse_qs(parts.query)["session_id"])
                assert each.call.body.startswith(b"event: endpoint\ndata: /messages?session_id=")
            assert len(ids) == 20
            assert all(len(each) == 43 for each in ids)  # 256 bits in Base64
            for each in sessions:
                await each.leave()

    asyncio.run(main())


def test_a_batch_is_answered_as_one() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            await session.initialize("2025-03-26")
            batch = [{"jsonrpc": "2.0", "id": each, "method": "ping"} for each in (1, 2)]
            assert (await session.post(batch)).status == 202
            await until_async(lambda: len(session.messages) == 2)
            assert [each["id"] for each in session.messages[1]] == [1, 2]
            await session.leave()

    asyncio.run(main())


def test_each_element_of_a_batch_counts_for_the_rate() -> None:
    async def main() -> None:
        # The stream, `initialize`, `notifications/initialized` and the batch are four requests.
        async with serving({"rate": 0.001, "burst": 6}) as made:
            session = await SseSession(made.app).opened()
            await session.initialize("2025-03-26")
            batch = [{"jsonrpc": "2.0", "id": each, "method": "ping"} for each in range(5)]
            assert (await session.post(batch)).status == 202
            await until_async(lambda: len(session.messages) == 2)
            answers = session.messages[1]
            assert [each["id"] for each in answers] == [0, 1, 2, 3, 4]
            assert ["result" in each for each in answers] == [True] * 3 + [False] * 2
            assert answers[3]["error"]["data"]["retryAfterMs"] > 1000
            await session.leave()

    asyncio.run(main())


def test_handlers_see_the_headers_of_the_post() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            await session.initialize()
            call = tool("header", name="x-mine")
            answer = await session.ask("tools/call", call, headers={"x-mine": "here"})
            assert answer["result"]["content"][0]["text"] == "here"
            await session.leave()

    asyncio.run(main())


def test_a_slow_client_gets_everything_in_order() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            await session.initialize()
            session.call.reads.clear()
            for id in range(1, 200):
                message = {"jsonrpc": "2.0", "id": id, "method": "tools/list"}
                assert (await session.post(message)).status == 202
            responder = next(iter(made.app._server.active))
            assert responder.unread > 64 * 1024
            session.call.reads.set()
            await until_async(lambda: len(session.messages) == 200)
            assert [each["id"] for each in session.messages[1:]] == [*range(1, 200)]
            assert responder.unread == 0
            await session.leave()

    asyncio.run(main())


# -- refused POSTs ---------------------------------------------------------------------------


def test_a_post_needs_the_id_of_an_open_session() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            good = session.uri
            for path in (
                "/messages",
                "/messages?session_id=",
                "/messages?session_id=unknown",
                good + "x",
                f"{good}&session_id=unknown",
                good.replace("session_id", "SESSION_ID"),
                f"{good}&" + "&".join("a=1" for _ in range(20)),
            ):
                refused = await session.post(
                    {"jsonrpc": "2.0", "id": 1, "method": "ping"}, path=path
                )
                assert (path, refused.status) == (path, 404)
                assert refused.answer["error"]["message"] == "Session not found"
            assert len(session.events) == 1
            assert (await session.ask("ping"))["result"] == {}
            await session.leave()

    asyncio.run(main())


def test_ids_of_the_two_kinds_of_sessions_are_not_for_each_other() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            theirs = parse_qs(urlsplit(session.uri).query)["session_id"][0]
            assert (await in_session("ping", session=theirs).run(made.app)).status == 404
            newer = (await initialize().run(made.app)).headers["mcp-session-id"]
            message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            path = f"/messages?session_id={newer}"
            assert (await session.post(message, path=path)).status == 404
            await session.leave()

    asyncio.run(main())


def test_a_session_of_another_principal_does_not_exist() -> None:
    async def main() -> None:
        principal = lambda request: request.scope["user"]  # noqa: E731
        async with serving(auth=principal) as made:
            session = await SseSession(made.app, user="ada").opened()
            message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            theirs = await session.post(message, user="eve")
            unknown = await session.post(message, user="ada", path="/messages?session_id=x")
            assert (theirs.status, theirs.body) == (unknown.status, unknown.body)
            assert theirs.status == 404
            assert (await session.ask("ping"))["result"] == {}
            assert next(iter(made.server._core.runtime.connections)).principal == Principal(
                subject="ada"
            )
            await session.leave()

    asyncio.run(main())


def test_a_message_over_the_limit_of_sse_is_refused_under_erlmcp() -> None:
    async def main() -> None:
        policy = Policy.erlmcp()
        async with serving(server={"policy": policy}) as made:
            session = await SseSession(made.app).opened()
            await session.initialize(policy.revision)
            ping = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
            limit = 10 * 1024 * 1024
            assert (await session.post(ping + b" " * (limit - len(ping)))).status == 202
            await until_async(lambda: any(each.get("id") == 7 for each in session.messages))
            # Without an id there is no request to answer on the stream.
            refused = await session.post(ping + b" " * (limit - len(ping) + 1))
            await session.leave()
        assert refused.status == 400
        assert refused.answer == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": -32012,
                "message": "Message size exceeds maximum allowed",
                "data": {"maxSize": limit, "unit": "bytes"},
            },
        }

    asyncio.run(main())


def test_a_fault_that_names_no_request_is_the_response_of_its_post() -> None:
    async def main() -> None:
        policy = Policy(limits=Limits(http=2000, sse=2000))
        async with serving(server={"policy": policy}) as made:
            session = await SseSession(made.app).opened()
            await session.initialize()
            before = len(session.events)
            for body, status in ((b"{", 400), (b"", 400), (b"17", 400), (b"x" * 3000, 413)):
                refused = await session.post(body)
                assert (body[:5], refused.status) == (body[:5], status)
                assert refused.headers["content-type"] == "application/json"
                assert refused.answer["error"]["code"] in (-32700, -32600)
            assert len(session.events) == before
            # One that names a request is awaited on the stream.
            large = b'{"jsonrpc":"2.0","id":5,"method":"ping","params":"%b"}' % (b"x" * 3000)
            assert (await session.post(large)).status == 413
            wrong = {"jsonrpc": "2.0", "id": 6, "method": "ping", "params": 7}
            assert (await session.post(wrong)).status == 202
            await until_async(lambda: len(session.events) == before + 2)
            assert [each["id"] for each in session.messages[-2:]] == [5, 6]
            assert all("error" in each for each in session.messages[-2:])
            await session.leave()

    asyncio.run(main())


CASES: dict[str, tuple[AsgiCall | tuple[str, str, dict[str, str]], int, str | None]] = {
    "a POST to the stream": (("POST", "/sse", {}), 405, "GET"),
    "a GET of the messages": (("GET", "/messages?session_id=x", {}), 405, "POST"),
    "a DELETE": (("DELETE", "/sse", {}), 405, "GET"),
    "OPTIONS without CORS": (("OPTIONS", "/messages", {}), 405, "POST"),
    "a client that takes JSON": (("GET", "/sse", {"accept": "application/json"}), 406, None),
    "a text": (("POST", "/messages", {"content-type": "text/plain"}), 415, None),
    "another host, stream": (("GET", "/sse", {"host": "evil.example"}), 421, None),
    "another host, message": (("POST", "/messages", {"host": "evil.example"}), 421, None),
    "another origin, stream": (("GET", "/sse", {"origin": "https://evil.example"}), 403, None),
    "another origin, message": (("POST", "/messages", {"origin": "null"}), 403, None),
}


@for_each(("given", "status", "allow"), CASES.values(), ids=CASES)
def test_the_gate_is_that_of_every_route(
    given: tuple[str, str, dict[str, str]], status: int, allow: str | None
) -> None:
    async def main() -> None:
        async with serving() as made:
            method, path, headers = given
            call = await AsgiCall(b"{}", method=method, path=path, headers=headers).run(made.app)
            assert (call.status, call.headers.get("allow")) == (status, allow)
            assert (call.receives, len(made.old)) == (0, 0)

    asyncio.run(main())


def test_cors_is_answered_on_both_paths() -> None:
    async def main() -> None:
        page = "https://app.example"
        async with serving({"cors": [page]}) as made:
            for path in ("/sse", "/messages"):
                headers = {"origin": page, "access-control-request-method": "POST"}
                call = await AsgiCall(method="OPTIONS", path=path, headers=headers).run(made.app)
                assert call.status == 204
                assert call.headers["access-control-allow-origin"] == page
            session = await SseSession(made.app, headers={"origin": page}).opened()
            assert session.call.headers["access-control-allow-origin"] == page
            message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            posted = await session.post(message, headers={"origin": page})
            assert posted.headers["access-control-allow-origin"] == page
            await session.leave()

    asyncio.run(main())


# -- where it is -----------------------------------------------------------------------------


def test_old_sse_routes_are_404_by_default() -> None:
    async def main() -> None:
        async with new_server().server.asgi() as app:
            for method, path in (("GET", "/sse"), ("POST", "/messages")):
                assert (await AsgiCall(method=method, path=path).run(app)).status == 404

    asyncio.run(main())


@for_each(
    ("path", "settings", "scope", "uri"),
    [
        ("/mcp", {}, {"path": "/sse"}, "/messages"),
        ("/mcp", {}, {"path": "/sse/"}, "/messages"),
        ("/", {}, {"path": "/sse"}, "/messages"),
        ("/a/mcp", {}, {"path": "/a/sse"}, "/a/messages"),
        ("/mcp", {}, {"path": "/api/sse", "root_path": "/api"}, "/api/messages"),
        ("/mcp", {}, {"path": "/sse", "root_path": "/api"}, "/api/messages"),
        ("/mcp", {}, {"path": "/\u00fc/sse", "root_path": "/\u00fc"}, "/%C3%BC/messages"),
        ("/mcp", {"public_url": "https://h.example/mcp"}, {"path": "/sse"}, "/messages"),
        ("/mcp", {"public_url": "https://h.example/x/mcp"}, {"path": "/sse"}, "/x/messages"),
        ("/", {"public_url": "https://h.example/x"}, {"path": "/sse"}, "/x/messages"),
        ("/mcp", {"public_url": "https://h.example/other"}, {"path": "/sse"}, "messages"),
        (
            "/mcp",
            {"public_url": "https://h.example/x/mcp"},
            {"path": "/api/sse", "root_path": "/api"},
            "/x/messages",
        ),
    ],
)
def test_the_address_is_below_what_precedes_the_paths(
    path: str, settings: dict[str, Any], scope: dict[str, Any], uri: str
) -> None:
    async def main() -> None:
        async with serving(settings, path) as made:
            session = await SseSession(made.app, **scope, raw_path=None).opened()
            assert session.uri.partition("?")[0] == uri
            await session.leave()

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/sse", "/messages", "/sse/", "/a/sse"])
def test_mcp_is_not_served_at_the_same_path(path: str) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match=r"HttpSettings\.old_sse"):
            async with serving(path=path):
                pass

    asyncio.run(main())


# -- the end ---------------------------------------------------------------------------------


def test_a_session_ends_with_its_stream() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            await session.initialize()
            await session.post(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool("wait")}
            )
            await until_async(lambda: made.log)
            await session.leave()
            await until_async(lambda: len(made.log) == 2)
            assert made.log == ["waiting", "cancelled"]
            assert len(made.old) == 0
            gone = await session.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert gone.status == 404
            await until_async(lambda: not made.server._core.runtime.connections)

    asyncio.run(main())


def test_shutdown_answers_what_runs_and_ends_the_stream() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            await session.initialize()
            await session.post(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool("wait")}
            )
            await until_async(lambda: made.log)
            closing = asyncio.create_task(made.app.close())
            await until_async(lambda: made.app._run.is_stopping)
            made.go_on.set()
            await asyncio.wait_for(closing, WAIT)
            await asyncio.wait_for(session.task, WAIT)
            assert session.messages[-1]["result"]["content"][0]["text"] == "waited"
            assert session.call.is_complete

    asyncio.run(main())


def test_streams_count_as_sessions() -> None:
    async def main() -> None:
        async with serving(limits=HttpLimits(sessions=2)) as made:
            newer = (await initialize().run(made.app)).headers["mcp-session-id"]
            first = await SseSession(made.app).opened()
            # The idle one gives way; one with a stream does not.
            second = await SseSession(made.app).opened()
            assert (await in_session("ping", session=newer).run(made.app)).status == 404
            third = SseSession(made.app)
            await asyncio.wait_for(third.task, WAIT)
            assert (third.call.status, third.call.headers["retry-after"]) == (503, "10")
            assert (await initialize().run(made.app)).status == 503
            await first.leave()
            assert (await initialize().run(made.app)).status == 200
            await second.leave()

    asyncio.run(main())


def test_a_stream_is_kept_alive_and_ends_when_it_is_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adapter, "_TICK_S", SOON)

    async def main() -> None:
        async with serving(limits=HttpLimits(keep_alive=0.02, session_lifetime=0.3)) as made:
            session = await SseSession(made.app).opened()
            await session.call.until(b":\n\n:\n\n")
            await asyncio.wait_for(session.task, WAIT)
            assert session.call.is_complete
            assert len(made.old) == 0

    asyncio.run(main())


def test_reprs_and_logs_do_not_show_the_id() -> None:
    async def main() -> None:
        async with serving() as made:
            session = await SseSession(made.app).opened()
            id = parse_qs(urlsplit(session.uri).query)["session_id"][0]
            inner = made.old._sessions[id]
            shown = [repr(inner), repr(inner._exchange), repr(made.old), repr(made.app)]
            assert not any(id[:8] in each for each in shown)
            await session.leave()

    asyncio.run(main())


# -- on our own server -----------------------------------------------------------------------


@pytest.mark.parametrize("version", HANDSHAKES)
def test_our_own_server_has_the_same_routes(version: str) -> None:
    class Address:
        outlives_connections = False

        def __init__(self, url: str) -> None:
            self._url = url

        def transport(self, policy: Policy) -> OldSseTransport:
            return OldSseTransport(self._url, policy)

    async def main() -> None:
        server = new_server().server
        http = HttpSettings(old_sse=True)
        async with server.listen("http://127.0.0.1:0/mcp", http=http) as listening:
            url = str(listening.address).removesuffix("/mcp") + "/sse"
            async with asyncio.timeout(WAIT):
                async with Client(Address(url), revision=version) as client:
                    result = await client.call_tool("double", {"number": 21})
                    assert result.text == "42"
                    progress: list[float] = []
                    await client.call_tool(
                        "count", {"to": 2}, on_progress=lambda done, *_: progress.append(done)
                    )
                    assert progress == [1, 2]
            await until_async(lambda: not server._core.runtime.connections)

    asyncio.run(main())
