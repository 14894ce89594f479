"""Where the tenant of a caller comes from, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.auth import Principal
from trunkline.auth.server.tenants import TenantLimits, TenantRefused, Tenants
from trunkline.transports.http.request import HttpRequest

ANN = Principal(subject="ann", claims={"org": "acme", "orgs": ["acme", "bell"]})


def request(path: str = "/mcp", *tenants: str) -> HttpRequest:
    headers = [(b"x-tenant-id", each.encode("latin-1")) for each in tenants]
    return HttpRequest("POST", path, "", "1.1", headers, "192.0.2.1", False)


def placed(
    tenants: Tenants, given: HttpRequest | None = None, *, proxy: bool = False, who: Principal = ANN
) -> Any:
    try:
        return tenants.of_request(who, given or request(), lambda: proxy).tenant
    except TenantRefused as error:
        return 400 if error.is_malformed else 403


def test_a_claim_of_the_verified_token_names_the_tenant() -> None:
    assert placed(Tenants(claim="org")) == "acme"
    assert placed(Tenants(claim="other")) == 403
    assert placed(Tenants(claim="other", required=False)) is None
    assert placed(Tenants(claim="orgs")) == 400
    assert placed(Tenants()) == 403
    assert placed(Tenants(), who=ANN.with_tenant("bell")) == "bell"


def test_a_header_counts_only_if_a_trusted_proxy_sent_it() -> None:
    tenants = Tenants(header="X-Tenant-Id")
    assert placed(tenants, request("/mcp", "bell"), proxy=True) == "bell"
    assert placed(tenants, request("/mcp", "bell")) == 403
    assert placed(tenants, request("/mcp", "a", "b"), proxy=True) == 400
    # A tenant that the credential names does not take the place of the header.
    assert placed(tenants, request("/mcp"), proxy=True, who=ANN.with_tenant("acme")) == 403
    assert placed(Tenants(header="x-tenant-id", required=False), request("/mcp", "bell")) is None


@pytest.mark.parametrize("name", ["", " ", "a b", "a,b", "x" * 129, "\xe4", "a\x7f"])
def test_a_malformed_name_is_refused(name: str) -> None:
    assert placed(Tenants(header="x-tenant-id"), request("/mcp", name), proxy=True) == 400
    with pytest.raises(ValueError, match="cannot name a tenant"):
        Tenants(tools={name: ["x"]})


@pytest.mark.parametrize(
    "options",
    [{"known": "acme"}, {"known": b"acme"}, {"known": 7}, {"named_in_metrics": "all"}],
)
def test_options_of_a_wrong_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Tenants(**options)


def test_a_burst_is_a_number() -> None:
    with pytest.raises(ValueError, match="burst is an integer from 1"):
        TenantLimits(rate=5, burst=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("mount", ["", "/api", "/api/v1"])
def test_a_path_is_that_of_the_application_wherever_it_is_mounted(mount: str) -> None:
    class Mounted(HttpRequest):
        @property
        def mount(self) -> str:
            return mount

    given = Mounted("POST", "/acme/mcp", "", "1.1", [], "192.0.2.1", False)
    acme = ANN.with_tenant("acme")
    assert placed(Tenants(path="/{tenant}/mcp"), given, who=acme) == "acme"
    assert placed(Tenants(path="/{tenant}/mcp"), given, who=ANN.with_tenant("bell")) == 403


def test_a_path_names_a_tenant_that_the_credential_names_too() -> None:
    tenants = Tenants(path="/t/{tenant}/mcp")
    acme = ANN.with_tenant("acme")
    assert placed(tenants, request("/t/acme/mcp"), who=acme) == "acme"
    assert placed(tenants, request("/t/acme/mcp/"), who=acme) == "acme"
    assert placed(tenants, request("/t/bell/mcp"), who=acme) == 403
    assert placed(tenants, request("/t/acme/mcp")) == 403
    listed = Tenants(path="/t/{tenant}/mcp", members="orgs")
    assert placed(listed, request("/t/bell/mcp")) == "bell"
    assert placed(listed, request("/t/core/mcp")) == 403
    for path in ("/mcp", "/t//mcp", "/t/a/b/mcp", "/t/%61/mcp", "/T/acme/mcp", "/t/acme"):
        assert not tenants.matches(path), path
    assert tenants.matches("/t/acme/mcp")


def test_members_decide_wherever_the_tenant_is_named() -> None:
    tenants = Tenants(header="x-tenant-id", members="orgs")
    assert placed(tenants, request("/mcp", "bell"), proxy=True) == "bell"
    assert placed(tenants, request("/mcp", "core"), proxy=True) == 403
    for claim in ("acme bell", ["acme"], None, {"acme": 1}, 7):
        who = Principal(subject="ann", claims={"orgs": claim, "org": "acme"})
        expected = "acme" if claim in ("acme bell", ["acme"]) else 403
        assert placed(Tenants(claim="org", members="orgs"), who=who) == expected


def test_only_known_tenants_are_served() -> None:
    assert placed(Tenants(claim="org", known={"acme"})) == "acme"
    assert placed(Tenants(claim="org", known={"bell"})) == 403


def test_a_certificate_names_the_tenant_of_a_connection() -> None:
    subject = ((("organizationName", "acme"),), (("commonName", "ann"),))
    tenants = Tenants(certificate="organizationName")
    assert tenants.of_peer(ANN, {"subject": subject}).tenant == "acme"
    with pytest.raises(TenantRefused):
        tenants.of_peer(ANN, {"subject": ()})
    with pytest.raises(TenantRefused):
        tenants.of_peer(ANN, None)


def test_a_tenant_that_a_client_chose_counts_only_if_its_claims_allow_it() -> None:
    only = Tenants(claim="org")
    assert only.named_by_client(ANN, "acme").tenant == "acme"
    for named in ("bell", "", 7, None):
        with pytest.raises(TenantRefused):
            only.named_by_client(ANN, named)
    member = Tenants(claim="org", members="orgs")
    assert member.named_by_client(ANN, "bell").tenant == "bell"
    with pytest.raises(TenantRefused):
        member.named_by_client(ANN, "core")


def test_the_tenant_is_part_of_what_a_principal_is() -> None:
    assert ANN.with_tenant("acme").key != ANN.with_tenant("bell").key != ANN.key


MISTAKES: dict[str, dict[str, Any]] = {
    "two sources": {"claim": "org", "header": "x-tenant-id"},
    "an empty claim": {"claim": ""},
    "a header with a space": {"header": "x tenant"},
    "a path without a variable": {"path": "/mcp"},
    "a relative path": {"path": "{tenant}/mcp"},
    "one tool as a text": {"tools": {"acme": "search"}},
    "limits of another type": {"limits": {"rate": 1}},
    "limits by name of another type": {"limits_of": {"acme": 5}},
    "a list of tools": {"tools": ["search"]},
}


@pytest.mark.parametrize("options", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_when_tenants_are_made(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"[Tt]enant"):
        Tenants(**options)


@pytest.mark.parametrize(
    "limits", [{"in_flight": 0}, {"bytes": -1}, {"rate": 0}, {"tasks": True}, {"sessions": 1.5}]
)
def test_limits_are_above_zero(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="TenantLimits"):
        TenantLimits(**limits)
