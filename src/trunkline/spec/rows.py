"""The shapes of the rows that specifications are written down in.

Rows are plain named tuples: immutable, cheap to make, loaded only by the
lookups that need them. They state facts and call nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from .revisions import Window

__all__ = ["ErrorCode", "Retry", "Severity"]

# One vocabulary for the three that the described systems use.
Severity: TypeAlias = Literal["critical", "error", "warning", "info"]
Retry: TypeAlias = Literal["retry", "abort", "fallback"]

ALWAYS = Window()


class ErrorCode(NamedTuple):
    """One error number of one profile: what it is called and what it means."""

    number: int
    symbol: str
    message: str
    category: str
    severity: Severity = "error"
    retry: Retry = "abort"
    # The HTTP status a server answers with, where the profile knows one.
    http: int | None = None
    # The members of `data` that a named constructor fills, in order.
    data: tuple[str, ...] = ()
    when: Window = ALWAYS
    # False for a number that is understood when read but may not be sent.
    sent: bool = True
    # The row of the list this was taken from, where it has a name of its own.
    ref: str = ""
