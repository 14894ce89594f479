"""Bytes to messages and back, under one policy.

`decode` reads a whole message; `envelope` reads what routing needs and leaves
params and results as raw JSON, for layers that know their types. Both read with
a typed decoder first, which checks everything in C; only what it refuses is
looked at again, slowly, to name the fault.

Whatever bytes come in, the only exception that goes out is `InvalidMessage`.
Whatever a message holds that cannot be written, it is `LocalProtocolError`. Only a
strict codec also asks whether what it writes is a message that it would accept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from msgspec import UNSET
from msgspec.json import Encoder

from ..errors import NOTHING, InvalidMessage, LocalProtocolError
from ..redaction import first_and_last
from . import encode_errors
from .decode_errors import UNREADABLE, Diagnosis, elements_of, kind_of
from .decoders import CALLS, REPLIES, Expect, Read, Reader, envelope_reader, whole_reader
from .limits import DECODER_DIGITS, TransportName
from .messages import (
    Batch,
    Call,
    Message,
    Notification,
    Reply,
    Request,
    RequestId,
    SentRequest,
    shown,
)
from .policy import DEFAULT_POLICY, Policy

__all__ = ["Codec", "decode", "encode"]

Readable: TypeAlias = bytes | bytearray | memoryview | str
Envelope: TypeAlias = Call | Reply

_NO_LIMIT: Final = 2**63 - 1
# From this size on a look at the value can be cheaper than a search through its bytes.
_LARGE: Final = 4096
# Codecs kept for `decode(data, policy)`: a program has a handful of policies.
_CODECS_KEPT: Final = 32

_write: Final = Encoder().encode


class Codec:
    """Reads and writes messages under one policy.

    `expect` says which kind comes first in this direction, for speed alone: a
    server expects calls, a client replies. `params` gives types for the params of
    some methods; `envelope` then reads those in the same pass.
    """

    __slots__ = (
        "_diagnosis",
        "_envelope",
        "_envelopes",
        "_limit",
        "_plainly",
        "_prescan",
        "_shape",
        "_straight",
        "_whole",
        "_wholes",
        "policy",
    )

    def __init__(
        self,
        policy: Policy = DEFAULT_POLICY,
        *,
        expect: Expect = "any",
        transport: TransportName = "default",
        params: Mapping[str, type] | None = None,
    ) -> None:
        limits = policy.limits
        limit = limits.message_size(transport)
        self.policy = policy
        self._limit = _NO_LIMIT if limit is None else limit
        self._prescan = (
            policy.strictness == "strict"
            or limits.depth is not None
            or limits.integer_digits < DECODER_DIGITS
        )
        # Up to which size a text goes straight to the decoder; with a pre-scan, none does.
        self._straight = -1 if self._prescan else self._limit
        self._plainly = policy.strictness != "strict" and policy.unknown_code == "pass"
        # Decoders cost to make, so each is made when it is first needed.
        self._envelopes = _lazy(lambda: envelope_reader(policy, expect, params))
        self._wholes = _lazy(lambda: whole_reader(policy, expect))
        self._envelope: Read = self._first_envelope
        self._whole: Read = self._first_whole
        self._shape: type[Call] | None = None
        self._diagnosis: Diagnosis | None = None

    # -- reading -----------------------------------------------------------------------------

    def envelope(self, data: Readable) -> Envelope | list[Envelope | InvalidMessage]:
        """Return what routing needs of a message, or of each message of a batch.

        Faults inside params and results surface when those are read.

        Raises:
            InvalidMessage: it cannot be accepted; `answer()` is what to send back.
        """
        try:
            if type(data) is bytes and len(data) <= self._straight:
                # Called through a local name: an attribute that is no method is slower to call.
                read = self._envelope
                return read(data)  # type: ignore[no-any-return]  # made at run time
        except UNREADABLE:
            pass  # raised from below, so that no decoder error hangs on it
        return self._look_again(data, self._envelopes())  # type: ignore[no-any-return]  # as above

    def decode(self, data: Readable) -> Message | Batch:
        """Return the message, or batch of messages, that `data` holds.

        Raises:
            InvalidMessage: it cannot be accepted; `answer()` is what to send back.
        """
        try:
            # Members that nobody asked for are skipped unread, so what is not plain ASCII is
            # looked at for its encoding first.
            if type(data) is bytes and len(data) <= self._straight and data.isascii():
                read = self._whole
                found = read(data)
                if type(found) is self._shape:
                    if found.id is UNSET:
                        return Notification(found.method, found.params)
                    return Request(found.method, found.params, id=found.id)
                return found if type(found) is not list else Batch(map(self._call, found))
        except UNREADABLE:
            pass
        found = self._look_again(data, self._wholes())
        return found if type(found) is not list else Batch(found)

    def _call(self, read: Any) -> Message:
        """Return the message that an element of an expected batch is."""
        if type(read) is not self._shape:
            return read  # type: ignore[no-any-return]  # a message already
        if read.id is UNSET:
            return Notification(read.method, read.params)
        return Request(read.method, read.params, id=read.id)

    def _first_envelope(self, data: bytes) -> Any:
        read = self._envelope = self._envelopes().first
        return read(data)

    def _first_whole(self, data: bytes) -> Any:
        reader = self._wholes()
        # The shape first: another thread may come along as soon as the reader is in place.
        self._shape = reader.shape
        self._whole = reader.first
        return reader.first(data)

    def oversize(self, head: bytes, limit: int, size: int | None = None) -> InvalidMessage:
        """Return the fault of a frame that was too large to be read, given how it began."""
        return self._faults.oversize(head, limit, size)

    def fault(
        self, rule: str, *, where: str = "", got: Any = NOTHING, id: RequestId | None = None
    ) -> InvalidMessage:
        """Return the fault of a message that reads well and breaks a rule of its surroundings."""
        return self._faults.fault(rule, where=where, got=got, id=id)

    def faults(self, fault: InvalidMessage, text: bytes) -> list[InvalidMessage]:
        """Return all that is wrong with the envelope of a message, given why it was refused.

        What keeps a text from being read, such as its size, hides all else.
        """
        try:
            found = list(self._faults.every(text))
        except UNREADABLE:
            found = []
        return found if any(each.rule == fault.rule for each in found) else [fault]

    def _look_again(self, data: Readable, reader: Reader) -> Any:
        """Read what was not expected, or raise the fault it is."""
        faults, text = self._faults, _as_bytes(data)
        if len(text) > self._limit:
            raise faults.oversize(text, self._limit, len(text))
        # What is not UTF-8 is no message, whatever a decoder that skips members makes of it.
        if not self._prescan and (text.isascii() or faults.encoding(text) is None):
            try:
                return reader.loose(text)
            except UNREADABLE:
                pass
        fault = faults.text(text)
        if fault is not None:
            raise fault
        if kind_of(text) == "array":
            return self._elements(text, reader)
        read = self._one(text, "", reader)
        if isinstance(read, InvalidMessage):
            raise read
        return read

    def _elements(self, text: bytes, reader: Reader) -> list[Any]:
        """Read a batch element by element, so that a bad one spoils no other."""
        faults, limit = self._faults, self.policy.limits.batch
        if not self.policy.accepts_batches:
            raise faults.fault("jsonrpc.batch.not-allowed", got="an array")
        try:
            elements = elements_of(text, limit)
        except RecursionError:
            elements = []
            fault = faults.too_deep(text)
        else:
            fault = faults.fault("jsonrpc.batch.empty", got="an empty array")
        if elements is None:
            raise faults.fault("jsonrpc.limit.batch-length", got=f"more than {limit} elements")
        if not elements:
            raise fault
        read = [self._one(bytes(raw), f"/{place}", reader) for place, raw in enumerate(elements)]
        if not self.policy.mixed_batches and any(isinstance(item, CALLS) for item in read):
            for place, item in enumerate(read):
                if isinstance(item, REPLIES):
                    # It names the request that it would have ended; whoever waits is to know.
                    read[place] = faults.fault(
                        "jsonrpc.batch.mixed",
                        where=f"/{place}",
                        id=None if item.id is UNSET else item.id,
                        answerable=False,
                    )
        return read

    def _one(self, text: bytes, where: str, reader: Reader) -> Any:
        """Return the message that a text is, or its fault."""
        try:
            return self._read_one(text, reader) or self._fault_of(text, where, reader)
        except RecursionError:
            # The guard counts our own frames too, so what could be skimmed may still not be read.
            return self._faults.too_deep(text, where)

    def _read_one(self, text: bytes, reader: Reader) -> Any:
        if self._prescan:
            return None  # not before it was looked at
        try:
            return reader.one(text)
        except UNREADABLE:
            return None

    def _fault_of(self, text: bytes, where: str, reader: Reader) -> Any:
        faults = self._faults
        fault = faults.excess(text, where) if self._prescan else None
        fault = fault or faults.message(text, where)
        if fault is not None:
            return fault
        try:
            return reader.one(faults.essence(text))
        except UNREADABLE:
            # A member within a member is there twice, and its first value does not fit.
            return faults.twice(text, where)

    @property
    def _faults(self) -> Diagnosis:
        if self._diagnosis is None:
            self._diagnosis = Diagnosis(self.policy)
        return self._diagnosis

    # -- writing -----------------------------------------------------------------------------

    def encode(self, message: Message | SentRequest | Batch) -> bytes:
        """Return the bytes of a message, or of a batch.

        Raises:
            LocalProtocolError: it cannot be written; the text says where and what to do.
        """
        try:
            # That it is a message at all is for type checkers, and for strict codecs: asking here
            # would cost a tenth of the whole.
            kind = type(message.id)
            if (kind is not int and kind is not str) or not self._plainly:
                message = encode_errors.checked(message, self.policy)
            written = _write(message)
        except encode_errors.UNWRITABLE as error:
            problem = encode_errors.explain(message, error)
        else:
            # The encoder writes NaN as null, so only what has a null in it can hold one.
            # Where there is none `replace` returns the same object, faster than `in` says so.
            if len(written) > _LARGE:
                encode_errors.check_large(message, written)
            elif written.replace(b"null", b"") is not written:
                encode_errors.check_finite(message)
            if not self._plainly and self.policy.strictness == "strict":
                self._read_back(written)
            return written
        raise problem

    def _read_back(self, written: bytes) -> None:
        """Raise if what we wrote is not what we would accept."""
        broken: list[InvalidMessage]
        try:
            read = self.decode(written)
            broken = read.faults if isinstance(read, Batch) else []
        except InvalidMessage as fault:
            broken = [fault]
        if broken:
            first = broken[0]
            raise LocalProtocolError(
                first.rule, where=first.where, got=first.got, expected=first.expected
            )

    def describe(self, message: Message | Batch) -> str:
        """Return a message as this policy lets it be printed."""
        auth = getattr(message, "auth", None)
        if self.policy.redaction == "full" or auth is None or isinstance(message, Batch):
            return repr(message)
        return shown(message, auth=first_and_last(auth))


def _as_bytes(data: Readable) -> bytes:
    if isinstance(data, str):
        # A lone surrogate has no UTF-8 form; as bytes it is refused like any other bad UTF-8.
        return data.encode("utf-8", "surrogatepass")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a message is bytes, bytearray, memoryview or str, not {type(data).__name__}")


def _lazy(make: Callable[[], Reader]) -> Callable[[], Reader]:
    """Return what `make` makes, made once: decoders cost to make, and not all are needed."""
    made: dict[str, Reader] = {}

    def get() -> Reader:
        # Two threads may both make one; both are given the one that was put in first.
        return made.get("reader") or made.setdefault("reader", make())

    return get


_default: Final = Codec()


@lru_cache(maxsize=_CODECS_KEPT)
def _codec(policy: Policy) -> Codec:
    return Codec(policy)


def decode(data: Readable, policy: Policy = DEFAULT_POLICY) -> Message | Batch:
    """Return the message, or batch of messages, that `data` holds.

    Raises:
        InvalidMessage: the message cannot be accepted; `answer()` is what to send back.
    """
    codec = _default if policy is DEFAULT_POLICY else _codec(policy)
    return codec.decode(data)


def encode(message: Message | Batch) -> bytes:
    """Return the bytes of a message, or of a batch.

    Raises:
        LocalProtocolError: it cannot be written; the text says where and what to do.
    """
    return _default.encode(message)
