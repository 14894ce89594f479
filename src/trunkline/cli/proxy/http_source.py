"""Clients of a proxy over HTTP: what a relay sees as one stream, and HTTP as many exchanges.

An `HttpSource` is the service behind an HTTP endpoint. It opens a connection to the server for each
session, and one that all single requests share; `serve` runs a relay between the two.

The rules that live here, and only here:

* An answer goes to the POST that asked, by its id; progress goes there by its token. Another
  message goes to the only open POST, else to the stream that the client opened by GET, else to the
  latest POST. News about lists and resources go to the stream alone.
* Single requests of many clients share a connection, so their ids and progress tokens are replaced
  by unique ones, and put back in what the server sends. A client that hangs up cancels its request.
* Headers of a single request agree with its body.
                                        [MCP 2026-07-28, basic/transports/streamable-http]
* What is open when the server ends is answered with an error and status 502. The session ends with
  it, so that the next request of the client is answered with 404.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct
from msgspec.json import Decoder, encode

from ...accounts.account import Accounts
from ...accounts.client_key import client_key
from ...jsonrpc.messages import ErrorObject, Shown
from ...server.runtime.http_service import status_of_error
from ...spec.error_kinds import ErrorKind
from ...spec.http_conditions import HTTP
from ...spec.mcp.http_status import MCP
from ...spec.mcp.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from ...spec.mcp.transports import POLLED, RESUMED_STREAMS
from ...spec.profiles import profile
from ...spec.revisions import HANDSHAKE, LATEST, PER_REQUEST, REVISIONS
from ...transports.base import ignore
from ...transports.http.endpoint.event_log import EventLog
from ...transports.http.endpoint.request_headers import header_mismatch, name_member
from ...transports.http.endpoint.single_request import SingleRequest
from .http_target import PARSE_ERROR, error_frame, one_line

if TYPE_CHECKING:
    from ...accounts.account import Account
    from ...errors import InvalidMessage, TransportError
    from ...jsonrpc.limits import TransportName
    from ...store.base import Store
    from ...transports.base import Frame
    from ...transports.http.endpoint.exchange import Exchange
    from ...transports.http.endpoint.old_sse import OldSseSession
    from ...transports.http.endpoint.sessions import HttpSession
    from ...transports.http.gate.authentication import Owner
    from ...transports.http.request import HttpRequest
    from ...transports.http.settings import HttpLimits
    from ...transports.websocket.server import AcceptedWebSocket

__all__ = [
    "HttpSource",
    "OldSseSource",
    "SessionSource",
    "SharedSource",
    "SourceConnection",
    "WebSocketSource",
]

INVALID_REQUEST: Final = -32600
_UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError)
_LOST: Final = "trunkline proxy: the connection to the server has ended"
_CHANGES: Final = ("/list_changed", "notifications/resources/updated")
_BAD_GATEWAY: Final = HTTP["server-behind-unavailable"].status
_INVALID: Final = MCP["invalid-message"].status


class _ProxiedMessage(Shown, Struct, frozen=True):
    """A message, of which the proxy reads little."""

    method: Any = UNSET
    id: Any = UNSET
    params: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()

    @property
    def is_request(self) -> bool:
        return self.method is not UNSET and type(self.id) in (int, str)


_one: Final = Decoder(_ProxiedMessage).decode
_many: Final = Decoder(list[_ProxiedMessage]).decode
_error: Final = Decoder(ErrorObject).decode
_members: Final = Decoder(dict[str, Raw]).decode
_any: Final = Decoder().decode
_raws: Final = Decoder(list[Raw]).decode


def _read(frame: bytes) -> list[_ProxiedMessage] | None:
    """Return the messages of a frame, or None if it has none."""
    try:
        return (_many(frame) if frame.lstrip()[:1] == b"[" else [_one(frame)]) or None
    except _UNREADABLE:
        return None


def _inside(raw: Raw) -> dict[str, Raw]:
    """Return the members of an object that is not decoded yet; of anything else none."""
    try:
        return _members(raw) if bytes(raw) else {}
    except _UNREADABLE:
        return {}


def _value(members: dict[str, Raw], name: str) -> Any:
    return _any(members[name]) if name in members else None


def _hashable(members: dict[str, Raw], name: str) -> Any:
    value = _value(members, name)
    return value if type(value) in (int, str) else None


def _revision_of(meta: dict[str, Raw]) -> str:
    version = _value(meta, PROTOCOL_VERSION)
    return version if version in REVISIONS else LATEST


def _error_of(message: _ProxiedMessage) -> ErrorObject | None:
    if not bytes(message.error):
        return None
    try:
        return _error(message.error)
    except _UNREADABLE:
        return ErrorObject(0, "")


class SourceConnection:
    """The side of a relay that leads to clients over HTTP."""

    def __init__(self) -> None:
        self.name: TransportName = "http"
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        # Called with each message of a client before it is forwarded, and its HTTP request.
        self.observe: Callable[[Frame, HttpRequest | None], object] = ignore
        # Called after `close`.
        self.on_closed: Callable[[], object] = ignore
        self.is_connected = False
        self._sent = 0
        # How it has ended, perhaps before the relay was there.
        self._is_over = False
        self._error: TransportError | None = None
        # What arrived before the relay was there; None afterwards.
        self._early: list[tuple[bytes, HttpRequest | None]] | None = []

    @property
    def backlog(self) -> int:
        """The number of bytes that clients have not taken."""
        return 0

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._sent - self.backlog

    async def connect(self) -> None:
        """Begin to carry messages."""
        self.is_connected = True
        early, self._early = self._early or [], None
        for frame, request in early:
            self._forward(frame, request)
        if self._is_over:
            self._ended(self._error)

    def _forward(self, frame: bytes, request: HttpRequest | None) -> None:
        if self._early is not None:
            self._early.append((frame, request))
            return
        frame = one_line(frame)
        self.observe(frame, request)
        self.on_message(frame, None)

    def _ended(self, error: TransportError | None = None) -> None:
        self._is_over, self._error = True, error
        if self._early is None:
            self.is_connected = False
            self.on_error(error)


class SessionSource(SourceConnection):
    """The client of one session; it implements the transport contract."""

    def __init__(self, session: HttpSession) -> None:
        super().__init__()
        self.session = session
        session.is_connected = True
        session.on_message = self._receive
        session.on_end = self._ended
        session.on_drained = lambda: self.on_drained()
        # The exchanges that wait for an answer, by the id of the request, the latest last.
        self._open: dict[int | str, Exchange] = {}
        self._tokens: dict[int | str, Exchange] = {}
        self._initialize: Any = UNSET

    @property
    def backlog(self) -> int:
        """The number of bytes that the client has not taken."""
        return self.session.backlog

    def _receive(self, body: Any, exchange: Exchange) -> None:
        messages = _read(body) if type(body) is bytes else None
        if messages is None:
            self._refuse(exchange, UNSET, "Parse error: not a JSON-RPC message", PARSE_ERROR)
            return
        asked = [each for each in messages if each.is_request]
        ids = [each.id for each in asked]
        if len(set(ids)) < len(ids) or not self._open.keys().isdisjoint(ids):
            self._refuse(exchange, ids[0], "The id is in use", INVALID_REQUEST)
            return
        for each in asked:
            self._open[each.id] = exchange
            token = _hashable(_inside(_inside(each.params).get("_meta", Raw())), "progressToken")
            if token is not None:
                self._tokens[token] = exchange
            if each.method == "initialize":
                self._initialize = each.id
        self._forward(body, exchange.request)
        for each in messages:
            if each.method == "notifications/cancelled":
                self._cancel(_hashable(_inside(each.params), "requestId"))
        if not asked:
            self.session.settled(exchange)

    def _cancel(self, id: Any) -> None:
        """End a request that the server need not answer any more."""
        exchange = self._open.pop(id, None)
        if exchange is not None and all(other is not exchange for other in self._open.values()):
            self._forget_tokens(exchange)
            self.session.settled(exchange)

    def _forget_tokens(self, exchange: Exchange) -> None:
        self._tokens = {
            token: other for token, other in self._tokens.items() if other is not exchange
        }

    def _refuse(self, exchange: Exchange, id: Any, text: str, code: int) -> None:
        exchange.status = exchange.status or _INVALID
        self.session.answer(error_frame(id, text, code), exchange, ErrorObject(code, text))

    # -- what the server sends ---------------------------------------------------------------

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send a message to the exchange that it belongs to."""
        self._sent += len(frame)
        messages = _read(frame) or [_ProxiedMessage()]
        answered = [each for each in messages if each.method is UNSET and self._has(each.id)]
        if not answered:
            self._send_other(frame, messages[0])
            return
        exchange = self._open[answered[0].id]
        for each in answered:
            del self._open[each.id]
            if each.id == self._initialize:
                self._began(each)
        if any(other is exchange for other in self._open.values()):
            exchange.send(frame)  # others of its batch follow
            return
        self._forget_tokens(exchange)
        error = _error_of(answered[0]) if len(messages) == 1 else None
        self.session.answer(frame, exchange, error)

    def _has(self, id: Any) -> bool:
        return type(id) in (int, str) and id in self._open

    def _began(self, answer: _ProxiedMessage) -> None:
        """Use the negotiated revision, which decides about streams."""
        self._initialize = UNSET
        revision = _value(_inside(answer.result), "protocolVersion")
        if revision in REVISIONS:
            self.session.is_resumable = RESUMED_STREAMS.holds(revision)
            self.session.primes = POLLED.holds(revision)

    def _send_other(self, frame: bytes, message: _ProxiedMessage) -> None:
        method = message.method if isinstance(message.method, str) else ""
        if not method:
            return  # an answer to a request that is not open
        exchange = None
        if method == "notifications/progress":
            exchange = self._tokens.get(_hashable(_inside(message.params), "progressToken"))
        if exchange is None and not method.endswith(_CHANGES):
            exchange = self._likely_exchange()
        self.session.send(frame, exchange)

    def _likely_exchange(self) -> Exchange | None:
        found = list(dict.fromkeys(self._open.values()))
        listens = any(each.request.method == "GET" for each in self.session.exchanges)
        return found[-1] if len(found) == 1 or (found and not listens) else None

    async def close(self) -> None:
        """Answer what is open with an error, and end the session."""
        self.is_connected = False
        for id, exchange in list(self._open.items()):
            if not exchange.is_done:
                exchange.status = _BAD_GATEWAY
                exchange.answer(error_frame(id, _LOST))
        self._open.clear()
        await self.session.close()
        self.on_closed()


class OldSseSource(SourceConnection):
    """The client of one session of HTTP+SSE, whose stream is like a socket."""

    def __init__(self, session: OldSseSession) -> None:
        super().__init__()
        self.name = "sse"
        self.session = session
        session.is_connected = True
        session.on_message = self._receive
        session.on_end = self._ended
        session.on_error = lambda _: self._ended()
        session.on_drained = lambda: self.on_drained()

    @property
    def backlog(self) -> int:
        """The number of bytes that the client has not taken."""
        return self.session.backlog

    def _receive(self, body: Any, post: Any) -> None:
        if type(body) is not bytes or _read(body) is None:
            if post.status != HTTP["body-too-large"].status:
                post.status = _INVALID
            post.body = error_frame(UNSET, "Parse error: not a JSON-RPC message", PARSE_ERROR)
        else:
            self._forward(body, post.request)

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send a message on the stream."""
        self._sent += len(frame)
        self.session.send(frame)

    async def close(self) -> None:
        """End the stream."""
        self.is_connected = False
        await self.session.close()
        self.on_closed()


class WebSocketSource(SourceConnection):
    """The client of one WebSocket, which is connected already."""

    def __init__(self, inner: AcceptedWebSocket) -> None:
        super().__init__()
        self.name = "websocket"
        self._inner = inner
        inner.on_message = self._receive
        inner.on_error = self._ended
        inner.on_drained = lambda: self.on_drained()
        inner.on_end = self._ended
        self.pause, self.resume = inner.pause, inner.resume

    @property
    def backlog(self) -> int:
        """The number of bytes that the client has not taken."""
        return self._inner.backlog

    def _receive(self, frame: Frame, route: Any) -> None:
        if isinstance(frame, bytes):
            self._forward(frame, None)
        else:
            self.on_message(frame, None)  # it ends the relay

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send a message."""
        self._sent += len(frame)
        self._inner.send(frame)

    async def close(self) -> None:
        """Close the connection, after what was sent."""
        self.is_connected = False
        await self._inner.close()
        self.on_closed()


class _ForwardedRequest(Shown, Struct):
    """A single request that waits for its answer."""

    carrier: SingleRequest
    exchange: Exchange
    id: Raw
    token: Raw


class SharedSource(SourceConnection):
    """The clients of single requests; it implements the transport contract."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, _ForwardedRequest] = {}
        self._last_id = 0

    def carrier(self) -> SingleRequest:
        """Return a transport for one request."""
        single = SingleRequest()
        single.on_message = partial(self._receive, single)
        single.on_gone = partial(self._gone, single)
        return single

    @property
    def backlog(self) -> int:
        """The number of bytes that clients have not taken."""
        return sum(each.exchange.unread for each in self._open.values())

    def _receive(self, single: SingleRequest, body: Any, exchange: Exchange) -> None:
        messages = _read(body) if type(body) is bytes else None
        if messages is None:
            self._refuse(single, UNSET, "Parse error: not a JSON-RPC message", PARSE_ERROR)
            return
        message = messages[0]
        is_batch = body.lstrip()[:1] == b"["
        if is_batch or not isinstance(message.method, str):
            self._refuse(single, UNSET, "A POST carries one request", INVALID_REQUEST)
            return
        params = _inside(message.params)
        meta = _inside(params.get("_meta", Raw()))
        fault = _header_fault(exchange.request, message, params, meta)
        if fault is not None:
            code = profile("mcp").to_send(ErrorKind.HEADER_MISMATCH, _revision_of(meta))[0]
            self._refuse(single, message.id, f"Header mismatch: {fault}", code)
        elif message.is_request:
            self._ask(single, body, params, meta, exchange)
        else:
            if message.method != "notifications/cancelled":  # it would name another's request
                self._forward(body, exchange.request)
            single.settled(exchange)

    def _ask(
        self,
        single: SingleRequest,
        body: bytes,
        params: dict[str, Raw],
        meta: dict[str, Raw],
        exchange: Exchange,
    ) -> None:
        """Forward a request with an id that no other client uses."""
        self._last_id += 1
        number = Raw(b"%d" % self._last_id)
        members = _members(body)
        shared = _ForwardedRequest(
            single, exchange, members["id"], meta.get("progressToken", Raw())
        )
        members["id"] = number
        if "progressToken" in meta:
            meta["progressToken"] = number
            members["params"] = Raw(encode({**params, "_meta": meta}))
        self._open[self._last_id] = shared
        self._forward(encode(members), exchange.request)

    def _refuse(self, single: SingleRequest, id: Any, text: str, code: int) -> None:
        exchange = single.exchange
        if exchange is not None:
            exchange.status = exchange.status or _INVALID
            single.answer(error_frame(id, text, code), exchange, None)

    def _gone(self, single: SingleRequest) -> None:
        """Cancel the request of a client that has hung up."""
        for id, shared in list(self._open.items()):
            if shared.carrier is single:
                del self._open[id]
                params = {"requestId": id, "reason": "the client has closed the connection"}
                method = "notifications/cancelled"
                self._forward(encode({"jsonrpc": "2.0", "method": method, "params": params}), None)

    # -- what the server sends ---------------------------------------------------------------

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send a message to the client whose request it belongs to."""
        self._sent += len(frame)
        messages = _read(frame)
        if messages is None:
            return
        # Each message of a batch belongs to a client of its own.
        frames = _raws(frame) if frame.lstrip()[:1] == b"[" else [frame]
        for message, frame in zip(messages, map(bytes, frames), strict=True):
            if message.method is UNSET:
                shared = self._open.pop(message.id, None) if type(message.id) is int else None
                if shared is not None:
                    answer = _restored(frame, "result", message.id, shared)
                    shared.carrier.answer(answer, shared.exchange, _error_of(message))
            else:
                id, shared = self._owner(message)
                if shared is not None:
                    shared.carrier.send(_restored(frame, "params", id, shared), shared.exchange)

    def _owner(self, message: _ProxiedMessage) -> tuple[int, _ForwardedRequest | None]:
        """Return the request that a notification is about, or the only one that is open."""
        params = _inside(message.params)
        meta = _inside(params.get("_meta", Raw()))
        named = (_value(params, "progressToken"), _value(meta, SUBSCRIPTION_ID))
        for id in named:
            if type(id) is int and id in self._open:
                return id, self._open[id]
        if named == (None, None) and len(self._open) == 1:
            return next(iter(self._open.items()))
        return 0, None

    async def close(self) -> None:
        """Answer what is open with an error."""
        self.is_connected = False
        for shared in self._open.values():
            if not shared.exchange.is_done:
                shared.exchange.status = _BAD_GATEWAY
                answer = error_frame(shared.id, _LOST)
                shared.carrier.answer(answer, shared.exchange, None)
        self._open.clear()
        self.on_closed()


def _header_fault(
    request: HttpRequest, message: _ProxiedMessage, params: dict[str, Raw], meta: dict[str, Raw]
) -> str | None:
    member = name_member(message.method)
    name, version = _value(params, member or ""), _value(meta, PROTOCOL_VERSION)
    return header_mismatch(
        request,
        message.method,
        version if isinstance(version, str) else None,
        name if isinstance(name, str) else None,
        is_request=message.is_request,
    )


def _restored(frame: bytes, member: str, id: int, shared: _ForwardedRequest) -> bytes:
    """Return a message with the id and the token that the client gave."""
    members = _members(frame)
    if "id" in members:
        members["id"] = shared.id
    inner = _inside(members.get(member, Raw()))
    meta = _inside(inner.get("_meta", Raw()))
    changes: dict[str, Raw] = {}
    if _value(meta, SUBSCRIPTION_ID) == id:
        changes["_meta"] = Raw(encode({**meta, SUBSCRIPTION_ID: shared.id}))
    if bytes(shared.token) and _value(inner, "progressToken") == id:
        changes["progressToken"] = shared.token
    if changes:
        members[member] = Raw(encode({**inner, **changes}))
    return encode(members)


class HttpSource:
    """The service behind the endpoint of a proxy; `serve` is called with each new connection."""

    def __init__(self, limits: HttpLimits, serve: Callable[[SourceConnection], object]) -> None:
        self.handshake = frozenset(each.encode() for each in REVISIONS if HANDSHAKE.holds(each))
        self.per_request = frozenset(each.encode() for each in REVISIONS if PER_REQUEST.holds(each))
        self.is_ready = True
        self.accounts = Accounts(limits.requests)
        # Set by the listener: forgets a session that has ended.
        self.on_session_end: Callable[[HttpSession], object] = ignore
        self._limits = limits
        self._serve = serve
        self._shared: SharedSource | None = None
        self._store: Store | None = None

    def open_session(self, session: HttpSession) -> None:
        """Connect a new session to a server of its own."""
        source = SessionSource(session)
        source.on_closed = lambda: self.on_session_end(session)
        self._serve(source)

    def open_old_sse(self, session: OldSseSession) -> None:
        """Connect a new session of HTTP+SSE to a server of its own."""
        self._serve(OldSseSource(session))

    def open_websocket(self, connection: AcceptedWebSocket) -> None:
        """Connect a WebSocket to a server of its own."""
        self._serve(WebSocketSource(connection))

    def open_account(self, client: str, owner: Owner | None) -> Account:
        """Use the account of a client."""
        return self.accounts.open(client_key(client))

    def single(self, account: Account, owner: Owner | None) -> SingleRequest | None:
        """Return a transport for one request to the server that all single requests share."""
        account.close()  # what is in flight is up to the server
        if self._shared is None:
            self._shared = shared = SharedSource()
            shared.on_closed = self._forget_shared
            self._serve(shared)
        return self._shared.carrier()

    def _forget_shared(self) -> None:
        self._shared = None

    def event_log(self, session: HttpSession) -> EventLog:
        """Return a log for the events of a session."""
        if self._store is None:
            from ...store.memory import MemoryStore

            self._store = MemoryStore()
        name = hashlib.sha256(session.id.encode()).hexdigest()
        return EventLog(self._store, name, self._limits, ignore)

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new requests; the proxy ends its connections."""
        self.is_ready = False

    async def close(self) -> None:
        """Do nothing: the proxy waits for its connections."""

    def handshake_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error, in a session."""
        return status_of_error(error, max(self.handshake).decode())

    def per_request_status(self, error: ErrorObject | InvalidMessage) -> int:
        """Return the HTTP status of an error to a single request."""
        return status_of_error(error, max(self.per_request).decode())
