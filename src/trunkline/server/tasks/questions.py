"""Questions of task records in MCP: the requests they stand for, and the responses that fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Raw
from msgspec.json import Decoder

from ...mcp.types import InputRequest, ListRootsRequestParams

__all__ = ["check_of", "method_of", "request_of"]

_read: Final[Decoder[InputRequest]] = Decoder(InputRequest)


def request_of(question: Raw) -> tuple[str, Any]:
    """Return the method and the params of a question in a task record."""
    request = _read.decode(question)
    params = ListRootsRequestParams() if request.params is None else request.params
    return request.method, params


def method_of(question: Raw) -> str:
    """Return the method of a question in a task record."""
    return _read.decode(question).method


def check_of(question: Raw, known: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """Return what raises ValueError for a response that does not fit its question.

    `known` is that of the handler, if it runs on this server. For the question of another server
    it is made from the requested schema, which lacks what no schema of a form can express.
    """
    if known is not None:
        return known
    schema = getattr(_read.decode(question).params, "requested_schema", None)
    if not isinstance(schema, Mapping):
        return lambda result: None
    # Imported here: few servers share a store and ask.
    from ..client_requests.form import form_of

    try:
        form = form_of(schema)
    except TypeError:
        return lambda result: None  # of a later version, perhaps

    def check(result: Any) -> None:
        if result.action == "accept":
            form.read(result.content)

    return check
