"""Checks of the options of a client, and their error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias, get_args

from ...mcp.types import LoggingLevel
from ...redaction import show

__all__ = [
    "LEVELS",
    "OnEvent",
    "Prefix",
    "Validate",
    "check_choice",
    "check_count",
    "check_seconds",
]

LEVELS: Final[tuple[str, ...]] = get_args(LoggingLevel)

# What happens to an invalid message of the server.
# Whether the name of its server is before the names of a single one.
Prefix: TypeAlias = Literal["auto", "always"]
Validate: TypeAlias = Literal["off", "warn", "raise"]

# Called with the kind of an event ("retry", "resume", "reconnect", "given-up", "session-lost",
# "fallback") and a text; may be async.
OnEvent: TypeAlias = Callable[[str, str], object]


def check_choice(what: str, given: object, choices: Iterable[object]) -> None:
    """Check that a value is one of `choices`.

    Raises:
        ValueError: it is not; the text names them.
    """
    allowed = list(choices)
    if given not in allowed:
        names = ", ".join(repr(each) for each in allowed)
        raise ValueError(f"{what} is one of {names}, not {show(given)}")


def check_seconds(what: str, given: float) -> None:
    """Check that a number of seconds is above 0; infinity is allowed.

    Raises:
        ValueError: it is not.
    """
    if not given > 0:  # rejects NaN too
        raise ValueError(f"{what} is a number of seconds above 0, not {show(given)}")


def check_count(what: str, given: int) -> None:
    """Check that an integer is above 0.

    Raises:
        ValueError: it is not.
    """
    if type(given) is not int or given < 1:
        raise ValueError(f"{what} is an integer above 0, not {show(given)}")
