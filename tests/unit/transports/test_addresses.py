"""Addresses as texts and as values: what is one, what is not, and what they never show."""

from __future__ import annotations

import gc
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import PASSWORD
from trunkline.client.connect.targets import forget_era, remember_era, remembered_era, target_of
from trunkline.jsonrpc import Policy
from trunkline.server.runtime.listen import address_of
from trunkline.transports.addresses import (
    Http,
    Tcp,
    Tls,
    Unix,
    Ws,
    parse_address,
    parse_socket_address,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://127.0.0.1:9000", Tcp("127.0.0.1", 9000)),
        ("tcp://localhost:0", Tcp("localhost", 0)),
        ("tcp://[::1]:9000", Tcp("::1", 9000)),
        ("tcp://0.0.0.0:65535", Tcp("0.0.0.0", 65535)),
        ("tcp://a-b.example.org:1", Tcp("a-b.example.org", 1)),
        ("tcp://[fe80::1%eth0]:7", Tcp("fe80::1%eth0", 7)),
        ("tcp://h:0080", Tcp("h", 80)),
        ("tls://mcp.example.org:9443", Tcp("mcp.example.org", 9443, tls=True)),
        ("tls://[::1]:9443", Tcp("::1", 9443, tls=True)),
        ("unix:/run/weather.sock", Unix("/run/weather.sock")),
        ("unix:///run/weather.sock", Unix("/run/weather.sock")),
        ("unix:weather.sock", Unix("weather.sock")),
        ("unix:./a b", Unix("./a b")),
        ("unix:/tmp/ünï", Unix("/tmp/ünï")),
        ("http://127.0.0.1:8000/mcp", Http("127.0.0.1", 8000)),
        ("http://localhost:0/", Http("localhost", 0, "/")),
        ("http://localhost:9000", Http("localhost", 9000, "/")),
        ("https://mcp.example.org", Http("mcp.example.org", 443, "/", tls=True)),
        ("http://h/mcp", Http("h", 80)),
        ("http://[::1]/mcp", Http("::1", 80)),
        ("http://[::1]:8000/a/b/", Http("::1", 8000, "/a/b/")),
        ("http://h:1/a%2Fb:c@d", Http("h", 1, "/a%2Fb:c@d")),
        ("https://mcp.example.org/mcp", Http("mcp.example.org", 443, tls=True)),
        ("https://mcp.example.org:8443/v1", Http("mcp.example.org", 8443, "/v1", tls=True)),
        ("http+unix:/run/weather.sock", Http(unix="/run/weather.sock")),
        ("http+unix:///run/weather.sock", Http(unix="/run/weather.sock")),
        ("http+unix:/run/weather.sock:/v1/", Http(unix="/run/weather.sock", path="/v1/")),
        ("http+unix:a:/b:/mcp", Http(unix="a:/b")),
        ("ws://127.0.0.1:8000/mcp", Ws("127.0.0.1", 8000)),
        ("ws://h/v1", Ws("h", 80, "/v1")),
        ("ws://[::1]:8000/", Ws("::1", 8000, "/")),
        ("wss://mcp.example.org/mcp", Ws("mcp.example.org", 443, tls=True)),
    ],
)
def test_a_text_names_an_address(text: str, address: Tcp | Unix | Http | Ws) -> None:
    assert parse_address(text) == address
    assert target_of(text).address == address
    assert parse_address(str(address)) == address


def test_a_query_is_kept_for_clients_and_shown_nowhere() -> None:
    address = parse_address("http://h:1/mcp?key=hunter2&a=%2F?")
    assert address == Http("h", 1, query="key=hunter2&a=%2F?")
    assert address != Http("h", 1)
    assert parse_address("http://h:1?a") == Http("h", 1, "/", query="a")
    assert "hunter2" not in f"{address} {address!r}"
    for text in ("http://h:x/mcp?hunter2", "http://h/../mcp?hunter2", "http://h/mcp?hunter2 "):
        with pytest.raises(ValueError, match=r"port|Http") as caught:
            parse_address(text)
        assert "hunter2" not in str(caught.value)
    for given in ("http://h:1/mcp?a", Http("h", 1, query="a")):
        with pytest.raises(ValueError, match="is for clients"):
            address_of(given)


@pytest.mark.parametrize("text", ["http://127.0.0.1:8000", "https://example.org"])
def test_a_server_listens_at_the_root_only_if_the_url_says_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs a path, as in https?://127.0.0.1:8000/mcp"):
        parse_address(text, listening=True)
    assert parse_address(f"{text}/", listening=True) == parse_address(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not an address"),
        ("9000", "is not an address"),
        ("localhost:9000", "is not an address"),
        ("HTTP://localhost:9000/mcp", "is not an address"),
        ("http:localhost:9000/mcp", "is not an address"),
        ("http+tcp://localhost:9000/mcp", "is not an address"),
        ("http://", "a host and a port"),
        ("http://localhost:9000?a b", "Http.query"),
        ("http://h:1/mcp?a%2", "Http.query"),
        ("http://h:1/mcp?ä", "Http.query"),
        ("http://h:1/mcp?a#b", "Http.query"),
        ("http:///mcp", "a host and a port"),
        ("http://:8000/mcp", "a host and a port"),
        ("http://h:/mcp", "needs a port"),
        ("http://h:65536/mcp", "needs a port"),
        ("http://::1/mcp", "too many colons"),
        ("http://user@h/mcp", "Http.host"),
        ("http://h:1/mcp#x", "Http.path"),
        ("http://h:1/../mcp", "Http.path"),
        ("http://h:1/a/./b", "Http.path"),
        ("http://h:1/a b", "Http.path"),
        ("http://h:1/ä", "Http.path"),
        ("http://h:1/a%2", "Http.path"),
        ("http://h:1/a%zz", "Http.path"),
        ("WS://h/mcp", "is not an address"),
        ("ws:///mcp", "a host and a port"),
        ("ws://user@h/mcp", "Ws.host"),
        ("wss://h:1/mcp?token=x", "has a query"),
        ("wss://h:65536/mcp", "needs a port"),
        ("http+unix:", "needs a path"),
        ("http+unix://host/run/x", "names a host"),
        ("http+unix:@name", "every user of this machine"),
        ("http+unix:/a:/b?c", "Http.path"),
        ("tcp:localhost:9000", "is not an address"),
        ("tcp:/localhost:9000", "is not an address"),
        (" tcp://h:1", "is not an address"),
        ("tcp://", "a host and a port"),
        ("tcp://host", "a host and a port"),
        ("tcp://:9000", "a host and a port"),
        ("tcp://[]:9000", "a host and a port"),
        ("tcp://host:", "needs a port"),
        ("tcp://host:http", "needs a port"),
        ("tcp://host:65536", "needs a port"),
        ("tcp://host:-1", "needs a port"),
        ("tcp://host:+1", "needs a port"),
        ("tcp://host: 1", "needs a port"),
        ("tcp://host:1 ", "needs a port"),
        ("tcp://host:1/", "needs a port"),
        ("tcp://host:1/path", "needs a port"),
        ("tcp://host:1_0", "needs a port"),
        ("tcp://host:٣", "needs a port"),
        ("tcp://host:²", "needs a port"),
        ("tcp://host:" + "9" * 10_000, "needs a port"),
        ("tcp://host:" + "0" * 10_000, "needs a port"),
        ("tcp://host:0000000099999", "needs a port"),
        ("tcp://::1:9000", r"\[::1\]:PORT"),
        ("tcp://[::1]", "too many colons"),
        ("tcp://[::1:9000", "too many colons"),
        ("tcp://ho st:1", "Tcp.host"),
        ("tcp:// host:1", "Tcp.host"),
        ("tcp://user@host:1", "Tcp.host"),
        ("tcp://host/path:1", "Tcp.host"),
        ("tcp://host?x:1", "Tcp.host"),
        ("tcp://host#x:1", "Tcp.host"),
        ("tcp://ho\nst:1", "Tcp.host"),
        ("tcp://ho\x00st:1", "Tcp.host"),
        ("tcp://ho\x7fst:1", "Tcp.host"),
        ("unix:", "needs a path"),
        ("unix://", "names a host"),
        ("unix://host/run/x", "names a host"),
        ("unix:@name", "every user of this machine"),
        ("unix:/a\x00b", "Unix.path"),
        ("unix:/a\nb", "Unix.path"),
        ("unix:/a\x1b[31mb", "Unix.path"),
        ("unix:/" + "x" * 103, "limit of the system is 103"),
        ("unix:/" + "é" * 52, "limit of the system is 103"),
    ],
)
def test_a_text_that_names_none_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        parse_address(text)
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) < 500


def test_a_path_may_be_as_long_as_the_system_lets_it() -> None:
    path = "/" + "x" * 102
    assert parse_address(f"unix:{path}") == Unix(path)


@pytest.mark.parametrize(
    "host", ["", None, b"host", 7, "a\tb", "a b", "a/b", "a@b", "\udcff", "a\u202eb"]
)
def test_a_host_is_a_name_or_a_number(host: Any) -> None:
    with pytest.raises(ValueError, match=r"Tcp\.host"):
        Tcp(host, 1)


@pytest.mark.parametrize("port", [-1, 65_536, 1.0, True, "80", None])
def test_a_port_is_a_number_that_there_is(port: Any) -> None:
    with pytest.raises(ValueError, match=r"Tcp\.port"):
        Tcp("host", port)


@pytest.mark.parametrize("tls", [None, "yes", 1, "/etc/ca.pem", object(), {}])
def test_tls_of_a_wrong_type_is_refused(tls: Any) -> None:
    with pytest.raises(ValueError, match=r"Tcp\.tls"):
        Tcp("host", 1, tls=tls)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, r"Http\.host"),
        ({"host": 7, "port": 1}, r"Http\.host"),
        ({"host": "h", "port": -1}, r"Http\.port"),
        ({"host": "h", "port": True}, r"Http\.port"),
        ({"host": "h", "tls": "yes"}, r"Http\.tls"),
        ({"host": "h", "path": "mcp"}, r"Http\.path"),
        ({"host": "h", "path": None}, r"Http\.path"),
        ({"unix": ""}, r"Unix\.path"),
        ({"unix": "/a", "host": "h"}, "no host, port or tls"),
        ({"unix": "/a", "port": 80}, "no host, port or tls"),
        ({"unix": "/a", "tls": True}, "no host, port or tls"),
    ],
)
def test_an_endpoint_is_a_host_or_a_socket_file_with_a_path(
    wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        Http(**wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"host": "a b", "port": 1}, r"Ws\.host"),
        ({"host": "h", "port": True}, r"Ws\.port"),
        ({"host": "h", "port": 65536}, r"Ws\.port"),
        ({"host": "h", "port": 1, "path": "mcp"}, r"Ws\.path"),
        ({"host": "h", "port": 1, "tls": "yes"}, r"Ws\.tls"),
    ],
)
def test_a_faulty_websocket_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Ws(**wrong)


def test_a_websocket_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets", None)
    loaded = ("trunkline.transports.websocket", "websockets.")
    for name in [each for each in sys.modules if each.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'pip install "trunkline\[ws\]"'):
        Ws("h", 1).transport(Policy())


def test_an_http_client_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httptools", None)
    for name in [each for each in sys.modules if each.startswith("trunkline.transports.http")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r'pip install "trunkline\[http\]"'):
        Http("h", 1).transport(Policy())


def test_an_endpoint_names_the_socket_below() -> None:
    tls = Tls(cert="c")
    assert Http("h", 1).socket == Tcp("h", 1)
    assert Http("h", 1, tls=tls).socket == Tcp("h", 1, tls=tls)
    assert Http(unix="/a").socket == Unix("/a")
    socket = Http(unix=Unix("/a", mode=0o660)).socket
    assert isinstance(socket, Unix)
    assert socket.mode == 0o660


def test_a_text_of_a_socket_does_not_name_an_endpoint() -> None:
    assert parse_socket_address("tcp://h:1") == Tcp("h", 1)
    with pytest.raises(ValueError, match=r"expected tcp://HOST:PORT, tls://HOST:PORT, unix:PATH$"):
        parse_socket_address("http://h:1/mcp")


@pytest.mark.parametrize("path", ["", None, b"/a", 7, "a\x00"])
def test_a_path_is_a_text(path: Any) -> None:
    with pytest.raises(ValueError, match=r"Unix\.path"):
        Unix(path)


@pytest.mark.parametrize("mode", [0o1777, -1, "600", True, 0.5])
def test_a_mode_is_permissions(mode: Any) -> None:
    with pytest.raises(ValueError, match=r"Unix\.mode"):
        Unix("/a", mode=mode)


def test_a_path_object_is_a_path() -> None:
    assert Unix(Path("/run/x")) == Unix("/run/x")
    assert Unix(Path("/run/x")).path == "/run/x"


def test_a_key_needs_a_certificate() -> None:
    with pytest.raises(ValueError, match="give cert too"):
        Tls(key="a.key")


def test_addresses_are_values() -> None:
    with pytest.raises(AttributeError):
        Tcp("h", 1).port = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Unix("/a").path = "/b"  # type: ignore[misc]
    assert Tcp("h", 1) == Tcp("h", 1) != Tcp("h", 2)
    assert Tcp("h", 1) != Tcp("h", 1, tls=True)
    assert Tcp("h", 1, tls=Tls(ca="a")) == Tcp("h", 1, tls=Tls(ca="a"))
    assert Tcp("h", 1, tls=Tls(ca="a")) != Tcp("h", 1, tls=Tls(ca="b"))
    assert hash(Tcp("h", 1)) == hash(Tcp("h", 1))
    assert Unix("/a") == Unix("/a", mode=0o660) != Unix("/b")
    assert hash(Unix("/a")) == hash(Unix("/a", mode=0o660))
    assert len({Tcp("h", 1), Tcp("h", 1), Unix("/a"), Unix("/a")}) == 2
    assert Http("h", 1) == Http("h", 1, "/mcp") != Http("h", 1, "/")
    assert Http("h", 1) != Http("h", 1, tls=True)
    assert hash(Http("h", 1, tls=Tls(ca="a"))) == hash(Http("h", 1, tls=Tls(ca="a")))
    assert Http(unix="/a") == Http(unix=Path("/a")) == Http(unix=Unix("/a", mode=0o660))


def test_a_context_of_ones_own_belongs_to_an_address_and_its_hash_does_not_mind() -> None:
    one, other = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    assert Tcp("h", 1, tls=one) == Tcp("h", 1, tls=one) != Tcp("h", 1, tls=other)
    assert hash(Tcp("h", 1, tls=one)) == hash(Tcp("h", 1, tls=one))
    assert str(Tcp("h", 1, tls=one)) == "tls://h:1"


def test_a_password_is_in_no_text() -> None:
    tls = Tls(ca="ca.pem", cert="c.pem", key="c.key", password=PASSWORD, server_name="n")
    for each in (tls, Tcp("h", 1, tls=tls), [tls], {"a": Tcp("h", 1, tls=tls)}):
        for text in (str(each), repr(each), f"{each}"):
            assert PASSWORD not in text
            assert "canary" not in text
    assert repr(tls) == "Tls(ca='ca.pem', cert='c.pem', key='c.key', server_name='n')"


@pytest.mark.parametrize("text", [f"tcp://me:{PASSWORD}@h:1", f"http://me:{PASSWORD}@h:1/"])
def test_password_in_an_invalid_address_is_not_repeated(text: str) -> None:
    for refuse in (parse_address, target_of):
        with pytest.raises(ValueError) as caught:
            refuse(text)
        assert PASSWORD not in str(caught.value)
        assert PASSWORD not in repr(caught.value)


def test_reprs_say_what_would_make_the_same() -> None:
    for each in (
        Tcp("::1", 80),
        Tcp("h", 80, tls=True),
        Tcp("h", 80, tls=Tls(ca="x")),
        Unix("/a"),
        Unix("/a", mode=0o660),
        Http("::1", 80),
        Http("h", 80, "/", tls=Tls(ca="x")),
        Http(unix="/a"),
        Http(unix=Unix("/a", mode=0o660), path="/v1"),
        Ws("::1", 80),
        Ws("h", 80, "/v1", tls=Tls(ca="x")),
    ):
        assert eval(repr(each)) == each
    assert repr(Unix("/a", mode=0o660)) == "Unix('/a', mode=0o660)"


def test_more_may_be_said_about_tls_than_a_text_can() -> None:
    tls = Tls(ca="x")
    assert parse_address("tls://h:1", tls=tls) == Tcp("h", 1, tls=tls)
    # A text that says "without" is not made one "with".
    assert parse_address("tcp://h:1", tls=tls) == Tcp("h", 1)
    assert parse_address("unix:/a", tls=tls) == Unix("/a")
    assert parse_address("https://h:1/", tls=tls) == Http("h", 1, "/", tls=tls)
    assert parse_address("http://h:1/", tls=tls) == Http("h", 1, "/")
    assert parse_address("wss://h:1/", tls=tls) == Ws("h", 1, "/", tls=tls)
    assert parse_address("ws://h:1/", tls=tls) == Ws("h", 1, "/")


def test_two_equal_addresses_are_the_same_server() -> None:
    for first, second, other in (
        (Tcp("era", 1), Tcp("era", 1), Tcp("era", 2)),
        (Unix("/era"), Unix("/era", mode=0o660), Unix("/era2")),
        (Http("era", 1), Http("era", 1), Http("era", 1, "/")),
        (Tcp("era", 1, tls=Tls(ca="x")), Tcp("era", 1, tls=Tls(ca="x")), Tcp("era", 1, tls=True)),
    ):
        remember_era(first, "handshake")
        assert remembered_era(second) == "handshake"
        assert remembered_era(other) is None
        remember_era(second, "per-request")
        assert remembered_era(first) == "per-request"
        forget_era(second)
        assert remembered_era(first) is None


def test_remembered_era_ends_with_its_address() -> None:
    first = Tcp("brief", 1)
    remember_era(first, "handshake")
    assert remembered_era(Tcp("brief", 1)) == "handshake"
    del first
    gc.collect()
    assert remembered_era(Tcp("brief", 1)) is None


def test_an_address_costs_no_import_until_it_is_used() -> None:
    code = (
        "import sys\n"
        "from trunkline.transports.addresses import Http, Tcp, Tls, Unix, Ws, parse_address\n"
        "Tcp('h', 1, tls=Tls(ca='x')); parse_address('tls://h:1'); Unix('/a')\n"
        "Http('h', 1); parse_address('https://h/mcp')\n"
        "Ws('h', 1); parse_address('wss://h/mcp')\n"
        "assert not {'ssl', 'asyncio', 'socket', 'websockets'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=dict(os.environ))
