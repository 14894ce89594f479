"""What a judge has to say about one place of one message.

A `Finding` is a value: it compares, sorts, can be kept in a set, and shows no secret. It
holds what was found as text, cut and redacted when it was made, so that a finding may be
kept or printed long after the message is gone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..errors import NOTHING, show_pointer
from ..jsonrpc.messages import Shown
from ..redaction import HIDDEN, is_secret_name, show

__all__ = ["CUT_RULE", "MAX_FINDINGS", "Finding", "Level", "as_shown", "ordered"]

Level: TypeAlias = Literal["error", "warn", "info"]

# A peer decides how many mistakes it makes; nobody reads more of them than this.
MAX_FINDINGS: Final = 1000
CUT_RULE: Final = "judge.findings.cut"

_RANK: Final = {"error": 0, "warn": 1, "info": 2}
_INDENT: Final = " " * 7


class _SortKey(NamedTuple):
    """Where a finding sorts."""

    rank: int
    message: int
    steps: tuple[tuple[int, int, str], ...]
    rule: str
    rest: tuple[str, str, str]


class Finding(Shown, Struct, frozen=True, dict=True):
    """One rule that a message breaks, or one thing worth knowing about it.

    `got` is what was there, as it may be shown; it is empty where nothing was. `where` is a
    JSON pointer into the message, or into the batch that the message is part of.
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
    def _place(self) -> _SortKey:
        message = -1 if self.message_index is None else self.message_index
        steps = tuple(map(_step, self.where.split("/")))
        return _SortKey(
            _RANK[self.level], message, steps, self.rule, (self.got, self.expected, self.source)
        )

    def __lt__(self, other: object) -> bool:
        return self._place < other._place if isinstance(other, Finding) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._place <= other._place if isinstance(other, Finding) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._place > other._place if isinstance(other, Finding) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._place >= other._place if isinstance(other, Finding) else NotImplemented


def _step(step: str) -> tuple[int, int, str]:
    """Return what a step of a pointer sorts by: elements by their number, members by name."""
    if step.isascii() and step.isdigit() and len(step) < 10:
        return (0, int(step), "")
    return (1, 0, step)


def as_shown(value: Any, where: str) -> str:
    """Return what may be shown of a value that stood at `where`, in the words of JSON."""
    if value is NOTHING:
        return ""
    if any(map(is_secret_name, where.split("/"))):
        return HIDDEN
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    return show(value)


def ordered(found: list[Finding], unseen: int = 0, *, more: bool = False) -> list[Finding]:
    """Return findings in order, the first `MAX_FINDINGS` of them, and one that tells of the rest.

    `unseen` were counted without being kept; `more` says that the counting stopped as well.
    """
    found.sort()
    left = len(found) - MAX_FINDINGS + unseen if len(found) > MAX_FINDINGS else unseen
    if not left and not more:
        return found
    told = f"{'more than ' if more else ''}{left} more"
    cut = Finding(
        CUT_RULE, "info", "", told, f"at most {MAX_FINDINGS} findings", "Trunkline limits"
    )
    return [*found[:MAX_FINDINGS], cut]
