"""The result of a comparison: the changes, and whether they break clients.

A `Change` is a value that shows no secret and can be kept when the listings are gone. The old
and the new value are stored as text, truncated and redacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from ...errors import show_pointer
from ...jsonrpc.messages import Shown
from ..finding import as_shown
from .rules import LEVELS, RULES, Level

__all__ = ["MAX_CHANGES", "Change", "Changes", "Comparison", "raised_major", "raised_minor"]

# Per level. An author reads fewer; a hostile listing would have more.
MAX_CHANGES: Final = 2000

_VERSION: Final = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+.].*)?\Z")


class Change(Shown, Struct, frozen=True):
    """One difference between two listings.

    `what` names the entry ("tool add"), `where` is a JSON pointer into it, references resolved.
    `old` and `new` are the values as text, redacted; empty where there was none.
    """

    rule: str
    level: Level
    what: str
    where: str = ""
    old: str = ""
    new: str = ""
    detail: str = ""

    @property
    def says(self) -> str:
        """What has changed, in one sentence without its place."""
        text = RULES[self.rule].says
        if self.old and self.new:
            text = f"{text}: {self.old} → {self.new}"
        elif self.old or self.new:
            text = f"{text}: {self.old or self.new}"
        return f"{text} ({self.detail})" if self.detail else text

    @property
    def why(self) -> str:
        """Why the change has its level."""
        return RULES[self.rule].why

    def __str__(self) -> str:
        place = f"{self.what} at {show_pointer(self.where)}" if self.where else self.what
        return f"{self.level}  {self.rule}  {place}: {self.says}"


class Changes:
    """Collects changes, and only counts those beyond `MAX_CHANGES` per level."""

    def __init__(self) -> None:
        self.counts: dict[Level, int] = dict.fromkeys(LEVELS, 0)
        self._kept: dict[Level, list[Change]] = {level: [] for level in LEVELS}

    def add(
        self,
        rule: str,
        what: str,
        where: str = "",
        old: Any = "",
        new: Any = "",
        detail: str = "",
    ) -> None:
        """Record a change. `old` and `new` are JSON; an empty string means no value."""
        level = RULES[rule].level
        self.counts[level] += 1
        if len(self._kept[level]) < MAX_CHANGES:
            before, after = _text(old, where), _text(new, where)
            change = Change(rule, level, what, where, before, after, detail)
            self._kept[level].append(change)

    def kept(self) -> Iterator[Change]:
        """Yield the changes, the most severe first."""
        for level in LEVELS:
            yield from self._kept[level]


def _text(value: Any, where: str) -> str:
    return "" if isinstance(value, str) and not value else as_shown(value, where)


class Comparison(Shown, Struct, frozen=True):
    """All differences between two listings, the most severe first.

    `counts` includes the changes beyond the first 2 000 of a level. `notes` are sentences about
    the comparison as a whole: a tool that may have been renamed, a part that could not be
    compared. `compared` names the parts that both listings have; if it is empty, the absence of
    changes proves nothing.
    """

    changes: tuple[Change, ...]
    counts: dict[Level, int]
    notes: tuple[str, ...] = ()
    old_version: str = ""
    new_version: str = ""
    compared: tuple[str, ...] = ()

    @property
    def is_next_major(self) -> bool:
        """Whether the new version is the next major one."""
        return raised_major(self.old_version, self.new_version)

    @property
    def is_next_minor(self) -> bool:
        """Whether the new version is the next minor one, or the next major one."""
        return raised_minor(self.old_version, self.new_version)

    def breaks(self, *, allow_announced: bool = False) -> bool:
        """Return True if clients of the old server may fail with the new one unannounced.

        Entries that were marked as deprecated may be removed in the next major version; before
        that their removal breaks clients too, unless `allow_announced`.
        """
        if self.counts["breaking"]:
            return True
        return bool(self.counts["announced"]) and not (allow_announced or self.is_next_major)


def raised_major(old: str, new: str) -> bool:
    """Return True if the major version went up; below 1.0 the second number counts."""
    before, after = _VERSION.match(old), _VERSION.match(new)
    if before is None or after is None:
        return False
    major, minor = int(before[1]), int(before[2] or 0)
    next_major, next_minor = int(after[1]), int(after[2] or 0)
    return next_major > major or (major == next_major == 0 and next_minor > minor)


def raised_minor(old: str, new: str) -> bool:
    """Return True if the minor or the major version went up; below 1.0 any number counts."""
    before, after = _VERSION.match(old), _VERSION.match(new)
    if before is None or after is None:
        return False
    numbers = [[int(part or 0) for part in each.groups()] for each in (before, after)]
    length = 3 if numbers[0][0] == 0 else 2
    return numbers[1][:length] > numbers[0][:length]
