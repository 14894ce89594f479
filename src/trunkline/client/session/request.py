"""A request of a client as its caller made it, the protocol of its reply waiter, and `SENT`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from ...jsonrpc.messages import shown_tuple

__all__ = ["SENT", "OnProgress", "OutgoingRequest", "ReplyWaiter"]

OnProgress: TypeAlias = Callable[[float, float | None, str | None], object]


class _Sent:
    """What a method that sends without waiting returns, so that it may be awaited or not."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


SENT: Final[Awaitable[None]] = _Sent()


class OutgoingRequest(NamedTuple):
    """A request, with the timeout, progress callback and `_meta` of its caller."""

    method: str
    # The Struct of the params; without one `fields` are the params in wire form.
    kind: type[Struct] | None
    fields: Mapping[str, Any]
    timeout: float | None = None
    on_progress: OnProgress | None = None
    # Additional members of `_meta`.
    meta: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return shown_tuple(self)


class ReplyWaiter(Protocol):
    """Receives a reply: a future, or an object in its place."""

    def done(self) -> bool:
        """Return True if a reply is no longer needed."""

    def set_result(self, result: Any, /) -> object:
        """Receive the undecoded result."""

    def set_exception(self, exception: BaseException, /) -> object:
        """Receive the error."""
