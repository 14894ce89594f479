"""Which methods a client may send in a revision, and the errors for those it may not.

The facts are the rows of the specification. A method that no revision has belongs to an
application and may be sent; one of another revision is a mistake, which the server would only
answer with "method not found".
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NoReturn

from msgspec import Struct

from ...errors import LocalProtocolError
from ...mcp.capabilities import declares
from ...spec import lookup
from ...spec.revisions import REVISIONS

if TYPE_CHECKING:
    from .session import Session

__all__ = ["check_declared", "check_method", "check_sendable", "raise_not_sendable", "sendable"]


@lru_cache(maxsize=2 * len(REVISIONS))
def sendable(revision: str, kind: Literal["request", "notification"]) -> frozenset[str]:
    """Return the methods that a client may send in `revision`."""
    return frozenset(
        row.name
        for row in lookup.methods(revision)
        if row.kind == kind and row.form == "wire" and "client" in row.senders
    )


def check_method(method: str, revision: str, kind: Literal["request", "notification"]) -> None:
    """Reject a method of the specification that a client of `revision` does not send.

    Raises:
        LocalProtocolError: the text says which revisions have it, and what to do instead.
    """
    if method not in sendable(revision, kind) and _is_known(method):
        raise_not_sendable(method, revision)


def check_sendable(
    method: str, kind: type[Struct] | None, session: Session, *, strict: bool
) -> None:
    """Reject a method that the revision lacks, and if `strict` one that the server did not declare.

    Requests without a params type (`kind`) were checked by `check_method`.

    Raises:
        LocalProtocolError: the text says why.
    """
    if kind is not None and method not in session.methods:
        raise_not_sendable(method, session.revision)
    if strict and session.negotiated is not None:
        check_declared(method, session.revision, session.negotiated.capabilities)


def raise_not_sendable(method: str, revision: str) -> NoReturn:
    """Raise the error for a method of the specification that `revision` lacks."""
    if lookup.method(method, revision) is not None:
        rule = "mcp.method.direction"
    elif lookup.method_status(method, revision) == "removed":
        rule = "mcp.method.no-longer"
    else:
        rule = "mcp.method.not-yet"
    raise LocalProtocolError(
        rule, where="/method", got=method, expected=lookup.explain_method(method, revision)
    )


def check_declared(method: str, revision: str, capabilities: Struct) -> None:
    """Reject a method for which the server declared no capability.

    Raises:
        LocalProtocolError: the text names the capability.
    """
    row = lookup.method(method, revision)
    if row is None or "server" not in row.declared_by("client"):
        return
    if not declares(capabilities, row.capability):
        raise LocalProtocolError(
            "mcp.capability.negotiated-only",
            where="/method",
            got=method,
            expected=f"a server that declares the capability {row.capability}",
        )


def _is_known(method: str) -> bool:
    return any(lookup.method(method, revision) is not None for revision in REVISIONS)
