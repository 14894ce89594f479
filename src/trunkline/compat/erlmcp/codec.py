"""Encoding and decoding of messages.

Where the original returns an ok or error pair, a function here returns the value or
raises: `InvalidMessage` when decoding, `LocalProtocolError` when encoding. `reason_of`
converts the first to the original's reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from msgspec import UNSET, to_builtins

from ...errors import InvalidMessage
from ...jsonrpc import Batch, ErrorObject, Failure, Message, Notification, Request, Success
from ...jsonrpc.codec import encode_errors
from ...jsonrpc.codec.codec import Readable
from ...jsonrpc.codec.decode_errors import Diagnosis, kind_of
from ...jsonrpc.limits import TransportName
from ...jsonrpc.messages import SentRequest
from ._policy import POLICY, codec_for

__all__ = [
    "Failure",
    "Success",
    "batch_decode_result",
    "build_error_object",
    "build_message_map",
    "decode",
    "decode_batch",
    "decode_message",
    "encode_batch",
    "encode_error_response",
    "encode_message",
    "encode_notification",
    "encode_request",
    "encode_response",
    "is_batch_request",
    "json_rpc_id",
    "json_rpc_message",
    "json_rpc_notification",
    "json_rpc_params",
    "json_rpc_request",
    "json_rpc_response",
    "mcp_error",
]

json_rpc_id: TypeAlias = int | str | None
json_rpc_params: TypeAlias = dict[str, Any] | list[Any] | None
json_rpc_message: TypeAlias = Message
# An invalid element is an `InvalidMessage`, with its answer.
batch_decode_result: TypeAlias = list[Message | InvalidMessage]

# The records.
json_rpc_request: TypeAlias = Request
json_rpc_notification: TypeAlias = Notification
mcp_error: TypeAlias = ErrorObject


class _Response(type):
    # A response is either of two types, because it has either of two members.
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Success | Failure)


class json_rpc_response(metaclass=_Response):
    """A response: `json_rpc_response(1, result={})` is a `Success`, with an error a `Failure`.

    Both are instances of it.
    """

    def __new__(
        cls,
        id: json_rpc_id,
        result: Any = UNSET,
        error: mcp_error | Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the response; `result=None` is a null result.

        Raises:
            LocalProtocolError: both result and error were given, or neither.
        """
        if (result is UNSET) == (error is None):
            encode_errors.refuse("jsonrpc.reply.one-outcome")
        if error is None:
            return Success(id, result)
        return Failure(id, error if isinstance(error, ErrorObject) else ErrorObject(**error))


# -- writing -------------------------------------------------------------------------------------


def encode_request(id: int | str, method: str, params: Any = None) -> bytes:
    """Return the bytes of a request; `params={}` is encoded, None is omitted."""
    return codec_for().encode(SentRequest(id, method, params))


def encode_response(id: int | str, result: Any) -> bytes:
    """Return the bytes of a successful response."""
    return codec_for().encode(Success(id, result))


def encode_error_response(id: json_rpc_id, code: int, message: str, data: Any = None) -> bytes:
    """Return the bytes of an error response.

    A code outside `VALID_ERROR_CODES` is sent as -32603. `data` that is an object is
    encoded as it is, None is omitted, and anything else becomes the member `details`.
    """
    return codec_for().encode(Failure(id, build_error_object(code, message, data)))


def encode_notification(method: str, params: Any = None) -> bytes:
    """Return the bytes of a notification; `params={}` is encoded, None is omitted."""
    return codec_for().encode(Notification(method, params))


def encode_message(message: json_rpc_message) -> bytes:
    """Return the bytes of any message."""
    return codec_for().encode(_as_sent(message))


def encode_batch(messages: Iterable[json_rpc_message]) -> bytes:
    """Return the bytes of a batch of calls, or of responses; an empty batch is rejected."""
    return codec_for().encode(Batch(map(_as_sent, messages)))


def build_message_map(message: json_rpc_message) -> dict[str, Any]:
    """Return a message as a dict."""
    built: dict[str, Any] = to_builtins(_as_sent(message))
    return built


def build_error_object(code: int, message: str, data: Any = None) -> mcp_error:
    """Return an error whose `data`, if there is any, is an object."""
    if data is None or data is UNSET:
        return ErrorObject(code, message)
    return ErrorObject(code, message, data if isinstance(data, dict) else {"details": data})


def _as_sent(message: Message) -> Message:
    """Return `message` with its members in the order jsonrpc, id, method, params."""
    if type(message) is not Request:
        return message
    sent = SentRequest(cast("int | str", message.id), message.method, message.params)
    # The codec accepts it in place of a request.
    return cast("Request", sent)


# -- reading -------------------------------------------------------------------------------------


def decode_message(data: Readable, transport: TransportName = "default") -> json_rpc_message:
    """Return the one message that `data` holds.

    Raises:
        InvalidMessage: it is too large for the transport, invalid, or a batch.
        LookupError: the transport is unknown.
    """
    codec = codec_for(transport)
    found = codec.decode(data)
    if isinstance(found, Batch):
        fault = codec.fault("jsonrpc.batch.not-allowed")
        fault.got = len(found)
        raise fault
    return found


decode = decode_message


def decode_batch(data: Readable) -> batch_decode_result:
    """Return the messages of a batch, or a single message as a list of one.

    An invalid element is an `InvalidMessage` with its `answer()`, and does not affect
    the others.

    Raises:
        InvalidMessage: it is not JSON, not an object or array, or an empty array.
    """
    found = codec_for().decode(data)
    return list(found) if isinstance(found, Batch) else [found]


def is_batch_request(data: Readable) -> bool:
    """Return True if `data` is a valid JSON array."""
    # A lone surrogate has no UTF-8 form; as bytes it is rejected like other invalid UTF-8.
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    return kind_of(text) == "array" and Diagnosis(POLICY).text(text) is None
