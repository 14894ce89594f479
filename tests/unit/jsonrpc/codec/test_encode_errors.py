"""What a caller did wrong when a message cannot be written, and where."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import pytest
from msgspec import UNSET, Raw, Struct

from trunkline.errors import IdsExhausted, InvalidMessage, LocalProtocolError
from trunkline.jsonrpc import (
    Batch,
    Codec,
    ContentLengthFraming,
    EnvelopeExtras,
    ErrorObject,
    Event,
    Failure,
    IdSource,
    LengthPrefixFraming,
    NewlineFraming,
    Notification,
    OutgoingRequests,
    Peer,
    Pending,
    Policy,
    Request,
    Success,
    encode,
    encode_event,
)
from trunkline.jsonrpc.codec.encode_errors import UNWRITABLE, check_finite, explain
from trunkline.jsonrpc.messages import SentRequest
from trunkline.spec.jsonrpc import LOCAL_RULES

NAN = math.nan
STRICT = Policy(strictness="strict", batch="accept", params="structured")
REJECT = Policy(unknown_code="reject")


class Point(Struct, rename="camel"):
    first_one: Any
    second: Any = None


class Row(Struct, array_like=True):
    cell: Any


@dataclass
class Plain:
    inner: Any
    unset: int = field(init=False)


@dataclass(slots=True)
class Slotted:
    inner: Any


class Attrs:
    """What the encoder takes for an attrs class, without the package."""

    __attrs_attrs__ = (SimpleNamespace(name="inner"),)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


class Pair(NamedTuple):
    first: Any
    second: Any


class OwnDict(dict[str, Any]):
    pass


class OwnList(list[Any]):
    pass


class Constant(enum.Enum):
    LOST = math.nan


class OwnFloat(float):
    pass


class LooksLikeADataclass:
    __dataclass_fields__ = 5


def refused(message: Any, policy: Policy | None = None) -> LocalProtocolError:
    """Return what is said of a message that is not written."""
    codec = Codec() if policy is None else Codec(policy)
    with pytest.raises(LocalProtocolError) as caught:
        codec.encode(message)
    return caught.value


# Every sentence can be heard


def closed_peer() -> None:
    peer = Peer(Codec(), write=lambda *_: None, on_request=lambda *_: None)
    peer.close()
    peer.send_notification("m")


def extras_in_a_plain_envelope() -> None:
    peer = Peer(Codec(), write=lambda *_: None, on_request=lambda *_: None)
    peer.send_request("m", envelope=EnvelopeExtras(auth="x"))


def cyclic() -> None:
    value: list[Any] = []
    value.append(value)
    encode(Request("m", value, id=1))


def taken_id() -> None:
    outgoing = OutgoingRequests()
    outgoing.open(Pending(1, "m"))
    outgoing.open(Pending(1, "m"))


def used_up() -> None:
    IdSource(first=1, maximum=0).next()


# What another part refuses is in its own tests; a name here only says that it is theirs.
ELSEWHERE = {
    "jsonrpc.batch.not-allowed",
    "jsonrpc.error.code-range",  # in `compat.pierre`
    "jsonrpc.framing.newline-inside",
    "jsonrpc.framing.not-utf-8",
    "jsonrpc.framing.too-long",
    "sse.field.line-break",
    "sse.retry.negative",
}
PROVOKED: dict[str, Callable[[], object]] = {
    "jsonrpc.id.type": lambda: encode(Request("m", id=True)),
    "jsonrpc.id.in-use": taken_id,
    "jsonrpc.id.exhausted": used_up,
    "jsonrpc.number.finite": lambda: encode(Request("m", {"a": NAN}, id=1)),
    "jsonrpc.value.unserialisable": lambda: encode(Request("m", {"a": object()}, id=1)),
    "jsonrpc.value.cyclic": cyclic,
    "jsonrpc.text.surrogate": lambda: encode(Request("m", {"a": "\ud800"}, id=1)),
    "jsonrpc.message.kind": lambda: encode({"jsonrpc": "2.0"}),  # type: ignore[arg-type]
    "jsonrpc.reply.one-outcome": lambda: Codec(STRICT).encode(Success(1, UNSET)),
    "jsonrpc.batch.empty": lambda: encode(Batch()),
    "jsonrpc.batch.mixed": lambda: encode(Batch([Request("m", id=1), Success(1, {})])),
    "jsonrpc.error.unknown-code": lambda: Codec(REJECT).encode(Failure(1, ErrorObject(5, "x"))),
    "jsonrpc.error.empty-message": lambda: Codec(REJECT).encode(
        Failure(1, ErrorObject(-32603, ""))
    ),
    "jsonrpc.envelope.not-allowed": extras_in_a_plain_envelope,
    "jsonrpc.method.type": lambda: Codec(STRICT).encode(Notification("")),
    "jsonrpc.params.type": lambda: Codec(STRICT).encode(Notification("m", "text")),
    "jsonrpc.peer.closed": closed_peer,
}


@pytest.mark.parametrize("rule", PROVOKED)
def test_a_rule_is_broken_with_its_own_sentence(rule: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        PROVOKED[rule]()
    error = caught.value
    assert (error.rule, error.expected) == (rule, LOCAL_RULES[rule])
    assert str(error).endswith(f": expected {LOCAL_RULES[rule]}")


def test_every_local_rule_is_tested() -> None:
    assert PROVOKED.keys() | ELSEWHERE == LOCAL_RULES.keys()
    assert issubclass(IdsExhausted, LocalProtocolError)
    # They are still there to refuse it.
    assert all((NewlineFraming, ContentLengthFraming, LengthPrefixFraming, Event, encode_event))


def test_nothing_hangs_on_a_refusal() -> None:
    for provoke in PROVOKED.values():
        with pytest.raises(LocalProtocolError) as caught:
            provoke()
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


# NaN and infinities


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_has_not_is_refused_with_its_place(number: float) -> None:
    error = refused(Request("m", {"a": [1, {"b": number}]}, id=1))
    assert (error.rule, error.where) == ("jsonrpc.number.finite", "/params/a/1/b")
    assert repr(error.got) == repr(number)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (NAN, ""),
        ([NAN], "/0"),
        ((1, NAN), "/1"),
        ({NAN}, "/0"),
        (frozenset({NAN}), "/0"),
        ({"a~/b": NAN}, "/a~0~1b"),
        (OwnDict(a=NAN), "/a"),
        (OrderedDict(a=[NAN]), "/a/0"),
        (defaultdict(list, a=[1, 2, NAN]), "/a/2"),
        (OwnList([NAN]), "/0"),
        (Pair(1, NAN), "/1"),
        (Point(1, NAN), "/second"),
        (Point(NAN), "/firstOne"),
        (Row(NAN), "/cell"),
        (Plain(NAN), "/inner"),
        (Slotted([Plain({"x": NAN})]), "/inner/0/inner/x"),
        (Attrs([NAN]), "/inner/0"),
        (Constant.LOST, ""),
        ({1: NAN}, "/<int>"),
        ([None, [None, {"a": None, "b": (None, NAN)}]], "/1/1/b/1"),
    ],
)
def test_nan_is_found_in_whatever_the_encoder_writes(value: Any, where: str) -> None:
    for message in (
        Request("m", value, id=1),
        Notification("m", value),
        SentRequest(1, "m", value),
    ):
        error = refused(message)
        assert (error.rule, error.where) == ("jsonrpc.number.finite", f"/params{where}")
    assert refused(Success(1, value)).where == f"/result{where}"
    failure = Failure(1, ErrorObject(1, "x", value))
    assert refused(failure).where == f"/error/data{where}"
    assert refused(Batch([Request("m", id=1), Request("m", value, id=2)])).where == (
        f"/1/params{where}"
    )


def test_null_is_a_value_and_passes() -> None:
    assert encode(Request("m", {"a": None, "b": "null NaN"}, id=1)) == (
        b'{"jsonrpc":"2.0","method":"m","params":{"a":null,"b":"null NaN"},"id":1}'
    )


@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_a_message_of_any_size_with_nulls_and_no_nan_passes(size: int) -> None:
    message = Request("m", {"a": [None, 1.5, "null", {"b": None}] * size}, id=1)
    assert encode(message).count(b"null") == 3 * size


@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_one_nan_in_a_message_of_any_size_is_found(size: int) -> None:
    error = refused(Request("m", {"a": [None, 1.5, {"b": None}] * size + [NAN]}, id=1))
    assert error.where == f"/params/a/{3 * size}"


@pytest.mark.parametrize("text", ["x" * 10_000, "null" * 10_000])
def test_one_nan_beside_a_long_text_is_found(text: str) -> None:
    encode(Success(1, {"text": text}))
    assert refused(Success(1, {"text": text, "n": NAN})).where == "/result/n"
    assert refused(Success(1, {"text": text, "n": Plain(NAN)})).where == "/result/n/inner"
    assert refused(Success(1, {"text": text, "n": Constant.LOST})).where == "/result/n"


def test_a_message_may_nest_as_deep_as_the_encoder_writes() -> None:
    # Looking for a NaN must not need more of the stack than writing did.
    value: Any = None
    for _ in range(900):
        value = [value]
    written = encode(Request("m", value, id=1))
    assert b"[null]" in written
    deep: Any = NAN
    for _ in range(900):
        deep = [deep]
    error = refused(Request("m", deep, id=1))
    assert error.rule == "jsonrpc.number.finite"
    assert len(error.where) < 1010


def test_nan_is_looked_for_with_little_of_the_stack_left() -> None:
    def at(depth: int) -> bytes:
        return encode(Success(1, {"a": [[[[None]]]]})) if depth == 0 else at(depth - 1)

    assert at(850).endswith(b"[[[[null]]]]}}")


def test_a_value_by_itself_can_be_checked() -> None:
    check_finite({"a": [1.5, None]})
    with pytest.raises(LocalProtocolError, match="at /a/0"):
        check_finite({"a": [NAN]})


# What JSON has not


@pytest.mark.parametrize(
    ("value", "where", "got"),
    [
        (object(), "", "an object"),
        ({"a": {"b": [1, object()]}}, "/a/b/1", "an object"),
        ({"a": 2j}, "/a", "a complex"),
        ([range(3)], "/0", "a range"),
        (UserDict(a=1), "", "an UserDict"),
        (MappingProxyType({"a": 1}), "", "a mappingproxy"),
        ({"a": {}.keys()}, "/a", "a dict_keys"),
        ({"a": OwnFloat(1.5)}, "/a", "an OwnFloat"),
        ({"a": {"b": 1, (1, 2): 3}}, "/a/<tuple>", "a tuple as a member name"),
        ({None: 1}, "/<NoneType>", "a NoneType as a member name"),
        ({True: 1}, "/<bool>", "a bool as a member name"),
        (Point([object()]), "/firstOne/0", "an object"),
        (Plain({"a": object()}), "/inner/a", "an object"),
        (Slotted(object()), "/inner", "an object"),
        ({"a": LooksLikeADataclass()}, "/a", "a LooksLikeADataclass"),
        ({"a": int}, "/a", "a type"),
        ({"a": UNSET}, "/a", "an UnsetType"),
        ([10**5000], "/0", "an int of 16610 bits"),
        ([{"x": [1] * 50}, {"a~/b": {1, 2j}}], None, "a complex"),
    ],
)
def test_unserialisable_value_is_named_with_its_place(
    value: Any, where: str | None, got: str
) -> None:
    error = refused(Request("m", value, id=1))
    assert (error.rule, error.got) == ("jsonrpc.value.unserialisable", got)
    if where is not None:
        assert error.where == f"/params{where}"
    else:
        assert error.where.startswith("/params/1/a~0~1b/")


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (Request("m", {"a": ["x", "\ud800"]}, id=1), "/params/a/1"),
        (Request("m", {"\udfff": 1}, id=1), "/params/\udfff"),
        (Request("\ud800", id=1), "/method"),
        (Request("m", id="\ud800"), "/id"),
        (Failure(1, ErrorObject(1, "\ud800")), "/error/message"),
        (Batch([Success(1, {}), Success(2, {"a": "\ud800"})]), "/1/result/a"),
    ],
)
def test_a_lone_surrogate_is_refused_with_its_place(message: Any, where: str) -> None:
    error = refused(message)
    assert (error.rule, error.where) == ("jsonrpc.text.surrogate", where)
    # What is said of it can be written to any stream.
    str(error).encode()
    repr(error).encode()


@pytest.mark.parametrize("shape", ["list", "dict", "struct"])
def test_a_value_that_contains_itself_is_refused(shape: str) -> None:
    value: Any
    if shape == "list":
        value = []
        value.append(value)
    elif shape == "dict":
        value = {"a": {}}
        value["a"]["b"] = value
    else:
        value = Point(1)
        value.second = [value]
    for message in (Request("m", value, id=1), Batch([Notification("m", value)])):
        assert refused(message).rule == "jsonrpc.value.cyclic"


def test_fault_before_a_cycle_is_reported_first() -> None:
    value: dict[str, Any] = {"a": object()}
    value["b"] = value
    assert refused(Request("m", value, id=1)).where == "/params/a"


@pytest.mark.parametrize("raw", [b"{}", b'{"a":null}', b"[1]"])
def test_raw_json_is_written_as_it_is(raw: bytes) -> None:
    assert raw in encode(Request("m", Raw(raw), id=1))
    assert raw in encode(Success(1, {"a": Raw(raw), "b": None}))


# Ids


@pytest.mark.parametrize("id", [True, False, 1.0, 1.5, None, [1], {"a": 1}, b"1", object(), UNSET])
def test_an_id_is_a_str_or_an_int(id: Any) -> None:
    messages: list[Any] = [Request("m", id=id), SentRequest(id, "m"), Success(id, {})]
    for message in messages:
        error = refused(message)
        assert (error.rule, error.where) == ("jsonrpc.id.type", "/id")
        error = refused(Batch([Success(1, {}), message]))
        assert (error.rule, error.where) == ("jsonrpc.id.type", "/1/id")


@pytest.mark.parametrize("id", [True, 1.5, [1]])
def test_invalid_id_of_a_failure_is_refused(id: Any) -> None:
    assert refused(Failure(id, ErrorObject(1, "x"))).rule == "jsonrpc.id.type"


def test_an_error_may_answer_what_had_no_readable_id() -> None:
    error = ErrorObject(-32700, "Parse error")
    assert b'"id":null' in encode(Failure(None, error))
    assert b'"id"' not in encode(Failure(UNSET, error))
    assert encode(Batch([Failure(None, error), Failure(UNSET, error), Failure(3, error)]))


@pytest.mark.parametrize("policy", [Policy.jsonrpc(), Policy.pierre()])
def test_null_is_an_id_only_where_it_makes_a_request(policy: Policy) -> None:
    codec = Codec(policy)
    assert b'"id":null' in codec.encode(Request("m", id=None))
    assert b'"id":null' in codec.encode(Success(None, {}))
    # Left out it would make a notification of a request, and an orphan of a reply.
    absent: Any = UNSET
    assert refused(Request("m", id=absent), policy).rule == "jsonrpc.id.type"
    assert refused(Success(absent, {}), policy).rule == "jsonrpc.id.type"


@pytest.mark.parametrize("id", [0, -1, 2**64, 10**100, "", "7", "é"])
def test_every_str_and_int_is_an_id(id: int | str) -> None:
    encode(Request("m", id=id))
    encode(Batch([Success(id, {})]))


# What is no message


@pytest.mark.parametrize(
    ("thing", "got"),
    [
        (None, "a NoneType"),
        (5, "an int"),
        ("text", "a str"),
        ({"id": 1, "method": "m"}, "a dict"),
        ([Request("m", id=1)], "a list"),
        ((Request("m", id=1),), "a tuple"),
        (object(), "an object"),
        ({"a": object()}, "a dict"),
        (ErrorObject(1, "x"), "an ErrorObject"),
    ],
)
def test_encoding_a_value_that_is_not_a_message_is_refused(thing: Any, got: str) -> None:
    for policy in (None, STRICT, Policy.erlmcp()):
        error = refused(thing, policy)
        assert (error.rule, error.where, error.got) == ("jsonrpc.message.kind", "", got)


@pytest.mark.parametrize(
    "thing", [5, None, "x", {}, Batch([Request("m", id=1)]), ErrorObject(1, "x")]
)
def test_batch_element_that_is_not_a_message_is_refused_with_its_place(thing: Any) -> None:
    assert refused(Batch([thing])).where == "/0"
    error = refused(Batch([Notification("m"), Request("m", id=1), thing]))
    assert (error.rule, error.where) == ("jsonrpc.message.kind", "/2")


def test_a_fault_that_stands_in_a_batch_is_not_sent_on() -> None:
    fault = InvalidMessage("jsonrpc.id.type", code=-32600, message="Invalid Request", id=1)
    error = refused(Batch([Request("m", id=1), fault]))
    assert (error.rule, error.got) == ("jsonrpc.message.kind", "an InvalidMessage")


def test_in_strict_codecs_a_lookalike_is_refused() -> None:
    lookalike = SimpleNamespace(id=1, method="m")
    assert refused(lookalike, STRICT).rule == "jsonrpc.message.kind"
    assert refused(lookalike).rule == "jsonrpc.value.unserialisable"


# Batches


def test_calls_and_replies_do_not_share_a_batch() -> None:
    call, note, sent = Request("m", id=1), Notification("n"), SentRequest(5, "m")
    success, failure = Success(1, {}), Failure(2, ErrorObject(1, "x"))
    mixed: list[list[Any]] = [
        [call, success],
        [success, call],
        [note, failure],
        [success, failure, note],
        [sent, success],
    ]
    for batch in mixed:
        assert refused(Batch(batch)).rule == "jsonrpc.batch.mixed"
    calls: list[Any] = [call, note, sent]
    encode(Batch(calls))
    encode(Batch([success, failure]))


def test_an_empty_batch_is_refused_under_every_policy() -> None:
    for policy in (None, STRICT, Policy.jsonrpc(), Policy.erlmcp(), Policy.mcpp()):
        assert refused(Batch(), policy).rule == "jsonrpc.batch.empty"


def test_a_batch_is_written_in_order() -> None:
    batch = Batch([Request("a", id=1), Notification("b"), Request("c", id="3")])
    assert encode(batch) == (
        b'[{"jsonrpc":"2.0","method":"a","id":1},{"jsonrpc":"2.0","method":"b"},'
        b'{"jsonrpc":"2.0","method":"c","id":"3"}]'
    )


# Codes nobody defined


def test_an_unknown_code_is_written_refused_or_made_internal() -> None:
    failure = Failure(1, ErrorObject(424242, "Odd", {"a": 1}))
    assert b'"code":424242' in encode(failure)
    error = refused(failure, REJECT)
    assert (error.where, error.got) == ("/error/code", 424242)
    written = Codec(Policy(unknown_code="to-internal")).encode(failure)
    assert written == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Odd","data":{"a":1}}}'
    )


def test_an_unknown_code_in_a_batch_is_refused_with_its_place() -> None:
    batch = Batch([Success(1, {}), Failure(2, ErrorObject(424242, "Odd"))])
    assert refused(batch, REJECT).where == "/1/error/code"
    written = Codec(Policy(unknown_code="to-internal")).encode(batch)
    assert b'"code":-32603' in written
    assert batch[1] == Failure(2, ErrorObject(424242, "Odd"))


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603])
def test_a_known_code_is_written_whatever_becomes_of_others(code: int) -> None:
    for unknown in ("pass", "to-internal", "reject"):
        policy = Policy().replace(unknown_code=unknown)
        written = Codec(policy).encode(Failure(1, ErrorObject(code, "x")))
        assert b'"code":%d' % code in written


def test_a_code_is_known_by_profile_and_revision() -> None:
    # the row: K-25
    failure = Failure(1, ErrorObject(-32002, "x"))
    Codec(Policy.mcp("2025-11-25").replace(unknown_code="reject")).encode(failure)
    assert refused(failure, REJECT).got == -32002


@pytest.mark.parametrize("error", [None, UNSET, "x", {"code": 1, "message": "x"}])
def test_a_failure_without_an_error_is_refused_where_errors_are_looked_at(error: Any) -> None:
    for policy in (STRICT, REJECT, Policy.erlmcp()):
        problem = refused(Failure(1, error), policy)
        assert (problem.rule, problem.where) == ("jsonrpc.reply.one-outcome", "/error")
    assert refused(Failure(None, error)).rule == "jsonrpc.reply.one-outcome"


# Strict codecs look at what they write


@pytest.mark.parametrize("method", ["", None, 5, b"m", ["m"]])
def test_a_strict_codec_wants_a_method_name(method: Any) -> None:
    messages: list[Any] = [Request(method, id=1), Notification(method), SentRequest(1, method)]
    for message in messages:
        error = refused(message, STRICT)
        assert (error.rule, error.where) == ("jsonrpc.method.type", "/method")
        assert refused(Batch([message]), STRICT).where == "/0/method"


@pytest.mark.parametrize("params", ["text", 5, True, 1.5, b"x", object(), {1}])
def test_a_strict_codec_wants_params_with_structure(params: Any) -> None:
    error = refused(Request("m", params, id=1), STRICT)
    assert (error.rule, error.where) == ("jsonrpc.params.type", "/params")


@pytest.mark.parametrize("params", [None, {}, [], (), {"a": 1}, Point(1), Raw(b"{}")])
def test_a_strict_codec_takes_params_of_every_allowed_kind(params: Any) -> None:
    assert Codec(STRICT).encode(Request("m", params, id=1))


def test_a_strict_codec_writes_what_others_write() -> None:
    for message in (
        Request("m", {"a": 1}, id=1),
        Notification("m"),
        Success("x", {}),
        Failure(None, ErrorObject(1, "x")),
        Batch([Request("m", id=1), Notification("m")]),
    ):
        assert Codec(STRICT).encode(message) == encode(message)


# Explaining by itself


def test_an_error_that_explains_itself_is_left_alone() -> None:
    error = LocalProtocolError("jsonrpc.id.type")
    assert explain(Request("m", id=1), error) is error


def test_explain_finds_the_fault_in_a_plain_value() -> None:
    error = explain({"a": [1, object()]}, TypeError())
    assert (error.rule, error.where) == ("jsonrpc.value.unserialisable", "/a/1")


def test_explain_falls_back_to_the_message_kind_rule() -> None:
    error = explain(Request("m", id=1), TypeError("for reasons of its own"))
    assert (error.rule, error.got) == ("jsonrpc.message.kind", "a Request")


def test_nothing_that_the_encoder_raises_is_let_through() -> None:
    assert all(issubclass(kind, Exception) for kind in UNWRITABLE)
    assert issubclass(UnicodeEncodeError, UNWRITABLE)
    assert issubclass(RecursionError, UNWRITABLE)
