"""Settings of an MCP server: cache hints and switches of capabilities."""

from __future__ import annotations

from typing import Any, Final, Literal, TypedDict

from msgspec import Struct

__all__ = [
    "CacheHint",
    "CapabilitySwitches",
    "check_switches",
]


class CapabilitySwitches(TypedDict, total=False):
    """Kinds of a server that are declared and served, as in `Server(capabilities={...})`.

    `False` switches a kind off: it is not declared, and its methods do not exist. What is left out
    is on, with two exceptions: `completions` are on once an argument has a completion, and
    2026-07-28, where `logging` is deprecated, declares it once a handler, guard or middleware gets
    the `Context` and so can log. `True` declares either before that.
    """

    tools: bool
    resources: bool
    prompts: bool
    completions: bool
    logging: bool


_SWITCHES: Final = tuple(CapabilitySwitches.__annotations__)


def check_switches(given: Any) -> CapabilitySwitches:
    """Return a copy of the switches.

    Raises:
        TypeError: they are not a dict of booleans.
        ValueError: one has an unknown name; the text lists the names.
    """
    if not isinstance(given, dict):
        raise TypeError(
            f'capabilities is a dict such as {{"prompts": False}}, not {type(given).__name__}'
        )
    for name, value in given.items():
        if name not in _SWITCHES:
            known = ", ".join(_SWITCHES)
            raise ValueError(f"capabilities has no switch {name!r}; it has {known}")
        if type(value) is not bool:
            raise TypeError(f"capabilities[{name!r}] is True or False, not {value!r}")
    switches: CapabilitySwitches = {**given}  # type: ignore[typeddict-item]  # checked above
    return switches


class CacheHint(Struct, frozen=True):
    """How long clients may cache a result, and whether caches may share it.

    `CacheHint(60)` is a minute. A `private` result is for its caller alone; a `public` one may be
    shared. Only 2026-07-28 sends it; zero seconds means "do not cache".
    """

    seconds: float = 0
    scope: Literal["private", "public"] = "private"

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= 10**9:
            raise ValueError(f"CacheHint.seconds is from 0 to a billion, not {self.seconds!r}")
        if self.scope not in ("private", "public"):
            raise ValueError(f"CacheHint.scope is 'private' or 'public', not {self.scope!r}")

    @property
    def milliseconds(self) -> int:
        """The time in milliseconds, as on the wire."""
        return round(self.seconds * 1000)

    def joined(self, other: CacheHint) -> CacheHint:
        """Return the hint for two results sent as one: the shorter time, the narrower scope."""
        scope = "public" if self.scope == other.scope == "public" else "private"
        return CacheHint(min(self.seconds, other.seconds), scope)  # type: ignore[arg-type]  # one of two
