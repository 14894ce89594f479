from __future__ import annotations

import pytest

from tests.cases import for_each
from tests.cpu_time import calibration_s, cpu_s
from trunkline.auth.challenge import (
    Challenge,
    format_challenge,
    parse_challenges,
    split_scopes,
)

METADATA = "https://a.example/.well-known/oauth-protected-resource"


@for_each(
    ("value", "expected"),
    [
        ("Bearer", [("bearer", {})]),
        ("", []),
        ("  ,, ", []),
        ('Bearer realm="a"', [("bearer", {"realm": "a"})]),
        ("bearer error=invalid_token", [("bearer", {"error": "invalid_token"})]),
        (
            f'Bearer error="insufficient_scope", scope="a b",resource_metadata="{METADATA}"',
            [
                (
                    "bearer",
                    {
                        "error": "insufficient_scope",
                        "scope": "a b",
                        "resource_metadata": METADATA,
                    },
                )
            ],
        ),
        # A quoted comma, a quoted quote, and blanks around "=".
        (r'Bearer realm = "a, \"b\"" , x=y', [("bearer", {"realm": 'a, "b"', "x": "y"})]),
        # Several in one value, one of them with a token in place of parameters.
        (
            'Negotiate YWJj==, DPoP algs="ES256 RS256", Bearer scope="a"',
            [("negotiate", {}), ("dpop", {"algs": "ES256 RS256"}), ("bearer", {"scope": "a"})],
        ),
        ("Basic, Bearer", [("basic", {}), ("bearer", {})]),
        # The first of two parameters of a name counts.
        ('Bearer scope="a", SCOPE="b"', [("bearer", {"scope": "a"})]),
        # What is malformed ends the value.
        ('Bearer scope="a', [("bearer", {})]),
    ],
)
def test_challenges_are_read(value: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    found = parse_challenges([value])
    assert [(each.scheme, dict(each.parameters)) for each in found][: len(expected)] == expected
    if expected and expected[-1][1]:
        assert len(found) == len(expected)


def test_challenges_of_several_headers_are_joined_and_bounded() -> None:
    assert [each.scheme for each in parse_challenges(["Basic", "Bearer"])] == ["basic", "bearer"]
    assert len(parse_challenges(["Bearer, " * 4000])) == 16
    assert len(parse_challenges(["Bearer"] * 4000)) == 16


def test_members_of_a_challenge_have_names() -> None:
    one = Challenge("bearer", {"error": "e", "scope": "b  a", "resource_metadata": METADATA})
    assert (one.error, one.scopes, one.resource_metadata) == ("e", {"a", "b"}, METADATA)
    assert Challenge("bearer").error is None


@for_each("value", ["a=" * 4096, '"' * 8192, "Bearer " + 'x="\\' * 2000, "Bearer " + "a=b," * 2000])
def test_a_hostile_value_costs_time_linear_in_its_length(value: str) -> None:
    assert cpu_s(lambda: parse_challenges([value])) < 50 * calibration_s()


def test_a_challenge_is_written_so_that_it_can_be_read() -> None:
    parameters = {"scope": "a b", "error_description": 'it "is" \\ over', "realm": ""}
    written = format_challenge("Bearer", parameters)
    assert [dict(each.parameters) for each in parse_challenges([written.decode()])] == [parameters]
    assert format_challenge("DPoP", {}) == b"DPoP"


@for_each("value", ["a\r\nSet-Cookie: x", "é", "\x00"])
def test_a_parameter_that_would_be_another_header_is_not_written(value: str) -> None:
    with pytest.raises(ValueError, match="not printable ASCII"):
        format_challenge("Bearer", {"scope": value})


@for_each(
    ("text", "expected"),
    [
        ("a b", {"a", "b"}),
        ("", set()),
        (None, set()),
        (["a"], set()),
        ('a b"c d\\e f\x00 g', {"a", "g"}),
        ("a\tb", set()),
        ("https://example.org/files.read", {"https://example.org/files.read"}),
    ],
)
def test_scopes_are_split_and_what_is_not_a_scope_is_left_out(
    text: object, expected: set[str]
) -> None:
    assert split_scopes(text) == expected
