"""Findings: one broken rule at one place of one message.

A `Finding` is a value: it compares, sorts, is hashable, and shows no secret. The faulty value
is stored as text, truncated and redacted on creation, so that a finding can be kept or printed
after the message is gone.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..errors import NOTHING, show_pointer
from ..jsonrpc.messages import Shown, shown_tuple
from ..redaction import HIDDEN, is_secret_name, show_json

__all__ = ["CUT_RULE", "MAX_FINDINGS", "Finding", "Level", "as_shown", "ordered"]

Level: TypeAlias = Literal["error", "warn", "info"]

# The peer decides how many mistakes a message has; a reader needs no more of them than this.
MAX_FINDINGS: Final = 1000
CUT_RULE: Final = "judge.findings.cut"

_RANK: Final = {"error": 0, "warn": 1, "info": 2}
_INDENT: Final = " " * 7
# Places in a JSON Schema of a message or a listing, and the keys of input requests.
_ASKED: Final = re.compile(r"(?:/\d+)?/(?:result|params)/inputRequests/[^/]*")
_IN_SCHEMA: Final = re.compile(
    r"(?:/\d+)?(?:/(?:result|params)(?:/inputRequests/[^/]*/params)?)?(?:/tools/\d+)?"
    r"/(?:inputSchema|outputSchema|requestedSchema)(?:/|\Z)"
)
# Keywords of a schema that hold a value of the author.
_HOLDS_VALUE: Final = re.compile(r"/(?:default|const|enum|examples)(?:/|\Z)")


class _SortKey(NamedTuple):
    rank: int
    message: int
    steps: tuple[tuple[int, int, str], ...]
    rule: str
    rest: tuple[str, str, str]

    def __repr__(self) -> str:
        return shown_tuple(self)


class Finding(Shown, Struct, frozen=True, dict=True):
    """One rule that a message breaks, or a remark about it (level "info").

    `got` is the value that was found, redacted; it is empty where the value is missing. `where`
    is a JSON pointer into the message, or into the batch that the message is part of.
    """

    rule: str
    level: Level
    where: str
    got: str
    expected: str
    source: str
    message_index: int | None = None

    def __str__(self) -> str:
        at = f"  at {show_pointer(self.where)}" if self.where else ""
        facts = [f"got {self.got}"] if self.got else []
        facts += [f"expected {self.expected}"] if self.expected else []
        index = "" if self.message_index is None else f" · message {self.message_index}"
        first = f"{self.level:<5}  {self.rule}{at}   {', '.join(facts)}"
        return f"{first}\n{_INDENT}{self.source}{index}"

    @cached_property
    def _sort_key(self) -> _SortKey:
        message = -1 if self.message_index is None else self.message_index
        steps = tuple(map(_step, self.where.split("/")))
        rest = (self.got, self.expected, self.source)
        return _SortKey(_RANK[self.level], message, steps, self.rule, rest)

    def __lt__(self, other: object) -> bool:
        return self._sort_key < other._sort_key if isinstance(other, Finding) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._sort_key <= other._sort_key if isinstance(other, Finding) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._sort_key > other._sort_key if isinstance(other, Finding) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._sort_key >= other._sort_key if isinstance(other, Finding) else NotImplemented


def _step(step: str) -> tuple[int, int, str]:
    # Array elements sort by number, members by name.
    if step.isascii() and step.isdigit() and len(step) < 10:
        return (0, int(step), "")
    return (1, 0, step)


def as_shown(value: Any, where: str) -> str:
    """Return the value found at `where` as JSON, truncated and redacted."""
    if value is NOTHING:
        return ""
    if any(map(is_secret_name, _names(where))):
        return HIDDEN
    return show_json(value)


def _names(where: str) -> list[str]:
    """Return the steps of a pointer that may suggest a secret.

    Names in a schema do not, unless the place is a value, such as a default.
    """
    schema = _IN_SCHEMA.match(where)
    if schema and not _HOLDS_VALUE.search(where, schema.end() - 1):
        return []
    asked = _ASKED.match(where)
    return (where[asked.end() :] if asked else where).split("/")


def ordered(found: list[Finding], unseen: int = 0, *, more: bool = False) -> list[Finding]:
    """Return the first `MAX_FINDINGS` findings in order, and one that counts the rest.

    `unseen` findings were counted without being kept; with `more` even the counting stopped.
    """
    found.sort()
    left = len(found) - MAX_FINDINGS + unseen if len(found) > MAX_FINDINGS else unseen
    if not left and not more:
        return found
    count = f"{'more than ' if more else ''}{left} more"
    cut = Finding(
        CUT_RULE, "info", "", count, f"at most {MAX_FINDINGS} findings", "Trunkline limits"
    )
    return [*found[:MAX_FINDINGS], cut]
