"""A client and a server of ours, each under the policy of a described system."""

from __future__ import annotations

import asyncio
import logging
from math import ceil
from typing import Any
from uuid import UUID

import pytest

from trunkline import Client, Context, PeerError, RequestError, Server
from trunkline.client.client import Client as AsyncClient
from trunkline.jsonrpc import EnvelopeExtras, Policy
from trunkline.jsonrpc.peer import Extras

TOKEN = "Bearer eyJhbGciOi-CANARY-V6T6QMBv"
TENANT = {"x-tenant-id": "t-7", "x-tenant-name": "Acme", "x-request-id": "r-1"}
EXTRAS = EnvelopeExtras(
    auth=TOKEN,
    headers={**TENANT, "x-enable-experimental": True},
    metadata={"request_source": "web_ui", "locale": "de"},
)


# -- Pierre: the envelope -----------------------------------------------------------------------


def pierre_app(seen: list[Any]) -> Server:
    """Return a server whose middleware wants a token, and whose tool returns what it was sent."""
    app = Server("pierre", policy=Policy.pierre())

    @app.middleware
    async def authenticated(ctx: Context, call_next: Any) -> Any:
        seen.append((ctx.auth, ctx.headers, ctx.metadata, repr(ctx), ctx))
        if ctx.auth is None:
            raise RequestError("AUTHENTICATION_FAILED", "Authentication token required")
        return await call_next()

    @app.tool
    def who(ctx: Context) -> dict[str, Any]:
        assert ctx.auth is not None
        return {"token": len(ctx.auth), "headers": ctx.headers, "metadata": ctx.metadata}

    @app.tool
    def breaks(ctx: Context) -> str:
        raise ValueError("no luck")

    return app


def client_of(app: Server, envelope: Extras | None, **options: Any) -> AsyncClient:
    return Client(app, policy=Policy.pierre(), revision="2025-06-18", envelope=envelope, **options)


async def test_a_client_sends_the_envelope_and_handlers_and_middleware_see_all_of_it() -> None:
    seen: list[Any] = []
    async with client_of(pierre_app(seen), EXTRAS) as client:
        result = await client.call_tool("who")
    assert result.value == {
        "token": len(TOKEN),
        "headers": {**TENANT, "x-enable-experimental": True},
        "metadata": {"request_source": "web_ui", "locale": "de"},
    }
    (auth, headers, metadata, *_), *rest = seen
    assert rest == []
    assert (auth, headers["x-tenant-id"], metadata["locale"]) == (TOKEN, "t-7", "de")


async def test_a_server_can_require_the_token() -> None:
    async with client_of(pierre_app([]), None) as client:
        with pytest.raises(PeerError) as caught:
            await client.call_tool("who")
    assert (caught.value.code, caught.value.message) == (-32002, "Authentication token required")


async def test_an_envelope_can_be_made_for_each_message() -> None:
    asked: list[str] = []

    def fresh(method: str) -> EnvelopeExtras:
        asked.append(method)
        return EnvelopeExtras(auth=f"Bearer {len(asked)}", headers={"x-request-id": method})

    seen: list[Any] = []
    async with client_of(pierre_app(seen), fresh) as client:
        await client.call_tool("who")
        await client.call_tool("who")
    assert asked == ["initialize", "notifications/initialized", "tools/call", "tools/call"]
    assert [each[0] for each in seen] == ["Bearer 3", "Bearer 4"]
    assert seen[0][1] == {"x-request-id": "tools/call"}


async def test_no_repr_and_no_log_line_shows_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[Any] = []
    async with client_of(pierre_app(seen), EXTRAS, validate="warn") as client:
        await client.call_tool("who")
        with pytest.raises(PeerError):
            await client.call_tool("breaks")
        with pytest.raises(PeerError):
            await client.call_tool("gone")
        context = seen[0][-1]
        shown = [
            repr(each)
            for each in (
                client,
                client._connection.options,
                client._connection.session,
                EXTRAS,
                EXTRAS.__rich_repr__(),
                context,
                context._asked,
                context._asked.envelope,
            )
        ]
    assert "CANARY" not in " ".join(shown)
    assert "no luck" in caplog.text
    assert "CANARY" not in caplog.text


def test_an_envelope_needs_a_policy_that_has_one() -> None:
    with pytest.raises(ValueError, match="envelope needs a policy that has one") as caught:
        Client(Server("s"), envelope=EXTRAS)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"auth": 5}, "auth is a str"),
        ({"headers": ["CANARY"]}, "headers is a dict"),
        ({"headers": {1: "CANARY"}}, "headers is a dict whose keys are str"),
        ({"metadata": {"a": 1}}, "metadata is a dict of str to str"),
        ({"metadata": None}, "metadata is a dict of str to str"),
    ],
)
def test_an_envelope_of_other_types_is_refused_where_it_is_made(members: Any, fault: str) -> None:
    with pytest.raises(TypeError, match=fault) as caught:
        EnvelopeExtras(**members)
    assert "CANARY" not in str(caught.value)


async def test_without_the_policy_a_handler_sees_nothing_of_an_envelope() -> None:
    app = Server("plain")

    @app.tool
    def who(ctx: Context) -> list[Any]:
        return [ctx.auth, ctx.headers, ctx.metadata]

    async with client_of(app, EXTRAS) as client:
        assert (await client.call_tool("who")).value == [None, {}, {}]


# -- ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_may_use_uuids_as_ids(revision: str) -> None:
    ids: list[Any] = []
    app = Server("s")

    @app.tool
    def note(ctx: Context) -> str:
        ids.append(ctx.request_id)
        return "noted"

    async with Client(app, policy=Policy(ids="uuid"), revision=revision) as client:
        calls = [client.call_tool("note") for _ in range(3)]
        assert [result.text for result in await asyncio.gather(*calls)] == ["noted"] * 3
    assert all(UUID(id).version == 4 for id in ids)
    assert len(set(ids)) == 3


# -- timeouts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "given", "call", "listing"),
    [
        (Policy(), {}, 60.0, 60.0),
        (Policy.erlmcp(), {}, 5.0, 2.0),
        (Policy.mcpp(), {}, 300.0, 300.0),
        (Policy.pierre(), {}, 60.0, 60.0),
        (Policy.erlmcp(), {"timeout": 7.0}, 7.0, 7.0),
        (Policy.mcpp(), {"timeout": 7.0}, 7.0, 7.0),
        (Policy.mcpp(), {"max_timeout": 100.0}, 100.0, 100.0),
    ],
)
async def test_a_preset_has_its_timeouts_and_an_argument_wins(
    policy: Policy, given: dict[str, float], call: float, listing: float
) -> None:
    app = Server("s", policy=policy)
    app.add_tool(lambda: 1, name="one")
    async with Client(app, policy=policy, revision="2025-11-25", **given) as client:  # type: ignore[arg-type]
        session = client._connection.current()
        waits: dict[str, float] = {}
        send = session._peer.send_request

        def kept(method: str, params: Any, *, deadline: float, waiter: Any) -> Any:
            waits[method] = deadline - asyncio.get_running_loop().time()
            return send(method, params, deadline=deadline, waiter=waiter)

        session._peer = Spy(session._peer, kept)  # type: ignore[assignment]
        await client.call_tool("one")
        await client.list_tools()
    assert {method: ceil(seconds) for method, seconds in waits.items()} == {
        "tools/call": call,
        "tools/list": listing,
    }


class Spy:
    """A peer whose `send_request` is another function."""

    def __init__(self, peer: Any, send_request: Any) -> None:
        self.peer, self.send_request = peer, send_request

    def __getattr__(self, name: str) -> Any:
        return getattr(self.peer, name)
