"""Failures of handlers that every protocol has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..jsonrpc.error_codes import named_error
from ..spec.error_kinds import ErrorKind

if TYPE_CHECKING:
    from ..jsonrpc.messages import ErrorObject
    from ..jsonrpc.policy import Policy

__all__ = ["HandlerTimeout", "unencodable"]


class HandlerTimeout(Exception):
    """A handler exceeded its timeout."""


def unencodable(policy: Policy) -> ErrorObject:
    """Return the error for a result that cannot be encoded."""
    try:
        return named_error("SERIALIZATION_FAILED", policy=policy)
    except LookupError:  # few profiles tell it from other internal errors
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)
