"""DPoP at the token endpoint: which proofs bind a token, and which are refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.rigs.event_loop import on_a_loop
from tests.unit.testing.authorization_server.flow import (
    authorize,
    challenge,
    known_server,
    redeem,
    refresh,
    request,
)
from trunkline.auth.jose import SigningKey, parse_token
from trunkline.testing import AuthorizationServer

KEY = SigningKey.generate()


def proof(server: AuthorizationServer, key: SigningKey = KEY, **changes: Any) -> dict[str, str]:
    """Return the header with a proof for the token endpoint; None leaves a claim out."""
    head = {"typ": changes.pop("typ", "dpop+jwt"), "jwk": changes.pop("jwk", key.public_jwk)}
    claims = {
        "htm": "POST",
        "htu": server.token_endpoint,
        "iat": int(time.time()),
        "jti": f"CANARY-{time.perf_counter_ns()}",
        **changes,
    }
    present = {name: value for name, value in claims.items() if value is not None}
    return {"dpop": key.sign(present, head)}


@on_a_loop
async def test_a_token_is_bound_to_the_key_of_its_proof() -> None:
    async with known_server() as server:
        answer = await authorize(server)
        found = await redeem(server, answer["code"], proof(server))
        assert (found["status"], found["token_type"]) == (200, "DPoP")
        assert parse_token(found["access_token"]).claims["cnf"] == {"jkt": KEY.thumbprint}


@pytest.mark.parametrize(
    "changes",
    [
        {"htm": "GET"},
        {"htm": None},
        {"htu": "https://other.example.org/token"},
        {"htu": None},
        {"iat": 1},
        {"iat": 2**40},
        {"iat": None},
        {"jti": None},
        {"jti": 7},
        {"typ": "JWT"},
        {"jwk": None},
        {"jwk": SigningKey.generate().public_jwk},
        {"jwk": {**KEY.public_jwk, "d": "CANARY"}},
        {"jwk": {"kty": "oct", "k": "CANARY"}},
    ],
)
@on_a_loop
async def test_a_proof_that_is_not_for_here_and_now_is_refused(changes: dict[str, Any]) -> None:
    async with known_server() as server:
        answer = await authorize(server)
        found = await redeem(server, answer["code"], proof(server, **changes))
        assert (found["status"], found["error"]) == (400, "invalid_dpop_proof")
        # The code was not touched.
        assert (await redeem(server, answer["code"], proof(server)))["status"] == 200


@on_a_loop
async def test_a_proof_is_used_once() -> None:
    async with known_server() as server:
        header = proof(server)
        first, second = await authorize(server), await authorize(server)
        assert (await redeem(server, first["code"], header))["status"] == 200
        found = await redeem(server, second["code"], header)
        assert found["error"] == "invalid_dpop_proof"


@on_a_loop
async def test_the_refresh_token_of_a_public_client_is_bound_too() -> None:
    async with known_server() as server:
        answer = await authorize(server)
        found = await redeem(server, answer["code"], proof(server))
        old = found["refresh_token"]
        assert (await refresh(server, old))["error"] == "invalid_grant"
        stolen = proof(server, SigningKey.generate())
        assert (await refresh(server, old, headers=stolen))["error"] == "invalid_grant"
        assert (await refresh(server, old, headers=proof(server)))["token_type"] == "DPoP"


@on_a_loop
async def test_a_code_can_be_bound_to_a_key_before() -> None:
    async with known_server() as server:
        answer = await authorize(server, dpop_jkt=KEY.thumbprint)
        assert (await redeem(server, answer["code"]))["error"] == "invalid_grant"
        stolen = proof(server, SigningKey.generate())
        assert (await redeem(server, answer["code"], stolen))["error"] == "invalid_grant"
        assert (await redeem(server, answer["code"], proof(server)))["status"] == 200


@on_a_loop
async def test_a_nonce_is_required_where_it_is_configured() -> None:
    async with known_server(dpop_nonces=True) as server:
        answer = await authorize(server)
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "client_id": "known",
            "code_verifier": "CANARY-verifier-" + "v" * 40,
        }
        assert challenge(form["code_verifier"]) == challenge()
        refused = await request(server.token_endpoint, form=form, headers=proof(server))
        assert refused.status == 400
        assert json.loads(refused.body)["error"] == "use_dpop_nonce"
        nonce = (refused.header(b"dpop-nonce") or b"").decode()
        wrong = await request(
            server.token_endpoint, form=form, headers=proof(server, nonce="other")
        )
        assert json.loads(wrong.body)["error"] == "use_dpop_nonce"
        server.rotate_dpop_nonce()
        found = await request(server.token_endpoint, form=form, headers=proof(server, nonce=nonce))
        assert found.status == 200
        assert found.header(b"dpop-nonce") not in (None, nonce.encode())
        server.rotate_dpop_nonce()
        server.rotate_dpop_nonce()
        old = await request(server.token_endpoint, form=form, headers=proof(server, nonce=nonce))
        assert json.loads(old.body)["error"] == "use_dpop_nonce"
