"""A transport for single requests: one exchange at a time, and nothing between two of them.

Revisions without a handshake have no sessions: each POST stands by itself. A `SingleRequest` serves
one POST after the other, so that what the server keeps for a connection is not made for each.

The rules that live here, and only here:

* The end of the connection cancels the request.
                                        [MCP 2026-07-28, basic/transports/streamable-http]
* Events have no ids: a stream that broke cannot be resumed.     [MCP 2026-07-28, changelog]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base import ignore
from .exchange import ExchangeTransport, event_of

if TYPE_CHECKING:
    from ....errors import InvalidMessage
    from ....jsonrpc.messages import ErrorObject
    from .exchange import Exchange

__all__ = ["SingleRequest"]


class SingleRequest(ExchangeTransport):
    """Carries one exchange; it implements the transport contract."""

    # For a server: routes are exchanges, and no session is opened.
    has_exchanges = True
    opens_sessions = False

    __slots__ = ("exchange", "on_free", "on_gone")

    def __init__(self) -> None:
        super().__init__("http")
        # Called when the client has gone before it was answered, and when the exchange has ended.
        self.on_gone: Callable[[], object] = ignore
        self.on_free: Callable[[], object] = ignore
        self.exchange: Exchange | None = None
        self.is_connected = True

    def __repr__(self) -> str:
        return f"<SingleRequest, {'free' if self.exchange is None else 'in use'}>"

    # -- the transport contract --------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """The number of bytes that the client has not taken."""
        return 0 if self.exchange is None else self.exchange.unread

    async def connect(self) -> None:
        """Do nothing: it carries a message as soon as it has an exchange."""

    def send(self, frame: bytes, route: Exchange | None = None) -> None:
        """Send a message about the request; there is no place for any other."""
        if route is not None:
            route.send(frame)
            self._sent += len(frame)

    def answer(
        self, frame: bytes, route: Exchange, error: ErrorObject | InvalidMessage | None
    ) -> None:
        """Send the answer to the POST."""
        self._sent += len(frame)
        route.answer(frame, error)

    def settled(self, route: Exchange) -> None:
        """End the POST if it was not answered."""
        if not route.is_done:
            route.settle()

    async def close(self) -> None:
        """End the exchange."""
        if self.exchange is not None:
            self.exchange.close()

    # -- the exchange ------------------------------------------------------------------------

    def is_slow(self, exchange: Exchange, value: bool) -> None:
        """Note that the client reads again as it should."""
        if not value:
            self.on_drained()

    def event(self, exchange: Exchange, frame: bytes) -> bytes:
        """Return a message as an event."""
        return event_of(frame)

    def priming_event(self, exchange: Exchange) -> bytes:
        """Return nothing: the stream cannot be resumed."""
        return b""

    def exchange_ended(self, exchange: Exchange) -> None:
        """Be free for another exchange."""
        self.exchange = None
        self.on_free()

    def client_gone(self, exchange: Exchange) -> None:
        """Cancel the request."""
        self.on_gone()
        exchange.close()

    def undeliverable(self, exchange: Exchange, frame: bytes) -> None:
        """Drop a message that the client does not accept: it accepts the answer only."""
