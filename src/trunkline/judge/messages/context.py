"""The context that a message is checked in: revision, sender, policy, answered request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...jsonrpc.messages import Request, SentRequest, shown_tuple
from ...jsonrpc.policy import Policy
from ...spec.mcp.meta import CLIENT_CAPABILITIES
from ...spec.rows import Role

__all__ = ["AnsweredRequest", "MessageContext", "answered_request"]


class AnsweredRequest(NamedTuple):
    """The request that a reply answers, as far as the caller knows it."""

    method: str = ""
    # None matches a reply with any id.
    id: int | str | None = None
    # The extensions that it declares; each may define result types.
    extensions: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return shown_tuple(self)


class MessageContext(NamedTuple):
    """What the rules depend on apart from the message itself."""

    revision: str
    sender: Role | None
    policy: Policy
    request: AnsweredRequest | None

    def __repr__(self) -> str:
        return shown_tuple(self)


def answered_request(
    request: str | Request | SentRequest | Mapping[str, Any] | None,
) -> AnsweredRequest | None:
    """Return the facts about a request that is given as a method name, an object or JSON.

    Raises:
        TypeError: it is neither a method name nor a request.
    """
    if request is None:
        return None
    if isinstance(request, str):
        return AnsweredRequest(request)
    if isinstance(request, Request | SentRequest):
        return AnsweredRequest(request.method, request.id, _extensions(request.params))
    if isinstance(request, Mapping):
        method, id = request.get("method"), request.get("id")
        has_id = isinstance(id, int | str) and not isinstance(id, bool)
        return AnsweredRequest(
            method if isinstance(method, str) else "",
            id if has_id else None,
            _extensions(request.get("params")),
        )
    raise TypeError(
        f"expected a method name, a Request or a dict as request, not {type(request).__name__}"
    )


def _extensions(params: Any) -> frozenset[str]:
    found = params
    for name in ("_meta", CLIENT_CAPABILITIES, "extensions"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return frozenset(found) if isinstance(found, Mapping) else frozenset()
