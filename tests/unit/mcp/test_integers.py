"""Integers that are written as doubles are integers where a type expects one."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from trunkline.mcp.integers import convert_integers, decode_integers, with_integers_at


class Size(enum.IntEnum):
    SMALL = 1


class Inner(Struct):
    n: int


class Values(Struct, forbid_unknown_fields=True):
    n: int = 0
    maybe: int | None = None
    several: list[int] = []
    named: dict[str, int] = {}
    inner: Inner | None = None
    inners: list[Inner] = []
    pair: tuple[int, float] = (0, 0.0)
    choice: Literal[1, 2] = 1
    size: Size = Size.SMALL
    least: Annotated[int, Meta(ge=1)] = 1
    either: int | str = 0
    flag: int | bool = 0
    number: float = 0.0
    any: Any = None
    both: int | float = 0


def read(text: str) -> Any:
    decode = msgspec.json.Decoder(Values).decode
    try:
        return decode(text.encode())
    except msgspec.ValidationError as error:
        return decode_integers(text.encode(), decode, error)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ('{"n": 5.0}', "n", 5),
        ('{"n": 5e2}', "n", 500),
        ('{"n": -0.0}', "n", 0),
        ('{"n": 9007199254740992.0}', "n", 2**53),
        ('{"maybe": 5.0}', "maybe", 5),
        ('{"several": [1, 2.0, 3.0]}', "several", [1, 2, 3]),
        ('{"named": {"a.b": 1.0, "c": 2.0}}', "named", {"a.b": 1, "c": 2}),
        ('{"inner": {"n": 1.0}}', "inner", Inner(1)),
        ('{"inners": [{"n": 1.0}, {"n": 2.0}]}', "inners", [Inner(1), Inner(2)]),
        ('{"pair": [1.0, 2.0]}', "pair", (1, 2.0)),
        ('{"choice": 2.0}', "choice", 2),
        ('{"size": 1.0}', "size", Size.SMALL),
        ('{"least": 1.0}', "least", 1),
        ('{"either": 1.0}', "either", 1),
        ('{"flag": 1.0}', "flag", 1),
    ],
)
def test_a_number_without_a_fraction_is_an_integer(text: str, name: str, value: Any) -> None:
    found = getattr(read(text), name)
    assert found == value
    assert type(found) is type(value)


def test_other_numbers_stay_what_they_are() -> None:
    found = read('{"n": 1.0, "number": 2.0, "any": 3.0, "both": 4.0, "pair": [5.0, 6.5]}')
    assert [type(each) for each in (found.n, found.number, found.any, found.both)] == [
        int, float, float, float,
    ]  # fmt: skip
    assert found.pair == (5, 6.5)


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 5.5}',
        '{"n": 9007199254740994.0}',
        '{"n": 1e300}',
        '{"n": true}',
        '{"n": "5.0"}',
        '{"several": [1.0, 2.5]}',
        '{"least": 0.0}',
        '{"choice": 3.0}',
        '{"n": 1.0, "unknown": 1}',
        '{"n": 1.0, "maybe": "x"}',
    ],
)
def test_other_faults_raise_validation_error(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(text)


def test_error_names_the_remaining_fault_after_integers_are_converted() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int \| null`, got `str`.*maybe"):
        read('{"n": 1.0, "maybe": "x"}')


def test_the_number_of_decodings_is_bounded() -> None:
    class Wide(Struct):
        pass

    fields = [(f"f{number}", int) for number in range(40)]
    wide = msgspec.defstruct("Wide", fields, bases=(Wide,))
    calls: list[bytes] = []
    decode = msgspec.json.Decoder(wide).decode

    def counted(raw: bytes) -> Any:
        calls.append(raw)
        return decode(raw)

    for count, is_read in [(15, True), (40, False)]:
        calls.clear()
        values = {name: 1.0 if at < count else 1 for at, (name, _) in enumerate(fields)}
        text = json.dumps(values).encode()
        with pytest.raises(msgspec.ValidationError) as caught:
            decode(text)
        if is_read:
            decode_integers(text, counted, caught.value)
        else:
            with pytest.raises(msgspec.ValidationError):
                decode_integers(text, counted, caught.value)
        assert len(calls) <= 16


def test_a_long_list_takes_one_more_decoding() -> None:
    text = json.dumps({"several": [1.0] * 10_000}).encode()
    calls: list[bytes] = []
    decode = msgspec.json.Decoder(Values).decode

    def counted(raw: bytes) -> Any:
        calls.append(raw)
        return decode(raw)

    with pytest.raises(msgspec.ValidationError) as caught:
        decode(text)
    assert decode_integers(text, counted, caught.value).several == [1] * 10_000
    assert len(calls) == 1


def test_the_value_itself_may_be_the_integer() -> None:
    decode = msgspec.json.Decoder(int).decode
    for text, value in ((b"5.0", 5), (b"-1e2", -100)):
        with pytest.raises(msgspec.ValidationError) as refused:
            decode(text)
        assert decode_integers(text, decode, refused.value) == value
    with pytest.raises(msgspec.ValidationError) as refused:
        decode(b"5.5")
    with pytest.raises(msgspec.ValidationError, match="got `float`"):
        decode_integers(b"5.5", decode, refused.value)


def test_a_value_that_is_decoded_already_is_converted_alike() -> None:
    def convert(value: Any) -> Any:
        return msgspec.convert(value, list[Inner] | int)

    given = [{"n": 1.0}, {"n": 2.0}]
    with pytest.raises(msgspec.ValidationError) as caught:
        convert(given)
    assert convert_integers(given, convert, caught.value) == [Inner(1), Inner(2)]
    assert given == [{"n": 1.0}, {"n": 2.0}]
    assert type(given[0]["n"]) is float
    with pytest.raises(msgspec.ValidationError) as caught:
        convert(5.0)
    assert convert_integers(5.0, convert, caught.value) == 5
    other = ValueError("another reason")
    with pytest.raises(ValueError, match="another reason"):
        convert_integers(5.0, convert, other)


@pytest.mark.parametrize(
    ("value", "places", "changed"),
    [
        (5.0, [()], 5),
        ({"a": [1.0, 2.0], "b": 3.0}, [("a", 0), ("b",)], {"a": [1, 2.0], "b": 3}),
        ({"a": 1.5}, [("a",)], {"a": 1.5}),
        ({"a": 1.0}, [("b",), ("a", "c"), ("a", 0), (0,)], {"a": 1.0}),
        ([1.0], [(1,), ("0",)], [1.0]),
        ([1.0, 2.0], [(1,), (1,)], [1.0, 2]),
    ],
)
def test_integers_are_put_at_places(value: Any, places: Any, changed: Any) -> None:
    before = repr(value)
    found = with_integers_at(value, places)
    assert repr(found) == repr(changed)
    assert repr(value) == before
    assert (found is value) == (repr(changed) == before)
