"""The messages of JSON-RPC 2.0, as values.

They are immutable, compare by content, write themselves with `"jsonrpc": "2.0"`
and show no secret when printed. What they may contain is checked when a message
is read or written, by the codec; here are only their shapes.

`params=None` means "no params": JSON-RPC has no null params, so None never has
to stand for a value. Absent `data` is `UNSET`, because null is a value there.
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
    "ErrorObject",
    "ExtendedCall",
    "ExtendedNotification",
    "ExtendedRequest",
    "Failure",
    "Message",
    "Notification",
    "Reply",
    "Request",
    "RequestId",
    "SentRequest",
    "Shown",
    "Success",
]

RequestId: TypeAlias = int | str

# How much raw JSON is read, and how many messages of a batch are shown, when one is printed.
_RAW_SHOWN: Final = 65536
_ELEMENTS_SHOWN: Final = 32


class Shown:
    """Prints a Struct through redaction."""

    __slots__ = ()

    def __repr__(self: Struct) -> str:  # type: ignore[misc]  # mixed into Structs only
        return shown(self)

    # The one that a Struct has shows everything.
    def __rich_repr__(self: Struct) -> list[tuple[str, Any]]:  # type: ignore[misc]  # as above
        return list(_members(self))


class _Called(Shown, Struct, frozen=True, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any = None


class Request(_Called, frozen=True, kw_only=True, tag="2.0"):
    """A call that draws a reply: `Request("tools/list", id=1)`."""

    id: RequestId | None


class SentRequest(Shown, Struct, frozen=True, omit_defaults=True, tag_field="jsonrpc", tag="2.0"):
    """A request as a peer writes it: its id first.

    A reader that refuses a message for its size can still find an id that stands
    near the start, and answer.
    """

    id: RequestId
    method: str
    params: Any = None


class Notification(_Called, frozen=True, tag="2.0"):
    """A call that draws none: `Notification("notifications/initialized")`."""

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


class ErrorObject(Shown, Struct, frozen=True):
    """What went wrong: a number, a sentence, and any JSON value as detail."""

    code: int
    message: str
    data: Any = UNSET


class Success(Shown, Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The reply of a request that worked."""

    id: RequestId | None
    result: Any


class Failure(Shown, Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    """The reply of a request that did not.

    `id` is None (written as null) or UNSET (left out) when the request's own id
    could not be read.
    """

    id: RequestId | UnsetType | None
    error: ErrorObject


Message: TypeAlias = Request | Notification | Success | Failure


class Batch(tuple["Message | InvalidMessage", ...]):
    """Several messages in one; a faulty element stands in its place as `InvalidMessage`."""

    __slots__ = ()

    # A batch has no id of its own; its elements have.
    id: ClassVar[None] = None

    @property
    def messages(self) -> list[Message]:
        """The elements that are messages."""
        return [item for item in self if not isinstance(item, InvalidMessage)]

    @property
    def faults(self) -> list[InvalidMessage]:
        """The elements that are not."""
        return [item for item in self if isinstance(item, InvalidMessage)]

    def __repr__(self) -> str:
        items = [_element(item) for item in self[:_ELEMENTS_SHOWN]]
        if len(self) > _ELEMENTS_SHOWN:
            items.append(f"… {len(self) - _ELEMENTS_SHOWN} more")
        return f"Batch([{', '.join(items)}])"


class Call(Shown, Struct, gc=False, kw_only=True):
    """A request or notification as read on the hot path.

    `id` is UNSET for a notification. `params` is raw JSON, UNSET when absent, or
    the typed value where the codec was given a type for this method.
    """

    # Told apart by asking for this: `isinstance` of a Struct is slow.
    is_reply: ClassVar[Literal[False]] = False

    # Members are found faster in the order in which most senders write them.
    jsonrpc: str | UnsetType = UNSET
    id: RequestId | UnsetType | None = UNSET
    method: str
    params: Any = UNSET


class ExtendedCall(Call, gc=False, kw_only=True):
    """A call as read on the hot path, whose envelope carries credentials and context."""

    auth: str | UnsetType | None = UNSET
    headers: dict[str, Any] | UnsetType | None = UNSET
    metadata: dict[str, str] | UnsetType = UNSET


class Reply(Shown, Struct, gc=False, kw_only=True):
    """A reply as read on the hot path: `result` is raw JSON, or UNSET beside an `error`."""

    is_reply: ClassVar[Literal[True]] = True

    jsonrpc: str | UnsetType = UNSET
    id: RequestId | UnsetType | None
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


def shown(message: Struct, **replaced: object) -> str:
    """Return a message as it may be printed; `replaced` overrides how a field is shown."""
    fields = [
        f"{name}={replaced[name]}" if name in replaced else f"{name}={value!r}"
        for name, value in _members(message)
    ]
    return f"{type(message).__name__}({', '.join(fields)})"


def _members(message: Struct) -> Iterator[tuple[str, object]]:
    """Yield the members of a message with what may be printed of them."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if value is UNSET or name == "jsonrpc":
            continue
        if name == "auth":
            yield name, None if value is None else _Hidden()
        else:
            yield name, value if isinstance(value, Shown) else redact(_read(value))


class _Hidden:
    """Stands for a credential that is there and not shown."""

    def __repr__(self) -> str:
        return HIDDEN


def _element(item: object) -> str:
    return repr(item) if isinstance(item, Shown | InvalidMessage) else show(item)


def _read(value: object) -> object:
    """Return what raw JSON holds, so that its members can be redacted by name."""
    if not isinstance(value, Raw):
        return value
    size = len(bytes(value))
    if size > _RAW_SHOWN:
        return f"<{size} bytes of JSON>"
    # Imported here: only printing needs it.
    from msgspec.json import decode

    try:
        return decode(value)
    except (ValueError, RecursionError):
        return f"<{size} bytes of unreadable JSON>"
