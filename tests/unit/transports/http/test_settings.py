"""Settings of an HTTP server: what is refused, where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.canaries import CANARY
from trunkline import HttpLimits, HttpSettings


def test_the_defaults_admit_the_least() -> None:
    plain = HttpSettings()
    assert (plain.hosts, plain.origins, plain.cors, plain.trusted_proxies) == ((), (), (), ())
    assert (plain.public_url, plain.rate, plain.metrics) == (None,) * 3
    assert (plain.require_origin, plain.old_sse, plain.access_log) == (False,) * 3
    assert plain.websocket is False
    assert plain.burst == 20


def test_lists_become_tuples() -> None:
    made = HttpSettings(hosts=["a.example"], origins=["https://a.example"], cors=["http://b"])
    assert made.hosts == ("a.example",)
    assert made.origins == ("https://a.example",)
    assert made.cors == ("http://b",)
    assert made == HttpSettings(
        hosts=("a.example",), origins=("https://a.example",), cors=("http://b",)
    )
    assert HttpSettings(trusted_proxies=["unix"]).trusted_proxies == ("unix",)


@pytest.mark.parametrize(
    "right",
    [
        {"hosts": ["localhost", "mcp.example.org:8443", "[::1]", "[2001:DB8::1]:80", "10.0.0.1"]},
        {"origins": ["https://app.example.org", "http://localhost:3000", "vscode-webview://a1-b"]},
        {"cors": ["https://app.example.org:8443"]},
        {"public_url": "https://mcp.example.org"},
        {"public_url": "http://mcp.example.org:8080/tools/mcp"},
        {"trusted_proxies": ["10.0.0.0/8", "::1", "fd00::/8", "127.0.0.1", "unix"]},
        {"rate": 0.5, "burst": 1},
        {"rate": 100},
        {"metrics": "127.0.0.1:9100"},
        {"metrics": "[::1]:9100"},
    ],
)
def test_valid_settings_are_accepted(right: dict[str, Any]) -> None:
    made = HttpSettings(**right)
    for name, value in right.items():
        assert getattr(made, name) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"hosts": "mcp.example.org"}, "hosts is a list of texts"),
        ({"hosts": b"mcp.example.org"}, "hosts is a list of texts"),
        ({"hosts": None}, "hosts is a list of texts"),
        ({"hosts": {"a"}}, "hosts is a list of texts"),
        ({"hosts": [b"a"]}, "hosts is a list of texts"),
        ({"hosts": ["*"]}, "without wildcards"),
        ({"hosts": ["*.example.org"]}, "without wildcards"),
        ({"hosts": [""]}, "hosts has names"),
        ({"hosts": ["https://mcp.example.org"]}, "hosts has names"),
        ({"hosts": ["mcp.example.org/"]}, "hosts has names"),
        ({"hosts": ["mcp.example.org."]}, "hosts has names"),
        ({"hosts": ["mcp.example.org:"]}, "hosts has names"),
        ({"hosts": ["mcp.example.org:65536"]}, "hosts has names"),
        ({"hosts": ["::1"]}, "hosts has names"),
        ({"hosts": ["mcp.exämple.org"]}, "hosts has names"),
        ({"origins": "https://a"}, "origins is a list of texts"),
        ({"origins": ["*"]}, "origins has origins such as"),
        ({"origins": ["null"]}, "origins has origins such as"),
        ({"origins": ["app.example.org"]}, "origins has origins such as"),
        ({"origins": ["https://app.example.org/"]}, "origins has origins such as"),
        ({"origins": ["https://*.example.org"]}, "origins has origins such as"),
        ({"origins": ["https://"]}, "origins has origins such as"),
        ({"cors": ["*"]}, "cors has origins such as"),
        ({"cors": ["null"]}, "cors has origins such as"),
        ({"public_url": "mcp.example.org"}, "public_url is a URL"),
        ({"public_url": "ftp://mcp.example.org"}, "public_url is a URL"),
        ({"public_url": "https:///mcp"}, "public_url is a URL"),
        ({"public_url": "https://mcp.example.org/mcp?x=1"}, "public_url is a URL"),
        ({"public_url": "https://mcp.example.org/#x"}, "public_url is a URL"),
        ({"public_url": "https://mcp.example.org/a b"}, "public_url is a URL"),
        ({"public_url": "https://mcp.example.org/a\nb"}, "public_url is a URL"),
        ({"public_url": "https://mcp.example.org?x"}, "public_url is a URL"),
        ({"public_url": 7}, "public_url is a URL"),
        ({"trusted_proxies": "10.0.0.1"}, "trusted_proxies is a list of texts"),
        ({"trusted_proxies": ["*"]}, "trusted_proxies has addresses"),
        ({"trusted_proxies": ["proxy.example.org"]}, "trusted_proxies has addresses"),
        ({"trusted_proxies": ["10.0.0.1/8"]}, "has host bits set"),
        ({"require_origin": 1}, "require_origin is a bool"),
        ({"old_sse": "yes"}, "old_sse is a bool"),
        ({"websocket": 1}, "websocket is a bool"),
        ({"access_log": None}, "access_log is a bool"),
        ({"rate": 0}, "rate is requests per second"),
        ({"rate": -1.0}, "rate is requests per second"),
        ({"rate": float("nan")}, "rate is requests per second"),
        ({"rate": float("inf")}, "rate is requests per second"),
        ({"rate": True}, "rate is requests per second"),
        ({"burst": 0}, "burst is an integer above 0"),
        ({"burst": 1.5}, "burst is an integer above 0"),
        ({"metrics": "9100"}, "needs a host and a port"),
        ({"metrics": "localhost:port"}, "needs a port"),
        ({"metrics": 9100}, "metrics is HOST:PORT"),
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        HttpSettings(**wrong)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    url = f"https://me:{CANARY}@mcp.example.org"
    for wrong in ({"public_url": url}, {"origins": [url]}, {"hosts": [url]}):
        with pytest.raises(ValueError) as caught:
            HttpSettings(**wrong)  # type: ignore[arg-type]
        assert CANARY not in str(caught.value)


def test_settings_do_not_change() -> None:
    with pytest.raises(AttributeError):
        HttpSettings().hosts = ("a",)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        HttpLimits().sessions = 1  # type: ignore[misc]
    assert len({HttpSettings(hosts=["a"]), HttpSettings(hosts=("a",))}) == 1


@pytest.mark.parametrize("name", HttpLimits.__struct_fields__)
def test_a_limit_is_a_number_above_zero(name: str) -> None:
    default = getattr(HttpLimits(), name)
    assert getattr(HttpLimits(**{name: 7}), name) == 7
    for wrong in (0, -1, None, "1", True, float("nan"), float("inf"), 2**63):
        with pytest.raises(ValueError, match=rf"HttpLimits\.{name}"):
            HttpLimits(**{name: wrong})
    if isinstance(default, float):
        assert getattr(HttpLimits(**{name: 0.5}), name) == 0.5
    else:
        with pytest.raises(ValueError, match="integer"):
            HttpLimits(**{name: 1.5})
