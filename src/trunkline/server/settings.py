"""What an author sets once for a whole server: how much it takes on, and what may be kept."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["CacheHint", "ServerLimits", "SocketLimits", "TaskSettings"]


class CacheHint(Struct, frozen=True):
    """How long a client may keep a result, and whether others may be given it.

    `CacheHint(60)` is a minute. A `private` result is for the caller it was made for; a `public`
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

    def joined(self, other: CacheHint) -> CacheHint:
        """Return what holds for two things sent as one: the shorter time, the closer circle."""
        scope = "public" if self.scope == other.scope == "public" else "private"
        return CacheHint(min(self.seconds, other.seconds), scope)  # type: ignore[arg-type]  # one of two


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
    # URIs, and tasks, that one connection may be subscribed to, by all its streams together.
    subscriptions: int = 10_000
    # Streams of changes that one connection may have open. Each is sent every change by itself;
    # so many are enough for a gateway that holds one for each of its users.
    streams: int = 1000
    # How long a server that is to stop waits for handlers before it cancels them, in seconds.
    grace: float = 5.0
    # The same after the end of input. Clients that close give a server 2 s before they kill it.
    linger: float = 1.5
    # How long a question waits for the client's answer, in seconds: people think.
    ask_timeout: float = 300.0
    # How many times one call may be answered with questions. Each runs the handler again.
    rounds: int = 16
    # What a call may carry from round to round, as the client is sent it, in characters.
    state_size: int = 64 * 1024
    # How long answers may be brought back, in seconds, counted from when they were asked for.
    state_ttl: float = 3600.0
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


class SocketLimits(Struct, frozen=True, kw_only=True):
    """How many may connect to a server that listens, and how long they may be silent.

    Times are in seconds; None is without end.
    """

    # Connections at once. Each costs a descriptor and some kilobytes, and a client makes as many
    # as it likes; so many leave most systems descriptors for everything else.
    connections: int = 1024
    # How long a client may be silent that has nothing open here and cannot be asked by `ping`, and
    # how long any may leave unread what is sent to it.
    idle: float | None = 300.0
    # After how long a silence a client is asked, where the revision has `ping`; after twice that
    # it is taken to be gone.
    keep_alive: float | None = 30.0
    # How long the two may take to agree on TLS.
    tls_handshake: float = 10.0
    # Connections that the system may hold for us until we accept them.
    backlog: int = 128

    def __post_init__(self) -> None:
        for name in ("connections", "backlog"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value < 10**9:
                raise ValueError(f"SocketLimits.{name} is an integer above 0, not {value!r}")
        for name in ("idle", "keep_alive", "tls_handshake"):
            value = getattr(self, name)
            if value is None and name != "tls_handshake":
                continue
            if type(value) not in (int, float) or not 0.001 <= value < 10**9:
                raise ValueError(f"SocketLimits.{name} is a number of seconds, not {value!r}")


class TaskSettings(Struct, frozen=True, kw_only=True):
    """How long tasks are kept, how often clients are to look, and how many there may be.

    Times are in seconds. What a client could grow is bounded: each call of a tool that may be
    a task leaves something behind that outlives the call.
    """

    # From its creation until a task is gone, with its result. None is never: then the store's
    # own bounds are what ends it.
    ttl: float | None = 3600.0
    # The most that a client may ask for, in the revision where it may ask; no task has more.
    longest_ttl: float | None = 86_400.0
    # How long a client is to wait before it looks again.
    poll_interval: float = 1.0
    # Tasks at work in this server: each holds a handler, and whatever that holds.
    running: int = 1000
    # The same of one principal or, where nobody has a name, of one connection, so that one
    # cannot take the room of all.
    running_each: int = 100
    # Tasks that have ended and are still kept for one of them, and the bytes of their results.
    # The oldest makes room for one more, so that one cannot fill the store of all.
    kept_each: int = 1000
    kept_bytes_each: int = 16 * 1024 * 1024
    # How long a call of an optional tool may take, in the revision where the tool decides,
    # before it becomes a task: one that is done by then is answered as any other. Zero makes it
    # a task from its start.
    quick: float = 0.05
    # Questions of one task that wait for an answer. More than a person could look through.
    open_inputs: int = 32
    # Calls of `tasks/result` that wait for a task to end, on all connections.
    waiting_results: int = 1000
    # The same for one principal or connection.
    waiting_results_each: int = 100

    def __post_init__(self) -> None:
        for name in ("ttl", "longest_ttl", "poll_interval", "quick"):
            value = getattr(self, name)
            if value is None and name.endswith("ttl"):
                continue
            least = 0 if name == "quick" else 0.001
            if type(value) not in (int, float) or not least <= value < 10**9:
                raise ValueError(f"TaskSettings.{name} is a number of seconds, not {value!r}")
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value < 10**9:
                raise ValueError(f"TaskSettings.{name} is an integer, not {value!r}")


_COUNTS = (
    "running",
    "running_each",
    "kept_each",
    "kept_bytes_each",
    "open_inputs",
    "waiting_results",
    "waiting_results_each",
)
_SECONDS = ("grace", "linger", "ask_timeout", "state_ttl", "stall")
_MAY_BE_ZERO = ("grace", "linger")
