"""HTTP+SSE of 2024-11-05, client side: one stream for all answers, and POSTs to another address.

A server of that transport refuses `initialize` by POST. `HttpTransport` then opens the stream
here, and everything is sent to the address in its first event.

The rules that live here, and only here:

* The first event is called `endpoint`, and its data is the address for POSTs.
                                                   [MCP 2024-11-05, basic/transports]
  A stream that begins with another event is not one of that transport.
* An address of another origin is refused: the headers of the caller are not for it.
* The end of the stream is the end of the connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ....errors import AuthorizationFailed, TransportError
from ....jsonrpc.framing.framing import Oversize
from ....jsonrpc.framing.sse import EventReader
from .message import UNREADABLE, read_messages
from .post import RequestLost
from .stream import GetStream, PlainRequest

if TYPE_CHECKING:
    from .transport import HttpTransport

__all__ = ["OldSseStream"]

# Where the stream of an old server begins.
_ENDPOINT: Final = "endpoint"


class OldSseStream:
    """The stream of one server, and the address that it gave for POSTs."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self._reader = EventReader(transport.message_limit)
        self._endpoint: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._last: asyncio.Task[None] | None = None
        self._stream: GetStream | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the stream, and wait for the address.

        Raises:
            TransportError: the server has no such stream.
            AuthorizationFailed: the client could not obtain a credential.
        """
        self._reading = self._transport.spawn(self._read())
        await asyncio.shield(self._endpoint)

    def stop(self) -> None:
        """Close the stream of a server that does not speak this transport."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> None:
        error: TransportError | AuthorizationFailed
        try:
            self._stream = GetStream(self._transport, is_reserved=True)
            status = await self._stream.run(self._feed)
            error = TransportError(f"the server has no event stream: status {status}")
        except (TransportError, AuthorizationFailed) as lost:
            error = lost
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
        elif self._endpoint.exception() is None:
            self._transport.lost("the server ended the event stream")

    def _feed(self, data: bytes) -> bool:
        for event in self._reader.feed(data):
            if isinstance(event, Oversize):
                self._transport.deliver(event)
            elif event.event == _ENDPOINT:
                self._take_endpoint(event.data)
            elif not self._endpoint.done():
                text = "the stream of the server does not begin with the address for POSTs"
                self._endpoint.set_exception(TransportError(text))
            elif event.data:
                frame = event.data.encode("utf-8", "surrogatepass")
                self._transport.deliver(frame, self._stream, event)
            if self._endpoint.done() and self._endpoint.exception() is not None:
                return False
        return True

    def _take_endpoint(self, given: str) -> None:
        if self._endpoint.done():
            return
        path = self._transport.path_of(given.strip().encode("utf-8"))
        if path is None:
            text = "the server named an address of another origin for POSTs"
            self._endpoint.set_exception(TransportError(text))
        else:
            self._endpoint.set_result(path)

    def send(self, frame: bytes) -> None:
        """Send a message, after those before it: their order counts."""
        self._last = self._transport.spawn(self._post(frame, self._last))

    async def _post(self, frame: bytes, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        path = self._endpoint.result()
        try:
            status = await PlainRequest(self._transport, b"POST", path=path, body=frame).run()
            reason = "" if status < 300 else f"the server refused a message: status {status}"
        except TransportError as error:
            reason = f"{error.reason}; the outcome is unknown"
        except AuthorizationFailed as error:
            self._lose(frame, error)
            return
        if reason:
            self._lose(frame, RequestLost(reason, was_sent=True))

    def _lose(self, frame: bytes, error: RequestLost | AuthorizationFailed) -> None:
        try:
            messages = read_messages(frame)
        except UNREADABLE:
            return
        for each in messages:
            if isinstance(each.id, int | str):
                self._transport.on_request_lost(each.id, error)
