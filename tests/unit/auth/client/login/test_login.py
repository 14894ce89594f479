"""Logins over real sockets: what is asked for, what is kept, and when the user is asked again."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from tests.cases import for_each
from tests.http_client.stub_server import PER_REQUEST, SESSION, Asked
from tests.rigs.conditions import until_async
from tests.unit.auth.client.login.protected_stub import WELL_KNOWN, Browser, ProtectedStub, echo
from trunkline import Client
from trunkline.auth import FileTokens, MemoryTokens, OAuth, SigningKey
from trunkline.auth.client.login.login_source import MAX_STEP_UPS
from trunkline.auth.client.session.token_session import MAX_IN_A_ROW
from trunkline.auth.client.storage.token_store import StoredLogin, server_key
from trunkline.auth.jose import parse_token
from trunkline.errors import AuthorizationFailed
from trunkline.testing import Approval, AuthorizationServer

SCOPES = ["files:read", "files:write"]


class Place:
    """A protected server, its authorization server and a user."""

    def __init__(self, stub: ProtectedStub, login: AuthorizationServer) -> None:
        self.stub = stub
        self.login = login
        self.browser = Browser()
        self.storage = MemoryTokens()

    def auth(self, **options: Any) -> OAuth:
        return OAuth(**{"on_authorize": self.browser.paste, "storage": self.storage, **options})

    def client(self, **options: Any) -> Client:
        return Client(self.stub.url, auth=self.auth(**options), revision=self.stub.revision)

    def kept(self) -> StoredLogin:
        (data,) = self.storage._records.values()
        found = StoredLogin.decode(data)
        assert found is not None
        return found

    def keep(self, **changes: Any) -> None:
        kept = replace(self.kept(), **changes)
        self.storage.store(kept.server, kept.encode())

    def forms(self, grant: str = "") -> list[dict[str, str]]:
        return [
            each.parameters
            for each in self.login.asked("token")
            if grant in each.parameters["grant_type"]
        ]


def run(
    work: Callable[[Place], Awaitable[None]], *, revision: str = PER_REQUEST, **options: Any
) -> None:
    async def main() -> None:
        async with (
            AuthorizationServer(**{"scopes": SCOPES, **options}) as login,
            ProtectedStub(login.issuer, revision=revision) as stub,
        ):
            await work(Place(stub, login))

    asyncio.run(asyncio.wait_for(main(), 60))


# -- the usual login ---------------------------------------------------------------------------


@for_each("revision", [SESSION, PER_REQUEST])
def test_the_first_refusal_begins_a_login_and_requests_go_on(revision: str) -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
            await echo(client)
        assert len(place.browser.urls) == 1
        assert len(set(place.stub.tokens)) == 1
        asked = [each.endpoint for each in place.login.requests]
        assert asked == ["metadata", "register", "authorize", "token"]
        assert place.stub.paths() == [f"{WELL_KNOWN}/mcp"]

    run(work, revision=revision)


def test_the_requests_of_a_login_have_what_the_standards_ask_for() -> None:
    async def work(place: Place) -> None:
        place.stub.metadata = {"scopes_supported": ["files:read"]}
        async with place.client(client_name="desk") as client:
            await echo(client)
        (registered,) = place.login.asked("register")
        assert registered.document == {
            "client_name": "desk",
            "redirect_uris": ["http://127.0.0.1/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        }
        query = parse_qs(urlsplit(place.browser.urls[0]).query)
        (form,) = place.forms()
        assert query["response_type"] == ["code"]
        assert query["code_challenge_method"] == ["S256"]
        assert query["scope"] == ["files:read"]
        assert query["resource"] == [place.stub.url]
        assert len(query["state"][0]) == len(query["code_challenge"][0]) == 43
        assert query["redirect_uri"] == [form["redirect_uri"]]
        assert form["client_id"] == query["client_id"][0]
        assert len(form["code_verifier"]) == 43
        assert place.login.asked("token")[0].resources == [place.stub.url]
        assert "prompt" not in query

    run(work)


def test_the_browser_is_opened_and_redirected_to_this_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(place: Place) -> None:
        auth = OAuth(open_url=place.browser.open)
        async with Client(place.stub.url, auth=auth) as client:
            await echo(client)
        uri = place.login.asked("register")[0].document["redirect_uris"][0]
        assert urlsplit(uri).hostname == "127.0.0.1"
        assert urlsplit(uri).path == "/callback"
        # The login may go on before the browser has read its page.
        await until_async(lambda: place.browser.pages)
        (page,) = place.browser.pages
        assert page.startswith("200 ")
        assert "Login received" in page
        assert "default-src 'none'" in page
        # The function of the caller shows the URL, if anything does.
        assert place.browser.urls[0] not in caplog.text

    run(work)


@for_each(
    ("path", "challenge", "asked"),
    [
        (f"{WELL_KNOWN}/mcp", None, [f"{WELL_KNOWN}/mcp"]),
        (WELL_KNOWN, None, [f"{WELL_KNOWN}/mcp", WELL_KNOWN]),
        (WELL_KNOWN, "Basic realm=x", [f"{WELL_KNOWN}/mcp", WELL_KNOWN]),
        ("/about", 'Bearer resource_metadata="{origin}{path}"', ["/about"]),
    ],
)
def test_metadata_is_found_in_the_order_of_the_specification(
    path: str, challenge: str | None, asked: list[str]
) -> None:
    async def work(place: Place) -> None:
        place.stub.metadata_path, place.stub.challenge = path, challenge
        async with place.client() as client:
            await echo(client)
        assert place.stub.paths() == asked

    run(work)


@for_each(("status", "said"), [(404, "status 404 of"), (403, "status 403 of"), (200, "no JSON at")])
def test_metadata_that_a_proxy_does_not_pass_on_is_named_with_its_status(
    status: int, said: str
) -> None:
    async def work(place: Place) -> None:
        stub = place.stub
        stub.metadata, stub.metadata_path = None, "/about?key=CANARY"
        inner = stub.answer
        stub.answer = lambda asked: (
            inner(asked) if asked.path == "/mcp" else asked.status(status, {}, "<p>a page</p>")
        )
        with pytest.raises(AuthorizationFailed) as caught:
            await place.client().connect()
        assert str(caught.value) == (
            f"discovery: {said} '{stub.origin}/about', which the server names as the place of its "
            "metadata: does the proxy in front of the server pass it on?"
        )

    run(work)


def test_an_authorization_server_without_metadata_is_named_with_what_its_urls_answered() -> None:
    async def work(place: Place) -> None:
        place.login.fail("metadata", times=2, status=404)
        issuer = place.login.issuer
        with pytest.raises(AuthorizationFailed) as caught:
            await place.client().connect()
        assert str(caught.value) == (
            f"discovery: the authorization server '{issuer}' has no metadata: "
            f"status 404 of '{issuer}/.well-known/oauth-authorization-server', "
            f"status 404 of '{issuer}/.well-known/openid-configuration'"
        )

    run(work)


def test_an_authorization_server_that_cannot_be_reached_is_named_by_the_url() -> None:
    async def work(place: Place) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place.stub.issuers = [f"http://127.0.0.1:{free.getsockname()[1]}"]
            with pytest.raises(AuthorizationFailed, match=r"discovery: 'http://127.0.0.1:.*: "):
                await place.client().connect()

    run(work)


@for_each("is_named", [True, False])
def test_a_resource_is_sent_as_it_is_written(is_named: bool) -> None:
    async def work(place: Place) -> None:
        # The origin alone covers the server: nothing is added to it.
        resource = place.stub.origin if is_named else place.stub.url
        place.stub.metadata = {"resource": resource}
        async with place.client() as client:
            await echo(client)
        (token,) = place.login.asked("token")
        assert token.resources == place.login.asked("authorize")[0].resources == [resource]

    run(work)


# -- scopes ------------------------------------------------------------------------------------


@for_each(
    ("configured", "challenged", "listed", "offered", "scope"),
    [
        ([], "", None, [], None),
        ([], "", ["files:read", "files:write"], [], "files:read files:write"),
        ([], "files:read", ["files:write"], [], "files:read"),
        (["files:write"], "files:read", ["files:read"], [], "files:write"),
        ([], "files:read", None, ["offline_access"], "files:read offline_access"),
        ([], "files:read offline_access", None, [], "files:read"),
        ([], "", None, ["offline_access"], None),
    ],
)
def test_scopes_are_chosen_in_order(
    configured: list[str],
    challenged: str,
    listed: list[str] | None,
    offered: list[str],
    scope: str | None,
) -> None:
    async def work(place: Place) -> None:
        place.stub.metadata = {} if listed is None else {"scopes_supported": listed}
        scopes = f', scope="{challenged}"' if challenged else ""
        place.stub.challenge = 'Bearer resource_metadata="{origin}{path}"' + scopes
        async with place.client(scopes=configured) as client:
            await echo(client)
        query = parse_qs(urlsplit(place.browser.urls[0]).query)
        assert query.get("scope", [None]) == [scope]
        assert ("prompt" in query) == ("offline_access" in (scope or ""))

    run(work, scopes=[*SCOPES, *offered])


def test_a_call_that_needs_more_asks_for_all_scopes_together() -> None:
    async def work(place: Place) -> None:
        stub = place.stub
        stub.challenge = 'Bearer resource_metadata="{origin}{path}", scope="files:read"'
        stub.needs = {"tools/call": "files:write"}
        async with place.client() as client:
            await client.list_tools()
            await echo(client)
            await echo(client)
        asked = [parse_qs(query)["scope"] for query in place.browser.queries()]
        assert asked == [["files:read"], ["files:read files:write"]]
        # The client is registered once.
        assert len(place.login.asked("register")) == 1

    run(work)


def test_a_scope_that_a_login_did_not_bring_is_not_asked_for_again() -> None:
    async def work(place: Place) -> None:
        stub = place.stub
        stub.challenge = 'Bearer resource_metadata="{origin}{path}", scope="files:read"'
        stub.needs = {"tools/call": "files:own"}
        place.login.approve = lambda asked: Approval(
            subject="ann", scopes=frozenset(["files:read"])
        )
        async with place.client() as client:
            for _ in range(3):
                with pytest.raises(AuthorizationFailed, match="files:own") as caught:
                    await client.call_tool("echo")
                assert (caught.value.step, caught.value.error) == ("scope", "insufficient_scope")
            await client.list_tools()
        assert len(place.browser.urls) == 2

    run(work, scopes=())


def test_a_server_cannot_ask_for_scopes_without_end() -> None:
    async def work(place: Place) -> None:
        stub, seen = place.stub, 0

        def more(asked: Asked) -> None:
            nonlocal seen
            seen += 1
            asked.status(
                403, {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="s{seen}"'}
            )

        stub.on["tools/call"] = more
        async with place.client() as client:
            with pytest.raises(AuthorizationFailed, match="logins in a row"):
                await client.call_tool("echo")
            assert len(place.browser.urls) == 1 + MAX_IN_A_ROW
            while True:
                await client.list_tools()
                with pytest.raises(AuthorizationFailed) as caught:
                    await client.call_tool("echo")
                if "in a row" not in str(caught.value):
                    break
        assert len(place.browser.urls) == 1 + MAX_STEP_UPS

    run(work, scopes=())


def test_403_without_scope_challenge_does_not_open_the_browser() -> None:
    async def work(place: Place) -> None:
        place.stub.on["tools/call"] = lambda asked: asked.status(403)
        async with place.client() as client:
            with pytest.raises(AuthorizationFailed, match="status 403"):
                await client.call_tool("echo")
        assert len(place.browser.urls) == 1

    run(work)


# -- clients -----------------------------------------------------------------------------------


@for_each("method", ["client_secret_basic", "client_secret_post", "none"])
def test_a_registered_client_authenticates_as_the_server_lists(method: str) -> None:
    async def work(place: Place) -> None:
        place.login.metadata_changes["token_endpoint_auth_methods_supported"] = [method]
        async with place.client() as client:
            await echo(client)
        assert place.login.asked("register")[0].document["token_endpoint_auth_method"] == method
        (form,) = place.forms()
        (token,) = place.login.asked("token")
        assert ("authorization" in token.headers) == (method == "client_secret_basic")
        assert ("client_secret" in form) == (method == "client_secret_post")

    run(work)


def test_a_client_of_the_configuration_is_used_at_its_issuer_alone() -> None:
    async def work(place: Place) -> None:
        uri = "http://127.0.0.1/callback"
        place.login.client("desk", client_secret="hush", redirect_uris=[uri])
        known = {"client_id": "desk", "client_secret": "hush"}
        async with place.client(**known, issuer=place.login.issuer) as client:
            await echo(client)
        assert place.login.asked("register") == []
        async with place.client(**known, storage=MemoryTokens()) as client:
            await echo(client)
        before = len(place.login.requests)
        with pytest.raises(AuthorizationFailed, match="nothing was sent") as caught:
            await place.client(
                **known, issuer="https://login.example.org", storage=MemoryTokens()
            ).connect()
        assert caught.value.step == "registration"
        assert len(place.login.requests) == before

    run(work)


@for_each("has_key", [True, False])
def test_a_metadata_document_is_the_client_where_they_are_supported(has_key: bool) -> None:
    async def work(place: Place) -> None:
        url = "https://desk.example.org/client.json"
        key = SigningKey.generate("ES256")
        document: dict[str, Any] = {
            "client_id": url,
            "client_name": "Desk",
            "redirect_uris": ["http://127.0.0.1/callback"],
        }
        if has_key:
            document["token_endpoint_auth_method"] = "private_key_jwt"
            document["jwks"] = {"keys": [key.public_jwk]}
        place.login.document(url, document)
        options = {"client_metadata_url": url, **({"private_key": key} if has_key else {})}
        async with place.client(**options) as client:
            await echo(client)
        assert place.login.asked("register") == []
        (form,) = place.forms()
        assert form["client_id"] == url
        assert ("client_assertion" in form) == has_key
        place.login.metadata_changes["client_id_metadata_document_supported"] = False
        async with place.client(client_metadata_url=url, storage=MemoryTokens()) as client:
            await echo(client)
        assert len(place.login.asked("register")) == 1

    run(work)


def test_refused_registration_is_raised_with_its_error_code_alone() -> None:
    async def work(place: Place) -> None:
        body = b'{"error": "invalid_redirect_uri", "error_description": "CANARY \\u001b[31m"}'
        place.login.fail("register", status=400, body=body)
        with pytest.raises(AuthorizationFailed) as caught:
            await place.client().connect()
        assert str(caught.value) == (
            "registration: the authorization server refused with status 400 (invalid_redirect_uri)"
        )
        for body in (b"[]", b'{"client_id": ""}', b'{"client_id": "a", "client_secret": 7}', b"<"):
            place.login.fail("register", status=201, body=body)
            with pytest.raises(AuthorizationFailed, match="registration"):
                await place.client().connect()
        place.login.metadata_changes["registration_endpoint"] = None
        with pytest.raises(AuthorizationFailed, match="register one there"):
            await place.client().connect()

    run(work)


# -- refreshing --------------------------------------------------------------------------------


def test_a_token_that_is_about_to_end_is_refreshed_before_it_is_used() -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
        first = place.kept()
        place.keep(renew_at=1.0)
        async with place.client() as client:
            await echo(client)
        assert len(place.browser.urls) == 1
        (form,) = place.forms("refresh_token")
        assert form["refresh_token"] == first.refresh_token
        assert place.login.asked("token")[-1].resources == [place.stub.url]
        second = place.kept()
        assert second.refresh_token not in (None, first.refresh_token)
        assert place.stub.tokens[-1] == second.access_token != first.access_token

    run(work)


def test_a_token_that_was_refused_is_refreshed_without_the_user() -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
            place.stub.refused_tokens.update(place.stub.tokens)
            await asyncio.gather(*(echo(client) for _ in range(5)))
        assert len(place.browser.urls) == 1
        assert len(place.forms("refresh_token")) == 1

    run(work)


def test_clients_of_one_storage_refresh_once_and_log_in_once() -> None:
    async def work(place: Place) -> None:
        auth = place.auth()

        async def use() -> None:
            async with Client(place.stub.url, auth=auth, revision=PER_REQUEST) as client:
                await echo(client)

        await asyncio.gather(*(use() for _ in range(4)))
        assert len(place.browser.urls) == 1
        place.keep(renew_at=1.0)
        await asyncio.gather(*(use() for _ in range(4)))
        assert len(place.forms("refresh_token")) == 1

    run(work)


def test_processes_that_share_a_folder_refresh_once(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        folder = tmp_path / "tokens"

        def client() -> Client:
            storage = FileTokens(folder)
            return Client(place.stub.url, auth=place.auth(storage=storage), revision=PER_REQUEST)

        async with client() as first:
            await echo(first)
        (data,) = FileTokens(folder).records()
        assert isinstance(data, bytes)
        kept = StoredLogin.decode(data)
        assert kept is not None
        kept.renew_at = 1.0
        FileTokens(folder).store(kept.server, kept.encode())

        async def use() -> None:
            async with client() as one:
                await echo(one)

        await asyncio.gather(*(use() for _ in range(4)))
        assert len(place.forms("refresh_token")) == 1
        assert len(place.browser.urls) == 1

    run(work)


@for_each("error", ["invalid_grant", "invalid_client"])
def test_a_refresh_that_is_refused_asks_the_user_again(error: str) -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
        place.keep(renew_at=1.0)
        place.login.fail("token", error=error)
        async with place.client() as client:
            await echo(client)
        assert len(place.browser.urls) == 2
        # A client that is not known any more is registered again.
        assert len(place.login.asked("register")) == (2 if error == "invalid_client" else 1)

    run(work)


@for_each("is_configured", [False, True])
def test_a_registration_that_is_unknown_to_the_token_endpoint_is_made_again(
    is_configured: bool,
) -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
        known = place.kept().client_id
        place.keep(access_token="", refresh_token=None)
        place.browser.urls.clear()

        async def forget(url: str) -> str:
            found = await place.browser.paste(url)
            if f"client_id={known}&" in url:
                place.login.forget_client(known)
            return found

        options = {"client_id": known} if is_configured else {}
        again = place.client(on_authorize=forget, **options)
        if is_configured:
            with pytest.raises(AuthorizationFailed) as caught:
                await again.connect()
            assert caught.value.error == "invalid_client"
        else:
            async with again:
                await echo(again)
            assert place.kept().client_id != known
        assert len(place.browser.urls) == (1 if is_configured else 2)

    run(work)


def test_a_login_without_a_response_says_what_to_do_if_the_client_is_unknown() -> None:
    async def never(url: str) -> str:
        return await asyncio.get_running_loop().create_future()

    async def work(place: Place) -> None:
        with pytest.raises(AuthorizationFailed) as caught:
            await place.client(on_authorize=never, timeout=0.5).connect()
        # The client was just registered.
        assert str(caught.value) == "authorization request: no response of the user within 0.5 s"
        async with place.client() as client:
            await echo(client)
        place.keep(access_token="", refresh_token=None)
        with pytest.raises(AuthorizationFailed) as caught:
            await place.client(on_authorize=never, timeout=0.5).connect()
        assert str(caught.value) == (
            "authorization request: no response of the user within 0.5 s; if the browser shows "
            "that the client is unknown, delete the login that is kept, and log in again: the "
            "client then registers again"
        )

    run(work)


@for_each("failure", [{"status": 503}, {"disconnect": True}, {"error": "server_error"}])
def test_a_refresh_that_fails_for_now_keeps_the_login(failure: dict[str, Any]) -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
        place.keep(renew_at=1.0)
        before = place.kept().encode()
        place.login.fail("token", **failure)
        with pytest.raises(AuthorizationFailed) as caught:
            await place.client().connect()
        assert caught.value.step == "token"
        assert place.kept().encode() == before
        async with place.client() as client:
            await echo(client)
        assert len(place.browser.urls) == 1

    run(work)


def test_a_login_that_another_process_has_ended_is_not_refreshed() -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
            place.stub.refused_tokens.update(place.stub.tokens)
            place.storage.delete(place.kept().server)
            await echo(client)
        assert place.forms("refresh_token") == []
        assert len(place.browser.urls) == 2

    run(work)


def test_a_token_without_refresh_is_sent_until_it_is_refused() -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
            assert place.kept().refresh_token is None
            place.keep(renew_at=1.0)
        async with place.client() as client:
            await echo(client)
            assert len(place.browser.urls) == 1
            place.stub.refused_tokens.update(place.stub.tokens)
            await echo(client)
        assert len(place.browser.urls) == 2

    run(work, refresh_tokens=False)


@for_each("seconds", [3600, 8])
def test_short_lived_token_is_renewed_at_half_its_lifetime(seconds: int) -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
        kept = place.kept()
        assert kept.expires_at is not None
        assert kept.renew_at is not None
        early = kept.expires_at - kept.renew_at
        assert 3 < early <= (10 if seconds == 3600 else 4)
        assert not kept.has_ended

    run(work, access_lifetime=seconds)


# -- failures ----------------------------------------------------------------------------------


def test_requests_that_wait_for_a_login_share_its_failure() -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
            place.stub.refused_tokens.update(place.stub.tokens)
            place.login.fail("token", error="invalid_grant")
            place.login.approve = False
            calls = [client.call_tool("echo") for _ in range(6)]
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in found} == {AuthorizationFailed}
            assert {each.error for each in found if isinstance(each, AuthorizationFailed)} == {
                "access_denied"
            }
            assert len(place.browser.urls) == 2
            place.login.approve = True
            await echo(client)

    run(work)


def test_a_token_that_is_refused_as_soon_as_it_is_issued_ends_the_attempt() -> None:
    async def work(place: Place) -> None:
        place.stub.scheme = "Other"
        with pytest.raises(AuthorizationFailed, match="just issued"):
            await place.client().connect()
        assert len(place.browser.urls) == 1

    run(work)


def test_authorization_without_a_response_times_out() -> None:
    async def work(place: Place) -> None:
        async def never(url: str) -> str:
            await asyncio.Event().wait()
            return url

        with pytest.raises(AuthorizationFailed, match=r"within 0\.05 s"):
            await place.client(on_authorize=never, timeout=0.05).connect()
        with pytest.raises(AuthorizationFailed, match="no browser"):
            await place.client(on_authorize=None, open_url=lambda url: False).connect()
        with pytest.raises(AuthorizationFailed, match=r"within 0\.05 s"):
            await place.client(on_authorize=None, open_url=lambda url: None, timeout=0.05).connect()

    run(work)


def test_without_a_user_nothing_is_registered_or_opened() -> None:
    async def work(place: Place) -> None:
        with pytest.raises(AuthorizationFailed, match="a login of the user is needed"):
            await place.client(interactive=False).connect()
        assert place.login.asked("register") == place.login.asked("authorize") == []
        async with place.client() as client:
            await echo(client)
        async with place.client(interactive=False) as client:
            await echo(client)

    run(work)


def test_exception_in_an_authorization_hook_raises_authorization_failed() -> None:
    async def work(place: Place) -> None:
        async def raises(url: str) -> str:
            raise KeyError("CANARY")

        async def returns(url: str) -> Any:
            return None

        def opens(url: str) -> None:
            raise OSError("CANARY")

        for options, text in (
            ({"on_authorize": raises}, "on_authorize raised KeyError"),
            ({"on_authorize": returns}, "returns the URL"),
            ({"on_authorize": None, "open_url": opens}, "cannot be opened: OSError"),
        ):
            with pytest.raises(AuthorizationFailed, match=text) as caught:
                await place.client(**options).connect()
            assert "CANARY" not in str(caught.value)

    run(work)


def test_scopes_that_the_user_declined_are_remembered_and_a_closed_window_is_not() -> None:
    async def work(place: Place) -> None:
        place.stub.needs = {"tools/call": "files:write"}
        async with place.client(scopes=["files:read"]) as client:
            place.login.fail("token", disconnect=True)
            with pytest.raises(AuthorizationFailed) as caught:
                await client.call_tool("echo")
            assert caught.value.error is None
            place.login.approve = False
            for error in ("access_denied", "insufficient_scope", "insufficient_scope"):
                with pytest.raises(AuthorizationFailed) as caught:
                    await client.call_tool("echo")
                assert caught.value.error == error
            await client.list_tools()
        assert len(place.browser.urls) == 3

    run(work)


def test_a_connection_that_a_browser_opens_ahead_does_not_delay_a_login() -> None:
    async def work(place: Place) -> None:
        silent: list[Any] = []

        def opens(url: str) -> bool:
            uri = parse_qs(urlsplit(url).query)["redirect_uri"][0]
            silent.append(socket.create_connection(("127.0.0.1", urlsplit(uri).port or 0)))
            return place.browser.open(url)

        # Five seconds of silence would be too much for a login that has one.
        monkey = pytest.MonkeyPatch()
        monkey.setattr("trunkline.auth.client.login.redirect._READ_TIMEOUT_S", 600.0)
        try:
            async with place.client(on_authorize=None, open_url=opens) as client:
                await echo(client)
        finally:
            monkey.undo()
        silent[0].settimeout(10)
        assert silent[0].recv(1) == b""
        silent[0].close()

    run(work)


def test_a_browser_of_a_terminal_may_run_on_after_the_response() -> None:
    closed = threading.Event()

    async def work(place: Place) -> None:
        def opens(url: str) -> bool:
            place.browser.open(url)
            return closed.wait(30)

        async with place.client(on_authorize=None, open_url=opens) as client:
            await echo(client)
        assert not closed.is_set()
        closed.set()

    run(work)


# -- servers that change -----------------------------------------------------------------------


def test_another_authorization_server_gets_nothing_of_the_one_before() -> None:
    async def work(place: Place) -> None:
        async with AuthorizationServer(scopes=SCOPES) as other:
            async with place.client() as client:
                await echo(client)
                old = place.kept()
                place.stub.issuers = [other.issuer]
                await echo(client)
            new = place.kept()
            assert new.issuer == other.issuer
            assert [each.endpoint for each in other.requests] == [
                *("metadata", "register", "authorize", "token")
            ]
            told = " ".join(
                f"{each.parameters} {each.document} {dict(each.headers)}" for each in other.requests
            )
            for secret in (old.access_token, old.refresh_token, old.client_id):
                assert secret
                assert secret not in told
            # And nothing of it is sent to the one before.
            assert len(place.forms()) == 1

    run(work)


@for_each("changes", [{"issuer": "https://old.example.org"}, {"server": "https://other.example"}])
def test_a_stored_login_of_another_server_or_issuer_is_not_sent(changes: dict[str, str]) -> None:
    async def work(place: Place) -> None:
        async with place.client() as client:
            await echo(client)
        kept = place.kept()
        place.keep(renew_at=None, **changes)
        if "server" in changes:
            # As if the storage mixed up its keys.
            (data,) = [place.storage.load("https://other.example")]
            place.storage.delete("https://other.example")
            assert data is not None
            place.storage.store(kept.server, data)
        place.stub.refused_tokens.add(kept.access_token)
        async with place.client() as client:
            await echo(client)
        assert place.forms("refresh_token") == []
        assert len(place.browser.urls) == 2

    run(work)


@for_each("data", [b"", b"{}", b"[", b'{"server": 7}', b"\xff", b"[" * 100_000])
def test_unreadable_stored_record_counts_as_missing(data: bytes) -> None:
    async def work(place: Place) -> None:
        place.storage.store(server_key(place.stub.url), data)
        async with place.client() as client:
            await echo(client)
        assert place.kept().issuer == place.login.issuer

    run(work)


def test_a_registration_is_used_again_at_its_port_or_made_again() -> None:
    async def work(place: Place) -> None:
        options = {"on_authorize": None, "open_url": place.browser.open}
        for _ in range(2):
            async with place.client(**options) as client:
                await echo(client)
            place.stub.refused_tokens.update(place.stub.tokens)
        assert len(place.login.asked("register")) == 1
        uri = place.kept().redirect_uri
        port = urlsplit(uri or "").port
        # Another program has the port now.
        taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
        async with taken, place.client(**options) as client:
            await echo(client)
        assert len(place.login.asked("register")) == 2
        assert place.kept().redirect_uri != uri

    run(work, refresh_tokens=False)


# -- servers of 2025-03-26 ---------------------------------------------------------------------


@for_each("has_metadata", [True, False])
def test_a_server_without_metadata_has_its_authorization_server_at_its_origin(
    has_metadata: bool,
) -> None:
    async def work(place: Place) -> None:
        stub, other = place.stub, place.login
        stub.metadata, stub.challenge = None, None
        token = other.issue(audience=stub.url, claims={"iss": other.issuer})
        asked: list[Asked] = []

        def answer(given: Asked) -> None:
            asked.append(given)
            path = given.path.partition("?")[0]
            if path == "/.well-known/oauth-authorization-server" and has_metadata:
                at = f"{stub.origin}/oauth"
                given.json(
                    {
                        "issuer": at,
                        "authorization_endpoint": f"{at}/authorize",
                        "token_endpoint": f"{at}/token",
                        "registration_endpoint": f"{at}/register",
                        "code_challenge_methods_supported": ["S256"],
                    }
                )
            elif path.endswith("/register"):
                given.json({"client_id": "old", "token_endpoint_auth_method": "none"}, 201)
            elif path.endswith("/authorize"):
                query = parse_qs(urlsplit(given.path).query)
                uri, state = query["redirect_uri"][0], query["state"][0]
                given.status(302, {"Location": f"{uri}?code=c&state={state}"})
            elif path.endswith("/token"):
                given.json({"access_token": token, "token_type": "bearer"})
            else:
                given.status(404)

        inner = stub.answer
        stub.answer = lambda given: inner(given) if given.path == "/mcp" else answer(given)
        async with place.client() as client:
            await echo(client)
        base = "/oauth" if has_metadata else ""
        assert [each.path.partition("?")[0] for each in asked] == [
            f"{WELL_KNOWN}/mcp",
            WELL_KNOWN,
            "/.well-known/oauth-authorization-server",
            *(f"{base}/{each}" for each in ("register", "authorize", "token")),
        ]
        assert asked[2].headers["mcp-protocol-version"] == "2025-03-26"
        assert place.kept().is_legacy

    run(work)


# -- proofs of possession ----------------------------------------------------------------------


@for_each("given", [None, True, "key"])
@for_each("nonces", [True, False])
def test_tokens_are_bound_to_a_key_if_the_server_or_the_caller_asks(
    given: Any, nonces: bool
) -> None:
    async def work(place: Place) -> None:
        key = SigningKey.generate("ES256")
        place.stub.scheme = "DPoP"
        place.stub.challenge = 'DPoP resource_metadata="{origin}{path}"'
        auth = place.auth(dpop=key if given == "key" else given)
        for _ in range(2):
            async with Client(place.stub.url, auth=auth, revision=PER_REQUEST) as client:
                await echo(client)
        kept = place.kept()
        assert kept.token_type == "DPoP"
        assert kept.dpop_key is not None
        thumbprint = SigningKey.from_pem(kept.dpop_key).thumbprint
        assert parse_token(kept.access_token).claims["cnf"] == {"jkt": thumbprint}
        assert (thumbprint == key.thumbprint) == (given == "key")
        proofs = [
            parse_token(each.headers["dpop"])
            for each in place.stub.requests
            if "dpop" in each.headers
        ]
        assert len({each.claims["jti"] for each in proofs}) == len(proofs) >= 3
        assert len(place.browser.urls) == 1
        place.keep(renew_at=1.0)
        async with Client(place.stub.url, auth=auth, revision=PER_REQUEST) as client:
            await echo(client)
        # The first has no nonce yet.
        assert len(place.forms("refresh_token")) == (2 if nonces else 1)

    run(work, dpop_nonces=nonces)


def test_a_server_that_asks_for_proofs_gets_none_if_they_are_switched_off() -> None:
    async def work(place: Place) -> None:
        place.stub.metadata = {"dpop_bound_access_tokens_required": True}
        with pytest.raises(AuthorizationFailed, match="dpop=False"):
            await place.client(dpop=False).connect()
        assert place.browser.urls == []

    run(work)


# -- secrets -----------------------------------------------------------------------------------


def test_nothing_of_a_login_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    shown: list[str] = []
    secrets: list[str] = []

    async def work(place: Place) -> None:
        place.login.metadata_changes["token_endpoint_auth_methods_supported"] = [
            "client_secret_post"
        ]
        client = place.client(scopes=["files:read"])
        async with client:
            await echo(client)
            transport: Any = client._connection.session and client._connection.session.transport
            session: Any = transport.auth._auth
            kept = place.kept()
            query = parse_qs(urlsplit(place.browser.urls[0]).query)
            for each in place.login.asked("token"):
                secrets.extend(
                    each.parameters[name] for name in ("code", "code_verifier", "client_secret")
                )
            secrets.extend((kept.access_token, kept.refresh_token or "", query["state"][0]))
            source = session._source
            things = (kept, session, source, source._settings, source.discovery, place.storage)
            shown.extend(map(repr, (*things, transport, client, place.auth())))
            place.login.fail("token", error="invalid_grant", status=400)
            place.login.approve = False
            place.stub.refused_tokens.update(place.stub.tokens)
            with pytest.raises(AuthorizationFailed) as caught:
                await echo(client)
            shown.extend((str(caught.value), repr(caught.value)))

    with caplog.at_level(logging.DEBUG):
        run(work)
    assert len(secrets) == 6
    assert all(len(each) >= 20 for each in secrets)
    told = " ".join(shown) + caplog.text
    assert not [each for each in secrets if each in told]
