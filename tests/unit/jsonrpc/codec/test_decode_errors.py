"""The diagnosis of a refused message: its first broken rule, its id, and whether it is answered."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from tests.cases import for_each
from trunkline.errors import NOTHING, InvalidMessage
from trunkline.jsonrpc import Batch, Codec, Limits, Policy
from trunkline.jsonrpc.codec.decode_errors import Diagnosis, elements_of, kind_of
from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.jsonrpc import RULES
from trunkline.spec.profiles import PROFILE_NAMES, profile
from trunkline.spec.revisions import REVISIONS

OPEN = Policy(batch="accept")
PRESETS = ("mcp", "jsonrpc", "erlmcp", "pierre", "mcpp")
POLICIES = [*(Policy.named(name).replace(batch="accept") for name in PRESETS)]
POLICIES += [OPEN.replace(strictness="strict"), OPEN.replace(null_id="as-notification")]


def fault_of(data: bytes, policy: Policy = OPEN) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as caught:
        Codec(policy).decode(data)
    return caught.value


def answer_of(fault: InvalidMessage) -> Any:
    answer = fault.answer()
    return None if answer is None else json.loads(answer)


# Making a fault


@for_each("rule", RULES)
def test_a_fault_has_the_facts_of_its_row(rule: str) -> None:
    fault = Diagnosis(OPEN).fault(rule, where="/x", got="y", id=7)
    row = RULES[rule]
    assert (fault.rule, fault.expected, fault.source) == (rule, row.expected, row.source)
    assert (fault.where, fault.got, fault.id) == ("/x", "y", 7)
    assert fault.code == profile("mcp").number(row.answer)
    assert fault.data == {"rule": rule, "at": "/x", "expected": row.expected}


@for_each("rule", RULES)
@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_every_rule_is_answered_under_every_profile_and_revision(name: str, rule: str) -> None:
    for revision in REVISIONS:
        policy = Policy(codes=name, revision=revision)
        fault = Diagnosis(policy).fault(rule)
        number, _ = profile(name).to_send(RULES[rule].answer, revision)
        assert fault.code == number
        assert profile(name).accepts(fault.code, revision)


def test_an_explanation_can_be_left_out() -> None:
    for explain in (True, False):
        fault = Diagnosis(OPEN.replace(explain=explain)).fault("jsonrpc.id.type", where="/id")
        assert ("data" in answer_of(fault)["error"]) is explain


def test_an_explanation_says_nothing_of_what_was_there() -> None:
    fault = Diagnosis(OPEN).fault("jsonrpc.id.type", where="/id", got="hunter2")
    assert b"hunter2" not in (fault.answer() or b"")


def test_wrong_params_are_answered_as_the_policy_says() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":5}'
    assert fault_of(data).code == -32602
    assert fault_of(data, OPEN.replace(params_fault="INVALID_REQUEST")).code == -32600
    # Nothing but params is.
    assert fault_of(b'{"jsonrpc":"2.0","id":1,"method":5}').code == -32600


@pytest.mark.parametrize(
    ("policy", "id"),
    [
        (Policy.mcp("2025-06-18"), {"id": None}),
        (Policy.mcp("2025-11-25"), {}),
        (Policy(unreadable_id="null"), {"id": None}),
        (Policy(unreadable_id="omit"), {}),
    ],
    ids=["before", "after", "null", "omit"],
)
def test_an_id_that_cannot_be_read_is_null_or_left_out(policy: Policy, id: Any) -> None:
    # the row: K-43
    for data in (b"{", b'{"jsonrpc":"2.0","id":[],"method":"m"}', b"\xff"):
        answer = answer_of(fault_of(data, policy))
        assert {key: answer[key] for key in answer if key == "id"} == id


def test_a_null_id_that_is_an_id_is_answered_as_one() -> None:
    policy = OPEN.replace(null_id="as-request", unreadable_id="omit")
    answer = answer_of(fault_of(b'{"jsonrpc":"2.0","id":null,"method":"m","params":5}', policy))
    assert answer["id"] is None


# The order of the pipeline

BROKEN: dict[str, tuple[str, Any]] = {
    "jsonrpc.version.value": ("jsonrpc", "1.0"),
    "jsonrpc.id.type": ("id", []),
    "jsonrpc.method.type": ("method", 5),
    "jsonrpc.params.object": ("params", 5),
}


@pytest.mark.parametrize("first", range(len(BROKEN)))
def test_first_broken_rule_is_reported_whatever_follows(first: int) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}}
    for member, value in list(BROKEN.values())[first:]:
        message[member] = value
    data = json.dumps(dict(reversed(message.items()))).encode()
    assert fault_of(data).rule == list(BROKEN)[first]


def test_text_comes_before_everything() -> None:
    data = b'{"jsonrpc":"1.0","id":[],"method":5,"params":"\xff"}'
    assert fault_of(data).rule == "jsonrpc.text.utf8"
    assert fault_of(data.replace(b"\xff", b"")[:-1]).rule == "jsonrpc.text.json"


def test_size_comes_before_text() -> None:
    policy = OPEN.replace(limits=Limits(default=5))
    assert fault_of(b"\xff" * 6, policy).rule == "jsonrpc.limit.message-size"
    assert fault_of(b"\xff" * 5, policy).rule == "jsonrpc.text.utf8"


# Ids are salvaged from the top level alone


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"1.0","method":"m","params":{"id":8}}',
        b'{"jsonrpc":"1.0","method":"m","params":[{"id":8}]}',
        b'{"jsonrpc":"2.0","id":{"id":8},"method":"m"}',
        b'{"jsonrpc":"2.0","id":[8],"method":"m"}',
        b'{"jsonrpc":"2.0","id":true,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"m"}',
        b'{"jsonrpc":"2.0","method":5,"x":"\\"id\\":8"}',
        b'{"jsonrpc":"2.0","method":"m","params":{"id":8}',
        b'{"jsonrpc":"2.0","method":"m","params":{"id":8,"x":NaN}}',
        b'{"jsonrpc":"2.0","id":8,"id":9,"method":"m","x":NaN}',
        b'{"jsonrpc":"2.0","id":8,"method":"m"}{"jsonrpc":"2.0","id":9,"method":"m"}',
        b'{"jsonrpc":"2.0","id":8',
        b'{"jsonrpc":"2.0","id":8,',  # a request or a reply
        b'{"id":8}\xff',
        b'"id"',
        b"8",
        b"",
    ],
)
def test_an_id_that_is_not_the_messages_is_not_used(data: bytes, policy: Policy) -> None:
    assert fault_of(data, policy).id is None


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
@pytest.mark.parametrize("id", [0, 8, -8, 10**30, "", "8", "é"])
def test_an_id_that_is_the_messages_is_used(id: int | str, policy: Policy) -> None:
    text = json.dumps(id).encode()
    for data in (
        b'{"jsonrpc":"1.0","id":%s,"method":"m"}',
        b'{"jsonrpc":"2.0","id":%s,"method":5,"params":{"id":9}}',
        b'{"jsonrpc":"2.0","params":5,"method":"m","id":%s}',
        b'{"jsonrpc":"2.0","id":%s}',
        b'{"jsonrpc":"2.0","id":%s,"method":"m","result":{}}',
    ):
        fault = fault_of(data % text, policy)
        assert (fault.id, type(fault.id)) == (id, type(id))
        assert answer_of(fault)["id"] == id


NOT_JSON: dict[str, bytes] = {
    "invalid UTF-8": b'"\xff"',
    "half a character": b'"\xc3"',
    "an encoded surrogate": b'"\xed\xa0\x80"',
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "a comma after the last": b"[1,]",
    "a raw tab": b'"\t"',
    "an unknown escape": rb'"\q"',
    "a leading zero": b"01",
    "a bare name": b"{a:1}",
    "half a surrogate escape": rb'"\ud83"',
    "brackets that do not match": b"[1}",
}


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
@pytest.mark.parametrize("what", NOT_JSON)
def test_a_message_that_is_not_quite_json_shows_its_id_and_kind(what: str, policy: Policy) -> None:
    value = NOT_JSON[what]
    for text, id in ((b"8", 8), (b'"a"', "a")):
        request = b'{"jsonrpc":"2.0","id":%b,"method":"m","params":{"x":%b}}' % (text, value)
        fault = fault_of(request, policy)
        assert (fault.code, fault.id) == (-32700, id)
        assert answer_of(fault)["id"] == id
        for outcome in (b'"result":{"x":%b}', b'"error":{"code":1,"message":"e","data":%b}'):
            reply = b'{"jsonrpc":"2.0","id":%b,' % text + outcome % value + b"}"
            fault = fault_of(reply, policy)
            assert (fault.rule.startswith("jsonrpc.text."), fault.id) == (True, id)
            assert fault.answer() is None


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
@pytest.mark.parametrize("what", [what for what in NOT_JSON if not what.startswith("brackets")])
def test_a_notification_that_is_not_quite_json_is_not_answered(what: str, policy: Policy) -> None:
    data = b'{"jsonrpc":"2.0","method":"m","params":{"id":8,"x":%b}}' % NOT_JSON[what]
    fault = fault_of(data, policy)
    assert (fault.id, fault.answer()) == (None, None)


def test_a_truncated_request_is_answered_with_its_id_and_one_that_may_have_an_id_is_answered() -> (
    None
):
    assert answer_of(fault_of(b'{"jsonrpc":"2.0","id":8,"method":"m"'))["id"] == 8
    fault = fault_of(b'{"jsonrpc":"2.0","method":"m","params":{')
    assert answer_of(fault).get("id") is None


def test_the_id_of_a_text_that_is_not_json_is_looked_for_in_its_first_64_kib() -> None:
    head, tail = b'{"jsonrpc":"2.0","method":"m","x":NaN,"y":"', b'","id":8}'
    room = 65536 - len(head) - len(tail)
    assert fault_of(head + b"y" * room + tail).id == 8
    assert fault_of(head + b"y" * (room + 1) + tail).id is None


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
def test_each_reply_of_a_batch_that_is_not_json_has_its_own_error(policy: Policy) -> None:
    data = b'[{"jsonrpc":"2.0","id":8,"result":{"x":NaN}},{"jsonrpc":"2.0","id":"a","error":{}}]'
    read = Codec(policy).envelope(data)
    assert isinstance(read, list)
    assert [fault.id for fault in read if isinstance(fault, InvalidMessage)] == [8, "a"]
    assert [fault.answer() for fault in read if isinstance(fault, InvalidMessage)] == [None, None]
    calls = data.replace(b'"error"', b'"method":"m","error"')
    fault = fault_of(calls, policy)
    assert (fault.id, fault.answerable) == (None, True)


def test_the_id_of_an_oversize_frame_is_looked_for_in_its_head() -> None:
    policy = OPEN.replace(limits=Limits(default=100))
    filler = b'"x":"' + b"x" * 2000 + b'"'
    assert fault_of(b'{"id":8,' + filler + b"}", policy).id == 8
    assert fault_of(b"{" + filler + b',"id":8}', policy).id is None
    assert fault_of(b'{"params":{"id":8,' + filler + b"}}", policy).id is None
    assert fault_of(b'{"x":"\\"id\\":8,' + b"x" * 2000 + b'"}', policy).id is None
    fault = Codec(policy).oversize(b'{"id":"a",', 100, 5000)
    assert (fault.id, fault.got) == ("a", 5000)
    assert answer_of(fault)["error"]["data"] == {"maxSize": 100, "unit": "bytes"}
    assert Codec(policy).oversize(b"", 100).got is NOTHING


def test_an_id_that_is_too_long_is_not_sent_back() -> None:
    policy = OPEN.replace(limits=Limits(default=400, id_length=5, integer_digits=5))
    for id in (b'"abcdef"', b"123456", b"-123456"):
        for data in (
            b'{"jsonrpc":"1.0","id":%s,"method":"m"}' % id,
            b'{"jsonrpc":"2.0","id":%s,"method":"m","params":5}' % id,
            b'{"id":%s,"x":"%s"}' % (id, b"x" * 400),
        ):
            assert fault_of(data, policy).id is None
    assert fault_of(b'{"jsonrpc":"1.0","id":"abcde","method":"m"}', policy).id == "abcde"
    assert fault_of(b'{"jsonrpc":"1.0","id":-12345,"method":"m"}', policy).id == -12345


@pytest.mark.parametrize("depth", [300, 100_000])
def test_the_id_of_what_nests_too_deep_is_looked_for_in_its_head(depth: int) -> None:
    policy = OPEN.replace(limits=Limits(depth=100))
    nest = b"[" * depth + b"]" * depth
    for chosen in (OPEN, policy, OPEN.replace(strictness="strict")):
        data = b'{"jsonrpc":"2.0","id":8,"method":"m","params":{"id":9,"x":' + nest + b"}}"
        fault = fault_of(data, chosen)
        assert (fault.rule, fault.id) == ("jsonrpc.limit.depth", 8)


def test_duplicate_id_is_not_used_in_the_answer() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}'
    fault = fault_of(data, OPEN.replace(strictness="strict"))
    assert (fault.rule, fault.id) == ("jsonrpc.text.duplicate-key", None)


# Replies and notifications are not answered

REPLIES = [
    b'{"jsonrpc":"1.0","id":1,"result":{}}',
    b'{"id":1,"result":{},"error":5}',
    b'{"jsonrpc":"2.0","id":[],"result":{}}',
    b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":5}',
    b'{"jsonrpc":"2.0","id":1,"error":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":5}}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"x":1e999}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":1e999}}',
]
NOTES = [
    b'{"jsonrpc":"2.0","method":""}',
    b'{"jsonrpc":"2.0","method":"m","params":5}',
    b'{"jsonrpc":"2.0","method":"m","params":{"x":1e999}}',
    b'{"jsonrpc":"2.0","method":"m","result":5}',
    b'{"jsonrpc":"2.0","method":"%s"}' % (b"x" * 2000),
]


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
@pytest.mark.parametrize("data", REPLIES + NOTES)
def test_a_faulty_reply_or_notification_is_not_answered(data: bytes, policy: Policy) -> None:
    fault = fault_of(data, policy)
    assert not fault.answerable
    assert fault.answer() is None
    batch = Codec(policy).decode(b"[" + data + b"]")
    assert isinstance(batch, Batch)
    (in_batch,) = batch.faults
    assert in_batch.answer() is None


@for_each("policy", POLICIES, ids=range(len(POLICIES)))
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b"5",
        b'"x"',
        b"null",
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":[],"method":"m"}',
        b'{"jsonrpc":"1.0","method":"m"}',
        b'{"jsonrpc":"2.0","method":5}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","error":5}',
        b"[]",
    ],
)
def test_invalid_message_that_may_be_a_request_is_answerable(data: bytes, policy: Policy) -> None:
    fault = fault_of(data, policy)
    assert fault.answerable
    assert answer_of(fault)["error"]["code"] == fault.code


@pytest.mark.parametrize("policy", [OPEN.replace(limits=Limits(default=100)), OPEN])
def test_a_reply_that_was_not_read_is_not_answered_either(policy: Policy) -> None:
    nest = b"[" * 2000
    for data in (
        b'{"jsonrpc":"2.0","id":1,"result":' + nest,
        b'{"id":1,"error":{"code":1,"message":"x","data":' + nest,
    ):
        assert fault_of(data, policy).answer() is None
    for data in (
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"result":' + nest,
        b'{"id":1,"method":"result","params":' + nest,
    ):
        assert fault_of(data, policy).answer() is not None


STRICT = OPEN.replace(strictness="strict")


@pytest.mark.parametrize(
    ("data", "answered"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":2}}', True),
        (b'{"jsonrpc":"2.0","method":"m","params":{"a":1,"a":2}}', False),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}', False),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":1,"message":"x"}}', False),
        (b'{"a":1,"a":2}', True),
    ],
)
def test_a_duplicate_member_is_answered_where_a_request_has_it(data: bytes, answered: bool) -> None:
    fault = fault_of(data, STRICT)
    assert fault.rule == "jsonrpc.text.duplicate-key"
    assert (fault.answer() is not None) is answered


def test_where_null_makes_a_notification_it_is_not_answered() -> None:
    policy = OPEN.replace(null_id="as-notification")
    data = b'{"jsonrpc":"2.0","id":null,"method":"m","params":5}'
    assert fault_of(data, policy).answer() is None
    assert fault_of(data).answer() is not None


def test_a_reply_in_the_wrong_batch_is_not_answered() -> None:
    data = b'[{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":2,"result":{}}]'
    batch = Codec(OPEN).decode(data)
    assert isinstance(batch, Batch)
    (fault,) = batch.faults
    assert (fault.rule, fault.where, fault.answer()) == ("jsonrpc.batch.mixed", "/1", None)


@pytest.mark.parametrize("id", ["", '"id":null,'], ids=["absent", "null"])
def test_the_fault_of_a_result_without_an_id_names_rule_and_place(id: str) -> None:
    data = b'{"jsonrpc":"2.0",%s"result":{}}' % id.encode()
    fault = fault_of(data)
    assert (fault.rule, fault.where) == ("jsonrpc.reply.id-required", "/id")
    batch = Codec(OPEN).decode(b'[{"jsonrpc":"2.0","id":1,"result":{}},%s]' % data)
    assert isinstance(batch, Batch)
    (fault,) = batch.faults
    assert (fault.rule, fault.where) == ("jsonrpc.reply.id-required", "/1/id")


# Places


def test_the_place_in_a_batch_begins_with_the_element() -> None:
    good = b'{"jsonrpc":"2.0","id":1,"method":"m"}'
    bad = [
        (b"5", ""),
        (b'{"jsonrpc":"1.0"}', "/jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":5}', "/params"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}', "/error/code"),
    ]
    for text, where in bad:
        batch = Codec(OPEN).decode(b"[" + good + b"," + text + b"]")
        assert isinstance(batch, Batch)
        fault = batch[1]
        assert isinstance(fault, InvalidMessage)
        assert fault.where == f"/1{where}"


def test_invalid_utf8_is_reported_with_its_byte_position() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'
    assert fault_of(data).got == f"byte {data.index(0xFF)}"


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_byte_order_mark_breaks_a_rule_of_its_own(mark: bytes) -> None:
    assert fault_of(mark + b"{}").rule == "jsonrpc.text.bom"


# Small things


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"{}", "object"),
        (b" [1]", "array"),
        (b'\n\r\t "x"', "string"),
        (b"true", "boolean"),
        (b"false", "boolean"),
        (b"null", "null"),
        (b"0", "number"),
        (b"-1", "number"),
        (b"", "nothing"),
        (b"  ", "nothing"),
    ],
)
def test_json_kind_is_read_from_the_first_character(text: bytes, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(("length", "limit"), list(product([0, 1, 2, 3, 4, 50], [1, 3])))
def test_elements_are_listed_up_to_a_limit(length: int, limit: int) -> None:
    items = [b'{"n":%d}' % n for n in range(length)]
    found = elements_of(b"[" + b" , ".join(items) + b"]", limit)
    if length > limit:
        assert found is None
    else:
        assert found is not None
        assert [bytes(item) for item in found] == items


def test_the_symbols_of_the_rules_are_known() -> None:
    assert {row.answer for row in RULES.values()} <= set(ErrorKind)
