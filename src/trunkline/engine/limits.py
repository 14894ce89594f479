"""Limits of a server: handlers, bytes, threads, waiting times, sockets and tasks."""

from __future__ import annotations

from msgspec import Struct

from ..accounts.shares import ClientShares

__all__ = ["ServerLimits", "SocketLimits", "TaskSettings"]


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Limits on requests, threads and waiting times of a server.

    Each bounds something that a client could grow without end.
    """

    # Running handlers per connection. Further requests wait, and further notifications for
    # handlers are dropped; replies and cancels are read.
    in_flight: int = 1000
    # Waiting requests per connection. One more closes the connection: they are held in memory.
    waiting: int = 10_000
    # Bytes that one connection may hold: requests at work and waiting, unread answers, and
    # subscriptions. A request beyond that is an error, with `retryAfterMs`. None is 128 MiB, or
    # four times the largest message of the policy if that is more.
    connection_bytes: int | None = None
    # The same of all connections together. None is eight times that of one connection.
    server_bytes: int | None = None
    # Seconds until a connection with more than a quarter of its budget unread is closed, if the
    # client has taken none of it meanwhile.
    unread_timeout: float = 10.0
    # Running handlers of all connections. One more is an error, with `retryAfterMs`.
    in_flight_overall: int = 10_000
    # What one client may have of these, of threads, connections and sessions, over all its
    # connections.
    client_shares: ClientShares = ClientShares()
    # Threads for handlers that are not coroutines, and calls that wait for a thread. While there
    # are other connections, one may use half of the threads.
    threads: int = 64
    waiting_for_thread: int = 1000
    # URIs and tasks that one connection may subscribe to, on all its streams together.
    subscriptions: int = 10_000
    # Open `subscriptions/listen` streams per connection; enough for a gateway with one stream for
    # each of its users.
    streams: int = 1000
    # Seconds that a stopping server waits for handlers before it cancels them.
    grace: float = 5.0
    # The same after the end of input. Clients that close kill the server after 2 s.
    linger: float = 1.5
    # Seconds until a request to the client times out; a user may have to answer.
    ask_timeout: float = 300.0
    # Round trips of one call. Each runs the handler again.
    rounds: int = 16
    # Characters of the `requestState` that a client carries between round trips.
    state_size: int = 64 * 1024
    # Seconds until a `requestState` expires.
    state_ttl: float = 3600.0
    # Seconds after which a handler that blocks the event loop is logged.
    stall: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "client_shares":
                if not isinstance(value, ClientShares):
                    raise ValueError(f"ServerLimits.{name} is a ClientShares, not {value!r}")
                continue
            if name in _BYTES:
                if value is not None and (type(value) is not int or not 1 <= value < 2**63):
                    raise ValueError(f"ServerLimits.{name} is an integer or None, not {value!r}")
                continue
            kind = "an integer" if name not in _SECONDS else "a number of seconds"
            types: tuple[type, ...] = (int,) if name not in _SECONDS else (int, float)
            least = 1 if name not in _SECONDS else 0 if name in _MAY_BE_ZERO else 0.001
            if type(value) not in types or not least <= value < 10**9:
                raise ValueError(f"ServerLimits.{name} is {kind}, not {value!r}")


class SocketLimits(Struct, frozen=True, kw_only=True):
    """Limits on the connections of a server that listens on a socket.

    Times are in seconds; None disables a timeout.
    """

    # Open connections. Each costs a descriptor and some kilobytes; the default leaves most
    # systems enough descriptors for everything else. When all are in use, the oldest that has not
    # sent a message yet gives way to a new one.
    connections: int = 1024
    # Idle timeout of a client without open requests that does not support `ping`, and of any
    # client that does not read what it is sent.
    idle: float | None = 300.0
    # Interval of keepalive pings, if the revision has `ping`; the connection is closed after
    # twice that without a message.
    keep_alive: float | None = 30.0
    # Time for a message that has begun, plus a second for each 16 KiB that came: a least rate.
    # The connection is closed after that.
    message_timeout: float | None = 30.0
    # Timeout of the TLS handshake.
    tls_handshake: float = 10.0
    # Unfinished TLS handshakes, which do not count as connections. The oldest gives way to a new
    # one: a client that finishes its handshake at once is not kept out by those that send nothing.
    tls_handshakes: int = 256
    # Connections that the system queues until they are accepted.
    backlog: int = 128

    def __post_init__(self) -> None:
        for name in ("connections", "tls_handshakes", "backlog"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value < 10**9:
                raise ValueError(f"SocketLimits.{name} is an integer above 0, not {value!r}")
        for name in ("idle", "keep_alive", "message_timeout", "tls_handshake"):
            value = getattr(self, name)
            if value is None and name != "tls_handshake":
                continue
            if type(value) not in (int, float) or not 0.001 <= value < 10**9:
                raise ValueError(f"SocketLimits.{name} is a number of seconds, not {value!r}")


class TaskSettings(Struct, frozen=True, kw_only=True):
    """How long tasks are kept, how often clients poll, and how many tasks there may be.

    Times are in seconds. Numbers are bounded because a task outlives the call that created it.
    """

    # From the creation of a task until it is deleted with its result. None keeps it until the
    # store drops it.
    ttl: float | None = 3600.0
    # The longest time that a client may request, in the revision that has requests for it.
    longest_ttl: float | None = 86_400.0
    # The poll interval that clients are told.
    poll_interval: float = 1.0
    # Running tasks of this server; each holds a handler.
    running: int = 1000
    # The same per principal or, without authentication, per connection. Over all its connections a
    # client has its share, as of `ServerLimits`.
    running_each: int = 100
    # Ended tasks that are kept per principal or connection, and the bytes of their results. The
    # oldest is deleted for a new one, so that one client cannot fill the store.
    kept_each: int = 1000
    kept_bytes_each: int = 16 * 1024 * 1024
    # How long a call of an optional tool may run before it becomes a task, in the revision where
    # the server decides; a quicker call is answered as usual. Zero makes each call a task.
    quick: float = 0.05
    # Open input requests of one task; more than a user could look through.
    open_inputs: int = 32
    # Calls of `tasks/result` that wait for a task to end, of all connections.
    waiting_results: int = 1000
    # The same per principal or connection.
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
_SECONDS = ("grace", "linger", "ask_timeout", "state_ttl", "stall", "unread_timeout")
_BYTES = ("connection_bytes", "server_bytes")
_MAY_BE_ZERO = ("grace", "linger")
