"""Which number an error has, and what a number means: never without saying whose.

The same number means different things to different systems, and one system's
numbers change between revisions: -32002 is a missing resource in MCP up to
2025-11-25, a missing tool in erlmcp, a failed authentication in Pierre. So every
lookup goes through a `Profile`, and takes a revision.

Symbols are what we send by, numbers are what we read by:

* `number`, `of_kind`, `symbols` know what may be sent in a revision.
* `meaning` knows that, and also what may only be read.
* `to_send` is what an answer is made with: it adds to `number` the two rules that
  hold between profiles. What a profile has no word for goes out under MCP's number;
  and where MCP keeps a block of numbers to itself, others leave it.  [K-13, K-24]

A profile is a module of rows beside this one, loaded when it is first asked for.
A list that contradicts itself is refused then.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from ..revisions import LATEST, REVISIONS, V2026_07_28, Window
from ..rows import ErrorCode

__all__ = [
    "PROFILE_NAMES",
    "Profile",
    "UnknownProfile",
    "UnknownRevision",
    "UnknownSymbol",
    "candidates",
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

# The profile of the official specification, to which the others give way.
_OFFICIAL: Final = "mcp"

# Since this revision no implementation may put meanings of its own into the block
# that JSON-RPC reserves.  [MCP 2026-07-28, basic]
_BLOCK_IS_KEPT: Final = Window(V2026_07_28)
_KEPT_BLOCK: Final = range(-32768, -31999)
# Of that block, the part whose numbers the MCP specification hands out itself.
_MCP_BLOCK: Final = range(-32099, -32019)


class UnknownProfile(LookupError):
    """No profile has this name."""


class UnknownRevision(LookupError):
    """No such revision of MCP was released."""


class UnknownSymbol(LookupError):
    """A profile has no number to send for this symbol in this revision."""


class _RevisionCodes(NamedTuple):
    """The rows of one profile that hold in one revision."""

    rows: tuple[ErrorCode, ...]
    sent: dict[str, ErrorCode]
    read: dict[int, ErrorCode]


class Profile:
    """One system's error numbers, in every revision. It does not change once made."""

    __slots__ = ("_accepted", "_tables", "codes", "name")

    def __init__(self, name: str, codes: tuple[ErrorCode, ...]) -> None:
        """Index `codes`.

        Raises:
            ValueError: two rows contradict each other in some revision.
        """
        self.name: Final = name
        self.codes: Final = codes
        # A key per released revision and no other, so that revision names which a peer
        # invents cannot grow this. Most rows hold always: equal tables are shared.
        self._tables: Final = _index(name, codes)
        self._accepted: Final[dict[str, frozenset[int]]] = {}

    def __repr__(self) -> str:
        """Show the name; the rows would fill a page."""
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
        """Return what `number` means when it is read, or None where it means nothing.

        Where several symbols share the number, this is the first of them. A number that
        `to_send` moved is read as the one it stands for.
        """
        table = self._table(revision)
        row = table.read.get(number)
        if row is None:
            moved = table.read.get(-number)
            if moved is not None and self._moves(moved, revision):
                return moved
        return row

    def accepts(self, number: int, revision: str = LATEST) -> bool:
        """Say whether `number` may be sent: it is in the list, or `to_send` comes up with it."""
        accepted = self._accepted.get(revision)
        if accepted is None:
            ours = self._table(revision).sent
            listed = frozenset(row.number for row in ours.values())
            kinds = {*ours, *profile(_OFFICIAL).symbols(revision)}
            accepted = listed.union(self.to_send(kind, revision)[0] for kind in kinds)
            self._accepted[revision] = accepted
        return number in accepted

    def symbols(self, revision: str = LATEST) -> tuple[str, ...]:
        """Return the symbols that have a number to send, in the order of the rows."""
        return tuple(self._table(revision).sent)

    def to_send(self, kind: str, revision: str = LATEST) -> tuple[int, int | None]:
        """Return the number to put on the wire, and the one it stands for if that had to move.

        Raises:
            UnknownSymbol: neither this profile nor MCP has a number for `kind`, or this
                profile only reads it.
        """
        if self.name == _OFFICIAL:
            return self.number(kind, revision), None
        row = self._table(revision).sent.get(kind)
        official = profile(_OFFICIAL)._table(revision).sent.get(kind)
        if official is not None and (row is None or official.number in _MCP_BLOCK):
            return official.number, None
        row = self.of_kind(kind, revision)
        return (-row.number, row.number) if self._moves(row, revision) else (row.number, None)

    def text(self, kind: str, revision: str = LATEST) -> str:
        """Return the sentence that goes with `kind`: this profile's, or else MCP's.

        Raises:
            UnknownSymbol: neither has `kind`.
        """
        row = self._table(revision).sent.get(kind)
        return (row or profile(_OFFICIAL).of_kind(kind, revision)).message

    def _moves(self, row: ErrorCode, revision: str) -> bool:
        """Say whether the number of `row` would be taken for something MCP has not said."""
        if (
            self.name == _OFFICIAL
            or row.number not in _KEPT_BLOCK
            or not _BLOCK_IS_KEPT.holds(revision)
        ):
            return False
        # The five of JSON-RPC stay, whatever a profile uses them for: they promise little.
        # -32021 promises something exact, and the missing template of erlmcp is not that.
        official = profile(_OFFICIAL).meaning(row.number, revision)
        return official is None or official.category != "jsonrpc"

    def _table(self, revision: str) -> _RevisionCodes:
        table = self._tables.get(revision)
        if table is None:
            known = ", ".join(REVISIONS)
            raise UnknownRevision(
                f"no revision {revision!r} of MCP was released; there are {known}"
            )
        return table

    def _why_not(self, kind: str, revision: str, table: _RevisionCodes) -> str:
        """Compose the sentence for a symbol that cannot be sent."""
        for row in table.rows:
            if row.symbol == kind:
                return f"profile {self.name!r} reads {kind} ({row.number}) but never sends it in {revision}"
        # Imported here: a program that makes no mistake does not pay for it.
        from difflib import get_close_matches

        text = f"profile {self.name!r} has no symbol {str(kind)!r} in {revision}"
        near = get_close_matches(kind, table.sent, n=1)
        return f"{text}; did you mean {str(near[0])!r}?" if near else text


def _index(name: str, codes: tuple[ErrorCode, ...]) -> dict[str, _RevisionCodes]:
    """Return the table of each revision, equal ones being one object."""
    tables: dict[str, _RevisionCodes] = {}
    last: _RevisionCodes | None = None
    for revision in REVISIONS:
        rows = tuple(row for row in codes if row.when.holds(revision))
        if last is None or last.rows != rows:
            last = _table_of(name, revision, rows)
        tables[revision] = last
    return tables


def _table_of(name: str, revision: str, rows: tuple[ErrorCode, ...]) -> _RevisionCodes:
    """Return lookups into `rows`, which all hold in `revision`.

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


_loaded: dict[str, Profile] = {}


def profile(name: str) -> Profile:
    """Return the profile called `name`, loading it on first use.

    Raises:
        UnknownProfile: there is none; the text lists those there are.
    """
    found = _loaded.get(name)
    if found is None:
        module = _MODULES.get(name)
        if module is None:
            raise UnknownProfile(f"no profile named {name!r}; there are {', '.join(PROFILE_NAMES)}")
        codes: tuple[ErrorCode, ...] = import_module(f".{module}", __name__).CODES
        # Two threads may both get here; both are given the one that was put in first.
        found = _loaded.setdefault(name, Profile(name, codes))
    return found


def candidates(number: int, revision: str = LATEST) -> tuple[tuple[str, ErrorCode], ...]:
    """Return every profile's reading of `number`, for one that came without a profile."""
    readings = ((name, profile(name).meaning(number, revision)) for name in PROFILE_NAMES)
    return tuple((name, row) for name, row in readings if row is not None)
