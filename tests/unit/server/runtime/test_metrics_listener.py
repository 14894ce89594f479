"""A real scrape of the metrics of a server, on a port of their own."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rigs.http_connection import HttpConnection, call, fetch, initialize
from trunkline import HttpSettings, Server, TransportError
from trunkline.server import METRICS_CONTENT_TYPE
from trunkline.server.runtime.http_listener import HttpListener

ON_LOOPBACK = HttpSettings(metrics="127.0.0.1:0")


def run(
    work: Callable[[Server, HttpListener, int], Awaitable[None]],
    settings: HttpSettings = ON_LOOPBACK,
) -> None:
    app = Server("scraped")

    @app.tool
    async def echo(text: str) -> str:
        return text

    async def main() -> None:
        async with asyncio.timeout(60), app.listen("http://127.0.0.1:0/mcp", http=settings) as own:
            assert isinstance(own, HttpListener)
            assert own.metrics_address is not None
            await work(app, own, own.metrics_address.port)

    asyncio.run(main())


def value(page: bytes, name: str) -> str:
    (found,) = [
        line.rpartition(b" ")[2] for line in page.splitlines() if line.startswith(name.encode())
    ]
    return found.decode()


def test_a_scrape_shows_what_the_server_has_done_since_its_first_connection() -> None:
    async def work(app: Server, own: HttpListener, port: int) -> None:
        assert str(own.metrics_address) == f"http://127.0.0.1:{port}/metrics"
        await fetch(own.address.port, "POST", "/mcp", initialize())
        assert (
            await fetch(own.address.port, "POST", "/mcp", **call("echo", text="a"))
        ).status == 200
        page = await fetch(port, "GET", "/metrics")
        assert page.status == 200
        assert page.headers[b"content-type"].decode() == METRICS_CONTENT_TYPE
        assert value(page.body, "trunkline_sessions ") == "1"
        count = 'mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call"'
        assert value(page.body, count) == "1"
        # As a scraper does: one connection for all of its requests.
        wire = await HttpConnection.open(port)
        assert [(await wire.ask("GET", "/metrics")).status for _ in range(3)] == [200] * 3
        wire.close()

    run(work)


def test_nothing_else_is_served_beside_the_metrics() -> None:
    async def work(app: Server, own: HttpListener, port: int) -> None:
        for method, path, status in (
            ("GET", "/", 404),
            ("GET", "/mcp", 404),
            ("GET", "/healthz", 404),
            ("GET", "/metrics/", 404),
            ("POST", "/metrics", 405),
            ("DELETE", "/metrics", 405),
            ("OPTIONS", "/metrics", 405),
        ):
            answered = await fetch(port, method, path, b"{}" if method == "POST" else None)
            assert answered.status == status, (method, path)
        assert (await fetch(port, "PUT", "/metrics")).headers[b"allow"] == b"GET, HEAD"
        # Nor are they served beside MCP.
        assert (await fetch(own.address.port, "GET", "/metrics")).status == 404

    run(work)


def test_head_has_the_length_of_the_page_and_no_body() -> None:
    async def work(app: Server, own: HttpListener, port: int) -> None:
        head = await fetch(port, "HEAD", "/metrics")
        assert (head.status, head.body) == (200, b"")
        assert int(head.headers[b"content-length"]) > 1000

    run(work)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"host": "localhost:1"}, 200),
        ({"host": "127.0.0.1"}, 200),
    ],
)
def test_a_web_page_cannot_read_the_metrics_of_a_loopback_address(
    given: dict[str, str], status: int
) -> None:
    async def work(app: Server, own: HttpListener, port: int) -> None:
        answered = await fetch(port, "GET", "/metrics", **given)
        assert answered.status == status
        assert (b"trunkline_" in answered.body) is (status == 200)

    run(work)


def test_beyond_loopback_any_name_will_do() -> None:
    async def work(app: Server, own: HttpListener, port: int) -> None:
        assert (await fetch(port, "GET", "/metrics", host="node-7.cluster:9100")).status == 200

    run(work, HttpSettings(metrics="0.0.0.0:0"))


def test_without_the_setting_no_metrics_are_collected_or_served() -> None:
    async def main() -> None:
        app = Server("plain")
        async with app.listen("http://127.0.0.1:0/mcp") as own:
            assert isinstance(own, HttpListener)
            assert own.metrics_address is None
            assert not app._core.runtime.observers

    asyncio.run(main())


def test_a_port_in_use_is_an_error_and_nothing_stays_open() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            where = f"127.0.0.1:{taken.getsockname()[1]}"
            app = Server("taken")
            own = app.listen("http://127.0.0.1:0/mcp", http=HttpSettings(metrics=where))
            with pytest.raises(TransportError, match="cannot be listened on"):
                await own.__aenter__()
            assert not app._core.runtime.is_open
            assert not app._core.runtime.listeners

    asyncio.run(main())


def test_the_port_of_the_metrics_is_closed_if_that_of_the_server_is_in_use() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            settings = HttpSettings(metrics=f"127.0.0.1:{port}")
            own = Server("taken").listen(
                f"http://127.0.0.1:{taken.getsockname()[1]}/mcp", http=settings
            )
            with pytest.raises(TransportError, match="cannot be listened on"):
                await own.__aenter__()
            with pytest.raises(ConnectionRefusedError):
                await HttpConnection.open(port)

    asyncio.run(main())


def test_the_metrics_can_be_read_until_the_last_request_is_answered() -> None:
    async def main() -> None:
        gate, app = asyncio.Event(), Server("scraped")

        @app.tool
        async def hold() -> str:
            await gate.wait()
            return "held"

        own: Any = app.listen("http://127.0.0.1:0/mcp", http=ON_LOOPBACK)
        async with asyncio.timeout(60):
            await own.__aenter__()
            port = own.metrics_address.port
            wire = await HttpConnection.open(own.address.port)
            wire.send("POST", "/mcp", **call("hold"))
            while not app._core.runtime.in_flight:
                await asyncio.sleep(0)
            closing = asyncio.create_task(own.close())
            page = await fetch(port, "GET", "/metrics")
            assert value(page.body, "trunkline_requests_in_flight ") == "1"
            gate.set()
            (answered,) = await wire.answers(1)
            assert b"held" in answered.body
            await closing
            wire.close()
            with pytest.raises(ConnectionRefusedError):
                await HttpConnection.open(port)

    asyncio.run(main())


def test_the_log_names_both_addresses(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trunkline.server")

    async def work(app: Server, own: HttpListener, port: int) -> None:
        assert caplog.messages == [
            f"listening on {own.address}",
            f"metrics are at http://127.0.0.1:{port}/metrics",
        ]

    run(work)
