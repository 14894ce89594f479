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
    "Retry",
    "Role",
    "Sender",
    "Severity",
    "Status",
    "Subject",
    "TransportKind",
    "TransportRow",
    "Type",
    "TypeKind",
]

# -- errors and types ------------------------------------------------------------------------

# One vocabulary for the three that the described systems use.
Severity: TypeAlias = Literal["critical", "error", "warning", "info"]
Retry: TypeAlias = Literal["retry", "abort", "fallback"]

ALWAYS = Window()


class ErrorCode(NamedTuple):
    """One error number of one profile: what it is called and what it means."""

    number: int
    symbol: str
    message: str
    category: str
    severity: Severity = "error"
    retry: Retry = "abort"
    # The HTTP status a server answers with, where the profile knows one.
    http: int | None = None
    # The members of `data` that a named constructor fills, in order.
    data: tuple[str, ...] = ()
    when: Window = ALWAYS
    # False for a number that is understood when read but may not be sent.
    sent: bool = True
    # The row of the list this was taken from, where it has a name of its own.
    ref: str = ""


# A type is written as a short text: `string`, `integer`, `number`, `boolean`, `null`, `any`,
# the name of a type, `list<X>`, `map<X>`, a constant (`'text'`, `-32602`), or `A | B`.
# `trunkline.spec.types.parse` reads it.
TypeKind: TypeAlias = Literal["object", "union", "enum", "alias"]

# What else a value must be: keywords of JSON Schema and their values.
Limits: TypeAlias = tuple[tuple[str, object], ...]


class Field(NamedTuple):
    """One member of an object type. One whose type changes has a row for each type."""

    name: str
    type: str
    # A window where the field is required in some of the revisions that have it.
    required: bool | Window = False
    # Within the window of its type: the default is "as long as the type".
    when: Window = ALWAYS
    limits: Limits = ()
    # Why this differs from the official schema file, in every revision of its window.
    departs: str = ""


class Member(NamedTuple):
    """One thing that a union, an enum or an alias may be."""

    type: str
    when: Window = ALWAYS


class Type(NamedTuple):
    """One type of a specification. One whose kind changes has a row for each kind."""

    name: str
    kind: TypeKind
    # The members of an object.
    fields: tuple[Field, ...] = ()
    # The types of a union, the constants of an enum, the one type of an alias.
    of: tuple[Member, ...] = ()
    when: Window = ALWAYS
    # Whether it invites members that it does not list (True), or forbids them (False).
    # None is the usual case: they are neither expected nor wrong.
    open: bool | Window | None = None
    limits: Limits = ()
    doc: str = ""
    # Why this differs from the official schema file, in some revision, apart from its fields.
    departs: str = ""


# -- features --------------------------------------------------------------------------------

Role: TypeAlias = Literal["client", "server"]
Sender: TypeAlias = Literal["client", "server", "both"]
MessageKind: TypeAlias = Literal["request", "notification"]
# No row says "removed": it is what a lookup answers beyond the last window of a name.
Status: TypeAlias = Literal["stable", "experimental", "deprecated", "removed"]
# Whether a message is one of JSON-RPC, or a value in the result of another request.
Form: TypeAlias = Literal["wire", "inside-result"]
Replies: TypeAlias = Literal["one", "many"]
# Which side of a message has to have declared the capability that opens it.
Holder: TypeAlias = Literal["sender", "receiver", "both"]
Level: TypeAlias = Literal["no", "should", "must"]

_BOTH: tuple[Role, ...] = ("client", "server")


class Method(NamedTuple):
    """One method or notification, in the revisions where nothing about it changes."""

    name: str
    kind: MessageKind
    by: Sender
    # The name of a type.
    params: str | None
    # A type expression; None for a notification.
    result: str | None
    when: Window = ALWAYS
    params_required: bool = False
    # Whether a peer on the sending or the receiving end must implement it.
    required: bool = False
    # How many replies a request draws; a notification draws none.
    replies: Replies = "one"
    # The reply may be as far off as the sender wishes: a timeout would be wrong.
    lasting: bool = False
    # The capability without which it may not be sent, and whose that is.
    capability: str = ""
    holder: Holder = "receiver"
    # The request on whose stream, and nowhere else, a notification travels.
    stream: str = ""
    form: Form = "wire"
    status: Status = "stable"
    extension: str = ""
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


# A flag is true or absent; an object is present (and may be empty) or absent; a map takes
# names that the specification does not list.
CapabilityKind: TypeAlias = Literal["flag", "object", "map"]

_EXTENSIONS = "extensions."


class Capability(NamedTuple):
    """One thing a side can declare, by its place: `resources.subscribe`."""

    name: str
    role: Role
    kind: CapabilityKind
    when: Window = ALWAYS
    # What the same side has to declare as well.
    depends: tuple[str, ...] = ()
    # What follows from declaring it, a sentence each.
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
        # The id of an extension has dots of its own and is one key.
        if self.name.startswith(_EXTENSIONS):
            return ("extensions", self.name.removeprefix(_EXTENSIONS))
        return tuple(self.name.split("."))


# Whether the medium carries bytes, so that framing has to cut them, or whole messages.
TransportKind: TypeAlias = Literal["stream", "message"]


class TransportRow(NamedTuple):
    """One way for messages to travel."""

    name: str
    kind: TransportKind
    # Where one message ends and the next begins.
    framing: str
    # Whether the peers stay connected between messages.
    connection_oriented: bool
    # Whether each request has a channel of its own, which can be closed by itself.
    multiplexing: bool
    # What an implementation must and may have, a phrase each.
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    when: Window = ALWAYS
    # Ours, as the specification allows, not one of its own.
    custom: bool = False
    status: Status = "stable"
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""


class Mirror(NamedTuple):
    """A place of the message body that a header repeats."""

    # "*" is every request.
    method: str
    # A JSON pointer into the message.
    pointer: str
    extension: str = ""


class Header(NamedTuple):
    """One HTTP header that the specification gives a meaning or a rule."""

    # `{Name}` at the end stands for any name. Header names compare without case.
    name: str
    by: Sender
    # On what it has to be, as a phrase; empty where nothing demands it.
    required_on: str = ""
    mirrors: tuple[Mirror, ...] = ()
    # Whether a value that HTTP cannot carry as it is may travel in Base64.
    base64: bool = False
    when: Window = ALWAYS
    status: Status = "stable"
    doc: str = ""
    anchor: str = ""
    adopt: str = ""
    instead: str = ""
    renamed_to: str = ""


Place: TypeAlias = Literal["request", "notification", "result"]


class MetaKey(NamedTuple):
    """One key of `_meta` that the specification gives a meaning."""

    key: str
    on: tuple[Place, ...]
    type: str
    required: Level = "no"
    # Which of those messages carry it, as a phrase, where not all do.
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
        """The key, under the word that other rows use."""
        return self.key


# Which prefixes belong to the specification: none, those with one of its labels before
# another label, or those with one of its labels in second place.
Reserved: TypeAlias = Literal["nothing", "before-another", "second"]


class MetaGrammar(NamedTuple):
    """What a key of `_meta` may look like."""

    when: Window
    # Whether keys have a form at all.
    formed: bool
    reserved: Reserved
    # The labels that mark a prefix as the specification's own.
    labels: tuple[str, ...] = ()
    anchor: str = ""


# What a difference between two revisions is about, and what has become of it.
Subject: TypeAlias = Literal[
    "method", "capability", "transport", "header", "meta key", "error", "type", "field"
]
How: TypeAlias = Literal["added", "removed", "renamed", "changed"]


class Advice(NamedTuple):
    """What to do about a change, where the changing row has no place to say it."""

    subject: Subject
    how: How
    # `Type.field` for a field; after `*` comes the end of the names that are meant.
    name: str
    # The revision that brought the change.
    since: str
    says: str = ""
    renamed_to: str = ""
