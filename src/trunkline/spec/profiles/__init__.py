"""Error codes by profile: the number of a symbol, and the meaning of a number.

The same number means different things in different systems, and the numbers of one
system change between revisions: -32002 is a missing resource in MCP up to
2025-11-25, a missing tool in erlmcp, a failed authentication in Pierre. So every
lookup goes through a `Profile`, and takes a revision.

We send by symbol and read by number:

* `number`, `of_kind`, `symbols` know what may be sent in a revision.
* `meaning` also knows what may only be read.
* `to_send` gives the number of an error reply. It adds to `number` the two rules
  between profiles: a symbol that a profile lacks is sent under the number of MCP,
  and profiles keep out of the block that MCP reserves.  [K-13, K-24]
* `allows` is for a number that an application chose itself.  [K-28]

A profile is a module of rows beside this one, loaded and checked for contradictions
on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from ..revisions import (
    LATEST,
    REVISIONS,
    V2026_07_28,
    UnknownRevision,
    Window,
    must_be_released,
)
from ..rows import ALWAYS, ErrorCode, ReservedCodes

__all__ = [
    "OFFICIAL_PROFILE",
    "PROFILE_NAMES",
    "RESERVED_CODES",
    "Profile",
    "UnknownProfile",
    "UnknownRevision",
    "UnknownSymbol",
    "candidates",
    "is_reserved",
    "profile",
]

# The name of a profile and the module its rows are in.
_MODULES: Final = {
    "mcp": "mcp",
    "erlmcp": "erlmcp",
    "erlmcp-guide": "erlmcp_guide",
    "erlmcp-spec": "erlmcp_spec",
    "pierre": "pierre",
    "pierre-a2a": "pierre_a2a",
}
PROFILE_NAMES: Final = tuple(_MODULES)

# The profile of the official specification, which takes precedence.
OFFICIAL_PROFILE: Final = "mcp"

# Error codes that only a specification may define. JSON-RPC leaves -32000 to -32099 to servers;
# MCP takes them back in 2026-07-28, and asks implementations to define none.
#                                       [JSON-RPC 2.0, section 5.1; MCP 2026-07-28, basic; K-28]
RESERVED_CODES: Final = (
    ReservedCodes("jsonrpc", range(-32768, -32099), ALWAYS),
    ReservedCodes("mcp", range(-32768, -31999), Window(V2026_07_28)),
)
# The bits of the error codes of a system; without a row, all integers.  [P-26]
_CODE_BITS: Final = {"pierre": 32}
# The part of the reserved block which the MCP specification assigns itself.
_MCP_BLOCK: Final = range(-32099, -32019)


class UnknownProfile(LookupError):
    """No profile has this name."""


class UnknownSymbol(LookupError):
    """A profile has no number to send for this symbol in this revision."""


class _RevisionCodes(NamedTuple):
    rows: tuple[ErrorCode, ...]
    sent: dict[str, ErrorCode]
    read: dict[int, ErrorCode]


class Profile:
    """The error codes of one system, in every revision. Immutable."""

    __slots__ = ("_accepted", "_tables", "codes", "name")

    def __init__(self, name: str, codes: tuple[ErrorCode, ...]) -> None:
        """Index `codes`.

        Raises:
            ValueError: two rows contradict each other in some revision.
        """
        self.name: Final = name
        self.codes: Final = codes
        # Only released revisions are keys, so invented names cannot grow this. Equal tables are
        # shared, since most rows hold in every revision.
        self._tables: Final = _index(name, codes)
        self._accepted: Final[dict[str, frozenset[int]]] = {}

    def __repr__(self) -> str:
        return f"<Profile {self.name!r}, {len(self.codes)} codes>"

    def number(self, kind: str, revision: str = LATEST) -> int:
        """Return the number this profile sends for `kind`.

        Raises:
            UnknownSymbol: it has none in this revision.
        """
        return self.of_kind(kind, revision).number

    def of_kind(self, kind: str, revision: str = LATEST) -> ErrorCode:
        """Return the row this profile sends for `kind`.

        Raises:
            UnknownSymbol: it has none in this revision.
        """
        table = self._table(revision)
        row = table.sent.get(kind)
        if row is None:
            raise UnknownSymbol(self._why_not(kind, revision, table))
        return row

    def meaning(self, number: int, revision: str = LATEST) -> ErrorCode | None:
        """Return the row of a `number` that was read, or None if it is not defined.

        If several symbols share the number, the first one counts. A number that `to_send`
        moved is read as the original one.
        """
        table = self._table(revision)
        row = table.read.get(number)
        if row is None:
            moved = table.read.get(-number)
            if moved is not None and self._moves(moved, revision):
                return moved
        return row

    def accepts(self, number: int, revision: str = LATEST) -> bool:
        """Return True if `number` may be sent: it is listed, or a result of `to_send`."""
        accepted = self._accepted.get(revision)
        if accepted is None:
            listed = frozenset(row.number for row in self._table(revision).sent.values())
            accepted = self._accepted[revision] = listed | self._sent_numbers(revision)
        return number in accepted

    def allows(self, number: int, revision: str = LATEST) -> bool:
        """Return True if an application may send `number` as an error code of its own.

        A number that a specification reserves has to be one that `to_send` returns, and one of a
        system whose codes have 32 bits has to fit.
        """
        return self.holds(number) and (
            not is_reserved(number, revision) or number in self._sent_numbers(revision)
        )

    def holds(self, code: object) -> bool:
        """Return True for an integer that the type of error codes has room for."""
        bits = _CODE_BITS.get(self.name)
        if not isinstance(code, int):
            return False
        return bits is None or -(1 << bits - 1) <= code < 1 << bits - 1

    def _sent_numbers(self, revision: str) -> frozenset[int]:
        kinds = {*self._table(revision).sent, *profile(OFFICIAL_PROFILE).symbols(revision)}
        return frozenset(self.to_send(kind, revision)[0] for kind in kinds)

    def symbols(self, revision: str = LATEST) -> tuple[str, ...]:
        """Return the symbols that have a number to send, in the order of the rows."""
        return tuple(self._table(revision).sent)

    def to_send(self, kind: str, revision: str = LATEST) -> tuple[int, int | None]:
        """Return the number for the wire, and the original one if it had to be moved.

        Raises:
            UnknownSymbol: neither this profile nor MCP has a number for `kind`, or this
                profile only reads it.
        """
        if self.name == OFFICIAL_PROFILE:
            return self.number(kind, revision), None
        row = self._table(revision).sent.get(kind)
        official = profile(OFFICIAL_PROFILE)._table(revision).sent.get(kind)
        if official is not None and (row is None or official.number in _MCP_BLOCK):
            return official.number, None
        row = self.of_kind(kind, revision)
        return (-row.number, row.number) if self._moves(row, revision) else (row.number, None)

    def text(self, kind: str, revision: str = LATEST) -> str:
        """Return the message of `kind`: that of this profile, or else that of MCP.

        Raises:
            UnknownSymbol: neither has `kind`.
        """
        row = self._table(revision).sent.get(kind)
        return (row or profile(OFFICIAL_PROFILE).of_kind(kind, revision)).message

    def _moves(self, row: ErrorCode, revision: str) -> bool:
        # True if the number is reserved, so that peers would misread it.
        if self.name == OFFICIAL_PROFILE or not is_reserved(row.number, revision, by="mcp"):
            return False
        # The five of JSON-RPC stay, whatever a profile uses them for: they are generic.
        # -32021 has an exact meaning, which the missing template of erlmcp does not have.
        official = profile(OFFICIAL_PROFILE).meaning(row.number, revision)
        return official is None or official.category != "jsonrpc"

    def _table(self, revision: str) -> _RevisionCodes:
        if revision not in self._tables:
            must_be_released(revision)
        return self._tables[revision]

    def _why_not(self, kind: str, revision: str, table: _RevisionCodes) -> str:
        for row in table.rows:
            if row.symbol == kind:
                return f"profile {self.name!r} reads {kind} ({row.number}) but never sends it in {revision}"
        # Imported here: only a mistake needs it.
        from difflib import get_close_matches

        text = f"profile {self.name!r} has no symbol {str(kind)!r} in {revision}"
        near = get_close_matches(kind, table.sent, n=1)
        return f"{text}; did you mean {str(near[0])!r}?" if near else text


def _index(name: str, codes: tuple[ErrorCode, ...]) -> dict[str, _RevisionCodes]:
    tables: dict[str, _RevisionCodes] = {}
    last: _RevisionCodes | None = None
    for revision in REVISIONS:
        rows = tuple(row for row in codes if row.when.holds(revision))
        if last is None or last.rows != rows:
            last = _table_of(name, revision, rows)
        tables[revision] = last
    return tables


def _table_of(name: str, revision: str, rows: tuple[ErrorCode, ...]) -> _RevisionCodes:
    """Index `rows`, which all hold in `revision`.

    Raises:
        ValueError: a number has the same symbol twice, or a symbol two numbers to send.
    """
    sent: dict[str, ErrorCode] = {}
    read: dict[int, ErrorCode] = {}
    seen: set[tuple[int, str]] = set()
    for row in rows:
        where = f"profile {name!r} in {revision}"
        if (row.number, row.symbol) in seen:
            raise ValueError(f"{where}: {row.number} is listed twice as {row.symbol}")
        seen.add((row.number, row.symbol))
        read.setdefault(row.number, row)
        if row.sent and sent.setdefault(row.symbol, row) is not row:
            other = sent[row.symbol].number
            raise ValueError(f"{where}: {row.symbol} would be sent as {other} and as {row.number}")
    return _RevisionCodes(rows, sent, read)


def is_reserved(number: int, revision: str = LATEST, *, by: str | None = None) -> bool:
    """Return True if a specification keeps an error code for itself; `by` selects one of them."""
    return any(
        number in row.codes and row.when.holds(revision)
        for row in RESERVED_CODES
        if by is None or row.by == by
    )


_loaded: dict[str, Profile] = {}


def profile(name: str) -> Profile:
    """Return the profile called `name`, loading it on first use.

    Raises:
        UnknownProfile: there is none; the text lists the known ones.
    """
    found = _loaded.get(name)
    if found is None:
        module = _MODULES.get(name)
        if module is None:
            known = ", ".join(PROFILE_NAMES)
            raise UnknownProfile(f"unknown profile {name!r}; expected one of {known}")
        codes: tuple[ErrorCode, ...] = import_module(f".{module}", __name__).CODES
        # Two threads may both get here; both get the profile that was stored first.
        found = _loaded.setdefault(name, Profile(name, codes))
    return found


def candidates(number: int, revision: str = LATEST) -> tuple[tuple[str, ErrorCode], ...]:
    """Return the meaning of `number` in every profile, for a number of unknown origin."""
    readings = ((name, profile(name).meaning(number, revision)) for name in PROFILE_NAMES)
    return tuple((name, row) for name, row in readings if row is not None)
