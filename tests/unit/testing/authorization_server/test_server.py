"""The server as a whole: metadata, pages, failures on demand, what it records and what it hides."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from tests.canaries import CANARY
from tests.rigs.event_loop import on_a_loop
from tests.unit.testing.authorization_server.flow import (
    REDIRECT,
    VERIFIER,
    answer_of,
    authorization_url,
    authorize,
    known_server,
    log_in,
    redeem,
    refresh,
    request,
    token,
)
from tests.unit.testing.authorization_server.test_clients import basic
from trunkline.auth.metadata import issuer_urls
from trunkline.errors import TransportError
from trunkline.testing import AuthorizationServer


@pytest.mark.parametrize("path", ["", "/tenant1", "/a/b"])
@on_a_loop
async def test_metadata_is_at_every_place_where_clients_look(path: str) -> None:
    async with AuthorizationServer(path=path, scopes=["read"]) as server:
        assert server.issuer.endswith(path)
        for url in issuer_urls(server.issuer):
            response = await request(url)
            found = json.loads(response.body)
            assert (response.status, found) == (200, server.metadata), url
            assert found["issuer"] == server.issuer
            assert "for development only" in found["service_name"]
        for url in (server.jwks_uri, server.issuer):
            assert (await request(url)).status == 200
        elsewhere = server.issuer.removesuffix(path) + "/other"
        assert (await request(elsewhere)).status == 404


@pytest.mark.parametrize(
    ("discovery", "expected"), [("oauth", [200, 404, 404]), ("openid", [404, 200, 200])]
)
@on_a_loop
async def test_one_kind_of_metadata_can_be_absent(discovery: Any, expected: list[int]) -> None:
    async with AuthorizationServer(path="/a", discovery=discovery) as server:
        found = [(await request(url)).status for url in issuer_urls(server.issuer)]
        assert found == expected


@on_a_loop
async def test_a_test_changes_the_metadata() -> None:
    async with AuthorizationServer() as server:
        server.metadata_changes = {"code_challenge_methods_supported": None, "extra": 1}
        found = json.loads((await request(issuer_urls(server.issuer)[0])).body)
        assert found["extra"] == 1
        assert "code_challenge_methods_supported" not in found


@on_a_loop
async def test_methods_and_bodies_that_do_not_belong_are_refused() -> None:
    async with known_server() as server:
        assert (await request(server.token_endpoint)).status == 405
        assert (await request(server.jwks_uri, form={})).status == 405
        plain = await request(
            server.token_endpoint, method="POST", headers={"content-type": "text/plain"}
        )
        assert json.loads(plain.body)["error"] == "invalid_request"
        many = await request(server.token_endpoint, form={f"a{i}": "1" for i in range(100)})
        assert json.loads(many.body)["error"] == "invalid_request"
        twice = await request(
            server.token_endpoint, form={"grant_type": ["client_credentials", "refresh_token"]}
        )
        assert json.loads(twice.body)["error"] == "invalid_request"
        listed = await request(server.registration_endpoint, document=[1])
        assert json.loads(listed.body)["error"] == "invalid_request"
        foreign = await request(
            server.token_endpoint, form={}, headers={"origin": "https://evil.example.org"}
        )
        assert foreign.status == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::", ""])
def test_server_refuses_hosts_other_than_loopback(host: str) -> None:
    with pytest.raises(ValueError, match="for development only"):
        AuthorizationServer(host=host)


@pytest.mark.parametrize("path", ["tenant1", "/tenant1/", "/?a"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path is"):
        AuthorizationServer(path=path)


@on_a_loop
async def test_a_port_in_use_is_an_error() -> None:
    async with AuthorizationServer() as server:
        port = int(server.issuer.rpartition(":")[2])
        with pytest.raises(OSError):
            await AuthorizationServer(port=port).start()


# -- the page ----------------------------------------------------------------------------------


async def shown(server: AuthorizationServer, **changes: str | None) -> tuple[str, str, str, str]:
    """Return the token of the page, its cookie, its policy and its text."""
    response = await request(authorization_url(server, **changes))
    assert response.status == 200
    text = response.body.decode()
    field = re.search(r'name="csrf_token" value="([^"]+)"', text)
    assert field is not None
    cookie = (response.header(b"set-cookie") or b"").decode()
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    policy = (response.header(b"content-security-policy") or b"").decode()
    return field[1], cookie.partition(";")[0], policy, text


@on_a_loop
async def test_the_page_names_the_client_and_asks_for_consent() -> None:
    async with known_server(approve=None) as server:
        evil = '<script>alert("x")</script>'
        server.client("known", redirect_uris=[REDIRECT], client_name=evil)
        csrf, cookie, policy, text = await shown(server)
        assert "for development only" in text
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "127.0.0.1:7777" in text
        assert "<li>read</li>" in text
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self' http://127.0.0.1:7777" in policy
        form = {"csrf_token": csrf, "subject": "ann", "decision": "allow"}
        sent = await request(
            server.authorization_endpoint, form=form, headers={"cookie": f"a=b; {cookie}"}
        )
        answer = answer_of((sent.header(b"location") or b"").decode())
        assert answer["state"] == "CANARY-state"
        assert (await redeem(server, answer["code"]))["status"] == 200
        again = await request(server.authorization_endpoint, form=form, headers={"cookie": cookie})
        assert (again.status, again.header(b"location")) == (403, None)


@on_a_loop
async def test_the_form_counts_from_the_browser_it_was_shown_to() -> None:
    now = [1_000_000.0]
    async with known_server(approve=None, clock=lambda: now[0]) as server:
        _, cookie, _, _ = await shown(server)
        for given in ({}, {"cookie": "trunkline-consent=other"}, {"cookie": cookie}):
            csrf, _, _, _ = await shown(server)
            form = {"csrf_token": csrf, "decision": "allow"}
            sent = await request(server.authorization_endpoint, form=form, headers=given)
            assert (sent.status, sent.header(b"location")) == (403, None)
        sent = await request(server.authorization_endpoint, form={"decision": "allow"})
        assert sent.status == 403
        csrf, cookie, _, _ = await shown(server)
        now[0] += 601
        form = {"csrf_token": csrf, "decision": "allow"}
        sent = await request(server.authorization_endpoint, form=form, headers={"cookie": cookie})
        assert sent.status == 403


@on_a_loop
async def test_the_user_may_refuse() -> None:
    async with known_server(approve=None) as server:
        csrf, cookie, _, _ = await shown(server)
        form = {"csrf_token": csrf, "decision": "deny"}
        sent = await request(server.authorization_endpoint, form=form, headers={"cookie": cookie})
        assert answer_of((sent.header(b"location") or b"").decode())["error"] == "access_denied"
        csrf, cookie, _, _ = await shown(server)
        form = {"csrf_token": csrf, "decision": "allow", "subject": "a b"}
        sent = await request(server.authorization_endpoint, form=form, headers={"cookie": cookie})
        assert sent.status == 400


# -- failures on demand ------------------------------------------------------------------------


@on_a_loop
async def test_endpoint_fails_as_often_as_configured() -> None:
    async with known_server() as server:
        found = await log_in(server)
        server.fail("token", error="temporarily_unavailable", status=503, times=2)
        server.fail("token", error="invalid_grant")
        outcomes = [await refresh(server, found["refresh_token"]) for _ in range(4)]
        assert [each["status"] for each in outcomes] == [503, 503, 400, 200]
        assert outcomes[0]["error"] == "temporarily_unavailable"
        server.fail("token", error="invalid_client", status=401, times=None)
        for _ in range(3):
            assert (await refresh(server, "any"))["status"] == 401
        server.recover()
        assert (await refresh(server, "any"))["error"] == "invalid_grant"


@on_a_loop
async def test_metadata_fails_in_every_way() -> None:
    async with known_server() as server:
        url = issuer_urls(server.issuer)[0]
        server.fail("metadata", issuer="https://evil.example.org")
        assert json.loads((await request(url)).body)["issuer"] == "https://evil.example.org"
        server.fail("metadata", status=500)
        found = await request(url)
        assert (found.status, found.body) == (500, b"")
        server.fail("metadata", malformed=True)
        with pytest.raises(json.JSONDecodeError):
            json.loads((await request(url)).body)
        server.fail("metadata", oversized=500_000)
        assert len((await request(url)).body) > 500_000
        server.fail("metadata", redirect="https://evil.example.org/")
        with pytest.raises(TransportError, match="another origin"):
            await request(url)
        server.fail("metadata", body=b"{}")
        assert (await request(url)).body == b"{}"
        server.fail("metadata", disconnect=True)
        with pytest.raises(TransportError):
            await request(url)
        assert (await request(url)).status == 200


@on_a_loop
async def test_an_answer_waits_for_its_delay() -> None:
    async with known_server() as server:
        server.fail("jwks", delay=600)
        waiting = asyncio.ensure_future(request(server.jwks_uri))
        while not server.requests:
            await asyncio.sleep(0)
        assert (await request(server.jwks_uri)).status == 200
        assert not waiting.done()
        waiting.cancel()
        server.fail("jwks", delay=0.001)
        assert json.loads((await request(server.jwks_uri)).body) == server.jwks


@on_a_loop
async def test_the_authorization_response_can_name_another_issuer() -> None:
    async with known_server() as server:
        server.fail("authorize", issuer="https://evil.example.org")
        assert (await authorize(server))["iss"] == "https://evil.example.org"
        assert (await authorize(server))["iss"] == server.issuer


def test_an_endpoint_that_does_not_exist_cannot_fail() -> None:
    server = AuthorizationServer()
    with pytest.raises(ValueError, match="there is no endpoint"):
        server.fail("tokens")
    with pytest.raises(ValueError, match="at least 1"):
        server.fail("token", times=0)


# -- what is recorded, and what is hidden ------------------------------------------------------


@on_a_loop
async def test_requests_are_recorded_in_order() -> None:
    async with known_server() as server:
        await log_in(server)
        await request(server.jwks_uri)
        assert [each.endpoint for each in server.requests] == ["authorize", "token", "jwks"]
        asked = server.asked("token")[0]
        assert (asked.method, asked.path, asked.status) == ("POST", "/token", 200)
        assert asked.parameters["code_verifier"] == VERIFIER
        await redeem(server, "unknown")
        assert server.requests[-1].error == "invalid_grant"


@on_a_loop
async def test_no_secret_is_in_a_log_or_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with known_server() as server:
        client = server.client("service", client_secret="CANARY-secret")
        found = await log_in(server)
        await refresh(server, found["refresh_token"])
        await token(server, basic("service", "CANARY-secret"), grant_type="client_credentials")
        await token(server, client_id="service", client_secret="CANARY-x", grant_type="password")
        await token(server, grant_type="refresh_token", refresh_token="CANARY-r", client_id="a")
        shown = "\n".join([caplog.text, repr(server), repr(client), *map(repr, server.requests)])
        assert "for development only" in caplog.text
        assert "grant_type='authorization_code'" in shown
        assert CANARY not in shown
        for name in ("access_token", "refresh_token"):
            assert found[name] not in shown
        for each in server.asked("token"):
            for name in ("code", "refresh_token"):
                assert each.parameters.get(name, "absent!") not in shown


def test_a_server_that_was_not_started_says_so() -> None:
    assert "not started" in repr(AuthorizationServer())
