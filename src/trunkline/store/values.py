"""What goes into a store and comes out of it, and how much of it there may be.

Nothing here shows the bytes of a value or the name of a key when it is printed: either may be
a secret.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from msgspec import Struct

from .errors import InvalidKey

__all__ = [
    "Cursor",
    "Key",
    "Lease",
    "LogEntry",
    "LogPage",
    "Message",
    "RecordPage",
    "Retention",
    "StoreLimits",
    "Stored",
]

# In UTF-8, of a tenant or a name. Long enough for a URL that means to be read; what is longer
# (a token) is hashed by whoever stores it.
KEY_BYTES: Final = 512
# Of a page of a scan or a log: more would hold up the loop, or an engine that others use.
PAGE_LIMIT: Final = 1000

_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


class _Facts(Struct, frozen=True):
    """Values that are printed without their bytes."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text}" for name, text in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [(name, _shown(getattr(self, name))) for name in self.__struct_fields__]


class Key(_Facts, frozen=True):
    """Where something is: whose it is, what kind of thing, and which one.

    `tenant` and `name` are any text that UTF-8 can write, also the empty one: "" is the
    tenant of those who have none. `kind` is a word of the code's own, never of a peer's.

    Raises:
        InvalidKey: a part is too long, or no such text.
    """

    tenant: str
    kind: str
    name: str

    def __post_init__(self) -> None:
        if not (isinstance(self.kind, str) and _KIND.fullmatch(self.kind)):
            raise InvalidKey("the kind of a key is a word of lower case letters, digits and -")
        _check_part("tenant", self.tenant)
        _check_part("name", self.name)

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A name may be what a session or a token is known by.
        hidden = f"<{len(self.name)} characters>"
        return [("tenant", repr(self.tenant)), ("kind", repr(self.kind)), ("name", hidden)]


class Stored(_Facts, frozen=True):
    """A value, and the version that says whether it is still the same one.

    A version is only ever compared. Every write of a key has another, also after the key was
    deleted or expired and is there again.
    """

    value: bytes
    version: int


class RecordPage(Struct, frozen=True):
    """Some of the keys that a scan is about; `cursor` is None when there are no more."""

    keys: tuple[Key, ...]
    cursor: str | None


class Cursor(Struct, frozen=True):
    """A place in a log: just behind entry `number` of the log that began as `epoch`."""

    epoch: str
    number: int


class LogEntry(_Facts, frozen=True):
    """One entry of a log; the numbers of an epoch are 1, 2, 3 and so on, without a gap."""

    number: int
    data: bytes


class LogPage(Struct, frozen=True):
    """What a log has behind a cursor, oldest first.

    `missed` counts the entries between the cursor and the first of these that were trimmed
    before they were read. It is None when nobody can know: the log of that cursor is gone, and
    the entries are the first of the one that is there now, if one is.
    `cursor` is where to read on; None while there is no log.
    """

    entries: tuple[LogEntry, ...]
    cursor: Cursor | None
    missed: int | None


class Retention(Struct, frozen=True):
    """How much of a log is kept: that of the latest append holds for all of it."""

    max_entries: int
    # Seconds that an entry can be read for; None is as long as the log is there.
    max_age: float | None
    # Seconds from the last append until the log is gone with its epoch. Readers who were away
    # for longer than `max_age` learn what they missed only while the log is there.
    ttl: float

    def __post_init__(self) -> None:
        if self.max_entries < 1:
            raise ValueError("a log keeps at least one entry")
        check_ttl(self.max_age)
        check_ttl(self.ttl)


class Message(_Facts, frozen=True):
    """What was published, and on which channel."""

    channel: Key
    data: bytes


class Lease(Struct, frozen=True):
    """The right to do something alone, for a time.

    `token` is greater than that of every earlier lease of the key: what is worked on keeps the
    greatest it has seen and refuses a smaller one, which is that of a holder who was away.
    """

    key: Key
    token: int


class StoreLimits(Struct, frozen=True):
    """How much one store may hold. What an engine bounds by itself, a driver leaves to it."""

    # Values, logs, markers and leases, together.
    keys: int = 100_000
    # With what each key and entry costs beside its bytes.
    total_bytes: int = 64 * 1024 * 1024
    # The same for any one tenant, so that one cannot take the room of all. None: no own bound.
    tenant_keys: int | None = None
    tenant_bytes: int | None = None
    # Of one value, one entry of a log or one message.
    value_bytes: int = 1024 * 1024
    # The most that a `Retention` may ask for.
    log_entries: int = 10_000
    # Channels that are listened to, counted for each subscription.
    subscriptions: int = 10_000
    # What waits for one subscriber; one message more, and the subscription has ended as SLOW.
    backlog: int = 1024
    backlog_bytes: int = 2 * 1024 * 1024


def check_ttl(ttl: float | None) -> None:
    """Raise ValueError for a time to live that is none."""
    if ttl is not None and not (isfinite(ttl) and ttl > 0):
        raise ValueError("a time to live is a number of seconds, more than none")


def check_limit(limit: int) -> None:
    """Raise ValueError for a page that is too large, or has no room for anything."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise ValueError(f"a page has from 1 to {PAGE_LIMIT} items")


def _check_part(part: str, text: object) -> None:
    try:
        if isinstance(text, str) and len(text.encode()) <= KEY_BYTES:
            return
    except UnicodeEncodeError:
        pass  # a lone surrogate: an engine that keeps bytes could not keep it
    # Not part of the message: a name may be a secret, and may be a megabyte.
    raise InvalidKey(f"the {part} of a key is a text of at most {KEY_BYTES} bytes")


def _shown(value: object) -> str:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else repr(value)
