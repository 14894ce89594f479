"""What requests weigh in the byte budgets of `accounts`, and the sizes of these by default.

The rules that live here, and only here:

* A request of 1 KiB or more weighs the bytes of its frame, from when it is accepted until its
  handler has ended. Of a batch, a request weighs the bytes of its own params.
* The default budgets grow with the largest message that the codec accepts, so that one such
  message and its answer always fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

if TYPE_CHECKING:
    from ..jsonrpc.limits import Limits
    from .limits import ServerLimits

__all__ = ["connection_bytes", "copied", "server_bytes", "size_of"]

_MIB: Final = 1024 * 1024

# 64 calls of 1 MB at once, with answers of the same size that hold the text twice: as content and
# as structured content.
_CONNECTION_BYTES: Final = 128 * _MIB
# A message of the largest size and an answer that holds it twice, beside some smaller calls.
_LARGEST_MESSAGES: Final = 4
# Connections that may use their whole budget at one time.
_FULL_CONNECTIONS: Final = 8


def connection_bytes(limits: ServerLimits, largest: int | None) -> int:
    """Return the budget of one connection, given the size limit of its messages."""
    if limits.connection_bytes is not None:
        return limits.connection_bytes
    return max(_CONNECTION_BYTES, _LARGEST_MESSAGES * (largest or 0))


def server_bytes(limits: ServerLimits, messages: Limits) -> int:
    """Return the budget of all connections together."""
    if limits.server_bytes is not None:
        return limits.server_bytes
    return _FULL_CONNECTIONS * connection_bytes(limits, messages.largest_message)


def size_of(params: Any) -> int:
    """Return the bytes of params that are not decoded yet, or of the raw members of a Struct."""
    if isinstance(params, Struct):
        return sum(_length(getattr(params, name)) for name in params.__struct_fields__)
    return _length(params)


def copied(params: Any) -> Any:
    """Return params that do not keep the frame in memory which they came in."""
    if isinstance(params, Struct):
        members = (_copied(getattr(params, name)) for name in params.__struct_fields__)
        return type(params)(*members)
    return _copied(params)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, Raw) else value


def _length(raw: Any) -> int:
    return memoryview(raw).nbytes if isinstance(raw, Raw) else 0
