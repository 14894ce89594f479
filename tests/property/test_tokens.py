"""Any text as a token has a documented outcome; members that occur twice are always found."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.rigs.clock import Clock
from tests.unit.auth.tokens import AUDIENCE, ISSUER, NOW, bearer, claims, jwks, raw_token
from trunkline.auth import InvalidCredential, JwtBearer, Principal
from trunkline.auth.dpop import InvalidProof, parse_proof
from trunkline.auth.jose import parse_object

VERIFIER = JwtBearer(issuer=ISSUER, audience=AUDIENCE, keys=jwks(), clock=Clock(NOW))

# Few characters, so that names are equal often; the quote and the backslash are written escaped.
TEXTS = st.text(st.sampled_from('ab":\\,{}é\n'), max_size=3)
PLAIN = st.none() | st.booleans() | st.integers() | TEXTS


class Members(list[tuple[str, Any]]):
    """An object whose members may have equal names."""


VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(TEXTS, inner), max_size=3).map(Members)
    ),
    max_leaves=8,
)
OBJECTS = st.lists(st.tuples(TEXTS, VALUES), max_size=4).map(Members)
SPACES = st.sampled_from(["", " ", "\n\t"])


def written(value: Any, space: str, *, escaped: bool) -> str:
    def text(plain: Any) -> str:
        return json.dumps(plain, ensure_ascii=escaped)

    if isinstance(value, Members):
        members = (
            f"{text(name)}{space}:{space}{written(each, space, escaped=escaped)}"
            for name, each in value
        )
        return f"{{{space}{f'{space},'.join(members)}{space}}}"
    if isinstance(value, list):
        items = (written(each, space, escaped=escaped) for each in value)
        return f"[{space}{f'{space},{space}'.join(items)}]"
    return text(value)


def has_duplicates(value: Any) -> bool:
    if isinstance(value, Members):
        names = [name for name, _ in value]
        return len(names) != len({*names}) or any(has_duplicates(each) for _, each in value)
    return isinstance(value, list) and any(has_duplicates(each) for each in value)


@given(value=OBJECTS, space=SPACES, escaped=st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_a_member_that_occurs_twice_is_found_and_no_other(
    value: Members, space: str, escaped: bool
) -> None:
    document = written(value, space, escaped=escaped)
    try:
        found = parse_object(document.encode())
    except ValueError:
        assert has_duplicates(value)
    else:
        assert not has_duplicates(value)
        assert found == json.loads(document)


@given(text=st.text(max_size=60) | st.from_regex(r"[A-Za-z0-9_-]{1,9}(\.[A-Za-z0-9_-]{0,9}){0,4}"))
@settings(max_examples=examples(200), deadline=None)
def test_any_text_is_a_token_of_another_kind_or_refused(text: str) -> None:
    assert VERIFIER.verify(bearer(text)) is None
    try:
        parse_proof(text)
    except InvalidProof:
        return
    raise AssertionError("a text without a signature passed for a proof")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat", "scope", "scp", "cnf", "azp"])
HEADERS = st.sampled_from(["alg", "kid", "typ", "crit", "jwk", "b64"])


@given(changed=st.dictionaries(NAMES, JSON), header=st.dictionaries(HEADERS, JSON))
@settings(max_examples=examples(200), deadline=None)
def test_a_well_signed_token_with_any_claims_has_a_documented_outcome(
    changed: dict[str, Any], header: dict[str, Any]
) -> None:
    head = {"alg": "ES256", "kid": "one", "typ": "at+jwt", **header}
    try:
        found = VERIFIER.verify(bearer(raw_token(head, claims(**changed))))
    except InvalidCredential:
        return
    assert found is None or isinstance(found, Principal)
    if found is not None:
        assert found.issuer == ISSUER
        assert found.claims["aud"] == AUDIENCE or AUDIENCE in found.claims["aud"]
        assert "cnf" not in changed
