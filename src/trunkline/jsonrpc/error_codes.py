"""Error codes by name: a symbol becomes the code that the policy's profile gives it, and back.

The codes themselves are rows in `spec/profiles/`.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..errors import PeerError
from ..spec.profiles import profile
from .messages import ErrorObject
from .policy import DEFAULT_POLICY, Policy

__all__ = ["named_error", "peer_error"]


def named_error(
    kind: str,
    *,
    policy: Policy = DEFAULT_POLICY,
    message: str | None = None,
    data: Any = UNSET,
    **facts: Any,
) -> ErrorObject:
    """Return the error object of `kind` under `policy`: its code, its text, and `data`.

    `facts` are members of `data`, for kinds whose data has a known form:
    `named_error("TOOL_NOT_FOUND", tool="echo")`.

    Raises:
        LookupError: the profile has no such symbol; the text suggests the nearest.
        TypeError: both `data` and single facts were given.
    """
    if facts and data is not UNSET:
        raise TypeError("give either data or its members by name, not both")
    codes = profile(policy.codes)
    number, stands_for = codes.to_send(kind, policy.revision)
    text = codes.text(kind, policy.revision) if message is None else message
    if facts:
        data = facts
    if stands_for is not None:
        data = _with_original(data, stands_for)
    return ErrorObject(number, text, data)


def peer_error(error: ErrorObject, method: str, policy: Policy = DEFAULT_POLICY) -> PeerError:
    """Return the exception for an error that the other side answered with."""
    row = profile(policy.codes).meaning(error.code, policy.revision)
    return PeerError(
        error.code,
        error.message,
        None if error.data is UNSET else error.data,
        method=method,
        kind="" if row is None else str(row.symbol),
    )


def _with_original(data: Any, number: int) -> Any:
    """Return `data` with the code that a reserved block of numbers replaced."""
    if data is UNSET:
        return {"originalCode": number}
    if isinstance(data, dict):
        return {**data, "originalCode": number}
    return {"originalCode": number, "details": data}
