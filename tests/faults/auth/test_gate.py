"""The gate of a protected server, byte by byte: what a stranger gets, on every route."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.faults.auth.issuing import ANN, AUDIENCE, FIRST, auth
from tests.faults.http.serving import (
    Response,
    Served,
    Session,
    call,
    make_app,
    serving,
    single,
    single_headers,
    text_of,
)
from tests.faults.http.test_websocket import got, knock, opened, text, tool
from tests.rigs.messages import META
from trunkline import HttpSettings
from trunkline.auth.challenge import parse_challenges

WELL_KNOWN = "/.well-known/oauth-protected-resource"
METADATA = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
TOKEN = FIRST.token(sub="canary-subject")
EXPIRED = FIRST.token(lifetime=-100)
BODY = call("tools/call", name="note", arguments={"name": "not to be served"}, _meta=META)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    app, journal = make_app()
    settings = HttpSettings(old_sse=True, websocket=True, cors=["https://app.example.org"])
    with serving(app, journal, http=settings, auth=auth(scopes=["files:read"])) as found:
        yield found


def bearer(token: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {token}")]


def challenge(response: Response) -> dict[str, str]:
    value = response.header("www-authenticate")
    assert value is not None, response
    (found,) = parse_challenges([value])
    return dict(found.parameters)


ROUTES = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("PUT", "/mcp"),
    ("HEAD", "/mcp"),
    ("PATCH", "/mcp/"),
    ("GET", "/sse"),
    ("POST", "/sse"),
    ("POST", "/messages?session_id=x"),
    ("GET", "/messages"),
]


@pytest.mark.parametrize(("method", "target"), ROUTES)
@pytest.mark.parametrize("token", ["", EXPIRED, "unknown", "a.b.c", TOKEN[:-4] + "AAAA"])
def test_unauthenticated_requests_get_the_same_answer_on_every_route(
    served: Served, method: str, target: str, token: str
) -> None:
    """Neither methods, nor media types, nor sessions are told before the caller is known."""
    headers = [] if not token else bearer(token)
    with served.connect() as wire:
        data = wire.head(method, target, headers)
        answer = wire.ask(data, is_head=method == "HEAD")
        expected = wire.ask(wire.head("GET", "/mcp", headers))
    assert answer.status == 401
    assert answer.head.partition(b"date:")[2][40:] == expected.head.partition(b"date:")[2][40:]
    if method != "HEAD":
        assert answer.body == expected.body
    found = challenge(answer)
    assert found.pop("resource_metadata") == METADATA
    assert found.pop("scope") == "files:read"
    assert ("error" in found) == bool(token)
    assert answer.header("cache-control") == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        [("Content-Type", "text/plain")],
        [("Accept", "text/html")],
        [("Mcp-Session-Id", "x")],
        [("MCP-Protocol-Version", "1999-01-01")],
        [("Last-Event-ID", "1-1")],
    ],
)
def test_unauthenticated_bad_request_gets_401_without_details(
    served: Served, headers: list[tuple[str, str]]
) -> None:
    with served.connect() as wire:
        assert wire.ask(wire.post(BODY, headers)).status == 401
    with served.connect() as wire:
        assert wire.ask(wire.post(BODY, [*headers, *bearer(EXPIRED)])).status == 401
    with served.connect() as wire:
        known = wire.ask(wire.post(BODY, [*headers, *ANN.headers()]))
        assert known.status in (400, 404, 406, 415)


def test_a_body_without_a_credential_is_not_read(served: Served) -> None:
    with served.connect() as wire:
        given = [("Content-Type", "application/json"), ("Content-Length", "1000000")]
        answer = wire.ask(wire.head("POST", "/mcp", given))
        assert answer.status == 401
        assert answer.header("connection") == "close"


def test_a_malformed_header_is_400_and_two_are_too(served: Served) -> None:
    for headers in (
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer a b")],
        [*bearer(TOKEN), *bearer(TOKEN)],
    ):
        with served.connect() as wire:
            assert wire.ask(wire.post(BODY, headers)).status == 400


def test_a_token_elsewhere_than_in_the_header_is_not_read(served: Served) -> None:
    with served.connect() as wire:
        for target in (f"/mcp?access_token={TOKEN}", f"/sse?access_token={TOKEN}"):
            assert wire.ask(wire.head("GET", target)).status == 401
    with served.connect() as wire:
        form = f"access_token={TOKEN}".encode()
        kind = [("Content-Type", "application/x-www-form-urlencoded")]
        assert wire.ask(wire.post(form, kind)).status == 401
    with served.connect() as wire:
        message = {**BODY, "auth": f"Bearer {TOKEN}", "access_token": TOKEN}
        assert wire.ask(wire.post(message, [("Cookie", f"token={TOKEN}")])).status == 401


def test_a_token_for_another_server_is_refused(served: Served) -> None:
    for token in (
        FIRST.token(aud="https://other.example.org/mcp"),
        FIRST.token(aud=AUDIENCE + "/"),
        FIRST.token(aud=[]),
        FIRST.token(iss="https://evil.example.org"),
    ):
        with served.connect() as wire:
            answer = wire.ask(wire.post(BODY, bearer(token)))
            assert challenge(answer)["error"] == "invalid_token"


def test_the_same_head_is_decided_each_time(served: Served) -> None:
    """A connection that repeats its head is not admitted by what was decided before."""
    revoked: list[str] = []

    class Revocable:
        schemes = ("bearer",)
        authorization_servers = scopes_supported = dpop_algorithms = ()

        def verify(self, credential: object) -> object:
            from trunkline.auth import InvalidCredential, Principal

            if revoked:
                raise InvalidCredential("revoked")
            return Principal(subject="ann")

    with serving(auth=Revocable()) as found, found.connect() as wire:
        data = single(wire, "whoami", headers=bearer("opaque"))
        assert [wire.ask(data).status for _ in range(5)] == [200] * 5
        revoked.append("opaque")
        assert wire.ask(data).status == 401


@pytest.mark.parametrize("path", [WELL_KNOWN, f"{WELL_KNOWN}/mcp"])
def test_the_metadata_is_public_and_may_be_read_by_any_page(served: Served, path: str) -> None:
    page = [("Origin", "https://anywhere.example")]
    with served.connect() as wire:
        answer = wire.ask(wire.head("GET", path, page))
        assert answer.status == 200
        assert answer.header("content-type") == "application/json"
        assert answer.header("access-control-allow-origin") == "*"
        assert answer.json["resource"] == AUDIENCE
        assert answer.json["scopes_supported"] == ["files:read"]
        assert "offline_access" not in json.dumps(answer.json)
        preflight = wire.ask(
            wire.head(
                "OPTIONS",
                path,
                [
                    *page,
                    ("Access-Control-Request-Method", "GET"),
                    ("Access-Control-Request-Headers", "mcp-protocol-version"),
                ],
            )
        )
        assert preflight.status == 204
        assert preflight.header("access-control-allow-origin") == "*"
        assert preflight.header("access-control-allow-headers") == "*"
        assert wire.ask(wire.head("HEAD", path), is_head=True).status == 200
        refused = wire.ask(wire.head("POST", path, [("Content-Length", "0")]))
        assert refused.status == 405


def test_other_paths_and_health_checks_are_as_without_authentication(served: Served) -> None:
    with served.connect() as wire:
        for path in ("/", "/nothing", f"{WELL_KNOWN}/other", "/.well-known/openid-configuration"):
            assert wire.ask(wire.head("GET", path)).status == 404
        for path in ("/healthz", "/readyz"):
            assert wire.ask(wire.head("GET", path)).body == b"ok\n"
        # Host and Origin are checked before the credential.
        evil = [("Host", "evil.example"), *ANN.headers()]
        assert wire.ask(wire.head("GET", "/mcp", evil)).status == 421


def test_preflight_needs_no_token_and_the_challenge_is_readable_by_scripts(served: Served) -> None:
    page = [("Origin", "https://app.example.org")]
    with served.connect() as wire:
        asked = [*page, ("Access-Control-Request-Method", "POST")]
        assert wire.ask(wire.head("OPTIONS", "/mcp", asked)).status == 204
        answer = wire.ask(wire.head("GET", "/mcp", page))
        assert answer.status == 401
        assert answer.header("access-control-allow-origin") == "https://app.example.org"
        assert "WWW-Authenticate" in (answer.header("access-control-expose-headers") or "")


def test_a_websocket_passes_the_same_gate(served: Served) -> None:
    for headers in ([], bearer(EXPIRED), bearer("unknown")):
        answer = knock(served, *headers)
        assert answer.status == 401
        assert challenge(answer)["resource_metadata"] == METADATA
    # What else is wrong with a handshake is not told before.
    assert knock(served, Sec_WebSocket_Version="7").status == 401
    assert knock(served, *ANN.headers(), Sec_WebSocket_Version="7").status == 426
    with opened(served, ANN.headers()) as wire:
        wire.send(text(tool("whoami", 1)))
        assert text_of(got(wire).json) == "ann"


def test_nothing_was_served_to_strangers_and_the_token_is_in_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app, journal = make_app()
    settings = HttpSettings(access_log=True)
    with (
        caplog.at_level(0),
        serving(app, journal, http=settings, auth=auth()) as served,
        served.connect() as wire,
    ):
        for token in (EXPIRED, TOKEN[:-4] + "AAAA", "unknown-canary"):
            assert wire.ask(single(wire, "note", headers=bearer(token), name="x")).status == 401
        session = Session(served, bearer(TOKEN))
        assert text_of(session.call("whoami").json) == "canary-subject"
        assert wire.ask(single(wire, "whoami", headers=bearer(TOKEN))).status == 200
        assert served.on_loop(lambda: "x" not in journal.begun)
    for token in (TOKEN, EXPIRED, "unknown-canary"):
        assert token not in caplog.text
        assert token.rpartition(".")[2] not in caplog.text


def test_repeated_bad_tokens_are_rate_limited_by_address() -> None:
    with serving(http=HttpSettings(rate=0.001, burst=3), auth=auth()) as served:
        statuses = []
        with served.connect() as wire:
            for n in range(5):
                statuses.append(wire.ask(single(wire, "whoami", headers=bearer(f"t{n}"))).status)
            assert statuses == [401, 401, 401, 429, 429]
            # A caller that is known has a bucket of its own.
            assert wire.ask(single(wire, "whoami", headers=ANN.headers())).status == 200


def test_authenticated_bad_request_gets_its_own_status(served: Served) -> None:
    with served.connect() as wire:
        assert wire.ask(wire.head("PUT", "/mcp", ANN.headers())).status == 405
        assert wire.ask(wire.head("GET", "/messages", ANN.headers())).status == 405
        message = call("no/such", _meta=META)
        answer = wire.ask(wire.post(message, [*single_headers("no/such"), *ANN.headers()]))
        assert answer.status == 404
