"""Extracts the messages from text, message objects or parsed JSON, and reports envelope faults.

The strict codec decodes the text first. Its errors become findings, and the readable rest of
the message is checked all the same. Message objects and parsed JSON are encoded and decoded
again, so that the checks see what a peer would see.
"""

from __future__ import annotations

from functools import lru_cache
from json import loads
from typing import Any, Final, TypeAlias

from msgspec.json import Decoder, Encoder, format

from ...errors import InvalidMessage, ProtocolError
from ...jsonrpc.codec import encode_errors
from ...jsonrpc.codec.codec import Codec
from ...jsonrpc.codec.decode_errors import kind_of, read_json
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.codec.tokenizer import nests_deeper
from ...jsonrpc.limits import MAX_DEPTH
from ...jsonrpc.messages import Batch
from ...jsonrpc.policy import Policy
from ...spec.revisions import LATEST
from ..finding import Finding, as_shown
from ..types.collector import Path, Sink

__all__ = ["EnvelopeReader", "Members", "reader_for_policy", "reader_for_revision", "text_faults"]

Members: TypeAlias = dict[str, Any]

# Rules of the codec after whose breach the rest of the message can still be checked.
_RECOVERABLE: Final = (
    "jsonrpc.version.",
    "jsonrpc.id.",
    "jsonrpc.reply.",
    "jsonrpc.message.mixed",
    "jsonrpc.method.",
    "jsonrpc.result.",
    "jsonrpc.error.",
    "jsonrpc.params.",
    "jsonrpc.envelope.",
    "jsonrpc.batch.mixed",
    "jsonrpc.batch.not-allowed",
    "jsonrpc.text.duplicate-key",
    "jsonrpc.text.surrogate",
)
# Rules of the codec about the text: parsed JSON does not show whether it broke them.
_OF_TEXT: Final = (
    "jsonrpc.text.",
    "jsonrpc.limit.message-size",
    "jsonrpc.limit.depth",
    "jsonrpc.limit.number",
)
# Twice the number of revisions, and some policies that callers create.
_MAX_CACHED_READERS: Final = 32

_read: Final = Decoder().decode
_write: Final = Encoder().encode


class EnvelopeReader:
    """Decodes messages under one policy, and reports what the codec rejects."""

    __slots__ = ("_limit", "_plain", "_scans", "_strict", "policy")

    def __init__(self, policy: Policy) -> None:
        limits = policy.limits
        self.policy = policy
        self._limit = limits.message_size()
        # True if the codec scans a text for duplicate names before it decodes it. The scan
        # takes longer than everything else, so it runs only where a cheap test fails.
        self._scans = policy.strictness == "strict" and limits.depth is None
        self._strict = Codec(policy)
        self._plain = Codec(policy.replace(strictness="standard")) if self._scans else self._strict

    def messages(self, given: Any, sink: Sink) -> list[tuple[Path, Members]]:
        """Return each message in `given` with its path; report everything else."""
        if isinstance(given, Batch) and given.faults:
            return self._decoded_batch(given, sink)
        text = _text(given, sink)
        if text is None:
            return []
        value, refused = self._value(text, sink)
        if type(value) is dict:
            return [(None, value)]
        if type(value) is not list:
            return []  # reported by the codec
        return [
            ((None, place), item)
            for place, item in enumerate(value)
            if type(item) is dict and _can_go_on(refused.get(f"/{place}"))
        ]

    def _value(self, text: bytes, sink: Sink) -> tuple[Any, dict[str, str]]:
        """Return the value of a text, None if unusable, and the rejecting rule by place."""
        is_read = kind_of(text) == "object" and (self._limit is None or len(text) <= self._limit)
        value = _parsed(text) if is_read else None
        if type(value) is dict and self._is_accepted(text, value):
            return value, {}
        refused = self._refused(text, sink)
        if not _can_go_on(refused.get("")):
            return None, refused
        # An array is decoded only now: the codec has limited its length. So is an object with a
        # lone surrogate.
        return (_mended(text) if value is None else value), refused

    def _is_accepted(self, text: bytes, value: Members) -> bool:
        # A cheap test: if it fails, the codec may accept the text all the same.
        if any(type(value.get(name, value)) is not dict for name in ("params", "result")):
            return False  # depends on the policy
        # A text that is encoded again to the same bytes has no duplicate names.
        if self._scans and (_repeats(text, value) or nests_deeper(text, MAX_DEPTH)):
            return False
        try:
            # The JSON is valid, so only the envelope can still have faults.
            self._plain.envelope(text)
        except InvalidMessage:
            return False
        return True

    def _refused(self, text: bytes, sink: Sink) -> dict[str, str]:
        """Report what the codec rejects; return the rule by the first step of its place."""
        try:
            found = self._strict.decode(text)
        except InvalidMessage as fault:
            for each in self._strict.faults(fault, text):
                _report(each, sink)
            if fault.rule != "jsonrpc.batch.not-allowed":
                return {"": fault.rule}
            # The batch is a fault, but each message in it may have further ones.
            accepting = reader_for_policy(self.policy.replace(batch="accept"))
            return {"": fault.rule, **accepting._refused(text, sink)}
        faulty = found.faults if isinstance(found, Batch) else []
        for element in faulty:
            _report(element, sink)
        return {f"/{element.where.split('/')[1]}": element.rule for element in faulty}

    def _decoded_batch(self, batch: Batch, sink: Sink) -> list[tuple[Path, Members]]:
        found: list[tuple[Path, Members]] = []
        for place, item in enumerate(batch):
            if isinstance(item, InvalidMessage):
                _report(item, sink)
            else:
                found += [((None, place), members) for _, members in self.messages(item, sink)]
        return found


@lru_cache(maxsize=_MAX_CACHED_READERS)
def reader_for_policy(policy: Policy) -> EnvelopeReader:
    """Return the reader for a policy."""
    return EnvelopeReader(policy)


# By revision, because hashing a policy takes longer than decoding a small message.
@lru_cache(maxsize=_MAX_CACHED_READERS)
def reader_for_revision(revision: str) -> EnvelopeReader:
    """Return the reader for the official rules of a revision, in strict mode."""
    return EnvelopeReader(Policy.mcp(revision).replace(strictness="strict"))


def text_faults(text: bytes) -> list[Finding]:
    """Return the findings that only the text of a message shows, in any revision."""
    sink = Sink(LATEST)
    reader_for_revision(LATEST).messages(text, sink)
    return [each for each in sink.ready if each.rule.startswith(_OF_TEXT)]


def _can_go_on(rule: str | None) -> bool:
    return not rule or rule.startswith(_RECOVERABLE)


def _text(given: Any, sink: Sink) -> bytes | None:
    if isinstance(given, str):
        # A lone surrogate has no UTF-8 form; the codec rejects it like any other bad UTF-8.
        return given.encode("utf-8", "surrogatepass")
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    try:
        text = _write(given)
        # The encoder writes NaN as null, so only a text with a null can hide one.
        if b"null" in text:
            encode_errors.check_finite(given)
    except ProtocolError as problem:
        _report(problem, sink)
    except encode_errors.UNWRITABLE as error:
        _report(encode_errors.explain(given, error), sink)
    else:
        return text
    return None


def _parsed(text: bytes) -> Any:
    try:
        return _read(text)
    except UNREADABLE:
        return None


def _mended(text: bytes) -> Any:
    try:
        return read_json(text)
    except UNREADABLE:
        return None


def _repeats(text: bytes, value: Members) -> bool:
    # True may be wrong, False never is.
    written = _write(value)
    if written in (text, format(text, indent=-1)):
        return False
    # Another spelling of the same value, or a duplicate name.
    found = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({name for name, _ in pairs}) != len(pairs)

    try:
        loads(text, object_pairs_hook=check, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return True
    return found


def _report(problem: ProtocolError, sink: Sink) -> None:
    got = as_shown(problem.got, problem.where)
    source = problem.source or "Trunkline"
    sink.ready.append(Finding(problem.rule, "error", problem.where, got, problem.expected, source))
