"""Authorization codes: who gets one, and what it is exchanged for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rigs.event_loop import on_a_loop
from tests.unit.testing.authorization_server.flow import (
    REDIRECT,
    RESOURCE,
    authorization_url,
    authorize,
    challenge,
    known_server,
    log_in,
    redeem,
    refresh,
    request,
)
from trunkline.auth.jose import PublicKey, parse_token
from trunkline.testing import Approval, ConsentRequest


@on_a_loop
async def test_a_code_is_exchanged_for_a_token_for_the_resource() -> None:
    async with known_server(users={"ann": {"tenant": "acme"}}, user="ann") as server:
        answer = await authorize(server)
        assert answer["state"] == "CANARY-state"
        assert answer["iss"] == server.issuer
        found = await redeem(server, answer["code"])
        assert (found["status"], found["token_type"], found["scope"]) == (200, "Bearer", "read")
        token = parse_token(found["access_token"])
        assert token.is_signed_by(PublicKey(server.jwks["keys"][0]))
        assert token.header["typ"] == "at+jwt"
        assert token.claims["iss"] == server.issuer
        assert token.claims["aud"] == RESOURCE
        assert (token.claims["sub"], token.claims["client_id"]) == ("ann", "known")
        assert token.claims["tenant"] == "acme"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"scope": "read admin"}, "invalid_scope"),
        ({"resource": "https://files.example.org/mcp#part"}, "invalid_target"),
        ({"resource": "files"}, "invalid_target"),
        ({"resource": "https://other.example.org"}, "invalid_target"),
    ],
)
@on_a_loop
async def test_a_request_is_refused_at_the_redirect_uri(
    changes: dict[str, str | None], error: str
) -> None:
    async with known_server(resources=[RESOURCE]) as server:
        answer = await authorize(server, **changes)
        assert answer["error"] == error
        assert (answer["state"], answer["iss"]) == ("CANARY-state", server.issuer)
        assert "code" not in answer


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "other"},
        {"client_id": None},
        {"redirect_uri": None},
        {"redirect_uri": "http://127.0.0.1:7777/other"},
        {"redirect_uri": "https://evil.example.org/callback"},
        {"redirect_uri": "http://127.0.0.1@evil.example.org/callback"},
        {"redirect_uri": REDIRECT + "?more"},
        {"redirect_uri": REDIRECT + "/"},
        {"redirect_uri": REDIRECT.replace("127.0.0.1", "localhost")},
        {"redirect_uri": REDIRECT.replace("127.0.0.1:7777", "127.0.0.1:7777x")},
    ],
)
@on_a_loop
async def test_an_unknown_client_or_redirect_uri_leads_nowhere(
    changes: dict[str, str | None],
) -> None:
    async with known_server() as server:
        response = await request(authorization_url(server, **changes))
        assert response.status == 400
        assert response.header(b"location") is None
        assert b"for development only" in response.body


@on_a_loop
async def test_a_parameter_that_is_given_twice_is_refused() -> None:
    async with known_server() as server:
        response = await request(f"{authorization_url(server)}&scope=write")
        assert response.status == 400


@on_a_loop
async def test_the_port_of_a_loopback_redirect_may_differ() -> None:
    async with known_server() as server:
        other = REDIRECT.replace("7777", "8888")
        answer = await authorize(server, redirect_uri=other)
        assert (await redeem(server, answer["code"], redirect_uri=other))["status"] == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": None},
        {"code_verifier": "another-" + "v" * 40},
        {"code_verifier": challenge()},
        {"code": "unknown"},
        {"redirect_uri": "http://127.0.0.1:7777/other"},
        {"redirect_uri": REDIRECT.replace("7777", "8888")},
        {"client_id": "another"},
    ],
)
@on_a_loop
async def test_a_code_is_worthless_without_all_that_it_was_issued_for(
    changes: dict[str, str | None],
) -> None:
    async with known_server() as server:
        server.client("another", redirect_uris=[REDIRECT])
        answer = await authorize(server)
        found = await redeem(server, **{"code": answer["code"], **changes})
        assert (found["status"], found["error"]) == (400, "invalid_grant")
        assert "access_token" not in found


@on_a_loop
async def test_the_second_use_of_a_code_revokes_its_tokens() -> None:
    async with known_server() as server:
        server.client("checker", client_secret="s")
        answer = await authorize(server)
        found = await redeem(server, answer["code"])
        assert (await redeem(server, answer["code"]))["error"] == "invalid_grant"
        assert (await refresh(server, found["refresh_token"]))["error"] == "invalid_grant"
        asked = await request(
            server.introspection_endpoint,
            form={"token": found["access_token"]},
            headers={"authorization": "Basic Y2hlY2tlcjpz"},
        )
        assert json.loads(asked.body) == {"active": False}


@on_a_loop
async def test_a_code_expires() -> None:
    now = [1_000_000.0]
    async with known_server(clock=lambda: now[0]) as server:
        answer = await authorize(server)
        now[0] += 61
        assert (await redeem(server, answer["code"]))["error"] == "invalid_grant"


@on_a_loop
async def test_a_token_for_a_resource_beyond_the_grant_is_refused() -> None:
    async with known_server() as server:
        answer = await authorize(server)
        found = await redeem(server, answer["code"], resource="https://other.example.org")
        assert found["error"] == "invalid_target"


@on_a_loop
async def test_the_user_decides_as_the_test_says() -> None:
    asked: list[ConsentRequest] = []

    async def decide(consent: ConsentRequest) -> Any:
        asked.append(consent)
        return Approval(subject="eve", scopes=frozenset({"read"}), claims={"role": "guest"})

    async with known_server() as server:
        server.approve = False
        assert (await authorize(server))["error"] == "access_denied"
        server.approve = "bob"
        found = await log_in(server)
        assert parse_token(found["access_token"]).claims["sub"] == "bob"
        server.approve = decide
        found = await log_in(server, scope="read write")
        claims = parse_token(found["access_token"]).claims
        assert (claims["sub"], claims["scope"], claims["role"]) == ("eve", "read", "guest")
        assert asked[0].scopes == {"read", "write"}
        assert asked[0].resources == (RESOURCE,)


@on_a_loop
async def test_iss_is_left_out_on_demand() -> None:
    async with known_server() as server:
        server.sends_iss = False
        assert "iss" not in await authorize(server)
        assert server.metadata["authorization_response_iss_parameter_supported"] is False
