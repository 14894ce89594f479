"""Event streams that a client opens by GET, and requests without a body.

The rules that live here, and only here:

* The stream for what belongs to no request is opened after `notifications/initialized`. 405 means
  that the server offers none.                 [MCP 2025-11-25, basic/transports]
* A stream that was lost is reopened with the id of its last event, after the delay that the server
  asked for, or after 1 s, 2 s and so on up to 30 s. One that ended at once and brought nothing is
  not reopened sooner than that. If its events had no ids, what the server sent meanwhile is lost,
  which is reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....concurrency.backoff import backoff
from ....errors import AuthorizationFailed, TransportError
from ....jsonrpc.framing.framing import Oversize
from ....jsonrpc.framing.sse import EventReader
from ...base import ignore

if TYPE_CHECKING:
    from .connection import HttpClientConnection
    from .transport import HttpTransport

__all__ = ["RECONNECT_S", "GetStream", "PlainRequest", "SessionStream", "longest_wait"]

_EVENTS: Final = b"text/event-stream"
# Seconds between attempts to reopen a stream, if the server did not ask for a delay; at most.
RECONNECT_S: Final = 1.0
_LONGEST_RECONNECT_S: Final = 30.0
# A server that asks for less would be asked again as fast as it closes.
_SHORTEST_RECONNECT_S: Final = 0.1
# Bytes that are read of a body that does not count, before the connection is closed.
_MAX_IGNORED_BYTES: Final = 64 * 1024


def longest_wait(seconds: float) -> float:
    """Return a delay that a server asked for, within reason."""
    return min(max(seconds, _SHORTEST_RECONNECT_S), _LONGEST_RECONNECT_S)


class _Answered:
    """A request whose answer is a status: what is kept of it until then."""

    def __init__(self, transport: HttpTransport, path: bytes | None = None) -> None:
        self._transport = transport
        self._path = path
        self._done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._ignored = 0

    async def _run(self, lines: bytes) -> int:
        """Send it with the headers of a credential, and return the status."""
        raise NotImplementedError

    async def _run_with(self, lines: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
        self._done = asyncio.get_running_loop().create_future()
        self._ignored = 0
        return await self._run(lines), self._headers

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the status, and the headers if they may challenge the client."""
        self._status = status
        auth = self._transport.auth
        if auth is not None:
            self._headers = headers
            auth.responded(self._transport.url_of(self._path), status, headers)
        if self._transport.observer is not None:
            self._transport.observer.on_response(self, status, headers)

    def on_complete(self) -> None:
        """Return the status."""
        if not self._done.done():
            self._done.set_result(self._status)

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Raise in `run`."""
        if not self._done.done():
            self._done.set_exception(TransportError("the connection was lost"))


class PlainRequest(_Answered):
    """A request of which only the status of the response counts."""

    def __init__(
        self,
        transport: HttpTransport,
        method: bytes,
        *,
        path: bytes | None = None,
        body: bytes | None = None,
    ) -> None:
        super().__init__(transport, path)
        self._method = method
        self._body = body

    async def run(self, *, may_authorize: bool = True) -> int:
        """Send it, and return the status.

        Without `may_authorize` it has the credential of the client if there is one by now.

        Raises:
            TransportError: the server cannot be reached.
            AuthorizationFailed: the client could not obtain a credential.
        """
        transport = self._transport
        auth = transport.auth
        if auth is None:
            return await self._run(b"")
        method, url = self._method.decode("ascii"), transport.url_of(self._path)
        if not may_authorize:
            return await self._run(auth.headers(method, url) or b"")
        return await auth.run(method, url, self._run_with)

    async def _run(self, lines: bytes) -> int:
        transport = self._transport
        head = transport.session_head + lines
        request = transport.request(self._method, head, self._body, self._path)
        if transport.observer is not None:
            transport.observer.on_request(self, request)
        connection = await transport.pool.open(is_reserved=True)
        connection.send(request, self)
        try:
            status = await self._done
        except BaseException:  # a timeout too: the connection cannot be used again
            connection.forget()
            raise
        if self._ignored > _MAX_IGNORED_BYTES:
            connection.forget()
        return status

    def on_data(self, data: bytes) -> None:
        """Ignore the body, and its rest if it is long."""
        self._ignored += len(data)
        if self._ignored > _MAX_IGNORED_BYTES and not self._done.done():
            self.on_complete()

    def on_complete(self) -> None:
        """Return the status."""
        if self._transport.observer is not None:
            self._transport.observer.on_end(self)
        super().on_complete()

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Raise in `run`."""
        if self._transport.observer is not None:
            self._transport.observer.on_end(self)
        super().on_lost(error, was_reused=was_reused, has_begun=has_begun)


class GetStream(_Answered):
    """An event stream opened by GET, for what the server sends or to resume another."""

    def __init__(
        self, transport: HttpTransport, last_event_id: str = "", *, is_reserved: bool = False
    ) -> None:
        super().__init__(transport)
        self._last_event_id = last_event_id
        self._is_reserved = is_reserved
        self._take: Callable[[bytes], bool] = lambda _: False
        self._connection: HttpClientConnection | None = None
        # Called when the server has answered with a stream.
        self.on_open: Callable[[], object] = ignore

    async def run(self, take: Callable[[bytes], bool]) -> int:
        """Read the stream; return the status when it has ended, or `take` returns False.

        Raises:
            TransportError: the server cannot be reached.
            AuthorizationFailed: the client could not obtain a credential.
        """
        self._take = take
        auth = self._transport.auth
        if auth is None:
            return await self._run(b"")
        return await auth.run("GET", self._transport.url_of(None), self._run_with)

    async def _run(self, lines: bytes) -> int:
        transport = self._transport
        headers = b"accept: %b\r\n%b%b" % (_EVENTS, transport.session_head, lines)
        if self._last_event_id:
            headers += b"last-event-id: %b\r\n" % self._last_event_id.encode("utf-8")
        pool = transport.pool
        self._connection = await pool.open(is_reserved=self._is_reserved)
        request = transport.request(b"GET", headers)
        if transport.observer is not None:
            transport.observer.on_request(self, request)
        self._connection.send(request, self)
        if self._is_reserved:
            pool.hold(self._connection)
        try:
            return await self._done
        finally:
            if transport.observer is not None:
                transport.observer.on_end(self)
            if self._connection is not None:
                self._connection.forget()

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keep the status; what is not a stream of events is as good as refused."""
        kinds = [value for name, value in headers if name == b"content-type"]
        is_stream = bool(kinds) and kinds[0].partition(b";")[0].strip().lower() == _EVENTS
        super().on_head(status, headers)
        if status == 200 and not is_stream:
            self._status = 406
        if self._status == 200:
            self.on_open()

    def on_data(self, data: bytes) -> None:
        """Hand on a part of the stream."""
        if self._status == 200:
            is_enough = not self._take(data)
        else:
            self._ignored += len(data)
            is_enough = self._ignored > _MAX_IGNORED_BYTES
        if is_enough and not self._done.done():
            self._done.set_result(self._status)

    def on_complete(self) -> None:
        """Return from `run`."""
        self._connection = None
        super().on_complete()

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        """Return from `run` if the stream had begun, else raise there."""
        self._connection = None
        if self._status:
            super().on_complete()
        else:
            super().on_lost(error, was_reused=was_reused, has_begun=has_begun)


class SessionStream:
    """The stream of a session for what belongs to no request; reopened when it is lost."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._task: asyncio.Task[Any] | None = None
        self._reader = EventReader(transport.message_limit, empty=True)
        self._stream: GetStream | None = None
        self._events = 0
        self._was_open = False

    def start(self) -> None:
        """Open the stream in the background."""
        self._task = self._transport.spawn(self._run())

    def stop(self) -> None:
        """Close the stream."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        transport, failures, now = self._transport, 0, asyncio.get_running_loop().time
        delays = backoff(RECONNECT_S, _LONGEST_RECONNECT_S)
        while failures <= transport.options.reconnects:
            events, began = self._events, now()
            try:
                self._stream = GetStream(transport, self._reader.last_event_id, is_reserved=True)
                self._stream.on_open = self._opened
                status = await self._stream.run(self._feed)
            except TransportError:
                status = 0
            except AuthorizationFailed as error:
                transport.on_event("given-up", f"the stream of the session: {error}")
                return
            self._reader.end()  # the part of an event that was cut is sent again
            if status == 404:
                transport.session_lost("the server has ended the session")
                return
            if status == 405:
                return  # the server offers none
            failures = 0 if status == 200 else failures + 1
            wait = (self._reader.retry_ms or 0) / 1000
            is_useful = self._events > events or now() - began >= RECONNECT_S
            if status == 200 and is_useful:
                delays = backoff(RECONNECT_S, _LONGEST_RECONNECT_S)
            if self._reader.retry_ms is None or status != 200 or not is_useful:
                wait = max(wait, next(delays))
            transport.on_event("reconnect", f"the stream of the session, in {wait:.2g} s")
            await asyncio.sleep(longest_wait(wait))
        transport.on_event("given-up", "the stream of the session cannot be opened")

    def _opened(self) -> None:
        if self._was_open and not self._reader.last_event_id:
            self._transport.on_gap()
        self._was_open = True

    def _feed(self, data: bytes) -> bool:
        for event in self._reader.feed(data):
            self._events += 1
            if isinstance(event, Oversize):
                self._transport.deliver(event, self._stream)
            elif event.data:
                frame = event.data.encode("utf-8", "surrogatepass")
                self._transport.deliver(frame, self._stream, event)
        return True
