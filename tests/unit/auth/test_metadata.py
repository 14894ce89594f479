from __future__ import annotations

from tests.cases import for_each
from trunkline.auth.metadata import covers, issuer_urls, resource_urls

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


@for_each(
    ("server", "expected"),
    [
        ("https://a.example/public/mcp", [f"{RESOURCE}/public/mcp", RESOURCE]),
        ("https://a.example/mcp/", [f"{RESOURCE}/mcp", RESOURCE]),
        ("https://a.example/", [RESOURCE]),
        ("https://a.example", [RESOURCE]),
        ("https://a.example/mcp?x=1", [f"{RESOURCE}/mcp", RESOURCE]),
    ],
)
def test_metadata_of_a_resource_is_looked_for_at_its_path_and_then_at_the_root(
    server: str, expected: list[str]
) -> None:
    assert resource_urls(server) == [f"https://a.example{each}" for each in expected]


@for_each(
    ("issuer", "expected"),
    [
        ("https://a.example", [SERVER, OPENID]),
        ("https://a.example/", [SERVER, OPENID]),
        ("https://a.example/t", [f"{SERVER}/t", f"{OPENID}/t", f"/t{OPENID}"]),
        ("https://a.example/t/u/", [f"{SERVER}/t/u", f"{OPENID}/t/u", f"/t/u{OPENID}"]),
    ],
)
def test_metadata_of_an_issuer_is_looked_for_in_the_order_of_the_specification(
    issuer: str, expected: list[str]
) -> None:
    assert issuer_urls(issuer) == [f"https://a.example{each}" for each in expected]


@for_each(
    ("resource", "server", "is_covered"),
    [
        ("https://a.example/mcp", "https://a.example/mcp", True),
        ("https://a.example/mcp/", "https://a.example/mcp", True),
        ("https://a.example", "https://a.example/mcp", True),
        ("https://a.example/", "https://a.example/mcp", True),
        ("https://A.example:443/mcp", "https://a.example/mcp", True),
        ("https://a.example/mcp", "https://a.example/mcp/more", True),
        ("https://a.example/mcp", "https://a.example/mcp2", False),
        ("https://a.example/mcp/more", "https://a.example/mcp", False),
        ("http://a.example/mcp", "https://a.example/mcp", False),
        ("https://a.example:8443/mcp", "https://a.example/mcp", False),
        ("https://evil.example/mcp", "https://a.example/mcp", False),
        ("https://a.example.evil.example/mcp", "https://a.example/mcp", False),
        ("https://a.example/mcp#x", "https://a.example/mcp", False),
        ("https://a.example/mcp?x", "https://a.example/mcp", False),
        ("https://a.example:x/mcp", "https://a.example/mcp", False),
        ("urn:a", "https://a.example/mcp", False),
        ("", "https://a.example/mcp", False),
    ],
)
def test_a_resource_covers_what_is_at_or_below_its_path(
    resource: str, server: str, is_covered: bool
) -> None:
    assert covers(resource, server) is is_covered
