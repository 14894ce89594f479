"""Scopes and hierarchies of them."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.auth.scopes import MAX_IMPLIED, MAX_SCOPES, ImpliedScopes, check_scopes


def missing(implies: Any, needed: set[str], *held: str) -> set[str]:
    return set(ImpliedScopes(implies).missing(frozenset(needed), frozenset(held)))


def test_a_scope_that_is_held_is_not_missing() -> None:
    assert missing(None, {"a", "b"}, "a", "b", "c") == set()
    assert missing(None, {"a", "b"}, "a") == {"b"}
    assert missing(None, set()) == set()


def test_a_scope_grants_what_it_implies_through_others_too() -> None:
    implies = {"admin": ["write"], "write": ["read"]}
    assert missing(implies, {"read", "write"}, "admin") == set()
    assert missing(implies, {"read"}, "write") == set()
    assert missing(implies, {"admin"}, "write", "read") == {"admin"}


def test_scopes_may_imply_each_other() -> None:
    implies = {"a": ["b"], "b": ["c"], "c": ["a"]}
    for held in "abc":
        assert missing(implies, {"a", "b", "c"}, held) == set()
    assert missing({"a": ["a"]}, {"a"}, "b") == {"a"}


def test_names_are_compared_as_they_are_written() -> None:
    assert missing({"Admin": ["read"]}, {"read"}, "admin") == {"read"}


@pytest.mark.parametrize("scope", ["", "a b", 'a"', "a\\b", "ä", "a\n", "x" * 257])
def test_malformed_scope_is_refused(scope: str) -> None:
    with pytest.raises(ValueError, match="is not a scope"):
        check_scopes([scope])
    with pytest.raises(ValueError, match="is not a scope"):
        ImpliedScopes({scope: ["a"]})
    with pytest.raises(ValueError, match="is not a scope"):
        ImpliedScopes({"a": [scope]})


@pytest.mark.parametrize("scopes", ["files:read", b"x", 7, {"a": 1}, [1], [None]])
def test_scopes_are_a_list_of_texts(scopes: Any) -> None:
    with pytest.raises(TypeError):
        check_scopes(scopes)


def test_scopes_and_hierarchies_are_bounded() -> None:
    check_scopes([f"s{n}" for n in range(MAX_SCOPES)])
    with pytest.raises(ValueError, match=f"at most {MAX_SCOPES}"):
        check_scopes([f"s{n}" for n in range(MAX_SCOPES + 1)])
    chain = {f"s{n}": [f"s{n + 1}"] for n in range(MAX_IMPLIED - 1)}
    assert missing(chain, {f"s{MAX_IMPLIED - 1}"}, "s0") == set()
    with pytest.raises(ValueError, match=f"at most {MAX_IMPLIED}"):
        ImpliedScopes({**chain, "more": ["s0"]})
    with pytest.raises(TypeError):
        ImpliedScopes(["a"])  # type: ignore[arg-type]  # what an author may write
