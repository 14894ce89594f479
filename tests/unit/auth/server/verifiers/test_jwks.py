"""Keys of an issuer: discovery, cache, rotation, and the bounds of their fetches."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.clock import Clock
from tests.rigs.event_loop import on_a_loop
from tests.unit.auth.tokens import (
    AUDIENCE,
    NOW,
    JsonServer,
    bearer,
    issuer,
    json_server,
    jwks,
    key,
    token,
)
from trunkline.auth import InvalidCredential, JwtBearer, Principal, VerifierUnavailable
from trunkline.auth.jose import SigningKey
from trunkline.auth.server.verifiers import jwks as module
from trunkline.auth.server.verifiers.jwks import InvalidKeySet, KeySet, RemoteKeys

WELL_KNOWN = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


class RemoteKeysVerifier:
    """A verifier whose keys are those of a server, and a clock for their age."""

    def __init__(self, server: JsonServer, **settings: Any) -> None:
        self.server = server
        self.clock = Clock(0.0)
        name = settings.pop("issuer", server.origin)
        self.keys = RemoteKeys(name, clock=self.clock, **settings)
        self.verifier = JwtBearer(issuer=name, audience=AUDIENCE, keys=self.keys, clock=Clock(NOW))

    def credential(self, signer: SigningKey | None = None, **header: Any) -> Any:
        return bearer(token(signer, iss=self.keys.issuer, header=header))

    async def verify(self, signer: SigningKey | None = None, **header: Any) -> str:
        """Return the subject, or why there is none."""
        try:
            found = self.verifier.verify(self.credential(signer, **header))
            if found is not None and not isinstance(found, Principal):
                found = await found
        except (InvalidCredential, VerifierUnavailable) as error:
            return type(error).__name__
        assert found is not None
        return found.subject

    @property
    def fetches(self) -> int:
        return self.server.paths.count("/jwks")


@on_a_loop
async def test_keys_are_fetched_once_and_then_at_hand() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        assert server.paths == [WELL_KNOWN, "/jwks"]
        assert isinstance(scene.verifier.verify(scene.credential()), Principal)
        assert server.paths == [WELL_KNOWN, "/jwks"]


@on_a_loop
async def test_metadata_is_looked_for_at_all_places_of_an_issuer() -> None:
    async with json_server() as server:
        name = f"{server.origin}/tenant"
        server.answers[f"/tenant{OPENID}"] = {"issuer": name, "jwks_uri": f"{server.origin}/jwks"}
        server.answers["/jwks"] = jwks()
        assert await RemoteKeysVerifier(server, issuer=name).verify() == "ann"
        assert server.paths == [
            f"{WELL_KNOWN}/tenant",
            f"{OPENID}/tenant",
            f"/tenant{OPENID}",
            "/jwks",
        ]


@for_each("name", ["https://login.example.org", "{}/", "{}/other", "", None, 1])
@on_a_loop
async def test_metadata_of_another_issuer_is_void(name: object) -> None:
    async with issuer() as server:
        document = server.answers[WELL_KNOWN]
        document["issuer"] = name.format(server.origin) if isinstance(name, str) else name
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "VerifierUnavailable"
        assert "/jwks" not in server.paths
        # The next place may have the right one.
        server.answers[OPENID] = {**document, "issuer": server.origin}
        scene.clock.now += 100
        assert await scene.verify() == "ann"


@for_each(
    "document",
    [b"", b"[]", b"<html>", {}, {"jwks_uri": 1}, b'{"issuer":"a","issuer":"b"}', b"x" * 200_000],
)
@on_a_loop
async def test_malformed_metadata_makes_the_verifier_unavailable(document: object) -> None:
    async with issuer() as server:
        server.answers[WELL_KNOWN] = document
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "VerifierUnavailable"
        assert "/jwks" not in server.paths


@for_each(
    "url",
    [
        "http://login.example.org/jwks",
        "file:///etc/passwd",
        "https://user:CANARY@login.example.org/jwks",
        "javascript:alert(1)",
        None,
    ],
)
@on_a_loop
async def test_metadata_cannot_lead_to_other_schemes(url: object) -> None:
    async with issuer() as server:
        server.answers[WELL_KNOWN]["jwks_uri"] = url
        assert await RemoteKeysVerifier(server).verify() == "VerifierUnavailable"


@on_a_loop
async def test_private_addresses_can_be_forbidden() -> None:
    async with issuer() as server:
        assert (
            await RemoteKeysVerifier(server, allow_private=False).verify() == "VerifierUnavailable"
        )
        assert server.paths == []


@on_a_loop
async def test_a_known_place_of_the_keys_needs_no_metadata() -> None:
    async with json_server() as server:
        server.answers["/keys"] = jwks()
        assert await RemoteKeysVerifier(server, jwks_uri=f"{server.origin}/keys").verify() == "ann"
        assert server.paths == ["/keys"]


# One fetch at a time


@on_a_loop
async def test_many_requests_wait_for_one_fetch() -> None:
    async with issuer() as server:
        server.gate = asyncio.Event()
        scene = RemoteKeysVerifier(server)
        waiting = [asyncio.create_task(scene.verify()) for _ in range(50)]
        while not server.requests:
            await asyncio.sleep(0)
        server.gate.set()
        assert await asyncio.gather(*waiting) == ["ann"] * 50
        assert server.paths == [WELL_KNOWN, "/jwks"]


@on_a_loop
async def test_a_cancelled_request_leaves_the_fetch_to_the_others() -> None:
    async with issuer() as server:
        server.gate = asyncio.Event()
        scene = RemoteKeysVerifier(server)
        first, second = (asyncio.create_task(scene.verify()) for _ in range(2))
        while not server.requests:
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        server.gate.set()
        assert await second == "ann"
        assert scene.fetches == 1


def test_a_fetch_of_an_event_loop_that_ended_is_not_waited_for() -> None:
    keys: list[RemoteKeys] = []

    async def end_early() -> None:
        async with issuer() as server:
            server.gate = asyncio.Event()
            keys.append(RemoteKeys("x", jwks_uri=f"{server.origin}/jwks"))
            waiting = asyncio.ensure_future(keys[0].fetch("one", "ES256"))
            while not server.requests:
                await asyncio.sleep(0)
            # The loop is closed without a chance for the task to clean up.
            keys[0]._running = asyncio.get_running_loop().create_future()  # type: ignore[assignment]  # for ever pending
            waiting.cancel()

    async def go_on() -> None:
        async with issuer() as server:
            keys[0]._given_uri = keys[0]._uri = f"{server.origin}/jwks"
            keys[0]._retry_at = float("-inf")
            assert len(await keys[0].fetch("one", "ES256")) == 1

    asyncio.run(end_early())
    asyncio.run(go_on())


# Rotation and unknown keys


@on_a_loop
async def test_a_new_key_is_found_at_once() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        new = key(key_id="two", number=1)
        server.answers["/jwks"] = jwks(new)
        assert await scene.verify(new) == "ann"
        assert scene.fetches == 2
        # The old one is gone.
        assert await scene.verify() == "InvalidCredential"


@on_a_loop
async def test_a_removed_key_is_refused_when_the_keys_are_old() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        server.answers["/jwks"] = jwks(key(key_id="two", number=1))
        scene.clock.now += module.MAX_AGE_S - 1
        assert await scene.verify() == "ann"
        scene.clock.now += 1
        assert await scene.verify() == "InvalidCredential"


@on_a_loop
async def test_a_flood_of_unknown_keys_causes_a_bounded_number_of_fetches() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        for number in range(200):
            assert await scene.verify(kid=f"unknown-{number}") == "InvalidCredential"
        assert scene.fetches == 1 + module.UNKNOWN_KEY_BURST
        # Refused without a fetch, and without a task.
        assert scene.keys.find("unknown", "ES256") == ()
        # In ten minutes less than the age of the keys: one per interval.
        for _ in range(500):
            scene.clock.now += 1
            assert await scene.verify(kid="unknown") == "InvalidCredential"
        intervals = 500 // module.UNKNOWN_KEY_INTERVAL_S
        assert scene.fetches == 1 + module.UNKNOWN_KEY_BURST + intervals
        assert await scene.verify() == "ann"


@on_a_loop
async def test_unknown_keys_at_once_share_one_fetch() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        found = await asyncio.gather(*(scene.verify(kid=f"u{each}") for each in range(50)))
        assert found == ["InvalidCredential"] * 50
        assert scene.fetches == 2


@on_a_loop
async def test_a_token_with_an_algorithm_that_is_not_allowed_causes_no_fetch() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        for algorithm in ("HS256", "none", "ES999"):
            assert await scene.verify(alg=algorithm) == "InvalidCredential"
        assert scene.fetches == 1


# Failures


@on_a_loop
async def test_after_a_failure_unknown_keys_are_refused_at_once() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        server.status = 500
        assert await scene.verify(kid="unknown") == "InvalidCredential"
        # Without a task, until the next attempt is permitted.
        assert scene.keys.find("other", "ES256") == ()
        scene.clock.now += 1
        assert scene.keys.find("other", "ES256") is None


@on_a_loop
async def test_keys_from_before_stay_in_use_while_the_issuer_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        server.status = 500
        scene.clock.now = module.MAX_AGE_S
        assert await scene.verify() == "ann"
        assert "those from before are used for 85800 s at most" in caplog.text
        scene.clock.now = module.MAX_STALE_S - 1
        assert await scene.verify() == "ann"
        scene.clock.now = module.MAX_STALE_S
        assert await scene.verify() == "VerifierUnavailable"
        scene.clock.now += 100
        server.status = 200
        assert await scene.verify() == "ann"


@on_a_loop
async def test_failed_fetches_are_bounded_in_rate() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        server.status = 500
        scene.clock.now = module.MAX_AGE_S
        before = len(server.requests)
        for _ in range(600):
            scene.clock.now += 0.1
            assert await scene.verify() == "ann"
        # 1, 2, 4, 8, 16 and 30 s apart, or half of that with jitter; each looks at the keys, or at
        # both places of metadata.
        assert 0 < len(server.requests) - before <= 18


@on_a_loop
async def test_without_keys_requests_are_answered_at_once_until_the_next_attempt() -> None:
    async with issuer() as server:
        server.status = 500
        scene = RemoteKeysVerifier(server)
        for _ in range(100):
            assert await scene.verify() == "VerifierUnavailable"
        assert server.paths == [WELL_KNOWN, OPENID]
        server.status = 200
        scene.clock.now += 1
        assert await scene.verify() == "ann"


@on_a_loop
async def test_the_error_of_a_failure_says_when_to_try_again() -> None:
    async with issuer() as server:
        server.status = 503
        scene = RemoteKeysVerifier(server)
        with pytest.raises(VerifierUnavailable) as raised:
            await scene.keys.fetch("one", "ES256")
        assert raised.value.retry_after == 1.0
        assert "answered with status 503" in str(raised.value)


@on_a_loop
async def test_metadata_is_read_again_after_a_failure() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        server.answers["/moved"] = server.answers.pop("/jwks")
        server.answers[WELL_KNOWN]["jwks_uri"] = f"{server.origin}/moved"
        scene.clock.now = module.MAX_AGE_S
        assert await scene.verify() == "ann"
        scene.clock.now += 2
        assert await scene.verify() == "ann"
        assert server.paths[-2:] == [WELL_KNOWN, "/moved"]


# Key sets


@for_each(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [1, null, "x", []]}',
        b'{"keys": [], "keys": []}',
        json.dumps({"keys": [{"kty": "oct", "k": "CANARY"}]}).encode(),
        json.dumps(jwks()).encode() + b" " * module.MAX_KEY_SET_BYTES,
        json.dumps({"keys": [key().public_jwk] * 10_000}).encode(),
        json.dumps({"keys": [{}] * 10_000}).encode(),
        json.dumps({"keys": [key().public_jwk] * (module.MAX_KEYS + 1)}).encode(),
    ],
    ids=lambda case: len(case[0] if isinstance(case, tuple) else case),
)
def test_a_key_set_that_is_malformed_or_too_large_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidKeySet) as raised:
        KeySet.parse(document)
    assert "CANARY" not in str(raised.value)


def test_key_set_may_have_256_kib() -> None:
    document = json.dumps(jwks()).encode().ljust(256 * 1024)
    assert KeySet.parse(document)
    with pytest.raises(InvalidKeySet, match="more than 262144 bytes"):
        KeySet.parse(document + b" ")


@for_each("size", ["bytes", "keys"])
@on_a_loop
async def test_an_oversized_key_set_makes_the_verifier_unavailable(size: str) -> None:
    async with issuer() as server:
        many = [{}] * 10_000 if size == "keys" else [key().public_jwk] * 10_000
        server.answers["/jwks"] = {"keys": [key().public_jwk, *many]}
        assert await RemoteKeysVerifier(server).verify() == "VerifierUnavailable"


@on_a_loop
async def test_an_oversized_key_set_does_not_displace_the_keys_from_before() -> None:
    async with issuer() as server:
        scene = RemoteKeysVerifier(server)
        assert await scene.verify() == "ann"
        server.answers["/jwks"] = {"keys": [key(number=1).public_jwk] * 10_000}
        scene.clock.now = module.MAX_AGE_S
        assert await scene.verify() == "ann"


def test_keys_of_other_uses_and_types_are_left_out() -> None:
    good = key().public_jwk
    found = KeySet.of_jwks(
        {
            "keys": [
                {"kty": "oct", "k": "AAAA", "kid": "a"},
                {**good, "use": "enc", "kid": "b"},
                {**good, "kid": ["c"]},
                {**good, "kid": "x" * 10_000},
                {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "d"},
                good,
            ]
        }
    )
    assert found.size == 1
    assert len(found.find("one", "ES256")) == 1


def test_a_private_key_in_a_key_set_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    leaked = key(key_id="leaked", number=1)._key.as_dict(private=True)
    found = KeySet.of_jwks({"keys": [{**leaked, "kid": "leaked"}, key().public_jwk]})
    assert found.find("leaked", "ES256") == ()
    assert "publishes a private key" in caplog.text
    assert leaked["d"] not in caplog.text


def test_keys_of_one_name_are_bounded() -> None:
    same = [key(number=number).public_jwk for number in range(10)]
    assert len(KeySet.of_jwks({"keys": same}).find("one", "ES256")) == module.MAX_CANDIDATES


@on_a_loop
async def test_neither_logs_nor_errors_show_what_a_server_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with issuer() as server:
        scene = RemoteKeysVerifier(server, jwks_uri=f"{server.origin}/jwks?secret=CANARY-query")
        server.answers["/jwks?secret=CANARY-query"] = b"CANARY-body"
        with pytest.raises(VerifierUnavailable) as raised:
            await scene.keys.fetch("CANARY-kid", "ES256")
        for text in (str(raised.value), repr(raised.value), caplog.text, repr(scene.keys)):
            assert "CANARY" not in text
