from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import pytest

from trunkline.auth import Principal

CANARY = "CANARY-7e1"


def test_principals_differ_by_issuer_subject_client_and_tenant() -> None:
    same: dict[str, Any] = {"issuer": "https://a", "subject": "ann", "client_id": "app"}
    others = [
        Principal(**same),
        Principal(**same | {"issuer": "https://b"}),
        Principal(**same | {"subject": "bob"}),
        Principal(**same | {"client_id": "other"}),
        Principal(**same, tenant="one"),
        Principal(**same, tenant=""),
        # Parts that would be the same text if they were joined.
        Principal(issuer="https://aann", subject="", client_id="app"),
        Principal(issuer="https://a", subject="annapp"),
        Principal(issuer="https://a", subject="ann", client_id="app-"),
    ]
    for one, other in combinations(others, 2):
        assert one != other
        assert one.key != other.key
    assert len({each.key for each in others}) == len(others)


def test_scopes_claims_and_expiry_do_not_make_another_principal() -> None:
    one = Principal(subject="ann", scopes={"a"}, claims={"exp": 1}, expires_at=1)  # type: ignore[arg-type]  # any iterable
    other = Principal(subject="ann", scopes=frozenset({"b"}), expires_at=2)
    assert one == other
    assert hash(one) == hash(other)
    assert one.scopes == frozenset({"a"})
    assert one != "ann"


def test_a_principal_cannot_be_changed() -> None:
    one = Principal(subject="ann", claims={"roles": []})
    with pytest.raises(AttributeError):
        one.subject = "bob"  # type: ignore[misc]  # frozen
    with pytest.raises(TypeError):
        one.claims["roles"] = ["admin"]  # type: ignore[index]  # a view that cannot be set
    moved = one.with_tenant("acme")
    assert (one.tenant, moved.tenant) == (None, "acme")
    assert moved.key != one.key
    assert moved.claims == one.claims


def test_the_key_and_the_repr_show_no_claim() -> None:
    one = Principal(subject="ann", claims={"email": CANARY, "access_token": CANARY})
    assert CANARY not in repr(one) + str(one) + one.key + repr(one.__rich_repr__())
    assert "[redacted]" in repr(one)
    assert str(one) == "'ann'"
    assert str(Principal(subject="", client_id="app")) == "'app'"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"subject": 5}, TypeError, "subject is a str"),
        ({"subject": "a", "issuer": None}, TypeError, "issuer is a str"),
        ({"subject": ""}, ValueError, "a subject or a client_id"),
        ({"subject": "a", "tenant": 7}, TypeError, "tenant is a str or None"),
        ({"subject": "a", "scopes": "files:read"}, TypeError, "a set of texts"),
        ({"subject": "a", "scopes": [1]}, TypeError, "a set of texts"),
        ({"subject": "a", "scopes": 5}, TypeError, "a set of texts"),
    ],
)
def test_wrong_members_are_refused(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Principal(**options)


def test_a_subject_with_half_a_character_has_a_key() -> None:
    assert Principal(subject="\ud800").key != Principal(subject="\ud801").key


def test_a_principal_is_pickled_without_losing_its_identity() -> None:
    one = Principal(issuer="https://a", subject="ann", scopes=frozenset({"a"}), tenant="t")
    assert pickle.loads(pickle.dumps(one)) == one
