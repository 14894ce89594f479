"""The codec's own promises: what goes in, what comes out, and what never does."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from array import array
from collections.abc import Callable
from functools import partial
from itertools import islice, product
from typing import Any, get_args

import pytest
from msgspec import UNSET, Raw, Struct

from tests import effort
from tests.effort import share
from trunkline.errors import InvalidMessage, LocalProtocolError
from trunkline.jsonrpc import (
    Batch,
    Call,
    Codec,
    ErrorObject,
    ExtendedCall,
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
from trunkline.jsonrpc.codec.decoders import Expect

MIB = 1024 * 1024
OPEN = Policy(batch="accept")
STRICT = OPEN.replace(strictness="strict")
PRESETS = ("mcp", "jsonrpc", "erlmcp", "pierre", "mcpp")
EXPECTATIONS: tuple[Expect, ...] = get_args(Expect)

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,"\xc3\xa9"]}}'
NOTE = b'{"jsonrpc":"2.0","method":"m"}'
SUCCESS = b'{"jsonrpc":"2.0","id":"x","result":{"a":null}}'
FAILURE = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
MESSAGES: dict[bytes, Any] = {
    REQUEST: Request("m", {"a": [1, "é"]}, id=1),
    NOTE: Notification("m"),
    SUCCESS: Success("x", {"a": None}),
    FAILURE: Failure(None, ErrorObject(-32700, "Parse error")),
}
BATCH = b"[" + NOTE + b"," + REQUEST + b"]"


def fault_of(read: Callable[[Any], Any], data: Any) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as caught:
        read(data)
    return caught.value


def attempt(read: Callable[[Any], Any], data: Any) -> InvalidMessage | None:
    """Return the fault of what is refused; nothing else may be raised."""
    try:
        read(data)
    except InvalidMessage as fault:
        return fault
    return None


# Reading


@pytest.mark.parametrize("expect", EXPECTATIONS)
@pytest.mark.parametrize("data", MESSAGES)
def test_expect_option_does_not_change_the_decoded_message(data: bytes, expect: Expect) -> None:
    for policy in (OPEN, STRICT, Policy()):
        assert Codec(policy, expect=expect).decode(data) == MESSAGES[data]


@pytest.mark.parametrize("expect", EXPECTATIONS)
def test_a_batch_is_read_whatever_is_expected(expect: Expect) -> None:
    codec = Codec(OPEN, expect=expect)
    assert codec.decode(BATCH) == Batch([MESSAGES[NOTE], MESSAGES[REQUEST]])
    assert type(codec.decode(BATCH)) is Batch
    assert [one.method for one in codec.envelope(BATCH)] == ["m", "m"]  # type: ignore[union-attr]


def test_the_functions_use_the_default_policy() -> None:
    assert decode(BATCH) == Codec(OPEN).decode(BATCH)
    assert decode(REQUEST) == MESSAGES[REQUEST]
    assert encode(Request("m", id=1)) == Codec().encode(Request("m", id=1))
    with pytest.raises(InvalidMessage):
        decode(BATCH, Policy())
    assert decode(REQUEST, Policy.pierre()) == ExtendedRequest("m", {"a": [1, "é"]}, id=1)


def test_a_message_may_stand_among_blanks() -> None:
    assert decode(b" \r\n\t" + REQUEST + b"\n ") == MESSAGES[REQUEST]


def test_a_codec_is_used_again_after_a_fault() -> None:
    codec = Codec(OPEN, expect="calls")
    for _ in range(3):
        fault_of(codec.decode, b"{")
        fault_of(codec.envelope, b"[]")
        assert codec.decode(REQUEST) == MESSAGES[REQUEST]
        assert isinstance(codec.envelope(REQUEST), Call)


def test_invalid_element_of_a_batch_leaves_the_others_valid() -> None:
    data = b"[" + REQUEST + b",5," + NOTE + b"]"
    batch = Codec(OPEN).decode(data)
    assert isinstance(batch, Batch)
    assert batch.messages == [MESSAGES[REQUEST], MESSAGES[NOTE]]
    assert [fault.where for fault in batch.faults] == ["/1"]
    first, second, third = Codec(OPEN).envelope(data)  # type: ignore[misc]
    assert isinstance(first, Call)
    assert isinstance(second, InvalidMessage)
    assert isinstance(third, Call)


# What a message may come as


def mutable(data: bytes) -> list[Any]:
    return [data, bytearray(data), memoryview(data), memoryview(bytearray(data)), data.decode()]


@pytest.mark.parametrize("data", [*MESSAGES, BATCH])
def test_bytes_bytearray_memoryview_and_str_are_read_alike(data: bytes) -> None:
    codec = Codec(OPEN, expect="calls")
    expected = codec.decode(data)
    for form in mutable(data):
        assert codec.decode(form) == expected
        assert repr(codec.envelope(form)) == repr(codec.envelope(data))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"jsonrpc":"1.0","id":1,"method":"m"}'])
def test_bytes_bytearray_memoryview_and_str_are_refused_alike(data: bytes) -> None:
    for form in mutable(data):
        fault = fault_of(Codec(OPEN).decode, form)
        assert fault.answer() == fault_of(Codec(OPEN).decode, data).answer()


def test_a_memoryview_may_be_a_part_or_have_gaps() -> None:
    spread = bytes(byte for one in REQUEST for byte in (one, 0))
    assert decode(memoryview(spread)[::2]) == MESSAGES[REQUEST]
    assert decode(memoryview(b"xx" + REQUEST + b"yy")[2:-2]) == MESSAGES[REQUEST]


def test_str_with_a_lone_surrogate_breaks_the_utf8_rule() -> None:
    assert fault_of(decode, '{"jsonrpc":"2.0","method":"\ud800"}').rule == "jsonrpc.text.utf8"


@pytest.mark.parametrize("thing", [None, 5, {"jsonrpc": "2.0"}, [REQUEST], array("b", REQUEST)])
def test_anything_else_is_a_type_error_with_a_sentence(thing: Any) -> None:
    reads: list[Any] = [decode, Codec().decode, Codec().envelope, Codec(STRICT).decode]
    for read in reads:
        with pytest.raises(TypeError) as caught:
            read(thing)
        assert str(caught.value) == (
            f"a message is bytes, bytearray, memoryview or str, not {type(thing).__name__}"
        )


def test_an_envelope_keeps_nothing_of_a_buffer_that_changes() -> None:
    # A transport reads the next message into the same buffer.
    for data in (REQUEST, SUCCESS, BATCH):
        buffer = bytearray(data)
        forms: list[Any] = [buffer, memoryview(buffer)]
        codecs = [Codec(OPEN), Codec(OPEN, expect="calls"), Codec(STRICT)]
        for codec, form in product(codecs, forms):
            buffer[:] = data
            found = codec.envelope(form)
            before = repr(found)
            buffer[:] = b"x" * len(buffer)
            assert repr(found) == before
        del form
        forms.clear()
        buffer.clear()  # would be refused if anybody held on to it


# Envelopes


def test_an_envelope_is_what_routing_needs() -> None:
    call = Codec().envelope(REQUEST)
    assert isinstance(call, Call)
    assert (call.id, call.method) == (1, "m")
    assert json.loads(bytes(call.params)) == {"a": [1, "é"]}
    note = Codec().envelope(NOTE)
    assert isinstance(note, Call)
    assert (note.id, note.params) == (UNSET, UNSET)
    reply = Codec().envelope(SUCCESS)
    assert isinstance(reply, Reply)
    assert isinstance(reply.result, Raw)
    assert (reply.id, bytes(reply.result), reply.error) == ("x", b'{"a":null}', UNSET)
    failed = Codec().envelope(FAILURE)
    assert isinstance(failed, Reply)
    assert (failed.id, failed.result) == (None, UNSET)
    assert failed.error == ErrorObject(-32700, "Parse error")


def test_the_envelope_of_pierre_has_its_extensions() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","auth":"t","metadata":{"k":"v"}}'
    call = Codec(Policy.pierre(), expect="calls").envelope(data)
    assert isinstance(call, ExtendedCall)
    assert (call.auth, call.headers, call.metadata) == ("t", UNSET, {"k": "v"})


def test_envelope_does_not_decode_params() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1e999}}'
    assert isinstance(Codec(expect="calls").envelope(data), Call)
    assert fault_of(Codec().decode, data).rule == "jsonrpc.limit.number"


# Typed params


class Point(Struct):
    x: int
    y: int = 0


class Login(Struct, forbid_unknown_fields=True):
    password: str


TYPED = Codec(OPEN, expect="calls", params={"point": Point, "login": Login})


def call(method: str, params: str | None, id: str = "1") -> bytes:
    with_params = "" if params is None else f',"params":{params}'
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}"{with_params}}}'.encode()


def test_params_of_a_known_method_are_read_in_the_same_pass() -> None:
    found: Any = TYPED.envelope(call("point", '{"x":5}'))
    assert (found.id, found.method, found.params) == (1, "point", Point(5))
    found = TYPED.envelope(b'{"method":"login","params":{"password":"p"},"jsonrpc":"2.0"}')
    assert (found.id, found.method, found.params) == (UNSET, "login", Login("p"))


def test_params_of_an_unknown_method_are_raw() -> None:
    found: Any = TYPED.envelope(call("other", '{"x":5}'))
    assert isinstance(found, Call)
    assert (found.method, bytes(found.params)) == ("other", b'{"x":5}')


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("point", '{"x":"5"}'),
        ("point", "{}"),
        ("point", "[5]"),
        ("login", '{"password":"p","x":1}'),
    ],
)
def test_params_that_do_not_fit_are_raw(method: str, params: str) -> None:
    # Who knows the type reads them again, and can say where they are wrong.
    found: Any = TYPED.envelope(call(method, params))
    assert isinstance(found, Call)
    assert (found.method, bytes(found.params)) == (method, params.encode())


def test_typed_call_without_params_has_unset_params() -> None:
    found: Any = TYPED.envelope(call("point", None))
    assert (found.method, found.params) == ("point", UNSET)


@pytest.mark.parametrize("count", [1, 2])
def test_a_message_without_a_method_is_not_taken_for_the_one_that_has_a_type(count: int) -> None:
    types = dict(islice({"point": Point, "login": Login}.items(), count))
    codec = Codec(OPEN, expect="calls", params=types)
    for text in (b'{"jsonrpc":"2.0","id":1,"params":{"x":1,"y":2}}', b'{"jsonrpc":"2.0","id":1}'):
        assert fault_of(codec.envelope, text).rule == "jsonrpc.message.kind"
    assert codec.envelope(b'{"jsonrpc":"2.0","id":1,"method":"point","params":{"x":1,"y":2}}')


def test_a_batch_of_typed_calls_is_read_in_one_pass_or_all_raw() -> None:
    both = b"[%s,%s]" % (call("point", '{"x":1}'), call("login", '{"password":"p"}', "2"))
    points: Any = TYPED.envelope(both)
    assert [one.params for one in points] == [Point(1), Login("p")]
    some: Any = TYPED.envelope(b"[%s,%s]" % (call("point", '{"x":1}'), call("other", "{}", "2")))
    assert all(isinstance(one, Call) and isinstance(one.params, Raw) for one in some)


def test_types_do_not_change_what_is_refused() -> None:
    for data in (call("", '{"x":5}'), call("point", '{"x":5}', "null"), b"{", b"[]"):
        typed, plain = fault_of(TYPED.envelope, data), fault_of(Codec(OPEN).envelope, data)
        assert typed.answer() == plain.answer()


def test_types_of_params_are_for_the_envelope() -> None:
    assert TYPED.decode(call("point", '{"x":5}')) == Request("point", {"x": 5}, id=1)


def test_a_reply_is_read_by_a_codec_with_types() -> None:
    assert isinstance(TYPED.envelope(SUCCESS), Reply)


def test_a_typed_call_prints_no_secret() -> None:
    found = TYPED.envelope(call("login", '{"password":"hunter2"}'))
    assert "hunter2" not in repr(found)
    assert "login" in repr(found)


# Writing and describing


@pytest.mark.parametrize("preset", PRESETS)
def test_encoded_messages_decode_to_equal_ones(preset: str) -> None:
    codec = Codec(Policy.named(preset).replace(envelope="plain", batch="accept"))
    for message in (
        Request("m", {"a": 1}, id=1),
        Notification("m"),
        Success("x", {}),
        Failure(UNSET, ErrorObject(-32603, "x", None)),
        Batch([Request("a", id=1), Notification("b")]),
    ):
        assert codec.decode(codec.encode(message)) == message


def test_writing_changes_nothing() -> None:
    params = {"a": [1]}
    message = Request("m", params, id=1)
    assert encode(message) == encode(message)
    assert message.params is params
    assert params == {"a": [1]}


def test_a_description_is_a_repr_unless_the_policy_shows_more() -> None:
    for message in (*MESSAGES.values(), Batch(MESSAGES.values())):
        assert Codec().describe(message) == repr(message)
        assert Codec(Policy.pierre()).describe(message) == repr(message)
    extended = ExtendedRequest("m", id=1, auth="a" * 30)
    assert "[redacted]" in Codec().describe(extended)
    assert "aaaaaaaaaa...aaaaaaaa" in Codec(Policy.pierre()).describe(extended)
    # Not in a batch: a line of a log holds one token at most.
    assert "aaa" not in Codec(Policy.pierre()).describe(Batch([extended]))


def test_a_fault_of_the_surroundings_is_made_by_its_rule() -> None:
    fault = Codec(OPEN).fault("jsonrpc.id.duplicate", where="/id", id=7)
    assert (fault.rule, fault.id, fault.code) == ("jsonrpc.id.duplicate", 7, -32600)
    assert fault.answerable


# Nothing hangs on an error

BAD = [
    b"",
    b"{",
    b"\xff",
    b"5",
    b"[]",
    b"[" * 5000,
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1e999}}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","auth":5}',
    b'{"jsonrpc":"2.0","id":1,"error":5}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","code":1,"message":"y"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":2},"id":[]}',
    b"x" * 10_000,
]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_a_fault_has_no_cause_and_no_context(data: bytes) -> None:
    # What the decoder said may hold what the peer sent, and would be printed with the fault.
    tiny = OPEN.replace(limits=Limits(default=5000))
    for policy in (OPEN, STRICT, Policy.pierre(), Policy.mcpp(), tiny):
        for read in (Codec(policy).decode, Codec(policy, expect="calls").envelope):
            fault = attempt(read, data)
            if fault is not None:
                assert fault.__cause__ is None
                assert fault.__context__ is None


def test_a_fault_in_a_batch_has_no_cause_and_no_context() -> None:
    batch = Codec(OPEN).decode(b"[5,{},%s]" % BAD[6])
    assert isinstance(batch, Batch)
    assert len(batch.faults) == 3
    for fault in batch.faults:
        assert (fault.__cause__, fault.__context__, fault.__traceback__) == (None, None, None)


@pytest.mark.parametrize(
    "message",
    [
        Request("m", float("nan"), id=1),
        Request("m", object(), id=1),
        Request("m", "\ud800", id=1),
        Request("m", id=True),
        Batch(),
        None,
    ],
    ids=range(6),
)
def test_a_refusal_has_no_cause_and_no_context(message: Any) -> None:
    for codec in (Codec(), Codec(STRICT)):
        with pytest.raises(LocalProtocolError) as caught:
            codec.encode(message)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


# What a hostile text costs


def peak_of(read: Callable[[Any], Any], data: bytes) -> int:
    """Return how many bytes it took to refuse a text, and to answer it."""
    gc.collect()
    tracemalloc.start()
    fault = attempt(read, data)
    answer = fault.answer() if fault is not None else None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer is not None
    return peak


BOMBS: dict[str, Callable[[int], bytes]] = {
    "zeros": lambda size: b"[" + b"0," * (size // 2 - 2) + b"0]",
    "objects": lambda size: b"[" + b"{}," * (size // 3 - 2) + b"{}]",
    "objects, cut": lambda size: b"[" + b"{}," * (size // 3 - 2),
    "arrays": lambda size: b"[" + b"[]," * (size // 3 - 2) + b"[]]",
    "commas": lambda size: b"," * (size // 2),
    "commas in an array": lambda size: b"[" + b"," * (size // 2),
    "brackets": lambda size: b"[" * size,
    "quotes": lambda size: b'"' * size,
}
# What is looked at more closely is tried at an eighth of the size, to save time.
SMALLER_BOMBS: dict[str, Callable[[], bytes]] = {
    "calls": lambda: b"[" + (NOTE + b",") * (2 * MIB // 32) + NOTE + b"]",
    "names": lambda: b"{" + b'"":0,' * (2 * MIB // 5) + b'"":0}',
}


@pytest.mark.parametrize("name", BOMBS)
def test_sixteen_mebibytes_do_not_become_two_hundred_megabytes(name: str) -> None:
    # An eighth of it becomes an eighth; all of it is for a full run.
    size, most = (16 * MIB, 200_000_000) if effort.is_full() else (2 * MIB, 25_000_000)
    data = BOMBS[name](size)
    assert len(data) <= size
    assert peak_of(decode, data) < most
    assert peak_of(Codec().envelope, data) < most


@pytest.mark.parametrize("name", SMALLER_BOMBS)
def test_two_mebibytes_do_not_become_twenty_five_megabytes(name: str) -> None:
    data = SMALLER_BOMBS[name]()
    assert peak_of(decode, data) < 25_000_000
    assert peak_of(Codec().envelope, data) < 25_000_000


def test_unknown_members_are_not_kept_in_memory() -> None:
    data = b"{" + b",".join(b'"%06d":0' % n for n in range(2 * MIB // 11)) + b"}"
    assert peak_of(decode, data) < 25_000_000


def test_lenient_codec_stays_within_the_same_memory() -> None:
    data = b"[" + b"{}," * (2 * MIB // 3) + b"{}]"
    codec = Codec(Policy.mcpp().replace(batch="accept"))
    assert peak_of(codec.decode, data) < 25_000_000


# The stack


def at_depth(depth: int, run: Callable[[], Any]) -> Any:
    return run() if depth == 0 else at_depth(depth - 1, run)


def frames() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


NESTS: dict[str, tuple[bytes, bytes]] = {
    "params": (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":', b"}}"),
    "params of the wrong type": (b'{"jsonrpc":"2.0","id":1,"method":"m","params":', b"}"),
    "params before a fault": (
        b'{"jsonrpc":"2.0","id":1,"method":"m","auth":5,"params":{"a":',
        b"}}",
    ),
    "result": (b'{"jsonrpc":"2.0","id":1,"result":{"a":', b"}}"),
    "error": (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":', b"}}"),
    "error of the wrong type": (b'{"jsonrpc":"2.0","id":1,"error":', b"}"),
    "batch": (b'[5,{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":', b"}}]"),
    "array": (b"", b""),
    "id": (b'{"jsonrpc":"2.0","method":"m","id":', b"}"),
    "version": (b'{"method":"m","id":1,"jsonrpc":', b"}"),
    "unknown member": (b'{"jsonrpc":"2.0","id":1,"method":"m","x":', b"}"),
    "headers": (b'{"jsonrpc":"2.0","id":1,"method":"m","headers":{"a":', b"}}"),
}


@pytest.mark.parametrize("stack", [0, 400, 800])
@pytest.mark.parametrize("name", NESTS)
def test_a_nest_of_any_depth_is_read_or_refused_at_any_depth_of_the_stack(
    name: str, stack: int
) -> None:
    before, after = NESTS[name]
    policies = (
        OPEN,
        Policy.pierre().replace(batch="accept"),
        OPEN.replace(limits=Limits(depth=5000)),
    )
    codecs = [Codec(policy) for policy in policies]
    for codec in codecs:  # decoders are made on first use, and making one takes stack too
        codec.decode(NOTE)
        codec.envelope(NOTE)
        fault_of(codec.decode, b"[5,{")
    room = sys.getrecursionlimit() - frames() - stack
    # Where the guard of the decoder takes hold, to a level; and far from there. Of those levels
    # each is tried with some of the nests, and with all of them in a full run.
    near = range(max(1, room - 60), room + 5)
    turn = 0 if effort.is_full() else [*NESTS].index(name) % 5
    depths = [2, room // 2, *share(near[turn:]), 10 * room]
    if not stack or effort.is_full():
        depths.append(100_000)
    for depth in depths:
        data = before + b"[" * depth + b"]" * depth + after
        for codec in codecs:
            for read in (codec.decode, codec.envelope):
                fault = at_depth(stack, partial(attempt, read, data))
                assert fault is None or fault.rule in AT_THAT_DEPTH, (depth, fault)


# Either it is too deep, or what nests there is wrong in itself.
AT_THAT_DEPTH = {
    "jsonrpc.limit.depth",
    "jsonrpc.params.object",
    "jsonrpc.params.type",
    "jsonrpc.message.object",
    "jsonrpc.error.object",
    "jsonrpc.id.type",
    "jsonrpc.version.value",
    "jsonrpc.envelope.auth",
}


# Corners


def test_a_reply_that_names_a_member_twice_in_its_error_is_not_answered() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","code":1,"message":"y"}}'
    assert fault_of(decode, data).answer() is None


def test_too_large_number_in_headers_breaks_the_number_limit() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","headers":{"x":1e999}}'
    fault = fault_of(Codec(Policy.pierre()).decode, data)
    assert (fault.rule, fault.where, fault.id) == ("jsonrpc.limit.number", "/headers", 1)


def test_a_strict_codec_does_not_answer_what_null_makes_a_notification() -> None:
    policy = STRICT.replace(null_id="as-notification")
    data = b'{"jsonrpc":"2.0","id":null,"method":"m","params":{"a":1,"a":2}}'
    assert fault_of(Codec(policy).decode, data).answer() is None


def test_a_strict_codec_writes_no_struct_that_only_looks_like_a_message() -> None:
    for lookalike in (Call(id=1, method="m"), Point(1)):
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.message\.kind"):
            Codec(STRICT).encode(lookalike)  # type: ignore[arg-type]  # that is the point


def test_deep_elements_after_many_invalid_ones_are_rejected_without_their_id() -> None:
    codec = Codec(Policy.mcp("2025-03-26"))
    deep = '{"jsonrpc":"2.0","id":7,"method":"x","params":' + "[" * 300 + "]" * 300 + "}"
    good = '{"jsonrpc":"2.0","id":8,"method":"x"}'
    read: Any = codec.envelope(f"[{','.join([deep] * 100 + [good])}]".encode())
    faults = read[:100]
    assert {each.rule for each in faults} == {"jsonrpc.limit.depth"}
    assert faults[0].id == 7
    assert (faults[-1].id, faults[-1].where, faults[-1].answerable) == (None, "/99", True)
    assert (read[100].id, read[100].method) == (8, "x")


def test_cut_batch_of_more_replies_than_a_batch_may_have_is_one_error() -> None:
    policy = Policy.mcp("2025-03-26")
    for count in (policy.limits.batch, policy.limits.batch + 1):
        text = "[" + ",".join(f'{{"id":{id},"result":{{}}}}' for id in range(count))
        if count == policy.limits.batch:
            read: Any = Codec(policy).envelope(text.encode())
            assert [each.id for each in read] == [*range(count)]
        else:
            with pytest.raises(InvalidMessage) as caught:
                Codec(policy).envelope(text.encode())
            assert (caught.value.rule, caught.value.id) == ("jsonrpc.text.json", None)
