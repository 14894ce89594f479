"""DPoP at a listener: a proof is for the URL that the client used, whatever stands in between."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.auth.issuing import AUDIENCE, FIRST
from tests.faults.http.serving import Response, Served, call, make_app, serving
from tests.faults.http.serving import single_headers as head_of
from tests.rigs.messages import META
from trunkline import HttpSettings
from trunkline.auth import AuthSettings, Dpop, SigningKey, Tenants
from trunkline.auth.challenge import parse_challenges
from trunkline.auth.dpop import make_proof

KEY = SigningKey.generate("ES256")
TOKEN = FIRST.token(cnf={"jkt": KEY.thumbprint})


def dpop(**options: Any) -> AuthSettings:
    return AuthSettings(verifiers=[Dpop(FIRST.verifier())], resource=AUDIENCE, **options)


def send(
    served: Served,
    url: str,
    headers: list[tuple[str, str]] | None = None,
    *,
    target: str = "/mcp",
    proofs: tuple[str, ...] | None = None,
    scheme: str = "DPoP",
) -> Response:
    with served.connect() as wire:
        if proofs is None:
            here = url.replace("HERE", f"127.0.0.1:{served.port}")
            proofs = (make_proof(KEY, "POST", here, token=TOKEN),)
        message = call("tools/call", name="whoami", arguments={}, _meta=META)
        given = [
            *head_of("tools/call", "whoami"),
            ("Authorization", f"{scheme} {TOKEN}"),
            *(("DPoP", each) for each in proofs),
            *(headers or []),
        ]
        return wire.ask(wire.post(message, given, target))


def error_of(answer: Response) -> str | None:
    values = [value for name, value in answer.headers if name == "www-authenticate"]
    (found,) = parse_challenges(values)
    assert found.scheme == "dpop"
    return found.error


def test_without_a_proxy_the_url_is_that_of_the_host_header() -> None:
    app, journal = make_app()
    with serving(app, journal, auth=dpop()) as served:
        assert send(served, "http://HERE/mcp").status == 200
        assert send(served, "http://HERE/mcp?a=b#c", target="/mcp?d=e").status == 200
        assert send(served, "http://HERE/%6Dcp").status == 200
        for url in ("https://HERE/mcp", "http://HERE/mcp/", "http://HERE/", "http://localhost/mcp"):
            assert error_of(send(served, url)) == "invalid_dpop_proof"
        # What a client says of itself does not count.
        headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "localhost")]
        assert send(served, "https://localhost/mcp", headers).status == 401


@pytest.mark.parametrize("name", ["x", "forwarded"])
def test_behind_a_trusted_proxy_the_url_is_the_one_that_the_proxy_reports(name: str) -> None:
    app, journal = make_app()
    settings = HttpSettings(trusted_proxies=["127.0.0.1"], hosts=["mcp.example.org", "127.0.0.1"])
    headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "mcp.example.org")]
    if name == "forwarded":
        headers = [("Forwarded", "for=192.0.2.1;proto=https;host=mcp.example.org")]
    with serving(app, journal, http=settings, auth=dpop()) as served:
        assert send(served, "https://mcp.example.org/mcp", headers).status == 200
        for url in ("http://HERE/mcp", "https://HERE/mcp", "http://mcp.example.org/mcp"):
            assert error_of(send(served, url, headers)) == "invalid_dpop_proof"


def test_the_public_url_holds_whatever_the_request_says() -> None:
    app, journal = make_app()
    settings = HttpSettings(public_url="https://mcp.example.org/files/mcp")
    tenants = Tenants(path="/{tenant}/mcp")
    with serving(app, journal, http=settings, auth=dpop(tenants=tenants)) as served:
        path = "/acme/mcp"
        assert send(served, f"https://mcp.example.org/files{path}", target=path).status == 200
        for url in (f"http://HERE{path}", "https://mcp.example.org/files/mcp"):
            assert error_of(send(served, url, target=path)) == "invalid_dpop_proof"


def test_a_proof_is_accepted_once_and_alone() -> None:
    app, journal = make_app()
    with serving(app, journal, auth=dpop()) as served:
        url = f"http://127.0.0.1:{served.port}/mcp"
        one, two = (make_proof(KEY, "POST", url, token=TOKEN) for _ in range(2))
        stolen = make_proof(SigningKey.generate("ES256"), "POST", url, token=TOKEN)
        other = make_proof(KEY, "POST", url, token=FIRST.token())
        get = make_proof(KEY, "GET", url, token=TOKEN)
        assert send(served, url, proofs=(one,)).status == 200
        for proofs in ((one,), (), (two, two), (f"{two}, {two}",), (stolen,), (other,), (get,)):
            answer = send(served, url, proofs=proofs)
            assert answer.status == 401
            assert error_of(answer) in ("invalid_dpop_proof", "invalid_token")
        # A bound token is of no use as a bearer token, with a proof or without.
        for proofs in ((two,), ()):
            assert send(served, url, proofs=proofs, scheme="Bearer").status == 401
        assert send(served, url, proofs=(two,)).status == 200
