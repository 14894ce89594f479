"""Logins of the servers of a configuration: in an entry, by name, and what is wrong with others."""

from __future__ import annotations

import asyncio
import json
import logging
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import CANARY
from tests.cases import for_each
from tests.rigs.protected_server import ProtectedServer, hosted, protected_server
from tests.unit.auth.client.login.protected_stub import Browser
from trunkline import Client, Server, SyncClient
from trunkline.auth import FileTokens, OAuth
from trunkline.client.connect.configured import _log_unknown
from trunkline.errors import AuthorizationFailed, TransportError

URL = "https://shop.example.org/mcp"
NOTES = Server("notes")


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Browser:
    """Return the browser of a user whose logins are kept in the folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = Browser()
    monkeypatch.setattr(webbrowser, "open", found.open)
    return found


def run(work: Callable[[ProtectedServer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with protected_server(default_scopes=["files:read"]) as place:
            await work(place)

    asyncio.run(asyncio.wait_for(main(), 60))


def both(shop: Any) -> dict[str, Any]:
    return {"mcpServers": {"notes": NOTES, "shop": shop}}


def auth_of(client: Client, name: str) -> Any:
    """Return the credentials of a server of a client."""
    address: Any = client.servers[name]._connection._target.address
    return None if address.options is None else address.options.auth


# -- logging in --------------------------------------------------------------------------------


@for_each(
    ("auth", "scopes"),
    [
        ("oauth", "files:read"),
        ({"type": "oauth"}, "files:read"),
        ({"type": "oauth", "scopes": ["files:read", "files:write"]}, "files:read files:write"),
    ],
)
def test_an_entry_logs_in_and_the_login_is_kept_for_the_next_client(
    auth: Any, scopes: str, browser: Browser
) -> None:
    async def work(place: ProtectedServer) -> None:
        before = len(browser.urls)
        for _ in range(2):
            async with Client(both({"url": place.url, "auth": auth})) as client:
                assert client.failures == {}
                result = await client.call_tool("shop_subject")
                assert result.value == f"user {scopes}"
        assert len(browser.urls) == before + 1

    run(work)


def test_an_entry_of_a_file_logs_in(browser: Browser, tmp_path: Path) -> None:
    async def work(place: ProtectedServer) -> None:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"shop": {"url": place.url, "auth": "oauth"}}}))
        for target in (path, str(path), f"{path}:shop"):
            async with Client(target) as client:
                assert (await client.call_tool("subject")).value == "user files:read"
        assert len(browser.urls) == 1
        records = [each for each in FileTokens().records() if isinstance(each, bytes)]
        assert len(records) == 1

    run(work)


def test_a_login_that_waits_for_the_browser_is_logged(
    browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(place: ProtectedServer) -> None:
        for entry in ("oauth", OAuth()):
            browser.urls.clear()
            caplog.clear()
            async with Client(both({"url": place.url, "auth": entry})) as client:
                assert client.failures == {}
            logged = [each for each in caplog.records if each.name == "trunkline.auth"]
            assert [(each.levelname, each.getMessage()) for each in logged] == [
                (
                    "WARNING",
                    f"the server '{place.url}' asks for a login: log in in the browser within "
                    f"300 s",
                )
            ]

    run(work)


def test_an_object_logs_in_from_an_entry_and_by_name() -> None:
    async def work(place: ProtectedServer) -> None:
        entry = {"url": place.url}
        one = {"mcpServers": {"shop": entry}}
        for make in (
            lambda auth: Client(both({**entry, "auth": auth})),
            lambda auth: Client(both(entry), auth={"shop": auth}),
            lambda auth: Client(both({**entry, "auth": "oauth"}), auth={"shop": auth}),
            lambda auth: Client({"mcpServers": {"shop": {**entry, "auth": auth}}}),
            lambda auth: Client(one, auth={"shop": auth}),
            lambda auth: Client(one, auth=auth),
        ):
            browser = Browser()
            async with make(OAuth(on_authorize=browser.paste)) as client:
                assert client.failures == {}
                name = "shop_subject" if len(client.servers) > 1 else "subject"
                assert (await client.call_tool(name)).value == "user files:read"
            assert len(browser.urls) == 1

    run(work)


def test_the_synchronous_client_logs_in_by_name_and_from_an_entry() -> None:
    with hosted(default_scopes=["files:read"]) as place:
        for entry, auth in (
            ({"url": place.url}, {"shop": OAuth(on_authorize=Browser().paste)}),
            ({"url": place.url, "auth": OAuth(on_authorize=Browser().paste)}, None),
        ):
            with SyncClient(both(entry), auth=auth) as client:
                assert client.call_tool("shop_subject").value == "user files:read"


def test_a_login_that_is_needed_is_advised_in_a_form_that_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(place: ProtectedServer) -> None:
        async with Client(both({"url": place.url})) as client:
            error = client.failures["shop"]
            assert isinstance(error, AuthorizationFailed)
            assert str(error).endswith(
                'with status 401; it logs in with "auth": "oauth" in its entry, or with '
                "auth={'shop': OAuth()}"
            )
        assert "auth={'shop': OAuth()}" in caplog.text

    run(work)


def test_failed_login_of_a_server_is_told_by_a_call_of_its_tools() -> None:
    def refuse(url: str) -> None:
        raise AuthorizationFailed("no browser can be opened here", step="authorization request")

    async def work(place: ProtectedServer) -> None:
        shop = {"url": place.url, "auth": OAuth(open_url=refuse)}
        async with Client(both(shop)) as client:
            with pytest.raises(TransportError) as raised:
                await client.call_tool("shop_subject")
        assert "the server 'shop' is not connected: authorization request: " in str(raised.value)
        assert "redacted" not in str(raised.value)

    run(work)


def test_an_entry_keeps_its_login_beside_options_of_http(browser: Browser) -> None:
    from trunkline import HttpOptions

    auth = OAuth()
    config = {"mcpServers": {"shop": {"url": URL, "auth": auth}}}
    client = Client(config, http=HttpOptions(headers={"X-A": "b"}))
    assert auth_of(client, client._server_name or "shop") is auth


# -- refusals ----------------------------------------------------------------------------------


@for_each(
    ("options", "text"),
    [
        (
            {"auth": OAuth()},
            "auth would be sent to every server: give it by name, as in "
            "auth={'shop': OAuth()}, or put \"auth\" into the entry of one",
        ),
        ({"auth": {"shpo": OAuth()}}, "auth: there is no server 'shpo'; did you mean 'shop'?"),
        ({"auth": {"x": OAuth()}}, "auth: there is no server 'x'; there are notes, shop"),
        ({"auth": {"shop": "oauth"}}, "HttpOptions.auth is one of trunkline.auth, such as OAuth()"),
        ({"auth": {"notes": OAuth()}}, "headers, auth and http are for addresses such as"),
    ],
)
def test_auth_of_several_servers_is_by_their_names(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        Client(both({"url": URL}), **options)
    assert str(caught.value).startswith(text)


def test_auth_by_name_needs_a_configuration_with_that_name() -> None:
    with pytest.raises(ValueError, match="for a configuration"):
        Client(URL, auth={"shop": OAuth()})
    with pytest.raises(ValueError, match="there is no server 'a'"):
        Client({"mcpServers": {"shop": {"url": URL}}}, auth={"a": OAuth()})


@for_each(
    ("entry", "text"),
    [
        (
            {"url": URL, "hedaers": {}},
            "'hedaers' is not a member of an entry; did you mean 'headers'?",
        ),
        ({"url": URL, "Auth": "oauth"}, "'Auth' is not a member of an entry; did you mean 'auth'?"),
        ({"url": URL, "zzz": 1}, "'zzz' is not a member of an entry; there are type, command, "),
        ({"url": URL, "auth": f"Bearer {CANARY}"}, 'auth: expected "oauth"; a token goes into'),
        ({"url": URL, "auth": {"client_id": CANARY}}, 'auth.type: expected "oauth"'),
        ({"url": URL, "auth": OAuth}, 'auth is "oauth", or an object such as OAuth(), not OAuth'),
        ({"url": URL, "auth": 7}, 'auth is "oauth", or an object such as OAuth(), not int'),
        ({"command": "x", "auth": "oauth"}, "auth is for a server with a url, not with a command"),
        ({"command": "x", "auth": OAuth()}, "auth is for a server with a url, not with a command"),
    ],
)
def test_a_mistake_in_an_entry_of_a_program_is_refused(entry: dict[str, Any], text: str) -> None:
    for config in (both(entry), {"mcpServers": {"shop": entry}}):
        with pytest.raises(ValueError) as caught:
            Client(config)
        assert str(caught.value).startswith(f"'shop': {text}")
        assert CANARY not in str(caught.value)


def test_options_of_a_login_that_do_not_go_together_are_an_error_of_the_entry() -> None:
    entry = {"url": URL, "auth": {"type": "oauth", "issuer": "https://login.example.org"}}
    client = Client(both(entry))
    assert "belong to a client_id" in str(client.failures["shop"])


def test_a_member_that_no_host_knows_is_logged_once_for_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _log_unknown.cache_clear()
    path = tmp_path / "mcp.json"
    entry = {"url": URL, "hedaers": {"Authorization": CANARY}, "autoApprove": [], "oauth": {}}
    path.write_text(json.dumps({"mcpServers": {"shop": entry, "more": {"url": URL}}}))
    with caplog.at_level(logging.WARNING, logger="trunkline"):
        for _ in range(2):
            assert set(Client(path).servers) == {"shop", "more"}
    assert [each.getMessage() for each in caplog.records] == [
        f"{path}: server 'shop': 'hedaers' is not a member of an entry; did you mean 'headers'?"
    ]


# -- guesses -----------------------------------------------------------------------------------


@for_each("make", [Client, SyncClient])
def test_a_client_as_a_server_gets_advice(make: Any) -> None:
    for config in (both(make(URL)), {"mcpServers": {"shop": make(URL)}}):
        with pytest.raises(TypeError) as caught:
            Client(config)
        assert str(caught.value) == (
            f"'shop' is a {make.__name__}, and a client makes its own connection: give it what "
            'that one connects to, in a configuration as {"url": "...", "auth": OAuth()}'
        )
    with pytest.raises(TypeError, match=f"the target is a {make.__name__}"):
        Client(make(URL))


def test_from_config_gets_advice() -> None:
    owners: list[Any] = [Client, SyncClient, Client(URL)]
    for owner in owners:
        assert not hasattr(owner, "from_config")
        with pytest.raises(AttributeError, match="give the configuration to the class itself"):
            _ = owner.from_config


@for_each(
    ("config", "text"),
    [
        (
            {"a": {"command": "x"}, "b": {"url": URL}},
            "; 'a', 'b' look like servers: write {\"mcpServers\": {...}} around them",
        ),
        ({"command": "x", "args": []}, '; for one server write {"mcpServers": {"NAME": {...}}}'),
        ({"url": URL}, '; for one server write {"mcpServers": {"NAME": {...}}}'),
        ({}, '; write {"mcpServers": {"NAME": {...}}}'),
        ({"theme": "dark"}, ""),
    ],
)
def test_a_configuration_without_its_member_gets_advice(config: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        Client(config)
    assert str(caught.value) == (
        "the configuration: has no servers: none of mcpServers, servers, context_servers, "
        f"mcp_servers is there{text}"
    )
