"""Limits on what a peer may send: bytes, elements, digits, depth.

`None` removes a size limit; of the presets only `erlmcp-doc` does so, as its
document requires.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from ..redaction import show

__all__ = ["MAX_DEPTH", "MAX_INTEGER_DIGITS", "Limits", "TransportName"]

TransportName: TypeAlias = Literal["default", "stdio", "tcp", "unix", "http", "websocket", "sse"]

# The decoder rejects longer integers, as CPython does: parsing digits takes quadratic time.
MAX_INTEGER_DIGITS: Final = 4300

# The nesting limit when no depth is set: far beyond any schema in use, and far below what the
# decoder manages on any interpreter and thread stack, so that the result depends on neither.
# CPython's own guard is at 1000 levels in 3.11 and 12 000 in 3.14, less on a small stack.
MAX_DEPTH: Final = 256

MIB: Final = 1024 * 1024

_TRANSPORTS: Final[tuple[str, ...]] = get_args(TransportName)
# The largest allowed limits. A batch is counted by a decoder with a field for each message.
_MOST: Final = {"batch": 100_000, "integer_digits": MAX_INTEGER_DIGITS}


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one codec; sizes are bytes of one message, per transport."""

    default: int | None = 16 * MIB
    stdio: int | None = 16 * MIB
    tcp: int | None = 16 * MIB
    unix: int | None = 16 * MIB
    http: int | None = 16 * MIB
    websocket: int | None = 16 * MIB
    sse: int | None = 16 * MIB
    # A batch is answered as a whole, so all its replies are in memory at once.
    batch: int = 1000
    # Ids are kept while a request is open, and for a while after.
    id_length: int = 1024
    # Method names are looked up, logged and counted.
    method_length: int = 1024
    # Open arrays and objects; None is 256. What follows calls itself once or twice per level.
    depth: int | None = None
    integer_digits: int = MAX_INTEGER_DIGITS

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value, most = getattr(self, name), _MOST.get(name)
            may_be_none = name in _TRANSPORTS or name == "depth"
            if value is None and may_be_none:
                continue
            if type(value) is not int or value < 1 or (most is not None and value > most):
                allowed = "an integer of at least 1" if most is None else f"from 1 to {most}"
                allowed += " or None" if may_be_none else ""
                raise ValueError(f"Limits.{name} is {allowed}, not {show(value)}")

    @property
    def max_depth(self) -> int:
        """The nesting limit."""
        return MAX_DEPTH if self.depth is None else self.depth

    def message_size(self, transport: TransportName = "default") -> int | None:
        """Return the size limit of a transport; None is unlimited.

        Raises:
            LookupError: the transport is unknown; the text lists the known ones.
        """
        if transport not in _TRANSPORTS:
            known = ", ".join(_TRANSPORTS)
            raise LookupError(f"no transport named {transport!r}; there are {known}")
        size: int | None = getattr(self, transport)
        return size

    @property
    def largest_message(self) -> int:
        """The largest size limit of all transports, in bytes; 0 if none has one."""
        return max(getattr(self, each) or 0 for each in _TRANSPORTS)

    @classmethod
    def named(cls, name: str) -> Limits:
        """Return a preset: `mcp-16m`, `erlmcp-doc` or `pierre-5m`.

        Raises:
            LookupError: the preset is unknown; the text lists the known ones.
        """
        from ..spec.profiles.presets import LIMITS

        row: dict[str, Any] | None = LIMITS.get(name)
        if row is None:
            raise LookupError(f"no limits named {name!r}; there are {', '.join(LIMITS)}")
        return cls(**row)
