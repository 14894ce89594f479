"""The row types that specifications are written down in.

Rows are named tuples: immutable, cheap to create, and loaded only by the lookups that need
them. They state facts and call nothing.

A row has a `when`: the revisions in which all of its columns hold. Whatever changes between
two revisions has one row before the change and one after it, so that no column depends on a
revision. The rows of features (methods, capabilities, transports, headers, `_meta` keys) have
three columns about the change itself:

* `adopt` says what to do when moving from an older revision to this row,
* `instead` says what to do once the row no longer holds, where no other row replaces it,
* `renamed_to` names the row that replaces it under another name.

`anchor` is a revision and a page of the specification, with the heading where there is one.
"""

# No `from __future__ import annotations`: a named tuple would compile each of them as a text.
from typing import Literal, NamedTuple, TypeAlias

from .revisions import Window

__all__ = [
    "ALWAYS",
    "Advice",
    "Capability",
    "CapabilityKind",
    "ErrorCode",
    "Field",
    "Form",
    "Header",
    "Holder",
    "How",
    "HttpStatus",
    "Level",
    "Limits",
    "Member",
    "MessageKind",
    "MetaGrammar",
    "MetaKey",
    "Method",
    "Mirror",
    "Place",
    "Replies",
    "Reserved",
    "ReservedCodes",
    "Retry",
    "Role",
    "Sender",
    "Severity",
    "Status",
    "StatusLevel",
    "Subject",
    "TransportKind",
    "TransportRow",
    "Type",
    "TypeKind",
]

# -- errors and types ------------------------------------------------------------------------

# One vocabulary for those of the described systems.
Severity: TypeAlias = Literal["critical", "error", "warning", "info"]
Retry: TypeAlias = Literal["retry", "abort", "fallback"]

ALWAYS = Window()


class ErrorCode(NamedTuple):
    """One error code of one profile."""

    number: int
    symbol: str
    message: str
    category: str
    severity: Severity = "error"
    retry: Retry = "abort"
    # The HTTP status of the reply, if the profile defines one.
    http: int | None = None
    # The members of `data` that a named constructor fills, in order.
    data: tuple[str, ...] = ()
    when: Window = ALWAYS
    # False for a number that may be received but must not be sent.
    sent: bool = True
    # The id of the entry in the list that this row was taken from.
    ref: str = ""


# A type is written as a short text: `string`, `integer`, `number`, `boolean`, `null`, `any`,
# the name of a type, `list<X>`, `map<X>`, a constant (`'text'`, `-32602`), or `A | B`.
# `trunkline.spec.types.parse` reads it.
TypeKind: TypeAlias = Literal["object", "union", "enum", "alias"]

# Further conditions on a value: keywords of JSON Schema and their values.
Limits: TypeAlias = tuple[tuple[str, object], ...]


class ReservedCodes(NamedTuple):
    """A range of error codes that a specification keeps for itself."""

    # The specification: "jsonrpc" or "mcp".
    by: str
    codes: range
    when: Window


class Field(NamedTuple):
    """One member of an object type. A member whose type changes has a row for each type."""

    name: str
    type: str
    # A window if the field is required only in some of the revisions that have it.
    required: bool | Window = False
    # Within the window of its type; by default the same.
    when: Window = ALWAYS
    limits: Limits = ()
    # Why this differs from the official schema file, in every revision of its window.
    departs: str = ""


class Member(NamedTuple):
    """One alternative of a union, constant of an enum, or target of an alias."""

    type: str
    when: Window = ALWAYS


class Type(NamedTuple):
    """One type of a specification. A type whose kind changes has a row for each kind."""

    name: str
    kind: TypeKind
    # The members of an object.
    fields: tuple[Field, ...] = ()
    # The types of a union, the constants of an enum, the one type of an alias.
    of: tuple[Member, ...] = ()
    when: Window = ALWAYS
    # True if members that are not listed are expected, False if they are forbidden, None (the
    # usual case) if they are neither.
    open: bool | Window | None = None
    limits: Limits = ()
    doc: str = ""
    # Why this differs from the official schema file, in some revision, apart from its fields.
    departs: str = ""


# -- features --------------------------------------------------------------------------------

Role: TypeAlias = Literal["client", "server"]
Sender: TypeAlias = Literal["client", "server", "both"]
MessageKind: TypeAlias = Literal["request", "notification"]
# No row is "removed": a lookup returns it after the last window of a name.
Status: TypeAlias = Literal["stable", "experimental", "deprecated", "removed"]
# A JSON-RPC message, or a value inside the result of another request.
Form: TypeAlias = Literal["wire", "inside-result"]
Replies: TypeAlias = Literal["one", "many"]
# The side that must have declared the capability.
Holder: TypeAlias = Literal["sender", "receiver", "both"]
Level: TypeAlias = Literal["no", "should", "must"]
# What a server has registered or keeps; "reference" is a prompt or resource in a completion.
EntryKind: TypeAlias = Literal["tool", "prompt", "resource", "template", "reference", "task"]

_BOTH: tuple[Role, ...] = ("client", "server")


class Method(NamedTuple):
    """One method or notification, in revisions between which it does not change."""

    name: str
    kind: MessageKind
    by: Sender
    # The name of a type.
    params: str | None
    # A type expression; None for a notification.
    result: str | None
    when: Window = ALWAYS
    params_required: bool = False
    # True if peers must implement it.
    required: bool = False
    # The number of replies to a request; a notification has none.
    replies: Replies = "one"
    # True if the reply may take arbitrarily long, so that a timeout would be wrong.
    lasting: bool = False
    # The capability without which it must not be sent, and the side that declares it.
    capability: str = ""
    holder: Holder = "receiver"
    # The request on whose stream alone a notification is sent.
    stream: str = ""
    form: Form = "wire"
    status: Status = "stable"
    extension: str = ""
    # What the params name, and what the result lists.
    entry: EntryKind | None = None
    lists: EntryKind | None = None
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""

    @property
    def senders(self) -> tuple[Role, ...]:
        """The roles that may send it."""
        return _BOTH if self.by == "both" else (self.by,)

    def declared_by(self, sender: Role) -> tuple[Role, ...]:
        """Return the roles that must have declared `capability` when `sender` sends this."""
        if not self.capability:
            return ()
        if self.holder == "both":
            return _BOTH
        if self.holder == "sender":
            return (sender,)
        return ("server",) if sender == "client" else ("client",)


# A flag is true or absent; an object is present (possibly empty) or absent; a map has names
# that the specification does not list.
CapabilityKind: TypeAlias = Literal["flag", "object", "map"]

_EXTENSIONS = "extensions."


class Capability(NamedTuple):
    """One capability that a side can declare, by its path: `resources.subscribe`."""

    name: str
    role: Role
    kind: CapabilityKind
    when: Window = ALWAYS
    # Further capabilities that the same side has to declare.
    depends: tuple[str, ...] = ()
    # The consequences of declaring it, a sentence each.
    rules: tuple[str, ...] = ()
    status: Status = "stable"
    extension: str = ""
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys that lead to it from the capabilities object."""
        # The id of an extension contains dots and is one key.
        if self.name.startswith(_EXTENSIONS):
            return ("extensions", self.name.removeprefix(_EXTENSIONS))
        return tuple(self.name.split("."))


# A byte stream, which needs framing, or a transport of whole messages.
TransportKind: TypeAlias = Literal["stream", "message"]


class TransportRow(NamedTuple):
    """One transport."""

    name: str
    kind: TransportKind
    # How messages are delimited.
    framing: str
    # True if the peers stay connected between messages.
    connection_oriented: bool
    # True if each request has a channel of its own that can be closed separately.
    multiplexing: bool
    # Required and optional features, a phrase each.
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    when: Window = ALWAYS
    # True for a transport of this library, which the specification allows.
    custom: bool = False
    status: Status = "stable"
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""


class Mirror(NamedTuple):
    """A value of the message body that a header repeats."""

    # "*" means every request.
    method: str
    # A JSON pointer into the message.
    pointer: str
    extension: str = ""


class Header(NamedTuple):
    """One HTTP header that the specification defines or restricts."""

    # A final `{Name}` matches any name. Header names are case-insensitive.
    name: str
    by: Sender
    # The messages that must have it, as a phrase; empty if it is optional.
    required_on: str = ""
    mirrors: tuple[Mirror, ...] = ()
    # True if a value that HTTP cannot carry as it is may be sent in Base64.
    base64: bool = False
    when: Window = ALWAYS
    status: Status = "stable"
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""


# "own" is a choice of this library where the specification leaves the status open.
StatusLevel: TypeAlias = Literal["must", "should", "may", "own"]


class HttpStatus(NamedTuple):
    """The status of an HTTP answer, by what it answers."""

    condition: str
    status: int
    level: StatusLevel
    # The kinds of JSON-RPC errors that are sent with it.
    kinds: tuple[str, ...] = ()
    when: Window = ALWAYS
    doc: str = ""
    # Of an own choice: the section of HTTP that defines the status.
    anchor: str = ""

    @property
    def name(self) -> str:
        """The condition, as the other rows call it."""
        return self.condition


Place: TypeAlias = Literal["request", "notification", "result"]


class MetaKey(NamedTuple):
    """One key of `_meta` that the specification defines."""

    key: str
    on: tuple[Place, ...]
    type: str
    required: Level = "no"
    # The messages that carry it, as a phrase, if not all do.
    only: str = ""
    when: Window = ALWAYS
    status: Status = "stable"
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""

    @property
    def name(self) -> str:
        """The key, as the other rows call it."""
        return self.key


# The reserved prefixes: none, those with a reserved label before another label, or those with
# a reserved label in second place.
Reserved: TypeAlias = Literal["nothing", "before-another", "second"]


class MetaGrammar(NamedTuple):
    """The grammar of the keys of `_meta`."""

    when: Window
    # False if a key is any text.
    formed: bool
    reserved: Reserved
    # The labels that mark a prefix as reserved.
    labels: tuple[str, ...] = ()
    anchor: str = ""


# The subject of a difference between two revisions, and the kind of change.
Subject: TypeAlias = Literal[
    "method", "capability", "transport", "header", "meta key", "error", "type", "field"
]
How: TypeAlias = Literal["added", "removed", "renamed", "changed"]


class Advice(NamedTuple):
    """Advice on a change, for rows that have no column for it."""

    subject: Subject
    how: How
    # `Type.field` for a field; `*` matches any beginning.
    name: str
    # The revision with the change.
    since: str
    says: str = ""
    renamed_to: str = ""
