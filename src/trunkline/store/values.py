"""Value types of stores: keys, values, log entries, leases and limits.

Their repr never shows the bytes of a value or the name of a key: either may be a secret.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from msgspec import Struct

from .errors import InvalidStoreKey

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

# Of a tenant or name in UTF-8: enough for a readable URL. Longer names, such as tokens, are hashed.
MAX_KEY_BYTES: Final = 512
# Of a page of a scan or log: more would block the event loop, or a shared engine.
MAX_PAGE_ITEMS: Final = 1000

_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


class _RedactedStruct(Struct, frozen=True):
    """A Struct whose repr shows the length of bytes in place of the bytes."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text}" for name, text in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [(name, _shown(getattr(self, name))) for name in self.__struct_fields__]


class Key(_RedactedStruct, frozen=True):
    """A key: tenant, kind of record, and name.

    `tenant` and `name` are any str that UTF-8 can encode; "" is the tenant of clients without one.
    `kind` is a word chosen by the code, never by a peer.

    Raises:
        InvalidStoreKey: a part is too long, or cannot be encoded.
    """

    tenant: str
    kind: str
    name: str

    def __post_init__(self) -> None:
        if not (isinstance(self.kind, str) and _KIND.fullmatch(self.kind)):
            raise InvalidStoreKey("the kind of a key must be 1 to 32 of a-z, 0-9 and -")
        _check_part("tenant", self.tenant)
        _check_part("name", self.name)

    def __rich_repr__(self) -> list[tuple[str, str]]:
        # A name may be a session id or derived from a token.
        hidden = f"<{len(self.name)} characters>"
        return [("tenant", repr(self.tenant)), ("kind", repr(self.kind)), ("name", hidden)]


class Stored(_RedactedStruct, frozen=True):
    """A value and its version.

    Versions are only compared for equality. Every write of a key has a new version, even after the
    key was deleted or expired.
    """

    value: bytes
    version: int


class RecordPage(Struct, frozen=True):
    """A page of keys of a scan; `cursor` is None on the last page."""

    keys: tuple[Key, ...]
    cursor: str | None


class Cursor(Struct, frozen=True):
    """A position in a log: just after entry `number` of the log with this `epoch`."""

    epoch: str
    number: int


class LogEntry(_RedactedStruct, frozen=True):
    """One entry of a log; the numbers of an epoch are 1, 2, 3 and so on, without gaps."""

    number: int
    data: bytes


class LogPage(Struct, frozen=True):
    """The entries of a log after a cursor, oldest first.

    `missed` counts the entries between the cursor and the first of these, which were trimmed before
    they were read. It is None if that is unknown: the log of the cursor is gone, and the entries
    are the first of the current log, if there is one.
    `cursor` is the position to continue from; None without a log.
    """

    entries: tuple[LogEntry, ...]
    cursor: Cursor | None
    missed: int | None


class Retention(Struct, frozen=True):
    """How much of a log is kept; the retention of the latest append applies to the whole log."""

    max_entries: int
    # Seconds an entry can be read; None: as long as the log exists.
    max_age: float | None
    # Seconds from the last append until the log expires with its epoch. A reader that was away
    # longer than `max_age` learns how many entries it missed only while the log exists.
    ttl: float

    def __post_init__(self) -> None:
        if self.max_entries < 1:
            raise ValueError("max_entries must be at least 1")
        check_ttl(self.max_age)
        check_ttl(self.ttl)


class Message(_RedactedStruct, frozen=True):
    """A published message and its channel."""

    channel: Key
    data: bytes


class Lease(Struct, frozen=True):
    """An exclusive, expiring lock with a fencing token.

    `token` is greater than that of every earlier lease of the key: the guarded resource remembers
    the greatest token and rejects smaller ones, which belong to holders of expired leases.
    """

    key: Key
    token: int


class StoreLimits(Struct, frozen=True):
    """Limits of one store. A driver leaves to its engine what the engine limits itself."""

    # Values, logs, markers and leases, in total.
    keys: int = 100_000
    # Including the overhead of each key and entry.
    total_bytes: int = 64 * 1024 * 1024
    # The same for each tenant, so that one cannot use up the store. None: not limited.
    tenant_keys: int | None = None
    tenant_bytes: int | None = None
    # Of one value, log entry or message.
    value_bytes: int = 1024 * 1024
    # The largest `Retention.max_entries`.
    log_entries: int = 10_000
    # Subscribed channels, counted for each subscription.
    subscriptions: int = 10_000
    # Queue of one subscription, in messages and bytes; beyond it the subscription ends as SLOW.
    backlog: int = 1024
    backlog_bytes: int = 2 * 1024 * 1024


def check_ttl(ttl: float | None) -> None:
    """Raise ValueError unless `ttl` is None or a positive number."""
    if ttl is not None and not (isfinite(ttl) and ttl > 0):
        raise ValueError("a TTL must be a positive number of seconds")


def check_limit(limit: int) -> None:
    """Raise ValueError unless `limit` is within 1 to `MAX_PAGE_ITEMS`."""
    if not 1 <= limit <= MAX_PAGE_ITEMS:
        raise ValueError(f"the limit of a page must be 1 to {MAX_PAGE_ITEMS}, not {limit}")


def _check_part(part: str, text: object) -> None:
    try:
        if isinstance(text, str) and len(text.encode()) <= MAX_KEY_BYTES:
            return
    except UnicodeEncodeError:
        pass  # a lone surrogate: engines that store bytes cannot store it
    # The text is left out of the message: it may be a secret, or a megabyte long.
    raise InvalidStoreKey(f"the {part} of a key must be a str of at most {MAX_KEY_BYTES} bytes")


def _shown(value: object) -> str:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else repr(value)
