"""The table of routes, and a second protocol beside MCP: on our own server, and as ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import pytest

from tests.cases import for_each
from tests.rigs.event_loop import on_a_loop
from tests.rigs.http_connection import HttpConnection, call, initialize
from tests.rigs.http_endpoint import PlainResponder, request
from tests.unit.transports.http.asgi_call import AsgiCall
from trunkline import HttpLimits, HttpSettings, Server
from trunkline.accounts.account import UNCOUNTED_BYTES, Accounts
from trunkline.auth import AuthSettings, Principal
from trunkline.server.runtime.asgi import AsgiApp
from trunkline.server.runtime.http_listener import HttpListener
from trunkline.spec.http_conditions import HTTP
from trunkline.spec.rows import HttpStatus
from trunkline.transports.addresses import Http
from trunkline.transports.http.endpoint.routes import Route, Routes
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest
from trunkline.transports.http.response import JSON_HEADERS, STREAM_HEADERS, Refusal

CARD: Final = b'{"name": "second"}'


class Second:
    """A made-up protocol: JSON by POST, events by POST, paths below a prefix, and a card."""

    def __init__(self) -> None:
        self.is_ready = True
        self.is_idle = True
        self.log: list[str] = []
        # Streams that have not ended.
        self.open: list[Any] = []

    def add(self, routes: Routes) -> None:
        routes.add_endpoint(self)
        routes.add("/second", Route(self.respond, ("POST",)))
        routes.add("/second/events", Route(self.stream, ("POST", "GET")))
        routes.add_prefix("/v1/", Route(self.respond, ("GET", "POST")))
        routes.add_document("/.well-known/second.json", CARD)

    def respond(
        self, asked: HttpRequest, body: Any, responder: Any, owner: Any, client: str
    ) -> None:
        size = len(body) if isinstance(body, bytes) else None
        found = {
            "path": asked.path,
            "owner": None if owner is None else owner.subject,
            "size": size,
        }
        responder.respond(200, json.dumps(found).encode(), JSON_HEADERS)

    def stream(
        self, asked: HttpRequest, body: Any, responder: Any, owner: Any, client: str
    ) -> None:
        responder.exchange = Events(self, responder)
        self.open.append(responder)
        responder.start(STREAM_HEADERS)
        responder.write(b"data: 1\n\n")

    def reap(self, now: float) -> None:
        self.log.append("reaped")

    def stop(self, *, at_once: bool = False) -> None:
        self.is_ready = False

    async def close(self) -> None:
        self.log.append("closed")
        for each in self.open:
            each.write(b"data: last\n\n")
            each.end()


class Events:
    """The exchange of a stream."""

    def __init__(self, second: Second, responder: Any) -> None:
        self.second, self.responder = second, responder

    def tick(self, now: float, stream_after: float, keep_alive: float) -> None:
        """Nothing is due."""

    def note_slow(self, is_slow: bool) -> None:
        """Nothing is held back."""

    def disconnected(self) -> None:
        self.second.log.append("gone")
        self.second.open.remove(self.responder)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """Sends requests to a listener or an application; each on a connection of its own."""

    def __init__(self, second: Second, port: int, app: Any = None) -> None:
        self.second = second
        self.port = port
        self.app = app

    async def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.app is not None:
            sent = AsgiCall(body or b"", method=method, path=path, headers=given)
            await sent.run(self.app)
            return Answer(sent.status, sent.headers, sent.body)
        wire = await HttpConnection.open(self.port)
        try:
            found = await wire.ask(method, path, body, **headers)
        finally:
            wire.close()
        named = {name.decode(): value.decode() for name, value in found.headers.items()}
        return Answer(found.status, named, found.body)


@asynccontextmanager
async def listening(second: Second, settings: HttpSettings, auth: Any) -> AsyncIterator[Client]:
    core, address = new_server()._core, Http("127.0.0.1", 0, "/mcp")
    listener = HttpListener(
        core, address, settings, HttpLimits(), auth=auth, add_routes=[second.add]
    )
    async with listener:
        yield Client(second, listener.address.port)


@asynccontextmanager
async def mounted(second: Second, settings: HttpSettings, auth: Any) -> AsyncIterator[Client]:
    core = new_server()._core
    async with AsgiApp(core, "/mcp", settings, HttpLimits(), auth, [second.add]) as app:
        yield Client(second, 0, app)


def new_server() -> Server:
    app = Server("first")

    @app.tool
    async def echo(text: str) -> str:
        return text

    return app


def user_of(asked: HttpRequest) -> str | None:
    given = asked.header(b"x-user")
    return None if given is None else given.decode()


BOTH = pytest.mark.parametrize("served", [listening, mounted])


def run(
    served: Any,
    work: Callable[[Client], Awaitable[None]],
    auth: Any = None,
    **settings: Any,
) -> Second:
    second = Second()
    settings.setdefault("public_url", "http://localhost/mcp")

    async def main() -> None:
        async with asyncio.timeout(30), served(second, HttpSettings(**settings), auth) as client:
            await work(client)

    asyncio.run(main())
    return second


# -- a second protocol -------------------------------------------------------------------------


@BOTH
def test_a_second_protocol_is_served_beside_mcp(served: Any) -> None:
    async def work(client: Client) -> None:
        for path in ("/second", "/v1/message:send", "/v1/tasks/7:cancel"):
            found = await client.ask("POST", path, b"{}")
            assert found.status == 200
            assert json.loads(found.body) == {"path": path, "owner": None, "size": 2}
        card = await client.ask("GET", "/.well-known/second.json", host="any.example")
        assert (card.status, card.body) == (200, CARD)
        assert card.headers["access-control-allow-origin"] == "*"
        first = await client.ask("POST", "/mcp", **call("echo", text="a"))
        assert json.loads(first.body)["result"]["content"][0]["text"] == "a"
        opened = await client.ask("POST", "/mcp", initialize())
        assert opened.headers["mcp-session-id"]

    run(served, work)


@BOTH
def test_what_no_row_has_is_404_and_another_method_405(served: Any) -> None:
    async def work(client: Client) -> None:
        for path in ("/", "/v1", "/second/", "/second/other", "/mcp/x"):
            found = await client.ask("POST", path, b"{}")
            assert (found.status, json.loads(found.body)["error"]["message"]) == (404, "Not found")
        for path, allowed in (
            ("/second", "POST"),
            ("/v1/a", "GET, POST"),
            ("/mcp", "POST, GET, DELETE"),
            ("/healthz", "GET, HEAD"),
            ("/.well-known/second.json", "GET, HEAD, OPTIONS"),
        ):
            found = await client.ask("PUT", path, b"{}")
            assert (found.status, found.headers["allow"]) == (405, allowed)

    run(served, work)


@BOTH
def test_the_gate_is_before_every_row(served: Any) -> None:
    async def work(client: Client) -> None:
        for path in ("/second", "/v1/a", "/mcp", "/unknown"):
            found = await client.ask("POST", path, b"{}", host="evil.example")
            assert found.status == 421
            found = await client.ask("POST", path, b"{}", origin="https://evil.example")
            assert found.status == 403

    run(served, work)


@BOTH
def test_a_second_protocol_gets_the_caller_and_refuses_unknown_ones(served: Any) -> None:
    async def work(client: Client) -> None:
        for path in ("/second", "/v1/a"):
            # Its method is not for callers that are not known.
            for method in ("POST", "PUT"):
                assert (await client.ask(method, path, b"{}")).status == 401
            found = await client.ask("POST", path, b"{}", x_user="ann")
            assert found.status == 200
            assert json.loads(found.body)["owner"] == "ann"
            assert (await client.ask("PUT", path, b"{}", x_user="ann")).status == 405
        assert (await client.ask("GET", "/.well-known/second.json")).status == 200

    run(served, work, AuthSettings(verifiers=[user_of]))


@BOTH
def test_protocols_share_the_rate_of_a_client(served: Any) -> None:
    async def work(client: Client) -> None:
        found = [
            (await client.ask("POST", path, b"{}")).status
            for path in ("/second", "/v1/a", "/second", "/mcp")
        ]
        assert found == [200, 200, 429, 429]

    run(served, work, rate=0.001, burst=2)


@BOTH
def test_a_body_beyond_the_limit_does_not_reach_a_handler_whole(served: Any) -> None:
    async def work(client: Client) -> None:
        found = await client.ask("POST", "/second", b" " * (17 * 1024 * 1024))
        assert json.loads(found.body)["size"] is None

    run(served, work)


@BOTH
def test_readiness_is_that_of_every_endpoint(served: Any) -> None:
    async def work(client: Client) -> None:
        assert (await client.ask("GET", "/readyz")).status == 200
        client.second.is_ready = False
        assert (await client.ask("GET", "/readyz")).status == 503
        assert (await client.ask("GET", "/healthz")).status == 200

    run(served, work)


@BOTH
def test_a_stream_of_a_second_protocol_ends_with_the_listener(served: Any) -> None:
    asked: list[Any] = []

    async def work(client: Client) -> None:
        if client.app is not None:
            sent = AsgiCall(b"{}", path="/second/events")
            asked.append(sent.begin(client.app))
            await sent.until(b"data: 1")
        else:
            wire = await HttpConnection.open(client.port)
            wire.send("POST", "/second/events", b"{}")
            await wire.until(b"data: 1")
            asked.append(asyncio.get_running_loop().create_task(wire.ended()))
            asked.append(wire)

    second = Second()

    async def main() -> None:
        async with asyncio.timeout(30):
            async with served(second, HttpSettings(), None) as client:
                await work(client)
            found = await asked[0]
            body = found if isinstance(found, bytes) else found.body
            assert b"data: last" in body
            for each in asked[1:]:
                each.close()

    asyncio.run(main())
    assert second.log[-1] == "closed"


def test_the_end_of_a_connection_is_reported_to_the_exchange_of_a_second_protocol() -> None:
    async def work(client: Client) -> None:
        wire = await HttpConnection.open(client.port)
        wire.send("GET", "/second/events")
        await wire.until(b"data: 1")
        wire.close()
        while "gone" not in client.second.log:
            await asyncio.sleep(0.01)

    run(listening, work)


@BOTH
def test_what_has_expired_is_ended_every_second(served: Any, monkeypatch: Any) -> None:
    for module in ("server.http_server", "asgi"):
        monkeypatch.setattr(f"trunkline.transports.http.{module}._TICK_S", 0.01)

    async def work(client: Client) -> None:
        client.second.is_idle = False
        assert (await client.ask("POST", "/second", b"{}")).status == 200
        while client.second.log.count("reaped") < 3:
            await asyncio.sleep(0.01)

    run(served, work)


@BOTH
def test_a_page_may_use_what_a_second_protocol_adds(served: Any) -> None:
    origin = "https://page.example"

    async def work(client: Client) -> None:
        asked = {"origin": origin, "access_control_request_method": "POST"}
        found = await client.ask("OPTIONS", "/second", **asked)
        assert found.status == 204
        assert found.headers["access-control-allow-origin"] == origin
        found = await client.ask("POST", "/nowhere", b"{}", origin=origin)
        assert (found.status, found.headers["access-control-allow-origin"]) == (404, origin)

    run(served, work, cors=[origin])


@BOTH
def test_a_path_that_is_served_already_is_refused_at_the_start(served: Any) -> None:
    class Clash(Second):
        def add(self, routes: Routes) -> None:
            routes.add("/mcp", Route(self.respond))

    async def main() -> None:
        with pytest.raises(ValueError, match="/mcp is served already"):
            async with served(Clash(), HttpSettings(), None):
                pass

    asyncio.run(main())


# -- the table ---------------------------------------------------------------------------------


def table(**settings: Any) -> Routes:
    http = HttpSettings(**settings)
    return Routes(Admission(http, [("127.0.0.1", 8000)]), http, lambda: 0.0)


def ignore(*_: Any) -> None:
    """Answer nothing."""


def test_a_path_of_its_own_precedes_the_longest_prefix_and_that_a_pattern() -> None:
    routes, rows = table(), [Route(ignore) for _ in range(4)]
    routes.add_pattern(lambda path: path.endswith("x"), rows[0])
    routes.add_prefix("/a/", rows[1])
    routes.add_prefix("/a/b/", rows[2])
    routes.add("/a/b/x", rows[3])
    found = {
        "/a/b/x": rows[3],
        "/a/b/y": rows[2],
        "/a/b/y/x": rows[2],
        "/a/b": rows[1],
        "/a/x": rows[1],
        "/b/x": rows[0],
        "/a": None,
        "": None,
    }
    assert {path: routes.find(path) for path in found} == found


def test_a_protocol_names_the_condition_of_a_method_that_it_does_not_take() -> None:
    row = HttpStatus("own-condition", 405, "own")
    routes = table()
    routes.add("/own", Route(ignore, ("POST",), refusals={"GET": row}))
    refusal = routes.admit(request("GET", "/own"))
    assert refusal is not None
    assert (refusal.row, refusal.headers) == (row, ((b"allow", b"POST"),))
    other = routes.admit(request("PUT", "/own"))
    assert other is not None
    assert other.row.condition == "method-not-allowed"


@for_each("method", ["GET", "POST", "OPTIONS", "PURGE"])
def test_a_row_without_methods_takes_any(method: str) -> None:
    asked: list[str] = []
    routes = table()
    routes.add_prefix("/", Route(lambda given, *_: asked.append(given.method)))
    given = request(method, "/any")
    assert routes.admit(given) is None
    routes.handle(given, b"", PlainResponder())
    assert asked == [method]


def test_a_request_that_was_not_admitted_is_404() -> None:
    responder = PlainResponder()
    table().handle(request("GET", "/nowhere"), b"", responder)
    assert responder.status == 404


# -- callers that are verified later -----------------------------------------------------------


class SlowAuthenticator:
    """Decides on every request when a test says so."""

    is_required = True

    def __init__(self) -> None:
        self.decided: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.noted: list[Refusal] = []

    def authenticate(self, asked: HttpRequest) -> Awaitable[Any]:
        return self.decided

    def note_refusal(self, asked: HttpRequest, refusal: Refusal, client: str) -> None:
        self.noted.append(refusal)


@for_each("is_known", [True, False])
@for_each("forwarded", [None, "192.0.2.1"])
@on_a_loop
async def test_body_counts_for_its_client_while_its_credential_is_verified(
    is_known: bool, forwarded: str | None
) -> None:
    accounts = Accounts(100, 8 * 100_000)  # of which one client may send an eighth
    connection = accounts.open("127.0.0.1", is_many=forwarded is not None)
    authenticator = SlowAuthenticator()
    http = HttpSettings(trusted_proxies=["127.0.0.1"] if forwarded else [])
    admission = Admission(http, [("127.0.0.1", 8000)])
    routes = Routes(admission, http, lambda: 0.0, authenticator)  # type: ignore[arg-type]  # a part
    sizes: list[int] = []

    def handle(asked: HttpRequest, body: Any, responder: Any, owner: Any, client: str) -> None:
        sizes.append(len(body))
        responder.respond(200, b"{}", JSON_HEADERS)

    routes.add("/own", Route(handle, ("POST",)))
    extra = {"x-forwarded-for": forwarded} if forwarded else {}
    responders = [PlainResponder(connection) for _ in range(4)]
    for responder, size in zip(responders, (UNCOUNTED_BYTES, 60_000, 40_000, 20_000), strict=True):
        routes.handle(request(path="/own", extra=extra), bytes(size), responder)
    await asyncio.sleep(0)
    counted = next(each for each in accounts if each.key == (forwarded or "127.0.0.1"))
    assert counted.receiving == 100_000
    refusal = Refusal(HTTP["authentication-required"], "not known")
    owner = Principal(issuer="here", subject="ann")
    authenticator.decided.set_result(owner if is_known else refusal)
    for each in responders:
        await each.over()
    assert (counted.receiving, accounts.bytes.used) == (0, 0)
    assert [*accounts] == [connection]
    assert connection.uses == 1
    statuses = [each.status for each in responders]
    if is_known:
        assert statuses == [200, 200, 200, 503]
        assert sizes == [UNCOUNTED_BYTES, 60_000, 40_000]
        assert responders[3].headers["retry-after"] == "1"
        assert authenticator.noted == []
    else:
        assert statuses == [401] * 4
        assert authenticator.noted == [refusal] * 4


@on_a_loop
async def test_defect_behind_a_credential_that_is_verified_later_is_500(
    caplog: pytest.LogCaptureFixture,
) -> None:
    authenticator = SlowAuthenticator()
    http = HttpSettings()
    admission = Admission(http, [("127.0.0.1", 8000)])
    routes = Routes(admission, http, lambda: 0.0, authenticator)  # type: ignore[arg-type]  # a part

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    routes.add("/own", Route(fail, ("POST",)))
    here, gone = PlainResponder(), PlainResponder()
    for responder in (here, gone):
        routes.handle(request(path="/own"), b"", responder)
    await asyncio.sleep(0)
    authenticator.decided.set_result(Principal(issuer="here", subject="ann"))
    gone.is_gone = True
    await here.over()
    assert (here.status, gone.status) == (500, 0)
    assert caplog.text.count("internal error while serving an HTTP request") == 1
