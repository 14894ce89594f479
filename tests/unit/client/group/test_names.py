"""Names of tools of several servers: within the rule of the specification, and never ambiguous."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.client.group.names import MAX_NAME_LENGTH, joined, owners, prefixes

RULE = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def test_a_name_has_its_server_in_front() -> None:
    assert joined(prefixes(["github"])["github"], "search") == "github_search"


def test_a_character_that_no_tool_may_have_becomes_an_underscore() -> None:
    assert prefixes(["@org/git hub"]) == {"@org/git hub": "_org_git_hub_"}


def test_servers_whose_tools_would_have_the_same_names_are_rejected() -> None:
    with pytest.raises(ValueError) as caught:
        prefixes(["git hub", "files", "git/hub"])
    assert str(caught.value) == (
        "the tools of 'git hub' and 'git/hub' would have the same names, git_hub_…: "
        "rename one of the servers"
    )


@pytest.mark.parametrize("name", ["", "x" * 64])
def test_the_name_of_a_server_has_a_length(name: str) -> None:
    with pytest.raises(ValueError, match="the name of a server has 1 to 63 characters"):
        prefixes([name])


def test_a_long_name_is_cut_and_stays_distinct() -> None:
    one, other = joined("a_", "x" * 127), joined("a_", "x" * 128)
    assert len(one) == len(other) == MAX_NAME_LENGTH
    assert one != other
    assert joined("a_", "x" * 126) == f"a_{'x' * 126}"


@given(st.text(min_size=1, max_size=63), st.from_regex(RULE, fullmatch=True))
def test_every_name_is_within_the_rule(server: str, tool: str) -> None:
    assert RULE.fullmatch(joined(prefixes([server])[server], tool))


def test_a_name_may_belong_to_two_servers() -> None:
    known = prefixes(["a", "a_b", "c"])
    assert owners(known, "a_b_c") == [("a", "b_c"), ("a_b", "c")]
    assert owners(known, "a_b_") == [("a", "b_")]
    assert owners(known, "c_x") == [("c", "x")]
    assert owners(known, "x") == owners(known, "c_") == []
