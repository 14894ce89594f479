"""The access log of HTTP: one line for each request, with the client that a proxy reports."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from typing import Any

import pytest

from tests.faults.http.serving import call, single_headers
from tests.rigs.conditions import until_async
from tests.rigs.http_requests import request_head
from tests.rigs.messages import META
from trunkline import Context, HttpSettings, Server

BEHIND_A_PROXY = HttpSettings(access_log=True, trusted_proxies=["127.0.0.1", "unix"])
HEADERS = [(b"host", b"localhost"), (b"x-forwarded-for", b"203.0.113.9")]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged, without the times."""
    found = [each.getMessage() for each in caplog.records if each.name == "trunkline.access"]
    return [re.sub(r" \d+\.\d ms$", "", each) for each in found]


async def ask(port: int, *headers: tuple[bytes, bytes]) -> bytes:
    """Send a GET; return the whole response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = b"".join(b"%b: %b\r\n" % each for each in headers)
    writer.write(b"GET /mcp HTTP/1.1\r\n%bconnection: close\r\n\r\n" % head)
    response = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return response


@pytest.mark.parametrize(
    ("settings", "client"),
    [(BEHIND_A_PROXY, "203.0.113.9"), (HttpSettings(access_log=True), "127.0.0.1")],
    ids=["trusted", "not trusted"],
)
def test_a_line_names_the_client_that_a_trusted_proxy_reports(
    settings: HttpSettings, client: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        caplog.set_level(logging.INFO, "trunkline.access")
        async with Server("a").listen("http://127.0.0.1:0/mcp", http=settings) as listening:
            assert (await ask(listening.address.port, *HEADERS)).startswith(b"HTTP/1.1 400 ")
        assert lines(caplog) == [f"{client} GET '/mcp' 400"]

    asyncio.run(main())


def test_a_request_that_cannot_be_read_is_logged_with_its_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        caplog.set_level(logging.INFO, "trunkline.access")
        async with Server("a").listen("http://127.0.0.1:0/mcp", http=BEHIND_A_PROXY) as listening:
            twice = [(b"host", b"localhost"), (b"host", b"localhost")]
            assert (await ask(listening.address.port, *twice)).startswith(b"HTTP/1.1 400 ")
        assert [each.split()[0] for each in lines(caplog)] == ["127.0.0.1"]

    asyncio.run(main())


@pytest.mark.parametrize("has_progress", [True, False], ids=["streaming", "not answered"])
def test_a_client_that_leaves_is_logged_with_the_status_it_was_sent(
    has_progress: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app, begun = Server("a"), asyncio.Event()

    @app.tool
    async def wait(ctx: Context) -> None:
        if has_progress:
            ctx.progress(1)
        begun.set()
        await asyncio.Event().wait()

    async def main() -> None:
        settings = HttpSettings(access_log=True)
        async with app.listen("http://127.0.0.1:0/mcp", http=settings) as listening:
            reader, writer = await asyncio.open_connection("127.0.0.1", listening.address.port)
            message = call("tools/call", 1, name="wait", _meta=META | {"progressToken": 1})
            body = json.dumps(message).encode()
            headers = [
                ("Host", "localhost"),
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                *single_headers("tools/call", "wait"),
            ]
            writer.write(request_head("POST", "/mcp", headers) + body)
            await asyncio.wait_for(begun.wait(), 10)
            if has_progress:
                await asyncio.wait_for(reader.readuntil(b"data: "), 10)
            writer.close()
            await until_async(lambda: lines(caplog))

    caplog.set_level(logging.INFO, "trunkline.access")
    asyncio.run(main())
    assert lines(caplog) == [f"127.0.0.1 POST '/mcp' {200 if has_progress else 0}"]


@pytest.mark.parametrize("headers", [HEADERS, [*HEADERS, HEADERS[0]]], ids=["good", "bad"])
def test_an_asgi_application_logs_the_same(
    headers: list[tuple[bytes, bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        caplog.set_level(logging.INFO, "trunkline.access")
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/mcp",
            "http_version": "1.1",
            "headers": headers,
            "client": ("127.0.0.1", 5000),
        }
        async with Server("a").asgi(http=BEHIND_A_PROXY) as app:
            await app(scope, receive, send)  # type: ignore[arg-type]  # as servers call it
        assert sent[0]["status"] == 400
        client = "203.0.113.9" if headers == HEADERS else "127.0.0.1"
        assert lines(caplog) == [f"{client} 'GET' '/mcp' 400"]

    asyncio.run(main())


def test_http_without_its_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httptools", None)
    for name in list(sys.modules):
        if name.startswith(("trunkline.server.runtime.http_", "trunkline.transports.http.server")):
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'pip install "trunkline\[http\]"'):
        Server("a").listen("http://127.0.0.1:0/mcp")
