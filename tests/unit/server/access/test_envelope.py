"""Credentials and tenants in the envelope of messages, under `Policy.pierre()` alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.rigs.server_connection import WAIT, ServerConnection
from trunkline import Context, Server, ServerLimits
from trunkline.auth import (
    AuthSettings,
    Credential,
    InvalidCredential,
    Principal,
    Tenants,
    VerifierUnavailable,
)
from trunkline.auth.server.tenants import TenantRefused
from trunkline.jsonrpc import Policy
from trunkline.server.access import envelope as module

pytestmark = pytest.mark.anyio

SECRET = "s3cret-canary"
CLAIMS: dict[str, dict[str, Any]] = {
    f"ann.{SECRET}": {"active_tenant_id": "acme", "tenants": ["acme", "bell"]},
    f"bob.{SECRET}": {"active_tenant_id": "bell", "tenants": ["acme"]},
    f"cleo.{SECRET}": {"tenants": ["acme"]},
    f"late.{SECRET}": {"active_tenant_id": "acme", "tenants": ["acme"]},
}


class Tokens:
    """Knows a few tokens, one of them after a while."""

    schemes = ("bearer",)
    authorization_servers = ()
    scopes_supported = ()
    dpop_algorithms = ()

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.seen: list[Credential] = []

    def verify(self, credential: Credential) -> Any:
        self.seen.append(credential)
        token = credential.token
        if token.startswith("old"):
            raise InvalidCredential("The token has expired")
        if token.startswith("bad"):
            raise InvalidCredential("The signature of the token is not valid")
        if token.startswith("bare"):
            raise TenantRefused("the token has no claim 'tenant'", is_missing=True)
        if token.startswith("down"):
            raise VerifierUnavailable("the keys cannot be fetched", retry_after=3)
        if token not in CLAIMS:
            return None
        name = token.partition(".")[0]
        principal = Principal(subject=name, claims=CLAIMS[token], scopes=frozenset({"use"}))
        return self._later(principal) if name == "late" else principal

    async def _later(self, principal: Principal) -> Principal:
        await self.gate.wait()
        return principal


TENANTS = Tenants(claim="active_tenant_id", members="tenants", tools={"bell": ["who"]})


class PierreWire(ServerConnection):
    app: Server
    tokens: Tokens
    _last = 0

    async def request(self, method: str, auth: str | None = None, **options: Any) -> Any:
        self._last += 1
        id = options.pop("id", self._last)
        envelope = {name: options.pop(name) for name in ("headers", "metadata") if name in options}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": options, **envelope}
        if auth is not None:
            message["auth"] = auth
        self.send(message)
        reply = await self.answer(id)
        return reply.get("error") or reply["result"]

    async def who(self, auth: str | None = None, **options: Any) -> Any:
        found = await self.request("tools/call", auth, name="who", arguments={}, **options)
        return found["content"][0]["text"] if "content" in found else found


@asynccontextmanager
async def pierre(
    policy: Policy | None = None,
    *,
    required: bool = True,
    tenants: Tenants | None = TENANTS,
    limits: ServerLimits | None = None,
) -> AsyncIterator[PierreWire]:
    app = Server("pierre", policy=policy or Policy.pierre(), limits=limits or ServerLimits())

    @app.tool(scopes=["use"])
    async def who(ctx: Context) -> str:
        """Return the caller and its tenant."""
        assert ctx.principal is not None
        return f"{ctx.principal.subject} of {ctx.tenant}, {ctx.headers.get('x-tenant-name')}"

    @app.tool
    async def other() -> str:
        return "other"

    wire, tokens = PierreWire(), Tokens()
    wire.app, wire.tokens = app, tokens
    auth = AuthSettings(verifiers=[tokens], required=required, tenants=tenants)
    serving = asyncio.create_task(app.serve(wire.far, auth=auth))
    await wire.near.connect()
    try:
        opened = await wire.request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "tests", "version": "1"},
        )
        assert "protocolVersion" in opened
        wire.tell("notifications/initialized")
        yield wire
    finally:
        tokens.gate.set()
        await wire.near.close()
        await asyncio.wait_for(serving, WAIT)


async def test_a_token_in_the_envelope_is_verified_and_names_the_caller() -> None:
    async with pierre() as wire:
        for spelling in (f"ann.{SECRET}", f"Bearer ann.{SECRET}", f"bearer ann.{SECRET}"):
            assert (
                await wire.who(spelling, headers={"x-tenant-name": "Acme"}) == "ann of acme, Acme"
            )
        assert {each.token for each in wire.tokens.seen} == {f"ann.{SECRET}"}
        assert {each.scheme for each in wire.tokens.seen} == {"bearer"}


async def test_a_request_without_a_token_is_refused_in_the_words_of_pierre() -> None:
    async with pierre() as wire:
        for method in ("tools/call", "tools/list", "resources/list"):
            refused = await wire.request(method, name="who", arguments={})
            assert (refused["code"], refused["message"]) == (
                -32002,
                "Authentication token required",
            )
            assert refused["data"]["authentication_failed"] is True
        assert await wire.request("ping") == {}


async def test_a_refused_token_has_the_code_of_its_cause_and_is_shown_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with pierre() as wire:
        for token, code, text in (
            ("old", -32603, "JWT token has expired"),
            ("bad", -32603, "JWT token signature is invalid"),
            ("unknown", -32603, "JWT token signature is invalid"),
        ):
            refused = await wire.who(f"{token}.{SECRET}")
            assert (refused["code"], refused["message"]) == (code, text)
            assert refused["data"].keys() == {"detailed_error", "authentication_failed"}
            assert refused["data"]["authentication_failed"] is True
        down = await wire.who(f"down.{SECRET}")
        assert down["data"] == {"retryAfterMs": 3000}
        assert SECRET not in str(wire.got)
        assert SECRET not in caplog.text


async def test_a_tenant_that_the_client_names_counts_only_if_the_claims_allow_it() -> None:
    async with pierre() as wire:
        ann = f"ann.{SECRET}"
        assert await wire.who(ann, headers={"x-tenant-id": "bell"}) == "ann of bell, None"
        assert await wire.who(ann, headers={"X-Tenant-Id": "acme"}) == "ann of acme, None"
        assert await wire.who(ann, metadata={"x-tenant-id": "bell"}) == "ann of bell, None"
        for named in ("core", "", 7, "a b"):
            refused = await wire.who(ann, headers={"x-tenant-id": named})
            assert refused["code"] == -32003, named
        # The tenant of the token is checked as well.
        refused = await wire.who(f"bob.{SECRET}")
        assert refused["data"] == {"error_type": "tenant_refused"}


async def test_a_tool_is_refused_without_a_tenant_and_a_list_is_not() -> None:
    async with pierre() as wire:
        cleo = f"cleo.{SECRET}"
        refused = await wire.who(cleo)
        assert (refused["code"], refused["data"]) == (-32003, {"error_type": "tenant_required"})
        assert "tools" in await wire.request("tools/list", cleo)
        assert await wire.who(cleo, headers={"x-tenant-id": "acme"}) == "cleo of acme, None"


async def test_a_token_that_its_verifier_refuses_for_its_tenant_is_answered_alike() -> None:
    async with pierre(tenants=None) as wire:
        refused = await wire.who(f"bare.{SECRET}")
        assert (refused["code"], refused["data"]) == (-32003, {"error_type": "tenant_required"})


async def test_another_spelling_of_a_call_is_refused_without_a_tenant_too() -> None:
    policy = Policy.pierre().replace(method_names="accept-bare")
    async with pierre(policy) as wire:
        for method in ("tools/call", "tool/execute"):
            refused = await wire.request(method, f"cleo.{SECRET}", name="other", arguments={})
            assert refused["data"] == {"error_type": "tenant_required"}, method


async def test_without_a_token_a_named_tenant_selects_nothing() -> None:
    async with pierre(required=False) as wire:
        listed = await wire.request("tools/list", headers={"x-tenant-id": "bell"})
        assert [each["name"] for each in listed["tools"]] == ["who", "other"]
        refused = await wire.who(headers={"x-tenant-id": "acme"})
        assert refused["message"] == "Authentication required"


async def test_from_token_to_tenant_to_the_tools_of_that_tenant() -> None:
    async with pierre() as wire:
        ann = f"ann.{SECRET}"

        async def names(tenant: str) -> list[str]:
            listed = await wire.request("tools/list", ann, headers={"x-tenant-id": tenant})
            return [each["name"] for each in listed["tools"]]

        assert await names("acme") == ["who", "other"]
        assert await names("bell") == ["who"]
        bell = {"x-tenant-id": "bell"}
        gone = await wire.request("tools/call", ann, name="other", arguments={}, headers=bell)
        assert gone["code"] == -32601


async def test_a_token_that_takes_time_delays_its_own_request_alone() -> None:
    async with pierre() as wire:
        late = asyncio.create_task(wire.who(f"late.{SECRET}", id="late"))
        cancelled = asyncio.create_task(wire.who(f"late.{SECRET}", id="gone"))
        await asyncio.sleep(0)
        assert await wire.who(f"ann.{SECRET}") == "ann of acme, None"
        wire.tell("notifications/cancelled", {"requestId": "gone"})
        assert await wire.request("ping") == {}
        wire.tokens.gate.set()
        assert await late == "late of acme, None"
        assert await wire.request("ping") == {}
        assert not any(each.get("id") == "gone" for each in wire.got)
        cancelled.cancel()


async def test_under_any_other_policy_a_token_in_a_message_is_not_read() -> None:
    app, tokens = Server("plain"), Tokens()
    with pytest.raises(ValueError, match="cannot recognise a client"):
        await app.serve(ServerConnection().far, auth=AuthSettings(verifiers=[tokens]))
    wire = PierreWire()
    auth = AuthSettings(verifiers=[tokens], required=False)
    serving = asyncio.create_task(app.serve(wire.far, auth=auth))
    await wire.near.connect()
    await wire.request("ping", f"ann.{SECRET}")
    await wire.near.close()
    await asyncio.wait_for(serving, WAIT)
    assert tokens.seen == []


async def test_requests_whose_token_is_verified_are_shared_by_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MAX_VERIFYING", 8)
    async with pierre() as wire:
        (connection,) = wire.app._core.runtime.connections
        held, accounts = connection.budget.used, wire.app._core.runtime.accounts
        connection.use_account(accounts.open("one client"))
        alone = [asyncio.create_task(wire.who(f"late.{SECRET}", id=100 + n)) for n in range(8)]
        refused = await alone[7]
        assert refused["data"]["retryAfterMs"] == 1000
        assert connection.budget.used > held
        other = accounts.open("another")
        assert (await wire.who(f"late.{SECRET}", id=108))["code"] == refused["code"]
        assert await wire.who(f"ann.{SECRET}") == "ann of acme, None"  # known at once
        wire.tokens.gate.set()
        assert [await each for each in alone[:7]] == ["late of acme, None"] * 7
        assert connection.budget.used == held
        envelope_auth = wire.app._core.services.envelope_auth
        assert envelope_auth is not None
        assert (envelope_auth._limit.used, dict(envelope_auth._verifying_of)) == (0, {})
        wire.tokens.gate.clear()
        together = [asyncio.create_task(wire.who(f"late.{SECRET}", id=120 + n)) for n in range(5)]
        assert (await together[4])["code"] == refused["code"]  # half, while another is there
        wire.tokens.gate.set()
        assert [await each for each in together[:4]] == ["late of acme, None"] * 4
        other.close()


async def test_request_whose_token_is_verified_counts_as_held_bytes() -> None:
    async with pierre(limits=ServerLimits(server_bytes=200_000)) as wire:
        (connection,) = wire.app._core.runtime.connections
        connection.use_account(wire.app._core.runtime.accounts.open("one client"))
        text = "x" * 90_000
        waiting = [
            asyncio.create_task(wire.who(f"late.{SECRET}", id=100 + n, text=text)) for n in range(2)
        ]
        assert (await waiting[1])["data"]["retryAfterMs"] == 1000
        wire.tokens.gate.set()
        assert await waiting[0] == "late of acme, None"
