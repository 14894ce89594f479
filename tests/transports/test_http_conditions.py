"""Every condition of the tables of HTTP statuses is sent by one of our servers, with its status.

`PROVOKED` has a request for each condition, sent to a server on a real socket, to its ASGI
application, or to a proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import pytest

from tests.rigs.http_connection import HttpConnection, call, initialize
from tests.rigs.messages import META, PER_REQUEST, frame
from tests.unit.transports.http.asgi_call import AsgiCall
from trunkline import Context, HttpLimits, HttpSettings, Server
from trunkline.auth.principal import Principal
from trunkline.auth.server.settings import AuthSettings
from trunkline.auth.server.verifiers.credential import Credential, VerifierUnavailable
from trunkline.cli.proxy.http_listener import HttpSourceListener
from trunkline.cli.proxy.http_source import HttpSource
from trunkline.jsonrpc import Limits, Policy
from trunkline.spec.http_conditions import HTTP
from trunkline.spec.mcp.http_status import MCP
from trunkline.transports.addresses import Http

Provoke: TypeAlias = Callable[[], Awaitable[int]]

SINGLE: Final = {"mcp_protocol_version": PER_REQUEST}
PAGE: Final = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
WEBSOCKET: Final = PAGE + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
# Larger than any message below, and smaller than what exceeds it.
MAX_BYTES: Final = 4096


class Tokens:
    """A verifier that knows one token, cannot decide on another, and fails with a third."""

    schemes = ("bearer",)
    authorization_servers = ()
    dpop_algorithms = ()
    scopes_supported = ()

    def verify(self, credential: Credential) -> Principal | None:
        if credential.token == "down":
            raise VerifierUnavailable("the issuer does not respond", retry_after=2)
        if credential.token == "broken":
            raise RuntimeError("a defect")
        return Principal(subject="ann") if credential.token == "ann" else None


def make_app(**options: Any) -> Server:
    app = Server("conditions", policy=Policy(limits=Limits(http=MAX_BYTES)), **options)

    @app.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Who?", str)
        return "done"

    @app.tool(scopes=["write"])
    async def write() -> str:
        return "done"

    return app


async def status_of(*parts: bytes, **options: Any) -> int:
    """Return the status of the last response to bytes on one connection, each part a request."""
    status = 0
    async with make_app().listen("http://127.0.0.1:0/mcp", **options) as listening:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.address.port)
        for part in parts:
            writer.write(part)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
        writer.close()
    return status


def raw(*parts: bytes, **options: Any) -> Provoke:
    """Return what sends bytes on one connection."""
    return lambda: status_of(*parts, **options)


def one_request(
    method: str = "POST", body: bytes | None = None, *, path: str = "/mcp", **given: Any
) -> Provoke:
    """Return what sends one request; `options` of the listener are given by name too."""
    options = given.pop("options", {})

    async def provoke() -> int:
        async with make_app().listen("http://127.0.0.1:0/mcp", **options) as listening:
            wire = await HttpConnection.open(listening.address.port)
            try:
                return (await wire.ask(method, path, body, **given)).status
            finally:
                wire.close()

    return provoke


def in_session(method: str, body: bytes | None = None, **given: str) -> Provoke:
    """Return what opens a session, and sends one request in it."""

    async def provoke() -> int:
        async with make_app().listen("http://127.0.0.1:0/mcp") as listening:
            wire = await HttpConnection.open(listening.address.port)
            try:
                opened = await wire.ask("POST", "/mcp", initialize())
                session = {"mcp_session_id": opened.headers[b"mcp-session-id"].decode(), **given}
                return (await wire.ask(method, "/mcp", body, **session)).status
            finally:
                wire.close()

    return provoke


def with_token(token: str | None, **given: Any) -> Provoke:
    """Return what sends a request to a server with authentication."""
    options = {"auth": AuthSettings(verifiers=[Tokens()])}
    credential = {} if token is None else {"authorization": f"Bearer {token}"}
    return one_request("POST", options=options, **{**call("write"), **credential, **given})


def single(method: str, params: dict[str, Any] | None = None, **headers: str) -> Provoke:
    """Return what sends a single request of 2026-07-28."""
    given = {**SINGLE, "mcp_method": method, **headers}
    body = frame(method, {"_meta": META} if params is None else params)
    return one_request("POST", body, **given)


async def overload() -> int:
    app = make_app().asgi()
    await app.start()
    app.stop()
    await asyncio.sleep(0)
    return (await AsgiCall(frame("ping")).run(app)).status


async def end_behind_proxy() -> int:
    """Return the status of a request whose server ends before it has answered."""
    tasks = []

    def serve(source: Any) -> None:
        source.on_message = lambda *_: tasks.append(asyncio.ensure_future(source.close()))
        tasks.append(asyncio.ensure_future(source.connect()))

    limits = HttpLimits()
    source = HttpSource(limits, serve)
    address = Http("127.0.0.1", 0, "/mcp")
    listener = HttpSourceListener(address, Policy(), HttpSettings(), limits, source)
    async with listener:
        wire = await HttpConnection.open(listener.address.port)
        try:
            return (await wire.ask("POST", "/mcp", **call("ask"))).status
        finally:
            wire.close()


WITH_WEBSOCKET: Final = {"http": HttpSettings(websocket=True)}
REPLY: Final = b'{"jsonrpc":"2.0","id":77,"result":{}}'

PROVOKED: Final[dict[str, Provoke]] = {
    # HTTP
    "malformed-request": raw(b"no HTTP\r\n\r\n"),
    "request-timeout": raw(b"GET /mcp HTTP/1.1\r\n", limits=HttpLimits(header_timeout=0.1)),
    "headers-too-large": raw(PAGE + b"X: " + b"x" * 9000 + b"\r\n\r\n"),
    "target-too-long": raw(b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "target-invalid": raw(b"GET http://a/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "http-version-unsupported": raw(b"GET /mcp HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    "transfer-coding-unknown": raw(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    ),
    "expectation-unknown": one_request("POST", b"{}", expect="wonders"),
    "host-missing": raw(b"GET /mcp HTTP/1.1\r\n\r\n"),
    "host-not-allowed": one_request("GET", host="evil.example"),
    "origin-not-allowed": one_request("GET", origin="https://evil.example"),
    "path-unknown": one_request("GET", path="/nothing"),
    "method-not-allowed": one_request("PUT"),
    "rate-limited": raw(PAGE + b"\r\n", PAGE + b"\r\n", http=HttpSettings(rate=0.001, burst=1)),
    "overloaded": overload,
    "credential-malformed": with_token("a b"),
    "authentication-required": with_token(None),
    "permission-denied": with_token("ann"),
    "service-unavailable": with_token("down"),
    "upgrade-malformed": raw(WEBSOCKET + b"Sec-WebSocket-Version: 13\r\n\r\n", **WITH_WEBSOCKET),
    "upgrade-version-unsupported": raw(
        WEBSOCKET + b"Sec-WebSocket-Version: 12\r\n\r\n", **WITH_WEBSOCKET
    ),
    "wrong-content-type": raw(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    ),
    "wrong-accept": one_request("POST", b"{}", accept="text/html"),
    "body-too-large": one_request("POST", frame("ping", {"x": "x" * MAX_BYTES}), **SINGLE),
    "internal-error": with_token("broken"),
    "server-behind-unavailable": end_behind_proxy,
    # MCP
    "get-not-offered": one_request("GET", **SINGLE),
    "delete-not-offered": one_request("DELETE", **SINGLE),
    "event-id-unknown": in_session("GET", accept="text/event-stream", last_event_id="9-9"),
    "parse-error": one_request("POST", b"{", **SINGLE),
    "invalid-message": one_request("POST", b'{"jsonrpc":"2.0","id":1}', **SINGLE),
    "session-required": one_request("POST", frame("tools/list")),
    "session-unknown": one_request("POST", frame("ping"), mcp_session_id="none"),
    "version-header-unsupported": one_request("GET", mcp_protocol_version="1999-01-01"),
    "wrong-lifecycle-phase": in_session("POST", initialize()),
    "header-mismatch": single("tools/list", mcp_method="tools/call"),
    "version-unsupported": single(
        "tools/list",
        {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2999-01-01"}},
        mcp_protocol_version="2999-01-01",
    ),
    "incomplete-meta": single("tools/list", {}),
    "method-unknown": single("no/such"),
    "capability-missing": one_request("POST", **call("ask")),
    "accepted": in_session("POST", frame("notifications/initialized", id=None)),
    "not-accepted": in_session("POST", REPLY),
    "answered": single("tools/list"),
}


def test_every_condition_has_a_request_that_provokes_it() -> None:
    assert PROVOKED.keys() == HTTP.keys() | MCP.keys()


@pytest.mark.parametrize("condition", PROVOKED)
def test_a_server_sends_the_status_of_a_condition(condition: str) -> None:
    row = MCP.get(condition) or HTTP[condition]

    async def main() -> int:
        async with asyncio.timeout(20):
            return await PROVOKED[condition]()

    assert asyncio.run(main()) == row.status
