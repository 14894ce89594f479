"""Streamable HTTP as a client for tests speaks it, in both eras.

`StreamableHttpTransport` follows the contract of `trunkline.transports`, so a `Client` connects
through it, and a script can send bytes of its own. It is written from the specification; nothing
of the server is used.

The rules that live here, and only here:

* Each message is a POST of its own.                      [MCP 2025-11-25, basic/transports]
* The session id in the response to `initialize` is sent with every later request, and so is the
  negotiated version since 2025-06-18. After `notifications/initialized` a stream is opened by GET,
  and DELETE ends the session. A stream that ends early is resumed by GET with its last event id.
* In 2026-07-28 headers repeat the version, the method, the name and the parameters that a tool
  declares; `notifications/cancelled` closes the stream of its request and is not sent.
                                            [MCP 2026-07-28, basic/transports/streamable-http]
* A message that is not a request may be refused with 400, and the conversation goes on. Any other
  error without a JSON-RPC message in its body ends it.
* HTTP keeps no order among connections. So the next message is sent once the last one was written,
  and after `initialize`, a notification or a response once that was answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tests.http_client.base import EVENTS, JSON, HttpTransport
from tests.http_client.connection import Exchange, HttpFault, within_step
from tests.http_client.messages import (
    ToolHeaders,
    header_paths,
    is_request,
    key_of,
    member,
    messages_of,
    parse,
    per_request_headers,
)
from trunkline.errors import TransportError
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.jsonrpc.framing.sse import EventReader
from trunkline.jsonrpc.policy import Policy
from trunkline.judge.trace.reader import TraceEntry, TraceHttp
from trunkline.spec.revisions import V2025_06_18, V2026_07_28, Window
from trunkline.transports.base import Frame, ignore

_PER_REQUEST: Final = Window(V2026_07_28)
_SENDS_VERSION: Final = Window(V2025_06_18, V2026_07_28)
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
# Times that a stream is resumed in a row without a single event.
_MAX_RESUMPTIONS: Final = 5


class _Conversation(Exchange):
    """A POST or GET of Streamable HTTP, and the messages of its response."""

    def __init__(self, owner: StreamableHttpTransport, number: int, *request: Any) -> None:
        super().__init__(*request)
        self._owner = owner
        # A judge calls everything that belongs to one request a stream.
        self.number = number
        self.events: EventReader | None = None
        self.event_count = 0
        # The requests that it carries and that are open, by key.
        self.awaited: dict[tuple[str, str], dict[str, Any]] = {}
        self.has_answered = False
        self.is_per_request = False
        self.on_head = self._begun
        self.on_end = self._ended
        facts = TraceHttp(self.method, self.target, None, dict(self.sent_headers))
        self._tell("client", self.sent_body, facts)

    def _tell(
        self,
        sender: Any,
        raw: bytes | None,
        facts: TraceHttp | None = None,
        event: dict[str, Any] | None = None,
        *,
        ends: bool = False,
    ) -> None:
        self._owner.on_entry(
            TraceEntry(
                sender=sender,
                transport="streamable-http",
                raw=raw,
                http=facts,
                stream=self.number,
                event=event,
                ends=ends,
            )
        )

    def _tell_answer(
        self, raw: bytes | None, event: dict[str, Any] | None = None, *, ends: bool = False
    ) -> None:
        self._tell("server", raw, TraceHttp("", "", self.status, self.headers), event, ends=ends)

    def _begun(self) -> None:
        if 200 <= self.status < 300 and self.content_type == EVENTS:
            self.events = EventReader(self._owner.limit, empty=True)
            self.on_data = self._receive_events
            self._owner.streams.add(self)

    def _receive_events(self, data: bytes) -> None:
        assert self.events is not None
        for event in self.events.feed(data):
            self.event_count += 1
            if isinstance(event, Oversize):
                self._owner.deliver(event)
                continue
            fields = {"id": event.id, "retry": event.retry, "event": event.event}
            known = {name: value for name, value in fields.items() if value is not None}
            raw = event.data.encode() if event.data else None
            self._tell_answer(raw, known)
            if raw is not None and event.event == "message":
                self.deliver(raw)

    def deliver(self, frame: bytes) -> None:
        """Deliver what answers, and note which of the requests that was."""
        for message in messages_of(parse(frame)):
            if "method" not in message:
                self.has_answered = True
                request = self.awaited.pop(key_of(message.get("id")), None)
                if request is not None:
                    self._owner.note_answer(request, message, self)
        self._owner.deliver(frame)

    def _ended(self, fault: HttpFault | None) -> None:
        if fault is None and self.events is not None:
            self._tell_answer(None, ends=True)
        elif fault is None:
            self._tell_answer(bytes(self.body) or None, ends=True)
            self._read_body()
        self._owner.over(self, fault)

    def _read_body(self) -> None:
        body = bytes(self.body)
        if self.status < 400:
            if body and self.content_type == JSON:
                self.deliver(body)
            elif body or self.status >= 300:
                self._owner.fail(f"{self.method} was answered {self.status} {self.content_type!r}")
        elif self.method == "POST" and messages_of(parse(body)):
            self.deliver(body)
        elif self.method == "POST" and (self.status != 400 or self.awaited):
            self._owner.fail(f"POST was answered with the HTTP status {self.status}")


class StreamableHttpTransport(HttpTransport):
    """Streamable HTTP of both eras; which one counts is decided for each message."""

    def __init__(self, url: str, policy: Policy) -> None:
        super().__init__(url, policy, "http")
        self.limit = self._limit
        # Called with each request, response and event, for a judge.
        self.on_entry: Callable[[TraceEntry], object] = ignore
        self._session_id: str | None = None
        self._negotiated: str | None = None
        self._has_stream = False
        self._named_version: str | None = None  # by the last request of the per-request era
        self._tools: ToolHeaders = {}
        self._open_posts: dict[tuple[str, str], _Conversation] = {}
        # Those whose response is an event stream.
        self.streams: set[_Conversation] = set()
        self._count = 0

    async def _open(self) -> None:
        await self._pool.warm_up()

    # Sending

    async def _post(self, frame: bytes, spoken: str | None) -> None:
        value = parse(frame)
        if self._closes_a_stream(value):
            return
        version = self._version(value, spoken)
        headers = {"Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}"}
        if version is None:
            headers |= self._session_headers()
        else:
            headers |= per_request_headers(value, version, self._tools)
            self._named_version = version
        post = self._conversation("POST", headers, frame)
        post.is_per_request = version is not None
        requests = [each for each in messages_of(value) if is_request(each)]
        post.awaited = {key_of(each["id"]): each for each in requests}
        self._open_posts |= dict.fromkeys(post.awaited, post)
        await self._pool.send(post)
        methods = [each.get("method") for each in messages_of(value)]
        if not requests or "initialize" in methods:
            await within_step(post.is_over.wait(), f"the answer to a POST of {methods}")
        is_open = version is None and self._negotiated is not None and not self._has_stream
        if is_open and methods in (["notifications/initialized"], ["initialized"]):
            self._has_stream = True
            await self._open_stream()

    def _conversation(
        self, method: str, headers: dict[str, str], body: bytes | None = None
    ) -> _Conversation:
        self._count += 1
        return _Conversation(self, self._count, method, self.url.path, headers, body)

    def _version(self, value: Any, spoken: str | None) -> str | None:
        """Return the version that headers name, or None for a message of a session."""
        named = member(value, "params", "_meta", _VERSION_KEY)
        if isinstance(named, str):
            return named
        if member(value, "method") == "initialize":
            return None
        spoken = spoken or self._negotiated or self._named_version
        return spoken if spoken is not None and _PER_REQUEST.holds(spoken) else None

    def _session_headers(self) -> dict[str, str]:
        headers = {}
        if self._session_id is not None:
            headers["Mcp-Session-Id"] = self._session_id
        if self._negotiated is not None and _SENDS_VERSION.holds(self._negotiated):
            headers["MCP-Protocol-Version"] = self._negotiated
        return headers

    def _closes_a_stream(self, value: Any) -> bool:
        """Cancel a request; return True if nothing is sent for that."""
        if member(value, "method") not in ("notifications/cancelled", "cancelled"):
            return False
        params = member(value, "params")
        token = member(params, "progressToken")
        for key, post in list(self._open_posts.items()):
            request = post.awaited.get(key)
            is_meant = key == key_of(member(params, "requestId")) or (
                token is not None and token == member(request, "params", "_meta", "progressToken")
            )
            if not is_meant:
                continue
            if post.is_per_request:
                self._forget(post)
                post.abort()
                return True
            post.awaited.pop(key, None)  # no answer may come: its stream is not resumed
        return False

    # Receiving

    def deliver(self, frame: Frame) -> None:
        self._deliver(frame)

    def fail(self, why: str) -> None:
        self._report(TransportError(why))

    def note_answer(
        self, request: dict[str, Any], answer: dict[str, Any], exchange: _Conversation
    ) -> None:
        """Learn what later requests need from an answer."""
        if request["method"] == "initialize" and "result" in answer:
            self._session_id = exchange.headers.get("mcp-session-id", self._session_id)
            version = member(answer, "result", "protocolVersion")
            self._negotiated = version if isinstance(version, str) else None
        elif request["method"] == "tools/list":
            for tool in member(answer, "result", "tools") or ():
                paths = list(header_paths(member(tool, "inputSchema")))
                self._tools[str(member(tool, "name"))] = paths

    def drop_streams(self) -> None:
        """Lose the connections of all streams, as a network does."""
        for stream in self.streams:
            if stream.connection is not None:
                stream.connection.abort()

    def over(self, exchange: _Conversation, fault: HttpFault | None) -> None:
        """Go on after the end of a response."""
        self._forget(exchange)
        if self._is_reported or self._closing is not None:
            return
        is_cut = bool(exchange.awaited) and not exchange.has_answered
        is_stream = exchange.events is not None
        if is_stream and (exchange.method == "GET" or (is_cut and not exchange.is_per_request)):
            self._start(self._resume(exchange))
        elif fault is not None:
            self._report(fault)
        elif is_cut:
            self.fail(f"the response to {exchange.method} ended without an answer")

    def _forget(self, exchange: _Conversation) -> None:
        self.streams.discard(exchange)
        for key in exchange.awaited:
            if self._open_posts.get(key) is exchange:
                del self._open_posts[key]

    # Streams by GET

    async def _open_stream(self) -> None:
        """Open the stream for what answers nothing; a server without one says so."""
        stream = self._conversation("GET", {"Accept": EVENTS, **self._session_headers()})
        await self._pool.send(stream)
        await within_step(stream.has_head.wait(), "the head of a stream")
        if stream.status not in (200, 405):
            raise TransportError(f"GET was answered with the HTTP status {stream.status}")

    async def _resume(self, ended: _Conversation) -> None:
        """Continue a stream that ended early, from its last event."""
        last, awaited, failures, retry_ms = ended, ended.awaited, 0, 0
        assert last.events is not None
        last_id = last.events.last_event_id
        if not last_id and awaited:
            raise TransportError("a stream ended before its answer, and cannot be resumed")
        while True:
            assert last.events is not None
            retry_ms = last.events.retry_ms or retry_ms
            await asyncio.sleep(retry_ms / 1000)
            headers = {"Accept": EVENTS, **self._session_headers()}
            if last_id:
                headers["Last-Event-ID"] = last_id
            stream = self._conversation("GET", headers)
            stream.awaited = awaited
            self._open_posts |= dict.fromkeys(awaited, stream)
            stream.on_end = ignore  # what follows its end is here
            await self._pool.send(stream)
            await stream.is_over.wait()
            self._forget(stream)
            if stream.events is None:
                raise TransportError(f"a stream was not resumed: HTTP status {stream.status}")
            if ended.method == "POST" and not awaited:
                return
            failures = 0 if stream.event_count else failures + 1
            if failures > _MAX_RESUMPTIONS:
                raise TransportError("a stream ended at once, as often as it was resumed")
            last, last_id = stream, stream.events.last_event_id or last_id

    # The end

    async def _end_session(self) -> None:
        if self._session_id is None:
            return
        ended = self._conversation("DELETE", self._session_headers())
        try:
            await self._pool.send(ended)
            await within_step(ended.is_over.wait(), "the answer to DELETE")
        except TransportError:
            pass  # the server is gone, and the session with it
