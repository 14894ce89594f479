"""Tokens: refresh and its rotation, introspection, revocation, assertions, exchange, keys."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.rigs.event_loop import on_a_loop
from tests.unit.testing.authorization_server.flow import (
    RESOURCE,
    authorize,
    known_server,
    log_in,
    redeem,
    refresh,
    request,
    token,
)
from tests.unit.testing.authorization_server.test_clients import basic
from trunkline.auth.jose import PublicKey, SigningKey, parse_token
from trunkline.testing import AuthorizationServer

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:"


@on_a_loop
async def test_each_refresh_has_the_next_refresh_token() -> None:
    async with known_server() as server:
        first = await log_in(server, scope="read write")
        second = await refresh(server, first["refresh_token"], scope="read")
        assert second["scope"] == "read"
        assert second["refresh_token"] != first["refresh_token"]
        third = await refresh(server, second["refresh_token"])
        assert third["scope"] == "read write"
        assert parse_token(third["access_token"]).claims["aud"] == RESOURCE


@on_a_loop
async def test_the_reuse_of_a_refresh_token_revokes_all_of_its_grant() -> None:
    async with known_server() as server:
        first = await log_in(server)
        second = await refresh(server, first["refresh_token"])
        assert (await refresh(server, first["refresh_token"]))["error"] == "invalid_grant"
        assert (await refresh(server, second["refresh_token"]))["error"] == "invalid_grant"
        # Another grant of the same client goes on.
        assert (await log_in(server))["status"] == 200


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"refresh_token": "unknown"}, "invalid_grant"),
        ({"refresh_token": None}, "invalid_request"),
        ({"client_id": "another"}, "invalid_grant"),
        ({"scope": "read write"}, "invalid_scope"),
        ({"resource": "https://other.example.org"}, "invalid_target"),
    ],
)
@on_a_loop
async def test_a_refresh_beyond_its_grant_is_refused(changes: dict[str, Any], error: str) -> None:
    async with known_server() as server:
        server.client("another", redirect_uris=[])
        found = await log_in(server)
        given = {"refresh_token": found["refresh_token"], **changes}
        assert (await refresh(server, **given))["error"] == error


@on_a_loop
async def test_a_refresh_token_expires() -> None:
    now = [1_000_000.0]
    async with known_server(clock=lambda: now[0], refresh_lifetime=100) as server:
        found = await log_in(server)
        now[0] += 101
        assert (await refresh(server, found["refresh_token"]))["error"] == "invalid_grant"


@on_a_loop
async def test_refresh_tokens_are_issued_as_configured() -> None:
    async with known_server(refresh_tokens=False) as server:
        assert "refresh_token" not in await log_in(server)
    async with known_server(refresh_tokens="offline_access") as server:
        assert "refresh_token" not in await log_in(server)
        assert "refresh_token" in await log_in(server, scope="read offline_access")


async def introspect(server: AuthorizationServer, what: str) -> dict[str, Any]:
    response = await request(
        server.introspection_endpoint, form={"token": what}, headers=basic("checker", "s")
    )
    found: dict[str, Any] = json.loads(response.body)
    return found


@pytest.mark.parametrize("is_opaque", [False, True])
@on_a_loop
async def test_introspection_reports_what_is_active(is_opaque: bool) -> None:
    now = [time.time()]
    async with known_server(opaque_tokens=is_opaque, clock=lambda: now[0]) as server:
        server.client("checker", client_secret="s")
        issued = server.issue(subject="ann", scopes=["read"], audience=RESOURCE)
        assert issued.count(".") == (0 if is_opaque else 2)
        found = await introspect(server, issued)
        assert (found["active"], found["sub"], found["aud"]) == (True, "ann", RESOURCE)
        assert found["token_type"] == "Bearer"
        now[0] += 301
        assert await introspect(server, issued) == {"active": False}
        bound = server.issue(dpop_jkt="thumbprint")
        assert (await introspect(server, bound))["cnf"] == {"jkt": "thumbprint"}
        server.revoke(bound)
        assert await introspect(server, bound) == {"active": False}
        assert await introspect(server, "unknown") == {"active": False}
        tokens = await log_in(server)
        assert await introspect(server, tokens["refresh_token"]) == {"active": False}


@on_a_loop
async def test_introspection_is_for_clients_that_authenticate() -> None:
    async with known_server() as server:
        issued = server.issue()
        response = await request(
            server.introspection_endpoint, form={"token": issued, "client_id": "known"}
        )
        assert response.status == 401
        response = await request(server.introspection_endpoint, form={"token": issued})
        assert response.status == 401


@on_a_loop
async def test_revocation_ends_a_grant_of_the_same_client() -> None:
    async with known_server() as server:
        server.client("checker", client_secret="s")
        found = await log_in(server)
        what = {"token": found["refresh_token"]}
        other = await request(server.revocation_endpoint, form=what, headers=basic("checker", "s"))
        assert other.status == 200
        assert (await introspect(server, found["access_token"]))["active"] is True
        done = await request(server.revocation_endpoint, form={**what, "client_id": "known"})
        assert done.status == 200
        assert (await introspect(server, found["access_token"]))["active"] is False
        assert (await refresh(server, found["refresh_token"]))["error"] == "invalid_grant"


def workload(key: SigningKey, audience: str, **changes: Any) -> str:
    claims = {
        "iss": "https://cluster.example.org",
        "sub": "system:serviceaccount:jobs",
        "aud": audience,
        "exp": int(time.time()) + 60,
        **changes,
    }
    return key.sign({name: value for name, value in claims.items() if value is not None})


@on_a_loop
async def test_a_workload_gets_a_token_for_its_assertion() -> None:
    key = SigningKey.generate()
    async with AuthorizationServer() as server:
        server.trust("https://cluster.example.org", key)
        found = await token(
            server,
            grant_type=JWT_BEARER,
            assertion=workload(key, server.issuer),
            resource=RESOURCE,
            scope="read",
        )
        claims = parse_token(found["access_token"]).claims
        assert claims["sub"] == "system:serviceaccount:jobs"
        assert (claims["aud"], claims["scope"]) == (RESOURCE, "read")
        assert "refresh_token" not in found


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example.org"},
        {"aud": "https://other.example.org"},
        {"exp": 1},
        {"exp": None},
        {"nbf": 2**40},
        {"sub": None},
        {"jti": 7},
        {"client_id": "known"},
    ],
)
@on_a_loop
async def test_an_assertion_that_is_not_for_here_and_now_is_refused(
    changes: dict[str, Any],
) -> None:
    key = SigningKey.generate()
    async with AuthorizationServer() as server:
        server.trust("https://cluster.example.org", key)
        given = workload(key, **{"audience": server.issuer, **changes})
        found = await token(server, grant_type=JWT_BEARER, assertion=given)
        assert found["error"] == "invalid_grant"


@on_a_loop
async def test_an_assertion_of_another_key_or_used_before_is_refused() -> None:
    key = SigningKey.generate()
    async with AuthorizationServer() as server:
        server.trust("https://cluster.example.org", {"keys": [key.public_jwk]})
        other = workload(SigningKey.generate(), server.issuer)
        assert "error" in await token(server, grant_type=JWT_BEARER, assertion=other)
        assert "error" in await token(server, grant_type=JWT_BEARER, assertion="CANARY")
        own = workload(key, server.issuer, jti="once")
        assert "error" not in await token(server, grant_type=JWT_BEARER, assertion=own)
        assert "error" in await token(server, grant_type=JWT_BEARER, assertion=own)


async def exchange(idp: AuthorizationServer, **changes: Any) -> dict[str, Any]:
    given = {
        "grant_type": EXCHANGE,
        "subject_token": idp.issue_id_token(subject="ann", client_id="client"),
        "subject_token_type": f"{TYPE}id_token",
        "requested_token_type": f"{TYPE}id-jag",
        "resource": RESOURCE,
        "scope": "read",
        **changes,
    }
    return await token(idp, basic("client", "s"), **given)


@on_a_loop
async def test_an_identity_token_becomes_an_assertion_and_then_an_access_token() -> None:
    async with AuthorizationServer() as idp, AuthorizationServer() as server:
        idp.client("client", client_secret="s")
        server.client("client", client_secret="s")
        server.client("other", client_secret="s")
        server.trust(idp.issuer, idp.jwks)
        exchanged = await exchange(idp, audience=server.issuer)
        assert exchanged["token_type"] == "N_A"
        assert exchanged["issued_token_type"] == f"{TYPE}id-jag"
        assertion = parse_token(exchanged["access_token"])
        assert assertion.header["typ"] == "oauth-id-jag+jwt"
        given = {"grant_type": JWT_BEARER, "assertion": exchanged["access_token"]}
        assert (await token(server, basic("other", "s"), **given))["error"] == "invalid_grant"
        assert (await token(server, **given))["error"] == "invalid_client"
        given["assertion"] = (await exchange(idp, audience=server.issuer))["access_token"]
        found = await token(server, basic("client", "s"), **given)
        claims = parse_token(found["access_token"]).claims
        assert (claims["iss"], claims["sub"]) == (server.issuer, "ann")
        assert (claims["aud"], claims["scope"]) == (RESOURCE, "read")
        given["assertion"] = (await exchange(idp, audience=server.issuer))["access_token"]
        given["resource"] = "https://other.example.org"
        assert (await token(server, basic("client", "s"), **given))["error"] == "invalid_target"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"subject_token_type": f"{TYPE}saml2"}, "invalid_request"),
        ({"requested_token_type": f"{TYPE}saml2"}, "invalid_request"),
        ({"subject_token": "CANARY"}, "invalid_grant"),
        ({"audience": None}, "invalid_request"),
    ],
)
@on_a_loop
async def test_an_exchange_that_cannot_be_made_is_refused(
    changes: dict[str, Any], error: str
) -> None:
    async with AuthorizationServer() as idp:
        idp.client("client", client_secret="s")
        assert (await exchange(idp, **changes))["error"] == error


@on_a_loop
async def test_a_token_is_exchanged_for_one_of_another_audience() -> None:
    async with AuthorizationServer() as idp:
        idp.client("client", client_secret="s")
        found = await exchange(idp, requested_token_type=None)
        assert found["issued_token_type"] == f"{TYPE}access_token"
        assert parse_token(found["access_token"]).claims["aud"] == RESOURCE


@on_a_loop
async def test_openid_adds_an_identity_token() -> None:
    async with known_server() as server:
        found = await log_in(server, scope="openid read")
        claims = parse_token(found["id_token"]).claims
        assert (claims["sub"], claims["aud"]) == ("user", "known")


@on_a_loop
async def test_keys_are_rotated_with_or_without_the_old_ones() -> None:
    async with known_server() as server:
        old = parse_token(server.issue())
        server.rotate_keys()
        response = await request(server.jwks_uri)
        keys = [PublicKey(each) for each in json.loads(response.body)["keys"]]
        assert [old.is_signed_by(key) for key in keys] == [False, True]
        new = parse_token(server.issue())
        assert [new.is_signed_by(key) for key in keys] == [True, False]
        server.rotate_keys(keep_old=False)
        assert len(server.jwks["keys"]) == 1


@on_a_loop
async def test_a_token_is_issued_with_any_claims() -> None:
    async with known_server() as server:
        claims = parse_token(
            server.issue(lifetime=-10, claims={"iss": "https://evil.example.org", "exp": None})
        ).claims
        assert claims["iss"] == "https://evil.example.org"
        assert "exp" not in claims
        assert claims["aud"] == server.issuer
        signed = parse_token(server.sign({"a": 1}, type="dpop+jwt"))
        assert (signed.claims, signed.header["typ"]) == ({"a": 1}, "dpop+jwt")


@on_a_loop
async def test_a_code_of_two_resources_gives_a_token_for_one_or_both() -> None:
    async with known_server() as server:
        both = [RESOURCE, "https://mail.example.org/mcp"]
        answer = await authorize(server, resource=RESOURCE)
        found = await redeem(server, answer["code"], resource=None)
        assert parse_token(found["access_token"]).claims["aud"] == RESOURCE
        issued = parse_token(server.issue(audience=both))
        assert issued.claims["aud"] == both
