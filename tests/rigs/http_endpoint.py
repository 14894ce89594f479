"""An HTTP endpoint without sockets: requests and responses are plain calls.

`PlainResponder` is what the HTTP server would be, and fails a test that writes what is not one
response. `serving` is a server behind an endpoint, with a clock that a test sets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST, frame, initialize_params
from trunkline import HttpLimits, HttpSettings, Server
from trunkline.accounts.account import Account, Accounts
from trunkline.accounts.client_key import client_key
from trunkline.auth.server.resource_server import resource_server_of
from trunkline.engine.log_limit import LogLimit
from trunkline.server.runtime.http_service import HttpService
from trunkline.transports.http.endpoint.exchange import Exchange
from trunkline.transports.http.endpoint.routes import Routes
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest
from trunkline.transports.http.response import Headers, Refusal

# Seconds after which a test that hangs is ended.
WAIT: Final = 30.0


def alone() -> Account:
    """Return the account of a client that has no others beside it."""
    return Accounts(100, 1 << 20).open("127.0.0.1")


class PlainResponder:
    """One response, as it is written."""

    def __init__(self, account: Account | None = None) -> None:
        # That of the connection, which lasts as long as the test.
        self.account = account or alone()
        self.exchange: Exchange | None = None
        self.is_gone = False
        self.unread = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_stream = False
        self.is_over = False

    def use_account(self, account: Account) -> None:
        self.account = account

    def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        assert not self.status, "a response was begun before"
        self._begin(status, headers)
        self.body = body
        self._end()

    def start(self, headers: Headers) -> None:
        assert not self.status, "a response was begun before"
        self._begin(200, headers)
        self.is_stream = True

    def write(self, data: bytes) -> None:
        assert self.is_stream, "there is no stream"
        assert not self.is_over, "the stream has ended"
        if not self.is_gone:
            self.body += data

    def end(self) -> None:
        assert self.is_stream, "there is no stream"
        assert not self.is_over, "the stream has ended"
        self._end()

    def hang_up(self) -> None:
        """Close the connection, as a client does."""
        self.is_gone = True
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.disconnected()

    def _begin(self, status: int, headers: Headers) -> None:
        self.status = status
        for name, value in headers:
            assert name.decode() not in self.headers, "a header is sent twice"
            self.headers[name.decode()] = value.decode()

    def _end(self) -> None:
        self.is_over, self.exchange = True, None

    # What a test asks

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The id of each event, and the message in it; of an empty event None."""
        assert self.headers["content-type"] == "text/event-stream"
        found = []
        for block in self.body.decode().split("\n\n"):
            lines = [
                line.partition(": ") for line in block.split("\n") if line[:1] not in ("", ":")
            ]
            if lines:
                assert {name for name, _, _ in lines} <= {"id", "retry", "data"}
                fields = {name: value for name, _, value in lines}
                data = fields["data"]
                found.append((fields.get("id", ""), json.loads(data) if data else None))
        return found

    @property
    def messages(self) -> list[Any]:
        """What was received, in whatever form."""
        if self.headers.get("content-type") == "application/json":
            return [self.json]
        return [message for _, message in self.events if message is not None]

    async def over(self) -> PlainResponder:
        """Wait for the end of the response."""
        async with asyncio.timeout(WAIT):
            while not self.is_over:
                await asyncio.sleep(0)
        return self

    async def received(self, count: int) -> list[Any]:
        """Wait for so many messages."""
        async with asyncio.timeout(WAIT):
            while not self.status or len(self.messages) < count:
                await asyncio.sleep(0)
        return self.messages


def request(
    method: str = "POST",
    path: str = "/mcp",
    *,
    client: str = "127.0.0.1",
    extra: dict[str, str] | None = None,
    **known: str | None,
) -> HttpRequest:
    """Return a request; `known` are the headers that have an attribute."""
    given = {
        "host": "localhost",
        "content_type": "application/json" if method == "POST" else None,
        **known,
    }
    values = {name: value.encode() for name, value in given.items() if value is not None}
    headers = [(name.encode(), value.encode()) for name, value in (extra or {}).items()]
    return HttpRequest(method, path, "", "1.1", headers, client, False, **values)


class Plain:
    """A server behind an endpoint, and what clients do with it."""

    def __init__(
        self, app: Server, settings: HttpSettings, limits: HttpLimits, auth: Any = None
    ) -> None:
        loop = asyncio.get_running_loop()
        self.app = app
        self.now = 1000.0
        self.service = HttpService(app._core, limits, LogLimit(loop, is_shared=True))
        admission = Admission(settings, [("127.0.0.1", 8000)])
        self.authenticator = None
        if auth is not None:
            self.authenticator = resource_server_of(
                auth,
                path="/mcp",
                public_url=settings.public_url,
                address="http://127.0.0.1:8000/mcp",
            )
        self.service.authenticator = self.authenticator
        self.routes = Routes(admission, settings, lambda: self.now, self.authenticator)
        self.routes.add_probes()
        self.endpoint = self.service.add_routes(self.routes, settings, "/mcp")
        self.responders: list[PlainResponder] = []
        self._connections: dict[str, Account] = {}

    def account(self, address: str) -> Account:
        """Return the account of a client, which has a connection until the end."""
        if address not in self._connections:
            is_proxy = self.routes.admission.is_proxy(address)
            accounts = self.app._core.runtime.accounts
            self._connections[address] = accounts.open(client_key(address), is_many=is_proxy)
        return self._connections[address]

    def send(self, asked: HttpRequest, body: Any = b"") -> PlainResponder:
        """Send a request as the HTTP server would."""
        responder = PlainResponder(self.account(asked.client))
        self.responders.append(responder)
        refusal = self.routes.admit(asked)
        if refusal is None:
            self.routes.handle(asked, body, responder)
        else:
            assert isinstance(refusal, Refusal)
            self.routes.refuse(responder, refusal, asked)
        return responder

    def single(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        id: Any = 1,
        meta: dict[str, Any] = META,
        **headers: Any,
    ) -> PlainResponder:
        """Send a single request of 2026-07-28."""
        params = params or {}
        extra = {"mcp-method": method, **headers.pop("extra", {})}
        name = params.get("name") or params.get("uri") or params.get("taskId")
        if name is not None:
            extra["mcp-name"] = name
        known = {"protocol_version": PER_REQUEST, **headers}
        asked = request(extra=extra, **known)
        return self.send(asked, frame(method, {**params, "_meta": meta}, id))

    def call(self, tool: str, **given: Any) -> PlainResponder:
        """Call a tool, by a single request."""
        arguments = given.pop("arguments", {})
        return self.single("tools/call", {"name": tool, "arguments": arguments}, **given)

    def open(self, revision: str = HANDSHAKE, **headers: Any) -> PlainSession:
        """Open a session."""
        opening = frame("initialize", initialize_params(revision))
        opened = self.send(request(**headers), opening)
        assert opened.status == 200, opened.body
        session = PlainSession(self, opened, revision, headers)
        assert session.tell("notifications/initialized").status == 202
        return session


class PlainSession:
    """A session of a client."""

    def __init__(
        self, plain: Plain, opened: PlainResponder, revision: str, headers: dict[str, Any]
    ) -> None:
        self.plain = plain
        self.opened = opened
        self.id = opened.headers["mcp-session-id"]
        self.headers = {**headers, "session_id": self.id, "protocol_version": revision}
        self.http = plain.endpoint.sessions._sessions[self.id]

    def ask(
        self, method: str, params: dict[str, Any] | None = None, *, id: Any = 2, **headers: Any
    ) -> PlainResponder:
        asked = request(**{**self.headers, **headers})
        return self.plain.send(asked, frame(method, params, id))

    def call(self, tool: str, *, id: Any = 2, **given: Any) -> PlainResponder:
        arguments, meta = given.pop("arguments", {}), given.pop("meta", None)
        params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        return self.ask("tools/call", params, id=id, **given)

    def tell(self, method: str, params: dict[str, Any] | None = None) -> PlainResponder:
        return self.ask(method, params, id=None)

    def get(self, last_event_id: str | None = None, **headers: Any) -> PlainResponder:
        known = {**self.headers, "last_event_id": last_event_id, **headers}
        return self.plain.send(request("GET", **known))

    def delete(self, **headers: Any) -> PlainResponder:
        return self.plain.send(request("DELETE", **{**self.headers, **headers}))


@asynccontextmanager
async def serving(
    app: Server,
    settings: HttpSettings | None = None,
    limits: HttpLimits | None = None,
    auth: Any = None,
) -> AsyncIterator[Plain]:
    """Serve; at the end every response has ended and nothing is left."""
    async with asyncio.timeout(WAIT), app._core.runtime.opened():
        plain = Plain(app, settings or HttpSettings(), limits or HttpLimits(), auth)
        yield plain
        await plain.service.close()
        assert all(each.is_over or each.is_gone for each in plain.responders)
        assert not len(plain.endpoint.sessions)
        core = app._core
        assert (
            core.runtime.in_flight,
            core.runtime.budget.used,
            len(core.runtime.connections),
        ) == (0, 0, 0)
        for account in core.runtime.accounts:
            assert account.uses == 1, account
            assert (account.calls, account.requests, account.budget.used) == (0, 0, 0)
