"""Servers that refuse for ever, answer oddly or repeat secrets, to a client that logs in.

`test_login.py` has one test per security statement; here are the answers of servers beyond them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.cases import for_each
from tests.http_client.stub_server import PER_REQUEST, SESSION, Asked, StubServer, method_of
from tests.unit.auth.client.login.protected_stub import Browser, ProtectedStub, echo
from trunkline import Client
from trunkline.auth import Bearer, ClientCredentials, OAuth
from trunkline.auth.client.login.revocation import revoke
from trunkline.auth.client.session import renewal_limit
from trunkline.auth.client.storage.token_store import MemoryTokens, StoredLogin
from trunkline.errors import AuthorizationFailed
from trunkline.testing import AuthorizationServer

WAIT = 60
CANARY = "CANARY-51-Ab_x~y"


class Place:
    """A protected server, its authorization server, a user and what is kept."""

    def __init__(self, stub: ProtectedStub, login: AuthorizationServer) -> None:
        self.stub, self.login = stub, login
        self.browser = Browser()
        self.storage = MemoryTokens()

    def auth(self, **options: Any) -> OAuth:
        return OAuth(**{"on_authorize": self.browser.paste, "storage": self.storage, **options})

    def client(self, **options: Any) -> Client:
        return Client(self.stub.url, auth=self.auth(**options), revision=self.stub.revision)

    async def log_in(self, **options: Any) -> None:
        async with self.client(**options) as client:
            await echo(client)

    @property
    def kept(self) -> StoredLogin:
        (data,) = self.storage._records.values()
        found = StoredLogin.decode(data)
        assert found is not None
        return found

    def keep(self, login: StoredLogin) -> None:
        self.storage.store(login.server, login.encode())

    def end_token(self) -> None:
        kept = self.kept
        kept.expires_at = kept.renew_at = 1.0
        self.keep(kept)

    def refuse(self, challenge: str | None = None) -> None:
        """Refuse every request from now on."""
        text = challenge or self.stub.challenge

        def answer(asked: Asked) -> None:
            if asked.path == "/mcp":
                self.stub._refuse(asked, 401, text)
            else:
                self.stub._describe(asked)

        self.stub.answer = answer


def run(
    work: Callable[[Place], Awaitable[None]], *, revision: str = PER_REQUEST, **options: Any
) -> None:
    async def main() -> None:
        async with (
            AuthorizationServer(**options) as login,
            ProtectedStub(login.issuer, revision=revision) as stub,
        ):
            await work(Place(stub, login))

    asyncio.run(asyncio.wait_for(main(), WAIT))


# -- refusals without end ----------------------------------------------------------------------


def test_a_refreshed_token_that_is_refused_is_not_refreshed_again_and_the_user_is_asked() -> None:
    async def work(place: Place) -> None:
        await place.log_in()
        place.refuse()
        before = len(place.login.asked("token"))
        with pytest.raises(AuthorizationFailed, match="just issued") as caught:
            await place.client().connect()
        assert caught.value.status == 401
        grants = [each.parameters["grant_type"] for each in place.login.asked("token")[before:]]
        assert grants == ["refresh_token", "authorization_code"]

    run(work)


@for_each("is_refreshable", [True, False])
@for_each("reconnects", [True, False])
def test_a_server_that_refuses_each_token_after_one_use_is_not_followed_without_end(
    is_refreshable: bool, reconnects: bool
) -> None:
    """As one that closes each stream at once and then refuses the token of the next."""

    async def work(place: Place) -> None:
        stub, auth = place.stub, place.auth()
        challenge = f'Bearer resource_metadata="{stub.origin}{stub.metadata_path}"'.encode()
        session = auth.for_server(stub.url, is_private=lambda: True)
        failure: AuthorizationFailed | None = None
        for _ in range(100):
            if reconnects:
                session = auth.for_server(stub.url, is_private=lambda: True)
            await session.prepare(stub.url)
            sent = session.headers("POST", stub.url)
            assert sent is not None
            session.responded(stub.url, 200, [])
            try:
                await session.refused(
                    "POST", stub.url, 401, [(b"www-authenticate", challenge)], sent
                )
            except AuthorizationFailed as error:
                failure = error
                break
            if not is_refreshable:
                kept = place.kept
                kept.refresh_token = None
                place.keep(kept)
                if session._login is not None:
                    session._login.refresh_token = None
        assert failure is not None
        assert " within " in str(failure)
        limit = renewal_limit.MAX_TOKENS + 1 if is_refreshable else renewal_limit.MAX_LOGINS
        assert len(place.login.asked("token")) == limit
        assert len(place.browser.urls) == (1 if is_refreshable else limit)

    run(work)


def test_a_machine_is_not_made_to_ask_for_tokens_without_end() -> None:
    async def work(place: Place) -> None:
        stub = place.stub
        place.login.client("job", client_secret=CANARY)
        auth = ClientCredentials("job", client_secret=CANARY)
        challenge = f'Bearer resource_metadata="{stub.origin}{stub.metadata_path}"'.encode()
        with pytest.raises(AuthorizationFailed, match=" within "):
            for _ in range(100):
                session = auth.for_server(stub.url, is_private=lambda: True)
                await session.refused(
                    "POST", stub.url, 401, [(b"www-authenticate", challenge)], b""
                )
        assert len(place.login.asked("token")) == renewal_limit.MAX_TOKENS

    run(work)


def test_the_count_of_renewals_ends_with_its_span(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(renewal_limit.time, "monotonic", lambda: now)
    limit = renewal_limit.RenewalLimit()
    for _ in range(3):
        for _ in range(renewal_limit.MAX_TOKENS):
            limit.count_token()
        with pytest.raises(AuthorizationFailed):
            limit.count_token()
        now += renewal_limit.TOKENS_SPAN_S
    for _ in range(renewal_limit.MAX_LOGINS):
        limit.count_login()
    with pytest.raises(AuthorizationFailed):
        limit.count_login()


def test_requests_that_are_refused_together_cause_one_step() -> None:
    async def work(place: Place) -> None:
        place.stub.needs = {"tools/call": "files:write"}
        async with place.client() as client:
            await asyncio.gather(*(echo(client) for _ in range(20)))
        assert len(place.browser.urls) == 2  # a login, and one for the scope

    run(work, scopes=["files:read", "files:write"])


# -- cancellation ------------------------------------------------------------------------------


def test_a_client_that_is_closed_during_a_refresh_keeps_its_login() -> None:
    async def work(place: Place) -> None:
        await place.log_in()
        place.end_token()
        before = place.kept.refresh_token
        place.login.fail("token", delay=0.3)
        client = place.client()
        connecting = asyncio.create_task(client.connect())
        while len(place.login.asked("token")) < 2:
            await asyncio.sleep(0.01)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await client.close()
        # The refresh token that was used cannot be used again.
        assert place.kept.refresh_token != before
        await place.log_in(interactive=False)

    run(work)


def test_a_login_that_is_cancelled_leaves_no_listener_and_no_lock() -> None:
    async def work(place: Place) -> None:
        urls: list[str] = []

        def show(url: str) -> bool:
            urls.append(url)
            return True

        auth = place.auth(on_authorize=None, open_url=show)
        client = Client(place.stub.url, auth=auth, revision=PER_REQUEST)
        connecting = asyncio.create_task(client.connect())
        while not urls:
            await asyncio.sleep(0.01)
        port = urlsplit(parse_qs(urlsplit(urls[0]).query)["redirect_uri"][0]).port
        (await asyncio.open_connection("127.0.0.1", port))[1].close()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await client.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert repr(auth._settings.logins) == "<KeyLocks, 0 held>"
        auth._settings.storage.lock(place.stub.url)
        other = place.auth(on_authorize=None, open_url=place.browser.open)
        async with Client(place.stub.url, auth=other, revision=PER_REQUEST) as again:
            await echo(again)

    run(work)


# -- what servers repeat -----------------------------------------------------------------------


def shown(error: BaseException) -> str:
    return "".join([str(error), repr(error), *traceback.format_exception(error)])


@for_each("method", ["client_secret_basic", "client_secret_post"])
@for_each("member", ["error", "error_description"])
@for_each("form", [str, str.upper, quote, lambda text: f"bad secret '{text}', sorry"])
def test_a_secret_that_the_authorization_server_repeats_is_not_shown(
    method: str, member: str, form: Callable[[str], str]
) -> None:
    secret = f"{CANARY} +%"

    async def work(place: Place) -> None:
        place.login.metadata_changes["token_endpoint_auth_methods_supported"] = [method]
        place.login.client("job", client_secret=secret)
        text = form(secret)
        body = json.dumps({"error": "invalid_client", member: text}).encode()
        place.login.fail("token", status=401, body=body)
        auth = ClientCredentials("job", client_secret=secret)
        with pytest.raises(AuthorizationFailed) as caught:
            await Client(place.stub.url, auth=auth, revision=PER_REQUEST).connect()
        assert text.lower() not in shown(caught.value).lower()
        assert CANARY.lower() not in shown(caught.value).lower()
        assert "401" in str(caught.value)

    run(work)


def test_the_words_of_a_refusal_that_repeat_nothing_are_shown() -> None:
    async def work(place: Place) -> None:
        place.login.client("job", client_secret=CANARY)
        body = b'{"error": "invalid_client", "error_description": "the client is disabled"}'
        place.login.fail("token", status=401, body=body)
        auth = ClientCredentials("job", client_secret=CANARY)
        with pytest.raises(AuthorizationFailed, match="the client is disabled") as caught:
            await Client(place.stub.url, auth=auth, revision=PER_REQUEST).connect()
        assert caught.value.error == "invalid_client"

    run(work)


@for_each("status", [401, 403])
def test_a_token_that_the_server_repeats_in_its_challenge_is_not_shown_or_asked_for(
    status: int,
) -> None:
    async def work(place: Place) -> None:
        stub = place.stub
        auth = Bearer(CANARY)
        challenges = [
            f'Bearer error="{CANARY}", scope="{CANARY}"',
            f'Bearer error="insufficient_scope", scope="{CANARY} files:read"',
        ]
        for challenge in challenges:
            stub.answer = lambda asked: stub._refuse(asked, status, challenge)  # noqa: B023  # at once
            with pytest.raises(AuthorizationFailed) as caught:
                await Client(stub.url, auth=auth, revision=PER_REQUEST).connect()
            assert CANARY not in shown(caught.value)
            assert caught.value.status == status

    run(work)


def test_a_token_that_the_server_names_as_a_scope_is_in_no_url() -> None:
    async def work(place: Place) -> None:
        inner = place.stub.answer

        def answer(asked: Asked) -> Any:
            token = asked.headers.get("authorization", "").partition(" ")[2]
            if asked.path == "/mcp" and token and method_of(asked) == "tools/call":
                text = f'Bearer error="insufficient_scope", scope="{token} files:write"'
                place.stub.tokens.append(token)
                return place.stub._refuse(asked, 403, text)
            return inner(asked)

        place.stub.answer = answer
        async with place.client() as client:
            with pytest.raises(AuthorizationFailed) as caught:
                await client.call_tool("echo")
        assert place.stub.tokens
        texts = " ".join([*place.browser.urls, shown(caught.value), *caught.value.scopes])
        assert not [each for each in place.stub.tokens if each in texts]
        assert "files:write" in caught.value.scopes

    run(work, scopes=["files:read", "files:write"])


# -- odd answers -------------------------------------------------------------------------------


@for_each(
    ("changes", "is_used"),
    [
        ({"token_type": "bEARER"}, True),
        ({"expires_in": int("9" * 400)}, True),
        ({"expires_in": -5}, True),
        ({"expires_in": 1e-9}, True),
        ({"expires_in": "NaN"}, True),
        ({"expires_in": "3600"}, True),
        ({"expires_in": None, "scope": None, "refresh_token": None}, True),
        ({"scope": "other", "id_token": "x", "sub": "mallory"}, True),
        ({"expires_in": True}, False),
        ({"expires_in": []}, False),
        ({"scope": ["a"]}, False),
        ({"token_type": "mac"}, False),
        ({"token_type": "DPoP"}, False),
        ({"token_type": None}, False),
        ({"access_token": "a\r\nx: y"}, False),
        ({"access_token": ""}, False),
        ({"refresh_token": "\ud800"}, False),
    ],
)
def test_odd_members_of_a_token_are_used_if_they_do_no_harm(
    changes: dict[str, Any], is_used: bool
) -> None:
    async def work(place: Place) -> None:
        stub = place.stub
        usual = {"access_token": "token", "token_type": "Bearer", "refresh_token": "r"}
        body = json.dumps({**usual, **changes}).encode()
        place.login.fail("token", status=200, body=body, times=None)

        def answer(asked: Asked) -> Any:
            if asked.path != "/mcp":
                return stub._describe(asked)
            if asked.headers.get("authorization") != "Bearer token":
                return stub._refuse(asked, 401, stub.challenge)
            return stub.inner(asked)

        stub.answer = answer
        if is_used:
            await place.log_in()
        else:
            with pytest.raises(AuthorizationFailed) as caught:
                await place.client().connect()
            assert caught.value.step == "token"
        assert len(place.login.asked("token")) == 1

    run(work)


@for_each(
    ("answer", "step"),
    [
        ({"client_secret": "", "client_secret_expires_at": None}, None),
        ({"client_secret": "kept", "token_endpoint_auth_method": "none"}, None),
        ({"redirect_uris": ["https://evil.example.org/"], "client_name": "\x1b[31m"}, None),
        ({"client_secret": "s\u00fc"}, "registration"),
        ({"client_secret": "a\r\nb"}, "registration"),
        ({"client_secret": 7}, "registration"),
        ({"client_secret": "s", "token_endpoint_auth_method": "tls_client_auth"}, "registration"),
        ({"client_id": ""}, "registration"),
        ({"client_id": None}, "registration"),
        ({"client_id": 7}, "registration"),
        ({"client_id": "x" * 200_000}, "authorization request"),
    ],
)
def test_odd_answers_to_a_registration(answer: dict[str, Any], step: str | None) -> None:
    async def work(place: Place) -> None:
        redirect = "http://127.0.0.1/callback"
        place.login.client("known", redirect_uris=[redirect])
        body = json.dumps({"client_id": "known", **answer}).encode()
        place.login.fail("register", status=201, body=body)
        if step is None:
            await place.log_in()
            # The client authenticates in the same way when it ends the login.
            assert await revoke(place.kept) is True
        else:
            with pytest.raises(AuthorizationFailed) as caught:
                await place.client().connect()
            assert caught.value.step == step
            assert "\x1b" not in shown(caught.value)

    run(work)


# -- other origins -----------------------------------------------------------------------------


@for_each("origin", ["{thief}", "//127.0.0.1:{port}", "http://user@127.0.0.1:{port}"])
def test_an_old_server_that_names_another_origin_for_messages_does_not_get_the_token_there(
    origin: str,
) -> None:
    async def work(place: Place) -> None:
        inner = place.stub.answer
        async with StubServer(lambda asked: asked.status(202)) as thief:
            endpoint = origin.format(thief=thief.url.removesuffix("/mcp"), port=thief.port)

            def answer(asked: Asked) -> Any:
                if asked.path != "/mcp" or "authorization" not in asked.headers:
                    return inner(asked)
                if asked.method == "GET":
                    return asked.stream(f"event: endpoint\ndata: {endpoint}/x\n\n", ends=False)
                return asked.status(405)

            place.stub.answer = answer
            with pytest.raises(Exception, match=r"405|origin"):
                await place.client().connect()
            assert [each.method for each in place.stub.requests if each.path == "/mcp"][-1] == "GET"
            assert thief.requests == []

    run(work, revision=SESSION)


def test_metadata_that_changes_between_requests_moves_nothing_of_the_login() -> None:
    async def work(place: Place) -> None:
        await place.log_in()
        before = place.kept
        async with AuthorizationServer() as thief:
            # The server names another one first, and still lists the one of the login.
            place.stub.issuers = [thief.issuer, *(f"{thief.issuer}/{each}" for each in range(9))]
            place.stub.issuers.append(place.login.issuer)
            place.stub.refused_tokens.add(before.access_token)
            await place.log_in(interactive=False)
            assert thief.requests == []
            assert place.kept.issuer == place.login.issuer
            # And now it does not.
            place.stub.issuers = [thief.issuer]
            place.stub.refused_tokens.add(place.kept.access_token)
            await place.log_in()
            texts = repr([each.parameters for each in thief.requests])
            for secret in (before.refresh_token, before.access_token, before.client_id):
                assert secret is not None
                assert secret not in texts

    run(work)


# -- secrets -----------------------------------------------------------------------------------


def reachable(*roots: object) -> Iterator[object]:
    """Yield what is reachable from objects, as far as it belongs to the library."""
    seen: set[int] = set()
    left = list(roots)
    while left:
        found = left.pop()
        if id(found) in seen or isinstance(found, type):
            continue
        seen.add(id(found))
        kind = type(found).__module__
        if kind.startswith("trunkline") and not kind.startswith("trunkline.testing"):
            yield found
        elif kind not in ("builtins", "collections") or callable(found):
            continue
        if len(seen) < 20_000:
            left.extend(gc.get_referents(found))


@for_each("dpop", [False, True])
def test_no_secret_is_shown_from_the_login_to_its_end(
    dpop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A login, a call, a refresh, a failure and a revocation, with everything logged."""
    texts: list[str] = []
    secrets: set[str] = set()

    async def work(place: Place) -> None:
        place.stub.scheme = "DPoP" if dpop else "Bearer"
        place.login.client(
            "desk", client_secret=CANARY, redirect_uris=["http://127.0.0.1/callback"]
        )
        options = {"client_id": "desk", "client_secret": CANARY, "dpop": dpop or None}

        async def paste(url: str) -> str:
            found = await place.browser.paste(url)
            query = parse_qs(urlsplit(found).query)
            secrets.update((query["code"][0], query["state"][0]))
            return found

        def note(*objects: object) -> None:
            kept = place.kept
            given = (kept.access_token, kept.refresh_token, kept.dpop_key)
            secrets.update(each for each in given if each)
            texts.extend(map(repr, reachable(*objects)))

        auth = place.auth(on_authorize=paste, **options)
        async with Client(place.stub.url, auth=auth, revision=PER_REQUEST) as client:
            await echo(client)
            note(client, auth)
            assert any("TokenSession" in each for each in texts)
            place.stub.refused_tokens.update(place.stub.tokens)
            await echo(client)
            note(client, auth)
            place.login.fail("token", error="invalid_grant")
            place.stub.refused_tokens.update(place.stub.tokens)
            place.login.approve = False
            with pytest.raises(AuthorizationFailed) as caught:
                await client.call_tool("echo")
            texts.append(shown(caught.value))
            texts.extend(map(repr, reachable(caught.value.__traceback__, client, auth)))
        place.login.approve = True
        await place.log_in(on_authorize=paste, **options)
        login = place.kept
        note(login, auth)
        login.client_secret = CANARY
        assert await revoke(login) is True
        place.login.fail("revoke", status=503)
        with pytest.raises(AuthorizationFailed) as ended:
            await revoke(login)
        texts.append(shown(ended.value))
        secrets.add(CANARY)
        secrets.update(
            value
            for each in place.login.asked("token")
            for name, value in each.parameters.items()
            if name in ("code", "code_verifier", "refresh_token", "client_secret")
        )
        secrets.update(
            value
            for each in place.stub.requests
            for name, value in each.headers.items()
            if name in ("authorization", "dpop")
        )

    with caplog.at_level(logging.DEBUG):
        run(work)
    assert len(secrets) > 6
    written = " ".join(texts) + caplog.text
    assert not [each for each in secrets if each in written]
