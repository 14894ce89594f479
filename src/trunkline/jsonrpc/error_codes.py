"""Error codes by name: a symbol becomes the code that the policy's profile gives it, and back.

The codes themselves are rows in `spec/profiles/`.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from ..errors import PeerError
from ..spec.error_kinds import ErrorKind
from ..spec.profiles import profile
from ..spec.revisions import LATEST
from .messages import ErrorObject
from .policy import DEFAULT_POLICY, Policy

__all__ = ["application_error", "code_warning", "named_error", "peer_error", "serialization_error"]


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
        data = _with_number(data, "originalCode", stands_for)
    return ErrorObject(number, text, data)


def application_error(
    code: int, message: str | None, data: Any = UNSET, *, policy: Policy = DEFAULT_POLICY
) -> ErrorObject:
    """Return the error object of a code that a handler chose by its number.

    A code that cannot be sent is `data.code` of an internal error.
    """
    text = message or "Refused"
    if _is_sent(code, policy):
        return ErrorObject(code, text, data)
    data = _with_number(data, "code", code)
    return named_error(ErrorKind.INTERNAL_ERROR, policy=policy, message=text, data=data)


def code_warning(code: int, policy: Policy) -> str | None:
    """Return what to log about a code that a handler chose, or None if there is nothing.

    Codes that the profile defines are not remarked on, as long as they are sent.
    """
    codes = profile(policy.codes)
    is_sent = _is_sent(code, policy)
    if is_sent and (codes.accepts(code, policy.revision) or codes.allows(code)):
        return None
    if is_sent or not codes.allows(code, policy.revision):
        return (
            f"error code {code} is reserved in MCP {LATEST}, where it is sent as -32603 with "
            "data.code; a code above -32000 is sent in every revision"
        )
    return f"error code {code} is not in profile {policy.codes}, so it is sent as data.code"


def _is_sent(code: int, policy: Policy) -> bool:
    codes = profile(policy.codes)
    is_known = policy.unknown_code == "pass" or codes.accepts(code, policy.revision)
    return is_known and codes.allows(code, policy.revision)


def serialization_error(policy: Policy) -> ErrorObject:
    """Return the error for a result that cannot be encoded."""
    try:
        return named_error("SERIALIZATION_FAILED", policy=policy)
    except LookupError:  # few profiles tell it from other internal errors
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


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


def _with_number(data: Any, member: str, number: int) -> Any:
    """Return `data` with the code that another one replaced on the wire."""
    if data is UNSET:
        return {member: number}
    if isinstance(data, dict) and member not in data:
        return {**data, member: number}
    return {member: number, "details": data}
