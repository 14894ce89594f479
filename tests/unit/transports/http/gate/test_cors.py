"""CORS: what a response tells a page, and the answers to preflights."""

from __future__ import annotations

import re
from typing import Any

from tests.rigs.http_endpoint import request
from trunkline.transports.http.endpoint.endpoint import MCP_CORS
from trunkline.transports.http.gate import cors as module
from trunkline.transports.http.gate.cors import Cors, CorsPolicy

PAGES = ("https://page.example:443", "http://localhost:3000")


def cors(*origins: str) -> Cors:
    made = Cors(origins)
    made.add(CorsPolicy(*MCP_CORS))
    return made


def preflight(
    origin: str | None,
    headers: str | None = None,
    method: str = "OPTIONS",
    made: Cors | None = None,
) -> Any:
    extra = {"access-control-request-method": "POST"}
    if headers is not None:
        extra["access-control-request-headers"] = headers
    return (made or cors(*PAGES)).preflight(request(method, extra=extra, origin=origin))


def test_a_response_names_the_exact_origin_and_no_other() -> None:
    gate = cors(*PAGES)
    for origin in (b"https://page.example", b"http://localhost:3000"):
        assert gate.headers(request(origin=origin.decode())) == (
            (b"access-control-allow-origin", origin),
            (
                b"access-control-expose-headers",
                b"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After",
            ),
            (b"vary", b"Origin"),
        )
    for other in (
        *(None, "null", "*", "", "http://page.example", "https://page.example:443"),
        *(
            "https://PAGE.example",
            "https://page.example.",
            "http://localhost",
            "https://x.page.example",
        ),
        *("https://page.example ", "https://page.example,http://localhost:3000"),
    ):
        assert gate.headers(request(origin=other)) == ((b"vary", b"Origin"),)


def test_a_preflight_is_answered_with_what_a_page_may_send() -> None:
    assert preflight("https://page.example") == (
        204,
        (
            (b"access-control-allow-origin", b"https://page.example"),
            (b"access-control-allow-methods", b"POST, GET, DELETE"),
            (
                b"access-control-allow-headers",
                b"Content-Type, Accept, Authorization, DPoP, Mcp-Session-Id, MCP-Protocol-Version, "
                b"Last-Event-ID, Mcp-Method, Mcp-Name",
            ),
            (b"access-control-max-age", b"600"),
            (b"vary", b"Origin, Access-Control-Request-Headers"),
        ),
    )


def test_a_preflight_echoes_parameter_headers_alone() -> None:
    asked = (
        "x-evil, mcp-param-Region,Mcp-Param-a.b , mcp-param-, mcp-param-é, cookie, mcp-param-a b"
    )
    extra = [("access-control-request-method", "POST"), ("access-control-request-headers", asked)]
    given = request("OPTIONS", origin="https://page.example")
    given.headers += [(name.encode(), value.encode()) for name, value in extra]
    given.headers.append((b"access-control-request-headers", b"mcp-param-x"))
    found = cors(*PAGES).preflight(given)
    assert found is not None
    names = dict(found[1])[b"access-control-allow-headers"]
    assert names.endswith(b"Mcp-Method, Mcp-Name, mcp-param-Region, Mcp-Param-a.b, mcp-param-x")
    many = ", ".join(f"mcp-param-{each}" for each in range(1000))
    found = preflight("https://page.example", many)
    names = dict(found[1])[b"access-control-allow-headers"]
    assert names.count(b"mcp-param-") == module.MAX_ECHOED_HEADERS


def test_what_is_not_a_preflight_of_an_allowed_page_is_not_answered() -> None:
    assert preflight(None) is None
    for other in ("null", "https://evil.example", "http://localhost", "https://page.example:443"):
        assert preflight(other) is None
    for method in ("POST", "GET", "options"):
        assert preflight("https://page.example", method=method) is None
    assert cors(*PAGES).preflight(request("OPTIONS", origin="https://page.example")) is None


def test_no_answer_allows_every_origin_or_credentials() -> None:
    found = preflight("https://page.example")[1]
    headers = (*found, *cors(*PAGES).headers(request(origin="https://page.example")))
    assert not any(name == b"access-control-allow-credentials" for name, _ in headers)
    assert not any(b"*" in value for _, value in headers)


def test_a_page_may_use_what_any_of_the_protocols_has() -> None:
    made = cors("https://page.example")
    made.add(
        CorsPolicy(
            (b"POST", b"PUT"), (b"Accept", b"X-Version"), (b"X-Cost",), re.compile(rb"x-own-[a-z]+")
        )
    )
    found = dict(made.headers(request(origin="https://page.example")))
    assert found[b"access-control-expose-headers"] == (
        b"Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After, X-Cost"
    )
    asked = "mcp-param-a, x-own-b, x-other"
    answer = dict(preflight("https://page.example", asked, made=made)[1])
    assert answer[b"access-control-allow-methods"] == b"POST, GET, DELETE, PUT"
    assert answer[b"access-control-allow-headers"].endswith(
        b"Mcp-Method, Mcp-Name, X-Version, mcp-param-a, x-own-b"
    )
