"""Admission: which Host and Origin pass, what proxies report, and rates."""

from __future__ import annotations

import inspect
import sys
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.cases import for_each
from trunkline import HttpSettings
from trunkline.transports.http.gate import admission as module
from trunkline.transports.http.gate.admission import Admission
from trunkline.transports.http.request import HttpRequest

LOCAL = [("127.0.0.1", 8000)]
ELSEWHERE = [("0.0.0.0", 8000)]


def request(
    host: str | None = "localhost:8000",
    origin: str | None = None,
    *headers: tuple[str, str],
    method: str = "POST",
    client: str = "127.0.0.1",
    is_secure: bool = False,
) -> HttpRequest:
    known = [None if each is None else each.encode("latin-1") for each in (host, origin)]
    listed = [(b"host", known[0]), (b"origin", known[1])]
    raw = [(name, value) for name, value in listed if value is not None]
    raw += [(name.encode(), value.encode()) for name, value in headers]
    return HttpRequest(method, "/mcp", "", "1.1", raw, client, is_secure, *known)


def admission(bound: Any = LOCAL, *, is_unix: bool = False, **settings: Any) -> Admission:
    return Admission(HttpSettings(**settings), bound, is_unix=is_unix)


def status(gate: Admission, *args: Any, **more: Any) -> int | None:
    """Return the status of a refusal, the same each time, or None."""
    first, again = (gate.check(request(*args, **more)) for _ in range(2))
    assert first == again
    return None if first is None else first.status


# Host


@for_each("bound", [LOCAL, [("::1", 1)], [("localhost", 0), ("127.0.0.1", 1), ("::1", 1)], []])
def test_on_a_loopback_address_the_loopback_names_pass_with_any_port(bound: Any) -> None:
    gate = admission(bound)
    for host in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST", "[0:0:0:0:0:0:0:1]"):
        for port in ("", ":8000", ":80", ":65535"):
            assert status(gate, f"{host}{port}") is None


@for_each(
    "host",
    [
        *("evil.example", "evil.example:8000", "localhost.evil.example", "evil-localhost"),
        *("localhost.", "localhost.:8000", "127.0.0.1.", "127.0.0.1.evil.example", "127.0.0.2"),
        *("127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "192.168.0.1"),
        *("user@localhost", "localhost@evil.example", "localhost:8000@evil.example", "localhost:"),
        *("localhost:x", "localhost:99999", "localhost/", "localhost evil", "localhost,evil"),
        *("", " ", ":8000", "::1", "[::1", "l\xf6calhost", "xn--localhost", "*", "localhost\tx"),
    ],
)
def test_any_other_host_is_misdirected(host: str) -> None:
    for gate in (admission(), admission([]), admission([], is_unix=True)):
        assert status(gate, host) == 421
        assert status(gate, host, "http://localhost:8000") == 421


def test_a_request_without_a_host_is_bad() -> None:
    assert status(admission(), None) == 400
    assert status(admission(trusted_proxies=["127.0.0.1"]), None) == 400
    forwarded = request(None, None, ("x-forwarded-host", "localhost"))
    refusal = admission(trusted_proxies=["127.0.0.1"]).check(forwarded)
    assert refusal is not None
    assert refusal.status == 400


def test_the_bound_address_passes_and_its_neighbours_do_not() -> None:
    gate = admission([("127.0.0.5", 8000)])
    assert status(gate, "127.0.0.5:8000") is None
    assert status(gate, "127.0.0.6:8000") == 421
    assert status(admission(), "127.0.0.5:8000") == 421


def test_hosts_pass_beside_the_loopback_names() -> None:
    gate = admission(hosts=["MCP.example.org", "other.example.org:8443", "[2001:db8::1]"])
    for host in ("mcp.example.org", "mcp.Example.org:1", "other.example.org:8443", "localhost"):
        assert status(gate, host) is None
    assert status(gate, "[2001:DB8:0::1]:80") is None
    for host in ("example.org", "x.mcp.example.org", "other.example.org", "other.example.org:80"):
        assert status(gate, host) == 421


def test_a_host_without_a_port_has_the_default_one() -> None:
    settings = HttpSettings(hosts=["a.example:443", "b.example:80", "b.example:8080"])
    plain, secure = (Admission(settings, LOCAL, is_secure=each) for each in (False, True))
    # A proxy may be the end of TLS.
    assert [status(plain, "a.example"), status(plain, "b.example")] == [None, None]
    assert [status(secure, "a.example"), status(secure, "b.example")] == [None, 421]
    assert [status(secure, f"b.example:{port}") for port in (80, 8080, 81)] == [None, None, 421]


def test_beyond_loopback_only_the_given_names_pass() -> None:
    gate = admission(ELSEWHERE, hosts=["mcp.example.org"])
    assert status(gate, "mcp.example.org:8000") is None
    for host in ("localhost", "127.0.0.1:8000", "[::1]", "0.0.0.0:8000"):
        assert status(gate, host) == 421
    gate = admission(ELSEWHERE, hosts=["mcp.example.org", "localhost"])
    assert status(gate, "localhost:8000") is None


def test_the_host_of_the_public_url_passes_with_any_port() -> None:
    for url in ("https://mcp.example.org", "https://mcp.example.org:8443/tools/mcp"):
        gate = admission(ELSEWHERE, public_url=url)
        for host in ("mcp.example.org", "mcp.example.org:8443", "mcp.example.org:8000"):
            assert status(gate, host) is None
            assert status(gate, host, f"https://{host}") is None
        assert status(gate, "example.org") == 421


# What needs names


WILDCARDS = (
    "0.0.0.0",
    "::",
    "0",
    "0x0",
    "",
    "::ffff:0.0.0.0",
    "0.0",
    "00",
    "::0",
    "0:0:0:0:0:0:0:0",
)
OTHERS = ("192.168.0.1", "10.0.0.1", "169.254.0.1", "2001:db8::1", "fe80::1", "::ffff:10.0.0.1")
NAMES = ("myhost", "localhost.localdomain", "localhost.", "mcp.example.org", "127.0.0.1.example")


@for_each("host", [*WILDCARDS, *OTHERS, *NAMES])
def test_an_address_of_other_machines_needs_names(host: str) -> None:
    for bound in ([(host, 8000)], [("127.0.0.1", 8000), (host, 8000)]):
        with pytest.raises(ValueError) as caught:
            admission(bound)
        assert "HttpSettings(hosts=[...])" in str(caught.value)
        assert "--allowed-host" in str(caught.value)
        assert "HttpSettings(public_url=...)" in str(caught.value)
        # Origins and proxies are not names of this server.
        with pytest.raises(ValueError):
            admission(bound, origins=["https://a.example"], trusted_proxies=["10.0.0.1"])
        for names in ({"hosts": ["a.example"]}, {"public_url": "https://a.example/mcp"}):
            gate = admission(bound, **names)
            assert status(gate, "a.example") is None
            assert status(gate, "localhost") == 421


@for_each("host", ["127.0.0.1", "127.255.0.1", "::1", "localhost", "LOCALHOST", "::ffff:127.0.0.1"])
def test_a_loopback_address_needs_none(host: str) -> None:
    assert status(admission([(host, 8000)]), "localhost") is None


def test_a_unix_socket_has_the_loopback_names() -> None:
    gate = admission([], is_unix=True, hosts=["mcp.example.org"])
    for host in ("localhost", "127.0.0.1", "mcp.example.org:80"):
        assert status(gate, host, client="") is None
    assert status(gate, "evil.example", client="") == 421
    assert status(admission([("/run/x.sock", 0)], is_unix=True), "localhost") is None


# Origin


@for_each(
    "origin",
    [
        *(
            "http://localhost",
            "http://localhost:3000",
            "https://localhost",
            "http://127.0.0.1:8000",
        ),
        *("http://[::1]:8000", "HTTP://LOCALHOST", "https://a.example", "http://a.example:9"),
        *("https://b.example:8443", "https://page.example", "https://page.example:443"),
        *("vscode-webview://abc", "https://reader.example", "https://public.example"),
    ],
)
def test_an_origin_of_this_server_or_of_the_settings_passes(origin: str) -> None:
    gate = admission(
        hosts=["a.example", "b.example:8443"],
        origins=["https://page.example", "vscode-webview://abc"],
        cors=["https://reader.example"],
        public_url="https://public.example/mcp",
    )
    assert status(gate, "localhost:8000", origin) is None


@for_each(
    "origin",
    [
        *(
            "null",
            "",
            " ",
            "*",
            "http://evil.example",
            "https://localhost.evil.example",
            "localhost",
        ),
        *("http://localhost.", "http://localhost/", "http://localhost@evil.example", "//localhost"),
        *("http://evil.example http://localhost", "http://localhost,http://evil.example"),
        *("http://localhost http://localhost", "file://", "ftp://localhost", "ws://localhost"),
        *("http://page.example", "https://page.example:8443", "https://x.page.example"),
        *("https://page.example.evil.example", "https://b.example", "vscode-webview://abcd"),
        *(
            "http://l\xf6calhost",
            "chrome-extension://localhost",
            "http://localhost:x",
            "http://127.1",
        ),
    ],
)
def test_any_other_origin_is_forbidden(origin: str) -> None:
    gate = admission(
        hosts=["b.example:8443"], origins=["https://page.example", "vscode-webview://abc"]
    )
    assert status(gate, "localhost:8000", origin) == 403
    for method in ("GET", "DELETE", "OPTIONS", "HEAD"):
        assert status(gate, "localhost:8000", origin, method=method) == 403


def test_a_request_without_an_origin_passes_unless_one_is_required() -> None:
    assert status(admission()) is None
    gate = admission(require_origin=True)
    assert status(gate) == 403
    assert status(gate, "localhost", "http://localhost") is None


def test_origin_must_have_the_port_of_the_allowed_host() -> None:
    gate = admission(ELSEWHERE, hosts=["a.example:8443"])
    assert status(gate, "a.example:8443", "https://a.example:8443") is None
    assert status(gate, "a.example:8443", "https://a.example") == 403
    gate = admission(ELSEWHERE, hosts=["a.example:443"])
    assert status(gate, "a.example", "https://a.example") is None
    assert status(gate, "a.example", "http://a.example") == 403


def test_a_refusal_repeats_nothing_of_the_request() -> None:
    gate = admission()
    for each in (request("CANARY"), request("localhost", "http://CANARY")):
        refusal = gate.check(each)
        assert refusal is not None
        assert "CANARY" not in str(refusal)
        assert "127.0.0.1" not in refusal.message


# Cost


def calls_of(gate: Admission, given: HttpRequest) -> list[str]:
    """Return the Python and C functions that one check calls, beside `check` itself."""
    found: list[str] = []

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code is not code:
            found.append(frame.f_code.co_qualname)
        elif event == "c_call" and arg is not sys.setprofile:
            found.append(arg.__qualname__)

    code: CodeType = Admission.check.__code__
    sys.setprofile(note)
    try:
        gate.check(given)
    finally:
        sys.setprofile(None)
    return found


def test_an_ordinary_request_calls_nothing() -> None:
    gate = admission(hosts=["a.example"], cors=["https://page.example"], rate=1.0)
    for each in (request(), request("a.example"), request("localhost", "https://page.example")):
        assert calls_of(gate, each) != []
        assert calls_of(gate, each) == []


def test_accepted_spellings_are_remembered_up_to_a_bound_and_refused_ones_are_not() -> None:
    gate = admission()
    for each in range(5 * module.MAX_REMEMBERED):
        assert status(gate, f"localhost:{each}", f"http://localhost:{each}") is None
        assert status(gate, f"evil{each}.example") == 421
        assert len(gate._known_hosts) <= module.MAX_REMEMBERED
        assert len(gate._known_origins) <= module.MAX_REMEMBERED
    assert not any(b"evil" in each for each in gate._known_hosts)


def test_forwarded_and_rate_limit_are_not_imported_at_run_time() -> None:
    source = inspect.getsource(module)
    top = source[: source.index("class Admission")]
    runtime = top.replace(top[top.index("if TYPE_CHECKING") : top.index("__all__")], "")
    assert "forwarded import" not in runtime
    assert "rate_limit import" not in runtime


# Proxies


PROXIED = {"trusted_proxies": ["10.0.0.0/8"], "hosts": ["mcp.example.org"]}


def test_a_trusted_proxy_reports_the_host_that_counts() -> None:
    gate = admission(ELSEWHERE, **PROXIED)

    def through(client: str, host: str, *headers: tuple[str, str]) -> int | None:
        return status(gate, host, None, *headers, client=client)

    allowed, evil = "mcp.example.org", "evil.example"
    for name, form in (("x-forwarded-host", "{}"), ("forwarded", 'for=1.2.3.4;host="{}"')):
        good, bad = (name, form.format(f"{allowed}:443")), (name, form.format(evil))
        assert through("10.0.0.1", "backend:8000", good) is None
        assert through("10.0.0.1", allowed, bad) == 421
        # Of any other client the headers say nothing.
        assert through("192.0.2.1", "backend:8000", good) == 421
        assert through("192.0.2.1", allowed, bad) is None
    assert through("10.0.0.1", allowed) is None
    assert through("10.0.0.1", "backend:8000") == 421
    assert through("10.0.0.1", allowed, ("x-forwarded-host", f"{allowed}, {evil}")) == 421
    assert through("10.0.0.1", allowed, ("x-forwarded-host", f"{evil}, {allowed}")) == 421
    good, bad = ("x-forwarded-host", allowed), ("forwarded", f"for=1.2.3.4;host={evil}")
    assert through("10.0.0.1", allowed, good, bad) == 421
    assert through("10.0.0.1", allowed, ("forwarded", "for=")) == 400


def test_without_trusted_proxies_their_headers_change_nothing() -> None:
    headers = (
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=1.2.3.4;host=evil.example;proto=https"),
    )
    gate = admission()
    given = request("localhost", None, *headers)
    assert gate.check(given) is None
    assert gate.client_of(given) == "127.0.0.1"
    assert gate.scheme_of(given) == "http"
    assert status(gate, "evil.example", None, ("x-forwarded-host", "localhost")) == 421


def test_the_client_and_the_scheme_are_those_before_the_proxies() -> None:
    gate = admission(ELSEWHERE, **PROXIED)
    headers = (("x-forwarded-for", "6.6.6.6, 1.2.3.4, 10.0.0.9"), ("x-forwarded-proto", "https"))
    given = request("mcp.example.org", None, *headers, client="10.0.0.1")
    assert gate.client_of(given) == "1.2.3.4"
    assert gate.scheme_of(given) == "https"
    given = request("mcp.example.org", None, *headers, client="192.0.2.1")
    assert gate.client_of(given) == "192.0.2.1"
    assert gate.scheme_of(given) == "http"
    assert gate.scheme_of(request(client="10.0.0.1", is_secure=True)) == "https"


def test_a_proxy_on_a_unix_socket_is_trusted_by_name() -> None:
    headers = (("x-forwarded-for", "1.2.3.4"), ("x-forwarded-host", "mcp.example.org"))
    given = request("localhost", None, *headers, client="")
    trusting = admission([], is_unix=True, hosts=["mcp.example.org"], trusted_proxies=["unix"])
    assert trusting.client_of(given) == "1.2.3.4"
    assert trusting.check(given) is None
    plain = admission([], is_unix=True, trusted_proxies=["10.0.0.1"])
    assert plain.client_of(given) == ""


# Rate


def test_the_rate_is_off_unless_it_is_set() -> None:
    gate = admission()
    assert [gate.wait("a", 0.0) for _ in range(1000)] == [None] * 1000
    gate = admission(rate=2.0, burst=2)
    assert [gate.wait("a", 0.0) for _ in range(3)] == [None, None, 0.5]
    assert gate.wait("b", 0.0) is None
    assert gate.wait("a", 0.5) is None
