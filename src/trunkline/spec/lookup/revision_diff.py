"""The differences between two revisions of MCP, with advice for each.

    diff("2025-11-25", "2026-07-28").of("method", "removed")

The rows hold every fact: a row whose window ends was removed, a row whose window begins was
added, and where one row follows another of the same name, their columns are compared. The
advice is a column too (`adopt`, `instead`), or a row of `mcp/advice.py` for errors, types and
fields.

Advice exists only for the way forward. From a newer revision to an older one the differences
are reversed, without renamings and advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ..mcp.advice import ADVICE
from ..revisions import must_be_released
from ..rows import Advice, ErrorCode, How, Subject
from ..types import FieldView, TypeView, types
from . import (
    capabilities,
    error,
    errors,
    headers,
    meta_keys,
    methods,
    transports,
)

__all__ = ["Detail", "Diff", "SpecChange", "diff"]


class Detail(NamedTuple):
    """One column that changes."""

    what: str
    before: str
    after: str


class SpecChange(NamedTuple):
    """One thing that differs between two revisions."""

    subject: Subject
    how: How
    # A field has the name of its type before it: `Tool.title`.
    name: str
    # The side that declares it, of a capability.
    role: str = ""
    renamed_to: str = ""
    details: tuple[Detail, ...] = ()
    # The advice, if a row has any.
    to_do: str = ""


class Diff(NamedTuple):
    """The differences between two revisions."""

    before: str
    after: str
    changes: tuple[SpecChange, ...]

    def of(self, subject: Subject, how: How | None = None) -> tuple[SpecChange, ...]:
        """Return the changes of one subject, all or of one kind, in the order of the rows."""
        return tuple(
            change
            for change in self.changes
            if change.subject == subject and how in (None, change.how)
        )


def diff(before: str, after: str) -> Diff:
    """Return the differences from the revision `before` to the revision `after`.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    must_be_released(before)
    must_be_released(after)
    changes = [change for table in _TABLES for change in _of_rows(table, before, after)]
    changes += _of_errors(before, after)
    changes += _of_types(before, after)
    return Diff(before, after, tuple(changes))


# Rows with advice


class _AdvisedRow(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def adopt(self) -> str: ...
    @property
    def instead(self) -> str: ...
    @property
    def renamed_to(self) -> str: ...


class _ComparedTable(NamedTuple):
    subject: Subject
    of: Callable[[str], Iterable[_AdvisedRow]]
    # The columns to compare, and their names for people.
    columns: Mapping[str, str]


_TABLES: Final = (
    _ComparedTable(
        "method",
        methods,
        {
            "by": "sender",
            "params": "params",
            "result": "result",
            "params_required": "params required",
            "required": "required",
            "replies": "replies",
            "lasting": "lasting",
            "capability": "capability",
            "holder": "declared by",
            "stream": "only on the stream of",
            "form": "form",
            "status": "status",
            "extension": "extension",
        },
    ),
    _ComparedTable(
        "capability",
        capabilities,
        {"kind": "kind", "depends": "depends on", "rules": "rules", "status": "status"},
    ),
    _ComparedTable(
        "transport",
        transports,
        {"framing": "framing", "required": "required", "optional": "optional", "status": "status"},
    ),
    _ComparedTable(
        "header",
        headers,
        {"by": "sender", "required_on": "required on", "base64": "base64", "status": "status"},
    ),
    _ComparedTable(
        "meta key",
        meta_keys,
        {"on": "on", "type": "type", "required": "required", "status": "status"},
    ),
)


def _of_rows(table: _ComparedTable, before: str, after: str) -> Iterator[SpecChange]:
    # Removed and changed rows in their order, then the added ones.
    old = {(row.name, _role(row)): row for row in table.of(before)}
    new = {(row.name, _role(row)): row for row in table.of(after)}
    forward = before < after
    renamed = set()
    for key, row in old.items():
        if key in new:
            yield from _if_changed(table, row, new[key], forward)
        elif forward and (row.renamed_to, _role(row)) in new:
            renamed.add((row.renamed_to, _role(row)))
            yield SpecChange(table.subject, "renamed", *key, row.renamed_to, to_do=row.instead)
        else:
            yield SpecChange(table.subject, "removed", *key, to_do=row.instead if forward else "")
    for key, row in new.items():
        if key not in old and key not in renamed:
            yield SpecChange(table.subject, "added", *key, to_do=row.adopt if forward else "")


def _role(row: _AdvisedRow) -> str:
    # Only capabilities have two rows of the same name.
    return getattr(row, "role", "")


def _if_changed(
    table: _ComparedTable, old: _AdvisedRow, new: _AdvisedRow, forward: bool
) -> Iterator[SpecChange]:
    if old is new:
        return
    details = _details(table.columns, old, new)
    to_do = new.adopt if forward else ""
    # A row may begin because of something that is not a column; its advice explains that.
    if details or to_do:
        yield SpecChange(
            table.subject, "changed", old.name, _role(old), details=details, to_do=to_do
        )


def _details(columns: Mapping[str, str], old: object, new: object) -> tuple[Detail, ...]:
    pairs = ((what, getattr(old, name), getattr(new, name)) for name, what in columns.items())
    return tuple(Detail(what, _text(was), _text(is_)) for what, was, is_ in pairs if was != is_)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        return " | ".join(sorted(value)) or "none"
    if isinstance(value, tuple):
        # Limits are pairs: a keyword and its value.
        parts = (" ".join(map(str, part)) if isinstance(part, tuple) else part for part in value)
        return "; ".join(parts) or "none"
    return "none" if value in (None, "") else str(value)


# Errors, types and fields: their advice is in rows of its own


def _of_errors(before: str, after: str) -> Iterator[SpecChange]:
    old, new = _by_symbol(before), _by_symbol(after)
    columns = {"number": "number", "http": "HTTP status", "sent": "may be sent"}
    for symbol in {**old, **new}:
        if symbol not in new:
            yield _advised("error", "removed", symbol, before, after)
        elif symbol not in old:
            yield _advised("error", "added", symbol, before, after)
        elif details := _details(columns, old[symbol], new[symbol]):
            yield _advised("error", "changed", symbol, before, after, details)


def _by_symbol(revision: str) -> dict[str, ErrorCode]:
    # Of several rows of a symbol, the one that may be sent counts.
    counts = (error(row.symbol, revision=revision) for row in errors(revision))
    return {str(row.symbol): row for row in counts if row is not None}


def _of_types(before: str, after: str) -> Iterator[SpecChange]:
    old, new = types(before), types(after)
    yield from _of_names("type", old, new, before, after)
    for name, view in old.items():
        if name in new:
            yield from _of_type(view, new[name], before, after)


def _of_names(
    subject: Subject, old: Iterable[str], new: Iterable[str], before: str, after: str
) -> Iterator[SpecChange]:
    gone = [name for name in old if name not in frozenset(new)]
    come = [name for name in new if name not in frozenset(old)]
    for name in gone:
        change = _advised(subject, "renamed", name, before, after)
        if change.renamed_to in come:
            come.remove(change.renamed_to)
            yield change
        else:
            yield _advised(subject, "removed", name, before, after)
    for name in come:
        yield _advised(subject, "added", name, before, after)


def _of_type(old: TypeView, new: TypeView, before: str, after: str) -> Iterator[SpecChange]:
    shapes = _TypeSummary.of(old), _TypeSummary.of(new)
    if details := _details({"kind": "kind", "members": "may be", "open": "open"}, *shapes):
        yield _advised("type", "changed", old.name, before, after, details)
    if old.kind == new.kind:
        was = {f"{old.name}.{name}": field for name, field in old.fields.items()}
        now = {f"{new.name}.{name}": field for name, field in new.fields.items()}
        yield from _of_names("field", was, now, before, after)
        yield from _of_fields(was, now, before, after)


def _of_fields(
    old: Mapping[str, FieldView], new: Mapping[str, FieldView], before: str, after: str
) -> Iterator[SpecChange]:
    columns = {"type": "type", "required": "required", "limits": "limits"}
    for name, field in old.items():
        if name in new and (details := _details(columns, field, new[name])):
            yield _advised("field", "changed", name, before, after, details)


class _TypeSummary(NamedTuple):
    """A type apart from its fields; the order of a union does not matter."""

    kind: str
    members: frozenset[str]
    open: bool | None

    @classmethod
    def of(cls, view: TypeView) -> _TypeSummary:
        return cls(view.kind, frozenset(view.of), view.open)


def _advised(
    subject: Subject,
    how: How,
    name: str,
    before: str,
    after: str,
    details: tuple[Detail, ...] = (),
) -> SpecChange:
    found = _advice(subject, how, name, before, after)
    renamed_to, says = (found.renamed_to, found.says) if found else ("", "")
    return SpecChange(subject, how, name, renamed_to=renamed_to, details=details, to_do=says)


def _advice(subject: Subject, how: How, name: str, before: str, after: str) -> Advice | None:
    # The newest advice on a change; an exact name goes before a pattern.
    found = [
        row
        for row in ADVICE
        if (row.subject, row.how) == (subject, how)
        and (row.name == name or (row.name[0] == "*" and name.endswith(row.name[1:])))
        and before < row.since <= after
    ]
    return max(found, key=lambda row: (row.name == name, row.since), default=None)
