"""`Server.listen`: which listener an address gets, and what does not go with it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from trunkline import HttpLimits, HttpSettings, Server, SocketLimits
from trunkline.server.runtime.http_listener import HttpListener
from trunkline.server.runtime.listen import address_of
from trunkline.server.runtime.listener import ServerListener
from trunkline.transports.addresses import Http, Tcp, Unix


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://127.0.0.1:8000/mcp", Http("127.0.0.1", 8000, "/mcp")),
        ("http+unix:/run/x", Http(unix="/run/x")),
        ("tcp://127.0.0.1:9000", Tcp("127.0.0.1", 9000)),
        ("unix:/run/x", Unix("/run/x")),
        (Tcp("127.0.0.1", 9000), Tcp("127.0.0.1", 9000)),
    ],
)
def test_a_text_is_parsed_and_an_address_is_taken_as_it_is(given: Any, address: Any) -> None:
    assert address_of(given) == address


def test_invalid_listen_address_is_refused() -> None:
    with pytest.raises(TypeError, match="listens on an Http, a Tcp, a Unix or a text, not int"):
        address_of(8000)
    with pytest.raises(ValueError, match="ftp"):
        address_of("ftp://127.0.0.1:21")


@pytest.mark.parametrize(
    ("given", "says"), [("ws://h:1/mcp", "http://"), ("wss://h/mcp", "https://")]
)
def test_a_websocket_is_served_beside_http(given: str, says: str) -> None:
    with pytest.raises(ValueError, match=rf"listen on {says}.*websocket=True"):
        address_of(given)


def test_a_websocket_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets", None)
    app = Server("listens")
    with pytest.raises(ImportError, match=r'pip install "trunkline\[ws\]"'):
        app.listen("http://127.0.0.1:0/mcp", http=HttpSettings(websocket=True))


def test_each_address_has_its_listener() -> None:
    app = Server("listens")
    assert isinstance(app.listen("http://127.0.0.1:0/mcp"), HttpListener)
    assert isinstance(app.listen("http://127.0.0.1:0/mcp", limits=HttpLimits()), HttpListener)
    assert isinstance(app.listen("tcp://127.0.0.1:0"), ServerListener)
    assert isinstance(app.listen("tcp://127.0.0.1:0", limits=SocketLimits()), ServerListener)


def test_limits_and_settings_of_the_other_kind_are_refused() -> None:
    app: Any = Server("listens")
    with pytest.raises(TypeError, match="the limits of an HTTP listener are HttpLimits"):
        app.listen("http://127.0.0.1:0/mcp", limits=SocketLimits())
    with pytest.raises(TypeError, match="the limits of a socket listener are SocketLimits"):
        app.listen("tcp://127.0.0.1:0", limits=HttpLimits())
    with pytest.raises(TypeError, match="HttpSettings are for http:// addresses, not for tcp://"):
        app.listen("tcp://127.0.0.1:0", http=HttpSettings())
