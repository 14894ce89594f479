"""The command of the development authorization server: what its options make of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.event_loop import on_a_loop
from tests.unit.testing.authorization_server.flow import (
    REDIRECT,
    authorize,
    log_in,
    request,
)
from trunkline.auth.jose import parse_token
from trunkline.testing import AuthorizationServer
from trunkline.testing.authorization_server.__main__ import parse, server_of

# What Codex sends to a server that knows client-id metadata documents.
CODEX = "https://chatgpt.com/oauth/codex/client.json"
KNOWN = ["--port", "0", "--approve", "--client-id", "known", "--redirect-uri", REDIRECT]


def made(arguments: list[str]) -> AuthorizationServer:
    return server_of(parse(arguments))


@on_a_loop
async def test_clients_register_because_documents_are_not_announced() -> None:
    async with made(KNOWN) as server:
        metadata = server.metadata
        assert metadata["client_id_metadata_document_supported"] is False
        document = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}
        registered = await request(metadata["registration_endpoint"], document=document)
        assert registered.status == 201
        client_id = json.loads(registered.body)["client_id"]
        assert "code" in await authorize(server, client_id=client_id)


@on_a_loop
async def test_a_switch_turns_client_id_documents_on() -> None:
    async with made([*KNOWN, "--client-id-documents"]) as server:
        assert server.metadata["client_id_metadata_document_supported"] is True
        server.document(CODEX, {"client_id": CODEX, "redirect_uris": [REDIRECT]})
        assert "code" in await authorize(server, client_id=CODEX)


@for_each(
    ("given", "expected"),
    [
        ("tenant=acme", ("tenant", "acme")),
        ('orgs=["a", "b"]', ("orgs", ["a", "b"])),
        ("level=3", ("level", 3)),
        ("staff=true", ("staff", True)),
        ("https://example.org/tenant=a=b", ("https://example.org/tenant", "a=b")),
        ('tenant="3"', ("tenant", "3")),
        ("tenant=", ("tenant", "")),
        ("tenant={acme", ("tenant", "{acme")),
    ],
)
def test_a_claim_is_in_every_access_token(given: str, expected: tuple[str, Any]) -> None:
    server = made([*KNOWN, "--claim", given, "--claim", "more=1"])
    claims = parse_token(server.issue(subject="anyone")).claims
    name, value = expected
    assert (claims[name], claims["more"]) == (value, 1)


@on_a_loop
async def test_claims_reach_the_token_of_a_login() -> None:
    async with made([*KNOWN, "--user", "ann", "--claim", "tenant=acme"]) as server:
        found = await log_in(server)
        claims = parse_token(found["access_token"]).claims
        assert (claims["sub"], claims["tenant"]) == ("ann", "acme")


def test_null_leaves_a_claim_out() -> None:
    assert "client_id" not in parse_token(made(["--claim", "client_id=null"]).issue()).claims


def test_claims_of_a_user_are_stronger() -> None:
    server = AuthorizationServer(claims={"tenant": "acme"}, users={"bob": {"tenant": "globex"}})
    found = [parse_token(server.issue(subject=each)).claims["tenant"] for each in ("ann", "bob")]
    assert found == ["acme", "globex"]


@for_each("text", ["tenant", "=acme", ""])
def test_a_claim_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(SystemExit) as caught:
        made(["--claim", text])
    assert caught.value.code == 2
