"""JWT access tokens: what is accepted, and every way to pass for one."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.clock import Clock
from tests.rigs.event_loop import on_a_loop
from tests.unit.auth.tokens import (
    AUDIENCE,
    ISSUER,
    NOW,
    bearer,
    claims,
    jwks,
    key,
    raw_token,
    segment,
    token,
)
from trunkline.auth import Credential, InvalidCredential, JwtBearer, Principal
from trunkline.auth.jose import InvalidKey, PublicKey, SignedToken
from trunkline.auth.server.tenants import TenantRefused
from trunkline.auth.server.verifiers import jwt_bearer
from trunkline.auth.server.verifiers.jwks import KeySet
from trunkline.testing import AuthorizationServer

SIGNATURE = "The signature of the token is not valid"
TYPE = "The token is not an access token"
TIME = "A time of the token is malformed"
EXPIRED = "The token has expired"
EARLY = "The token is not valid yet"
OTHER_AUDIENCE = "The token is not for this server"
BOUND = "The token is bound to a key that was not proved"


def verifier(**settings: Any) -> JwtBearer:
    given = {
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "keys": jwks(),
        "clock": Clock(NOW),
        **settings,
    }
    return JwtBearer(**given)


def accepted(text: str, **settings: Any) -> Principal:
    found = verifier(**settings).verify(bearer(text))
    assert isinstance(found, Principal)
    return found


def refused(text: str, **settings: Any) -> str:
    with pytest.raises(InvalidCredential) as raised:
        verifier(**settings).verify(bearer(text))
    assert raised.value.error == "invalid_token"
    assert raised.value.nonce is None
    return raised.value.description


def test_a_valid_token_names_its_principal() -> None:
    found = accepted(token(tenant="acme", email="ann@example.org"), tenant_claim="tenant")
    assert (found.issuer, found.subject, found.client_id) == (ISSUER, "ann", "editor")
    assert found.scopes == {"files:read", "files:write"}
    assert found.tenant == "acme"
    assert found.claims["email"] == "ann@example.org"
    # It is accepted until then, so what it opened lives until then.
    assert found.expires_at == NOW + 300 + 30


@for_each("algorithm", ["RS256", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"])
def test_every_asymmetric_algorithm_is_accepted(algorithm: str) -> None:
    signer = key(algorithm)
    assert accepted(token(signer), keys=jwks(signer)).subject == "ann"


# Whose token it is


@for_each(
    "text",
    ["", "tlk_abc", "a.b.c", "e30.e30.AAAA", "x" * 100_000, "\ud800", token(iss="https://other")],
)
def test_token_of_another_issuer_or_form_is_left_to_other_verifiers(text: str) -> None:
    assert verifier().verify(bearer(text)) is None


@for_each("issuer", [ISSUER + "/", ISSUER.upper(), [ISSUER], None, {"a": 1}, ISSUER + "\u0000"])
def test_issuers_are_compared_as_they_are(issuer: object) -> None:
    assert verifier().verify(bearer(token(iss=issuer))) is None


def test_an_issuer_with_a_trailing_slash_is_another_one() -> None:
    assert accepted(token(iss=ISSUER + "/"), issuer=ISSUER + "/").issuer == ISSUER + "/"
    assert verifier(issuer=ISSUER + "/").verify(bearer(token())) is None


def test_a_token_of_another_scheme_is_left_to_others() -> None:
    assert verifier().verify(Credential("dpop", token())) is None
    assert verifier().verify(Credential("basic", token())) is None


# The signature


def hs256(secret: bytes, **header: Any) -> str:
    signed = segment({"alg": "HS256", "typ": "at+jwt", "kid": "one", **header})
    signed += b"." + segment(claims())
    return (signed + b"." + segment(hmac.digest(secret, signed, "sha256"))).decode()


def test_a_public_key_is_never_a_shared_secret() -> None:
    for algorithm in ("RS256", "ES256"):
        signer = key(algorithm)
        pem = signer._key.as_pem(private=False)
        for secret in (
            pem,
            pem.strip(),
            signer._key.as_bytes(encoding="DER", private=False),
            json.dumps(signer.public_jwk).encode(),
            b"",
        ):
            assert refused(hs256(secret), keys=jwks(signer)) == SIGNATURE


def test_a_symmetric_key_in_a_key_set_is_not_used() -> None:
    secret = {"kty": "oct", "k": segment(b"s" * 32).decode(), "kid": "one", "alg": "HS256"}
    keys = {"keys": [secret, key(key_id="two").public_jwk]}
    assert refused(hs256(b"s" * 32), keys=keys) == SIGNATURE


@for_each("algorithm", ["none", "None", "nOnE", "", None, 0, ["ES256"], {"ES256": 1}, "HS512"])
def test_a_token_without_an_asymmetric_signature_is_refused(algorithm: object) -> None:
    header = {"alg": algorithm, "typ": "at+jwt", "kid": "one"}
    unsigned = segment(header) + b"." + segment(claims())
    assert refused(raw_token(header, claims())) == SIGNATURE
    assert refused((unsigned + b".AAAA").decode()) == SIGNATURE


def test_an_unsigned_token_is_not_a_token() -> None:
    unsigned = (segment({"alg": "none"}) + b"." + segment(claims()) + b".").decode()
    assert verifier().verify(bearer(unsigned)) is None


def test_a_key_of_another_type_does_not_verify() -> None:
    rsa, elliptic = key("RS256"), key("ES256")
    renamed = raw_token({"alg": "RS256", "kid": "one"}, claims(), elliptic)
    assert refused(renamed, keys=jwks(elliptic)) == SIGNATURE
    assert refused(renamed, keys=jwks(elliptic, rsa)) == SIGNATURE
    assert refused(token(rsa), keys=jwks(elliptic)) == SIGNATURE


def test_the_algorithm_of_the_key_wins_over_that_of_the_header() -> None:
    signer = key("RS256")
    named = {"keys": [{**signer.public_jwk, "alg": "PS256"}]}
    assert refused(token(signer), keys=named) == SIGNATURE


def test_an_algorithm_that_is_not_allowed_is_refused() -> None:
    assert refused(token(key("RS256")), keys=jwks(key("RS256")), algorithms=["ES256"]) == SIGNATURE
    assert refused(token(), algorithms=["ES384", "RS256"]) == SIGNATURE


@for_each("key_id", ["two", "", "one\u0000", "../one", "one' OR 1=1", "x" * 10_000, "ONE"])
def test_a_key_is_found_by_its_exact_name(key_id: str) -> None:
    assert refused(token(header={"kid": key_id})) == SIGNATURE


@for_each("key_id", [1, True, [], ["one"], {"kid": "one"}, 1.5])
def test_a_key_id_that_is_not_a_text_is_refused(key_id: object) -> None:
    assert refused(raw_token({"alg": "ES256", "kid": key_id}, claims())) == SIGNATURE


def test_keys_and_urls_in_the_header_are_ignored() -> None:
    """The key of an attacker is in the header in every form there is."""
    attacker = key(number=1)
    url = "https://attacker.example.org/jwks"
    header = {"jwk": attacker.public_jwk, "jku": url, "x5u": url, "x5c": ["MII="], "x5t": "AA"}
    assert refused(token(attacker, header=header)) == SIGNATURE
    assert refused(token(attacker, header={**header, "kid": None})) == SIGNATURE
    # A good token may have them, and they change nothing.
    assert accepted(token(header=header)).subject == "ann"


def test_critical_headers_are_refused() -> None:
    header = {"alg": "ES256", "kid": "one", "crit": ["exp"], "exp": 1}
    assert verifier().verify(bearer(raw_token(header, claims()))) is None


def test_duplicate_claims_are_refused() -> None:
    text = json.dumps(claims())[:-1].encode()
    for more in (
        b',"aud":"https://mcp.example.org/mcp"}',
        b',"sub":"root"}',
        b',"x":{"a":1,"a":1}}',
    ):
        doubled = raw_token({"alg": "ES256", "kid": "one"}, text + more)
        assert verifier().verify(bearer(doubled)) is None
    assert accepted(raw_token({"alg": "ES256", "kid": "one"}, text + b"}")).subject == "ann"


def test_a_token_is_bounded_in_size() -> None:
    assert accepted(token(padding="x" * 16_000)).subject == "ann"
    assert verifier().verify(bearer(token(padding="x" * 32_000))) is None


def test_without_a_key_id_the_few_keys_of_the_algorithm_are_tried() -> None:
    keys = [key(number=each, key_id=f"k{each}") for each in range(5)]
    nameless = token(keys[3], header={"kid": None})
    assert accepted(nameless, keys=jwks(*keys[:4])).subject == "ann"
    # More than are tried: the token has to name its key.
    assert refused(nameless, keys=jwks(*keys)) == SIGNATURE
    assert accepted(token(keys[3]), keys=jwks(*keys)).subject == "ann"


def test_a_key_without_a_name_serves_tokens_that_name_one() -> None:
    plain = key(key_id=None)
    assert accepted(token(plain, header={"kid": "any"}), keys=jwks(plain)).subject == "ann"
    assert accepted(token(plain), keys=jwks(plain)).subject == "ann"


def test_two_keys_of_one_name_are_both_tried() -> None:
    first, second = key(number=1), key(number=2)
    for signer in (first, second):
        assert accepted(token(signer), keys=jwks(first, second)).subject == "ann"
    mixed = jwks(key("RS256"), first)
    assert accepted(token(first), keys=mixed).subject == "ann"
    assert refused(token(key(number=3)), keys=jwks(first, second)) == SIGNATURE


# The type


@for_each("kind", ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt", ""])
def test_access_tokens_and_plain_jwts_are_accepted(kind: str) -> None:
    assert accepted(token(header={"typ": kind})).subject == "ann"


def test_a_token_without_a_type_is_accepted() -> None:
    assert accepted(token(header={"typ": None})).subject == "ann"
    assert refused(token(header={"typ": None}), types=["at+jwt"]) == TYPE


@for_each(
    "kind",
    ["dpop+jwt", "logout+jwt", "secevent+jwt", "oauth-id-jag+jwt", "id+jwt", "at+jwt ", 1, ["JWT"]],
)
def test_other_types_are_refused(kind: object) -> None:
    assert refused(raw_token({"alg": "ES256", "kid": "one", "typ": kind}, claims())) == TYPE


@for_each(
    "change",
    [
        {"at_hash": "x"},
        {"c_hash": "x"},
        {"token_use": "id"},
        {"token_use": ["access"]},
        {"typ": "ID"},
        {"typ": "Refresh"},
        {"typ": "Offline"},
    ],
)
def test_id_tokens_and_refresh_tokens_are_refused(change: dict[str, Any]) -> None:
    assert refused(token(**change)) == TYPE
    assert accepted(token(token_use="access", typ="Bearer")).subject == "ann"


# Times


@for_each(
    "value",
    [
        *("soon", str(int(NOW) + 300), None, True, [int(NOW) + 300], {}),
        *(-1, 1e300, 10**30, 253_402_300_800),
    ],
)
def test_a_time_that_is_not_a_usual_number_is_refused(value: Any) -> None:
    for name in ("exp", "nbf", "iat"):
        changes: dict[str, Any] = {name: value}
        assert refused(token(**changes)) == TIME


@for_each("text", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"0x7fffffff", b"1" * 5000])
def test_a_number_that_json_does_not_have_makes_a_token_unreadable(text: bytes) -> None:
    payload = json.dumps(claims(exp=0)).replace('"exp": 0', '"exp": X').encode()
    header = {"alg": "ES256", "kid": "one"}
    assert verifier().verify(bearer(raw_token(header, payload.replace(b"X", text)))) is None
    assert refused(raw_token(header, payload.replace(b"X", b"1"))) == EXPIRED


def test_a_token_without_an_end_is_refused() -> None:
    assert refused(token(exp=...)) == "The token does not say when it expires"


@for_each(
    ("change", "outcome"),
    [
        ({"exp": NOW - 29}, None),
        ({"exp": NOW - 29.5}, None),
        ({"exp": NOW - 30}, EXPIRED),
        ({"exp": 0}, EXPIRED),
        ({"nbf": NOW + 30}, None),
        ({"nbf": NOW + 31}, EARLY),
        ({"iat": NOW + 30}, None),
        ({"iat": NOW + 31}, EARLY),
        ({"iat": ...}, None),
    ],
)
def test_times_have_a_leeway(change: dict[str, Any], outcome: str | None) -> None:
    if outcome is None:
        assert accepted(token(**change)).subject == "ann"
    else:
        assert refused(token(**change)) == outcome


def test_the_leeway_can_be_none() -> None:
    assert accepted(token(exp=NOW + 1), leeway=0).expires_at == NOW + 1
    assert refused(token(exp=NOW), leeway=0) == EXPIRED


def test_a_token_expires_between_two_requests() -> None:
    clock = Clock(NOW)
    found = verifier(clock=clock)
    credential = bearer(token())
    assert isinstance(found.verify(credential), Principal)
    clock.now += 331
    with pytest.raises(InvalidCredential, match=EXPIRED):
        found.verify(credential)


# The audience


@for_each("audience", [AUDIENCE, [AUDIENCE], ["https://other", AUDIENCE]])
def test_the_audience_is_a_text_or_a_list(audience: object) -> None:
    assert accepted(token(aud=audience)).subject == "ann"


@for_each(
    "audience",
    [
        *(..., None, "", [], {}, 1, True, [None], [[AUDIENCE]], [{"a": AUDIENCE}], {AUDIENCE: 1}),
        *(AUDIENCE + "/", AUDIENCE.upper(), AUDIENCE[:-1], f" {AUDIENCE}", f"{AUDIENCE} x"),
        "https://other.example.org/mcp",
    ],
)
def test_a_token_for_another_audience_is_refused(audience: object) -> None:
    assert refused(token(aud=audience)) == OTHER_AUDIENCE


def test_a_server_can_have_several_names() -> None:
    names = [AUDIENCE, "api://files"]
    assert accepted(token(aud="api://files"), audience=names).subject == "ann"
    assert refused(token(aud="api://other"), audience=names) == OTHER_AUDIENCE


# Bound tokens


@for_each("confirmation", [{"jkt": "x"}, {"x5t#S256": "x"}, {"jwk": {}}, {}, None, "x", []])
def test_a_bound_token_is_refused_as_a_bearer_token(confirmation: object) -> None:
    assert refused(token(cnf=confirmation)) == BOUND


def test_a_bound_token_is_accepted_with_its_key_alone() -> None:
    text = token(cnf={"jkt": "print"})
    found = verifier().verify(bearer(text, key_thumbprint="print"))
    assert isinstance(found, Principal)
    for confirmation in ({"jkt": "other"}, {"jkt": "print", "x5t#S256": "x"}, {"jkt": ""}):
        with pytest.raises(InvalidCredential, match=BOUND):
            verifier().verify(bearer(token(cnf=confirmation), key_thumbprint="print"))
    with pytest.raises(InvalidCredential, match=BOUND):
        verifier().verify(bearer(token(cnf={"jkt": ""}), key_thumbprint=""))


# The caller


@for_each(
    ("change", "client_id"),
    [
        ({"client_id": "editor"}, "editor"),
        ({"client_id": ..., "azp": "portal"}, "portal"),
        ({"client_id": "editor", "azp": "portal"}, "editor"),
        ({"client_id": ...}, ""),
    ],
)
def test_the_client_is_named_by_client_id_or_azp(change: dict[str, Any], client_id: str) -> None:
    assert accepted(token(**change)).client_id == client_id


def test_a_token_of_a_client_alone_needs_no_subject() -> None:
    found = accepted(token(sub=...))
    assert (found.subject, found.client_id) == ("", "editor")


@for_each(
    "change",
    [
        {"sub": ..., "client_id": ...},
        {"sub": "", "client_id": ""},
        {"sub": 1},
        {"sub": ["ann"]},
        {"sub": None},
        {"client_id": 1},
        {"client_id": ["editor"]},
    ],
)
def test_a_token_without_a_caller_is_refused(change: dict[str, Any]) -> None:
    assert refused(token(**change)) == "The token does not name its subject"


@for_each(
    ("change", "scopes"),
    [
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": ""}, set()),
        ({"scope": ...}, set()),
        ({"scope": ..., "scp": ["a", "b"]}, {"a", "b"}),
        ({"scope": ..., "scp": "a b"}, {"a", "b"}),
        ({"scope": "a", "scp": ["b"]}, {"a", "b"}),
        ({"scope": ["a", "b"]}, {"a", "b"}),
        ({"scope": 1, "scp": {"a": 1}}, set()),
        ({"scope": ..., "scp": [1, None, ["a"], "b"]}, {"b"}),
        ({"scope": 'a\tb "c" d\\'}, set()),
    ],
)
def test_scopes_are_those_of_both_claims(change: dict[str, Any], scopes: set[str]) -> None:
    assert accepted(token(**change)).scopes == scopes


def test_the_tenant_is_that_of_the_claim() -> None:
    assert accepted(token(tid="acme"), tenant_claim="tid").tenant == "acme"
    assert accepted(token(tid="acme")).tenant is None
    wrong: list[Any] = ["", 1, ["acme"], {}, True]
    for value in wrong:
        text = refused(token(tid=value), tenant_claim="tid")
        assert text == "The tenant of the token is malformed"


def test_a_token_without_the_claim_of_its_tenant_is_refused_unless_admitted() -> None:
    strict = verifier(tenant_claim="tid")
    for _ in range(2):  # the second time as well: it is not kept as verified
        with pytest.raises(TenantRefused, match="the token has no claim 'tid'") as raised:
            strict.verify(bearer(token()))
        assert raised.value.is_missing
    assert accepted(token(), tenant_claim="tid", tenant_required=False).tenant is None
    assert accepted(token()).tenant is None


# Settings


@for_each(
    "settings",
    [
        {"issuer": ""},
        {"audience": ""},
        {"audience": []},
        {"audience": [AUDIENCE, ""]},
        {"algorithms": []},
        {"algorithms": ["HS256"]},
        {"algorithms": ["ES256", "none"]},
        {"leeway": -1},
        {"leeway": 7200},
        {"jwks_uri": "https://login.example.org/jwks"},
        {"keys": {}},
        {"keys": {"keys": []}},
        {"keys": {"keys": {}}},
        {"keys": "{}"},
        {"keys": None, "issuer": "http://login.example.org"},
        {"keys": None, "issuer": "login.example.org"},
        {"keys": None, "issuer": "https://login.example.org?a=b"},
        {"keys": None, "jwks_uri": "ftp://login.example.org"},
        {"keys": None, "issuer": "https://user:CANARY@login.example.org"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"JwtBearer|key set") as raised:
        verifier(**settings)
    assert "CANARY" not in str(raised.value)


def test_keys_are_given_as_jwks_json_or_pem() -> None:
    signer = key()
    pem = signer._key.as_pem(private=False).decode()
    for keys in (jwks(signer), json.dumps(jwks(signer)), pem, [pem]):
        assert accepted(token(), keys=keys).subject == "ann"
    other = key(number=1)._key.as_pem(private=False).decode()
    assert accepted(token(), keys=[other, pem]).subject == "ann"
    assert refused(token(), keys=[other]) == SIGNATURE
    with pytest.raises(InvalidKey, match="not a public key"):
        verifier(keys=signer.pem.decode())


def test_a_verifier_says_what_the_challenge_needs() -> None:
    found = verifier(scopes_supported=["files:read"])
    assert found.schemes == ("bearer",)
    assert found.authorization_servers == (ISSUER,)
    assert found.scopes_supported == ("files:read",)
    assert found.dpop_algorithms == ()


@on_a_loop
async def test_a_token_of_an_authorization_server_is_accepted() -> None:
    async with AuthorizationServer(scopes=["files:read"]) as server:
        found = JwtBearer(issuer=server.issuer, audience=AUDIENCE)
        text = server.issue(subject="ann", client_id="c", scopes=["files:read"], audience=AUDIENCE)
        result = found.verify(bearer(text))
        assert not isinstance(result, Principal)
        assert result is not None
        principal = await result
        assert principal is not None
        assert (principal.subject, principal.issuer) == ("ann", server.issuer)
        # With the key at hand there is nothing to wait for.
        assert isinstance(found.verify(bearer(text)), Principal)


# Tokens that come again


class Signatures:
    """Counts the signatures that are verified."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        verify = SignedToken.is_signed_by

        def counted(token: SignedToken, key: PublicKey) -> bool:
            self.count += 1
            return verify(token, key)

        monkeypatch.setattr(SignedToken, "is_signed_by", counted)


def test_the_signature_of_a_token_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    signatures, ours = Signatures(monkeypatch), verifier()
    texts = [token(), token(sub="bob")]
    found = [ours.verify(bearer(text)) for _ in range(5) for text in texts]
    assert signatures.count == 2
    assert [each.subject for each in found if isinstance(each, Principal)] == ["ann", "bob"] * 5


def test_a_token_that_was_accepted_expires() -> None:
    clock = Clock(NOW)
    ours, text = verifier(clock=clock), token()
    assert ours.verify(bearer(text)) is not None
    clock.now = NOW + 300 + 30
    with pytest.raises(InvalidCredential, match=EXPIRED):
        ours.verify(bearer(text))


def test_a_token_that_was_accepted_is_not_valid_before_its_time() -> None:
    clock = Clock(NOW)
    ours, text = verifier(clock=clock), token(nbf=int(NOW))
    assert ours.verify(bearer(text)) is not None
    clock.now = NOW - 60
    with pytest.raises(InvalidCredential, match=EARLY):
        ours.verify(bearer(text))


def test_a_bound_token_that_was_accepted_needs_its_proof_again() -> None:
    ours, text = verifier(), token(cnf={"jkt": "thumbprint"})
    assert ours.verify(bearer(text, key_thumbprint="thumbprint")) is not None
    for thumbprint in ("", "another"):
        with pytest.raises(InvalidCredential, match=BOUND):
            ours.verify(bearer(text, key_thumbprint=thumbprint))


def test_a_token_that_was_accepted_is_refused_when_its_key_is_withdrawn() -> None:
    class Published:
        keys = KeySet.of_jwks(jwks())

        def find(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
            return self.keys.find(key_id, algorithm)

        async def fetch(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
            return self.find(key_id, algorithm)

    published = Published()
    ours, text = verifier(keys=published), token()
    assert ours.verify(bearer(text)) is not None
    published.keys = KeySet.of_jwks(jwks(key(number=1)))
    with pytest.raises(InvalidCredential, match=SIGNATURE):
        ours.verify(bearer(text))
    published.keys = KeySet.of_jwks(jwks())
    assert ours.verify(bearer(text)) is not None


def test_refused_tokens_are_not_kept_and_accepted_ones_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jwt_bearer, "_MAX_VERIFIED", 3)
    ours = verifier()
    for number in range(5):
        with pytest.raises(InvalidCredential):
            ours.verify(bearer(token(aud=f"https://{number}.example")))
    assert len(ours._verified) == 0
    texts = [token(sub=f"user-{number}") for number in range(4)]
    for text in (*texts[:3], texts[0], texts[3]):
        assert ours.verify(bearer(text)) is not None
    assert len(ours._verified) == 3
    signatures = Signatures(monkeypatch)
    assert ours.verify(bearer(texts[0])) is not None
    assert signatures.count == 0
    assert ours.verify(bearer(texts[1])) is not None
    assert signatures.count == 1


def test_the_table_of_accepted_tokens_shows_no_token_and_no_claim() -> None:
    ours, text = verifier(), token(email="CANARY")
    ours.verify(bearer(text))
    shown = repr(ours._verified)
    assert "CANARY" not in shown
    assert text not in shown


# Secrets


def hostile_tokens() -> list[str]:
    marked: dict[str, Any] = {"sub": "CANARY-sub", "jti": "CANARY-jti"}
    return [
        token(**marked, aud="CANARY-aud"),
        token(**marked, exp="CANARY-exp"),
        token(**marked, exp=1),
        token(key(number=1), **marked),
        token(header={"kid": "CANARY-kid"}, **marked),
        token(header={"typ": "CANARY-typ"}, **marked),
        token(cnf={"jkt": "CANARY-jkt"}, **marked),
        token(sub=["CANARY"]),
        token(tid=["CANARY"]),
        raw_token({"alg": "CANARY-alg"}, claims()),
        raw_token({"alg": "ES256", "kid": ["CANARY"]}, claims()),
    ]


def test_no_error_shows_anything_of_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for text in hostile_tokens():
        credential = bearer(text)
        with pytest.raises(InvalidCredential) as raised:
            verifier(tenant_claim="tid").verify(credential)
        error = raised.value
        shown = [str(error), repr(error), repr(error.args), repr(error.__dict__), repr(credential)]
        for each in [*shown, caplog.text]:
            assert "CANARY" not in each
            assert text not in each
            assert text.split(".")[2] not in each
        assert error.__cause__ is None


def test_the_repr_of_a_verifier_and_a_principal_hide_claims() -> None:
    found = accepted(token(email="CANARY"))
    assert "CANARY" not in repr(found)
    assert repr(verifier()) == f"<JwtBearer for {AUDIENCE}, issued by {ISSUER}>"


def test_a_credential_shows_neither_token_nor_proof_nor_query() -> None:
    found = Credential(
        "bearer", "CANARY", "POST", f"{AUDIENCE}?token=CANARY", ("CANARY",), None, "CANARY"
    )
    assert "CANARY" not in repr(found)
    assert "CANARY" not in repr(found.__rich_repr__())
    assert AUDIENCE in repr(found)


def test_descriptions_are_fixed_sentences() -> None:
    """Two tokens that differ in their content only are refused by the same sentence."""
    pairs: list[tuple[Callable[[str], str], dict[str, Any]]] = [
        (lambda word: token(aud=word), {}),
        (lambda word: token(exp=word), {}),
        (lambda word: token(header={"kid": word}), {}),
        (lambda word: token(tid=[word]), {"tenant_claim": "tid"}),
    ]
    for make, settings in pairs:
        assert refused(make("one-word"), **settings) == refused(make("other"), **settings)
