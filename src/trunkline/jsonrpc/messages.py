"""The messages of JSON-RPC 2.0, as values.

They are immutable, compare by content, are encoded with `"jsonrpc": "2.0"` and
hide secrets in their repr. The codec checks their content.

`params=None` means "no params": JSON-RPC has no null params. Absent `data` is
`UNSET`, because null is a valid value there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from ..errors import InvalidMessage
from ..redaction import HIDDEN, redact, show

__all__ = [
    "Batch",
    "Call",
    "EnvelopeExtras",
    "ErrorObject",
    "ExtendedCall",
    "ExtendedNotification",
    "ExtendedRequest",
    "ExtendedSentRequest",
    "Failure",
    "Message",
    "Notification",
    "Reply",
    "Request",
    "RequestId",
    "SentRequest",
    "Shown",
    "Success",
    "shown_tuple",
]

RequestId: TypeAlias = int | str

# In a repr: raw JSON up to this size is decoded, and so many messages of a batch are shown.
_MAX_RAW_BYTES: Final = 65536
_MAX_ELEMENTS_SHOWN: Final = 32


class Shown:
    """A mixin whose repr redacts secrets."""

    __slots__ = ()

    def __repr__(self: Struct) -> str:  # type: ignore[misc]  # mixed into Structs only
        return shown(self)

    # The one of Struct would show everything.
    def __rich_repr__(self: Struct) -> list[tuple[str, Any]]:  # type: ignore[misc]  # as above
        return list(_members(self))


class _Called(Shown, Struct, frozen=True, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any = None


class Request(_Called, frozen=True, kw_only=True, tag="2.0"):
    """A call with a reply: `Request("tools/list", id=1)`."""

    id: RequestId | None


class SentRequest(Shown, Struct, frozen=True, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    """A request as a peer encodes it: its id first.

    A receiver that rejects a message for its size can still find an id near the start, and answer.
    """

    id: RequestId
    method: str
    params: Any = None


class Notification(_Called, frozen=True, tag="2.0"):
    """A call without a reply: `Notification("notifications/initialized")`."""

    id: ClassVar[None] = None


class ExtendedRequest(Request, frozen=True, kw_only=True, tag="2.0"):
    """A request whose envelope carries credentials and context beside the params."""

    auth: str | None = None
    headers: dict[str, Any] | None = None
    metadata: dict[str, str] = {}


class ExtendedNotification(Notification, frozen=True, kw_only=True, tag="2.0"):
    """A notification whose envelope carries credentials and context beside the params."""

    auth: str | None = None
    headers: dict[str, Any] | None = None
    metadata: dict[str, str] = {}


class ExtendedSentRequest(SentRequest, frozen=True, kw_only=True, tag="2.0"):
    """A request as a peer encodes it, with credentials and context beside the params."""

    auth: str | None = None
    headers: dict[str, Any] | None = None
    metadata: dict[str, str] = {}


class EnvelopeExtras(Shown, Struct, frozen=True, kw_only=True):
    """Credentials and context that a call carries beside its params.

    Sent under a policy whose `envelope` is "pierre". The repr hides the token, and whatever
    looks like a secret in headers and metadata.

    Raises:
        TypeError: a member has another type; the text names the member and not its value.
    """

    auth: str | None = None
    headers: dict[str, Any] | None = None
    metadata: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.auth is not None and not isinstance(self.auth, str):
            raise TypeError("EnvelopeExtras.auth is a str or None")
        if self.headers is not None and not _has_text_keys(self.headers):
            raise TypeError("EnvelopeExtras.headers is a dict whose keys are str, or None")
        if not _has_text_keys(self.metadata) or not all(
            isinstance(value, str) for value in self.metadata.values()
        ):
            raise TypeError("EnvelopeExtras.metadata is a dict of str to str")


def _has_text_keys(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


class ErrorObject(Shown, Struct, frozen=True):
    """An error: its code, message, and any JSON value as detail."""

    code: int
    message: str
    data: Any = UNSET


class Success(Shown, Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """A reply with a result."""

    id: RequestId | None
    result: Any


class Failure(Shown, Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """A reply with an error.

    `id` is None (encoded as null) or UNSET (omitted) when the id of the request
    could not be read.
    """

    id: RequestId | UnsetType | None
    error: ErrorObject


Message: TypeAlias = Request | Notification | Success | Failure


class Batch(tuple["Message | InvalidMessage", ...]):
    """Several messages in one; an invalid element is an `InvalidMessage`."""

    __slots__ = ()

    # A batch has no id of its own; its elements have.
    id: ClassVar[None] = None

    @property
    def messages(self) -> list[Message]:
        """The elements that are messages."""
        return [item for item in self if not isinstance(item, InvalidMessage)]

    @property
    def faults(self) -> list[InvalidMessage]:
        """The elements that are invalid."""
        return [item for item in self if isinstance(item, InvalidMessage)]

    def __repr__(self) -> str:
        items = [_element(item) for item in self[:_MAX_ELEMENTS_SHOWN]]
        if len(self) > _MAX_ELEMENTS_SHOWN:
            items.append(f"… {len(self) - _MAX_ELEMENTS_SHOWN} more")
        return f"Batch([{', '.join(items)}])"


class Call(Shown, Struct, gc=False, kw_only=True):
    """A request or notification as decoded on the hot path.

    `id` is UNSET for a notification. `params` is raw JSON, UNSET when absent, or
    the typed value where the codec was given a type for this method.
    """

    # Faster to check than `isinstance` of a Struct.
    is_reply: ClassVar[Literal[False]] = False

    # Decoding is fastest if the fields are in the order of the members on the wire.
    jsonrpc: str | UnsetType = UNSET
    id: RequestId | UnsetType | None = UNSET
    method: str
    params: Any = UNSET


class ExtendedCall(Call, gc=False, kw_only=True):
    """A call as decoded on the hot path, whose envelope carries credentials and context."""

    auth: str | UnsetType | None = UNSET
    headers: dict[str, Any] | UnsetType | None = UNSET
    metadata: dict[str, str] | UnsetType = UNSET


class Reply(Shown, Struct, gc=False, kw_only=True):
    """A reply as decoded on the hot path: `result` is raw JSON, or UNSET beside an `error`.

    The result of a large reply is the decoded value, where its request says how to decode it.
    """

    is_reply: ClassVar[Literal[True]] = True

    jsonrpc: str | UnsetType = UNSET
    id: RequestId | UnsetType | None
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


def shown(message: Struct, **replaced: object) -> str:
    """Return the redacted repr of a message; `replaced` overrides how a field is shown."""
    fields = [
        f"{name}={replaced[name]}" if name in replaced else f"{name}={value!r}"
        for name, value in _members(message)
    ]
    return f"{type(message).__name__}({', '.join(fields)})"


def shown_tuple(value: Any) -> str:
    """Return the redacted repr of a NamedTuple; to be called by its `__repr__`."""
    # By name, so that a field whose name suggests a secret is hidden.
    fields = dict(zip(value._fields, map(_read, value), strict=True))
    shown = redact(fields)
    parts = [f"{name}={each!r}" for name, each in shown.items()] if isinstance(shown, dict) else []
    return f"{type(value).__name__}({', '.join(parts)})"


def _members(message: Struct) -> Iterator[tuple[str, object]]:
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if value is UNSET or name == "jsonrpc":
            continue
        if name == "auth":
            yield name, None if value is None else _Hidden()
        else:
            yield name, value if isinstance(value, Shown) else redact(_read(value))


class _Hidden:
    def __repr__(self) -> str:
        return HIDDEN


def _element(item: object) -> str:
    return repr(item) if isinstance(item, Shown | InvalidMessage) else show(item)


def _read(value: object) -> object:
    """Decode raw JSON, so that its members can be redacted by name."""
    if not isinstance(value, Raw):
        return value
    size = len(bytes(value))
    if size > _MAX_RAW_BYTES:
        return f"<{size} bytes of JSON>"
    # Imported here: only printing needs it.
    from msgspec.json import decode

    try:
        return decode(value)
    except (ValueError, RecursionError):
        return f"<{size} bytes of unreadable JSON>"
