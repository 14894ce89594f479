"""What a client asks of a server: a request as its caller put it, and who waits for the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

__all__ = ["OnProgress", "OutgoingRequest", "ReplyWaiter"]

OnProgress: TypeAlias = Callable[[float, float | None, str | None], object]


class OutgoingRequest(NamedTuple):
    """A request as a caller put it, and what is particular about it."""

    method: str
    # The Struct of its params; without one `fields` are the params, as the caller wrote them.
    kind: type[Struct] | None
    fields: Mapping[str, Any]
    timeout: float | None = None
    on_progress: OnProgress | None = None
    # What a caller has to say in `_meta`.
    meta: Mapping[str, Any] | None = None


class ReplyWaiter(Protocol):
    """What takes an answer: a future, or what stands in the place of one."""

    def done(self) -> bool:
        """Say whether nobody waits any more."""

    def set_result(self, result: Any, /) -> object:
        """Take the result, unread."""

    def set_exception(self, exception: BaseException, /) -> object:
        """Take why there is none."""
