"""Readers: each way in returns a message, or raises what says only that it could not."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
from msgspec import UNSET, Raw, Struct, ValidationError

from trunkline.jsonrpc import (
    Batch,
    Call,
    Codec,
    ErrorObject,
    ExtendedCall,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Limits,
    Notification,
    Policy,
    Reply,
    Request,
    Success,
)
from trunkline.jsonrpc.codec.decoders import (
    CALLS,
    REPLIES,
    UNREADABLE,
    Expect,
    envelope_reader,
    whole_reader,
)

EXPECTATIONS: tuple[Expect, ...] = get_args(Expect)
PRESETS = ("mcp", "jsonrpc", "erlmcp", "pierre", "mcpp")
OPEN = Policy(batch="accept")

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}'
NOTE = b'{"jsonrpc":"2.0","method":"m"}'
SUCCESS = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
FAILURE = b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"x"}}'
SINGLE = (REQUEST, NOTE, SUCCESS, FAILURE)


def outcome(read: Any, data: bytes) -> Any:
    """Return what a reader makes of a text: a value, or None where it does not say why not."""
    try:
        return read(data)
    except UNREADABLE:
        return None


# What each way in is for


@pytest.mark.parametrize(("expect", "preset"), list(product(EXPECTATIONS, PRESETS)))
def test_every_way_in_agrees_with_the_slowest_or_gives_up(expect: Expect, preset: str) -> None:
    policy = Policy.named(preset).replace(batch="accept")
    for reader in (whole_reader(policy, expect), envelope_reader(policy, expect)):
        for data in SINGLE:
            slow = reader.loose(data)
            assert reader.one(data) == slow
            fast = outcome(reader.first, data)
            if reader.shape is None or fast is None:
                assert fast is None or kind(fast) == kind(slow)
            else:
                assert isinstance(fast, reader.shape)


def kind(read: Any) -> tuple[Any, ...]:
    if isinstance(read, Reply):
        return ("reply", read.id, read.error)
    return ("call", read.id, getattr(read, "method", None))


@pytest.mark.parametrize("expect", EXPECTATIONS)
def test_expected_messages_are_decoded_at_the_first_attempt(expect: Expect) -> None:
    expected = {"any": SINGLE, "calls": (REQUEST, NOTE), "replies": (SUCCESS,)}[expect]
    reader = envelope_reader(OPEN, expect)
    for data in SINGLE:
        assert (outcome(reader.first, data) is not None) is (data in expected)
    batch = b"[" + expected[0] + b"," + expected[0] + b"]"
    assert len(reader.first(batch)) == 2


@pytest.mark.parametrize("reader", [whole_reader(OPEN, "any"), envelope_reader(OPEN, "any")])
def test_single_message_decoder_rejects_a_batch(reader: Any) -> None:
    assert outcome(reader.one, b"[" + REQUEST + b"]") is None
    assert len(reader.loose(b"[" + REQUEST + b"]")) == 1


@pytest.mark.parametrize("policy", [Policy(), Policy.mcp("2025-06-18"), Policy(batch="reject")])
def test_a_batch_is_not_read_where_there_are_none(policy: Policy) -> None:
    for reader in (whole_reader(policy, "calls"), envelope_reader(policy, "calls")):
        assert outcome(reader.first, b"[" + REQUEST + b"]") is None
        assert outcome(reader.loose, b"[" + REQUEST + b"]") is None


def test_a_batch_has_a_length() -> None:
    policy = OPEN.replace(limits=Limits(batch=2))
    for reader in (whole_reader(policy, "calls"), envelope_reader(policy, "any")):
        assert outcome(reader.loose, b"[]") is None
        assert len(reader.loose(b"[" + b",".join([REQUEST] * 2) + b"]")) == 2
        assert outcome(reader.loose, b"[" + b",".join([REQUEST] * 3) + b"]") is None
        assert outcome(reader.first, b"[" + b",".join([REQUEST] * 3) + b"]") is None


def test_calls_and_replies_share_a_batch_only_where_they_may() -> None:
    mixed = b"[" + REQUEST + b"," + SUCCESS + b"]"
    assert outcome(whole_reader(OPEN, "any").loose, mixed) is None
    read = whole_reader(OPEN.replace(mixed_batches=True), "any").loose(mixed)
    assert read == [Request("m", {"a": 1}, id=1), Success(1, {"a": 1})]


def test_only_calls_come_as_a_shape_that_a_message_is_made_of() -> None:
    assert whole_reader(OPEN, "calls").shape is not None
    assert whole_reader(OPEN, "any").shape is None
    assert whole_reader(OPEN, "replies").shape is None
    assert envelope_reader(OPEN, "calls").shape is None
    # Where something has to be put right after, the shape is not what is meant.
    for policy in (Policy.pierre(), Policy.mcpp(), Policy(null_id="as-notification")):
        assert whole_reader(policy, "calls").shape is None


# Whole messages


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (REQUEST, Request("m", {"a": 1}, id=1)),
        (NOTE, Notification("m")),
        (SUCCESS, Success(1, {"a": 1})),
        (FAILURE, Failure(1, ErrorObject(5, "x"))),
        (
            b'{"jsonrpc":"2.0","error":{"code":5,"message":"x"}}',
            Failure(UNSET, ErrorObject(5, "x")),
        ),
        (
            b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"x","data":null}}',
            Failure(None, ErrorObject(5, "x", None)),
        ),
    ],
)
def test_message_kind_is_decided_by_its_members(data: bytes, message: Any) -> None:
    assert whole_reader(OPEN, "any").one(data) == message


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":5,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":5,"message":"x"}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}',
        b'"x"',
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_decoders_raise_plain_errors_for_invalid_messages(data: bytes) -> None:
    for expect in EXPECTATIONS:
        reader = whole_reader(Policy(), expect)
        for read in (reader.first, reader.loose, reader.one):
            with pytest.raises(UNREADABLE):
                read(data)


# What policies make of it


def test_null_as_an_id_makes_what_the_policy_says() -> None:
    data = b'{"jsonrpc":"2.0","id":null,"method":"m"}'
    assert outcome(whole_reader(Policy(), "any").one, data) is None
    as_request = whole_reader(Policy(null_id="as-request"), "any").one(data)
    assert as_request == Request("m", id=None)
    as_note = whole_reader(Policy(null_id="as-notification"), "any").one(data)
    assert as_note == Notification("m")
    assert envelope_reader(Policy(null_id="as-request"), "any").one(data).id is None
    assert envelope_reader(Policy(null_id="as-notification"), "any").one(data).id is UNSET


@pytest.mark.parametrize("number", [b"1.0", b"1e0", b"10.0e-1"])
def test_a_lenient_reader_takes_a_whole_double_for_an_id(number: bytes) -> None:
    data = b'{"id":%s,"method":"m"}' % number
    for reader in (whole_reader(Policy.mcpp(), "calls"), envelope_reader(Policy.mcpp(), "calls")):
        found = reader.first(data)
        assert (found.id, type(found.id)) == (1, int)
        assert outcome(reader.first, b'{"id":1.5,"method":"m"}') is None
        assert outcome(reader.one, b'{"id":1.5,"method":"m"}') is None


def test_null_params_are_absent_only_where_they_may_be_null() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}'
    nullable = Policy(params="nullable")
    assert whole_reader(nullable, "calls").first(data).params is None
    assert envelope_reader(nullable, "calls").first(data).params is UNSET
    assert outcome(whole_reader(Policy(params="structured"), "calls").first, data) is None


def test_an_extended_envelope_has_credentials_and_context() -> None:
    data = (
        b'{"jsonrpc":"2.0","id":1,"method":"m","auth":"t","headers":{"h":1},"metadata":{"k":"v"}}'
    )
    extended = whole_reader(Policy.pierre(), "calls").first(data)
    assert extended == ExtendedRequest("m", id=1, auth="t", headers={"h": 1}, metadata={"k": "v"})
    call = envelope_reader(Policy.pierre(), "calls").first(data)
    assert isinstance(call, ExtendedCall)
    assert (call.auth, call.headers, call.metadata) == ("t", {"h": 1}, {"k": "v"})
    assert whole_reader(Policy.pierre(), "calls").first(NOTE) == ExtendedNotification("m")
    plain = whole_reader(Policy(), "any").one(data)
    assert (type(plain), plain) == (Request, Request("m", id=1))


# Envelopes


def test_an_envelope_leaves_params_and_results_raw() -> None:
    for expect in EXPECTATIONS:
        reader = envelope_reader(OPEN, expect)
        call, reply = reader.one(REQUEST), reader.one(SUCCESS)
        assert isinstance(call, Call)
        assert isinstance(call.params, Raw)
        assert bytes(call.params) == b'{"a":1}'
        assert isinstance(reply, Reply)
        assert isinstance(reply.result, Raw)
        assert bytes(reply.result) == b'{"a":1}'
        assert reply.error is UNSET


class Point(Struct):
    x: int


def test_typed_params_are_read_at_the_first_attempt_and_others_stay_raw_at_the_second() -> None:
    reader = envelope_reader(OPEN, "calls", {"point": Point})
    codec = Codec(OPEN, expect="calls", params={"point": Point})
    assert reader.second is not None
    found = reader.first(b'{"jsonrpc":"2.0","id":1,"method":"point","params":{"x":5}}')
    assert (found.method, found.params) == ("point", Point(5))
    for data in (
        b'{"jsonrpc":"2.0","id":1,"method":"point","params":{"x":"5"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"other","params":{"x":5}}',
    ):
        with pytest.raises(ValidationError):
            reader.first(data)
        assert isinstance(reader.second(data).params, Raw)
        whole: Any = codec.envelope(data)
        assert isinstance(whole.params, Raw)
    without = b'{"jsonrpc":"2.0","id":1,"method":"point"}'
    assert reader.second(without).params is UNSET
    read: Any = codec.envelope(without)
    assert read.params is UNSET


def test_every_kind_is_a_call_or_a_reply() -> None:
    reader = whole_reader(OPEN, "any")
    envelopes = envelope_reader(OPEN, "any")
    for data in SINGLE:
        is_call = data in (REQUEST, NOTE)
        assert isinstance(reader.one(data), CALLS) is is_call
        assert isinstance(envelopes.one(data), CALLS) is is_call
        assert isinstance(reader.one(data), REPLIES) is not is_call
        assert isinstance(envelopes.one(data), REPLIES) is not is_call
    assert not isinstance(Batch(), (*CALLS, *REPLIES))
