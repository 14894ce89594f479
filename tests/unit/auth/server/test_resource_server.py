"""The resource server: credentials of requests, challenges, metadata."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.canaries import CANARY
from tests.cases import for_each
from tests.rigs.http_endpoint import request
from trunkline import Server
from trunkline.auth import (
    ApiKeys,
    AuthSettings,
    Chain,
    Credential,
    Dpop,
    Fixed,
    InvalidCredential,
    JwtBearer,
    PeerUid,
    Principal,
    Tenants,
    VerifierUnavailable,
)
from trunkline.auth.challenge import Challenge, parse_challenges
from trunkline.auth.server.resource_server import ResourceServer, resource_server_of
from trunkline.auth.server.settings import settings_of
from trunkline.transports.http.response import Refusal

URL = "https://mcp.example.org/mcp"
METADATA = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
ANN = Principal(issuer="https://login.example.org", subject="ann", scopes={"files:read"})


class Tokens:
    """Knows one token, refuses one, and cannot decide about one."""

    scopes_supported = ("files:read", "offline_access")

    def __init__(self, *schemes: str, waits: bool = False, issuer: str | None = ANN.issuer) -> None:
        self.schemes = schemes or ("bearer",)
        self.authorization_servers = () if issuer is None else (issuer,)
        self.dpop_algorithms = ("ES256",) if "dpop" in self.schemes else ()
        self.waits = waits
        self.request_with: list[Credential] = []

    def verify(self, credential: Credential) -> Any:
        self.request_with.append(credential)
        if self.waits:
            return self._later(credential.token)
        return self._found(credential.token)

    async def _later(self, token: str) -> Principal | None:
        await asyncio.sleep(0)
        return self._found(token)

    def _found(self, token: str) -> Principal | None:
        if token == "refused":
            raise InvalidCredential("The token has expired")
        if token == "nonce":
            raise InvalidCredential("A nonce", error="use_dpop_nonce", nonce="n-1")
        if token == "down":
            raise VerifierUnavailable("the issuer does not respond", retry_after=2.5)
        if token == "broken":
            raise RuntimeError(CANARY)
        return ANN if token == "ann" else None


def made(*verifiers: Any, **settings: Any) -> ResourceServer:
    given = AuthSettings(verifiers=verifiers or [Tokens()], **settings)
    return resource_server_of(given, path="/mcp", public_url=URL)


def request_with(authorization: str | None = None, **extra: str) -> Any:
    return request(authorization=authorization, extra=extra)


def decide(server: ResourceServer, authorization: str | None = None, **extra: str) -> Any:
    asking = request_with(authorization, **extra)
    refused = server.precheck(asking)
    if refused is not None:
        return refused
    found = server.authenticate(asking)
    if not isinstance(found, Awaitable):
        return found

    async def wait() -> Any:
        return await found

    return asyncio.run(wait())


def challenges(refusal: Refusal) -> list[Any]:
    values = [value.decode() for name, value in refusal.headers if name == b"www-authenticate"]
    return parse_challenges(values)


# -- credentials -----------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("header", ["Bearer ann", "bearer ann", "BEARER   ann"])
def test_a_token_in_the_header_is_a_principal(waits: bool, header: str) -> None:
    verifier = Tokens(waits=waits)
    assert decide(made(verifier), header) is ANN
    assert verifier.request_with[0].scheme == "bearer"


def test_a_decision_without_the_network_is_not_awaited() -> None:
    assert made().authenticate(request_with("Bearer ann")) is ANN


@pytest.mark.parametrize("header", [None, "Basic YTpi", "Digest x", "bearerann"])
def test_a_request_without_a_credential_is_401_without_an_error_code(header: str | None) -> None:
    verifier = Tokens()
    refusal = decide(made(verifier, scopes=["files:read", "files:write"]), header)
    assert refusal.status == 401
    (challenge,) = challenges(refusal)
    assert challenge.scheme == "bearer"
    assert dict(challenge.parameters) == {
        "scope": "files:read files:write",
        "resource_metadata": METADATA,
    }
    assert (b"cache-control", b"no-store") in refusal.headers
    assert verifier.request_with == []


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a,b",
        "Bearer =",
        "Bearer \xe9",
        'Bearer "ann"',
        "Bearer ann\tx",
        "Bearer\tann",
        ": ann",
        "",
    ],
)
def test_a_malformed_header_is_400(header: str) -> None:
    verifier = Tokens()
    refusal = decide(made(verifier), header)
    assert refusal.status == 400
    assert [each.error for each in challenges(refusal)] == ["invalid_request"]
    assert verifier.request_with == []


@pytest.mark.parametrize("token", ["refused", "unknown"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_token_that_is_not_valid_is_401_invalid_token(token: str, waits: bool) -> None:
    refusal = decide(made(Tokens(waits=waits)), f"Bearer {token}")
    assert refusal.status == 401
    (challenge,) = challenges(refusal)
    assert challenge.error == "invalid_token"
    assert challenge.resource_metadata == METADATA
    assert token not in repr(refusal)


@pytest.mark.parametrize("waits", [False, True])
def test_a_verifier_that_cannot_decide_is_503_and_logged_now_and_then(
    waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = made(Tokens(waits=waits))
    for _ in range(3):
        refusal = decide(server, "Bearer down")
        assert refusal.status == 503
        assert (b"retry-after", b"3") in refusal.headers
        assert challenges(refusal) == []
    assert caplog.messages == [
        "credentials cannot be checked, requests get 503: the issuer does not respond"
    ]


@pytest.mark.parametrize("waits", [False, True])
def test_raising_verifier_is_500_without_details(
    waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        refusal = decide(made(Tokens(waits=waits)), "Bearer broken")
    assert refusal.status == 500
    assert CANARY not in repr(refusal)
    assert "cannot be determined" in caplog.text


def test_a_token_in_a_query_or_a_body_is_not_read() -> None:
    verifier = Tokens()
    server = made(verifier)
    asking = request("POST", "/mcp")
    asking.query = "access_token=ann"
    refused = server.precheck(asking)
    assert refused is not None
    assert refused.status == 401
    assert verifier.request_with == []


def test_anonymous_requests_pass_if_no_credential_is_required() -> None:
    server = made(required=False)
    assert decide(server) is None
    assert decide(server, "Bearer ann") is ANN
    # One that is given has to be valid.
    assert decide(server, "Bearer refused").status == 401
    assert decide(server, "Bearer a b").status == 400


def test_a_tenant_that_no_store_could_keep_is_refused() -> None:
    long = ANN.with_tenant("t" * 129)
    refusal = decide(made(lambda _: long))
    assert refusal.status == 401


# -- several verifiers, and functions ----------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
def test_the_first_that_recognises_a_credential_decides(waits: bool) -> None:
    class Strict(Tokens):
        def _found(self, token: str) -> Principal | None:
            if token == "ann":
                raise InvalidCredential("not here")
            return None

    first, second = Tokens(waits=waits), Strict(waits=waits)
    assert decide(made(first, second), "Bearer ann") is ANN
    assert second.request_with == []
    assert decide(made(second, first), "Bearer ann").status == 401
    assert decide(made(second, first), "Bearer unknown").status == 401
    third = Tokens()
    third._found = lambda token: ANN  # type: ignore[method-assign]
    assert decide(made(first, second, third), "Bearer other") is ANN


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_gets_the_request_and_returns_a_principal_or_a_subject(is_async: bool) -> None:
    def who(asking: Any) -> Principal | str | None:
        name = asking.header(b"x-user")
        if name == b"nobody":
            raise PermissionError
        if name == b"wrong":
            return 7  # type: ignore[return-value]
        return None if name is None else ANN if name == b"ann" else str(name, "ascii")

    async def later(asking: Any) -> Principal | str | None:
        return who(asking)

    server = made(later if is_async else who)
    assert decide(server, **{"x-user": "ann"}) is ANN
    assert decide(server, **{"x-user": "bob"}) == Principal(subject="bob")
    # A status of 401 has a challenge; without authorization servers it refers to nothing.
    refusal = decide(server, **{"x-user": "nobody"})
    assert (refusal.status, challenges(refusal)) == (401, [Challenge("bearer")])
    assert decide(server).status == 401
    assert decide(server, **{"x-user": ""}).status == 401
    assert decide(server, **{"x-user": "wrong"}).status == 500
    # A header that is none of ours may be malformed.
    assert decide(server, "Bearer a b", **{"x-user": "bob"}) == Principal(subject="bob")


def test_a_function_beside_a_verifier_may_read_another_header() -> None:
    server = made(Tokens(), lambda asking: asking.header(b"x-user") and "bob")
    assert decide(server, "Bearer ann") is ANN
    assert decide(server, **{"x-user": "b"}) == Principal(subject="bob")
    assert decide(server).status == 401
    assert decide(server, "Bearer a b").status == 400


@pytest.mark.parametrize("given", [7, None, "token", b"x", Tokens, AuthSettings])
def test_auth_of_a_wrong_type_is_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match="auth="):
        settings_of(given)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"verifiers": []}, "no credential would be recognised"),
        ({"required": 1}, "required is a bool"),
        ({"scopes": "a b"}, "list of texts"),
        ({"scopes": ["a b"]}, "has scopes such as"),
        ({"scopes": ["offline_access"]}, "offline_access"),
        ({"scopes_supported": ["offline_access"]}, "offline_access"),
        ({"resource": "https://a.example/?q=1"}, "without user, query"),
        ({"resource_name": 7}, "is a text"),
        ({"authorization_servers": [7]}, "list of texts"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        AuthSettings(**{"verifiers": [Tokens()], **given})


def test_peer_rules_alone_are_not_for_http() -> None:
    with pytest.raises(ValueError, match="Fixed, PeerUid is for standard streams and sockets"):
        made(Fixed("ann"), PeerUid())
    # Beside verifiers they are for other listeners.
    assert decide(made(Fixed("root"), Tokens())).status == 401


# -- challenges --------------------------------------------------------------------------------


def test_each_scheme_has_a_challenge_and_the_error_is_of_the_one_that_was_used() -> None:
    server = made(Tokens("dpop", "bearer"))
    for header, errors in (
        (None, [None, None]),
        ("DPoP refused", ["invalid_token", None]),
        ("Bearer refused", [None, "invalid_token"]),
    ):
        found = challenges(decide(server, header))
        assert [each.scheme for each in found] == ["dpop", "bearer"]
        assert [each.error for each in found] == errors
        assert found[0].parameters["algs"] == "ES256"


def test_a_server_of_bound_tokens_alone_has_no_bearer_challenge() -> None:
    verifier = Tokens("dpop")
    server = made(verifier)
    for header in (None, "Bearer ann"):
        (challenge,) = challenges(decide(server, header))
        assert (challenge.scheme, challenge.error) == ("dpop", None)
    assert verifier.request_with == []


def test_a_nonce_is_sent_with_the_challenge_that_asks_for_it() -> None:
    refusal = decide(made(Tokens("dpop")), "DPoP nonce", dpop="proof")
    assert challenges(refusal)[0].error == "use_dpop_nonce"
    assert (b"dpop-nonce", b"n-1") in refusal.headers


@pytest.mark.parametrize(
    ("public_url", "path", "url"),
    [
        (URL, "/mcp", URL),
        (URL, "/sse", "https://mcp.example.org/sse"),
        ("https://a.example/files/mcp", "/mcp", "https://a.example/files/mcp"),
        ("https://a.example/files/mcp", "/sse", "https://a.example/files/sse"),
        ("https://a.example/files", "/mcp", "https://a.example/files"),
        (None, "/mcp", "http://localhost:8000/mcp"),
    ],
)
def test_a_proof_is_for_the_url_that_the_client_used(
    public_url: str | None, path: str, url: str
) -> None:
    verifier = Tokens("dpop")
    server = resource_server_of(
        verifier, path="/mcp", public_url=public_url, address="http://localhost:8000/mcp"
    )
    asking = request(
        "POST",
        path,
        host="localhost:8000",
        authorization="DPoP ann",
        extra={"dpop": "proof"},
    )
    assert server.authenticate(asking) is ANN
    (credential,) = verifier.request_with
    assert (credential.method, credential.url) == ("POST", url)
    assert credential.proofs == ("proof",)


def test_a_lack_of_scopes_names_all_of_them_and_is_401_to_an_anonymous_caller() -> None:
    server = made()
    (known,) = parse_challenges(
        [
            value.decode()
            for name, value in server.insufficient(frozenset({"b", "a", "offline_access"}), ANN)
            if name == b"www-authenticate"
        ]
    )
    assert dict(known.parameters) == {
        "error": "insufficient_scope",
        "scope": "a b",
        "resource_metadata": METADATA,
    }
    (anonymous,) = parse_challenges([server.insufficient(frozenset({"a"}), None)[0][1].decode()])
    assert anonymous.error is None
    assert anonymous.scopes == {"a"}


# -- metadata ----------------------------------------------------------------------------------

WELL_KNOWN = "/.well-known/oauth-protected-resource"


def test_the_metadata_is_at_the_path_form_and_the_root_form() -> None:
    server = made(
        Tokens("dpop", "bearer"),
        scopes=["files:write"],
        resource_name="Files",
        documentation="https://docs.example.org",
        authorization_servers=["https://other.example.org"],
    )
    found = server.documents("/mcp")
    assert set(found) == {WELL_KNOWN, f"{WELL_KNOWN}/mcp"}
    assert json.loads(found[WELL_KNOWN]) == {
        "resource": URL,
        "authorization_servers": [ANN.issuer, "https://other.example.org"],
        "scopes_supported": ["files:write", "files:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Files",
        "resource_documentation": "https://docs.example.org",
        "dpop_signing_alg_values_supported": ["ES256"],
    }


def test_the_metadata_of_bound_tokens_says_that_they_are_required() -> None:
    document = json.loads(made(Tokens("dpop")).documents("/mcp")[WELL_KNOWN])
    assert document["dpop_bound_access_tokens_required"] is True


def test_the_metadata_is_also_where_a_proxy_forwards_it_to() -> None:
    settings = AuthSettings(verifiers=[Tokens()])
    server = resource_server_of(settings, path="/mcp", public_url="https://a.example/files/mcp")
    assert set(server.documents("/mcp")) == {
        WELL_KNOWN,
        f"{WELL_KNOWN}/mcp",
        f"{WELL_KNOWN}/files/mcp",
    }
    assert challenges(decide(server))[0].resource_metadata == (
        "https://a.example/.well-known/oauth-protected-resource/files/mcp"
    )


def test_a_server_without_an_authorization_server_has_no_metadata() -> None:
    server = made(Tokens(issuer=None))
    assert server.documents("/mcp") == {}
    (challenge,) = challenges(decide(server))
    assert dict(challenge.parameters) == {}


def test_a_server_that_does_not_know_its_url_says_so() -> None:
    with pytest.raises(ValueError, match="public_url"):
        resource_server_of(Tokens(), path="/mcp")
    assert resource_server_of(Tokens(issuer=None), path="/mcp").documents("/mcp") == {}
    given = AuthSettings(verifiers=[Tokens()], resource=URL)
    assert resource_server_of(given, path="/mcp", address="http://127.0.0.1:1/mcp").resource == URL


def jwt(audience: str | list[str], issuer: str = "https://login.example.org") -> JwtBearer:
    return JwtBearer(issuer=issuer, audience=audience)


@for_each(
    "auth",
    [
        jwt(URL),
        [jwt(URL), ApiKeys([])],
        [jwt(URL), jwt(URL, "https://two.example.org")],
        Chain([Dpop(jwt(URL)), jwt(URL, "https://two.example.org")]),
    ],
)
def test_the_only_audience_is_the_url_of_an_application_that_knows_no_other(auth: Any) -> None:
    assert Server("files", auth=auth).asgi() is not None
    server = resource_server_of(auth, path="/mcp")
    assert server.resource == URL
    (document,) = {*server.documents("/mcp").values()}
    assert json.loads(document)["resource"] == URL
    # What is known of the listener comes first.
    other = "https://files.example.org/mcp"
    assert resource_server_of(auth, path="/mcp", public_url=other).resource == other
    assert resource_server_of(auth, path="/mcp", address=other).resource == other


@for_each(
    "auth",
    [
        jwt("files"),
        jwt("urn:files"),
        jwt([URL, "https://files.example.org/mcp"]),
        [jwt(URL), jwt("https://files.example.org/mcp")],
        jwt("https://mcp.example.org/mcp?tenant=acme"),
    ],
)
def test_another_audience_does_not_tell_the_url_of_an_application(auth: Any) -> None:
    with pytest.raises(ValueError, match="only audience"):
        Server("files", auth=auth).asgi()


def test_reprs_name_kinds_alone() -> None:
    server = made(Tokens())
    assert repr(server) == f"<ResourceServer '{URL}', <AuthSettings of Tokens, required>>"


# -- before a body is read -------------------------------------------------------------------


class OfflineTokens(Tokens):
    """Tokens that are known without the network, but for one."""

    def verify_offline(self, credential: Credential) -> Principal | None:
        if credential.token == "later":
            raise VerifierUnavailable("it has to be looked up")
        return self._found(credential.token)


def head_status(server: ResourceServer, authorization: str | None = None) -> int | None:
    found = server.check_head(request_with(authorization))
    return None if found is None else found.status


@pytest.mark.parametrize("required", [False, True])
def test_credential_is_checked_by_the_head_as_it_is_with_the_body(required: bool) -> None:
    server = made(OfflineTokens(), required=required)
    assert head_status(server, "Bearer ann") is None
    assert head_status(server, "Bearer later") is None
    for header in ("Bearer refused", "Bearer unknown"):
        by_head = server.check_head(request_with(header))
        assert by_head is not None
        assert (by_head.status, by_head.headers) == (401, decide(server, header).headers)
    # A request without a credential is decided on before.
    assert head_status(server) is None
    assert head_status(server, "Bearer a b") is None
    assert head_status(server, "Basic x") is None


def test_nonce_of_a_challenge_is_sent_by_the_head() -> None:
    refusal = made(OfflineTokens("dpop")).check_head(request_with("DPoP nonce"))
    assert refusal is not None
    assert (b"dpop-nonce", b"n-1") in refusal.headers


def test_credential_that_only_a_later_recogniser_may_know_is_not_refused_by_the_head() -> None:
    later = [Tokens(), lambda request: None]
    for each in later:
        server = made(OfflineTokens(), each)
        assert head_status(server, "Bearer unknown") is None
        # The first one that recognises it has decided.
        assert head_status(server, "Bearer refused") == 401
        assert head_status(made(each, OfflineTokens()), "Bearer refused") is None


def test_tenant_is_checked_by_the_head() -> None:
    tenants = Tenants(path="/t/{tenant}/mcp", members="tenants")
    server = made(OfflineTokens(), tenants=tenants)
    refusal = server.check_head(request_with("Bearer ann"))
    assert refusal is not None
    assert refusal.status == decide(server, "Bearer ann").status == 403


def test_failure_of_a_verifier_by_the_head_is_500_without_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusal = made(OfflineTokens()).check_head(request_with("Bearer broken"))
    assert refusal is not None
    assert refusal.status == 500
    assert CANARY not in refusal.message
    assert "cannot be determined" in caplog.text
