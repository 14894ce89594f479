"""What is remembered of a conversation, and what one message of it is.

Both peers of a recording may be hostile, so every map here has a bound and forgets its
oldest entry. What may have been forgotten is never called unknown: see `BoundedDict.evicted`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec.json import encode

from ...jsonrpc.encode_errors import UNWRITABLE
from ...spec.mcp.meta import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION
from ...spec.rows import Method, Role
from ..trace import StreamId, TraceEntry

__all__ = [
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
# Who asked, and an id with its JSON type: 7 and "7" are two ids.
Key: TypeAlias = tuple[str, str, int | str]

# More than an honest peer keeps open; the ids of a session may be many more.
MAX_ENTRIES: Final = 1024
MAX_IDS: Final = 16384
MAX_SCHEMA_BYTES: Final = 16384

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V], Generic[K, V]):
    """A dict that forgets its oldest entry beyond a bound, and knows whether it ever did."""

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
    """A request, as long as something may still refer to it."""

    __slots__ = (
        "acknowledged",
        "answered",
        "at",
        "cancelled",
        "cursor",
        "declared",
        "filter",
        "header_fault",
        "id",
        "in_batch",
        "index",
        "level",
        "meta_complete",
        "method",
        "missing_keys",
        "name",
        "refusals_due",
        "retry_key",
        "revision",
        "scope",
        "sender",
        "stream",
        "task_id",
        "token",
        "version",
        "wants_task",
    )

    def __init__(self, seen: ObservedMessage) -> None:
        params, meta = seen.params, seen.meta
        self.id = seen.members.get("id")
        self.method = seen.method
        self.sender = seen.sender
        self.revision = seen.revision
        self.index = seen.index
        self.at = seen.entry.at
        self.stream = seen.entry.stream
        self.in_batch = seen.in_batch
        self.token = meta.get("progressToken")
        self.level = meta.get(LOG_LEVEL)
        self.version = meta.get(PROTOCOL_VERSION)
        self.declared = object_at(meta, CLIENT_CAPABILITIES)
        self.meta_complete = PROTOCOL_VERSION in meta and CLIENT_CAPABILITIES in meta
        self.name = params.get("name")
        self.cursor = params.get("cursor")
        self.task_id = params.get("taskId")
        self.wants_task = type(params.get("task")) is dict
        self.filter = object_at(params, "notifications") if seen.method == LISTEN else {}
        self.acknowledged = False
        self.answered = False
        self.cancelled = False
        # The cacheScope of the page before, where this asks for the next.
        self.scope: object = None
        self.retry_key: int | None = None
        # What of its HTTP headers disagrees with its body: "missing", "mismatch", "version".
        self.header_fault = ""
        # A fault that the receiver has to refuse, and the code it has to do so with.
        self.refusals_due: list[tuple[str, int]] = []
        self.missing_keys = False


LISTEN: Final = "subscriptions/listen"


class HttpExchange:
    """An HTTP request and what answered it so far."""

    __slots__ = (
        "calls",
        "event_ids",
        "had_reply",
        "is_events",
        "kind",
        "method",
        "path",
        "resumes",
        "retry",
        "revision",
        "session_id",
        "started",
        "status",
    )

    def __init__(self, method: str, path: str, revision: str) -> None:
        self.method = method
        self.path = path
        self.revision = revision
        # What the body held: "request", "other", or nothing.
        self.kind = ""
        self.calls: list[ObservedCall] = []
        self.resumes = False
        self.session_id: str | None = None
        self.status: int | None = None
        self.is_events = False
        self.started = False
        self.had_reply = False
        self.event_ids = False
        self.retry = False


class ObservedProgress:
    """What a progress token stands for, and how far it has come."""

    __slots__ = ("call", "last", "task")

    def __init__(self, call: ObservedCall) -> None:
        self.call = call
        self.last: float | None = None
        self.task: str | None = None


class ObservedRoundTrip:
    """What an input_required result asked for."""

    __slots__ = ("id", "keys", "retry_key", "state")

    def __init__(self, id: object, retry_key: int, keys: frozenset[str], state: object) -> None:
        self.id = id
        self.retry_key = retry_key
        self.keys = keys
        self.state = state


class ObservedTask:
    """A task, by what was last reported of it."""

    __slots__ = ("created", "end", "fetched", "questions", "status", "ttl")

    def __init__(self) -> None:
        self.status = ""
        self.created: float | None = None
        self.ttl: object = None
        self.fetched = False
        # The fingerprint of how it ended.
        self.end: int | None = None
        self.questions: BoundedDict[str, int] = BoundedDict(256)


class ObservedTool:
    """What a listing says of a tool that a later call is judged by."""

    __slots__ = ("has_output", "headers", "input", "output")

    def __init__(self, row: Members) -> None:
        self.has_output = type(row.get("outputSchema")) is dict
        self.output = _small(row.get("outputSchema"))
        self.input = _small(row.get("inputSchema"))
        # The arguments that are repeated in headers: name of the argument, of the header.
        properties = object_at(object_at(row, "inputSchema"), "properties")
        self.headers = {
            name: schema["x-mcp-header"]
            for name, schema in properties.items()
            if type(schema) is dict and type(schema.get("x-mcp-header")) is str
        }


class ObservedSession:
    """What initialize settled."""

    __slots__ = (
        "client",
        "ended",
        "http_id",
        "initialized",
        "lost",
        "phase",
        "reported",
        "revision",
        "server",
    )

    def __init__(self) -> None:
        # "none", "asked", "agreed".
        self.phase = "none"
        self.revision = ""
        self.client: Members = {}
        self.server: Members = {}
        self.initialized = False
        self.http_id: str | None = None
        # After status 404, and after a DELETE that succeeded.
        self.lost = False
        self.ended = False
        # What has been said once and is not said again for each message that follows.
        self.reported: set[str] = set()


class State:
    """All that rules remember."""

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
        # The last whole listing of tools: which they are, and in which order.
        self.tool_order: tuple[int, int] | None = None
        # What server/discover answered.
        self.discovered: Members | None = None
        self.supported: tuple[str, ...] = ()
        # Whether a message of the per-request revisions was seen, and a modern error with one.
        self.per_request = False
        self.modern_error = False
        self.has_token = False
        # The last message of each side was a notification.
        self.notified: dict[str, bool] = {}

    def exchange(self, entry: TraceEntry) -> HttpExchange | None:
        """Return the HTTP exchange that an entry is part of, if that is known."""
        return None if entry.stream is None else self.streams.get(entry.stream)


class ObservedMessage:
    """One message, read as far as the rules need it."""

    __slots__ = (
        "call",
        "entry",
        "error",
        "id",
        "in_batch",
        "index",
        "key",
        "kind",
        "members",
        "meta",
        "method",
        "params",
        "result",
        "revision",
        "row",
        "sender",
    )

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
    """Return a member that is an object; an empty one where there is none."""
    value = holder.get(name)
    return value if type(value) is dict else {}


def key_of(sender: str | None, id: Any) -> Key | None:
    """Return what an id of a sender is remembered by, or None where it is none."""
    if type(id) is int or type(id) is str:
        return (sender or "", type(id).__name__, id)
    return None


def declares(capabilities: Members, name: str) -> bool:
    """Say whether a set of capabilities has the one at the place `name`."""
    start, _, rest = name.partition(".")
    steps = (start, rest) if start == "extensions" and rest else name.split(".")
    value: Any = capabilities
    for step in steps:
        value = value.get(step) if type(value) is dict else None
        if value is None or value is False:
            return False
    return True


def fingerprint(*values: Any) -> int:
    """Return a number that tells values apart, so that they need not be kept."""
    try:
        return hash(encode(values, order="sorted"))
    except UNWRITABLE:
        return 0  # no JSON: nobody sent it as such


def _small(schema: Any) -> Members | None:
    """Return a schema that is worth keeping: a peer chooses how large its schemas are."""
    try:
        is_small = type(schema) is dict and len(encode(schema)) <= MAX_SCHEMA_BYTES
    except UNWRITABLE:
        return None
    return schema if is_small else None
