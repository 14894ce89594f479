"""An HTTP listener: its lifespan, its bounds, and its end in order."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.rigs.conditions import until_async
from tests.rigs.http_connection import HttpConnection, call, fetch, initialize, text_of
from tests.rigs.http_endpoint import WAIT
from tests.rigs.messages import META, frame
from trunkline import HttpLimits, HttpSettings, Server, ServerLimits, TransportError, TrunklineError
from trunkline.auth import AuthSettings
from trunkline.server.runtime.http_listener import HttpListener
from trunkline.transports.addresses import Http, Tls
from trunkline.transports.http.server import listener
from trunkline.transports.http.server.request_reader import Part

ADDRESS = "http://127.0.0.1:0/mcp"


class HoldingServer:
    """A server, what its lifespan did, and what its handlers wait for."""

    def __init__(self, **options: Any) -> None:
        self.events: list[str] = []
        self.gate = asyncio.Event()

        @asynccontextmanager
        async def lifespan(app: Server) -> AsyncIterator[str]:
            self.events.append("entered")
            yield "shared"
            self.events.append("left")

        self.app = Server("http", lifespan=lifespan, **options)

        @self.app.tool
        async def echo(text: str) -> str:
            return text

        @self.app.tool
        async def hold() -> str:
            self.events.append("began")
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.events.append("cancelled")
                raise
            self.events.append("done")
            return "held"

    async def until(self, event: str) -> None:
        async with asyncio.timeout(WAIT):
            while event not in self.events:
                await asyncio.sleep(0)

    def listen(self, address: Any = ADDRESS, **options: Any) -> HttpListener:
        listener = self.app.listen(address, **options)
        assert isinstance(listener, HttpListener)
        return listener


def listening_event() -> dict[str, Any]:
    params = {"notifications": {"toolsListChanged": True}, "_meta": META}
    return {
        "body": frame("subscriptions/listen", params, 7),
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": "subscriptions/listen",
    }


def test_the_lifespan_lasts_as_long_as_the_listener() -> None:
    async def main() -> None:
        scene = HoldingServer()
        own = scene.listen()
        assert own.connections == own.sessions == 0
        async with own:
            assert scene.events == ["entered"]
            assert own.address.port > 0
            for _ in range(2):
                answered = await fetch(own.address.port, "POST", "/mcp", **call("echo", text="a"))
                assert text_of(answered) == "a"
            assert scene.app._core.runtime.listeners == {own}
            assert scene.events == ["entered"]
        assert scene.events == ["entered", "left"]
        assert scene.app._core.runtime.listeners == set()
        with pytest.raises(TrunklineError, match="is entered once"):
            await own.__aenter__()
        with pytest.raises(ConnectionRefusedError):
            await fetch(own.address.port, "GET", "/healthz")

    asyncio.run(main())


def test_shutdown_answers_listen_requests_then_what_runs_then_leaves_the_lifespan() -> None:
    async def main() -> None:
        scene = HoldingServer()
        async with scene.listen() as own:
            port = own.address.port
            idle, held, stream = [await HttpConnection.open(port) for _ in range(3)]
            assert (await idle.ask("GET", "/readyz")).status == 200
            stream.send("POST", "/mcp", **listening_event())
            await stream.until(b"notifications/subscriptions/acknowledged")
            held.send("POST", "/mcp", **call("hold"))
            await scene.until("began")
            own.stop()
            await own.wait()
            # Idle connections are closed, and no more are accepted.
            assert b"200 OK" in await idle.ended()
            with pytest.raises(ConnectionRefusedError):
                await HttpConnection.open(port)
            assert b'"id":7,"result"' in await stream.ended()
            assert scene.events == ["entered", "began"]
            assert own.connections == 1
            scene.gate.set()
            (answered,) = await held.answers(1)
            assert text_of(answered) == "held"
            await own.close()
            assert scene.events == ["entered", "began", "done", "left"]
            assert own.connections == 0
            for each in (idle, held, stream):
                each.close()

    asyncio.run(main())


def test_stopping_at_once_cancels_what_runs() -> None:
    async def main() -> None:
        scene = HoldingServer(limits=ServerLimits(grace=3600))
        async with scene.listen() as own:
            held = await HttpConnection.open(own.address.port)
            held.send("POST", "/mcp", **call("hold"))
            await scene.until("began")
            own.stop()
            own.stop(at_once=True)
            (answered,) = await held.answers(1)
            assert answered.status == 503
            assert "cancelled" in scene.events
            held.close()

    asyncio.run(main())


def test_a_request_that_is_read_while_the_server_stops_is_refused() -> None:
    async def main() -> None:
        scene = HoldingServer()
        async with scene.listen() as own:
            late, held = [await HttpConnection.open(own.address.port) for _ in range(2)]
            held.send("POST", "/mcp", **call("hold"))
            await scene.until("began")
            body = call("echo", text="a")["body"]
            late._methods.append("POST")
            head = (
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nMCP-Protocol-Version: 2026-07-28\r\n"
                "Mcp-Method: tools/call\r\nMcp-Name: echo\r\n\r\n"
            )
            late._writer.write(head.encode() + body[:10])
            http: Any = own._http
            while not any(each.reader.part is Part.BODY for each in http.connections):
                await asyncio.sleep(0)
            own.stop()
            await own.wait()
            late._writer.write(body[10:])
            (answered,) = await late.answers(1)
            assert answered.status == 503
            assert answered.headers[b"connection"] == b"close"
            scene.gate.set()
            await held.answers(1)
            late.close()
            held.close()

    asyncio.run(main())


def test_connections_beyond_the_limit_take_the_place_of_idle_ones_or_are_refused() -> None:
    async def main() -> None:
        scene = HoldingServer()
        async with scene.listen(limits=HttpLimits(connections=2)) as own:
            port = own.address.port
            idle = await HttpConnection.open(port)
            assert (await idle.ask("GET", "/healthz")).status == 200
            held = [await HttpConnection.open(port)]
            held[0].send("POST", "/mcp", **call("hold"))
            await scene.until("began")
            held.append(await HttpConnection.open(port))
            assert b"200 OK" in await idle.ended()
            held[1].send("POST", "/mcp", **call("hold", id=2))
            while scene.events.count("began") < 2:
                await asyncio.sleep(0)
            refused = await HttpConnection.open(port)
            refused._methods.append("GET")
            (answered,) = await refused.answers(1)
            assert (answered.status, answered.headers[b"retry-after"]) == (503, b"1")
            stats = scene.app.stats()
            assert (stats.refused_connections, stats.dropped_connections) == (1, 1)
            scene.gate.set()
            for each in held:
                assert (await each.answers(1))[0].status == 200
            for each in (idle, refused, *held):
                each.close()

    asyncio.run(main())


def test_requests_beyond_the_limit_are_503_and_their_connections_stay_open() -> None:
    async def main() -> None:
        scene = HoldingServer()
        async with scene.listen(limits=HttpLimits(requests=1)) as own:
            held, other = [await HttpConnection.open(own.address.port) for _ in range(2)]
            held.send("POST", "/mcp", **call("hold"))
            await scene.until("began")
            answered = await other.ask("POST", "/mcp", **call("echo", text="a"))
            assert (answered.status, answered.headers[b"retry-after"]) == (503, b"1")
            assert (await other.ask("GET", "/healthz")).status == 200
            scene.gate.set()
            await held.answers(1)
            assert (await other.ask("POST", "/mcp", **call("echo", text="a"))).status == 200
            assert own._http is not None
            assert own._http.in_flight == 0
            held.close()
            other.close()

    asyncio.run(main())


def test_sessions_are_counted_until_they_end() -> None:
    async def main() -> None:
        scene = HoldingServer()
        async with scene.listen() as own:
            port = own.address.port
            opened = await fetch(port, "POST", "/mcp", initialize())
            session = opened.headers[b"mcp-session-id"].decode()
            assert own.sessions == scene.app.stats().sessions == 1
            ended = await fetch(port, "DELETE", "/mcp", mcp_session_id=session)
            assert ended.status == 204
            assert own.sessions == scene.app.stats().sessions == 0

    asyncio.run(main())


def test_a_server_beyond_this_machine_needs_names_and_logs_that_it_is_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        scene = HoldingServer()
        with pytest.raises(ValueError, match=r"hosts=\[\.\.\.\]"):
            scene.listen("http://0.0.0.0:0/mcp")
        settings = HttpSettings(hosts=["mcp.example.org"])
        async with scene.listen("http://0.0.0.0:0/mcp", http=settings) as own:
            assert caplog.messages == [
                f"{own.address} accepts requests of other machines without authentication"
            ]
            port = own.address.port
            assert (await fetch(port, "POST", "/mcp", host="localhost")).status == 421
            named = await fetch(
                port, "POST", "/mcp", host="mcp.example.org", **call("echo", text="a")
            )
            assert named.status == 200
        caplog.clear()
        async with scene.listen("http://0.0.0.0:0/mcp", http=settings, auth=lambda _: "ada"):
            assert caplog.messages == []
        # Anonymous clients are admitted here.
        optional = AuthSettings(verifiers=[lambda _: "ada"], required=False)
        async with scene.listen("http://0.0.0.0:0/mcp", http=settings, auth=optional):
            assert len(caplog.messages) == 1

    asyncio.run(main())


def test_a_port_in_use_is_an_error_and_leaves_nothing() -> None:
    async def main() -> None:
        scene = HoldingServer()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            own = scene.listen(Http("127.0.0.1", taken.getsockname()[1]))
            with pytest.raises(TransportError, match="cannot be listened on: Address already"):
                await own.__aenter__()
        assert scene.events == ["entered", "left"]
        await own.close()
        await own.wait()

    asyncio.run(main())


def test_a_unix_socket_is_served_and_its_file_removed(tmp_path: Path) -> None:
    async def main() -> None:
        scene, path = HoldingServer(), str(tmp_path / "s")
        async with scene.listen(Http(path="/mcp", unix=path)):
            wire = await HttpConnection.open_unix(path)
            assert (await wire.ask("POST", "/mcp", **call("echo", text="a"))).status == 200
            assert (await wire.ask("GET", "/mcp", host="evil.example")).status == 421
            wire.close()
        assert not os.path.exists(path)

    asyncio.run(main())


def test_tls_is_served_and_plain_text_is_not(tmp_path: Path) -> None:
    async def main() -> None:
        scene, authority = HoldingServer(), Authority(tmp_path)
        cert, key = authority.certificate("server", "localhost")
        trusted = ssl.create_default_context(cafile=str(authority.ca))
        tls = Tls(cert=str(cert), key=str(key))
        async with scene.listen(Http("127.0.0.1", 0, tls=tls)) as own:
            assert str(own.address).startswith("https://127.0.0.1:")
            port = own.address.port
            wire = await HttpConnection.open(port, ssl=trusted, server_hostname="localhost")
            assert (await wire.ask("POST", "/mcp", **call("echo", text="a"))).status == 200
            wire.close()
            plain = await HttpConnection.open(port)
            plain.send("GET", "/healthz")
            assert b"HTTP" not in await plain.ended()
            plain.close()

    asyncio.run(main())


def test_tls_handshakes_that_do_not_end_give_way_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_MAX_HANDSHAKES", 2)

    async def main() -> None:
        scene, authority = HoldingServer(), Authority(tmp_path)
        cert, key = authority.certificate("server", "localhost")
        trusted = ssl.create_default_context(cafile=str(authority.ca))
        async with scene.listen(Http("127.0.0.1", 0, tls=Tls(cert=str(cert), key=str(key)))) as own:
            port = own.address.port
            silent = [await HttpConnection.open(port) for _ in range(4)]
            wire = await HttpConnection.open(port, ssl=trusted, server_hostname="localhost")
            assert (await wire.ask("GET", "/healthz")).status == 200
            assert len(own._accepting) <= 2
            for each in silent[:2]:
                assert await each.ended() == b""
            for each in (wire, *silent):
                each.close()

    asyncio.run(main())


def test_handshakes_of_one_client_end_none_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_MAX_HANDSHAKES", 4)

    async def main() -> None:
        scene, authority = HoldingServer(), Authority(tmp_path)
        cert, key = authority.certificate("server", "localhost")
        trusted = ssl.create_default_context(cafile=str(authority.ca))
        async with scene.listen(Http("127.0.0.1", 0, tls=Tls(cert=str(cert), key=str(key)))) as own:
            port = own.address.port
            quiet = socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.3", 0))
            await until_async(lambda: len(own._accepting) == 1)
            flood = [
                await HttpConnection.open(port, local_addr=("127.0.0.2", 0)) for _ in range(20)
            ]
            for each in flood[:10]:
                assert await each.ended() == b""
            assert len(own._accepting) <= 4
            streams = await asyncio.open_connection(
                sock=quiet, ssl=trusted, server_hostname="localhost"
            )
            wire = HttpConnection(*streams)
            assert (await wire.ask("GET", "/healthz")).status == 200
            for each in (wire, *flood):
                each.close()

    asyncio.run(main())


def test_a_handshake_that_does_not_end_ends_with_the_listener(tmp_path: Path) -> None:
    async def main() -> None:
        scene, authority = HoldingServer(), Authority(tmp_path)
        cert, key = authority.certificate("server", "localhost")
        tls, limits = Tls(cert=str(cert), key=str(key)), HttpLimits(tls_handshake=3600)
        async with scene.listen(Http("127.0.0.1", 0, tls=tls), limits=limits) as own:
            silent = await HttpConnection.open(own.address.port)
            while not own._accepting:
                await asyncio.sleep(0)
        assert await silent.ended() == b""
        assert not own._accepting
        silent.close()

    asyncio.run(main())


def test_suppressed_warnings_are_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "trunkline.server")

    async def main() -> None:
        async with HoldingServer().listen() as own:
            assert own._endpoint is not None
            for _ in range(13):
                own._endpoint.service._log_limit.warning("something %s", "odd")
            assert len(caplog.messages) == 10

    asyncio.run(main())
    assert caplog.messages[-1] == "3 more warnings suppressed: something %s"


def test_given_sockets_are_used_in_place_of_new_ones() -> None:
    async def main() -> None:
        socks = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        async with HoldingServer().listen(Http("127.0.0.1", 1), sock=socks):
            for sock in socks:
                assert (await fetch(sock.getsockname()[1], "GET", "/healthz")).status == 200

    asyncio.run(main())
