"""Grants without a user, over real sockets: what they send, and what they do not."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cases import for_each
from tests.rigs.protected_server import ProtectedServer, protected_server
from trunkline.auth import (
    Bearer,
    ClientCredentials,
    FileTokens,
    SigningKey,
    TokenExchange,
    WorkloadIdentity,
)
from trunkline.auth.client.storage.token_store import EARLY_S, StoredLogin
from trunkline.auth.jose import parse_token
from trunkline.errors import AuthorizationFailed

CANARY = "CANARY-c41d"
PLATFORM = "https://platform.example.org"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def run(work: Callable[[ProtectedServer], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with protected_server(**options) as where:
            await work(where)

    asyncio.run(asyncio.wait_for(main(), 60))


async def subject(where: ProtectedServer, auth: Any) -> str:
    async with where.client(auth) as client:
        return (await client.call_tool("subject")).text


# -- client credentials ------------------------------------------------------------------------


@for_each("method", ["client_secret_basic", "client_secret_post"])
def test_a_secret_is_sent_as_the_server_asks(method: str) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY, auth_method=method)
        where.login.metadata_changes["token_endpoint_auth_methods_supported"] = [method]
        auth = ClientCredentials("reports", client_secret=CANARY, scopes=["files:read"])
        assert await subject(where, auth) == "reports files:read"
        (form,) = where.forms()
        assert form["scope"] == "files:read"
        assert form["resource"] == where.url
        assert ("client_secret" in form) == (method == "client_secret_post")

    run(work)


def test_special_characters_of_basic_are_encoded() -> None:
    async def work(where: ProtectedServer) -> None:
        name, secret = "a:b c", "p%40:s +/=&"
        where.login.client(name, client_secret=secret)
        assert await subject(where, ClientCredentials(name, client_secret=secret)) == name + " "

    run(work, scopes=())


def test_a_key_signs_a_short_assertion_for_the_issuer() -> None:
    async def work(where: ProtectedServer) -> None:
        key = SigningKey.generate("ES256")
        where.login.client("reports", key=key)
        auth = ClientCredentials("reports", private_key=key.pem, algorithm="ES256")
        assert (await subject(where, auth)).startswith("reports")
        (form,) = where.forms()
        claims = parse_token(form["client_assertion"]).claims
        assert claims["iss"] == claims["sub"] == "reports"
        assert claims["aud"] == where.login.issuer
        assert 0 < claims["exp"] - time.time() <= 60
        assert claims["jti"]

    run(work)


def test_each_request_has_an_assertion_of_its_own() -> None:
    async def work(where: ProtectedServer) -> None:
        key = SigningKey.generate("EdDSA")
        where.login.client("reports", key=key)
        auth = ClientCredentials("reports", private_key=key)
        for _ in range(2):
            await subject(where, auth)
        first, second = (parse_token(each["client_assertion"]).claims for each in where.forms())
        assert first["jti"] != second["jti"]

    run(work)


def test_a_server_that_names_another_authorization_server_gets_nothing() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = ClientCredentials(
            "reports", client_secret=CANARY, issuer="https://login.example.org"
        )
        with pytest.raises(AuthorizationFailed, match="nothing was sent to it") as caught:
            await subject(where, auth)
        assert where.login.requests == []
        assert CANARY not in f"{caught.value!r} {auth!r}"

    run(work)


def test_the_first_authorization_server_is_kept_without_an_issuer() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = ClientCredentials("reports", client_secret=CANARY)
        await subject(where, auth)
        # The same URL, as seen by the configuration, belongs to another one later.
        auth._issuers[where.url] = "https://login.example.org"
        with pytest.raises(AuthorizationFailed, match="nothing was sent to it"):
            await subject(where, auth)
        assert len(where.forms()) == 1

    run(work)


def test_metadata_that_names_another_issuer_is_void() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        where.login.fail("metadata", issuer="https://login.example.org", times=None)
        with pytest.raises(AuthorizationFailed, match="is that of another"):
            await subject(where, ClientCredentials("reports", client_secret=CANARY))
        assert where.forms() == []

    run(work)


def test_a_refusal_names_the_error_and_repeats_no_secret() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret="other")
        with pytest.raises(AuthorizationFailed, match="status 401") as caught:
            await subject(where, ClientCredentials("reports", client_secret=CANARY))
        assert caught.value.error == "invalid_client"
        assert caught.value.step == "token"
        assert CANARY not in f"{caught.value} {caught.value!r}"
        assert len(where.forms()) == 1

        body = b'{"error":"invalid_client","error_description":"not %b"}' % CANARY.encode()
        where.login.fail("token", status=400, body=body)
        with pytest.raises(AuthorizationFailed, match="status 400") as caught:
            await subject(
                where,
                ClientCredentials("reports", client_secret=CANARY, method="client_secret_post"),
            )
        assert CANARY not in f"{caught.value} {caught.value!r}"

    run(work)


@for_each(
    "failure",
    [
        {"malformed": True},
        {"body": b"{}"},
        {"body": b'{"access_token":"a b","token_type":"Bearer"}'},
        {"body": b'{"access_token":"ab","token_type":"mac"}'},
        {"body": b'{"access_token":"ab","token_type":"DPoP"}'},
        {"body": b'{"access_token":7,"token_type":"Bearer"}'},
        {"oversized": 10**6},
        {"redirect": "http://127.0.0.1:9/"},
        {"status": 500},
    ],
    ids=str,
)
def test_an_answer_that_is_not_a_token_is_an_error(failure: dict[str, Any]) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        where.login.fail("token", **failure)
        with pytest.raises(AuthorizationFailed) as caught:
            await subject(where, ClientCredentials("reports", client_secret=CANARY))
        assert caught.value.step == "token"
        assert len(where.forms()) == 1

    run(work)


class Watched(ClientCredentials):
    """Keeps the last session that it made."""

    session: Any

    def for_server(self, url: str, **options: Any) -> Any:
        self.session = super().for_server(url, **options)
        return self.session


def test_a_token_is_replaced_when_it_ends() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = Watched("reports", client_secret=CANARY)
        async with where.client(auth) as client:
            await client.call_tool("subject")
            assert len(where.forms()) == 1
            login = auth.session._login
            assert 0 < login.renew_at - time.time() <= 300 - EARLY_S
            login.renew_at = time.time()
            await asyncio.gather(*(client.call_tool("subject") for _ in range(5)))
            assert len(where.forms()) == 2

    run(work)


def test_a_refused_token_is_replaced_once_for_all_requests() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = Watched("reports", client_secret=CANARY)
        async with where.client(auth) as client:
            await client.call_tool("subject")
            # As if the server had revoked it.
            login = replace(auth.session._login, access_token="not.a.token")
            await auth.session._keep(login)
            await asyncio.gather(*(client.call_tool("subject") for _ in range(5)))
            assert len(where.forms()) == 2

    run(work)


def test_a_token_that_is_refused_at_once_is_not_replaced_for_ever() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        token = where.login.issue(audience="https://elsewhere.example.org")
        body = b'{"access_token":"%b","token_type":"Bearer"}' % token.encode()
        where.login.fail("token", body=body, times=None)
        with pytest.raises(AuthorizationFailed, match="just issued") as caught:
            await subject(where, ClientCredentials("reports", client_secret=CANARY))
        assert caught.value.error == "invalid_token"
        assert len(where.forms()) == 1
        assert token not in f"{caught.value!r}"

    run(work)


def test_a_configuration_without_a_secret_or_with_two_is_refused() -> None:
    with pytest.raises(TypeError, match="client_secret or private_key"):
        ClientCredentials("reports")
    with pytest.raises(TypeError, match="not both"):
        ClientCredentials("reports", client_secret="x", private_key=SigningKey.generate())
    with pytest.raises(TypeError, match="client_secret_basic or client_secret_post"):
        ClientCredentials("reports", client_secret="x", method="private_key_jwt")
    with pytest.raises(ValueError, match="not encrypted"):
        ClientCredentials("reports", client_secret="x").for_server("http://files.example.org/")


# -- workload identity -------------------------------------------------------------------------


def assertion(key: SigningKey, issuer: str, **claims: Any) -> str:
    now = int(time.time())
    named = {"iss": PLATFORM, "sub": "job-7", "aud": issuer, "iat": now, "exp": now + 300}
    return key.sign({**named, **claims})


def test_a_workload_presents_its_assertion_and_nothing_else(tmp_path: Path) -> None:
    async def work(where: ProtectedServer) -> None:
        key = SigningKey.generate()
        where.login.trust(PLATFORM, key)
        path = tmp_path / "assertion"
        path.write_text(assertion(key, where.login.issuer) + "\n")
        auth = WorkloadIdentity(file=path, scopes=["files:read"])
        assert await subject(where, auth) == "job-7 files:read"
        (form,) = where.forms()
        assert form["grant_type"] == JWT_BEARER
        assert form.keys() == {"grant_type", "assertion", "resource", "scope"}
        assert "authorization" not in where.login.requests[-1].headers

    run(work)


def test_a_refused_assertion_is_not_sent_again_and_no_other_grant_is_tried(
    tmp_path: Path,
) -> None:
    async def work(where: ProtectedServer) -> None:
        key = SigningKey.generate()
        where.login.trust(PLATFORM, key)
        path = tmp_path / "assertion"
        path.write_text(assertion(key, "https://elsewhere.example.org"))
        auth = WorkloadIdentity(file=path)
        for _ in range(2):
            with pytest.raises(AuthorizationFailed) as caught:
                await subject(where, auth)
        assert path.read_text() not in f"{caught.value!r}"
        assert [form["grant_type"] for form in where.forms()] == [JWT_BEARER]
        path.write_text(assertion(key, where.login.issuer))
        assert (await subject(where, auth)).startswith("job-7")

    run(work)


def test_unreachable_token_endpoint_does_not_count_as_refused_assertion() -> None:
    async def work(where: ProtectedServer) -> None:
        key = SigningKey.generate()
        where.login.trust(PLATFORM, key)
        auth = WorkloadIdentity(lambda: assertion(key, where.login.issuer))
        where.login.fail("token", disconnect=True)
        with pytest.raises(AuthorizationFailed, match="closed the connection"):
            await subject(where, auth)
        assert (await subject(where, auth)).startswith("job-7")

    run(work)


# -- enterprise-managed authorization ----------------------------------------------------------


def test_an_id_token_is_exchanged_for_an_assertion_and_then_for_a_token() -> None:
    async def work(where: ProtectedServer) -> None:
        async with protected_server(scopes=()) as enterprise:
            idp = enterprise.login
            idp.client("reports", client_secret="at-the-idp")
            where.login.client("reports", client_secret=CANARY)
            where.login.trust(idp.issuer, idp.jwks)
            id_token = idp.issue_id_token(subject="ann", client_id="reports")
            auth = TokenExchange(
                "reports",
                client_secret=CANARY,
                id_token=lambda: id_token,
                idp_issuer=idp.issuer,
                idp_client_secret="at-the-idp",
                issuer=where.login.issuer,
            )
            assert (await subject(where, auth)).startswith("ann")
            (exchange,) = enterprise.forms("token-exchange")
            assert exchange["audience"] == where.login.issuer
            assert exchange["resource"] == where.url
            assert exchange["subject_token_type"].endswith(":id_token")
            assert exchange["requested_token_type"].endswith(":id-jag")
            (grant,) = where.forms()
            assert grant["grant_type"] == JWT_BEARER
            assert id_token not in grant.values()
            # The secret of one server is not sent to the other.
            assert all(CANARY not in str(each.headers) for each in idp.requests)

    run(work, scopes=())


def test_an_identity_provider_that_issues_something_else_ends_it() -> None:
    async def work(where: ProtectedServer) -> None:
        async with protected_server(scopes=()) as enterprise:
            idp = enterprise.login
            idp.client("reports")
            body = b'{"access_token":"ab","token_type":"Bearer"}'
            idp.fail("token", body=body)
            auth = TokenExchange(
                "reports",
                client_secret=CANARY,
                id_token="abc",
                idp_token_endpoint=f"{idp.issuer}/token",
            )
            with pytest.raises(AuthorizationFailed, match="id-jag"):
                await subject(where, auth)
            assert where.forms() == []
            assert CANARY not in repr(auth)

    run(work)


# -- proofs of possession ----------------------------------------------------------------------


@pytest.mark.parametrize("nonces", [False, True])
def test_tokens_are_bound_to_a_key_and_nonces_are_followed(nonces: bool) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = ClientCredentials("reports", client_secret=CANARY, dpop=True)
        async with where.client(auth) as client:
            for _ in range(3):
                await client.call_tool("subject")
        sent = [each for each in where.login.requests if each.endpoint == "token"]
        assert [each.error for each in sent] == (["use_dpop_nonce", None] if nonces else [None])
        proofs = [parse_token(each.headers["dpop"]).claims for each in sent]
        assert len({each["jti"] for each in proofs}) == len(proofs)

    run(work, dpop=True, nonces=nonces)


def test_dpop_challenge_without_dpop_raises_and_sends_no_token_request() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        with pytest.raises(AuthorizationFailed, match="dpop=True"):
            await subject(where, ClientCredentials("reports", client_secret=CANARY))
        assert where.forms() == []

    run(work, dpop=True)


def test_a_token_that_was_not_bound_is_not_used() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        where.login.fail("token", body=b'{"access_token":"ab","token_type":"Bearer"}')
        with pytest.raises(AuthorizationFailed, match="'Bearer', not DPoP"):
            await subject(where, ClientCredentials("reports", client_secret=CANARY, dpop=True))

    run(work, dpop=True)


def test_repeated_nonce_challenges_end_after_a_bounded_number_of_requests() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        where.login.fail("token", error="use_dpop_nonce", times=None)
        with pytest.raises(AuthorizationFailed) as caught:
            await subject(where, ClientCredentials("reports", client_secret=CANARY, dpop=True))
        assert caught.value.error == "use_dpop_nonce"
        assert len(where.forms()) <= 2

    run(work, dpop=True, nonces=True)


# -- storage -----------------------------------------------------------------------------------

CHILD = """
import asyncio, sys
from trunkline import Client
from trunkline.auth import ClientCredentials, FileTokens

async def main():
    folder, url, dpop = sys.argv[1:]
    auth = ClientCredentials(
        "reports", client_secret=sys.stdin.readline().strip(),
        storage=FileTokens(folder), dpop=dpop == "True",
    )
    async with Client(url, auth=auth) as client:
        print((await client.call_tool("subject")).text)

asyncio.run(main())
"""


@pytest.mark.parametrize("dpop", [False, True])
def test_processes_that_share_a_folder_ask_for_one_token(tmp_path: Path, dpop: bool) -> None:
    async def child(where: ProtectedServer) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", CHILD, str(tmp_path / "tokens"), where.url, str(dpop)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        found, _ = await process.communicate(f"{CANARY}\n".encode())
        assert process.returncode == 0
        return found.decode().strip()

    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        found = await asyncio.gather(*(child(where) for _ in range(3)))
        assert set(found) == {"reports files:read files:write"}
        assert len(where.forms()) == 1
        assert await child(where) == found[0]
        assert len(where.forms()) == 1
        (record,) = FileTokens(tmp_path / "tokens").records()
        assert isinstance(record, bytes)
        assert CANARY.encode() not in record

    run(work, dpop=dpop, default_scopes=["files:read", "files:write"])


def only_record(tokens: FileTokens) -> StoredLogin:
    (found,) = tokens.records()
    assert isinstance(found, bytes)
    record = StoredLogin.decode(found)
    assert record is not None
    return record


def test_a_stored_token_that_is_refused_is_replaced(tmp_path: Path) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        tokens = FileTokens(tmp_path / "tokens")
        auth = ClientCredentials("reports", client_secret=CANARY, storage=tokens)
        await subject(where, auth)
        record = only_record(tokens)
        record.access_token = "not.a.token"
        tokens.store(f"{where.url} reports", record.encode())
        await subject(where, auth)
        assert len(where.forms()) == 2
        assert only_record(tokens).access_token != "not.a.token"

    run(work)


def test_stored_token_that_has_ended_is_renewed_without_a_challenge(tmp_path: Path) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        tokens = FileTokens(tmp_path / "tokens")
        auth = Watched("reports", client_secret=CANARY, storage=tokens)
        await subject(where, auth)
        record = only_record(tokens)
        record.renew_at = record.expires_at = time.time() - 1
        tokens.store(f"{where.url} reports", record.encode())
        await subject(where, auth)
        assert len(where.forms()) == 2
        assert auth.session._refused == 0
        assert not only_record(tokens).has_ended

    run(work)


def test_waiting_requests_share_the_failure_of_a_token_request() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = Watched("reports", client_secret=CANARY)
        async with where.client(auth) as client:
            await client.call_tool("subject")
            where.login.fail("token", error="server_error", times=None)
            auth.session._login.renew_at = time.time()
            calls = (client.call_tool("subject") for _ in range(5))
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in found} == {AuthorizationFailed}
            assert {each.error for each in found} == {"server_error"}
            assert len(where.forms()) == 2

    run(work)


def test_a_stored_token_of_another_issuer_is_not_sent(tmp_path: Path) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        tokens = FileTokens(tmp_path / "tokens")
        other = StoredLogin(
            server=where.url,
            issuer="https://login.example.org",
            resource=where.url,
            access_token=where.login.issue(subject="other", audience=where.url),
        )
        tokens.store(f"{where.url} reports", other.encode())
        auth = ClientCredentials(
            "reports", client_secret=CANARY, storage=tokens, issuer=where.login.issuer
        )
        assert (await subject(where, auth)).startswith("reports")

    run(work)


def test_a_stored_token_does_not_replace_a_key_that_was_given(tmp_path: Path) -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        tokens = FileTokens(tmp_path / "tokens")
        key = SigningKey.generate()
        for dpop in (True, key, key):
            auth = ClientCredentials("reports", client_secret=CANARY, storage=tokens, dpop=dpop)
            await subject(where, auth)
        assert len(where.forms()) == 2

    run(work, dpop=True)


# -- scopes ------------------------------------------------------------------------------------


def challenge(scope: str) -> list[tuple[bytes, bytes]]:
    text = f'Bearer error="insufficient_scope", scope="{scope}"'
    return [(b"www-authenticate", text.encode())]


def test_missing_scopes_are_asked_for_beside_the_others_and_not_twice() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = Watched("reports", client_secret=CANARY, scopes=["files:read"])
        async with where.client(auth) as client:
            await client.call_tool("subject")
            session = auth.session
            sent = session.headers("POST", where.url)
            assert await session.refused("POST", where.url, 403, challenge("files:write"), sent)
            assert [form["scope"] for form in where.forms()] == [
                *("files:read", "files:read files:write"),
            ]
            assert (await client.call_tool("subject")).text == "reports files:read files:write"
            sent = session.headers("POST", where.url)
            with pytest.raises(AuthorizationFailed, match="'files:write'") as caught:
                await session.refused("POST", where.url, 403, challenge("files:write"), sent)
            assert caught.value.error == "insufficient_scope"
            assert len(where.forms()) == 2
            # Without a challenge, status 403 is not about scopes.
            assert not await session.refused("POST", where.url, 403, [], sent)

    run(work)


def test_scope_challenges_are_followed_at_most_three_times() -> None:
    async def work(where: ProtectedServer) -> None:
        where.login.client("reports", client_secret=CANARY)
        auth = Watched("reports", client_secret=CANARY)
        async with where.client(auth) as client:
            await client.call_tool("subject")
            with pytest.raises(AuthorizationFailed, match="did not grant"):
                for number in range(10):
                    sent = auth.session.headers("POST", where.url)
                    wanted = challenge(f"scope-{number}")
                    await auth.session.refused("POST", where.url, 403, wanted, sent)
            assert len(where.forms()) == 4

    run(work, scopes=())


# -- secrets -----------------------------------------------------------------------------------


def test_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    async def work(where: ProtectedServer) -> None:
        key = SigningKey.generate()
        where.login.client("reports", client_secret=CANARY)
        where.login.trust(PLATFORM, key)
        given = assertion(key, where.login.issuer)
        basic = ClientCredentials("reports", client_secret=CANARY)
        for auth in (basic, WorkloadIdentity(given), Bearer(where.login.issue(audience=where.url))):
            async with where.client(auth) as client:
                await client.call_tool("subject")
                assert CANARY not in f"{client!r} {auth!r}"
        assert CANARY not in caplog.text
        assert given not in caplog.text
        assert "eyJ" not in caplog.text  # as every signed token begins

    run(work)


def test_a_rotated_token_file_is_used_after_a_refusal(tmp_path: Path) -> None:
    async def work(where: ProtectedServer) -> None:
        path = tmp_path / "token"
        path.write_text("not.a.token")
        auth = Bearer(file=path)
        with pytest.raises(AuthorizationFailed, match="refused the bearer token"):
            await subject(where, auth)

        def rotating() -> str:
            found = path.read_text()
            path.write_text(where.login.issue(subject="ann", audience=where.url))
            return found

        # The first token is refused, and the second is read for the same request.
        path.write_text(where.login.issue(audience="https://elsewhere.example.org"))
        assert (await subject(where, Bearer(rotating))).startswith("ann")

    run(work)
