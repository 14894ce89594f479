"""Messages from parsed values, and the original's reasons for invalid ones.

A reason is a pair of a name and details, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, overload

from ...errors import IdsExhausted, InvalidMessage
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
    """Return the message of a parsed object.

    Raises:
        InvalidMessage: it is invalid; `reason_of` returns the reason.
        LocalProtocolError: the value is not JSON.
    """
    return decode_message(text_of(data))


def parse_by_type(data: Mapping[str, Any]) -> json_rpc_message:
    """Return the message of a parsed object, whatever its version member says.

    Raises:
        InvalidMessage: it is invalid; `reason_of` returns the reason.
        LocalProtocolError: the value is not JSON.
    """
    return parse_json_rpc({**data, JSONRPC_FIELD_JSONRPC: JSONRPC_VERSION})


def parse_notification(method: str, data: Mapping[str, Any]) -> Notification:
    """Return the notification of `method` with the params that `data` has.

    Raises:
        InvalidMessage: the method is not a name, or the params are not an object or array.
        LocalProtocolError: the value is not JSON.
    """
    params = data.get(JSONRPC_FIELD_PARAMS)
    read = parse_by_type({JSONRPC_FIELD_METHOD: method, JSONRPC_FIELD_PARAMS: params})
    # A message with a method and without an id is a notification.
    assert isinstance(read, Notification)
    return read


def parse_batch(elements: Iterable[Any]) -> batch_decode_result:
    """Return the messages of a parsed array, with an `InvalidMessage` for each invalid one.

    Raises:
        InvalidMessage: the array is empty.
        LocalProtocolError: the value is not JSON.
    """
    return decode_batch(text_of(list(elements)))


def validate_jsonrpc_version(data: Mapping[str, Any]) -> None:
    """Check that the version of a parsed object is JSON-RPC 2.0.

    Raises:
        InvalidMessage: the version is another or missing; `reason_of` tells which.
    """
    try:
        parse_json_rpc(data)
    except InvalidMessage as fault:
        # The version is checked first, so another error means that it is right.
        if fault.where == f"/{JSONRPC_FIELD_JSONRPC}":
            raise


# -- reasons -------------------------------------------------------------------------------------

_INVALID_JSON: Final = ("parse_error", "invalid_json")

# The original's reason for a broken rule. Details of None are replaced by what was found.
_REASONS: Final[dict[str, tuple[str, str | None]]] = {
    "jsonrpc.text.utf8": _INVALID_JSON,
    "jsonrpc.text.bom": _INVALID_JSON,
    "jsonrpc.text.json": _INVALID_JSON,
    "jsonrpc.text.surrogate": _INVALID_JSON,
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


@overload
def reason_of(fault: IdsExhausted) -> str: ...


@overload
def reason_of(fault: InvalidMessage) -> tuple[str, Any]: ...


def reason_of(fault: InvalidMessage | IdsExhausted) -> tuple[str, Any] | str:
    """Return the original's reason for an error.

    `("parse_error", "invalid_json")`, `("message_too_large", answer)` with the encoded
    answer, `("batch_request", 3)`, and so on. A rule that the original does not have is
    `("invalid_request", rule)`. The reason of `IdsExhausted` is "overflow".
    """
    if isinstance(fault, IdsExhausted):
        return "overflow"
    if fault.rule == "jsonrpc.limit.message-size":
        return "message_too_large", fault.answer()
    if fault.rule == "jsonrpc.version.value":
        return "invalid_request", ("wrong_version", fault.got)
    if fault.rule == "jsonrpc.message.object" and fault.where:
        return "invalid_request", "not_an_object"  # an element of a batch
    reason, details = _REASONS.get(fault.rule, ("invalid_request", fault.rule))
    return reason, fault.got if details is None else details


# The error and the text of the answer to a reason; None is the text of the error.
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
    """Return the code and the text of the answer to an invalid element, by default -32603."""
    # The details of an invalid request are more exact.
    name = details[0] if isinstance(details, tuple) and details else details
    if reason != "invalid_request" or not isinstance(name, str) or name not in _ANSWERS:
        name = reason
    kind, text = _ANSWERS.get(name, (ErrorKind.INTERNAL_ERROR, None))
    row = profile(POLICY.codes).of_kind(kind, POLICY.revision)
    if name == "invalid_method" and isinstance(details, int | str):
        text = f"{text}: {details}"
    return row.number, row.message if text is None else text


def create_batch_error_response(request: Any, reason: str, details: Any = None) -> Failure:
    """Return the response to an invalid element of a batch, with its id if that is valid.

    `create_batch_error_response(element, *reason_of(fault))` has the original's texts.
    """
    id = request.get(JSONRPC_FIELD_ID) if isinstance(request, Mapping) else None
    if isinstance(id, bool) or not isinstance(id, int | str):
        id = None
    code, message = map_batch_error_to_code(reason, details)
    return Failure(id, build_error_object(code, message, details))
