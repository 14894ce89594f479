"""What a text shows without being read: its depth, its names, its digits, its id."""

from __future__ import annotations

import json
import tracemalloc
from time import process_time
from typing import Any

import pytest

from tests.cases import for_each
from trunkline.jsonrpc import Codec, Limits, Policy
from trunkline.jsonrpc.codec import tokenizer
from trunkline.jsonrpc.codec.codec import LARGE_BYTES
from trunkline.jsonrpc.codec.tokenizer import (
    MAX_END_BYTES,
    LargeMember,
    TokenFault,
    find_excess,
    find_params,
    find_result,
    message_heads,
    nests_deeper,
    pointer,
)

DIGITS = 4300


def depth_of(text: bytes, depth: int) -> TokenFault | None:
    return find_excess(text, depth=depth, digits=DIGITS, unique_names=False)


def twice_in(text: bytes) -> TokenFault | None:
    return find_excess(text, depth=None, digits=DIGITS, unique_names=True)


def long_in(text: bytes, digits: int = 5) -> TokenFault | None:
    return find_excess(text, depth=None, digits=digits, unique_names=False)


# Depth


@pytest.mark.parametrize("text", [b"1", b'"[[["', b"null", b"", b"   "])
def test_scalar_has_no_depth(text: bytes) -> None:
    assert depth_of(text, 1) is None


@pytest.mark.parametrize("depth", [1, 2, 7, 256])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_is_exact(opening: bytes, closing: bytes, depth: int) -> None:
    assert depth_of(opening * depth + b"1" + closing * depth, depth) is None
    found = depth_of(opening * (depth + 1) + b"1" + closing * (depth + 1), depth)
    assert found is not None
    assert (found.rule, found.got) == ("jsonrpc.limit.depth", depth + 1)


def test_an_empty_container_counts_as_one() -> None:
    assert depth_of(b"[[]]", 2) is None
    assert depth_of(b"[[]]", 1) == TokenFault("jsonrpc.limit.depth", "/0", 2)
    assert depth_of(b'{"a":{}}', 1) == TokenFault("jsonrpc.limit.depth", "/a", 2)


def test_closed_containers_do_not_count_toward_the_depth() -> None:
    assert depth_of(b"[[1],[2],[3],{},{}]", 2) is None


def test_brackets_in_strings_do_not_count() -> None:
    assert depth_of(rb'{"a[{":"[[{{\"[[\\","b":["]]"]}', 2) is None


def test_the_place_of_a_container_that_is_too_deep_is_where_it_stands() -> None:
    text = b'{"a":[1,"x,y",{"b":2},[],{"c":[[[0]]]}],"d":[]}'
    assert depth_of(text, 5) == TokenFault("jsonrpc.limit.depth", "/a/4/c/0/0", 6)


def test_without_a_depth_limit_no_excess_is_found() -> None:
    nest = b"[" * 100_000
    assert find_excess(nest, depth=None, digits=DIGITS, unique_names=False) is None


# Names


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'{"a":1,"b":1}',
        b'{"a":{"a":{"a":1}}}',
        b'[{"a":1},{"a":1}]',
        b'{"a":[{"a":1},{"a":1}],"b":{"a":1}}',
        b'{"a":"a","b":"a"}',
        rb'{"a":1,"A":1,"\u0101":1,"":1," ":1}',
        b'["a","a","a"]',
        rb'{"a":"\"a\":1,\"a\":1"}',
    ],
)
def test_unique_name_is_not_a_duplicate(text: bytes) -> None:
    assert twice_in(text) is None


@pytest.mark.parametrize(
    ("text", "where", "name"),
    [
        (b'{"a":1,"a":1}', "/a", "a"),
        (b'{"a":1,"b":[],"a":{}}', "/a", "a"),
        (b'{"":1,"":1}', "/", ""),
        (b'{"a":{"b":{"c":1,"c":2}}}', "/a/b/c", "c"),
        (b'[0,[1],{"x":"]","x":2}]', "/2/x", "x"),
        (b'{"a" : 1 , "a"\n\t: 2}', "/a", "a"),
        (rb'{"a":1,"\u0061":2}', "/a", "a"),
        (rb'{"\u00e9":1,"' + "é".encode() + rb'":2}', "/é", "é"),
        (rb'{"\"":1,"\"":2}', '/"', '"'),
        (b'{"a/b":1,"a/b":2}', "/a~1b", "a/b"),
        (b'{"a~b":1,"a~b":2}', "/a~0b", "a~b"),
        (b'{"~1":1,"~1":2}', "/~01", "~1"),
        (b'{"p":{"a~/b":{"c":0,"c":1}}}', "/p/a~0~1b/c", "c"),
        (b'{"a":{"x":1},"b":{"x":1},"a":3}', "/a", "a"),
    ],
)
def test_a_name_that_is_there_twice_is_found_with_its_place(
    text: bytes, where: str, name: str
) -> None:
    assert twice_in(text) == TokenFault("jsonrpc.text.duplicate-key", where, name)


def test_names_are_compared_only_on_demand() -> None:
    assert find_excess(b'{"a":1,"a":1}', depth=9, digits=DIGITS, unique_names=False) is None


def test_duplicate_name_with_an_invalid_escape_is_reported_verbatim() -> None:
    assert twice_in(rb'{"\q":1,"\q":2}') == TokenFault("jsonrpc.text.duplicate-key", r"/\q", r"\q")


# Digits


@pytest.mark.parametrize(
    "text",
    [
        b"12345",
        b"-12345",
        b"[1,22,333,-4444,55555]",
        b'"1234567890"',
        b'{"1234567890":1}',
        b"1234567890.5",
        b"1234567890e5",
        b"1234567890E5",
        b"0.1234567890",
        b"1e1234567890",
        b"1e-1234567890",
        b"1e+1234567890",
        b"1.5e-1234567890",
    ],
)
def test_only_integers_have_too_many_digits(text: bytes) -> None:
    assert long_in(text) is None
    assert long_in(b'{"a":[' + text + b"]}") is None


@pytest.mark.parametrize(
    ("text", "where", "digits"),
    [
        (b"123456", "", 6),
        (b"-123456", "", 6),
        (b"[1,[2,3],-1234567]", "/2", 7),
        (b'{"a":{"b":[0,"1234567",123456]}}', "/a/b/2", 6),
        (b'{"a":1234567890.5,"b":123456}', "/b", 6),
        (b'{"1234567":1,"b": 123456 }', "/b", 6),
        (b'["\\"",123456]', "/1", 6),
    ],
)
def test_an_integer_with_too_many_digits_is_found_with_its_place(
    text: bytes, where: str, digits: int
) -> None:
    assert long_in(text) == TokenFault("jsonrpc.limit.number", where, f"{digits} digits")


def test_the_bound_on_digits_is_exact() -> None:
    assert long_in(b"9" * DIGITS, DIGITS) is None
    assert long_in(b"9" * (DIGITS + 1), DIGITS) is not None


def test_depth_and_names_are_seen_beside_a_long_number_in_a_string() -> None:
    text = b'{"a":"123456789","b":[[1]],"c":1,"c":2}'
    assert find_excess(text, depth=2, digits=5, unique_names=True) == TokenFault(
        "jsonrpc.limit.depth", "/b/0", 3
    )
    assert find_excess(text, depth=3, digits=5, unique_names=True) == TokenFault(
        "jsonrpc.text.duplicate-key", "/c", "c"
    )


def test_first_excess_is_reported_for_each_setting() -> None:
    text = b'{"a":[[0]],"b":1,"b":2,"n":123456}'
    rules = {
        found.rule
        for depth, unique in ((2, True), (9, True), (9, False))
        if (found := find_excess(text, depth=depth, digits=5, unique_names=unique))
    }
    assert rules == {"jsonrpc.limit.depth", "jsonrpc.text.duplicate-key", "jsonrpc.limit.number"}


# Pointers


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], ""),
        (["a", 0, "b"], "/a/0/b"),
        ([""], "/"),
        (["a/b", "m~n", "~1", "/~"], "/a~1b/m~0n/~01/~1~0"),
    ],
)
def test_a_pointer_escapes_what_it_is_made_of(steps: list[str | int], text: str) -> None:
    assert pointer(steps) == text


def test_the_middle_of_a_very_long_pointer_is_left_out() -> None:
    # Its steps are the peer's, and it goes back to the peer in an answer.
    text = pointer(["first", "x" * 100_000, "last"])
    assert len(text) < 1010
    assert text.startswith("/first/xxx")
    assert text.endswith("xxx/last")
    assert "…" in text
    assert pointer(["y" * 999]) == "/" + "y" * 999
    assert pointer(["y" * 1000]) == "/" + "y" * 499 + "…" + "y" * 500


# The id and kind of a frame that is not read


def salvage_id(text: bytes) -> int | str | None:
    heads = message_heads(text)
    return heads[0].id if len(heads) == 1 and text.lstrip()[:1] == b"{" else None


@pytest.mark.parametrize(
    ("head", "id"),
    [
        (b'{"id":7,', 7),
        (b'{"id":-7 ', -7),
        (b'{"id":"a"', "a"),
        (b'{ "id" :\n"a" ,', "a"),
        (rb'{"\u0069d":"\u00e9",', "é"),
        (b'{"jsonrpc":"2.0","method":"m","params":{},"id":7}', 7),
        (b'{"params":{"id":8},"id":7}', 7),
        (b'{"params":[{"id":8}],"id":7,"x":', 7),
        (b'{"id":' + b"9" * 40 + b",", int("9" * 40)),
        (b'{"id":"","method":', ""),
    ],
)
def test_an_id_at_the_top_level_is_found(head: bytes, id: int | str) -> None:
    assert salvage_id(head) == id


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b'{"id":',
        b'{"id":7',  # there may be more digits
        b'{"id":"a',
        b'{"id":"a\\"',
        b'{"id":tru',
        b'{"id":null,',
        b'{"id":true,',
        b'{"id":1.5,',
        b'{"id":1e3,',
        b'{"id":[7],',
        b'{"id":{"id":7},',
        b'{"id":7,"id":8,',  # which one?
        b'{"id":7,"id":7,',
        b'{"params":{"id":7},',
        b'{"params":{"id":7,',
        b'[{"id":7,',
        b'["id",7,',
        b'"id":7,',
        b'{"x":"id","y":7,',
        b'{"x":"\\"id\\":7,',
        b'{"x":"y","z":"\\",\\"id\\":7,\\"',
        b'{"ID":7,',
        b'{"id ":7,',
        b'{"id":"a,7,b',  # not the 7 in a text whose end is not there
        b'{"id":"a,\\"id\\":7,b',
        rb'{"id":"\ud800",',
        b'{"id":7,"id":null,',
        b'{"id":7,"id":[8],',
        b'{"id":7 8,',
        b'{"id":"a"b",',
        b'{"id":007,',
        b'{"id":NaN,',
        b'{"a":1}{"id":7}',
        b'{"id":7}{"id":8}',
        b'{"id":7}[',
        b'x{"id":7}',
        b'{"a":[1},"id":7}',  # at which level?
        b'{"a":{"b":1]},"id":7}',
        b'{"a":"he said "b", "id":7}',
    ],
)
def test_salvage_id_ignores_ambiguous_and_nested_ids(head: bytes) -> None:
    assert salvage_id(head) is None


FRAMES: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1234567, "method": "m", "params": {"id": 8, "x": [{"id": "9"}]}},
    {"method": 'say "id": 5, {', "params": ['{"id":6}', {"id": 7}, '"id":7,'], "id": "a-1"},
    {"params": {"id": 1, "deep": {"id": 2, "er": [{"id": 3}]}}, "jsonrpc": "2.0", "id": -42},
    {"id": 'a",7,"id":8,\\', "method": "\\", "params": {"\\": "\\", '"id"': 4}},
    {"id": "}]{[:,", "result": {"id": 1}},
    {"x": {"id": 1}, "id": 10**30, "y": "id"},
    {"é": "🙂", "id": "é🙂", "params": {"é": {"id": 5}}},
    {"params": {"id": 5}, "method": "id", "x": "id"},
    {"id": 1.5, "params": {"id": 5}},
    {"id": [5], "params": {"id": 5}},
]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("frame", FRAMES, ids=range(len(FRAMES)))
def test_wherever_a_frame_is_cut_its_head_shows_its_own_id_or_none(
    frame: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(frame, indent=indent, ensure_ascii=ascii_only).encode()
    id = frame.get("id")
    id = id if type(id) in (int, str) else None
    found = [salvage_id(text[:end]) for end in range(len(text) + 1)]
    assert set(found) <= {None, id}
    assert found[-1] == id
    # Once seen it is not lost again.
    assert found == sorted(found, key=lambda one: one is not None)


def test_every_id_at_the_top_level_is_listed() -> None:
    (head,) = message_heads(b'{"id":1,"id":null,"x":{"id":2},"id":"3","id":[4]}')
    assert head.ids == [1, None, "3", None]
    assert head.id is None


def test_the_names_at_the_top_level_are_those_of_the_message() -> None:
    (head,) = message_heads(rb'{"a":{"b":1},"\u0063":["d",{"e":1}],"f":"g","h')
    assert head.names == {b"a", b"c", b"f"}
    assert not head.is_closed


def test_a_batch_has_the_names_and_ids_of_each_message() -> None:
    heads = message_heads(b'[1,{"id":1,"result":{"id":2}},[{"id":3}],{"method":"m"},{"id":4')
    assert [(head.names, head.ids, head.is_closed) for head in heads] == [
        ({b"id", b"result"}, [1], True),
        ({b"method"}, [], True),
        ({b"id"}, [None], False),
    ]


@pytest.mark.parametrize(
    ("text", "is_reply", "is_notification"),
    [
        (b'{"id":1,"result":NaN}', True, False),
        (b'{"id":1,"error":{', True, False),
        (b'{"error":{},}', True, False),
        (b'{"id":1,"method":"m","x":NaN}', False, False),
        (b'{"id":1,"method":"m","result":NaN}', False, False),
        (b'{"method":"m","x":NaN}', False, True),
        (b'{"method":"m","params":{"id":1,"x":"\xff"}}', False, True),
        (b'{"method":"m","id":NaN}', False, False),
        (b'{"method":"m","params":{"x":1}', False, False),  # an id may follow
        (b'{"id":1,"x":NaN}', False, False),
    ],
)
def test_the_names_of_a_message_show_its_kind(
    text: bytes, is_reply: bool, is_notification: bool
) -> None:
    (head,) = message_heads(text)
    assert (head.is_reply, head.is_notification) == (is_reply, is_notification)


@pytest.mark.parametrize(
    "text", [b"", b"x", b'"id":7', b'x {"id":7}', b'{"id":7} {"id":8}', b"{}[]"]
)
def test_message_heads_of_text_that_is_not_one_value_is_empty(text: bytes) -> None:
    assert message_heads(text) == []


def test_a_byte_order_mark_does_not_hide_the_message_after_it() -> None:
    assert message_heads(b'\xef\xbb\xbf{"id":7}')[0].id == 7


# What a hostile text costs


def test_a_long_string_costs_no_memory() -> None:
    # A repeat that can be taken back would cost some fifty bytes for each character.
    text = b'{"a":"' + b"x" * 1_000_000 + rb"\n\"" * 500_000 + b'","b":1,"b":2}'
    tracemalloc.start()
    found = twice_in(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == TokenFault("jsonrpc.text.duplicate-key", "/b", "b")
    assert peak < 100_000


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"0," * 75_000,
        b'["' + b"x" * 150_000,
        b'"' * 150_001,
        b"\\" * 150_000,
        b'"\\' * 75_000,
        b'""' + b" " * 150_000,
        b'"" ' * 50_000,
        b'{"' + b"\\u0061" * 25_000 + b'":',
        b"9" * 150_000 + b".",
        (b"9" * 4300 + b".") * 35,
        b"-" * 150_000,
    ],
    ids=[
        "numbers",
        "open-string",
        "quotes",
        "backslashes",
        "escaped-quotes",
        "blanks",
        "blanks-between",
        "escapes-in-a-name",
        "one-number",
        "long-numbers",
        "signs",
    ],
)
def test_a_hostile_text_is_scanned_in_linear_time(text: bytes) -> None:
    # A pattern that starts again from each character takes half a minute for one of these;
    # one that does not, a few milliseconds.
    start = process_time()
    find_excess(text, depth=256, digits=DIGITS, unique_names=True)
    find_excess(text, depth=256, digits=5, unique_names=True)
    message_heads(text)
    assert process_time() - start < 3


# Depth alone, at the speed of bytes methods


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (b"", 0),
        (b"1", 0),
        (b"[]", 1),
        (b"{}", 1),
        (b"[[],{}]", 2),
        (b'{"a":{"b":[{}]}}', 4),
        (b'["[[[[",[]]', 2),
        (b'["]]]]",[[[]]]]', 4),
        (b'["\\"[[[[",[]]', 2),
        (b'["\\\\",[[]]]', 3),
        (b'["\\\\\\"[",[]]', 2),
        (b'["a\\n","[","]",[{}]]', 3),
        (b'["[","{",[]]', 2),
        (b'["","",[[]]]', 3),
        (b'{"[":{"]":{"{":1}}}', 3),
        (b"[" * 300, 300),
        (b"[" * 100 + b"]" * 100 + b"{" * 7, 100),
        (b"[1]]]]]]]]]][[[[", 1),
        ('["é[ü]ß",[[]]]'.encode(), 3),
        (b'[[[["an open string [[[[[[[', 4),
        (b"[" + b",".join([b"[" * 130 + b"]" * 130] * 40) + b"]", 131),
    ],
)
def test_the_depth_is_exact_and_strings_do_not_count(text: bytes, depth: int) -> None:
    assert not nests_deeper(text, depth)
    for limit in (*range(min(depth, 5)), depth - 1):
        if limit >= 0:
            assert nests_deeper(text, limit) is (limit < depth), limit


_LONG = json.dumps('[{"a": ["b"]}, ' * 5_000).encode()


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        (b'{"a":[%b]}' % _LONG, 2),
        (b'{"a":%b,"b":[[[{}]]]}' % _LONG, 5),
        (b'{"a":%b,"b":"[\\"[",c:[[]]}' % _LONG, 3),
        (b"[%b,[[]],%b]" % (_LONG, _LONG), 3),
        # A string that ends in an escaped backslash, before brackets that count.
        (b'[%b\\\\",[[[["\\""]]]]]' % _LONG[:-1], 5),
        # Quotes that are not escaped, between two that are.
        (b'["\\"",%b,"\\""]' % (b"[" * 40_000 + b"]" * 40_000), 40_001),
        (b'["\\"",%b,"\\""]' % b",".join([b'["a"]'] * 9_000), 2),
        # A string that is not closed.
        (b"[[" + _LONG[:-1], 2),
    ],
)
def test_json_as_text_is_skipped_and_what_is_around_it_counts(text: bytes, depth: int) -> None:
    assert not nests_deeper(text, depth)
    assert nests_deeper(text, depth - 1)


@pytest.mark.parametrize("letters", range(12))
def test_an_escaped_backslash_is_seen_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch, letters: int
) -> None:
    monkeypatch.setattr(tokenizer, "FOUND_FASTER_BYTES", 2)
    # The quote after two backslashes ends the string, and the brackets after it count.
    text = b'["%b\\"\\\\",[[[["x"]]]]]' % (b"a" * letters)
    assert json.loads(text) == ["a" * letters + '"\\', [[[["x"]]]]]
    assert nests_deeper(text, 4)
    assert not nests_deeper(text, 5)


def test_the_long_string_of_a_message_is_left_out_before_brackets_are_counted() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":%b}]}}' % _LONG
    assert tokenizer._without_escaped_string(text) == text.replace(_LONG, b"")


def test_a_megabyte_of_any_shape_is_measured_faster_than_it_is_parsed() -> None:
    # Not the time itself: `json` takes 8 to 30 ms for each of these where this takes 2 to 8.
    shapes = [
        b"[" + b",".join([b'{"name":"x","value":1}'] * 45_000) + b"]",
        b"[" + b",".join([b'{"a":1}'] * 130_000) + b"]",
        b"[" + b",".join([b"[" * 99 + b"]" * 99] * 5_000) + b"]",
        b"[" + b",".join([b'"[\\""'] * 170_000) + b"]",
    ]
    for text in shapes:
        ours = min(_seconds(lambda text=text: nests_deeper(text, 256)) for _ in range(3))
        theirs = min(_seconds(lambda text=text: json.loads(text)) for _ in range(3))
        assert ours < 2 * theirs


def test_a_string_that_is_read_to_its_end_in_vain_costs_less_than_parsing_objects() -> None:
    in_vain = json.dumps('[{"a":1}]' * 90_000).encode()[:-1] + b'\\\\","b":"\\""'
    text, objects = b'{"a":%b}' % in_vain, b"[" + b",".join([b'{"a":1}'] * 130_000) + b"]"
    assert tokenizer._without_escaped_string(text) is None
    ours = min(_seconds(lambda: nests_deeper(text, 256)) for _ in range(3))
    theirs = min(_seconds(lambda: json.loads(objects)) for _ in range(3))
    assert ours < theirs


def _seconds(work: Any) -> float:
    start = process_time()
    work()
    return process_time() - start


# Large members

VALUE = b'{"text":"' + b"x" * LARGE_BYTES + b'"}'


def result(text: bytes) -> tuple[LargeMember, bytes] | None:
    message = text.replace(b"VALUE", VALUE)
    found = find_result(message)
    return None if found is None else (found, message[found.start : found.end])


def params(text: bytes) -> tuple[LargeMember, bytes] | None:
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


def test_part_includes_members_after_it_and_then_does_not_decode() -> None:
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


def test_message_heads_stops_after_as_many_messages_as_are_wanted() -> None:
    text = b'[{"id":1,"result":1},{"id":2},{"id":3}'
    assert [head.id for head in message_heads(text, 2)] == [1, 2]
    assert [head.is_closed for head in message_heads(text, 2)] == [True, True]
    assert [head.id for head in message_heads(text, 3)] == [1, 2, 3]
