"""The configuration of a login, and the texts in it that are refused."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from tests.cases import for_each
from trunkline.auth import OAuth
from trunkline.auth.client.flow.discovery import MetadataDiscovery
from trunkline.auth.client.flow.registration import RegisteredClient, is_metadata_url
from trunkline.auth.client.login.redirect import is_redirect_uri

SECRET = "CANARY-2b6e"


async def hook(url: str) -> str:
    return url


@for_each(
    ("options", "text"),
    [
        ({"scopes": "files:read"}, "scopes is a list"),
        ({"client_secret": SECRET}, "belong to a client_id"),
        ({"issuer": "https://login.example.org"}, "belong to a client_id"),
        ({"private_key": SECRET}, "belongs to a client_id or client_metadata_url"),
        ({"client_metadata_url": "http://a.example/client.json"}, "https URL with a path"),
        ({"client_metadata_url": "https://a.example"}, "https URL with a path"),
        ({"redirect_uri": "http://desk.example.org/callback"}, "redirect_uri is https"),
        ({"redirect_uri": "myapp:/callback", "on_authorize": hook}, "redirect_uri is https"),
        ({"redirect_uri": "https://desk.example.org/callback"}, "give on_authorize too"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": float("nan")}, "seconds above 0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        OAuth(**options)
    assert SECRET not in str(caught.value)


@for_each(
    ("url", "is_valid"),
    [
        ("https://mcp.example.org/mcp", True),
        ("http://127.0.0.1:8000/mcp", True),
        ("http://localhost:8000/mcp", True),
        ("http://mcp.example.org/mcp", False),
        ("http+unix:/run/files.sock", False),
    ],
)
def test_a_login_is_for_https_or_this_machine(url: str, is_valid: bool) -> None:
    if is_valid:
        assert "mcp" in repr(OAuth().for_server(url))
    else:
        with pytest.raises(ValueError, match="https"):
            OAuth().for_server(url)


def test_a_repr_shows_the_client_and_no_secret() -> None:
    assert repr(OAuth()) == "<OAuth>"
    auth = OAuth(client_id="desk", client_secret=SECRET)
    assert repr(auth) == "<OAuth of 'desk'>"


@for_each(
    ("uri", "is_valid"),
    [
        ("http://127.0.0.1:8765/callback", True),
        ("http://localhost/callback", True),
        ("http://[::1]:80/callback", True),
        ("https://desk.example.org/callback", True),
        ("http://desk.example.org/callback", False),
        ("http://127.0.0.1.evil.example/callback", False),
        ("https://u@desk.example.org/callback", False),
        ("https://desk.example.org/callback#x", False),
        ("http://127.0.0.1:0/callback", True),
        ("http://127.0.0.1:x/callback", False),
        ("javascript:alert(1)", False),
        ("/callback", False),
        ("", False),
        (None, False),
    ],
)
def test_a_redirect_uri_is_https_or_this_machine(uri: Any, is_valid: bool) -> None:
    assert is_redirect_uri(uri) is is_valid


@for_each(
    ("url", "is_valid"),
    [
        ("https://desk.example.org/client.json", True),
        ("https://desk.example.org/", False),
        ("https://desk.example.org/c#x", False),
        ("https://u@desk.example.org/c", False),
        ("http://desk.example.org/c", False),
        ("https:///c", False),
        ("https://[/c", False),
        (7, False),
    ],
)
def test_the_url_of_a_client_is_https_with_a_path(url: Any, is_valid: bool) -> None:
    assert is_metadata_url(url) is is_valid


@for_each(
    ("client", "method", "has_ended"),
    [
        (RegisteredClient(client_id="a"), "none", False),
        (RegisteredClient(client_id="a", client_secret="s"), "client_secret_basic", False),
        (
            RegisteredClient(
                client_id="a", client_secret="s", token_endpoint_auth_method="client_secret_post"
            ),
            "client_secret_post",
            False,
        ),
        (
            RegisteredClient(client_id="a", token_endpoint_auth_method="client_secret_basic"),
            "none",
            False,
        ),
        (
            RegisteredClient(client_id="a", client_secret="s", client_secret_expires_at=1),
            "client_secret_basic",
            True,
        ),
    ],
)
def test_a_registration_decides_how_the_client_authenticates(
    client: RegisteredClient, method: str, has_ended: bool
) -> None:
    assert client.auth_method == method
    assert client.has_ended is has_ended


def test_the_tls_context_of_a_server_is_for_its_own_origin() -> None:
    own, other = ssl.create_default_context(), ssl.create_default_context()
    url = "https://mcp.example.org/mcp"
    usual = MetadataDiscovery(url, context=own)
    assert usual.context_for("https://mcp.example.org:443/x") is own
    for elsewhere in ("https://login.example.org/x", "https://mcp.example.org:8443/x"):
        assert usual.context_for(elsewhere) is None
    given = MetadataDiscovery(url, context=own, other_context=other)
    assert given.context_for("https://login.example.org/x") is other
    assert given.context_for(url) is own
