"""What an author sets once for a whole server: how much it takes on, and what may be kept."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["Cache", "ServerLimits"]


class Cache(Struct, frozen=True):
    """How long a client may keep a result, and whether others may be given it.

    `Cache(60)` is a minute. A `private` result is for the caller it was made for; a `public`
    one may be handed to anybody. Only 2026-07-28 tells clients; zero is "do not keep".
    """

    seconds: float = 0
    scope: Literal["private", "public"] = "private"

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= 10**9:
            raise ValueError(f"Cache.seconds is from 0 to a billion, not {self.seconds!r}")
        if self.scope not in ("private", "public"):
            raise ValueError(f"Cache.scope is 'private' or 'public', not {self.scope!r}")

    @property
    def milliseconds(self) -> int:
        """The same as the wire counts it."""
        return round(self.seconds * 1000)

    def joined(self, other: Cache) -> Cache:
        """Return what holds for two things sent as one: the shorter time, the closer circle."""
        scope = "public" if self.scope == other.scope == "public" else "private"
        return Cache(min(self.seconds, other.seconds), scope)  # type: ignore[arg-type]  # one of two


class ServerLimits(Struct, frozen=True, kw_only=True):
    """How much a server takes on at once, and how long it waits.

    Each bound names what a client could grow: it sends as many requests as it likes.
    """

    # Handlers at work for one connection. Further requests wait; replies and cancels are read.
    in_flight: int = 1000
    # Requests that wait, per connection. One more ends the connection: they are held in memory.
    waiting: int = 10_000
    # Bytes of what they ask with. A request beyond that is refused, with when to try again.
    waiting_bytes: int = 64 * 1024 * 1024
    # Handlers at work for all connections together. One more is refused, with when to try again.
    in_flight_overall: int = 10_000
    # Threads for handlers that are no coroutines, and calls that wait for one of them.
    threads: int = 64
    waiting_for_thread: int = 1000
    # URIs that one connection may be subscribed to.
    subscriptions: int = 10_000
    # How long a server that is to stop waits for handlers before it cancels them, in seconds.
    grace: float = 5.0
    # The same after the end of input. Clients that close give a server 2 s before they kill it.
    linger: float = 1.5
    # How long `Context.request` waits for the client's answer, in seconds.
    ask_timeout: float = 60.0
    # From when on, in seconds, a handler that keeps the event loop from moving is reported.
    stall: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            kind = "an integer" if name not in _SECONDS else "a number of seconds"
            types: tuple[type, ...] = (int,) if name not in _SECONDS else (int, float)
            least = 1 if name not in _SECONDS else 0 if name in _MAY_BE_ZERO else 0.001
            if type(value) not in types or not least <= value < 10**9:
                raise ValueError(f"ServerLimits.{name} is {kind}, not {value!r}")


_SECONDS = ("grace", "linger", "ask_timeout", "stall")
_MAY_BE_ZERO = ("grace", "linger")
