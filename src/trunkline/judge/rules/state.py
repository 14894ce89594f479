"""The state of a conversation that the rules read and update, and a message as they see it.

Both peers of a recording may be hostile, so every map here is bounded and evicts its oldest
entry. A lookup that may have hit an evicted entry proves nothing: see `BoundedDict.evicted`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.json import encode

from ...jsonrpc.codec.encode_errors import UNWRITABLE
from ...jsonrpc.messages import Shown
from ...mcp.param_headers import InvalidParamHeader, ParamPath, param_headers
from ...spec.mcp.meta import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION
from ...spec.rows import Method, Role
from ..trace.reader import StreamId, TraceEntry
from ..unknown import Unknown

__all__ = [
    "LISTEN",
    "BoundedDict",
    "HttpExchange",
    "Key",
    "Members",
    "ObservedCall",
    "ObservedMessage",
    "ObservedProgress",
    "ObservedRoundTrip",
    "ObservedSession",
    "ObservedTask",
    "ObservedTool",
    "State",
    "declares",
    "fingerprint",
    "key_of",
    "object_at",
]

Members: TypeAlias = dict[str, Any]
# The requestor, and an id with its JSON type: 7 and "7" are different ids.
Key: TypeAlias = tuple[str, str, int | str]

LISTEN: Final = "subscriptions/listen"

# More requests than an honest peer keeps open; a session may use many more ids.
MAX_ENTRIES: Final = 1024
MAX_IDS: Final = 16384
MAX_SCHEMA_BYTES: Final = 16384

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V], Generic[K, V]):
    """A dict that evicts its oldest entry beyond `most`; `evicted` is True once it did."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        super().__init__()
        self.most = most
        self.evicted = False

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self.most:
            self.evicted = True
            self.popitem(last=False)


class ObservedCall:
    """A request, kept as long as later messages may refer to it."""

    def __init__(self, seen: ObservedMessage) -> None:
        params, meta = seen.params, seen.meta
        self.id = seen.members.get("id")
        self.method = seen.method
        self.sender = seen.sender
        self.revision = seen.revision
        self.index = seen.index
        self.in_batch = seen.in_batch
        self.token = meta.get("progressToken")
        self.level = meta.get(LOG_LEVEL)
        self.version = meta.get(PROTOCOL_VERSION)
        self.declared = object_at(meta, CLIENT_CAPABILITIES)
        self.meta_complete = PROTOCOL_VERSION in meta and CLIENT_CAPABILITIES in meta
        self.name = params.get("name")
        self.uri = params.get("uri")
        self.cursor = params.get("cursor")
        self.task_id = params.get("taskId")
        self.wants_task = type(params.get("task")) is dict
        self.filter = object_at(params, "notifications") if seen.method == LISTEN else {}
        self.acknowledged = False
        self.answered = False
        self.cancelled = False
        # The cacheScope of the previous page, if this requests the next one.
        self.scope: object = None
        # Equal for two attempts at the same request.
        self.retry_key: int | None = None
        # How the HTTP headers disagree with the body: "missing", "mismatch", "version".
        self.header_fault = ""
        # Faults that the receiver has to refuse: the requirement and the error code.
        self.refusals_due: list[tuple[str, int]] = []


class HttpExchange(Shown, Struct, eq=False):
    """An HTTP request and the response so far."""

    method: str
    path: str
    revision: str
    # What the body held: "request", "other", or nothing.
    kind: str = ""
    calls: list[ObservedCall] = field(default_factory=list)
    resumes: bool = False
    session_id: str | None = None
    status: int | None = None
    is_events: bool = False
    started: bool = False
    had_reply: bool = False
    event_ids: bool = False
    retry: bool = False


class ObservedProgress(Shown, Struct, eq=False):
    """The request or task behind a progress token, and the last value reported."""

    call: ObservedCall
    last: float | None = None
    task: str | None = None


class ObservedRoundTrip(Shown, Struct, eq=False):
    """The input requests of an input_required result."""

    id: object
    retry_key: int
    keys: frozenset[str]
    state: object


class ObservedTask(Shown, Struct, eq=False):
    """A task, as last reported."""

    status: str = ""
    created: float | None = None
    ttl: object = None
    fetched: bool = False
    # The fingerprint of the final status with its result or error.
    end: int | None = None
    input_requests: BoundedDict[str, int] = field(default_factory=lambda: BoundedDict(256))


class ObservedTool:
    """The parts of a listed tool that later calls are checked against."""

    def __init__(self, row: Members) -> None:
        self.has_output = type(row.get("outputSchema")) is dict
        self.output = _small(row.get("outputSchema"))
        self.input = _small(row.get("inputSchema"))
        self.task_support = object_at(row, "execution").get("taskSupport")
        # The arguments that headers repeat. A tool with a faulty annotation must not be called.
        self.headers: tuple[ParamPath, ...] = ()
        self.has_faulty_header = False
        try:
            self.headers = param_headers(object_at(row, "inputSchema"))
        except InvalidParamHeader:
            self.has_faulty_header = True


class ObservedSession(Shown, Struct, eq=False):
    """The outcome of initialize."""

    # "none", "asked", "agreed".
    phase: str = "none"
    revision: str = ""
    client: Members = field(default_factory=dict)
    server: Members = field(default_factory=dict)
    initialized: bool = False
    # False if the server has answered initialize with a version that was never released.
    is_released: bool = True
    http_id: str | None = None
    # After status 404, and after a DELETE that succeeded.
    lost: bool = False
    ended: bool = False
    # Breaches that are reported once, not for each message that follows.
    reported: set[str] = field(default_factory=set)


class State:
    """Everything that the rules remember of a conversation."""

    def __init__(self) -> None:
        self.session = ObservedSession()
        self.open: BoundedDict[Key, ObservedCall] = BoundedDict()
        self.closed: BoundedDict[Key, ObservedCall] = BoundedDict()
        self.ids: BoundedDict[Key, None] = BoundedDict(MAX_IDS)
        self.tokens: BoundedDict[Key, ObservedProgress] = BoundedDict()
        self.streams: BoundedDict[StreamId, HttpExchange] = BoundedDict()
        self.cursors: BoundedDict[tuple[str, str], object] = BoundedDict()
        self.rounds: BoundedDict[int, tuple[ObservedRoundTrip, ...]] = BoundedDict()
        self.round_states: BoundedDict[str, frozenset[int]] = BoundedDict()
        self.refused: BoundedDict[int, tuple[str, ...]] = BoundedDict(64)
        self.tasks: BoundedDict[tuple[str, str], ObservedTask] = BoundedDict()
        self.tools: BoundedDict[str, ObservedTool] = BoundedDict()
        self.sent_on: BoundedDict[tuple[str, str, object], StreamId] = BoundedDict()
        self.event_ids: BoundedDict[str, int] = BoundedDict()
        # Fingerprints of the last complete list of tools: the set, and the order.
        self.tool_order: tuple[int, int] | None = None
        # The uris of the last listing of resources, if it was complete.
        self.resources: frozenset[str] | None = None
        # The result of server/discover.
        self.discovered: Members | None = None
        self.supported: tuple[str, ...] = ()
        # The per-request revision of the last message that has one; and whether the server sent an
        # error that only those have.
        self.per_request = ""
        self.modern_error = False
        self.has_token = False
        # By side: its last message was a notification.
        self.notified: dict[str, bool] = {}

    def exchange(self, entry: TraceEntry) -> HttpExchange | None:
        """Return the HTTP exchange that an entry is part of, if that is known."""
        return None if entry.stream is None else self.streams.get(entry.stream)


class ObservedMessage:
    """One message, taken apart as far as the rules need it."""

    def __init__(
        self, members: Members, entry: TraceEntry, index: int, sender: Role | None
    ) -> None:
        self.members = members
        self.entry = entry
        self.index = index
        self.sender = sender
        self.in_batch = False
        self.revision = ""
        self.row: Method | None = None
        # Of a reply, the request that it answers.
        self.call: ObservedCall | None = None
        self.id = members.get("id")
        method = members.get("method")
        self.method = method if type(method) is str else ""
        self.kind = _kind(members)
        self.params = object_at(members, "params")
        self.result: Members | None = _object(members.get("result"))
        self.error: Members | None = _object(members.get("error"))
        holder = self.params if self.result is None else self.result
        self.meta = object_at(holder, "_meta")
        self.key = key_of(sender, self.id) if self.kind == "request" else None

    @property
    def is_http(self) -> bool:
        """Whether it came over HTTP."""
        return self.entry.http is not None or self.entry.transport == "http"

    @property
    def code(self) -> object:
        """The code of an error reply."""
        return None if self.error is None else self.error.get("code")


def _kind(members: Members) -> str:
    if "method" in members:
        return "request" if members.get("id") is not None else "notification"
    return "reply" if "result" in members or "error" in members else "other"


def _object(value: Any) -> Members | None:
    return value if type(value) is dict else None


def object_at(holder: Members, name: str) -> Members:
    """Return a member that is an object, or an empty dict."""
    value = holder.get(name)
    return value if type(value) is dict else {}


def key_of(sender: str | None, id: Any) -> Key | None:
    """Return the key that an id of a sender is stored under; None if it is not a valid id."""
    if type(id) is int or type(id) is str:
        return (sender or "", type(id).__name__, id)
    return None


def declares(capabilities: Members, name: str) -> bool:
    """Return True if a set of capabilities has the one at the path `name`."""
    start, _, rest = name.partition(".")
    steps = (start, rest) if start == "extensions" and rest else name.split(".")
    value: Any = capabilities
    for step in steps:
        value = value.get(step) if type(value) is dict else None
        if value is None or value is False:
            return False
    return True


def fingerprint(*values: Any) -> int:
    """Return a hash of JSON values, so that they need not be kept; unknown ones count as equal."""
    try:
        return hash(encode(values, order="sorted", enc_hook=_encode_unknown))
    except UNWRITABLE:
        return 0  # not JSON, so it was never on the wire


def _encode_unknown(value: Any) -> None:
    if not isinstance(value, Unknown):
        raise TypeError


def _small(schema: Any) -> Members | None:
    # The peer chooses how large its schemas are.
    try:
        is_small = (
            type(schema) is dict
            and len(encode(schema, enc_hook=_encode_unknown)) <= MAX_SCHEMA_BYTES
        )
    except UNWRITABLE:
        return None
    return schema if is_small else None
