"""Encode then decode is identity; any bytes give a message or its fault; all ways in agree."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct

from tests.effort import examples
from tests.fuzz.fuzz_decode import check, outcome
from trunkline.errors import LocalProtocolError
from trunkline.jsonrpc import (
    Batch,
    Codec,
    ErrorObject,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Notification,
    Policy,
    Request,
    Success,
    decode,
    encode,
)
from trunkline.jsonrpc.codec import tokenizer
from trunkline.jsonrpc.codec.tokenizer import nests_deeper
from trunkline.jsonrpc.messages import SentRequest
from trunkline.spec.profiles import profile

# Where CI is set hypothesis is deterministic by itself, and a slow machine is no failure.
quickly = settings(max_examples=examples(100), deadline=None)
thoroughly = settings(
    max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "decode"

POLICIES: dict[str, Policy] = {
    **{name: Policy.named(name) for name in ("mcp", "jsonrpc", "erlmcp", "pierre", "mcpp")},
    "default": Policy(batch="accept"),
    "2025-03-26": Policy.mcp("2025-03-26"),
    "strict": Policy(batch="accept", strictness="strict"),
    "null is a note": Policy(batch="accept", null_id="as-notification"),
}
each_policy = pytest.mark.parametrize("name", POLICIES)

# Values

integers = st.integers() | st.integers(-(10**60), 10**60) | st.sampled_from([2**53, 2**63, 2**64])
scalars = (
    st.none()
    | st.booleans()
    | integers
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=5)
arrays = st.lists(values, max_size=5)
ids = integers | st.text(max_size=40)
methods = st.text(min_size=1, max_size=40) | st.sampled_from(["m", "tools/call", "rpc.x"])


def params_under(policy: Policy) -> st.SearchStrategy[Any]:
    return st.none() | (objects if policy.params == "object" else objects | arrays)


def ids_under(policy: Policy) -> st.SearchStrategy[Any]:
    return ids | st.none() if policy.null_id == "as-request" else ids


def calls_under(policy: Policy) -> st.SearchStrategy[Any]:
    call = {"method": methods, "params": params_under(policy)}
    extensions = {
        "auth": st.none() | st.text(),
        "headers": st.none() | objects,
        "metadata": st.dictionaries(st.text(), st.text(), max_size=3),
    }
    if policy.envelope == "pierre":
        return st.builds(ExtendedRequest, **call, id=ids_under(policy), **extensions) | st.builds(
            ExtendedNotification, **call, **extensions
        )
    return st.builds(Request, **call, id=ids_under(policy)) | st.builds(Notification, **call)


def replies_under(policy: Policy) -> st.SearchStrategy[Any]:
    codes = integers
    if policy.unknown_code != "pass":
        known = profile(policy.codes)
        numbers = {row.number for row in known.codes}
        codes = st.sampled_from(
            sorted(number for number in numbers if known.accepts(number, policy.revision))
        )
    errors = st.builds(ErrorObject, codes, st.text(), st.just(UNSET) | values)
    results = objects if policy.results == "object" else values
    return st.builds(Success, ids_under(policy), results) | st.builds(
        Failure, ids | st.none() | st.just(UNSET), errors
    )


def messages_under(policy: Policy) -> st.SearchStrategy[Any]:
    calls, replies = calls_under(policy), replies_under(policy)
    single = calls | replies
    if not policy.accepts_batches:
        return single
    batches = st.lists(calls, min_size=1, max_size=4) | st.lists(replies, min_size=1, max_size=4)
    return single | batches.map(Batch)


# There and back


@each_policy
@quickly
@given(data=st.data())
def test_encoded_message_decodes_to_an_equal_message(name: str, data: st.DataObject) -> None:
    policy = POLICIES[name]
    message = data.draw(messages_under(policy))
    written = Codec(policy).encode(message)
    for expect in ("any", "calls", "replies"):
        again = Codec(policy, expect=expect).decode(written)
        assert again == message
        assert type(again) is type(message)


@each_policy
@quickly
@given(data=st.data())
def test_encoded_message_is_json_with_the_members_of_the_message(
    name: str, data: st.DataObject
) -> None:
    message = data.draw(messages_under(POLICIES[name]))
    written = json.loads(Codec(POLICIES[name]).encode(message))
    for one, element in zip(
        message if isinstance(message, Batch) else [message],
        written if isinstance(written, list) else [written],
        strict=True,
    ):
        assert element["jsonrpc"] == "2.0"
        if isinstance(one, Request):
            assert (element["id"], element["method"]) == (one.id, one.method)
            assert element.get("params") == one.params
        elif isinstance(one, Notification):
            assert "id" not in element
        elif isinstance(one, Success):
            assert element["result"] == one.result
        else:
            assert element["error"]["code"] == one.error.code
            assert ("id" in element) is (one.id is not UNSET)


@quickly
@given(message=messages_under(POLICIES["default"]))
def test_bytes_and_text_are_read_alike(message: Any) -> None:
    written = encode(message)
    assert decode(written) == decode(written.decode()) == decode(bytearray(written)) == message


@quickly
@given(id=ids, method=methods, params=params_under(POLICIES["default"]))
def test_a_request_as_a_peer_writes_it_is_read_as_the_same(
    id: Any, method: str, params: Any
) -> None:
    assert decode(Codec().encode(SentRequest(id, method, params))) == Request(method, params, id=id)


# Any bytes at all

FRAGMENTS = [
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"1.0",
    b"1e999",
    b"-0",
    b"9" * 20,
    b'""',
    b'"\\ud800"',
    b'"\\u0069d"',
    b"\xff",
    b"\xef\xbb\xbf",
    b'"id":',
    b'"id":null,',
    b'"id":2,',
    b'"method":"m",',
    b'"method":5,',
    b'"params":5,',
    b'"params":null,',
    b'"result":{},',
    b'"error":{"code":1,"message":"x"},',
    b'"error":null,',
    b'"jsonrpc":"1.0",',
    b'"auth":5,',
    b'"headers":{"x":1e999},',
    b'"metadata":{"k":1},',
    b'{"jsonrpc":"2.0"},',
    b"[" * 8,
    b"]" * 8,
    b",",
    b" \n",
]


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """A valid message with a few things done to it."""
    policy = POLICIES[draw(st.sampled_from(["default", "jsonrpc", "pierre"]))]
    text = Codec(policy).encode(draw(messages_under(policy)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 12)))
        put = draw(
            st.sampled_from(FRAGMENTS)
            | st.binary(max_size=3)
            | st.just(text[at:end])
            | st.just(b"")
        )
        where = draw(st.sampled_from(["here", "first", "cut"]))
        if where == "here":
            text = text[:at] + put + text[end:]
        elif where == "first":  # as a member of the outermost object, if it is one
            text = text[:1] + put + text[1:]
        else:
            text = text[:at] + put
    return text


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_corpus_file_gives_a_message_or_a_fault(path: Path) -> None:
    check(path.read_bytes())


@thoroughly
@given(data=spoilt())
def test_a_spoilt_message_gives_a_message_or_a_fault(data: bytes) -> None:
    check(data)


@quickly
@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_message_or_a_fault(data: bytes) -> None:
    check(data)


@quickly
@given(value=values)
def test_any_json_gives_a_message_or_a_fault(value: Any) -> None:
    check(json.dumps(value).encode())


members = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": ids | values,
        "method": methods | values,
        "params": objects | values,
        "result": objects | values,
        "error": st.fixed_dictionaries({"code": integers, "message": st.text()}) | values,
        "auth": st.text() | values,
        "headers": objects | values,
        "metadata": st.dictionaries(st.text(), st.text()) | values,
        "other": values,
    },
)


@thoroughly
@given(value=members | st.lists(members, max_size=4))
def test_any_choice_of_members_gives_a_message_or_a_fault(value: Any) -> None:
    check(json.dumps(value, ensure_ascii=False).encode())


# Any value at all


@dataclass
class Record:
    inner: Any


class Struck(Struct):
    inner: Any


# Made on the way: hypothesis would print it, and Python does not.
huge = st.none().map(lambda _: 10**5000)
odd_scalars: st.SearchStrategy[Any] = (
    scalars
    | huge
    | st.floats()
    | st.complex_numbers()
    | st.binary(max_size=5)
    | st.text(st.characters(categories=["Cs", "Ll"]), max_size=4)
    | st.sampled_from(
        [
            object(),
            object,
            UNSET,
            Ellipsis,
            float("nan"),
            float("-inf"),
            datetime.date(2025, 1, 1),
            datetime.timedelta(1),
            decimal.Decimal("NaN"),
            decimal.Decimal("1.5"),
            uuid.UUID(int=5),
            range(3),
            len,
            ErrorObject(1, "x"),
            Notification("m"),
        ]
    )
)
odd_values: st.SearchStrategy[Any] = st.recursive(
    odd_scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.tuples(), inner, max_size=3)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=3)
        | inner.map(Record)
        | inner.map(Struck)
        | inner.map(lambda one: Failure(1, one))
        | inner.map(lambda one: Request(one, one, id=1))
    ),
    max_leaves=6,
)


def odd_messages() -> st.SearchStrategy[Any]:
    value = odd_values
    loose: list[Callable[..., Any]] = [Success, Failure, Notification, ErrorObject]
    single = st.one_of(
        st.builds(Request, value | methods, value, id=value | ids),
        st.builds(SentRequest, value | ids, value | methods, value),
        st.builds(
            ExtendedRequest, methods, value, id=ids, auth=value, headers=value, metadata=value
        ),
        *(st.builds(kind, value | ids, value) for kind in loose),
        st.builds(
            lambda id, error: Failure(id, error), ids, st.builds(ErrorObject, value, value, value)
        ),
        value,
    )
    return single | st.lists(single, max_size=3).map(Batch)


@each_policy
@quickly
@given(message=odd_messages())
def test_any_value_is_written_as_json_or_refused(name: str, message: Any) -> None:
    written = outcome(Codec(POLICIES[name]).encode, message, LocalProtocolError)
    if isinstance(written, LocalProtocolError):
        str(written).encode()
        repr(written).encode()
    else:
        json.loads(written, parse_constant=pytest.fail)


@quickly
@given(message=odd_messages())
def test_any_value_can_be_shown(message: Any) -> None:
    assume(type(message).__module__.startswith("trunkline"))
    assert len(repr(message)) < 200_000
    repr(message).encode()
    Codec(Policy.pierre()).describe(message)


@quickly
@given(raw=st.binary(max_size=20))
def test_raw_json_can_be_shown_whatever_it_is(raw: bytes) -> None:
    repr(Request("m", Raw(raw), id=1)).encode()


# Depth


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


bracketed = st.text(st.sampled_from('[]{}"\\a'), max_size=12)
nests = st.recursive(
    bracketed | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(bracketed, inner, max_size=4),
    max_leaves=40,
)


@thoroughly
@given(nests, st.booleans(), st.integers(0, 300))
def test_a_text_nests_as_deep_as_its_value(value: Any, is_spaced: bool, more: int) -> None:
    for _ in range(more):
        value = [value]
    text = json.dumps(value, indent=1 if is_spaced else None).encode()
    depth = depth_of(value)
    for limit in {0, 1, 2, 256, max(depth - 1, 0), depth, depth + 1}:
        assert nests_deeper(text, limit) is (depth > limit)


escaped = st.text(st.sampled_from('[]{}"\\\na/é'), max_size=60)


@thoroughly
@given(escaped, nests, nests)
def test_a_long_string_of_escapes_is_skipped_exactly(long: str, before: Any, after: Any) -> None:
    # The size from which that is done, made small.
    small = mock.patch.object(tokenizer, "FOUND_FASTER_BYTES", 2)
    for value in ([before, [long], after], {"a": json.dumps([before, long]), "b": after}, [long]):
        text = json.dumps(value, ensure_ascii=False).encode()
        depth = depth_of(value)
        with small:
            for limit in {0, 1, 2, max(depth - 1, 0), depth}:
                assert nests_deeper(text, limit) is (depth > limit)
