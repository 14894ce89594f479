"""Lookups in one revision of MCP: methods, capabilities, transports, headers, `_meta` keys,
errors and HTTP statuses, each by name or all together.

    method("tools/call", "2025-06-18").result
    explain_method("ping")

A table is indexed on its first use, once per revision; after that a lookup is two dict hits. An
unknown name gives None; `explain_method` says why a method is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ..profiles import profile as _profile
from ..revisions import LATEST, REVISIONS, Window, must_be_released
from ..rows import (
    Capability,
    ErrorCode,
    Header,
    HttpStatus,
    MetaKey,
    Method,
    Role,
    Status,
    TransportRow,
)

__all__ = [
    "Specification",
    "capabilities",
    "capability",
    "error",
    "errors",
    "explain_method",
    "header",
    "headers",
    "http_condition",
    "http_status",
    "http_statuses",
    "meta_key",
    "meta_keys",
    "method",
    "method_status",
    "methods",
    "specification",
    "transport",
    "transports",
]

# Longer names are neither compared with the known ones nor repeated: a peer may invent them.
_MAX_NAME_CHARS: Final = 100


class _WindowedRow(Protocol):
    @property
    def when(self) -> Window: ...


R = TypeVar("R", bound=_WindowedRow)


class _Slice(NamedTuple, Generic[R]):
    """The rows of one table that hold in one revision, in order and by key."""

    rows: tuple[R, ...]
    by_key: Mapping[Any, R]


class _RevisionTable(Generic[R]):
    """The rows of one module, indexed by revision on first use."""

    __slots__ = ("_base", "_key", "_module", "_name", "_slices")

    def __init__(
        self, module: str, name: str, key: Callable[[R], object], *, base: str | None = None
    ) -> None:
        self._module = module
        self._name = name
        self._key = key
        # The module whose rows of the same name come first, each unless it has a successor here.
        self._base = base
        # Only released revisions become keys, so invented names cannot grow this.
        self._slices: dict[str, _Slice[R]] = {}

    def every(self) -> tuple[R, ...]:
        """Return the rows of all revisions."""
        modules = [each for each in (self._base, self._module) if each is not None]
        found = [getattr(import_module(each, __package__), self._name) for each in modules]
        return tuple(row for rows in found for row in rows)

    def of(self, revision: str) -> _Slice[R]:
        """Return the rows that hold in `revision`."""
        found = self._slices.get(revision)
        return self._cut(revision) if found is None else found

    def _cut(self, revision: str) -> _Slice[R]:
        must_be_released(revision)
        by_key = {self._key(row): row for row in self.every() if row.when.holds(revision)}
        # Two threads may both get here; both get the slice that was stored first.
        return self._slices.setdefault(revision, _Slice(tuple(by_key.values()), by_key))


_METHODS: Final[_RevisionTable[Method]] = _RevisionTable(
    "..mcp.methods", "METHODS", lambda row: row.name
)
_CAPABILITIES: Final[_RevisionTable[Capability]] = _RevisionTable(
    "..mcp.capabilities", "CAPABILITIES", lambda row: (row.name, row.role)
)
_TRANSPORTS: Final[_RevisionTable[TransportRow]] = _RevisionTable(
    "..mcp.transports", "TRANSPORTS", lambda row: row.name
)
_HEADERS: Final[_RevisionTable[Header]] = _RevisionTable(
    "..mcp.headers", "HEADERS", lambda row: row.name.lower()
)
_HEADER_FAMILIES: Final[_RevisionTable[Header]] = _RevisionTable(
    "..mcp.headers", "FAMILIES", lambda row: row.name.removesuffix("{Name}").lower()
)
_META_KEYS: Final[_RevisionTable[MetaKey]] = _RevisionTable(
    "..mcp.meta", "META_KEYS", lambda row: row.key
)
_HTTP_STATUSES: Final[_RevisionTable[HttpStatus]] = _RevisionTable(
    "..mcp.http_status", "HTTP_STATUSES", lambda row: row.condition, base="..http_conditions"
)


# Methods


def method(name: str, revision: str = LATEST) -> Method | None:
    """Return the method or notification called `name`, or None if `revision` has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _METHODS.of(revision).by_key.get(name)


def methods(revision: str = LATEST) -> tuple[Method, ...]:
    """Return the methods and notifications of `revision`, those of extensions included.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _METHODS.of(revision).rows


def method_status(name: str, revision: str = LATEST) -> Status | None:
    """Return the status of a method in `revision`: `removed` after its last window.

    None means that the method was added later, or is in no revision.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    found = method(name, revision)
    if found is not None:
        return found.status
    return "removed" if any(_is_over(row, revision) for row in _named(name)) else None


def explain_method(name: str, revision: str = LATEST) -> str:
    """Return a sentence on whether `revision` has a method; if not, why, and what to use instead.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    found = method(name, revision)
    rows = _named(name)
    if found is not None:
        return _presence(found, rows[0].when.since, revision)
    if not rows:
        return _unknown(name)
    over = [row for row in rows if _is_over(row, revision)]
    if not over:
        return f"MCP {revision} does not have {name} yet: it was added in {rows[0].when.since}."
    last = max(other for other in REVISIONS if over[-1].when.holds(other))
    return f"MCP {revision} no longer has {name}: it was last in {last}. {over[-1].instead}"


def _named(name: str) -> list[Method]:
    # Oldest first.
    return [row for row in _METHODS.every() if row.name == name]


def _is_over(row: Method, revision: str) -> bool:
    return row.when.until is not None and row.when.until <= revision


def _presence(row: Method, since: str, revision: str) -> str:
    sender = "either side" if row.by == "both" else f"the {row.by}"
    place = " inside a result" if row.form == "inside-result" else ""
    status = "" if row.status == "stable" else f", and is {row.status}"
    extension = f" in the extension {row.extension}" if row.extension else ""
    return (
        f"MCP {revision} has {row.name}{extension}: a {row.kind} that {sender} sends{place}."
        f" It was added in {since}{status}."
    )


def _unknown(name: str) -> str:
    if len(name) > _MAX_NAME_CHARS:
        return "No revision of MCP has a method with such a long name."
    # Imported here: only a mistake needs it.
    from difflib import get_close_matches

    near = get_close_matches(name, {row.name: None for row in _METHODS.every()}, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"No revision of MCP has a method {name!r}.{guess}"


# Capabilities


def capability(name: str, revision: str = LATEST, role: Role | None = None) -> Capability | None:
    """Return the capability at the path `name`, or None if `revision` has none.

    `role` may be left out if only one side can declare it.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
        ValueError: both sides can declare it and no role was given.
    """
    found = _CAPABILITIES.of(revision).by_key
    if role is not None:
        return found.get((name, role))
    of_client, of_server = found.get((name, "client")), found.get((name, "server"))
    if of_client is not None and of_server is not None:
        raise ValueError(f"both sides can declare {name!r}: pass role='client' or role='server'")
    return of_client or of_server


def capabilities(revision: str = LATEST, role: Role | None = None) -> tuple[Capability, ...]:
    """Return the capabilities of `revision`, of one side or of both.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    rows = _CAPABILITIES.of(revision).rows
    return rows if role is None else tuple(row for row in rows if row.role == role)


# Transports, headers, keys


def transport(name: str, revision: str = LATEST) -> TransportRow | None:
    """Return the transport called `name`, or None if `revision` has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _TRANSPORTS.of(revision).by_key.get(name)


def transports(revision: str = LATEST) -> tuple[TransportRow, ...]:
    """Return the transports of `revision`, then the custom ones of this library.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _TRANSPORTS.of(revision).rows


def header(name: str, revision: str = LATEST) -> Header | None:
    """Return the row of an HTTP header, or None if `revision` has no rule about it.

    Case does not matter. `Mcp-Param-Region` is found under `Mcp-Param-{Name}`.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    lower = name.lower()
    found = _HEADERS.of(revision).by_key.get(lower)
    if found is not None:
        return found
    for start, family in _HEADER_FAMILIES.of(revision).by_key.items():
        if lower.startswith(start) and lower != start:
            return family
    return None


def headers(revision: str = LATEST) -> tuple[Header, ...]:
    """Return the HTTP headers that `revision` has rules about.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _HEADERS.of(revision).rows


def meta_key(key: str, revision: str = LATEST) -> MetaKey | None:
    """Return the row of a key of `_meta`, or None if `revision` does not define it.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _META_KEYS.of(revision).by_key.get(key)


def meta_keys(revision: str = LATEST) -> tuple[MetaKey, ...]:
    """Return the keys of `_meta` that `revision` defines.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _META_KEYS.of(revision).rows


# Errors


def error(
    number_or_symbol: int | str, profile: str = "mcp", revision: str = LATEST
) -> ErrorCode | None:
    """Return the error with this number or symbol, or None.

    Raises:
        UnknownProfile: no profile has this name.
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    if isinstance(number_or_symbol, str):
        return _errors_of(profile, revision).by_key.get(number_or_symbol)
    return _profile(profile).meaning(number_or_symbol, revision)


def errors(revision: str = LATEST, profile: str = "mcp") -> tuple[ErrorCode, ...]:
    """Return the error codes of a profile in `revision`, including those that are never sent.

    Raises:
        UnknownProfile: no profile has this name.
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _errors_of(profile, revision).rows


# Only known profiles and released revisions become keys, so lookups cannot grow it further.
_errors: dict[tuple[str, str], _Slice[ErrorCode]] = {}


def _errors_of(profile: str, revision: str) -> _Slice[ErrorCode]:
    found = _errors.get((profile, revision))
    if found is not None:
        return found
    codes = _profile(profile).codes
    must_be_released(revision)
    rows = tuple(row for row in codes if row.when.holds(revision))
    # The first row of a symbol counts; it is the one that may be sent, if any.
    by_symbol = {row.symbol: row for row in reversed(rows)}
    return _errors.setdefault((profile, revision), _Slice(rows, by_symbol))


# HTTP statuses

# The status of an error that is an ordinary answer.
_ANSWERED: Final = 200

# By revision: only released ones become keys.
_statuses: dict[str, Mapping[str, int]] = {}


def http_status(kind: str, revision: str = LATEST) -> int:
    """Return the HTTP status of an answer with an error of this kind: 200 if no row has it.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    found = _statuses.get(revision)
    if found is None:
        rows = _HTTP_STATUSES.of(revision).rows
        found = _statuses[revision] = {each: row.status for row in rows for each in row.kinds}
    return found.get(kind, _ANSWERED)


def http_condition(condition: str, revision: str = LATEST) -> HttpStatus | None:
    """Return the row of a condition such as `session-unknown`, or None if `revision` has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _HTTP_STATUSES.of(revision).by_key.get(condition)


def http_statuses(revision: str = LATEST) -> tuple[HttpStatus, ...]:
    """Return the HTTP statuses of `revision`, those that this library chose included.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return _HTTP_STATUSES.of(revision).rows


# Everything


class Specification(NamedTuple):
    """Everything about one revision of MCP. Its name is the date of its release."""

    revision: str
    base: str
    methods: tuple[Method, ...]
    capabilities: tuple[Capability, ...]
    transports: tuple[TransportRow, ...]
    headers: tuple[Header, ...]
    meta_keys: tuple[MetaKey, ...]
    errors: tuple[ErrorCode, ...]
    http_statuses: tuple[HttpStatus, ...]


def specification(revision: str = LATEST) -> Specification:
    """Return all rows of `revision`, apart from its types.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    return Specification(
        revision,
        "JSON-RPC 2.0",
        methods(revision),
        capabilities(revision),
        transports(revision),
        headers(revision),
        meta_keys(revision),
        errors(revision),
        http_statuses(revision),
    )
