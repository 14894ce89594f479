"""Credentials are verified before a body is read: strangers are answered by the head, on a socket.

The server knows API keys and JWTs, so that it needs no network to decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.event_loop import on_a_loop
from tests.rigs.http_connection import HttpConnection, call, text_of
from tests.rigs.http_requests import request_head
from tests.rigs.http_responses import Response
from tests.unit.auth.tokens import AUDIENCE, ISSUER, jwks, key, token
from trunkline import Context, HttpLimits, HttpSettings, Server
from trunkline.auth import (
    ApiKeys,
    AuditEvent,
    AuthSettings,
    Credential,
    Dpop,
    Introspection,
    JwtBearer,
    Principal,
)
from trunkline.auth.dpop import make_proof
from trunkline.auth.server.resource_server import ResourceServer
from trunkline.transports.addresses import Http

KEY, RECORD = ApiKeys.generate(subject="build")
BAD = "tlk_made-up"
LENGTH = 1024 * 1024
CLIENT = key(key_id=None, number=100)


class Wire:
    """One connection, and requests on it that need not be complete."""

    def __init__(self, port: int, inner: HttpConnection) -> None:
        self.port = port
        self._inner = inner

    def send(self, data: bytes) -> None:
        self._inner._writer.write(data)

    def begin(self, credential: str | None, *more: tuple[str, str], length: int = LENGTH) -> None:
        """Send the head of a call."""
        self._inner._methods.append("POST")
        given = [("Host", "localhost"), ("Content-Type", "application/json"), *more]
        if not any(name == "Transfer-Encoding" for name, _ in more):
            given.append(("Content-Length", str(length)))
        if credential is not None:
            given.append(("Authorization", credential))
        self.send(request_head("POST", "/mcp", given))

    async def answer(self, number: int = 1) -> Response:
        return (await self._inner.answers(number))[number - 1]

    async def ended(self) -> bytes:
        return await self._inner.ended()

    async def is_silent(self) -> bool:
        """Return True if nothing has come, after the server has answered another connection."""
        other = await HttpConnection.open(self.port)
        try:
            await other.ask("GET", "/healthz")
        finally:
            other.close()
        await asyncio.sleep(0)
        return not self._inner._got and not self._inner._reader._buffer  # type: ignore[attr-defined]  # of asyncio


class GuardedServer:
    def __init__(self, port: int, events: list[AuditEvent]) -> None:
        self.port = port
        self.events = events

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Wire]:
        inner = await HttpConnection.open(self.port)
        try:
            yield Wire(self.port, inner)
        finally:
            inner.close()


@asynccontextmanager
async def guarded(
    *verifiers: Any, http: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[GuardedServer]:
    app = Server("guarded")

    @app.tool
    async def caller(ctx: Context, padding: str = "") -> str:
        return "nobody" if ctx.principal is None else ctx.principal.subject

    events: list[AuditEvent] = []
    auth = AuthSettings(
        verifiers=verifiers
        or [ApiKeys([RECORD]), JwtBearer(issuer=ISSUER, audience=AUDIENCE, keys=jwks())],
        audit=events.append,
        **settings,
    )
    limits = HttpLimits(body_timeout=60, idle_timeout=60)
    given = HttpSettings(public_url=AUDIENCE, hosts=["localhost"], **(http or {}))
    async with app.listen("http://127.0.0.1:0/mcp", auth=auth, http=given, limits=limits) as made:
        assert isinstance(made.address, Http)
        yield GuardedServer(made.address.port, events)


def refused_by(events: list[AuditEvent]) -> list[int | None]:
    return [each.code for each in events if each.outcome == "unauthenticated"]


@for_each("credential", [f"Bearer {BAD}", "Bearer unknown", f"Bearer {token(exp=1)}"])
@for_each("sent", [0, 1, 70_000])
@on_a_loop
async def test_credential_that_is_not_valid_is_401_before_the_body_is_read(
    sent: int, credential: str
) -> None:
    async with guarded() as server, server.connect() as wire:
        wire.begin(credential)
        wire.send(b" " * sent)
        found = await wire.answer()
        assert found.status == 401
        assert found.closes
        assert b'error="invalid_token"' in found.headers[b"www-authenticate"]
        # Once, and nothing that follows is read.
        wire.send(b" " * 1000)
        assert (await wire.ended()).count(b"HTTP/1.1") == 1
        assert refused_by(server.events) == [401]


@on_a_loop
async def test_chunked_body_of_a_stranger_is_not_read() -> None:
    async with guarded() as server, server.connect() as wire:
        wire.begin(f"Bearer {BAD}", ("Transfer-Encoding", "chunked"))
        wire.send(b"1\r\n \r\n")
        assert (await wire.answer()).status == 401


@on_a_loop
async def test_body_is_not_asked_for_if_the_credential_is_not_valid() -> None:
    async with guarded() as server:
        async with server.connect() as wire:
            wire.begin(f"Bearer {BAD}", ("Expect", "100-continue"))
            assert (await wire.answer()).status == 401
            assert b"100 Continue" not in await wire.ended()
            assert refused_by(server.events) == [401]
        async with server.connect() as wire:
            wire.begin(f"Bearer {KEY}", ("Expect", "100-continue"))
            await wire._inner.until(b"100 Continue")


@for_each("required", [True, False])
@on_a_loop
async def test_body_of_a_known_caller_is_read_to_its_end(required: bool) -> None:
    async with guarded(required=required) as server:
        for credential in (f"Bearer {KEY}", None):
            if credential is None and required:
                continue
            async with server.connect() as wire:
                request = call("caller", padding="x" * 200_000)
                body = request.pop("body")
                headers = [(name.replace("_", "-"), value) for name, value in request.items()]
                wire.begin(credential, *headers, length=len(body))
                wire.send(body[:100_000])
                assert await wire.is_silent()
                wire.send(body[100_000:])
                expected = "nobody" if credential is None else "build"
                assert text_of(await wire.answer()) == expected
        assert refused_by(server.events) == []


@on_a_loop
async def test_optional_credential_that_is_not_valid_is_401_before_the_body_is_read() -> None:
    async with guarded(required=False) as server, server.connect() as wire:
        wire.begin(f"Bearer {BAD}")
        assert (await wire.answer()).status == 401


@on_a_loop
async def test_refusal_by_the_head_waits_for_its_turn() -> None:
    async with guarded() as server, server.connect() as wire:
        request = call("caller")
        body = request.pop("body")
        headers = [(name.replace("_", "-"), value) for name, value in request.items()]
        wire.begin(f"Bearer {KEY}", *headers, length=len(body))
        wire.send(body)
        wire.begin(f"Bearer {BAD}")
        wire.send(b" ")
        assert [(await wire.answer(1)).status, (await wire.answer(2)).status] == [200, 401]


@on_a_loop
async def test_credentials_cannot_be_tried_beyond_the_rate() -> None:
    async with guarded(http={"rate": 0.001, "burst": 3}) as server:
        statuses = []
        for _ in range(5):
            async with server.connect() as wire:
                wire.begin(f"Bearer {BAD}")
                statuses.append((await wire.answer()).status)
        assert statuses == [401, 401, 401, 429, 429]
        assert refused_by(server.events) == [401] * 3


@on_a_loop
async def test_credential_that_needs_the_network_is_verified_with_the_body() -> None:
    # At an address where nothing listens: it must not be asked.
    opaque = Introspection(
        endpoint="http://127.0.0.1:9/introspect",
        client_id="a",
        client_secret="b",
        audience=None,
    )
    async with guarded(ApiKeys([RECORD]), opaque) as server:
        async with server.connect() as wire:
            wire.begin("Bearer opaque")
            wire.send(b" ")
            assert await wire.is_silent()
        async with server.connect() as wire:
            wire.begin(f"Bearer {BAD}")
            assert (await wire.answer()).status == 401


@on_a_loop
async def test_dpop_proof_of_a_request_whose_body_comes_later_is_used_once() -> None:
    verifier = Dpop(JwtBearer(issuer=ISSUER, audience=AUDIENCE, keys=jwks()))
    text = token(cnf={"jkt": CLIENT.thumbprint}, iat=1, exp=4_000_000_000)
    proof = make_proof(CLIENT, "POST", AUDIENCE, token=text)
    request = call("caller", padding="x" * 1000)
    body = request.pop("body")
    headers = [(name.replace("_", "-"), value) for name, value in request.items()]
    async with guarded(verifier) as server:
        for expected in (200, 401):
            async with server.connect() as wire:
                wire.begin(f"DPoP {text}", ("DPoP", proof), *headers, length=len(body))
                assert await wire.is_silent()
                wire.send(body)
                assert (await wire.answer()).status == expected


@on_a_loop
async def test_public_paths_and_preflights_are_served_whatever_the_credential() -> None:
    async with guarded(http={"cors": ["https://app.example.org"]}) as server:
        for method, path in (("POST", "/healthz"), ("OPTIONS", "/mcp")):
            async with server.connect() as wire:
                given = [
                    ("Host", "localhost"),
                    ("Origin", "https://app.example.org"),
                    ("Access-Control-Request-Method", "POST"),
                    ("Content-Length", "2"),
                    ("Authorization", f"Bearer {BAD}"),
                ]
                wire._inner._methods.append(method)
                wire.send(request_head(method, path, given) + b" ")
                if method == "OPTIONS":
                    assert await wire.is_silent()
                    wire.send(b" ")
                expected = {"POST": 405, "OPTIONS": 204}[method]
                assert (await wire.answer()).status == expected
        assert refused_by(server.events) == []


@on_a_loop
async def test_head_is_not_checked_apart_if_the_body_comes_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check_head(self: ResourceServer, request: Any) -> None:
        raise AssertionError("it costs a second verification")

    monkeypatch.setattr(ResourceServer, "check_head", check_head)
    async with guarded() as server:
        found = await HttpConnection.open(server.port)
        for _ in range(3):  # the head is known from the second one on
            answered = await found.ask(
                "POST", "/mcp", authorization=f"Bearer {KEY}", **call("caller")
            )
            assert text_of(answered) == "build"
        answered = await found.ask("POST", "/mcp", authorization=f"Bearer {BAD}", **call("caller"))
        assert answered.status == 401
        found.close()


@on_a_loop
async def test_credential_is_verified_once_more_however_many_parts_a_body_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Credential] = []
    keys = ApiKeys([RECORD])

    def verify_offline(self: ApiKeys, credential: Credential) -> Principal | None:
        seen.append(credential)
        return self.verify(credential)

    monkeypatch.setattr(ApiKeys, "verify_offline", verify_offline)
    async with guarded(keys) as server, server.connect() as wire:
        for number in range(1, 3):
            request = call("caller", padding="x" * 1000)
            body = request.pop("body")
            headers = [(name.replace("_", "-"), value) for name, value in request.items()]
            wire.begin(f"Bearer {KEY}", *headers, length=len(body))
            for place in range(0, len(body), 300):
                # The server has read each part by itself.
                assert await wire.is_silent() or number > 1
                wire.send(body[place : place + 300])
            assert (await wire.answer(number)).status == 200
            assert len(seen) == number
