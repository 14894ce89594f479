"""The codec: bytes to messages and back, under one policy.

`decode` returns a whole message; `envelope` decodes what routing needs and leaves
params and results as raw JSON, for layers that know their types. Both try a
typed decoder first, which checks everything in C; only what it rejects is
examined in Python, to find the reason.

For any bytes, decoding raises nothing but `InvalidMessage`, and encoding a
message raises nothing but `LocalProtocolError`. A strict codec also checks that
it would accept what it encodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET, ValidationError
from msgspec.json import Encoder

from ...errors import NOTHING, InvalidMessage, LocalProtocolError
from ...redaction import first_and_last
from ..limits import MAX_INTEGER_DIGITS, TransportName
from ..messages import (
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
from ..policy import DEFAULT_POLICY, Policy
from . import encode_errors
from .decoders import (
    CALLS,
    REPLIES,
    UNREADABLE,
    Expect,
    MessageDecoder,
    Read,
    envelope_reader,
    reads_as_is,
    whole_reader,
)
from .tokenizer import (
    FOUND_FASTER_BYTES,
    LargeMember,
    find_params,
    find_result,
    nests_deeper,
)

if TYPE_CHECKING:
    from .decode_errors import Diagnosis

__all__ = ["LARGE_BYTES", "Codec", "decode", "encode"]

Readable: TypeAlias = bytes | bytearray | memoryview | str
Envelope: TypeAlias = Call | Reply

_NO_LIMIT: Final = 2**63 - 1
# From this size on a second pass over a message takes longer than to look at its ends.
LARGE_BYTES: Final = 32 * 1024
# Above this size checking the value can be cheaper than a search through its bytes.
_LARGE_BYTES: Final = 4096
# Of invalid elements of a batch, until which one that nests too deep is examined for its id: each
# bracket costs a step in Python.
_MAX_EXAMINED_BYTES: Final = 8 * 1024
# Codecs kept for `decode(data, policy)`: a program has a handful of policies.
_MAX_CODECS: Final = 32

_write: Final = Encoder().encode


class Codec:
    """Decodes and encodes messages under one policy.

    `expect` is the usual kind in this direction, for speed alone: a server expects
    calls, a client replies. `params` has types for the params of some methods;
    `envelope` decodes those in the same pass.
    """

    __slots__ = (
        "_depth",
        "_diagnosis",
        "_envelope",
        "_envelopes",
        "_large",
        "_limit",
        "_ordinary",
        "_plainly",
        "_prescan",
        "_shape",
        "_straight",
        "_untyped",
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
            or limits.integer_digits < MAX_INTEGER_DIGITS
            # Which codes a profile has is not a type that the decoder checks.
            or policy.unknown_code == "reject"
        )
        # Up to this size a text is decoded at once: a deeper nest has more bytes, or does not end.
        # With a pre-scan, none is.
        self._straight = -1 if self._prescan else min(self._limit, 2 * limits.max_depth)
        self._large = -1 if self._prescan else self._limit
        # Up to this size the ends of a message may show its envelope.
        self._ordinary = self._large if reads_as_is(policy) else -1
        self._depth = limits.max_depth
        self._plainly = policy.strictness != "strict" and policy.unknown_code == "pass"
        # Decoders are expensive to make, so each is made on first use.
        self._envelopes = _lazy(lambda: envelope_reader(policy, expect, params))
        self._wholes = _lazy(lambda: whole_reader(policy, expect))
        self._envelope: Read = self._first_envelope
        self._whole: Read = self._first_whole
        self._untyped: Read | None = None
        self._shape: type[Call] | None = None
        self._diagnosis: Diagnosis | None = None

    # -- reading -----------------------------------------------------------------------------

    def envelope(self, data: Readable) -> Envelope | list[Envelope | InvalidMessage]:
        """Return the envelope of a message, or of each message of a batch.

        Mistakes inside params and results are found when those are decoded.

        Raises:
            InvalidMessage: the message is invalid; `answer()` is the reply to send.
        """
        try:
            # The decoder does not check the encoding of what it skips or leaves raw.
            if (
                type(data) is bytes
                and (len(data) <= self._straight or self._is_flat(data))
                and (data.isascii() or data.decode())
            ):
                # Through a local name: calling an attribute that is not a method is slower.
                read = self._envelope
                return read(data)  # type: ignore[no-any-return]  # made at run time
        except ValidationError:
            # Of a method without typed params, or params do not match their type: then they are
            # left raw, and the layer that knows the type reports the place of the mistake.
            if self._untyped is not None and type(data) is bytes:
                try:
                    return self._untyped(data)  # type: ignore[no-any-return]  # as above
                except UNREADABLE:
                    pass
        except UNREADABLE:
            pass  # raised below, so that the decoder's error is not its context
        return self._look_again(data, self._envelopes())  # type: ignore[no-any-return]  # as above

    def decode(self, data: Readable) -> Message | Batch:
        """Return the message, or batch of messages, that `data` holds.

        Raises:
            InvalidMessage: the message is invalid; `answer()` is the reply to send.
        """
        try:
            # As above.
            if (
                type(data) is bytes
                and (len(data) <= self._straight or self._is_flat(data))
                and (data.isascii() or data.decode())
            ):
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

    def large_result(self, data: bytes) -> LargeMember | None:
        """Return where the result of a large reply is, if its ends show that.

        It is there if the part is one JSON value. `is_sound` checks what decoding does not.
        """
        if not LARGE_BYTES <= len(data) <= self._ordinary:
            return None
        return self._fitting(find_result(data))

    def large_params(self, data: bytes) -> LargeMember | None:
        """Return where the params of a large request are, if its ends show that; as above."""
        if not LARGE_BYTES <= len(data) <= self._ordinary:
            return None
        return self._fitting(find_params(data))

    def _fitting(self, found: LargeMember | None) -> LargeMember | None:
        """Return what was found, if it is within the limits."""
        limits = self.policy.limits
        if found is None or len(found.method) > limits.method_length:
            return None
        is_long = isinstance(found.id, str) and len(found.id) > limits.id_length
        return None if is_long else found

    def is_sound(self, data: bytes) -> bool:
        """Return True if a large message is UTF-8, and within the limits of size and depth."""
        try:
            return self._is_flat(data) and (data.isascii() or bool(data.decode()))
        except UnicodeDecodeError:
            return False

    @property
    def max_depth(self) -> int:
        """How many arrays and objects a message may have open at one place."""
        return self._depth

    def _is_flat(self, data: bytes) -> bool:
        """Return True if a text that is not small is within the limits of size and depth."""
        size = len(data)
        if size > self._large:
            return False
        # As `nests_deeper` begins, without its calls.
        is_short = size < FOUND_FASTER_BYTES
        if is_short and data.count(b"[") + data.count(b"{") <= self._depth:
            return True
        return not nests_deeper(data, self._depth)

    def _call(self, read: Any) -> Message:
        if type(read) is not self._shape:
            return read  # type: ignore[no-any-return]  # a message already
        if read.id is UNSET:
            return Notification(read.method, read.params)
        return Request(read.method, read.params, id=read.id)

    def _first_envelope(self, data: bytes) -> Any:
        reader = self._envelopes()
        # In this order, as below.
        self._untyped = reader.second
        self._envelope = reader.first
        return reader.first(data)

    def _first_whole(self, data: bytes) -> Any:
        reader = self._wholes()
        # The shape first: another thread may use the decoder as soon as it is set.
        self._shape = reader.shape
        self._whole = reader.first
        return reader.first(data)

    def oversize(self, head: bytes, limit: int, size: int | None = None) -> InvalidMessage:
        """Return the error for a frame over the size limit, given its first bytes."""
        return self._faults.oversize(head, limit, size)

    def fault(
        self, rule: str, *, where: str = "", got: Any = NOTHING, id: RequestId | None = None
    ) -> InvalidMessage:
        """Return the error for a valid message that breaks a rule of the connection."""
        return self._faults.fault(rule, where=where, got=got, id=id)

    def faults(self, fault: InvalidMessage, text: bytes) -> list[InvalidMessage]:
        """Return all errors of the envelope of a message, given the first one.

        An error that prevents decoding, such as the size, hides all others; a lone surrogate
        does not.
        """
        from .decode_errors import mended  # as in `_faults`

        try:
            if fault.rule == "jsonrpc.text.surrogate":
                return [fault, *self._faults.every(mended(text))]
            found = list(self._faults.every(text))
        except UNREADABLE:
            found = []
        return found if any(each.rule == fault.rule for each in found) else [fault]

    def _look_again(self, data: Readable, reader: MessageDecoder) -> Any:
        """Decode what the typed decoder rejected, or raise the reason."""
        faults, text = self._faults, _as_bytes(data)
        if len(text) > self._limit:
            raise faults.oversize(text, self._limit, len(text))
        # The decoder does not check the encoding of members that it skips.
        if (
            not self._prescan
            and (text.isascii() or faults.encoding(text) is None)
            and not faults.is_deep(text)
        ):
            try:
                return reader.loose(text)
            except UNREADABLE:
                pass
        fault, mark = faults.text(text), b""
        if fault is not None and fault.rule == "jsonrpc.text.json":
            text, mark, fault = faults.marked(text, fault)
        if fault is not None:
            replies = faults.replies_in(text, fault) if self.policy.accepts_batches else []
            if not replies:
                raise fault
            return replies
        from .decode_errors import kind_of  # late, as in `_faults`: few messages come this far

        if kind_of(text) == "array":
            return self._elements(text, reader, mark)
        read = self._one(text, "", reader, mark)
        if isinstance(read, InvalidMessage):
            raise read
        return read

    def _elements(self, text: bytes, reader: MessageDecoder, mark: bytes) -> list[Any]:
        """Decode a batch by element, so that an invalid one does not affect the others."""
        from .decode_errors import elements_of  # as in `_faults`

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
        read: list[Any] = []
        examined = 0
        for place, raw in enumerate(elements):
            element, where = bytes(raw), f"/{place}"
            if examined > _MAX_EXAMINED_BYTES and faults.is_deep(element):
                read.append(faults.fault("jsonrpc.limit.depth", where=where))
                continue
            read.append(self._one(element, where, reader, mark))
            if isinstance(read[-1], InvalidMessage):
                examined += len(element)
        if not self.policy.accepts_mixed_batches and any(isinstance(item, CALLS) for item in read):
            for place, item in enumerate(read):
                if isinstance(item, REPLIES):
                    # With the id of the request that it would have ended: its caller waits.
                    read[place] = faults.fault(
                        "jsonrpc.batch.mixed",
                        where=f"/{place}",
                        id=None if item.id is UNSET else item.id,
                        answerable=False,
                    )
        return read

    def _one(self, text: bytes, where: str, reader: MessageDecoder, mark: bytes) -> Any:
        """Return the message, or the error."""
        try:
            if mark and mark in text:
                text, fault = self._faults.unmarked(text, mark, where)
                if fault is not None:
                    return fault
            return self._read_one(text, reader) or self._fault_of(text, where, reader)
        except RecursionError:
            # The guard counts our own frames too, so a text may be skimmed but not decoded.
            return self._faults.too_deep(text, where)

    def _read_one(self, text: bytes, reader: MessageDecoder) -> Any:
        if self._prescan or self._faults.is_deep(text):
            return None  # the pre-scan comes first
        try:
            return reader.one(text)
        except UNREADABLE:
            return None

    def _fault_of(self, text: bytes, where: str, reader: MessageDecoder) -> Any:
        faults = self._faults
        is_scanned = self._prescan or faults.is_deep(text)
        fault = faults.excess(text, where) if is_scanned else None
        fault = fault or faults.message(text, where)
        if fault is not None:
            return fault
        try:
            return reader.one(faults.essence(text))
        except UNREADABLE:
            # A nested member is duplicated, and its first value is invalid.
            return faults.twice(text, where)

    @property
    def _faults(self) -> Diagnosis:
        if self._diagnosis is None:
            # Imported here: most programs receive valid messages.
            from .decode_errors import Diagnosis

            self._diagnosis = Diagnosis(self.policy)
        return self._diagnosis

    # -- encoding ----------------------------------------------------------------------------

    def encode(self, message: Message | SentRequest | Batch) -> bytes:
        """Return the bytes of a message, or of a batch.

        Raises:
            LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
        """
        try:
            # Its type is checked by type checkers and by strict codecs: a check here would cost
            # a tenth of the whole.
            kind = type(message.id)
            if (kind is not int and kind is not str) or not self._plainly:
                message = encode_errors.checked(message, self.policy)
            written = _write(message)
        except encode_errors.UNWRITABLE as error:
            problem = encode_errors.explain(message, error)
        else:
            # The encoder writes NaN as null, so only text with a null can hold one. Without one
            # `replace` returns the same object, faster than `in` finds that out.
            if len(written) > _LARGE_BYTES:
                encode_errors.check_large(message, written)
            elif written.replace(b"null", b"") is not written:
                encode_errors.check_finite(message)
            if not self._plainly and self.policy.strictness == "strict":
                self._read_back(written)
            return written
        raise problem

    def _read_back(self, written: bytes) -> None:
        """Raise if we would not accept what we encoded."""
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
        """Return the repr of a message, redacted as the policy says."""
        auth = getattr(message, "auth", None)
        if self.policy.redaction == "full" or auth is None or isinstance(message, Batch):
            return repr(message)
        return shown(message, auth=first_and_last(auth))


def _as_bytes(data: Readable) -> bytes:
    if isinstance(data, str):
        # A lone surrogate has no UTF-8 form; as bytes it is rejected like other invalid UTF-8.
        return data.encode("utf-8", "surrogatepass")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a message is bytes, bytearray, memoryview or str, not {type(data).__name__}")


def _lazy(make: Callable[[], MessageDecoder]) -> Callable[[], MessageDecoder]:
    made: dict[str, MessageDecoder] = {}

    def get() -> MessageDecoder:
        # Two threads may both make one; both get the one that was stored first.
        return made.get("reader") or made.setdefault("reader", make())

    return get


_default: Final = Codec()


@lru_cache(maxsize=_MAX_CODECS)
def _codec(policy: Policy) -> Codec:
    return Codec(policy)


def decode(data: Readable, policy: Policy = DEFAULT_POLICY) -> Message | Batch:
    """Return the message, or batch of messages, that `data` holds.

    Raises:
        InvalidMessage: the message is invalid; `answer()` is the reply to send.
    """
    codec = _default if policy is DEFAULT_POLICY else _codec(policy)
    return codec.decode(data)


def encode(message: Message | Batch) -> bytes:
    """Return the bytes of a message, or of a batch.

    Raises:
        LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
    """
    return _default.encode(message)
