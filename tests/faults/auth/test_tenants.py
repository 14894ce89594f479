"""Tenants over HTTP: where they are named, that they cannot be chosen, and their limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.auth.issuing import FIRST
from tests.faults.http.serving import (
    Response,
    Served,
    Session,
    call,
    make_app,
    serving,
    single,
    single_headers,
)
from tests.rigs.messages import META, initialize_params
from trunkline import Context, HttpSettings, Server
from trunkline.auth import AuthSettings, JsonLinesAudit, Principal, TenantLimits, Tenants


def by_claims(request: Any) -> Principal | None:
    """Return a principal whose claims are in a header: the test has verified nothing."""
    given = request.header(b"x-claims")
    if given is None:
        return None
    claims = json.loads(given)
    return Principal(subject=claims.pop("sub", "ann"), claims=claims, tenant=claims.get("tid"))


def claims(**given: Any) -> list[tuple[str, str]]:
    return [("X-Claims", json.dumps(given))]


def placing_app() -> Server:
    app, _ = make_app()

    @app.tool
    async def place(ctx: Context) -> str:
        """Return the tenant."""
        return str(ctx.tenant)

    return app


def auth(tenants: Tenants, **options: Any) -> AuthSettings:
    return AuthSettings(verifiers=[by_claims], tenants=tenants, **options)


def place(served: Served, headers: Any, target: str = "/mcp") -> Response:
    message = call("tools/call", 1, name="place", arguments={}, _meta=META)
    with served.connect() as wire:
        given = [*single_headers("tools/call", "place"), *headers]
        return wire.ask(wire.post(message, given, target))


def tenant_of(answer: Response) -> str:
    found: str = answer.json["result"]["content"][0]["text"]
    return found


def test_a_claim_places_a_request_and_a_header_of_the_client_does_not() -> None:
    with serving(placing_app(), auth=auth(Tenants(claim="org"))) as served:
        spoof = [("X-Tenant-Id", "bell")]
        assert tenant_of(place(served, claims(org="acme") + spoof)) == "acme"
        assert place(served, claims() + spoof).status == 403
        assert place(served, spoof).status == 401


def test_a_token_without_the_claim_of_its_tenant_is_403_and_never_reaches_a_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bare = [("Authorization", f"Bearer {FIRST.token(tenant=None)}")]
    ours = [("Authorization", f"Bearer {FIRST.token()}")]
    with serving(placing_app(), auth=FIRST.verifier()) as served:
        for _ in range(3):
            answer = place(served, bare)
            assert answer.status == 403
            # A challenge would make the client log in again, for a token without it as well.
            assert "www-authenticate" not in {name.lower() for name, _ in answer.headers}
            assert answer.json["error"]["message"] == (
                "The credential of the request names no tenant"
            )
        assert tenant_of(place(served, ours)) == "acme"
    (logged,) = [each.getMessage() for each in caplog.records if "403" in each.getMessage()]
    assert logged == (
        "request refused with 403: the token has no claim 'tenant'; tenant_required=False of the "
        "verifier admits it"
    )
    with serving(placing_app(), auth=FIRST.verifier(tenant_required=False)) as served:
        assert tenant_of(place(served, bare)) == "None"


def test_a_header_of_a_proxy_that_is_not_trusted_selects_nothing() -> None:
    tenants = Tenants(header="x-tenant-id", required=False)
    named = [*claims(), ("X-Tenant-Id", "acme")]
    with serving(placing_app(), auth=auth(tenants)) as served:
        assert tenant_of(place(served, named)) == "None"
    trusting = HttpSettings(trusted_proxies=["127.0.0.1"])
    with serving(placing_app(), auth=auth(tenants), http=trusting) as served:
        assert tenant_of(place(served, named)) == "acme"
        assert tenant_of(place(served, claims())) == "None"
        assert place(served, [*named, ("X-Tenant-Id", "bell")]).status == 400
    elsewhere = HttpSettings(trusted_proxies=["192.0.2.0/24"])
    with serving(placing_app(), auth=auth(tenants), http=elsewhere) as served:
        assert tenant_of(place(served, named)) == "None"


def test_a_path_is_served_for_each_tenant_of_the_credential() -> None:
    tenants = Tenants(path="/{tenant}/mcp", members="orgs")
    with serving(placing_app(), auth=auth(tenants)) as served:
        ann = claims(orgs=["acme", "bell"])
        assert tenant_of(place(served, ann, "/acme/mcp")) == "acme"
        assert tenant_of(place(served, ann, "/bell/mcp")) == "bell"
        assert place(served, ann, "/core/mcp").status == 403
        assert place(served, ann, "/mcp").status == 403
        assert place(served, ann, "/acme/other").status == 404
        assert place(served, [], "/acme/mcp").status == 401


def test_a_session_belongs_to_its_tenant() -> None:
    with serving(placing_app(), auth=auth(Tenants(claim="org"))) as served:
        session = Session(served, claims(org="acme"))
        assert session.call("place").status == 200
        session.extra = claims(org="bell")
        assert session.call("place").status == 404


def test_a_tenant_has_its_sessions_and_others_open_theirs() -> None:
    limits, app = TenantLimits(sessions=2), placing_app()
    with serving(app, auth=auth(Tenants(claim="org", limits=limits))) as served:
        first = Session(served, claims(org="acme"))
        Session(served, claims(org="acme", sub="bob"))
        with served.connect() as wire:
            params = initialize_params()
            refused = wire.ask(wire.post(call("initialize", 0, **params), claims(org="acme")))
            assert (refused.status, refused.header("retry-after")) == (503, "10")
        Session(served, claims(org="bell"))
        with served.connect() as wire:
            assert wire.ask(wire.head("DELETE", "/mcp", first.headers)).status == 204
        tenancy = app._core.runtime.tenancy
        assert tenancy is not None
        served.until(lambda: tenancy.use("acme").sessions == 1)
        Session(served, claims(org="acme"))


def test_a_rate_of_a_tenant_is_429_for_all_of_its_principals() -> None:
    limits = TenantLimits(rate=0.001, burst=2)
    with serving(placing_app(), auth=auth(Tenants(claim="org", limits=limits))) as served:
        for subject in ("ann", "bob"):
            assert place(served, claims(org="acme", sub=subject)).status == 200
        refused = place(served, claims(org="acme", sub="carl"))
        assert refused.status == 429
        assert int(refused.header("retry-after") or 0) > 100
        assert place(served, claims(org="bell")).status == 200


def test_each_request_of_a_batch_counts_for_the_rate_of_its_tenant() -> None:
    # `initialize` is a request too.
    limits = TenantLimits(rate=0.001, burst=3)
    with serving(placing_app(), auth=auth(Tenants(claim="org", limits=limits))) as served:
        session = Session(served, claims(org="acme"), revision="2025-03-26")
        answers = session.ask([call("ping", n) for n in range(4)]).json
        assert [each["id"] for each in answers] == [0, 1, 2, 3]
        assert ["result" in each for each in answers] == [True, True, False, False]
        assert answers[2]["error"]["data"]["retryAfterMs"] > 1000


def test_calls_in_flight_of_a_tenant_are_bounded_over_its_principals() -> None:
    app, journal = make_app()
    limits = TenantLimits(in_flight=2)
    settings = auth(Tenants(claim="org", limits=limits))
    with serving(app, journal, auth=settings) as served:
        wires = [served.connect() for _ in range(3)]
        try:
            for number, wire in enumerate(wires[:2]):
                who = claims(org="acme", sub=f"user{number}")
                wire.send(single(wire, "held", headers=who, key="k"))
            served.until(lambda: len(journal.begun) == 2)
            busy = wires[2].ask(single(wires[2], "echo", headers=claims(org="acme"), text="x"))
            assert busy.status == 503
            assert "retryAfterMs" in busy.json["error"]["data"]
            other = wires[2].ask(single(wires[2], "echo", headers=claims(org="bell"), text="x"))
            assert other.status == 200
            served.open_gate("k")
            assert [wire.response().status for wire in wires[:2]] == [200, 200]
        finally:
            for wire in wires:
                wire.close()


def test_the_tools_of_a_tenant_are_listed_privately() -> None:
    tenants = Tenants(claim="org", tools={"acme": ["echo"]})
    with serving(placing_app(), auth=auth(tenants)) as served:

        def names(org: str) -> list[str]:
            message = call("tools/list", 1, _meta=META)
            with served.connect() as wire:
                given = [*single_headers("tools/list"), *claims(org=org)]
                result = wire.ask(wire.post(message, given)).json["result"]
            assert result["cacheScope"] == "private"
            return [each["name"] for each in result["tools"]]

        assert names("acme") == ["echo"]
        assert "place" in names("bell")
        assert len(names("bell")) > 3
        refused = place(served, claims(org="acme")).json["error"]
        assert (refused["code"], refused["message"]) == (-32602, "Unknown tool: place")


# -- audit -----------------------------------------------------------------------------------


def test_each_request_of_an_authenticated_caller_is_one_line_of_audit(tmp_path: Path) -> None:
    app, journal = make_app()

    @app.tool(scopes=["never"])
    async def guarded() -> str:
        return "x"

    @app.tool
    async def fails() -> str:
        raise ValueError("canary")

    audit = JsonLinesAudit(tmp_path / "audit.jsonl")
    settings = auth(Tenants(claim="org"), audit=audit, required=False)
    secret = "s3cret-canary"
    with serving(app, journal, auth=settings) as served:
        ann = claims(org="acme")
        with served.connect() as wire:
            wire.ask(single(wire, "echo", 1, ann, text=secret))
            wire.ask(single(wire, "guarded", 2, ann))
            wire.ask(single(wire, f"no-{secret}", 3, ann))
            wire.ask(single(wire, "fails", 4, ann))
            wire.ask(single(wire, "echo", 5, text="anonymous"))
        with served.connect() as wire:
            wire.send(single(wire, "held", 6, ann, key="gone"))
            served.until(lambda: journal.begun.count("gone") == 1)
        served.until(lambda: journal.cancelled == ["gone"])
    assert audit.flush()
    audit.close()
    text = audit.path.read_text()
    assert "canary" not in text
    assert audit.path.stat().st_mode & 0o777 == 0o600
    found = [json.loads(each) for each in text.splitlines()]
    assert [(each["request_id"], each.get("name"), each["outcome"]) for each in found] == [
        (1, "echo", "ok"),
        (2, "guarded", "refused"),
        (3, None, "error"),
        (4, "fails", "error"),
        (6, "held", "cancelled"),
    ]
    assert [each.get("code") for each in found] == [None, 403, -32602, None, None]
    first = found[0]
    assert first["subject"] == "ann"
    assert first["tenant"] == "acme"
    assert (first["method"], first["transport"], first["address"]) == (
        "tools/call",
        "http",
        "127.0.0.1",
    )
    assert len(first["principal_key"]) == 64
    assert first["time"].endswith("Z")


def test_a_hook_that_fails_is_logged_once_and_fails_no_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def hook(event: Any) -> None:
        raise OSError("token=s3cret-canary")

    settings = AuthSettings(verifiers=[by_claims], audit=hook)
    with serving(placing_app(), auth=settings) as served:
        for _ in range(3):
            assert place(served, claims()).status == 200
    failed = [each for each in caplog.records if "audit hook failed" in each.getMessage()]
    assert len(failed) == 1
    assert "canary" not in caplog.text
