"""Hosts and origins: one spelling each, and nothing that is not one."""

from __future__ import annotations

from tests.cases import for_each
from tests.cpu_time import calibration_s, cpu_s
from trunkline.transports.http.authority import (
    Authority,
    Origin,
    parse_authority,
    parse_origin,
)


@for_each(
    ("text", "host", "port"),
    [
        ("localhost", "localhost", None),
        ("LocalHost:8000", "localhost", 8000),
        ("mcp.example.org:443", "mcp.example.org", 443),
        ("a_b-c.d", "a_b-c.d", None),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]", "[::1]", None),
        ("[0:0:0:0:0:0:0:1]:65535", "[::1]", 65535),
        ("[2001:DB8::A]:80", "[2001:db8::a]", 80),
        ("h:00080", "h", 80),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str, port: int | None) -> None:
    assert parse_authority(text) == Authority(host, port)
    assert parse_authority(str(Authority(host, port))) == Authority(host, port)


NOT_HOSTS = (
    *(
        "",
        " ",
        ":",
        ":80",
        "[]",
        "[]:80",
        "h:",
        "h:x",
        "h:-1",
        "h:65536",
        "h:123456",
        "h:8 ",
        "h: 8",
    ),
    *("localhost.", ".localhost", "a..b", "localhost ", " localhost", "\tlocalhost", "local\thost"),
    *("localhost\n", "localhost\r\n", "localhost\x00", "localhost\x0b", "local host", "a,b"),
    *("user@localhost", "user:pw@localhost", "localhost@evil", "localhost/", "localhost?", "a#b"),
    *("localhost\\", "//localhost", "http://localhost", "local%68ost", "*", "*.example.org", "a+b"),
    *("::1", "[::1", "::1]", "[[::1]]", "[::1]x", "[::1]:", "[::1%25lo]", "[::1%lo]", "[v1.a]"),
    *(
        "[:::]",
        "[1]",
        "[127.0.0.1]",
        "[::1]:80:80",
        "h:80:80",
        "xn--\u00e9",
        "\u212aelvin",
        "h:\u0663",
    ),
    *("\uff4c\uff4fcalhost", "localhost\u3002evil", "\udcff", "a" * 300),
)


@for_each("text", NOT_HOSTS)
def test_malformed_host_is_not_parsed(text: str) -> None:
    assert parse_authority(text) is None
    assert parse_origin(f"http://{text}") is None


@for_each(
    ("text", "origin", "shown"),
    [
        ("http://localhost", Origin("http", "localhost", 80), "http://localhost"),
        ("HTTP://LOCALHOST:80", Origin("http", "localhost", 80), "http://localhost"),
        ("http://localhost:443", Origin("http", "localhost", 443), "http://localhost:443"),
        ("https://a.example", Origin("https", "a.example", 443), "https://a.example"),
        ("https://[::1]:8443", Origin("https", "[::1]", 8443), "https://[::1]:8443"),
        ("vscode-webview://a1b2", Origin("vscode-webview", "a1b2", None), "vscode-webview://a1b2"),
        ("app://x:5", Origin("app", "x", 5), "app://x:5"),
    ],
)
def test_an_origin_has_one_spelling(text: str, origin: Origin, shown: str) -> None:
    assert parse_origin(text) == origin
    assert str(origin) == shown
    assert parse_origin(shown) == origin


@for_each(
    "text",
    [
        *("", "null", "*", "http", "http:", "http:/a", "http://", "://a", "//a", "a", "a:80"),
        *("http://a/", "http://a/b", "http://a?b", "http://a b", "http://a,http://b", "http://a."),
        *(
            "http://a http://b",
            "http://u@a",
            "1http://a",
            "ht tp://a",
            "\u212attp://a",
            "http:://a",
        ),
        *("blob:http://a", "http://http://a", "http://a:", "http://\u212a", "h\u0131://a"),
    ],
)
def test_malformed_origin_is_not_parsed(text: str) -> None:
    assert parse_origin(text) is None


def test_a_hostile_host_takes_no_longer_than_its_length() -> None:
    texts = ["a." * 30_000, "a" * 60_000, "[" * 60_000, "a-" * 100 + "!", ":" * 60_000]
    work = cpu_s(lambda: [parse_authority(each) for each in texts * 100])
    assert work < 20 * calibration_s()


def test_a_repr_shows_no_secret() -> None:
    secret = "Bearer CANARYCANARY"
    assert "CANARY" not in repr(Authority(secret, 1)) + repr(Origin(secret, secret, 1))
    assert repr(Authority("h", 1)) == "Authority(['h', 1])"
    assert repr(Origin("http", "h", 1)) == "Origin(['http', 'h', 1])"
