"""Messages from parsed values, and the reasons why something is none.

A reason is a pair, as in the original: a name, and what there is to say about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...errors import InvalidMessage
from ...jsonrpc import Failure, Notification
from ...spec.error_kinds import ErrorKind
from ...spec.profiles import profile
from .._text import text_of
from ._policy import POLICY
from .codec import (
    batch_decode_result,
    build_error_object,
    decode_batch,
    decode_message,
    json_rpc_message,
)
from .constants import (
    JSONRPC_FIELD_ID,
    JSONRPC_FIELD_JSONRPC,
    JSONRPC_FIELD_METHOD,
    JSONRPC_FIELD_PARAMS,
    JSONRPC_VERSION,
)

__all__ = [
    "create_batch_error_response",
    "map_batch_error_to_code",
    "parse_batch",
    "parse_by_type",
    "parse_json_rpc",
    "parse_notification",
    "reason_of",
    "validate_jsonrpc_version",
]


def parse_json_rpc(data: Mapping[str, Any]) -> json_rpc_message:
    """Return the message that a parsed object is.

    Raises:
        InvalidMessage: it is none; `reason_of` says why.
        LocalProtocolError: JSON has no such value.
    """
    return decode_message(text_of(data))


def parse_by_type(data: Mapping[str, Any]) -> json_rpc_message:
    """Return the message that a parsed object is, whatever version it says it is of.

    Raises:
        InvalidMessage: it is none; `reason_of` says why.
        LocalProtocolError: JSON has no such value.
    """
    return parse_json_rpc({**data, JSONRPC_FIELD_JSONRPC: JSONRPC_VERSION})


def parse_notification(method: str, data: Mapping[str, Any]) -> Notification:
    """Return the notification of `method` with the params that `data` has.

    Raises:
        InvalidMessage: the method is no name, or the params are no object or array.
        LocalProtocolError: JSON has no such value.
    """
    params = data.get(JSONRPC_FIELD_PARAMS)
    read = parse_by_type({JSONRPC_FIELD_METHOD: method, JSONRPC_FIELD_PARAMS: params})
    # It has a method and no id, so it is nothing else.
    assert isinstance(read, Notification)
    return read


def parse_batch(elements: Iterable[Any]) -> batch_decode_result:
    """Return the messages of a parsed array, a faulty one in its place as `InvalidMessage`.

    Raises:
        InvalidMessage: the array is empty.
        LocalProtocolError: JSON has no such value.
    """
    return decode_batch(text_of(list(elements)))


def validate_jsonrpc_version(data: Mapping[str, Any]) -> None:
    """Return if a parsed object says that it is JSON-RPC 2.0.

    Raises:
        InvalidMessage: the version is another or missing; `reason_of` says which.
    """
    try:
        parse_json_rpc(data)
    except InvalidMessage as fault:
        # The version is looked at before all else, so another fault means it is right.
        if fault.where == f"/{JSONRPC_FIELD_JSONRPC}":
            raise


# -- reasons -------------------------------------------------------------------------------------

_INVALID_JSON: Final = ("parse_error", "invalid_json")

# What the original calls a broken rule. Where the second half is None, it is what was found.
_REASONS: Final[dict[str, tuple[str, str | None]]] = {
    "jsonrpc.text.utf8": _INVALID_JSON,
    "jsonrpc.text.bom": _INVALID_JSON,
    "jsonrpc.text.json": _INVALID_JSON,
    "jsonrpc.version.required": ("invalid_request", "missing_jsonrpc"),
    "jsonrpc.message.object": ("invalid_json", "not_object"),
    "jsonrpc.message.kind": ("invalid_request", "unknown_message_type"),
    "jsonrpc.reply.one-outcome": ("invalid_request", "result_and_error_exclusive"),
    "jsonrpc.method.type": ("invalid_method", None),
    "jsonrpc.method.empty": ("invalid_method", None),
    "jsonrpc.params.type": ("invalid_params", None),
    "jsonrpc.batch.empty": ("invalid_request", "empty_batch"),
    "jsonrpc.batch.not-allowed": ("batch_request", None),
}


def reason_of(fault: InvalidMessage) -> tuple[str, Any]:
    """Return the pair by which the original names a fault.

    `("parse_error", "invalid_json")`, `("message_too_large", answer)` with the bytes
    that are ready to be sent, `("batch_request", 3)`, and so on. A rule that the
    original does not have is `("invalid_request", rule)`.
    """
    if fault.rule == "jsonrpc.limit.message-size":
        return "message_too_large", fault.answer()
    if fault.rule == "jsonrpc.version.value":
        return "invalid_request", ("wrong_version", fault.got)
    if fault.rule == "jsonrpc.message.object" and fault.where:
        return "invalid_request", "not_an_object"  # an element of a batch
    reason, details = _REASONS.get(fault.rule, ("invalid_request", fault.rule))
    return reason, fault.got if details is None else details


# The error and the text that answer a reason; None is the error's own text.
_ANSWERS: Final[dict[str, tuple[ErrorKind, str | None]]] = {
    "parse_error": (ErrorKind.PARSE_ERROR, None),
    "invalid_request": (ErrorKind.INVALID_REQUEST, None),
    "not_an_object": (ErrorKind.INVALID_REQUEST, "Invalid Request: not an object"),
    "missing_jsonrpc": (ErrorKind.INVALID_REQUEST, "Missing jsonrpc version field"),
    "wrong_version": (ErrorKind.INVALID_REQUEST, "Invalid jsonrpc version (must be 2.0)"),
    "invalid_method": (ErrorKind.INVALID_REQUEST, "Invalid method"),
    "unknown_message_type": (ErrorKind.INVALID_REQUEST, "Unknown message type"),
}


def map_batch_error_to_code(reason: str, details: Any = None) -> tuple[int, str]:
    """Return the number and the text that answer a faulty element; unknown ones get -32603."""
    # An invalid request says more exactly what it is in its details.
    name = details[0] if isinstance(details, tuple) and details else details
    if reason != "invalid_request" or not isinstance(name, str) or name not in _ANSWERS:
        name = reason
    kind, text = _ANSWERS.get(name, (ErrorKind.INTERNAL_ERROR, None))
    row = profile(POLICY.codes).of_kind(kind, POLICY.revision)
    if name == "invalid_method" and isinstance(details, int | str):
        text = f"{text}: {details}"
    return row.number, row.message if text is None else text


def create_batch_error_response(request: Any, reason: str, details: Any = None) -> Failure:
    """Return the response to a faulty element of a batch, under its own id if that is readable.

    `create_batch_error_response(element, *reason_of(fault))` answers with the
    original's texts.
    """
    id = request.get(JSONRPC_FIELD_ID) if isinstance(request, Mapping) else None
    if isinstance(id, bool) or not isinstance(id, int | str):
        id = None
    code, message = map_batch_error_to_code(reason, details)
    return Failure(id, build_error_object(code, message, details))
