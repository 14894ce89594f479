"""Shapes: what the decoder accepts in C is exactly what a policy allows."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from msgspec import UNSET, Raw, Struct, ValidationError
from msgspec.json import Decoder

from trunkline.jsonrpc import Call, Limits, Policy, Reply
from trunkline.jsonrpc.codec.wire_types import (
    Loose,
    call_shape,
    loose_shape,
    params_type,
    result_shape,
    result_type,
    typed_call_shapes,
)

MCP = Policy()
LENIENT = Policy(strictness="lenient")
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m"}
REPLY: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}
ANYTHING = [None, True, 0, -1, 1.5, "", "x", [], {}, ["x"], {"x": 1}]


def read(shape: Any, members: Any) -> Any:
    return Decoder(shape).decode(json.dumps(members).encode())


def accepts(shape: Any, members: Any) -> bool:
    try:
        read(shape, members)
    except ValidationError:
        return False
    return True


# Calls


def test_a_call_needs_a_version_and_a_method() -> None:
    shape = call_shape(MCP, params=Raw)
    assert accepts(shape, CALL)
    for missing in ("jsonrpc", "method"):
        assert not accepts(shape, {key: CALL[key] for key in CALL if key != missing})
    assert accepts(shape, {"jsonrpc": "2.0", "method": "m"})


def test_a_call_is_read_as_what_callers_see() -> None:
    found = read(call_shape(MCP, params=Raw), {**CALL, "params": {"a": 1}})
    assert isinstance(found, Call)
    assert (found.id, found.method, bytes(found.params)) == (1, "m", b'{"a": 1}')
    note = read(call_shape(MCP, params=Raw), {"jsonrpc": "2.0", "method": "m"})
    assert note.id is UNSET
    assert note.params is UNSET


@pytest.mark.parametrize("version", [*ANYTHING, "2", "2.00", "1.0", "2.0 ", 2.0, 2])
def test_the_version_is_that_one_string(version: Any) -> None:
    for policy in (MCP, LENIENT):
        assert not accepts(call_shape(policy, params=Raw), {**CALL, "jsonrpc": version})
        assert not accepts(result_shape(policy), {**REPLY, "jsonrpc": version})


def test_only_a_lenient_call_may_lack_its_version() -> None:
    assert accepts(call_shape(LENIENT, params=Raw), {"method": "m"})
    assert accepts(result_shape(LENIENT), {"id": 1, "result": {}})
    assert not accepts(call_shape(MCP, params=Raw), {"method": "m"})


@pytest.mark.parametrize(("member", "value"), list(product(["result", "error"], ANYTHING)))
def test_a_call_has_no_outcome_whatever_it_is(member: str, value: Any) -> None:
    assert not accepts(call_shape(MCP, params=Raw), {**CALL, member: value})


@pytest.mark.parametrize(
    ("null_id", "strictness", "accepted"),
    [
        ("reject", "standard", [0, -1, "", "x"]),
        ("as-request", "standard", [None, 0, -1, "", "x"]),
        ("as-notification", "standard", [None, 0, -1, "", "x"]),
        ("reject", "lenient", [0, -1, 1.5, "", "x"]),
    ],
)
def test_an_id_is_what_the_policy_lets_it_be(
    null_id: Any, strictness: Any, accepted: list[Any]
) -> None:
    shape = call_shape(Policy(null_id=null_id, strictness=strictness), params=Raw)
    found = [value for value in ANYTHING if accepts(shape, {**CALL, "id": value})]
    assert found == accepted


def test_lengths_are_exact() -> None:
    shape = call_shape(Policy(limits=Limits(id_length=3, method_length=4)), params=Raw)
    assert accepts(shape, {**CALL, "id": "éüx", "method": "méth"})
    assert not accepts(shape, {**CALL, "id": "éüxx"})
    assert not accepts(shape, {**CALL, "method": "metho"})
    assert not accepts(shape, {**CALL, "method": ""})


@pytest.mark.parametrize(
    ("params", "accepted"),
    [
        ("object", [{}, {"x": 1}]),
        ("structured", [[], {}, ["x"], {"x": 1}]),
        ("nullable", [None, [], {}, ["x"], {"x": 1}]),
    ],
)
def test_params_are_what_the_policy_lets_them_be(params: Any, accepted: list[Any]) -> None:
    policy = Policy(params=params)
    shape = call_shape(policy, params=params_type(policy))
    assert [value for value in ANYTHING if accepts(shape, {**CALL, "params": value})] == accepted


def test_absent_params_are_what_the_caller_wants() -> None:
    assert read(call_shape(MCP, params=Raw), CALL).params is UNSET
    assert read(call_shape(MCP, params=dict[str, Any], absent=None), CALL).params is None


def test_unknown_members_are_skipped() -> None:
    shape = call_shape(MCP, params=Raw)
    assert accepts(shape, {**CALL, "x": 1, "auth": 5, "headers": 5, "metadata": 5})


@pytest.mark.parametrize(
    ("member", "accepted"),
    [
        ("auth", [None, "", "x"]),
        ("headers", [None, {}, {"x": 1}]),
        ("metadata", [{}]),
    ],
)
def test_extensions_are_checked_where_they_mean_something(member: str, accepted: list[Any]) -> None:
    shape = loose_shape(Policy.pierre(), params=Raw, result=Raw)
    assert [value for value in ANYTHING if accepts(shape, {**CALL, member: value})] == accepted
    assert accepts(shape, {**CALL, "metadata": {"x": "y"}})


# Calls with typed params


class Point(Struct):
    x: int


class Name(Struct):
    name: str


def test_the_method_decides_which_type_params_are() -> None:
    point, name = typed_call_shapes(MCP, {"point": Point, "name": Name})
    found = read(point | name, {**CALL, "method": "name", "params": {"name": "tom"}})
    assert (found.method, found.id, found.params) == ("name", 1, Name("tom"))
    found = read(point | name, {"jsonrpc": "2.0", "method": "point", "params": {"x": 5}})
    assert (found.method, found.id, found.params) == ("point", UNSET, Point(5))
    assert type(found) is point


def test_a_typed_call_is_as_strict_as_another() -> None:
    shape, _ = typed_call_shapes(Policy(limits=Limits(id_length=3)), {"point": Point})
    good = {**CALL, "method": "point", "params": {"x": 5}}
    assert accepts(shape, good)
    wrongs: list[dict[str, Any]] = [
        {"params": {}},
        {"params": None},
        {"jsonrpc": "1.0"},
        {"id": None},
        {"id": True},
        {"id": "long"},
        {"method": "other"},
        {"result": None},
        {"error": None},
    ]
    for wrong in wrongs:
        assert not accepts(shape, {**good, **wrong})
    assert not accepts(shape, {**CALL, "method": "point"})


def test_a_typed_call_shows_no_secret() -> None:
    class Login(Struct):
        password: str

    shape, _ = typed_call_shapes(MCP, {"login": Login})
    found = read(shape, {**CALL, "method": "login", "params": {"password": "hunter2"}})
    assert repr(found) == ("Call(method='login', id=1, params={'password': '[redacted]'})")


# Replies


def test_a_reply_needs_an_id_and_a_result() -> None:
    shape = result_shape(MCP)
    found = read(shape, REPLY)
    assert isinstance(found, Reply)
    assert (found.id, bytes(found.result), found.error) == (1, b"{}", UNSET)  # type: ignore[arg-type]
    for missing in REPLY:
        assert not accepts(shape, {key: REPLY[key] for key in REPLY if key != missing})


@pytest.mark.parametrize(("member", "value"), list(product(["method", "error"], ANYTHING)))
def test_a_result_has_no_method_and_no_error_whatever_it_is(member: str, value: Any) -> None:
    assert not accepts(result_shape(MCP), {**REPLY, member: value})


def test_the_id_of_a_reply_is_a_string_or_an_integer() -> None:
    shape = result_shape(Policy(limits=Limits(id_length=1)))
    found = [value for value in [*ANYTHING, "xx"] if accepts(shape, {**REPLY, "id": value})]
    assert found == [0, -1, "", "x"]


def test_results_are_what_the_policy_lets_them_be() -> None:
    for policy, accepted in ((MCP, [{}, {"x": 1}]), (Policy(results="any"), ANYTHING)):
        shape = loose_shape(policy, params=params_type(policy), result=result_type(policy))
        assert [one for one in ANYTHING if accepts(shape, {**REPLY, "result": one})] == accepted


# Anything


def test_a_loose_shape_needs_nothing_but_the_version() -> None:
    found = read(loose_shape(MCP, params=Raw, result=Raw), {"jsonrpc": "2.0"})
    assert isinstance(found, Loose)
    values = {getattr(found, name) for name in found.__struct_fields__ if name != "jsonrpc"}
    assert values == {UNSET}
    assert not accepts(loose_shape(MCP, params=Raw, result=Raw), {})
    assert accepts(loose_shape(LENIENT, params=Raw, result=Raw), {})


def test_loose_shape_distinguishes_null_from_absent() -> None:
    found = read(
        loose_shape(Policy.pierre(), params=Raw, result=Any),
        {"jsonrpc": "2.0", "id": None, "result": None, "auth": None, "headers": None},
    )
    assert (found.id, found.result, found.auth, found.headers) == (None, None, None, None)
    assert (found.method, found.metadata) == (UNSET, UNSET)


@pytest.mark.parametrize(
    "error",
    [
        None,
        "x",
        [],
        {},
        {"code": 1},
        {"message": "x"},
        {"code": "1", "message": "x"},
        {"code": 1.5, "message": "x"},
        {"code": True, "message": "x"},
        {"code": 1, "message": 2},
    ],
)
def test_an_error_is_an_object_with_code_and_message(error: Any) -> None:
    shape = loose_shape(MCP, params=Raw, result=Raw)
    assert not accepts(shape, {"jsonrpc": "2.0", "id": 1, "error": error})
    good = {"code": 1, "message": "x", "data": error, "more": error}
    assert accepts(shape, {"jsonrpc": "2.0", "id": 1, "error": good})
