"""Access to members of responses, and UTF-8 checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import NOTHING, RemoteProtocolError
from ...jsonrpc import Failure, Success
from ...jsonrpc.codec import encode_errors
from .._text import text_of
from .codec import build_message_map
from .constants import JSONRPC_FIELD_ERROR, JSONRPC_FIELD_RESULT

__all__ = [
    "ensure_utf8_encoding",
    "safe_extract_error",
    "safe_extract_nested",
    "safe_extract_result",
    "safe_get_field",
    "validate_utf8",
]


def safe_extract_result(response: Success | Failure | Mapping[str, Any]) -> Any:
    """Return the result of a response, decoded or parsed.

    Raises:
        RemoteProtocolError: it has none.
    """
    return _member(response, JSONRPC_FIELD_RESULT)


def safe_extract_error(response: Success | Failure | Mapping[str, Any]) -> dict[str, Any]:
    """Return the error object of a response, decoded or parsed.

    Raises:
        RemoteProtocolError: it has none, or one that is not an object.
    """
    error = _member(response, JSONRPC_FIELD_ERROR)
    if not isinstance(error, dict):
        raise RemoteProtocolError("jsonrpc.error.object", got=error, expected="an object")
    return error


def safe_extract_nested(
    response: Success | Failure | Mapping[str, Any],
    path: Sequence[str | int],
    default: Any = None,
) -> Any:
    """Return the value at `path`, or `default` if there is none."""
    found: Any = _members(response)
    for step in path:
        if not _has(found, step):
            return default
        found = found[step]
    return found


def safe_get_field(members: Any, name: str) -> Any:
    """Return one member of an object; None if it is absent or `members` is not an object."""
    return members.get(name) if isinstance(members, Mapping) else None


def validate_utf8(data: Any) -> bool:
    """Return True if bytes are UTF-8, or text can be encoded as UTF-8."""
    try:
        if isinstance(data, str):
            data.encode()
        else:
            bytes(memoryview(data)).decode()
    except (UnicodeError, TypeError):
        return False
    return True


def ensure_utf8_encoding(term: Any) -> Any:
    """Return a JSON value with all bytes in it decoded as text.

    Raises:
        LocalProtocolError: some text is not UTF-8, or the value is not JSON; the text
            has the place.
    """
    try:
        read = _as_text(term)
    except RecursionError as error:
        problem = encode_errors.explain(term, error)
    else:
        text_of(read)
        return read
    raise problem


def _as_text(term: Any) -> Any:
    if isinstance(term, bytes | bytearray):
        # Bytes that are not UTF-8 become lone surrogates, which cannot be encoded.
        return term.decode("utf-8", "surrogateescape")
    if isinstance(term, Mapping):
        return {_as_text(name): _as_text(item) for name, item in term.items()}
    if isinstance(term, list | tuple):
        return [_as_text(item) for item in term]
    return term


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, list):
        return type(step) is int and 0 <= step < len(value)
    return isinstance(value, Mapping) and step in value


def _members(response: Any) -> Any:
    return build_message_map(response) if isinstance(response, Success | Failure) else response


def _member(response: Any, name: str) -> Any:
    members = _members(response)
    found = members.get(name, NOTHING) if isinstance(members, Mapping) else NOTHING
    if found is NOTHING:
        raise RemoteProtocolError("jsonrpc.message.kind", expected=f"a response with a {name}")
    return found
