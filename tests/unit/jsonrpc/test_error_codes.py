"""Errors by name: the number, the text and the data that a policy gives a symbol."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from trunkline.jsonrpc import ErrorObject, Policy, named_error
from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.profiles import PROFILE_NAMES, UnknownSymbol, profile
from trunkline.spec.revisions import REVISIONS

ERLMCP_NOW = Policy.erlmcp().replace(revision="2026-07-28")


def test_a_name_becomes_its_number_and_its_sentence() -> None:
    assert named_error("METHOD_NOT_FOUND") == ErrorObject(-32601, "Method not found")
    assert named_error(ErrorKind.PARSE_ERROR) == ErrorObject(-32700, "Parse error")


@pytest.mark.parametrize(
    ("policy", "number"),
    [
        (Policy.mcp("2025-11-25"), -32002),
        (Policy.mcp("2026-07-28"), -32602),
        (Policy.erlmcp(), -32001),
        (ERLMCP_NOW, 32001),
    ],
    ids=["before", "after", "erlmcp", "erlmcp-moved"],
)
def test_the_same_name_has_a_number_per_profile_and_revision(policy: Policy, number: int) -> None:
    # the rows: K-24, K-25
    assert named_error("RESOURCE_NOT_FOUND", policy=policy).code == number


@pytest.mark.parametrize("name", PROFILE_NAMES)
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_symbol_of_every_profile_makes_an_error(name: str, revision: str) -> None:
    policy = Policy(codes=name, revision=revision)
    codes = profile(name)
    for symbol in codes.symbols(revision):
        error = named_error(symbol, policy=policy)
        number, moved_from = codes.to_send(symbol, revision)
        assert (error.code, error.message) == (number, codes.text(symbol, revision))
        data = UNSET if moved_from is None else {"originalCode": moved_from}
        assert error.data == data


def test_a_profile_without_a_word_for_it_uses_the_official_one() -> None:
    error = named_error("HEADER_MISMATCH", policy=Policy.pierre().replace(revision="2026-07-28"))
    assert (error.code, error.data) == (-32020, UNSET)


# A number that has to give way


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (UNSET, {"originalCode": -32002}),
        ({"tool": "echo"}, {"tool": "echo", "originalCode": -32002}),
        ({}, {"originalCode": -32002}),
        ("some text", {"originalCode": -32002, "details": "some text"}),
        ([1, 2], {"originalCode": -32002, "details": [1, 2]}),
        (None, {"originalCode": -32002, "details": None}),
    ],
)
def test_replaced_error_code_is_sent_in_the_data(data: Any, sent: Any) -> None:
    # the row: K-24
    error = named_error("TOOL_NOT_FOUND", policy=ERLMCP_NOW, data=data)
    assert (error.code, error.data) == (32002, sent)


def test_unchanged_error_code_is_not_repeated_in_the_data() -> None:
    error = named_error("TOOL_NOT_FOUND", policy=Policy.erlmcp(), data={"tool": "echo"})
    assert (error.code, error.data) == (-32002, {"tool": "echo"})


def test_the_callers_data_is_left_as_it_was() -> None:
    data = {"tool": "echo"}
    named_error("TOOL_NOT_FOUND", policy=ERLMCP_NOW, data=data)
    assert data == {"tool": "echo"}


def test_single_facts_are_kept_beside_the_number_that_gave_way() -> None:
    error = named_error("TOOL_NOT_FOUND", policy=ERLMCP_NOW, tool="echo")
    assert error.data == {"tool": "echo", "originalCode": -32002}


# Data and text


def test_facts_are_members_of_the_data() -> None:
    error = named_error("INVALID_PARAMS", uri="file:///x", line=3)
    assert error.data == {"uri": "file:///x", "line": 3}


def test_data_of_null_is_a_value() -> None:
    assert named_error("INVALID_PARAMS", data=None).data is None
    assert named_error("INVALID_PARAMS").data is UNSET


def test_data_is_given_once() -> None:
    with pytest.raises(TypeError, match="either data or its members by name, not both"):
        named_error("INVALID_PARAMS", data={"a": 1}, uri="x")
    with pytest.raises(TypeError, match="not both"):
        named_error("INVALID_PARAMS", data=None, uri="x")


def test_the_text_can_be_the_callers() -> None:
    assert named_error("INVALID_PARAMS", message="No such tool").message == "No such tool"
    assert named_error("INVALID_PARAMS", message="").message == ""


# A name nobody knows


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("TOOL_NOT_FUOND", "TOOL_NOT_FOUND"),
        ("INTERNAL_EROR", "INTERNAL_ERROR"),
        ("PARSER_ERROR", "PARSE_ERROR"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(typed: str, meant: str) -> None:
    with pytest.raises(LookupError) as caught:
        named_error(typed, policy=Policy.erlmcp())
    text = f"profile 'erlmcp' has no symbol '{typed}' in 2025-11-25; did you mean '{meant}'?"
    assert caught.value.args == (text,)


def test_a_name_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(UnknownSymbol) as caught:
        named_error("QQQQ")
    assert caught.value.args == ("profile 'mcp' has no symbol 'QQQQ' in 2026-07-28",)


def test_a_name_that_is_only_read_is_refused_and_says_so() -> None:
    with pytest.raises(LookupError, match="but never sends it in 2026-07-28"):
        named_error("URL_ELICITATION_REQUIRED")
