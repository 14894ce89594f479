"""Decoders of one policy: a typed one for the expected kind, a loose one for any message.

The typed decoder returns the final object from C. What it rejects is decoded
loosely, with every member optional, and classified by its members. Decoders
return a message or raise one of `UNREADABLE`; the module
`decode_errors` finds the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, DecodeError, Meta, Raw, ValidationError
from msgspec.json import Decoder

from ..messages import (
    Call,
    ExtendedCall,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Message,
    Notification,
    Reply,
    Request,
    Success,
)
from ..policy import Policy
from .wire_types import (
    Loose,
    call_shape,
    loose_shape,
    params_type,
    result_shape,
    result_type,
    typed_call_shapes,
)

__all__ = [
    "CALLS",
    "REPLIES",
    "UNREADABLE",
    "Expect",
    "MessageDecoder",
    "envelope_reader",
    "reads_as_is",
    "whole_reader",
]

# All that decoding a text can raise. UnicodeDecodeError is not a DecodeError.
UNREADABLE: Final = (DecodeError, UnicodeDecodeError, RecursionError)

Expect: TypeAlias = Literal["any", "calls", "replies"]
Read: TypeAlias = Callable[[bytes], Any]
_Make: TypeAlias = Callable[[Loose, Any], Any]

CALLS: Final = (Call, Request, Notification)
REPLIES: Final = (Reply, Success, Failure)


class MessageDecoder(NamedTuple):
    """The decoders of one policy, fastest first."""

    # The expected kind, single or as a batch.
    first: Read
    # Any message, or a batch.
    loose: Read
    # Any single message.
    one: Read
    # The expected kind, where `first` knows the params of some methods only.
    second: Read | None = None
    # What `first` returns, where the codec makes a message of it.
    shape: type[Call] | None = None


def envelope_reader(
    policy: Policy, expect: Expect, params: Mapping[str, type] | None = None
) -> MessageDecoder:
    """Return a decoder that leaves params and results as raw JSON, or as typed by `params`."""
    shape = loose_shape(policy, params=Raw, result=Raw)
    reader = _loose_reader(policy, shape, _make_envelope(policy))
    if policy.params == "nullable" or not reads_as_is(policy):
        return reader
    if expect == "replies":
        return reader._replace(first=_decoder(policy, result_shape(policy)))
    if expect == "calls" and params:
        typed = reduce(or_, typed_call_shapes(policy, params))
        plain = _decoder(policy, call_shape(policy, params=Raw))
        return reader._replace(first=_decoder(policy, typed), second=plain)
    if expect == "calls":
        return reader._replace(first=_decoder(policy, call_shape(policy, params=Raw)))
    return reader


def whole_reader(policy: Policy, expect: Expect) -> MessageDecoder:
    """Return a decoder of whole messages.

    Expected calls are returned as their shape: the codec makes messages of them
    inline, because another function call for each is measurable.
    """
    loose = loose_shape(policy, params=params_type(policy), result=result_type(policy))
    reader = _loose_reader(policy, loose, _make_message(policy))
    if expect == "calls" and reads_as_is(policy):
        shape = call_shape(policy, params=params_type(policy), absent=None)
        return reader._replace(first=_decoder(policy, shape), shape=shape)
    return reader


def reads_as_is(policy: Policy) -> bool:
    """Return True if decoded messages need no correction afterwards."""
    return (
        policy.null_id != "as-notification"
        and policy.strictness != "lenient"
        and policy.envelope == "plain"
    )


def _decoder(policy: Policy, shape: Any) -> Read:
    """Return a decoder of a `shape`, or where batches are accepted of a list of them.

    Where every member is optional, `{}` is valid: one megabyte of those would become a list of a
    hundred megabytes before its length is checked. Such batches are decoded by element.
    """
    if policy.accepts_batches and policy.strictness != "lenient":
        length = Meta(min_length=1, max_length=policy.limits.batch)
        shape = shape | Annotated[list[shape], length]
    return Decoder(shape).decode


def _loose_reader(policy: Policy, shape: type[Loose], make: _Make) -> MessageDecoder:
    one, several = Decoder(shape).decode, _decoder(policy, shape)
    may_mix = policy.accepts_mixed_batches
    as_notification = policy.null_id == "as-notification"
    null_refused = policy.null_id == "reject"
    null_is_an_id = policy.null_id == "as-request"

    def classify(read: Loose) -> Any:
        """Return the message that `read` is, by its members; raise if it is invalid."""
        id = read.id
        if id is None and as_notification and read.method is not UNSET:
            id = UNSET
        elif type(id) is float and id.is_integer():
            id = int(id)  # only a lenient shape accepts a float
        if read.method is not UNSET:
            is_whole = read.result is UNSET and read.error is UNSET
            is_whole = is_whole and not (id is None and null_refused)
        elif read.error is UNSET:
            is_whole = read.result is not UNSET and id is not UNSET
            is_whole = is_whole and (id is not None or null_is_an_id)
        else:
            # The answer to a request whose id could not be read has none.
            is_whole = read.result is UNSET
        if not is_whole or type(id) is float:
            raise ValidationError
        return make(read, id)

    def read_one(data: bytes) -> Any:
        return classify(one(data))

    def read_any(data: bytes) -> Any:
        read = several(data)
        if type(read) is not list:
            return classify(read)
        if not may_mix and len({item.method is UNSET for item in read}) > 1:
            raise ValidationError
        return [classify(item) for item in read]

    return MessageDecoder(read_any, read_any, read_one)


def _make_message(policy: Policy) -> _Make:
    extended = policy.envelope == "pierre"

    def message(read: Loose, id: Any) -> Message:
        if read.method is UNSET:
            return Success(id, read.result) if read.error is UNSET else Failure(id, read.error)
        params = read.params
        if params is UNSET:
            params = None
        extensions = _extensions(read) if extended else {}
        if id is UNSET:
            kind = ExtendedNotification if extended else Notification
            return kind(read.method, params, **extensions)
        if extended:
            return ExtendedRequest(read.method, params, id=id, **extensions)
        return Request(read.method, params, id=id)

    return message


def _make_envelope(policy: Policy) -> _Make:
    extended = policy.envelope == "pierre"
    nullable = policy.params == "nullable"

    def envelope(read: Loose, id: Any) -> Call | Reply:
        if read.method is UNSET:
            return Reply(id=id, result=read.result, error=read.error)
        params = read.params
        if nullable and params is not UNSET and bytes(params) == b"null":
            params = UNSET
        if extended:
            return ExtendedCall(id=id, method=read.method, params=params, **_extensions(read))
        return Call(id=id, method=read.method, params=params)

    return envelope


def _extensions(read: Loose) -> dict[str, Any]:
    fields = {"auth": read.auth, "headers": read.headers, "metadata": read.metadata}
    return {name: value for name, value in fields.items() if value is not UNSET}
