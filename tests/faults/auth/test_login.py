"""What hostile servers, networks and pages can do to a client that logs in: one test per statement.

The numbers are those of the security statements of the specification, as the source cites them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.json import encode
from msgspec.structs import replace

import trunkline.transports.http.client.proxy as proxy_module
from tests.cases import for_each
from tests.http_client.stub_server import PER_REQUEST, Asked, StubServer
from tests.unit.auth.client.login.protected_stub import WELL_KNOWN, Browser, ProtectedStub, echo
from tests.unit.cli.proxy.test_http_target import Kept
from trunkline import Client, Http, HttpOptions
from trunkline.auth import FileTokens, OAuth
from trunkline.auth.challenge import Challenge
from trunkline.auth.client.flow.discovery import MetadataDiscovery
from trunkline.auth.client.login.redirect import (
    ExpectedResponse,
    LoopbackListener,
    check_authorization_url,
    open_browser,
)
from trunkline.auth.metadata import AuthorizationServerMetadata
from trunkline.cli.proxy.http_record import HttpRecorder
from trunkline.cli.proxy.observer import ProxyObserver
from trunkline.errors import AuthorizationFailed, TransportError
from trunkline.testing import AuthorizationServer
from trunkline.transports.http.client import fetch as fetch_module

WAIT = 60
CANARY = "CANARY-7d1f"
Work = Callable[[ProtectedStub, AuthorizationServer, Browser], Awaitable[None]]


def run(work: Work, **options: Any) -> None:
    async def main() -> None:
        async with AuthorizationServer(**options) as login, ProtectedStub(login.issuer) as stub:
            await work(stub, login, Browser())

    asyncio.run(asyncio.wait_for(main(), WAIT))


def client_of(stub: ProtectedStub, browser: Browser, **options: Any) -> Client:
    auth = OAuth(**{"on_authorize": browser.paste, **options})
    return Client(stub.url, auth=auth, revision=PER_REQUEST)


async def refuses(client: Client, match: str | None = None) -> AuthorizationFailed:
    with pytest.raises(AuthorizationFailed, match=match) as caught:
        await client.connect()
    return caught.value


# -- SEC-14, SEC-15: tokens are in the header, and in every request ----------------------------


def test_a_token_is_in_no_url_and_in_every_request_after_the_login() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        async with client_of(stub, browser) as client:
            await echo(client)
        tokens = set(stub.tokens)
        assert tokens
        for each in stub.requests:
            assert not [token for token in tokens if token in each.path]
        after = [each for each in stub.requests if each.path == "/mcp"][1:]
        assert all(each.headers["authorization"].startswith("Bearer ") for each in after)
        # Neither codes nor verifiers nor secrets leave in a URL.
        (form,) = [each.parameters for each in login.asked("token")]
        assert not [url for url in browser.urls if form["code_verifier"] in url]

    run(work)


def test_an_open_redirect_does_not_carry_the_token_to_another_origin() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        async with StubServer(lambda asked: asked.status(200)) as thief:
            stub.on["tools/call"] = lambda asked: asked.status(308, {"Location": thief.url})
            async with client_of(stub, browser) as client:
                with pytest.raises(Exception, match="308"):
                    await client.call_tool("echo")
            assert thief.requests == []

    run(work)


def test_the_requests_of_a_login_do_not_follow_redirects_with_secrets() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        async with StubServer(lambda asked: asked.status(200)) as thief:
            for endpoint in ("token", "register", "metadata"):
                login.fail(endpoint, redirect=thief.url)
                await refuses(client_of(stub, browser))
            assert thief.requests == []

    run(work)


# -- SEC-16: PKCE ------------------------------------------------------------------------------


@for_each("methods", [None, [], ["plain"], ["s256"]])
def test_a_server_that_does_not_announce_pkce_is_not_used(methods: list[str] | None) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.metadata_changes["code_challenge_methods_supported"] = methods
        await refuses(client_of(stub, browser), "PKCE")
        assert {each.endpoint for each in login.requests} == {"metadata"}
        assert browser.urls == []

    run(work)


def test_a_code_of_another_login_is_refused_by_its_verifier() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        other = Browser()
        codes: list[str] = []

        async def steal(url: str) -> str:
            found = await other.paste(url)
            codes.append(parse_qs(urlsplit(found).query)["code"][0])
            raise AuthorizationFailed("stolen", step="authorization request")

        await refuses(client_of(stub, browser, on_authorize=steal), "stolen")

        async def inject(url: str) -> str:
            found = await other.paste(url)
            own = parse_qs(urlsplit(found).query)["code"][0]
            return found.replace(own, codes[0])

        failure = await refuses(client_of(stub, browser, on_authorize=inject))
        assert (failure.step, failure.error) == ("token", "invalid_grant")
        assert stub.tokens == []

    run(work)


# -- SEC-17, SEC-11: the resource --------------------------------------------------------------


@for_each(
    "resource",
    [
        *("https://evil.example.org/mcp", "{origin}/other", "{origin}/mcp/deeper"),
        *("{origin}/mc", "http://localhost:{port}/mcp", "{origin}/mcp?x=y", "{origin}/mcp#x", ""),
        *("{origin}/mcp\n", " {origin}/mcp", "{origin}/m\tcp", "http://u:p@127.0.0.1:{port}/mcp"),
    ],
)
def test_metadata_of_another_resource_ends_the_login(resource: str) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        stub.metadata = {"resource": resource.format(origin=stub.origin, port=stub.port)}
        failure = await refuses(client_of(stub, browser), "another resource")
        assert failure.step == "discovery"
        assert login.requests == []

    run(work)


# -- SEC-18: the issuer of metadata ------------------------------------------------------------


@for_each("issuer", ["https://evil.example.org", "{issuer}/", "{upper}", "{issuer}/."])
def test_metadata_of_another_issuer_is_not_used(issuer: str) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        named = issuer.format(issuer=login.issuer, upper=login.issuer.replace("http", "HTTP"))
        login.fail("metadata", issuer=named)
        await refuses(client_of(stub, browser), "another")
        assert {each.endpoint for each in login.requests} == {"metadata"}

    run(work)


def test_a_server_with_metadata_gets_no_leniency_for_old_servers() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        # A document of the same origin, which would do for a server without metadata.
        login.fail("metadata", issuer=f"{login.issuer}/oauth")
        await refuses(client_of(stub, browser), "another")

    run(work)


@for_each("issuer", ["https://evil.example.org", "http://127.0.0.2:1", "javascript:alert(1)"])
def test_an_old_server_cannot_name_an_issuer_of_another_origin(issuer: str) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        stub.metadata, stub.challenge = None, None
        inner = stub.answer

        def answer(asked: Asked) -> Any:
            if asked.path == "/.well-known/oauth-authorization-server":
                return asked.json({"issuer": issuer, "token_endpoint": f"{stub.origin}/token"})
            return inner(asked)

        stub.answer = answer
        assert (await refuses(client_of(stub, browser))).step == "discovery"
        assert browser.urls == []

    run(work)


# -- SEC-19: mix-up ----------------------------------------------------------------------------


@for_each(
    ("sends", "changed"),
    [
        (False, None),  # announced, and missing
        (True, "https://evil.example.org"),
        (True, "{issuer}/"),
        (True, "{upper}"),
    ],
)
@for_each("denies", [True, False])
def test_a_response_of_another_issuer_is_not_acted_on(
    sends: bool, changed: str | None, denies: bool
) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        if not sends:
            login.metadata_changes["authorization_response_iss_parameter_supported"] = True
        login.sends_iss = sends
        if not sends:
            login.metadata_changes["authorization_response_iss_parameter_supported"] = True
        if changed is not None:
            named = changed.format(issuer=login.issuer, upper=login.issuer.replace("http", "HTTP"))
            login.fail("authorize", issuer=named)
        login.approve = not denies
        failure = await refuses(client_of(stub, browser), "iss")
        # Nothing of the response is told, not even its error.
        assert (failure.step, failure.error) == ("authorization request", None)
        assert login.asked("token") == []

    run(work)


def test_an_issuer_that_is_not_announced_is_compared_too() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.metadata_changes["authorization_response_iss_parameter_supported"] = None
        async with client_of(stub, browser) as client:
            await echo(client)
        login.fail("authorize", issuer="https://evil.example.org")
        await refuses(client_of(stub, browser), "iss")
        assert len(login.asked("token")) == 1

    run(work)


# -- SEC-20: credentials belong to an issuer ---------------------------------------------------


def test_a_server_that_names_another_issuer_does_not_get_the_secret_of_a_client() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        redirect = "http://127.0.0.1/callback"
        login.client("desk", client_secret=CANARY, redirect_uris=[redirect])
        auth = OAuth(client_id="desk", client_secret=CANARY, on_authorize=browser.paste)
        async with AuthorizationServer() as thief:
            thief.client("desk", client_secret=CANARY, redirect_uris=[redirect])
            async with Client(stub.url, auth=auth, revision=PER_REQUEST) as client:
                await echo(client)
                # The first issuer that the client was used with is its issuer.
                stub.issuers = [thief.issuer]
                with pytest.raises(AuthorizationFailed, match="nothing was sent"):
                    await client.call_tool("echo")
            assert thief.requests == []

    run(work)


# -- SEC-21, SEC-26, SEC-27: URLs --------------------------------------------------------------

BAD_URLS = [
    *("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x"),
    *("http://login.example.org/a", "ftp://127.0.0.1/a", "https://u:p@login.example.org/a"),
    *("https://login.example.org/a#f", "https://login.example.org/\r\nx: y", "https://", ""),
    *(
        "https:\\\\login.example.org\\a",
        " https://login.example.org/a",
        "/authorize",
        "//a.example/b",
    ),
    *("HTTPS", "mailto:a@example.org", "smb://127.0.0.1/a", "https://login.example.org/ü"),
    *("https://login.example.org:port/a", "https://login.example.org:99999/a", "https://[::1/a"),
    "https://login.example.org/" + "a" * 5000,
]


def test_an_issuer_with_a_query_is_not_used() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        stub.issuers = [f"{login.issuer}?tenant=evil"]
        await refuses(client_of(stub, browser), "query")
        assert login.requests == []

    run(work)


@for_each("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
@for_each("url", BAD_URLS)
def test_an_endpoint_of_a_bad_url_is_not_asked(endpoint: str, url: str) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.metadata_changes[endpoint] = url
        assert (await refuses(client_of(stub, browser))).step in ("discovery", "registration")
        assert {each.endpoint for each in login.requests} == {"metadata"}
        assert browser.urls == []

    run(work)


@for_each("url", [*BAD_URLS, 'https://a.example/"x"', "https://a.example/`x`", "https://a/{x}|y"])
def test_a_bad_url_is_not_handed_to_a_browser(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> Any:
        pytest.fail("a program was started")

    for name in ("Popen", "run", "call"):
        monkeypatch.setattr(subprocess, name, never)
    monkeypatch.setattr(webbrowser, "open", never)
    with pytest.raises(AuthorizationFailed):
        check_authorization_url(url)
    with pytest.raises(AuthorizationFailed):
        asyncio.run(open_browser(url))


def test_the_browser_gets_the_url_as_one_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Any, ...]] = []

    def open_url(*given: Any) -> bool:
        opened.append(given)
        return True

    monkeypatch.setattr(webbrowser, "open", open_url)
    url = "https://login.example.org/a?b=$(touch%20x);&c=%27|"
    with pytest.raises(AuthorizationFailed):
        asyncio.run(open_browser(url))  # `|` is not a character of a URL
    url = url.removesuffix("|")
    asyncio.run(open_browser(url))
    assert opened == [(url,)]


@for_each("url", BAD_URLS)
@for_each("is_issuer", [True, False])
def test_metadata_at_a_bad_url_is_not_asked_for(url: str, is_issuer: bool) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        if is_issuer:
            stub.issuers = [url]
        else:
            text = url.replace("\r\n", "").encode("ascii", "replace").decode()
            stub.challenge = f'Bearer resource_metadata="{text}"'
        assert (await refuses(client_of(stub, browser))).step == "discovery"

    run(work)


PRIVATE = [
    *("127.0.0.1", "10.0.0.8", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "::1", "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254"),
    *("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "224.0.0.1"),
]


def public_discovery() -> MetadataDiscovery:
    """Return the discovery of a client whose server is on the internet."""
    return MetadataDiscovery("https://mcp.example.org/mcp", is_private=lambda: False)


@for_each("address", PRIVATE)
def test_a_public_server_cannot_send_the_client_into_a_private_network(address: str) -> None:
    host = f"[{address}]" if ":" in address else address

    async def main() -> None:
        async def never(*_: Any) -> Any:
            pytest.fail("a connection was opened")

        patched = pytest.MonkeyPatch()
        patched.setattr(asyncio.get_running_loop(), "sock_connect", never)
        try:
            named = Challenge("bearer", {"resource_metadata": f"https://{host}/x"})
            with pytest.raises(AuthorizationFailed, match="not public"):
                await public_discovery().server(named)
            with pytest.raises(AuthorizationFailed, match="not public"):
                await public_discovery().issuer(f"https://{host}/tenant")
        finally:
            patched.undo()

    asyncio.run(main())


@for_each(
    "host",
    ["127.0.0.1:631", "localhost", "a.localhost", "192.168.1.1", "[::1]", "127.1", "[fec0::1]"],
)
@for_each("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
def test_a_public_server_cannot_send_the_browser_into_a_private_network(
    host: str, endpoint: str
) -> None:
    document = AuthorizationServerMetadata(
        issuer="https://login.example.org",
        authorization_endpoint="https://login.example.org/authorize",
        token_endpoint="https://login.example.org/token",
        code_challenge_methods_supported=["S256"],
    )
    named = replace(document, **{endpoint: f"https://{host}/admin?delete=all"})

    async def main() -> None:
        for is_private in (False, True):
            discovery = MetadataDiscovery(
                "https://mcp.example.org/mcp",
                is_private=lambda: is_private,  # noqa: B023  # used at once
            )

            async def first(*_: Any) -> Any:
                return named, ""

            patched = pytest.MonkeyPatch()
            patched.setattr(MetadataDiscovery, "_first", first)
            try:
                if is_private:
                    assert await discovery.issuer(named.issuer) is named
                else:
                    with pytest.raises(AuthorizationFailed, match="not public"):
                        await discovery.issuer(named.issuer)
            finally:
                patched.undo()

    asyncio.run(main())


def test_a_name_that_leads_elsewhere_the_second_time_is_connected_where_it_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: a public address for the check, and this machine for the connection."""
    lookups: list[str] = []
    dialled: list[Any] = []
    answers = ["93.184.216.34", "127.0.0.1", "127.0.0.1"]

    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            lookups.append(host)
            address = (answers[min(len(lookups), len(answers)) - 1], port)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)]

        async def sock_connect(_: Any, address: Any) -> None:
            dialled.append(address[0])
            raise OSError("no route")

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(loop, "sock_connect", sock_connect)
        for _ in range(2):
            with pytest.raises(AuthorizationFailed):
                await public_discovery().issuer("https://rebind.example.org")

    monkeypatch.setattr(proxy_module, "proxy_for", lambda *_: None)
    monkeypatch.setattr(fetch_module, "proxy_for", lambda *_: None)
    asyncio.run(main())
    assert lookups == ["rebind.example.org"] * 2
    # The second lookup led to this machine, and nothing was opened.
    assert dialled == ["93.184.216.34"]


def test_a_client_of_a_local_server_may_ask_this_machine_and_a_public_one_may_not() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        for is_private in (True, False):
            discovery = MetadataDiscovery(stub.url, is_private=lambda: is_private)  # noqa: B023  # used at once
            if is_private:
                assert (await discovery.issuer(login.issuer)).issuer == login.issuer
            else:
                with pytest.raises(AuthorizationFailed, match="not public"):
                    await discovery.issuer(login.issuer)

    run(work)


# -- sizes and times ---------------------------------------------------------------------------


def test_metadata_that_is_too_large_or_too_deep_ends_the_login() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.fail("metadata", oversized=fetch_module.MAX_BODY_BYTES + 1)
        await refuses(client_of(stub, browser), "too large")
        login.fail("metadata", body=b'{"issuer": ' + b"[" * 100_000)
        await refuses(client_of(stub, browser))
        login.fail("token", oversized=1_000_000)
        await refuses(client_of(stub, browser), "too large")
        login.fail("register", oversized=1_000_000)
        await refuses(client_of(stub, browser), "too large")

    run(work)


def test_metadata_that_does_not_come_ends_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    original = fetch_module.fetch

    async def impatient(url: str, **options: Any) -> Any:
        return await original(url, **{**options, "timeout": 0.1})

    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        monkeypatch.setattr("trunkline.auth.client.flow.discovery.fetch", impatient)
        login.fail("metadata", delay=WAIT)
        await refuses(client_of(stub, browser), "within")

    run(work)


@for_each("body", [b"[]", b"7", b'"x"', b'{"issuer": 7}', b'{"issuer": "x", "token_endpoint": []}'])
def test_metadata_of_wrong_types_is_void(body: bytes) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.fail("metadata", status=200, body=body)
        failure = await refuses(client_of(stub, browser), "malformed")
        assert failure.step == "discovery"

    run(work)


@for_each("status", [500, 503, 302])
def test_metadata_that_fails_for_now_is_not_taken_for_missing(status: int) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        inner = stub.answer
        stub.challenge = None

        def answer(asked: Asked) -> Any:
            is_metadata = asked.path.startswith(WELL_KNOWN)
            return asked.status(status) if is_metadata else inner(asked)

        stub.answer = answer
        await refuses(client_of(stub, browser), f"status {status}")
        assert stub.paths() == [f"{WELL_KNOWN}/mcp"]
        assert browser.urls == []

    run(work)


# -- SEC-22: state, and the redirect -----------------------------------------------------------


@for_each(
    ("old", "new"),
    [
        ("state=", "state=x"),
        ("state=", "other="),
        ("state=", "state=x&state="),
        ("code=", "code=x&code="),
        ("code=", "other="),
        ("/callback", "/elsewhere"),
        ("http://", "https://"),
        ("127.0.0.1/", "127.0.0.1.evil.example/"),
        ("127.0.0.1/", "127.0.0.1:81/"),
        ("?", "?a=1&" + "b=1&" * 100),
        ("http://127.0.0.1", "http://["),
    ],
)
def test_a_response_that_is_not_the_expected_one_brings_no_token(old: str, new: str) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        browser.changes = [(old, new)]
        failure = await refuses(client_of(stub, browser))
        assert (failure.step, failure.error) == ("authorization request", None)
        assert login.asked("token") == []

    run(work)


def test_the_listener_takes_one_response_with_the_right_state() -> None:
    state = "s" * 43

    async def send(port: int, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer

    async def main() -> None:
        listener = LoopbackListener()
        await listener.open()
        port = urlsplit(listener.redirect_uri).port or 0
        expected = ExpectedResponse(
            redirect_uri=listener.redirect_uri, state=state, issuer="https://login.example.org"
        )
        get = "GET {} HTTP/1.1\r\nhost: x\r\n\r\n"
        early = await send(port, get.format(f"/callback?state={state}&code=c").encode())
        assert early.startswith(b"HTTP/1.1 400 ")  # nothing was asked for yet
        waiting = asyncio.create_task(listener.wait(expected))
        await asyncio.sleep(0)
        cases = [
            (get.format("/"), 404),
            (get.format(f"/callback/?state={state}"), 404),
            (get.format(f"//callback?state={state}"), 404),
            (get.format("/callback"), 400),
            (get.format("/callback?state=x&code=evil"), 400),
            (get.format(f"/callback?state={state}&state={state}&code=evil"), 400),
            (get.format("/callback?" + "a=1&" * 100 + f"state={state}"), 400),
            (f"POST /callback?state={state} HTTP/1.1\r\n\r\n", 405),
            (f"HEAD /callback?state={state} HTTP/1.1\r\n\r\n", 405),
            ("nonsense\r\n\r\n", 400),
            (f"GET /callback?state={state} SPDY\r\n\r\n", 400),
            ("GET /" + "a" * 20_000 + " HTTP/1.1\r\n\r\n", 431),
        ]
        for text, status in cases:
            answer = await send(port, text.encode())
            assert answer.startswith(b"HTTP/1.1 %d " % status), text
            assert b"evil" not in answer
            assert b"content-security-policy: default-src 'none'" in answer
            assert not waiting.done()
        silent = await asyncio.open_connection("127.0.0.1", port)  # says nothing
        url = f"/callback?state={state}&code=%3Cscript%3E{CANARY}"
        answer = await send(port, get.format(url).encode())
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert CANARY.encode() not in answer
        assert b"no-store" in answer
        assert b"no-referrer" in answer
        assert expected.code_of(await waiting) == f"<script>{CANARY}"
        silent[1].close()
        await listener.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(asyncio.wait_for(main(), WAIT))


def test_silent_connections_do_not_keep_the_browser_out() -> None:
    async def main() -> None:
        listener = LoopbackListener()
        await listener.open()
        uri = urlsplit(listener.redirect_uri)
        expected = ExpectedResponse(
            redirect_uri=listener.redirect_uri, state="s", issuer="https://login.example.org"
        )
        waiting = asyncio.create_task(listener.wait(expected))
        silent = [await asyncio.open_connection(uri.hostname, uri.port) for _ in range(40)]
        reader, writer = await asyncio.open_connection(uri.hostname, uri.port)
        writer.write(b"GET /callback?state=s&code=c HTTP/1.1\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        assert expected.code_of(await waiting) == "c"
        await listener.close()
        for _, each in (*silent, (reader, writer)):
            each.close()

    asyncio.run(asyncio.wait_for(main(), WAIT))


@for_each(
    ("uri", "address"),
    [
        ("http://[::1]:{port}/back", "::1"),
        ("http://127.0.0.1:{port}/back", "127.0.0.1"),
        ("http://localhost:{port}/back", "127.0.0.1"),
    ],
)
def test_the_listener_is_where_the_redirect_uri_leads(uri: str, address: str) -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as free:
            try:
                free.bind((address, 0))
            except OSError:
                return  # there is no IPv6 here
            port = free.getsockname()[1]
        listener = LoopbackListener(uri.format(port=port))
        await listener.open()
        assert listener._server is not None
        (sock,) = listener._server.sockets
        assert sock.getsockname()[:2] == (address, port)
        assert listener.redirect_uri == uri.format(port=port)
        await listener.close()

    asyncio.run(main())


def test_the_listener_is_on_the_loopback_interface_alone() -> None:
    async def main() -> None:
        listener = LoopbackListener()
        await listener.open()
        assert listener._server is not None
        assert [each.getsockname()[0] for each in listener._server.sockets] == ["127.0.0.1"]
        await listener.close()

    asyncio.run(main())


# -- SEC-23: where tokens are kept -------------------------------------------------------------


@for_each("planted", ["file", "folder", "link"])
def test_a_login_that_another_user_could_have_planted_is_not_used(
    planted: str, tmp_path: Path
) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        folder = tmp_path / planted
        storage = FileTokens(folder)
        async with client_of(stub, browser, storage=storage) as client:
            await echo(client)
        (path,) = folder.glob("*.json")
        assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
        before = len(stub.requests), len(login.requests)
        if planted == "file":
            path.chmod(0o620)
        elif planted == "folder":
            folder.chmod(0o770)
        else:
            path.rename(tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
        failure = await refuses(client_of(stub, browser, storage=storage))
        assert failure.step == "storage"
        # Nothing of it was sent, and nothing was replaced by a new login.
        assert (len(stub.requests), len(login.requests)) == before

    run(work)


# -- SEC-28: scopes ----------------------------------------------------------------------------


def test_a_server_that_is_never_content_gets_few_logins() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        stub.needs = {"tools/call": "never:granted"}
        login.approve = True
        async with client_of(stub, browser, scopes=["files:read"]) as client:
            for _ in range(5):
                with pytest.raises(AuthorizationFailed):
                    await client.call_tool("echo")
        assert len(browser.urls) <= 3

    run(work, scopes=["files:read"])


# -- what is shown -----------------------------------------------------------------------------


@for_each("endpoint", ["authorize", "token", "register"])
def test_the_words_of_a_server_reach_no_terminal_as_they_are(endpoint: str) -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.fail(
            endpoint,
            error="evil\x1b[31m",
            status=None if endpoint == "authorize" else 400,
        )
        failure = await refuses(client_of(stub, browser))
        assert "\x1b" not in f"{failure} {failure!r}"

    run(work)


def test_an_authorization_server_that_repeats_what_it_was_sent_is_not_quoted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    texts: list[str] = []
    secrets: list[str] = []

    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        async def follow(url: str) -> str:
            found = await browser.paste(url)
            code = parse_qs(urlsplit(found).query)["code"][0]
            secrets.append(code)
            body = f'{{"error": "invalid_grant", "error_description": "no {code}"}}'
            login.fail("token", status=400, body=body.encode())
            return found

        failure = await refuses(client_of(stub, browser, on_authorize=follow))
        texts.extend((str(failure), repr(failure)))
        assert failure.error == "invalid_grant"

    with caplog.at_level(logging.DEBUG):
        run(work)
    assert not [each for each in secrets if each in " ".join(texts) + caplog.text]


def test_a_credential_is_in_no_recording_of_the_traffic() -> None:
    kept = Kept()

    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        stub.scheme = "DPoP"
        stub.challenge = f'DPoP resource_metadata="{{origin}}{{path}}", nonce="{CANARY}"'
        observer = ProxyObserver(print, record=kept)  # type: ignore[arg-type]
        recorder = HttpRecorder(observer.connection(None, "stdio", "http"), records_requests=True)
        options = HttpOptions(auth=OAuth(on_authorize=browser.paste))
        address = Http("127.0.0.1", stub.port, options=options)

        class Recorded:
            outlives_connections = True

            def transport(self, policy: Any) -> Any:
                made: Any = address.transport(policy)
                made.observer = recorder
                return made

        async with Client(Recorded(), revision=PER_REQUEST) as client:
            await echo(client)
        assert await asyncio.to_thread(observer.jobs.wait, WAIT)
        text = "".join(map(repr, (encode(each) for each in kept.entries)))
        assert "tools/call" in text
        sent = [each.headers for each in stub.requests if "dpop" in each.headers]
        for secret in (*stub.tokens, *(each["dpop"] for each in sent), CANARY):
            assert secret not in text

    run(work)


def test_a_failed_login_is_neither_a_transport_error_nor_a_group() -> None:
    async def work(stub: ProtectedStub, login: AuthorizationServer, browser: Browser) -> None:
        login.approve = False
        failure = await refuses(client_of(stub, browser))
        assert type(failure) is AuthorizationFailed
        assert not isinstance(failure, TransportError | BaseExceptionGroup)
        assert (failure.step, failure.error) == ("authorization request", "access_denied")

    run(work)
