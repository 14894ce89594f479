"""A list of checks, each a sentence that is true of a connection or is not.

What a check finds wrong it raises. A check is skipped only in revisions that lack what it is
about; what is known to be otherwise with one of the peers is a row of `differences`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from trunkline.spec.revisions import REVISIONS, Window

__all__ = [
    "ANY",
    "PATIENCE",
    "Check",
    "Checks",
    "Place",
    "Unexpected",
    "describe",
    "expect",
    "leaf",
    "raised",
    "until",
]

# No answer here takes a second; a machine that is busy may take several.
PATIENCE: Final = 5.0
ANY: Final = Window(min(REVISIONS))


class Place(NamedTuple):
    """Where the server of an exchange is: a command to run, or a URL."""

    recording: Path
    command: Sequence[str] = ()
    url: str = ""
    # To be called before a client connects again. A command has a recording for each connection.
    begin_recording: Callable[[], None] = lambda: None


class Unexpected(Exception):
    """Something is not as it should be."""


class Check(NamedTuple):
    """One check: what it is called, how it is run, and which revisions it is about."""

    name: str
    run: Callable[[Any], Awaitable[None]]
    when: Window


class Checks(list[Check]):
    """Checks in the order in which they are written down."""

    def about(self, when: Window) -> Callable[[Callable[[Any], Awaitable[None]]], Any]:
        """Add a function as a check, named as the function is."""

        def add(function: Callable[[Any], Awaitable[None]]) -> Any:
            self.append(Check(function.__name__.replace("_", " "), function, when))
            return function

        return add


def expect(got: object, wanted: object, what: str = "") -> None:
    """Compare two values.

    Raises:
        Unexpected: they are not equal.
    """
    if got != wanted:
        raise Unexpected(f"{what + ': ' if what else ''}got {got!r}, expected {wanted!r}")


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait, not for long, until something is so.

    Raises:
        Unexpected: it did not become so.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise Unexpected(f"within {PATIENCE:g} s there was no {what}") from None


async def raised(work: Awaitable[Any], kind: type[Exception]) -> Any:
    """Return what `work` raises.

    Raises:
        Unexpected: it raised nothing.
    """
    try:
        result = await work
    except kind as error:
        return error
    raise Unexpected(f"got {result!r}, expected a {kind.__name__}")


def leaf(error: BaseException) -> BaseException:
    """Return an error; of a group, the first in it that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe(error: BaseException) -> str:
    """Return what went wrong in one line."""
    error = leaf(error)
    text = " ".join(" ".join([str(error), *getattr(error, "__notes__", ())]).split())
    return text if isinstance(error, Unexpected) else f"{type(error).__name__}: {text}"
