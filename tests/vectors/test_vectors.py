"""Every vector goes through every way into the codec, and all ways agree with it.

A file beside this one is a list of cases. Each has a `name`, a `why` and a `ref`; it says
under which `policy`, over which `transport`, and then one of two things:

* `input` (or `input_hex`, or `input_repeat`: parts to be written so many times) and the
  `outcome`: a message, a batch of outcomes, or the fault and the exact answer to it.
  `shows` and `hides` say what may be printed of the message.
* `message`, and either the `bytes` it is written as or the rule for which it is `refused`.
  What was written is read back: as the same message, or as `decodes`.

A fault that is `deferred` is one that `Codec.envelope` leaves to whoever reads the params
or the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import pytest
from msgspec import UNSET

from tests import effort
from trunkline.errors import InvalidMessage, LocalProtocolError
from trunkline.jsonrpc import (
    Batch,
    Call,
    Codec,
    ErrorObject,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Limits,
    Notification,
    Policy,
    Reply,
    Request,
    Success,
    decode,
    encode,
)
from trunkline.jsonrpc.messages import SentRequest
from trunkline.jsonrpc.policy import DEFAULT_POLICY
from trunkline.spec.jsonrpc import LOCAL_RULES, RULES

Json: TypeAlias = dict[str, Any]
Read: TypeAlias = Callable[[Any], Any]
Form: TypeAlias = bytes | bytearray | memoryview | str
T = TypeVar("T")

HERE: Final = Path(__file__).parent
CASES: Final = {
    path.stem: cast(list[Json], json.loads(path.read_text(encoding="utf-8")))
    for path in sorted(HERE.glob("*.json"))
}
ALL: Final = [case for cases in CASES.values() for case in cases]
DECODED: Final = [case for case in ALL if "outcome" in case]
ENCODED: Final = [case for case in ALL if "message" in case]

# Whether an id is taken is known to a peer alone.
RULES_OF_A_PEER: Final = {"jsonrpc.id.duplicate"}
EXPECT: Final = ("any", "calls", "replies")
# A text of more bytes takes long to read, in every way and form.
LARGE: Final = 50_000
# What an envelope may carry, and what says that it does not.
EXTENSIONS: Final[Json] = {"auth": None, "headers": None, "metadata": {}}

REQUEST: Final = b'{"jsonrpc":"2.0","id":"\xc3\xa9-1","method":"a/b","params":{"n":[1.5,null]}}'
BATCH: Final = b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"method":"b"}]'
ERROR: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'


def name_of(case: Json) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", DECODED, ids=name_of)
def test_a_text_is_read_as_its_vector_says(case: Json) -> None:
    policy, data, outcome = policy_of(case), input_of(case), case["outcome"]
    codecs = [codec_of(policy, expect, transport(case)) for expect in EXPECT]
    reads: list[Read] = [codec.decode for codec in codecs]
    if "transport" not in case:
        reads.append(lambda data: decode(data, policy))
    forms = [*forms_of(data)]
    for read, form in pairs_of(reads, forms):
        assert_same(outcome_of(read, form), outcome)
    for codec, form in pairs_of(codecs, forms):
        assert_agrees(outcome_of(codec.envelope, form), outcome)
    if "shows" in case or "hides" in case:
        text = codecs[0].describe(codecs[0].decode(data))
        assert [part for part in case.get("shows", []) if part not in text] == []
        assert [part for part in case.get("hides", []) if part in text] == []


@pytest.mark.parametrize("case", ENCODED, ids=name_of)
def test_a_message_is_written_as_its_vector_says(case: Json) -> None:
    codec = Codec(policy_of(case))
    if "refused" in case:
        with pytest.raises(LocalProtocolError) as caught:
            codec.encode(made(case["message"]))
        assert (caught.value.rule, caught.value.where) == (case["refused"], case["where"])
        return
    written = codec.encode(made(case["message"]))
    assert written.decode() == case["bytes"]
    assert "policy" in case or encode(made(case["message"])) == written
    assert_same(
        outcome_of(codec.decode, written), case["decodes" if "decodes" in case else "message"]
    )


@pytest.mark.parametrize("text", [REQUEST, BATCH, ERROR], ids=["request", "batch", "error"])
def test_no_beginning_of_a_message_is_a_message(text: bytes) -> None:
    decode(text)
    for end in range(len(text)):
        with pytest.raises(InvalidMessage):
            decode(text[:end])


def test_every_rule_has_a_vector_that_breaks_it_and_every_fault_is_a_rule() -> None:
    named = {fault["fault"] for case in DECODED for fault in faults_in(case["outcome"])}
    assert named == RULES.keys() - RULES_OF_A_PEER


def test_every_refusal_is_a_rule_for_ourselves() -> None:
    assert {case["refused"] for case in ENCODED if "refused" in case} <= LOCAL_RULES.keys()


def test_there_are_enough_vectors_and_each_has_its_own_name_and_reason() -> None:
    assert len(ALL) >= 250
    assert len({case["name"] for case in ALL}) == len(ALL)
    assert [case["name"] for case in ALL if not case["why"].endswith(".")] == []


# -- what a case says ------------------------------------------------------------------------


def policy_of(case: Json) -> Policy:
    named = case.get("policy")
    if named is None:
        return DEFAULT_POLICY
    if isinstance(named, str):
        return Policy.named(named)
    changes = dict(named)
    base = Policy.named(changes.pop("preset")) if "preset" in changes else DEFAULT_POLICY
    if isinstance(changes.get("limits"), dict):
        changes["limits"] = Limits(**changes["limits"])
    return base.replace(**changes)


def transport(case: Json) -> Any:
    return case.get("transport", "default")


def input_of(case: Json) -> bytes:
    if "input" in case:
        return cast(str, case["input"]).encode()
    if "input_hex" in case:
        return bytes.fromhex(case["input_hex"])
    return b"".join(part["text"].encode() * part["times"] for part in case["input_repeat"])


@cache
def codec_of(policy: Policy, expect: Any, transport: Any) -> Codec:
    return Codec(policy, expect=expect, transport=transport)


def pairs_of(ways: list[T], forms: list[Form]) -> Iterator[tuple[T, Form]]:
    """Yield each way to read with each form; of a large text, each way and each form once."""
    if len(forms[0]) <= LARGE or effort.is_full():
        yield from product(ways, forms)
    else:
        for number in range(max(len(ways), len(forms))):
            yield ways[number % len(ways)], forms[number % len(forms)]


def forms_of(data: bytes) -> Iterator[Form]:
    yield data
    yield bytearray(data)
    yield memoryview(data)
    try:
        yield data.decode()
    except UnicodeDecodeError:
        pass


def made(fields: Json) -> Any:
    """Return the message that a case describes."""
    kind, given = fields["kind"], fields.get
    if kind == "batch":
        return Batch(made(item) for item in fields["items"])
    if kind == "success":
        return Success(fields["id"], fields["result"])
    if kind == "failure":
        error = fields["error"]
        error = ErrorObject(error["code"], error["message"], error.get("data", UNSET))
        return Failure(given("id", UNSET), error)
    if kind == "sent-request":
        return SentRequest(fields["id"], fields["method"], given("params"))
    more = {name: fields[name] for name in EXTENSIONS if name in fields}
    if kind == "notification":
        return (ExtendedNotification if more else Notification)(
            fields["method"], given("params"), **more
        )
    return (ExtendedRequest if more else Request)(
        fields["method"], given("params"), id=fields["id"], **more
    )


# -- what the codec says ---------------------------------------------------------------------


def outcome_of(read: Read, data: object) -> Json:
    """Return what came of reading `data`, in the words of a case."""
    try:
        return described(read(data))
    except InvalidMessage as fault:
        return described(fault)


def described(found: Any) -> Json:
    if isinstance(found, (list, Batch)):
        return {"kind": "batch", "items": [described(item) for item in found]}
    if isinstance(found, InvalidMessage):
        answer = found.answer()
        assert found.answerable is (answer is not None)
        return {
            "fault": found.rule,
            "code": found.code,
            "where": found.where,
            "id": found.id,
            "answer": answer and answer.decode(),
            "message": found.message,
        }
    if isinstance(found, (Success, Failure, Reply)):
        error = getattr(found, "error", UNSET)
        parts = {"id": found.id, "result": getattr(found, "result", UNSET)}
        if error is UNSET:
            return {"kind": "success", **present(parts)}
        what = {"code": error.code, "message": error.message, "data": error.data}
        return {"kind": "failure", **present(parts), "error": present(what)}
    is_call = isinstance(found, (Call, Request))
    kind = "request" if is_call and found.id is not UNSET else "notification"
    parts = {"id": found.id} if kind == "request" else {}
    parts |= {"method": found.method, "params": UNSET if found.params is None else found.params}
    parts |= {name: getattr(found, name, UNSET) for name in EXTENSIONS}
    parts |= {name: UNSET for name in EXTENSIONS if parts[name] == EXTENSIONS[name]}
    return {"kind": kind, **present(parts)}


def present(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not UNSET}


def faults_in(outcome: Json) -> Iterator[Json]:
    if "fault" in outcome:
        yield outcome
    for item in outcome.get("items", []):
        yield from faults_in(item)


# -- comparing -------------------------------------------------------------------------------


def assert_same(found: Json, expected: Json) -> None:
    # As JSON text, because Python takes 1, 1.0 and True for the same.
    one, other = comparable(found, expected), comparable(expected, expected)
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        assert as_text(one) == as_text(other)  # shows where they differ


def assert_agrees(found: Json, expected: Json) -> None:
    """Fail unless what `envelope` told is what routing needs of `expected`."""
    if "items" in expected and "items" in found:
        assert len(found["items"]) == len(expected["items"])
        for item, wanted in zip(found["items"], expected["items"], strict=True):
            assert_agrees(item, wanted)
    elif "fault" in expected:
        if expected.get("deferred") == "always":
            assert "fault" not in found
        else:
            assert_same(found, expected)
    else:
        members = ("kind", "id", "method", "error", *EXTENSIONS)
        routed = {name: expected[name] for name in members if name in expected}
        assert_same({name: found[name] for name in members if name in found}, routed)


def comparable(outcome: Json, expected: Json) -> Json:
    """Return an outcome without what its vector need not say."""
    optional = {"message"} if "message" not in expected else set()
    kept = {name: outcome[name] for name in outcome if name not in optional | {"deferred"}}
    if "items" in kept and len(kept["items"]) == len(expected.get("items", [])):
        pairs = zip(kept["items"], expected["items"], strict=True)
        kept["items"] = [comparable(item, wanted) for item, wanted in pairs]
    return kept


def as_text(outcome: Json) -> str:
    return json.dumps(outcome, sort_keys=True, indent=1)
