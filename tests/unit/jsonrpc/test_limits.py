"""How much is too much: the bounds, their names, and what a bad one is told."""

from __future__ import annotations

import threading
from typing import Any, get_args

import pytest

from trunkline.jsonrpc import Codec, InvalidMessage, Limits, Policy
from trunkline.jsonrpc.limits import MAX_DEPTH, MAX_INTEGER_DIGITS, TransportName

MIB = 1024 * 1024
TRANSPORTS: tuple[TransportName, ...] = get_args(TransportName)
CALL = b'{"jsonrpc":"2.0","id":1,"method":"m"}'


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport_takes_sixteen_mebibytes(transport: TransportName) -> None:
    assert Limits().message_size(transport) == 16 * MIB


def test_the_other_bounds_have_the_documented_defaults() -> None:
    limits = Limits()
    assert (limits.batch, limits.id_length, limits.method_length) == (1000, 1024, 1024)
    assert limits.depth is None
    assert limits.integer_digits == MAX_INTEGER_DIGITS == 4300


def test_the_decoder_itself_stops_at_its_number_of_digits() -> None:
    # What MAX_INTEGER_DIGITS says of the decoder is so; else no pre-scan would be asked for.
    codec = Codec(Policy(params="structured"))
    codec.decode(
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":[%s]}' % (b"9" * MAX_INTEGER_DIGITS)
    )
    with pytest.raises(InvalidMessage, match=r"jsonrpc\.limit\.number"):
        codec.decode(
            b'{"jsonrpc":"2.0","id":1,"method":"m","params":[%s]}'
            % (b"9" * (MAX_INTEGER_DIGITS + 1))
        )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_transport_has_its_own_bound(transport: TransportName) -> None:
    policy = Policy(limits=Limits(**{transport: len(CALL) - 1}))
    with pytest.raises(InvalidMessage, match=r"jsonrpc\.limit\.message-size"):
        Codec(policy, transport=transport).decode(CALL)
    for other in TRANSPORTS:
        if other != transport:
            Codec(policy, transport=other).decode(CALL)


@pytest.mark.parametrize(("limits", "depth"), [(Limits(), MAX_DEPTH), (Limits(depth=9), 9)])
@pytest.mark.parametrize("strictness", ["lenient", "standard", "strict"])
@pytest.mark.parametrize("blanks", [0, 5000])
def test_every_codec_stops_at_an_exact_depth(
    limits: Limits, depth: int, strictness: Any, blanks: int
) -> None:
    codec = Codec(Policy(params="structured", strictness=strictness, limits=limits))
    text = b'{"jsonrpc":"2.0","id":1,"method":"m","params":%s}' + b" " * blanks
    for read in (codec.decode, codec.envelope):
        read(text % (b"[" * (depth - 1) + b"]" * (depth - 1)))
        with pytest.raises(InvalidMessage, match=r"jsonrpc\.limit\.depth") as caught:
            read(text % (b"[" * depth + b"]" * depth))
        assert (caught.value.id, caught.value.got) == (1, depth + 1)


@pytest.mark.parametrize("strictness", ["standard", "strict"])
def test_the_depth_of_a_batch_is_that_of_its_messages(strictness: Any) -> None:
    codec = Codec(Policy(strictness=strictness, batch="accept", params="structured"))
    text = b'{"jsonrpc":"2.0","id":1,"method":"m","params":%s}'
    fitting = text % (b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1))
    deep = text % (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    for batch in (
        codec.decode(b"[%s,%s]" % (fitting, deep)),
        codec.envelope(b"[%s,%s]" % (fitting, deep)),
    ):
        good, bad = batch
        assert good.id == 1
        assert isinstance(bad, InvalidMessage)
        assert (bad.rule, bad.id) == ("jsonrpc.limit.depth", 1)


def test_a_small_stack_and_a_deep_one_have_the_same_outcome() -> None:
    codec = Codec()
    text = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":%s}}'
    outcomes = []

    def attempt() -> None:
        for depth in (MAX_DEPTH - 2, MAX_DEPTH - 1, 600, 9000, 100_000):
            try:
                codec.decode(text % (b"[" * depth + b"]" * depth))
                outcomes.append("")
            except InvalidMessage as fault:
                outcomes.append(fault.rule)

    def descend(frames: int) -> None:
        if frames:
            descend(frames - 1)
        else:
            attempt()

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    descend(300)
    attempt()
    rule = "jsonrpc.limit.depth"
    assert outcomes == ["", rule, rule, rule, rule] * 3


def test_every_codec_has_the_documented_depth() -> None:
    assert MAX_DEPTH == 256


def test_a_message_of_just_the_size_is_taken() -> None:
    policy = Policy(limits=Limits(default=len(CALL)))
    Codec(policy).decode(CALL)
    with pytest.raises(InvalidMessage):
        Codec(policy).decode(CALL + b" ")


def test_none_lifts_a_size() -> None:
    limits = Limits(default=None, stdio=1)
    assert limits.message_size() is None
    assert limits.message_size("stdio") == 1
    Codec(Policy(limits=limits)).decode(b" " * (17 * MIB) + CALL)


@pytest.mark.parametrize("transport", ["batch", "depth", "carrier-pigeon", "", "message_size"])
def test_message_size_of_an_unknown_transport_raises(transport: Any) -> None:
    with pytest.raises(LookupError, match=f"no transport named {transport!r}; there are default,"):
        Limits().message_size(transport)


# Named sets


def test_the_official_set_is_the_default() -> None:
    assert Limits.named("mcp-16m") == Limits()


def test_the_set_of_the_erlmcp_document_is_its_table() -> None:
    # the rows: E-88 to E-93, K-39
    limits = Limits.named("erlmcp-doc")
    assert limits.default is None
    sizes = {name: limits.message_size(name) for name in TRANSPORTS if name != "default"}
    assert sizes == {
        "stdio": 10 * MIB,
        "tcp": 100 * MIB,
        "unix": 100 * MIB,
        "http": 50 * MIB,
        "websocket": 50 * MIB,
        "sse": 10 * MIB,
    }


def test_the_set_of_pierre_is_five_mebibytes_for_every_way_in() -> None:
    # the row: K-39
    limits = Limits.named("pierre-5m")
    assert {limits.message_size(name) for name in TRANSPORTS} == {5 * MIB}
    assert limits.batch == Limits().batch


def test_unknown_limits_name_is_refused_with_the_known_names() -> None:
    with pytest.raises(
        LookupError, match="no limits named 'mcp-17m'; there are mcp-16m, erlmcp-doc, pierre-5m"
    ):
        Limits.named("mcp-17m")


# A bound that bounds nothing


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"batch": 0}, "Limits.batch is from 1 to 100000, not 0"),
        ({"batch": 10**9}, "Limits.batch is from 1 to 100000, not 1000000000"),
        ({"batch": None}, "Limits.batch is from 1 to 100000, not None"),
        ({"default": 0}, "Limits.default is an integer of at least 1 or None, not 0"),
        ({"http": -1}, "Limits.http is an integer of at least 1 or None, not -1"),
        ({"sse": "5m"}, "Limits.sse is an integer of at least 1 or None, not '5m'"),
        ({"depth": 0}, "Limits.depth is an integer of at least 1 or None, not 0"),
        ({"depth": True}, "Limits.depth is an integer of at least 1 or None, not True"),
        ({"id_length": 1.5}, "Limits.id_length is an integer of at least 1, not 1.5"),
        ({"method_length": None}, "Limits.method_length is an integer of at least 1, not None"),
        ({"integer_digits": 4301}, "Limits.integer_digits is from 1 to 4300, not 4301"),
    ],
)
def test_a_bad_bound_is_refused_when_it_is_made(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        Limits(**fields)
    assert str(caught.value) == sentence


def test_limits_are_values() -> None:
    assert Limits(batch=5) == Limits(batch=5) != Limits(batch=6)
    assert {Limits(batch=5): "kept"}[Limits(batch=5)] == "kept"
    with pytest.raises(AttributeError):
        Limits().batch = 5  # type: ignore[misc]
