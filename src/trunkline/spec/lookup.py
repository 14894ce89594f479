"""What the rows say about one revision: methods, capabilities, transports, headers, `_meta`
keys and errors, each by name or all together.

    method("tools/call", "2025-06-18").result
    explain_method("ping")

Plain functions on data that does not change. A table is read on its first use, once per
revision; after that a lookup is two dict hits. What is not there is None, since asking is
how one finds out; `explain_method` says why it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from .profiles import UnknownRevision
from .profiles import profile as _profile
from .revisions import LATEST, REVISIONS, Window
from .rows import Capability, ErrorCode, Header, MetaKey, Method, Role, Status, TransportRow

__all__ = [
    "Specification",
    "capabilities",
    "capability",
    "error",
    "errors",
    "explain_method",
    "header",
    "headers",
    "meta_key",
    "meta_keys",
    "method",
    "method_status",
    "methods",
    "specification",
    "transport",
    "transports",
]

# Longer names are not compared with those there are, nor repeated: a peer may invent them.
_MAX_NAME_CHARS: Final = 100


class _WindowedRow(Protocol):
    """What every row of a table has."""

    @property
    def when(self) -> Window: ...


R = TypeVar("R", bound=_WindowedRow)


class _Slice(NamedTuple, Generic[R]):
    """The rows of one table that hold in one revision, in order and by key."""

    rows: tuple[R, ...]
    by_key: Mapping[Any, R]


class _RevisionTable(Generic[R]):
    """The rows of one module, cut by revision when first asked for."""

    __slots__ = ("_key", "_module", "_name", "_slices")

    def __init__(self, module: str, name: str, key: Callable[[R], object]) -> None:
        self._module = module
        self._name = name
        self._key = key
        # A key per released revision and no other, so that revision names which a peer
        # invents cannot grow this.
        self._slices: dict[str, _Slice[R]] = {}

    def every(self) -> tuple[R, ...]:
        """Return the rows of all revisions."""
        rows: tuple[R, ...] = getattr(import_module(self._module, __package__), self._name)
        return rows

    def of(self, revision: str) -> _Slice[R]:
        """Return the rows that hold in `revision`."""
        found = self._slices.get(revision)
        return self._cut(revision) if found is None else found

    def _cut(self, revision: str) -> _Slice[R]:
        must_be_released(revision)
        rows = tuple(row for row in self.every() if row.when.holds(revision))
        # Two threads may both get here; both are given the one that was put in first.
        return self._slices.setdefault(
            revision, _Slice(rows, {self._key(row): row for row in rows})
        )


_METHODS: Final[_RevisionTable[Method]] = _RevisionTable(
    ".mcp.methods", "METHODS", lambda row: row.name
)
_CAPABILITIES: Final[_RevisionTable[Capability]] = _RevisionTable(
    ".mcp.capabilities", "CAPABILITIES", lambda row: (row.name, row.role)
)
_TRANSPORTS: Final[_RevisionTable[TransportRow]] = _RevisionTable(
    ".mcp.transports", "TRANSPORTS", lambda row: row.name
)
_HEADERS: Final[_RevisionTable[Header]] = _RevisionTable(
    ".mcp.headers", "HEADERS", lambda row: row.name.lower()
)
_HEADER_FAMILIES: Final[_RevisionTable[Header]] = _RevisionTable(
    ".mcp.headers", "FAMILIES", lambda row: row.name.removesuffix("{Name}").lower()
)
_META_KEYS: Final[_RevisionTable[MetaKey]] = _RevisionTable(
    ".mcp.meta", "META_KEYS", lambda row: row.key
)


def must_be_released(revision: str) -> None:
    """Refuse a revision that was never released.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    if revision not in REVISIONS:
        known = ", ".join(REVISIONS)
        raise UnknownRevision(f"no revision {revision!r} of MCP was released; there are {known}")


# Methods


def method(name: str, revision: str = LATEST) -> Method | None:
    """Return the method or notification called `name`, or None where `revision` has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _METHODS.of(revision).by_key.get(name)


def methods(revision: str = LATEST) -> tuple[Method, ...]:
    """Return the methods and notifications of `revision`, those of extensions included.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _METHODS.of(revision).rows


def method_status(name: str, revision: str = LATEST) -> Status | None:
    """Return how a method stands in `revision`: `removed` once its last window is over.

    None is a method that has not come yet, or never does.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    found = method(name, revision)
    if found is not None:
        return found.status
    return "removed" if any(_is_over(row, revision) for row in _named(name)) else None


def explain_method(name: str, revision: str = LATEST) -> str:
    """Return a sentence on whether `revision` has a method, and if not why, and what else.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    found = method(name, revision)
    rows = _named(name)
    if found is not None:
        return _presence(found, rows[0].when.since, revision)
    if not rows:
        return _unheard_of(name)
    over = [row for row in rows if _is_over(row, revision)]
    if not over:
        return f"MCP {revision} has no {name} yet: it comes with {rows[0].when.since}."
    last = max(other for other in REVISIONS if over[-1].when.holds(other))
    return f"MCP {revision} no longer has {name}: it was last in {last}. {over[-1].instead}"


def _named(name: str) -> list[Method]:
    """Return the rows of a method, oldest first."""
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
        f" It is there since {since}{status}."
    )


def _unheard_of(name: str) -> str:
    if len(name) > _MAX_NAME_CHARS:
        return "No revision of MCP has a method with so long a name."
    # Imported here: a program that makes no mistake does not pay for it.
    from difflib import get_close_matches

    near = get_close_matches(name, {row.name: None for row in _METHODS.every()}, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"No revision of MCP has a method {name!r}.{guess}"


# Capabilities


def capability(name: str, revision: str = LATEST, role: Role | None = None) -> Capability | None:
    """Return the capability at the place `name`, or None where `revision` has none.

    Without a `role` it is the one that only one side has.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
        ValueError: both sides have one of this name, so a role must be said.
    """
    found = _CAPABILITIES.of(revision).by_key
    if role is not None:
        return found.get((name, role))
    of_client, of_server = found.get((name, "client")), found.get((name, "server"))
    if of_client is not None and of_server is not None:
        raise ValueError(f"both sides can declare {name!r}: say role='client' or role='server'")
    return of_client or of_server


def capabilities(revision: str = LATEST, role: Role | None = None) -> tuple[Capability, ...]:
    """Return the capabilities of `revision`, of one side or of both.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    rows = _CAPABILITIES.of(revision).rows
    return rows if role is None else tuple(row for row in rows if row.role == role)


# Transports, headers, keys


def transport(name: str, revision: str = LATEST) -> TransportRow | None:
    """Return the transport called `name`, or None where `revision` has none.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _TRANSPORTS.of(revision).by_key.get(name)


def transports(revision: str = LATEST) -> tuple[TransportRow, ...]:
    """Return the transports of `revision`, then our own.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _TRANSPORTS.of(revision).rows


def header(name: str, revision: str = LATEST) -> Header | None:
    """Return the rules about an HTTP header, or None where `revision` has none.

    Case does not matter. `Mcp-Param-Region` is found under `Mcp-Param-{Name}`.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
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
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _HEADERS.of(revision).rows


def meta_key(key: str, revision: str = LATEST) -> MetaKey | None:
    """Return what a key of `_meta` means, or None where `revision` gives it no meaning.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _META_KEYS.of(revision).by_key.get(key)


def meta_keys(revision: str = LATEST) -> tuple[MetaKey, ...]:
    """Return the keys of `_meta` to which `revision` gives a meaning.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _META_KEYS.of(revision).rows


# Errors


def error(
    number_or_symbol: int | str, profile: str = "mcp", revision: str = LATEST
) -> ErrorCode | None:
    """Return what an error number means, or the error that goes by a symbol; None if neither.

    Raises:
        UnknownProfile: no profile has this name.
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    if isinstance(number_or_symbol, str):
        return _errors_of(profile, revision).by_key.get(number_or_symbol)
    return _profile(profile).meaning(number_or_symbol, revision)


def errors(revision: str = LATEST, profile: str = "mcp") -> tuple[ErrorCode, ...]:
    """Return the error codes of a profile in `revision`, those that are only read included.

    Raises:
        UnknownProfile: no profile has this name.
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return _errors_of(profile, revision).rows


# A key per known profile and released revision: asking cannot grow it further.
_errors: dict[tuple[str, str], _Slice[ErrorCode]] = {}


def _errors_of(profile: str, revision: str) -> _Slice[ErrorCode]:
    found = _errors.get((profile, revision))
    if found is not None:
        return found
    codes = _profile(profile).codes
    must_be_released(revision)
    rows = tuple(row for row in codes if row.when.holds(revision))
    # The first row of a symbol counts, and is the one to send if any is.
    by_symbol = {row.symbol: row for row in reversed(rows)}
    return _errors.setdefault((profile, revision), _Slice(rows, by_symbol))


# Everything


class Specification(NamedTuple):
    """One revision of MCP, whole. Its name is the day of its release."""

    revision: str
    base: str
    methods: tuple[Method, ...]
    capabilities: tuple[Capability, ...]
    transports: tuple[TransportRow, ...]
    headers: tuple[Header, ...]
    meta_keys: tuple[MetaKey, ...]
    errors: tuple[ErrorCode, ...]


def specification(revision: str = LATEST) -> Specification:
    """Return everything that the rows say about `revision`, apart from its types.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
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
    )
