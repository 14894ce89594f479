"""From whatever is given to be judged to the messages in it.

Text is read by the strict codec first; what that refuses becomes a finding, and as much of
the message as can still be read is judged all the same. Message objects and parsed JSON are
written and read back, so that what is judged is what a peer would see.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

from msgspec.json import Decoder, Encoder, format

from ...errors import InvalidMessage, ProtocolError
from ...jsonrpc import encode_errors
from ...jsonrpc.codec import Codec
from ...jsonrpc.decode_errors import UNREADABLE, kind_of
from ...jsonrpc.limits import STRICT_DEPTH
from ...jsonrpc.messages import Batch
from ...jsonrpc.policy import Policy
from ..finding import Finding, as_shown
from .collector import Path, Sink

__all__ = ["EnvelopeReader", "Members", "reader_for_policy", "reader_for_revision"]

Members: TypeAlias = dict[str, Any]

# Faults after which there is still a message to be judged.
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
)
# As many as there are revisions, twice over, and some that callers make.
_MAX_CACHED_READERS: Final = 32

_read: Final = Decoder().decode
_write: Final = Encoder().encode


class EnvelopeReader:
    """Reads messages under one policy, and finds out what the codec refuses of them."""

    __slots__ = ("_limit", "_plain", "_scans", "_strict", "policy")

    def __init__(self, policy: Policy) -> None:
        limits = policy.limits
        self.policy = policy
        self._limit = limits.message_size()
        # Whether the codec passes over the names in a text before it reads it. That takes
        # longer than all the rest, so it is put off until there is reason to.
        self._scans = policy.strictness == "strict" and limits.depth is None
        self._strict = Codec(policy)
        self._plain = Codec(policy.replace(strictness="standard")) if self._scans else self._strict

    def messages(self, given: Any, sink: Sink) -> list[tuple[Path, Members]]:
        """Return each message that `given` holds, with its place; report what is none."""
        if isinstance(given, Batch) and given.faults:
            return self._read_before(given, sink)
        text = _text(given, sink)
        if text is None:
            return []
        value, refused = self._value(text, sink)
        if type(value) is dict:
            return [(None, value)]
        if type(value) is not list:
            return []  # the codec said so
        return [
            ((None, place), item)
            for place, item in enumerate(value)
            if type(item) is dict and _can_go_on(refused.get(f"/{place}"))
        ]

    def _value(self, text: bytes, sink: Sink) -> tuple[Any, dict[str, str]]:
        """Return what a text holds, as far as it can be judged, and what is refused of it."""
        is_read = kind_of(text) == "object" and (self._limit is None or len(text) <= self._limit)
        value = _readable(text) if is_read else None
        if type(value) is dict and self._is_accepted(text, value):
            return value, {}
        refused = self._refused(text, sink)
        if not _can_go_on(refused.get("")):
            return None, refused
        # An array is read only now: it has a limited number of elements.
        return (value if is_read else _readable(text)), refused

    def _is_accepted(self, text: bytes, value: Members) -> bool:
        """Say at a glance whether the codec accepts a text; if not, it may do so yet."""
        if any(type(value.get(name, value)) is not dict for name in ("params", "result")):
            return False  # what these may be is decided when they are read
        # What is written again as it stands names no member twice.
        if self._scans and (_repeats(text, value) or _is_deep(text, value)):
            return False
        try:
            # The value was read, so no other fault can hide in what this leaves unread.
            self._plain.envelope(text)
        except InvalidMessage:
            return False
        return True

    def _refused(self, text: bytes, sink: Sink) -> dict[str, str]:
        """Report what the codec refuses; return the first step of each place, and the rule."""
        try:
            found = self._strict.decode(text)
        except InvalidMessage as fault:
            for each in self._strict.faults(fault, text):
                _tell(each, sink)
            if fault.rule != "jsonrpc.batch.not-allowed":
                return {"": fault.rule}
            # No message, but messages all the same: each may have faults of its own.
            accepting = reader_for_policy(self.policy.replace(batch="accept"))
            return {"": fault.rule, **accepting._refused(text, sink)}
        faulty = found.faults if isinstance(found, Batch) else []
        for element in faulty:
            _tell(element, sink)
        return {f"/{element.where.split('/')[1]}": element.rule for element in faulty}

    def _read_before(self, batch: Batch, sink: Sink) -> list[tuple[Path, Members]]:
        """Return the messages of a batch that a codec has read and found faults in."""
        found: list[tuple[Path, Members]] = []
        for place, item in enumerate(batch):
            if isinstance(item, InvalidMessage):
                _tell(item, sink)
            else:
                found += [((None, place), members) for _, members in self.messages(item, sink)]
        return found


@lru_cache(maxsize=_MAX_CACHED_READERS)
def reader_for_policy(policy: Policy) -> EnvelopeReader:
    """Return what reads messages under a policy."""
    return EnvelopeReader(policy)


# By name, because hashing a policy takes longer than reading a small message.
@lru_cache(maxsize=_MAX_CACHED_READERS)
def reader_for_revision(revision: str) -> EnvelopeReader:
    """Return what reads the messages of a revision: by the official rules, strictly."""
    return EnvelopeReader(Policy.mcp(revision).replace(strictness="strict"))


def _can_go_on(rule: str | None) -> bool:
    """Say whether there is something to judge in spite of a fault."""
    return not rule or rule.startswith(_RECOVERABLE)


def _text(given: Any, sink: Sink) -> bytes | None:
    """Return the text of what is given, or None where it has none."""
    if isinstance(given, str):
        # A lone surrogate has no UTF-8 form; the codec refuses it like any other bad UTF-8.
        return given.encode("utf-8", "surrogatepass")
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    try:
        text = _write(given)
        # The encoder writes NaN as null, so only what has a null in it can hold one.
        if b"null" in text:
            encode_errors.check_finite(given)
    except ProtocolError as problem:
        _tell(problem, sink)
    except encode_errors.UNWRITABLE as error:
        _tell(encode_errors.explain(given, error), sink)
    else:
        return text
    return None


def _readable(text: bytes) -> Any:
    """Return what a text holds, or None where that cannot be read."""
    try:
        return _read(text)
    except UNREADABLE:
        return None


def _repeats(text: bytes, value: Members) -> bool:
    """Say whether a text may name a member twice: some that do not are written otherwise."""
    written = _write(value)
    return written != text and written != format(text, indent=-1)


def _is_deep(text: bytes, value: Any) -> bool:
    """Say whether a value nests deeper than the strict codec follows."""
    if text.count(b"{") + text.count(b"[") <= STRICT_DEPTH:
        return False
    level = [value]
    for _ in range(STRICT_DEPTH):
        level = [
            item
            for each in level
            for item in (each.values() if type(each) is dict else each)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True


def _tell(problem: ProtocolError, sink: Sink) -> None:
    """Report a fault that the codec named."""
    got = as_shown(problem.got, problem.where)
    source = problem.source or "Trunkline"
    sink.ready.append(Finding(problem.rule, "error", problem.where, got, problem.expected, source))
