"""The API of mcpp: message and capability types, transport, client, request tracker, timeouts.

Everything here decodes and encodes under `Policy.mcpp()`, which accepts a missing
version, 1.0 as an id and null as params. `to_json` and `from_json` use parsed values,
as in the original; `dump` returns bytes.

`RequestTracker` and `TimeoutManager` may be used from several threads, such as the one that
`TimeoutManager.start` runs. A callback runs on the thread that completes or checks, outside the
lock, and each runs once.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, to_builtins

from ..errors import InvalidMessage, LocalProtocolError, PeerError, TrunklineError
from ..jsonrpc import (
    Batch,
    Codec,
    ErrorObject,
    Failure,
    IdSource,
    Message,
    Notification,
    OutgoingRequests,
    Pending,
    Policy,
    Request,
    RequestId,
    Success,
)
from ..jsonrpc.codec import encode_errors
from ..jsonrpc.messages import SentRequest, Shown
from ..jsonrpc.peer.deadlines import Deadlines
from ..mcp.types import (
    ClientCapabilities,
    Implementation,
    InitializeRequestParams,
    InitializeResult,
    ServerCapabilities,
    ServerCapabilitiesPrompts,
    ServerCapabilitiesResources,
    ServerCapabilitiesTools,
)
from ..spec.error_kinds import ErrorKind
from ..spec.profiles import profile
from ..transports.base import log_raised
from ._mcpp_methods import methods
from ._mcpp_transport import MessageCallback, Transport
from ._text import text_of

if TYPE_CHECKING:
    from ..client import SyncClient, ToolResult
    from ..client.connect.targets import TargetLike

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "UNSET",
    "CapabilitySet",
    "ClientCapabilities",
    "ErrorCallback",
    "Implementation",
    "InitializeRequestParams",
    "InitializeResult",
    "JsonRpcError",
    "JsonRpcNotification",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "JsonValue",
    "LoggingCapability",
    "McpClient",
    "MessageCallback",
    "PromptCapability",
    "RequestId",
    "RequestMeta",
    "RequestTracker",
    "ResourceCapability",
    "ResponseCallback",
    "ServerCapabilities",
    "TimeoutEntry",
    "TimeoutManager",
    "ToolCapability",
    "ToolExecutionError",
    "Transport",
    "methods",
]

JsonValue: TypeAlias = Any

# The types of the handshake are those of `trunkline.mcp`.
RequestMeta: TypeAlias = dict[str, Any]
CapabilitySet: TypeAlias = dict[str, dict[str, Any]]
LoggingCapability: TypeAlias = dict[str, Any]
PromptCapability: TypeAlias = ServerCapabilitiesPrompts
ResourceCapability: TypeAlias = ServerCapabilitiesResources
ToolCapability: TypeAlias = ServerCapabilitiesTools

_VERSION: Final = "2.0"
_POLICY: Final = Policy.mcpp()
_codec: Final = Codec(_POLICY)
_number: Final = profile(_POLICY.codes).number

PARSE_ERROR: Final = _number(ErrorKind.PARSE_ERROR, _POLICY.revision)
INVALID_REQUEST: Final = _number(ErrorKind.INVALID_REQUEST, _POLICY.revision)
METHOD_NOT_FOUND: Final = _number(ErrorKind.METHOD_NOT_FOUND, _POLICY.revision)
INVALID_PARAMS: Final = _number(ErrorKind.INVALID_PARAMS, _POLICY.revision)
INTERNAL_ERROR: Final = _number(ErrorKind.INTERNAL_ERROR, _POLICY.revision)


def _read(value: JsonValue) -> Message | Batch | None:
    """Return the message of a text or a parsed value; None if it is invalid."""
    is_text = isinstance(value, bytes | bytearray | memoryview | str)
    try:
        return _codec.decode(value if is_text else text_of(value))
    except (InvalidMessage, LocalProtocolError):
        return None


class JsonRpcRequest(SentRequest, frozen=True, tag=_VERSION):
    """A call with a response: `JsonRpcRequest(1, "tools/list")`."""

    jsonrpc: ClassVar[str] = _VERSION

    @classmethod
    def from_json(cls, value: JsonValue) -> JsonRpcRequest | None:
        """Return the request of a text or a parsed value; None if it is not a request."""
        read = _read(value)
        if not isinstance(read, Request) or read.id is None:
            return None
        return cls(read.id, read.method, read.params)

    def to_json(self) -> JsonValue:
        """Return the request as an object; params are left out when there are none."""
        return to_builtins(self)

    def dump(self) -> bytes:
        """Return the request as bytes.

        Raises:
            LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
        """
        return _codec.encode(self)


class JsonRpcNotification(Notification, frozen=True, tag=_VERSION):
    """A call without a response: `JsonRpcNotification("notifications/initialized")`."""

    jsonrpc: ClassVar[str] = _VERSION

    @classmethod
    def from_json(cls, value: JsonValue) -> JsonRpcNotification | None:
        """Return the notification of a text or a parsed value; None if it is not one."""
        read = _read(value)
        return cls(read.method, read.params) if isinstance(read, Notification) else None

    def to_json(self) -> JsonValue:
        """Return the notification as an object; params are left out when there are none."""
        return to_builtins(self)

    def dump(self) -> bytes:
        """Return the notification as bytes.

        Raises:
            LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
        """
        return _codec.encode(self)


class JsonRpcError(ErrorObject, frozen=True):
    """An error: its code, message, and any JSON value as detail."""

    @classmethod
    def from_json(cls, value: JsonValue) -> JsonRpcError | None:
        """Return the error of a parsed value; None if it is not one."""
        try:
            return convert(value, cls)
        except ValidationError:
            return None

    def to_json(self) -> JsonValue:
        """Return the error as an object; data are left out when absent."""
        return to_builtins(self)


class JsonRpcResponse(Shown, Struct, frozen=True, tag_field="jsonrpc", tag=_VERSION):
    """The response to a request: a result or an error, the other being UNSET.

    The id is None where an error answers a request whose id could not be read.

    Raises:
        LocalProtocolError: both result and error were given, or neither.
    """

    jsonrpc: ClassVar[str] = _VERSION

    id: RequestId | None
    result: JsonValue = UNSET
    error: JsonRpcError | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.result is UNSET) == (self.error is UNSET):
            encode_errors.refuse("jsonrpc.reply.one-outcome")

    @classmethod
    def from_json(cls, value: JsonValue) -> JsonRpcResponse | None:
        """Return the response of a text or a parsed value; None if it is not one."""
        read = _read(value)
        if isinstance(read, Success):
            return cls(read.id, read.result)
        if not isinstance(read, Failure):
            return None
        error = JsonRpcError(read.error.code, read.error.message, read.error.data)
        return cls(None if read.id is UNSET else read.id, error=error)

    def to_json(self) -> JsonValue:
        """Return the response as an object with the one member it has."""
        return to_builtins(self)

    def dump(self) -> bytes:
        """Return the response as bytes.

        Raises:
            LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
        """
        if self.error is UNSET:
            return _codec.encode(Success(self.id, self.result))
        return _codec.encode(Failure(self.id, self.error))


class ToolExecutionError(Shown, Struct, frozen=True):
    """The failure of a tool: an `isError` result, not a protocol error."""

    content: str
    isError: bool = True

    def to_json(self) -> JsonValue:
        """Return the MCP result."""
        return {"content": [{"type": "text", "text": self.content}], "isError": self.isError}


ResponseCallback: TypeAlias = Callable[[JsonValue], None]
ErrorCallback: TypeAlias = Callable[[JsonRpcError], None]


class RequestTracker:
    """Ids for requests, counted from 0, and the callbacks that wait for their responses.

    Safe to use from several threads.
    """

    __slots__ = ("_ids", "_lock", "_outgoing")

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids = IdSource(first=_POLICY.first_id, maximum=_POLICY.max_id)
        self._outgoing = OutgoingRequests()

    def next_id(self) -> int:
        """Return an unused id.

        Raises:
            IdsExhausted: all ids are used; a new connection starts a new count.
        """
        with self._lock:
            return self._ids.next()

    def register_pending(self, id: RequestId, callback: ResponseCallback) -> None:
        """Keep `callback` for the response to `id`.

        Raises:
            LocalProtocolError: the id has a callback already, which is kept.
        """
        with self._lock:
            self._outgoing.open(Pending(id, "", waiter=callback))
            self._ids.claim(id)

    def complete(self, id: RequestId) -> ResponseCallback | None:
        """Remove and return the callback of `id`, or None; of several threads one gets it."""
        with self._lock:
            pending = self._outgoing.match(id, is_error=False)
        if not isinstance(pending, Pending):
            return None
        callback: ResponseCallback = pending.waiter
        return callback


class TimeoutEntry(NamedTuple):
    """The deadline of a request, and what to call after it."""

    deadline: float
    callback: Callable[[], None]


class TimeoutManager:
    """Callbacks for requests that take too long. Times are seconds of a monotonic clock.

    Safe to use from several threads; callbacks run without the lock.
    """

    __slots__ = ("_checks", "_deadlines", "_entries", "_lock", "default_timeout")

    def __init__(self, default_timeout: float) -> None:
        self.default_timeout = default_timeout
        # For both of these: a due deadline is never lost between them.
        self._lock = Lock()
        self._deadlines: Deadlines[RequestId] = Deadlines()
        self._entries: dict[RequestId, TimeoutEntry] = {}
        # The thread of `start`, and what ends it.
        self._checks: tuple[Thread, Event] | None = None

    def start(self, interval: float = 0.1) -> None:
        """Call `check_timeouts` every `interval` seconds on a thread, until `stop`.

        The callbacks run there, one after the other; an exception of one is logged. A program
        that ends does not wait for the thread.

        Raises:
            RuntimeError: the thread runs already.
        """
        with self._lock:
            if self._checks is not None:
                raise RuntimeError("the timeouts are checked already: call stop() first")
            ended = Event()
            thread = Thread(
                target=self._check_until, args=(ended, interval), name="mcpp-timeouts", daemon=True
            )
            self._checks = thread, ended
            thread.start()

    def stop(self) -> None:
        """End the thread of `start`, if there is one; no callback runs on it afterwards.

        In a callback it returns at once: timeouts that are due with that one still fire.
        """
        with self._lock:
            checks, self._checks = self._checks, None
        if checks is not None:
            thread, ended = checks
            ended.set()
            if thread.ident != get_ident():
                thread.join()

    def _check_until(self, ended: Event, interval: float) -> None:
        while not ended.wait(interval):
            try:
                self.check_timeouts()
            except Exception as error:  # noqa: BLE001  # application code; the others still run
                log_raised(error, "the callback of a timeout raised an exception")

    def set_timeout(
        self,
        id: RequestId,
        timeout: float | None,
        on_timeout: Callable[[], None],
        *,
        now: float | None = None,
    ) -> None:
        """Run `on_timeout` once `timeout` has passed, or the default where it is None.

        An earlier timeout of the same request is replaced. `now` defaults to
        `time.monotonic()`.
        """
        start = monotonic() if now is None else now
        deadline = start + (self.default_timeout if timeout is None else timeout)
        with self._lock:
            self._deadlines.set(id, deadline)
            self._entries[id] = TimeoutEntry(deadline, on_timeout)

    def cancel(self, id: RequestId) -> None:
        """Remove the timeout of a request, if it has one."""
        with self._lock:
            self._entries.pop(id, None)
            self._deadlines.drop(id)

    def check_timeouts(self, now: float | None = None) -> None:
        """Run the callbacks whose time has passed, earliest first.

        Each is removed before it runs, so it runs once; a timeout that an earlier
        callback cancels or replaces does not fire. If a callback raises, those after
        it run at the next check.
        """
        with self._lock:
            due = self._deadlines.due(monotonic() if now is None else now)
            waiting = [(id, self._entries[id]) for id in reversed(due)]
        try:
            while waiting:
                id, entry = waiting.pop()
                if self._take(id, entry):
                    entry.callback()
        finally:
            with self._lock:
                for id, entry in waiting:
                    if self._entries.get(id) is entry:
                        self._deadlines.set(id, entry.deadline)

    def _take(self, id: RequestId, entry: TimeoutEntry) -> bool:
        """Remove an entry that is due; return False if it was cancelled or replaced."""
        with self._lock:
            if self._entries.get(id) is not entry:
                return False
            del self._entries[id]
            return True


class McpClient:
    """A client whose calls end in callbacks, over `trunkline.SyncClient`.

    Callbacks run one after the other on one thread, which is that of the connection and not the
    caller's: they must not block, and whatever they use must outlive the call.
    """

    __slots__ = ("_client",)

    def __init__(self, target: TargetLike, **options: Any) -> None:
        """Take an address, a command or a `Server`, and the options of `SyncClient`."""
        # Imported here: the types need no client.
        from ..client import SyncClient

        options.setdefault("policy", _POLICY)
        self._client: SyncClient = SyncClient(target, **options)

    def connect(self) -> bool:
        """Connect and negotiate a revision; return False if the server cannot be reached."""
        try:
            self._client.connect()
        except TrunklineError:
            return False
        return True

    def disconnect(self) -> None:
        """Close the connection; open calls end with an error."""
        self._client.close()

    def is_connected(self) -> bool:
        """Return True while the connection is open."""
        return self._client.is_connected

    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        on_success: ResponseCallback,
        on_error: ErrorCallback,
    ) -> None:
        """Call a tool; one of the callbacks is called, once, with the result or the error.

        A tool that ran and failed is a result whose `isError` is true.
        """
        self._client.submit_tool(
            name,
            arguments,
            on_success=lambda result: on_success(_json_of(result)),
            on_error=lambda error: on_error(_error_of(error)),
        )


def _json_of(result: ToolResult[Any]) -> JsonValue:
    members = {
        "content": to_builtins(result.content),
        "structuredContent": result.structured_content,
        "isError": result.is_error or None,
        "_meta": result.meta or None,
    }
    return {name: value for name, value in members.items() if value is not None}


def _error_of(error: TrunklineError) -> JsonRpcError:
    if isinstance(error, PeerError):
        return JsonRpcError(error.code, error.message, UNSET if error.data is None else error.data)
    return JsonRpcError(INTERNAL_ERROR, str(error))
