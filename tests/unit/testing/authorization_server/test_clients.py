"""Clients: registration, metadata documents, and how they authenticate."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from typing import Any

import pytest

from tests.rigs.event_loop import on_a_loop
from tests.unit.testing.authorization_server.flow import (
    REDIRECT,
    authorization_url,
    authorize,
    known_server,
    redeem,
    request,
    token,
)
from trunkline.auth.jose import SigningKey, parse_token
from trunkline.testing import AuthorizationServer

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
NATIVE = {
    "client_name": "Tests",
    "application_type": "native",
    "redirect_uris": [REDIRECT],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
}


async def register(server: AuthorizationServer, document: Any) -> tuple[int, dict[str, Any]]:
    response = await request(server.registration_endpoint, document=document)
    return response.status, json.loads(response.body)


@on_a_loop
async def test_a_registered_client_gets_a_token() -> None:
    async with AuthorizationServer() as server:
        status, client = await register(server, NATIVE)
        assert status == 201
        assert client["redirect_uris"] == [REDIRECT]
        assert "client_secret" not in client
        name = client["client_id"]
        answer = await authorize(server, client_id=name)
        found = await redeem(server, answer["code"], client_id=name)
        assert found["status"] == 200
        assert "refresh_token" in found
        server.forget_client(name)
        assert (await redeem(server, "any", client_id=name))["error"] == "invalid_client"


@on_a_loop
async def test_a_client_with_a_secret_gets_one() -> None:
    async with AuthorizationServer() as server:
        _, client = await register(server, {"redirect_uris": [REDIRECT]})
        assert client["token_endpoint_auth_method"] == "client_secret_basic"
        assert len(client["client_secret"]) >= 32
        # It is registered for codes alone.
        answer = await authorize(server, client_id=client["client_id"])
        found = await redeem(
            server,
            answer["code"],
            basic(client["client_id"], client["client_secret"]),
            client_id=None,
        )
        assert found["status"] == 200
        assert "refresh_token" not in found


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://example.org/callback"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["data:text/html,x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://example.org/#part"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://user@example.org/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["/callback"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://exa mple.org/"]}, "invalid_redirect_uri"),
        ({"application_type": "web"}, "invalid_redirect_uri"),
        (
            {"application_type": "web", "redirect_uris": ["https://localhost/callback"]},
            "invalid_redirect_uri",
        ),
        ({"application_type": "phone"}, "invalid_client_metadata"),
        ({"redirect_uris": REDIRECT}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT] * 33}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
        ({"client_name": 7}, "invalid_client_metadata"),
    ],
)
@on_a_loop
async def test_a_registration_that_cannot_be_used_is_refused(
    changes: dict[str, Any], error: str
) -> None:
    async with AuthorizationServer() as server:
        status, answer = await register(server, {**NATIVE, **changes})
        assert (status, answer["error"]) == (400, error)


@on_a_loop
async def test_redirect_uris_of_each_kind_are_registered() -> None:
    async with AuthorizationServer() as server:
        for kind, uri in (
            ("web", "https://example.org/callback"),
            ("native", "https://example.org/callback"),
            ("native", "http://localhost:7/callback"),
            ("native", "http://[::1]/callback"),
            ("native", "org.example.app:/callback"),
        ):
            document = {**NATIVE, "application_type": kind, "redirect_uris": [uri]}
            assert (await register(server, document))[0] == 201, uri


@on_a_loop
async def test_a_server_without_registration_has_no_such_endpoint() -> None:
    async with AuthorizationServer(registration=False) as server:
        assert (await register(server, NATIVE))[0] == 404
        assert "registration_endpoint" not in server.metadata


@on_a_loop
async def test_a_client_is_described_by_the_document_at_its_url() -> None:
    url = "https://app.example.org/client.json"
    async with AuthorizationServer() as server:
        server.document(
            url, {**NATIVE, "client_id": url, "redirect_uris": ["http://127.0.0.1/callback"]}
        )
        answer = await authorize(server, client_id=url)
        assert (await redeem(server, answer["code"], client_id=url))["status"] == 200


@pytest.mark.parametrize(
    ("url", "changes"),
    [
        ("https://app.example.org/client.json", {"client_id": "https://other.example.org/"}),
        ("https://app.example.org/client.json", {"redirect_uris": ["https://app.example.org/"]}),
        ("https://app.example.org/client.json", {"redirect_uris": []}),
        (
            "https://app.example.org/client.json",
            {"token_endpoint_auth_method": "client_secret_post"},
        ),
        ("https://app.example.org/", {}),
        ("https://user@app.example.org/client.json", {}),
        ("http://app.example.org/client.json", {}),
    ],
)
@on_a_loop
async def test_a_document_that_does_not_describe_the_client_is_refused(
    url: str, changes: dict[str, Any]
) -> None:
    async with AuthorizationServer() as server:
        server.document(url, {**NATIVE, "client_id": url, **changes})
        response = await request(authorization_url(server, client_id=url))
        assert response.status == 400


@on_a_loop
async def test_a_document_is_fetched_from_its_url() -> None:
    async with AuthorizationServer() as home, AuthorizationServer() as server:
        # Any server can hold the document; this one serves it in place of its keys.
        url = home.jwks_uri
        home.fail("jwks", body=json.dumps({**NATIVE, "client_id": url}).encode(), times=None)
        assert "code" in await authorize(server, client_id=url)
        home.recover()
        home.fail("jwks", oversized=100_000)
        assert (await request(authorization_url(server, client_id=url))).status == 400
        home.fail("jwks", malformed=True)
        assert (await request(authorization_url(server, client_id=url))).status == 400
        await home.close()
        assert (await request(authorization_url(server, client_id=url))).status == 400


def basic(client_id: str, secret: str) -> dict[str, str]:
    return {"authorization": "Basic " + b64encode(f"{client_id}:{secret}".encode()).decode()}


def assertion(key: SigningKey, audience: str, **changes: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": "service",
        "sub": "service",
        "aud": audience,
        "iat": now,
        "exp": now + 60,
        "jti": "CANARY-jti",
        **changes,
    }
    return key.sign(claims)


@on_a_loop
async def test_client_credentials_by_each_method() -> None:
    key = SigningKey.generate()
    async with AuthorizationServer(
        scopes=["read"], users={"service": {"tenant": "acme"}}
    ) as server:
        kind = {"grant_type": "client_credentials", "scope": "read"}
        server.client("service", client_secret="s:1")
        found = await token(server, basic("service", "s%3A1"), **kind)
        assert found["status"] == 200
        claims = parse_token(found["access_token"]).claims
        assert (claims["sub"], claims["tenant"]) == ("service", "acme")
        assert "refresh_token" not in found
        server.client("service", client_secret="s", auth_method="client_secret_post")
        found = await token(server, client_id="service", client_secret="s", **kind)
        assert found["status"] == 200
        server.client("service", key=key)
        for audience in (server.issuer, server.token_endpoint):
            given = assertion(key, audience, jti=audience)
            found = await token(
                server, client_assertion=given, client_assertion_type=ASSERTION, **kind
            )
            assert found["status"] == 200


@on_a_loop
async def test_a_client_authenticates_as_it_is_registered() -> None:
    key = SigningKey.generate()
    async with AuthorizationServer() as server:
        server.client("service", client_secret="s")
        server.client("public")
        server.client("signer", key=key)
        kind = {"grant_type": "client_credentials"}
        for headers, form in (
            (basic("service", "wrong"), {}),
            (basic("service", ""), {}),
            (basic("other", "s"), {}),
            ({"authorization": "Basic ???"}, {}),
            (basic("service", "s"), {"client_id": "public"}),
            (None, {"client_id": "service", "client_secret": "s"}),
            (None, {"client_id": "service"}),
            (None, {"client_id": "signer"}),
            (None, {}),
        ):
            found = await token(server, headers, **kind, **form)
            assert (found["status"], found["error"]) == (401, "invalid_client"), form
        found = await token(server, basic("service", "s"), client_secret="s", **kind)
        assert found["error"] == "invalid_request"
        found = await token(server, None, client_id="public", **kind)
        assert found["error"] == "unauthorized_client"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "other"},
        {"sub": "other"},
        {"aud": "https://other.example.org"},
        {"exp": 1},
        {"exp": None},
        {"nbf": 2**40},
        {"jti": None},
    ],
)
@on_a_loop
async def test_a_client_assertion_that_is_not_for_here_and_now_is_refused(
    changes: dict[str, Any],
) -> None:
    key = SigningKey.generate()
    async with AuthorizationServer() as server:
        server.client("service", key=key)
        found = await token(
            server,
            grant_type="client_credentials",
            client_id="service",
            client_assertion=assertion(key, **{"audience": server.issuer, **changes}),
            client_assertion_type=ASSERTION,
        )
        assert (found["status"], found["error"]) == (401, "invalid_client")


@on_a_loop
async def test_a_client_assertion_of_another_key_or_used_before_is_refused() -> None:
    key = SigningKey.generate()
    async with AuthorizationServer() as server:
        server.client("service", key=key)
        kind = {"grant_type": "client_credentials", "client_assertion_type": ASSERTION}
        other = assertion(SigningKey.generate(), server.issuer)
        assert (await token(server, client_assertion=other, **kind))["status"] == 401
        assert (await token(server, client_assertion="CANARY", **kind))["status"] == 401
        own = assertion(key, server.issuer)
        assert (await token(server, client_assertion=own, **kind))["status"] == 200
        assert (await token(server, client_assertion=own, **kind))["status"] == 401
        fresh = assertion(key, server.issuer, jti="next")
        wrong = {**kind, "client_assertion_type": "urn:other"}
        assert (await token(server, client_assertion=fresh, **wrong))["status"] == 401


@on_a_loop
async def test_a_client_uses_the_grants_and_scopes_it_is_registered_for() -> None:
    async with known_server() as server:
        server.client("narrow", client_secret="s", grant_types=["refresh_token"], scopes=["read"])
        found = await token(server, basic("narrow", "s"), grant_type="client_credentials")
        assert found["error"] == "unauthorized_client"
        server.client("narrow", client_secret="s", scopes=["read"])
        kind = {"grant_type": "client_credentials", "scope": "write"}
        assert (await token(server, basic("narrow", "s"), **kind))["error"] == "invalid_scope"
        found = await token(server, grant_type="password", client_id="known")
        assert found["error"] == "unsupported_grant_type"
        assert (await token(server, client_id="known"))["error"] == "invalid_request"


def test_a_client_of_an_unknown_method_is_not_made() -> None:
    with pytest.raises(ValueError, match="auth_method is one of"):
        AuthorizationServer().client("a", auth_method="tls_client_auth")
