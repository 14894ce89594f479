"""Values of a recording that are not known, because they were hidden when it was written.

A rule that reads a hidden place sees an `Unknown`. It equals nothing but itself and has no JSON
type, so that a rule that tests for one skips it. A finding at or below a hidden place is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, Final

__all__ = ["NOTHING_HIDDEN", "HiddenPlaces", "Unknown"]

_numbers: Final = count(1)


class Unknown:
    """A value that was hidden."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = next(_numbers)

    def __str__(self) -> str:
        # Rules use the text of some values as a key; no two unknown values are the same.
        return f"<unknown {self._number}>"

    __repr__ = __str__


class HiddenPlaces:
    """The places of one message that were hidden, as JSON pointers."""

    __slots__ = ("_pointers",)

    def __init__(self, pointers: Iterable[str]) -> None:
        self._pointers = frozenset(pointers)

    def __bool__(self) -> bool:
        return bool(self._pointers)

    def __contains__(self, where: str) -> bool:
        """Return True if a JSON pointer names a hidden place, or one below."""
        if where in self._pointers or "" in self._pointers:
            return True
        end = where.rfind("/")
        while end > 0:
            if where[:end] in self._pointers:
                return True
            end = where.rfind("/", 0, end)
        return False

    def removed_from(self, message: Any) -> Any:
        """Return a copy of a message with an `Unknown` at each hidden place."""
        tree: dict[str, Any] = {}
        for pointer in self._pointers:
            node = tree
            for step in pointer.split("/")[1:]:
                node = node.setdefault(step.replace("~1", "/").replace("~0", "~"), {})
        return _without(message, tree)


NOTHING_HIDDEN: Final = HiddenPlaces(())


def _without(value: Any, tree: dict[str, Any]) -> Any:
    # As deep as the pointers, which have a few steps.
    if not tree:
        return Unknown()
    if type(value) is dict:
        copy: Any = dict(value)
        for step, below in tree.items():
            if step in copy:
                copy[step] = _without(copy[step], below)
        return copy
    if type(value) is list:
        copy = list(value)
        for step, below in tree.items():
            if step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(copy):
                copy[int(step)] = _without(copy[int(step)], below)
        return copy
    return Unknown()
