"""Any bytes give a message or an `InvalidMessage`, its answer is one we would read, all ways agree.

Run `python -m tests.fuzz.fuzz_decode -max_total_time=20 tests/fuzz/corpus/decode`; it needs
atheris. Without it, `check` can be called on any input.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from msgspec import UNSET, Struct

from tests.fuzz.engine import fuzz
from trunkline.errors import InvalidMessage, LocalProtocolError
from trunkline.jsonrpc import (
    Batch,
    Call,
    Codec,
    Failure,
    Limits,
    Notification,
    Policy,
    Reply,
    Request,
    Success,
)
from trunkline.spec.jsonrpc import RULES


class Named(Struct):
    """Typed params, for a codec that reads them in the same pass."""

    name: str


# Small limits, so that small inputs reach them.
TIGHT: Final = Limits(default=300, batch=3, id_length=5, method_length=9, depth=6, integer_digits=9)
POLICIES: Final = (
    Policy(batch="accept"),
    *(Policy.named(name) for name in ("mcp", "jsonrpc", "erlmcp", "pierre", "mcpp")),
    Policy.mcp("2025-03-26"),
    Policy.pierre().replace(batch="accept", mixed_batches=True, null_id="as-notification"),
    Policy.mcpp().replace(batch="accept", null_id="as-request"),
    Policy(batch="accept", strictness="strict"),
    Policy(batch="accept", limits=TIGHT),
    Policy(batch="accept", limits=TIGHT, strictness="strict", params="nullable", results="any"),
)
TYPED: Final = {"m": Named, "tools/call": Named}
TYPED_ALONE: Final = {"tools/call": Named}
# Of these only the beginning was looked at, or nothing at all.
UNREAD: Final = {
    "jsonrpc.limit.message-size",
    "jsonrpc.text.utf8",
    "jsonrpc.text.bom",
    "jsonrpc.text.json",
}
CODECS: Final = [
    (Codec(policy, expect="any"), Codec(policy, expect="calls", params=typed))
    for policy, typed in (
        *((policy, TYPED) for policy in POLICIES),
        *((policy, TYPED_ALONE) for policy in POLICIES[:2]),
    )
]


def check(data: bytes) -> None:
    """Hold the invariant under every policy."""
    shown = _json(data)
    for codec, typed in CODECS:
        whole, envelope = outcome(codec.decode, data), outcome(codec.envelope, data)
        assert same(outcome(typed.decode, data), whole), whole
        check_agreement(whole, envelope)
        check_agreement(whole, outcome(typed.envelope, data))
        for found in (whole, envelope):
            for fault in faults_in(found):
                check_fault(fault, codec)
            if isinstance(found, InvalidMessage):
                check_silence(found, shown)
        check_rewriting(whole, codec)
        check_forms(data, whole, codec)


def outcome(run: Any, value: Any, expected: type[Exception] = InvalidMessage) -> Any:
    """Return what `run` returns or raises; anything that was not expected is a finding."""
    try:
        found = run(value)
    except expected as error:
        found = error
    if isinstance(found, Exception):
        assert found.__cause__ is None
        assert found.__context__ is None
    return found


def faults_in(found: Any) -> list[InvalidMessage]:
    items = found if isinstance(found, list | tuple) else [found]
    return [item for item in items if isinstance(item, InvalidMessage)]


def check_agreement(whole: Any, envelope: Any) -> None:
    """Hold that an envelope is refused only if the message is, and else names the same."""
    if isinstance(whole, InvalidMessage):
        if isinstance(envelope, InvalidMessage):
            assert whole.id == envelope.id
        return
    assert not isinstance(envelope, InvalidMessage), (whole, envelope)
    if isinstance(whole, Batch):
        assert isinstance(envelope, list)
        assert len(whole) == len(envelope)
        for one, other in zip(whole, envelope, strict=True):
            if not isinstance(one, InvalidMessage):
                assert describe(one) == describe(other)
    else:
        assert describe(whole) == describe(envelope), (whole, envelope)


def describe(message: Any) -> tuple[Any, ...]:
    """Return what routing needs to know of a message, whole or not."""
    if isinstance(message, Request | Notification):
        id = message.id if isinstance(message, Request) else UNSET
        return "call", id, message.method
    if isinstance(message, Success | Failure):
        return "reply", message.id, getattr(message, "error", UNSET)
    if isinstance(message, Reply):
        return "reply", message.id, message.error
    assert isinstance(message, Call) or isinstance(message.params, Named), message
    return "call", message.id, message.method


def check_fault(fault: InvalidMessage, codec: Codec) -> None:
    """Hold that a fault names a rule and its answer is a failure to whoever reads it."""
    assert fault.rule in RULES
    assert fault.expected == RULES[fault.rule].expected
    str(fault).encode()
    answer = fault.answer()
    assert (answer is not None) is fault.answerable
    if answer is not None and len(answer) <= (codec.policy.limits.default or sys.maxsize):
        read = codec.decode(answer)
        assert isinstance(read, Failure), read
        assert read.error.code == fault.code
        assert read.id == (fault.id if fault.id is not None else read.id)
        assert fault.id is not None or read.id is None or read.id is UNSET


def check_silence(fault: InvalidMessage, shown: Any) -> None:
    """Hold that a reply is never answered, and neither is a plain notification."""
    if not isinstance(shown, dict) or fault.rule in UNREAD:
        return
    if "method" not in shown:
        assert fault.answer() is None or not shown.keys() & {"result", "error"}, fault
    elif "id" not in shown and shown.get("jsonrpc") == "2.0" and isinstance(shown["method"], str):
        assert fault.answer() is None, fault


def check_rewriting(whole: Any, codec: Codec) -> None:
    """Hold that what was read can be written, and is read as the same again."""
    if isinstance(whole, InvalidMessage) or faults_in(whole):
        return
    if codec.policy.unknown_code != "pass":
        return  # a code that nobody knows is written as another
    written = outcome(codec.encode, whole, LocalProtocolError)
    if isinstance(written, LocalProtocolError):
        # Read by leave of the policy, not written; or nested to the last level that is read.
        assert written.rule in ("jsonrpc.batch.mixed", "jsonrpc.value.cyclic"), written
        return
    if len(written) <= (codec.policy.limits.default or sys.maxsize):
        assert codec.decode(written) == whole


def check_forms(data: bytes, whole: Any, codec: Codec) -> None:
    """Hold that a text is read alike in whatever form it comes."""
    forms: list[Any] = [bytearray(data)]
    try:
        forms.append(data.decode())
    except UnicodeDecodeError:
        pass
    for form in forms:
        assert same(outcome(codec.decode, form), whole), form


def same(one: Any, other: Any) -> bool:
    """Say whether two outcomes are the same; faults are compared by what they say and send."""
    if isinstance(one, InvalidMessage) and isinstance(other, InvalidMessage):
        return (str(one), one.answer()) == (str(other), other.answer())
    if isinstance(one, Batch) and isinstance(other, Batch):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _json(data: bytes) -> Any:
    """Return what another reader makes of a text, or None."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


if __name__ == "__main__":
    fuzz(check)
