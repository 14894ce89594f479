"""Size limits of messages, per transport."""

from __future__ import annotations

from ...jsonrpc import Failure, named_error
from ...jsonrpc.limits import TransportName
from ...spec.error_kinds import ErrorKind
from ._policy import POLICY, codec_for
from .codec import json_rpc_id

__all__ = ["error_message_too_large", "get_max_message_size", "validate_message_size"]


def get_max_message_size(transport: TransportName = "default") -> int | None:
    """Return the size limit of a transport in bytes; None is unlimited.

    Raises:
        LookupError: the transport is unknown; the text lists the known ones.
    """
    return codec_for(transport).policy.limits.message_size(transport)


def validate_message_size(transport: TransportName, data: bytes | str) -> None:
    """Check the size of `data` against the limit of the transport.

    Raises:
        InvalidMessage: it is larger; `reason_of` returns the answer to send.
        LookupError: the transport is unknown.
    """
    limit = get_max_message_size(transport)
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if limit is not None and len(text) > limit:
        raise codec_for(transport).oversize(text, limit, len(text))


def error_message_too_large(id: json_rpc_id, max_size: int) -> bytes:
    """Return the encoded answer to a message larger than `max_size` bytes."""
    error = named_error(ErrorKind.MESSAGE_TOO_LARGE, policy=POLICY, maxSize=max_size, unit="bytes")
    return codec_for().encode(Failure(id, error))
