"""Where the large member of a message is, by its ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import for_each
from trunkline.jsonrpc import Codec, Limits, Policy
from trunkline.jsonrpc.codec import LARGE_BYTES
from trunkline.jsonrpc.large_messages import MAX_END_BYTES, Found, find_params, find_result

VALUE = b'{"text":"' + b"x" * LARGE_BYTES + b'"}'


def result(text: bytes) -> tuple[Found, bytes] | None:
    message = text.replace(b"VALUE", VALUE)
    found = find_result(message)
    return None if found is None else (found, message[found.start : found.end])


def params(text: bytes) -> tuple[Found, bytes] | None:
    message = text.replace(b"VALUE", VALUE)
    found = find_params(message)
    return None if found is None else (found, message[found.start : found.end])


@for_each(
    ("text", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":VALUE}', 7),
        (b'{"jsonrpc": "2.0", "id": 7, "result": VALUE}', 7),
        (b'{"jsonrpc":"2.0","id":0,"result":VALUE}', 0),
        (b'{"jsonrpc":"2.0","id":"7","result":VALUE}', "7"),
        (b'{"jsonrpc":"2.0","id":"","result":VALUE}', ""),
        (b'{"result":VALUE,"jsonrpc":"2.0","id":7}', 7),
        (b'{"result": VALUE, "jsonrpc": "2.0", "id": "a b"}', "a b"),
    ],
)
def test_the_result_of_a_reply_is_found(text: bytes, id: int | str) -> None:
    found = result(text)
    assert found is not None
    assert found[0].id == id
    assert type(found[0].id) is type(id)
    assert found[0].method == ""
    assert found[1] == VALUE


@for_each(
    "text",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":VALUE}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": VALUE}',
        b'{"method":"tools/call","params":VALUE,"jsonrpc":"2.0","id":7}',
    ],
)
def test_the_params_of_a_request_are_found(text: bytes) -> None:
    found = params(text)
    assert found is not None
    assert found[0][:2] == (7, "tools/call")
    assert found[1] == VALUE


@for_each(
    "text",
    [
        b'{"jsonrpc":"2.0","id":01,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":-1,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":1.0,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":1e3,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":true,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":null,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":1234567890123456789,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":"a\\u0041","result":VALUE}',
        b'{"jsonrpc":"2.0","id":"\xc3\xa9","result":VALUE}',
        b'{"jsonrpc":"1.0","id":1,"result":VALUE}',
        b'{"jsonrpc":"2.0","id":1,"error":VALUE}',
        b'[{"jsonrpc":"2.0","id":1,"result":VALUE}]',
        b'{"jsonrpc":"2.0","id":1,"result":VALUE}\n',
        b'{"result":VALUE,"jsonrpc":"2.0","id":1,"x":2}',
        b'{"result":VALUE "jsonrpc":"2.0","id":1}',
        b'{"result":VALUE}',
        b'{"id":1,"result":VALUE}',
    ],
)
def test_another_reply_goes_the_usual_way(text: bytes) -> None:
    is_found = result(text) is not None  # in a short text, which an assertion shows
    assert not is_found


@for_each(
    "text",
    [
        b'{"jsonrpc":"2.0","method":"tools/call","params":VALUE}',
        b'{"jsonrpc":"2.0","id":1,"method":"","params":VALUE}',
        b'{"jsonrpc":"2.0","id":1,"method":"a\\u0041","params":VALUE}',
        b'{"method":"tools/call","params":VALUE,"jsonrpc":"2.0"}',
    ],
)
def test_another_request_goes_the_usual_way(text: bytes) -> None:
    is_found = params(text) is not None
    assert not is_found


def test_what_follows_the_member_is_in_the_part_which_then_does_not_decode() -> None:
    found = result(b'{"jsonrpc":"2.0","id":1,"result":VALUE,"error":{}}')
    assert found is not None
    assert found[1] == VALUE + b',"error":{}'


def test_of_a_truncated_message_the_part_is_truncated_too() -> None:
    found = result(b'{"jsonrpc":"2.0","id":1,"result":VALUE')
    assert found is not None
    assert found[1] == VALUE[:-1]


def test_an_end_that_is_too_far_away_is_not_searched() -> None:
    assert result(b'{"jsonrpc":"2.0","id":"' + b"a" * MAX_END_BYTES + b'","result":VALUE}') is None


@for_each(
    ("policy", "is_found"),
    [
        (Policy(), True),
        (Policy(strictness="strict"), False),
        (Policy(strictness="lenient"), False),
        (Policy.pierre(), False),
        (Policy(limits=Limits(id_length=3)), False),
        (Policy(limits=Limits(id_length=4)), True),
        (Policy(limits=Limits(default=LARGE_BYTES)), False),
        (Policy(limits=Limits(integer_digits=10)), False),
    ],
)
def test_a_codec_finds_what_its_policy_accepts(policy: Policy, is_found: bool) -> None:
    message = b'{"jsonrpc":"2.0","id":"abcd","result":' + VALUE + b"}"
    assert (Codec(policy).large_result(message) is not None) is is_found


def test_a_method_over_the_limit_is_not_found() -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"abcd","params":' + VALUE + b"}"
    assert Codec(Policy(limits=Limits(method_length=4))).large_params(message) is not None
    assert Codec(Policy(limits=Limits(method_length=3))).large_params(message) is None


@pytest.mark.parametrize("find", ["large_result", "large_params"])
def test_a_small_message_is_not_searched(find: str) -> None:
    search: Any = getattr(Codec(), find)
    assert search(b'{"jsonrpc":"2.0","id":1,"result":{}}') is None


@for_each(
    ("inside", "is_sound"),
    [
        (b'"x"', True),
        ('"é"'.encode(), True),
        (b'"\xe9"', False),
        (b"[" * 255 + b"]" * 255, True),
        (b"[" * 256 + b"]" * 256, False),
    ],
)
def test_a_large_message_is_checked_for_what_the_decoder_skips(
    inside: bytes, is_sound: bool
) -> None:
    message = b'{"x":' + inside + b',"y":"' + b"x" * LARGE_BYTES + b'"}'
    assert Codec().is_sound(message) is is_sound
