"""Observe the frames of a connection without changing it: for recordings and tests.

    Client(Tapped(Stdio("python", ["server.py"]), hear))

`hear(sender, frame)` is called with every frame, before it is sent or delivered. The first
exception it raises is logged; the connection goes on, and so do the calls. `on_end(error)` is
called once the connection has ended; the error is None if one side has closed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..errors import TransportError
from .base import TransportBase, ignore, log_raised

if TYPE_CHECKING:
    from ..jsonrpc.policy import Policy
    from .base import Address, Frame, Transport

__all__ = ["Tapped", "TappedTransport"]


Side: TypeAlias = Literal["client", "server"]
Hear: TypeAlias = "Callable[[Side, Frame], object]"
OnEnd: TypeAlias = "Callable[[TransportError | None], object]"

# What a client attaches to a transport of HTTP, which others do not have.
_PASSED: Final = frozenset(
    (
        *("is_idempotent", "is_waiting", "on_authorizing", "on_event", "on_gap"),
        *("on_request_lost", "param_headers", "reads_requests"),
    )
)


class Tapped:
    """An address whose connections are observed."""

    def __init__(self, address: Address, hear: Hear, on_end: OnEnd = ignore) -> None:
        self._address = address
        self._hear = hear
        self._on_end = on_end

    def __repr__(self) -> str:
        return f"Tapped({self._address!r})"

    def __str__(self) -> str:
        return str(self._address)

    @property
    def outlives_connections(self) -> bool:
        """Whether the server exists before and after a connection."""
        return getattr(self._address, "outlives_connections", False) is True

    def transport(self, policy: Policy) -> TappedTransport:
        """Return a new transport to the address, observed by `hear`."""
        return TappedTransport(self._address.transport(policy), self._hear, on_end=self._on_end)


class TappedTransport(TransportBase):
    """An observed transport; `our_side` is the role of the side that calls `send`."""

    def __init__(
        self, inner: Transport, hear: Hear, *, our_side: Side = "client", on_end: OnEnd = ignore
    ) -> None:
        super().__init__(inner.name)
        self._inner = inner
        self._on_end = on_end
        self._hear = hear
        self._has_failed = False  # logged once: else each frame would log a line
        self._ours = our_side
        self._theirs: Side = "server" if our_side == "client" else "client"

    def __getattr__(self, name: str) -> Any:
        if name not in _PASSED:
            raise AttributeError(f"a TappedTransport has no {name}")
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PASSED:
            setattr(self._inner, name, value)
        else:
            super().__setattr__(name, value)

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._inner.is_connected

    @property
    def backlog(self) -> int:
        """The number of bytes sent and not written yet."""
        return self._inner.backlog

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._inner.written

    async def connect(self) -> None:
        """Open the connection, and start to call `on_message`."""
        inner = self._inner
        inner.on_message = self._receive
        inner.on_error = self._end
        inner.on_drained = lambda: self.on_drained()
        await inner.connect()

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one frame, without waiting."""
        self._tell(self._ours, frame)
        self._inner.send(frame, route)

    async def close(self) -> None:
        """Write what was sent, and end the connection."""
        await self._inner.close()

    def _receive(self, frame: Frame, route: Any) -> None:
        self._tell(self._theirs, frame)
        self.on_message(frame, route)

    def _end(self, error: TransportError | None) -> None:
        self.on_error(error)
        self._on_end(error)

    def _tell(self, sender: Side, frame: Frame) -> None:
        try:
            self._hear(sender, frame)
        except Exception as error:  # noqa: BLE001  # a failed observer ends no connection
            if not self._has_failed:
                self._has_failed = True
                log_raised(error, "tap: hear raised; its further exceptions are not logged")
