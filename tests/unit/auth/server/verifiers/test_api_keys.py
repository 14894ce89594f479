"""API keys: what is kept of them, and how they are recognised."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from tests.cases import for_each
from tests.rigs.clock import Clock
from tests.unit.auth.tokens import NOW, bearer
from trunkline.auth import ApiKey, ApiKeys, Credential, InvalidCredential


def test_a_key_names_its_principal() -> None:
    text, record = ApiKeys.generate(
        subject="build", client_id="ci", scopes=["files:read"], tenant="acme", expires_at=NOW + 1
    )
    found = ApiKeys([record], issuer="keys", clock=Clock(NOW)).verify(bearer(text))
    assert found is not None
    assert (found.issuer, found.subject, found.client_id) == ("keys", "build", "ci")
    assert (sorted(found.scopes), found.tenant) == (["files:read"], "acme")
    assert found.expires_at == NOW + 1


def test_a_new_key_has_256_random_bits_and_a_prefix() -> None:
    texts = {ApiKeys.generate(subject="build")[0] for _ in range(100)}
    assert len(texts) == 100
    assert all(each.startswith("tlk_") and len(each) == 4 + 43 for each in texts)


def test_only_the_hash_of_a_key_is_kept() -> None:
    text, record = ApiKeys.generate(subject="build")
    assert record.sha256 == sha256(text.encode()).hexdigest()
    assert text[4:] not in msgspec.json.encode(record).decode()
    assert msgspec.json.decode(msgspec.json.encode(record), type=ApiKey) == record


def test_no_repr_shows_a_key_or_its_hash() -> None:
    text, record = ApiKeys.generate(subject="build")
    found = ApiKeys([record])
    assert repr(found) == "<ApiKeys, 1 keys>"
    for shown in (repr(record), repr(record.__rich_repr__())):
        assert record.sha256 not in shown
        assert text not in shown
        assert "build" in shown


def test_an_unknown_key_is_refused() -> None:
    text, record = ApiKeys.generate(subject="build")
    found = ApiKeys([record])
    for other in (text + "x", text[:-1], "tlk_", "tlk_" + "x" * 1000, "tlk_é", "tlk_\ud800"):
        with pytest.raises(InvalidCredential, match="not known") as raised:
            found.verify(bearer(other))
        assert other not in repr(raised.value) or other == "tlk_"


def test_an_expired_key_is_refused() -> None:
    text, record = ApiKeys.generate(subject="build", expires_at=NOW + 1)
    clock = Clock(NOW)
    found = ApiKeys([record], clock=clock)
    assert found.verify(bearer(text)) is not None
    clock.now += 1
    with pytest.raises(InvalidCredential, match="expired"):
        found.verify(bearer(text))


def test_credential_that_is_not_an_api_key_is_left_to_other_verifiers() -> None:
    text, record = ApiKeys.generate(subject="build")
    found = ApiKeys([record])
    assert found.verify(bearer("a.b.c")) is None
    assert found.verify(bearer(text.upper())) is None
    assert found.verify(Credential("dpop", text)) is None


def test_without_a_prefix_an_unknown_key_is_left_to_others() -> None:
    text, record = ApiKeys.generate(subject="build", prefix="")
    found = ApiKeys([record], prefix="")
    assert found.verify(bearer(text)) is not None
    assert found.verify(bearer("other")) is None


def test_the_hash_of_a_key_is_not_a_key() -> None:
    _, record = ApiKeys.generate(subject="build")
    assert ApiKeys([record], prefix="").verify(bearer(record.sha256)) is None
    with pytest.raises(InvalidCredential):
        ApiKeys([record]).verify(bearer(f"tlk_{record.sha256}"))


@for_each("digest", ["", "x" * 64, "0" * 63, "0" * 65, " " * 64, "00 " * 21 + "0", "é" * 64])
def test_a_malformed_hash_is_refused(digest: str) -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        ApiKeys([ApiKey(sha256=digest, subject="build")])


def test_a_key_is_given_once() -> None:
    _, record = ApiKeys.generate(subject="build")
    with pytest.raises(ValueError, match="given twice"):
        ApiKeys([record, msgspec.structs.replace(record, subject="root")])
    with pytest.raises(ValueError, match="given twice"):
        ApiKeys([record, msgspec.structs.replace(record, sha256=record.sha256.upper())])


def test_a_key_says_what_the_challenge_needs() -> None:
    found: Any = ApiKeys([], scopes_supported=["a"])
    assert (found.schemes, found.scopes_supported) == (("bearer",), ("a",))
    assert (found.authorization_servers, found.dpop_algorithms) == ((), ())
