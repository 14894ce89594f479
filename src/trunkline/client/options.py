"""What an argument may be, and the sentence for one that is something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

from ..mcp.types import LoggingLevel
from ..redaction import show

__all__ = ["LEVELS", "Validate", "check_choice", "check_count", "check_seconds"]

LEVELS: Final[tuple[str, ...]] = get_args(LoggingLevel)

# What becomes of a message of the server that breaks a rule.
Validate: TypeAlias = Literal["off", "warn", "raise"]


def check_choice(what: str, given: object, choices: Iterable[object]) -> None:
    """Refuse what is not one of `choices`.

    Raises:
        ValueError: the text names them.
    """
    allowed = list(choices)
    if given not in allowed:
        names = ", ".join(repr(each) for each in allowed)
        raise ValueError(f"{what} is one of {names}, not {show(given)}")


def check_seconds(what: str, given: float) -> None:
    """Refuse a time that never comes, or has passed before it begins; without end is a time.

    Raises:
        ValueError: the text says what is taken.
    """
    if not given > 0:  # not a number is above nothing either
        raise ValueError(f"{what} is a number of seconds above 0, not {show(given)}")


def check_count(what: str, given: int) -> None:
    """Refuse what counts nothing.

    Raises:
        ValueError: the text says what is taken.
    """
    if type(given) is not int or given < 1:
        raise ValueError(f"{what} is an integer above 0, not {show(given)}")
