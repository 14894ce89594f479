"""A client and a server of ours, each under the policy of a described system."""

from __future__ import annotations

import asyncio
import logging
from math import ceil
from typing import Any
from uuid import UUID

import pytest

from tests.rigs.messages import PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.client.scripted import Place, text
from trunkline import Client, Context, PeerError, RequestError, Server
from trunkline.client.client import Client as AsyncClient
from trunkline.compat import pierre
from trunkline.jsonrpc import EnvelopeExtras, Policy
from trunkline.jsonrpc.peer.peer import Extras
from trunkline.spec.profiles import profile
from trunkline.spec.profiles.wording import WORDINGS

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
                context._request.message,
                context._request.message.envelope,
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
    ids=["default", "erlmcp", "mcpp", "pierre", "erlmcp-given", "mcpp-given", "mcpp-maximum"],
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

        def kept(method: str, params: Any, *, deadline: float, waiter: Any, read: Any) -> Any:
            waits[method] = deadline - asyncio.get_running_loop().time()
            return send(method, params, deadline=deadline, waiter=waiter, read=read)

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


# -- Pierre: versions and texts -----------------------------------------------------------------


def introduction(version: str, **more: Any) -> dict[str, Any]:
    client = {"name": "claude-desktop", "version": "0.7.0"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client, **more}


async def answered(app: Server, *messages: tuple[str, Any]) -> list[Any]:
    """Return the replies to requests that are sent one after the other."""
    async with connected(app, PER_REQUEST) as wire:  # without a handshake of its own
        replies = []
        for id, (method, params) in enumerate(messages, start=1):
            wire.ask(id, method, params)
            replies.append(await wire.answer(id))
        return replies


def full_app(policy: Policy, **options: Any) -> Server:
    """Return a server that has something of everything Pierre declares."""
    app = Server("full", policy=policy, **options)
    app.add_tool(lambda city: city, name="forecast")
    app.resource("note://one")(lambda: "one")
    app.prompt(name="greet")(lambda: "Hello")
    return app


@pytest.mark.parametrize(
    ("asked", "answer", "declared", "warns"),
    [
        ("2025-06-18", "2025-06-18", "experimental logging prompts resources tools", False),
        ("2024-11-05", "2024-11-05", "experimental logging prompts resources tools", False),
        ("2024-10-07", "2024-10-07", "resources tools", False),
        ("1.0", "1.0", "tools", True),
        ("1", "1.0", "tools", True),
        ("3000-01-01", "2024-11-05", "logging prompts resources tools", True),
    ],
    ids=["2025-06-18", "2024-11-05", "2024-10-07", "1.0", "1", "unknown"],
)
async def test_pierre_answers_with_the_version_and_capabilities_of_its_table(
    asked: str, answer: str, declared: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = full_app(Policy.pierre(), experimental={"a2a": {}, "streaming": {}})
    opened, called = await answered(
        app,
        ("initialize", introduction(asked)),
        ("tools/call", {"name": "forecast", "arguments": {"city": "Bern"}}),
    )
    result = opened["result"]
    assert (result["protocolVersion"], sorted(result["capabilities"])) == (
        answer,
        declared.split(),
    )
    assert called["result"]["content"][0]["text"] == "Bern"
    assert bool([each for each in caplog.records if each.levelno == logging.WARNING]) is warns


async def test_a_server_without_the_revision_of_pierres_table_answers_with_its_newest() -> None:
    app = full_app(Policy.pierre(), revisions=["2025-06-18"])
    (opened,) = await answered(app, ("initialize", introduction("1.0")))
    assert opened["result"]["protocolVersion"] == "2025-06-18"


async def test_pierre_rejects_a_version_with_both_versions_in_its_text() -> None:
    policy = Policy.pierre().replace(version_policy="reject")
    app = full_app(policy, revisions=["2024-11-05", "2025-06-18"])
    (refused,) = await answered(app, ("initialize", introduction("1999-01-01")))
    assert refused["error"] == {
        "code": pierre.ERROR_VERSION_MISMATCH,
        "message": f"{pierre.MSG_VERSION_MISMATCH}. Client version: 1999-01-01, "
        "Supported versions: 2025-06-18, 2024-11-05",
    }


async def test_pierre_has_one_text_for_an_initialize_that_does_not_fit() -> None:
    (refused,) = await answered(full_app(Policy.pierre()), ("initialize", {"capabilities": {}}))
    error = refused["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid initialize request parameters")
    assert "`protocolVersion`, `clientInfo`" in error["data"]["details"]


@pytest.mark.parametrize(
    ("policy", "code", "message"),
    [
        (Policy.pierre(), pierre.ERROR_SERIALIZATION, pierre.MSG_SERIALIZATION),
        (Policy(), -32603, "Internal error"),
    ],
)
async def test_a_result_that_cannot_be_encoded_has_the_error_of_the_profile(
    policy: Policy, code: int, message: str
) -> None:
    app = full_app(policy)

    @app.method("example.com/odd")
    def odd() -> dict[str, Any]:
        return {"odd": float("nan")}

    # These fail before anything is encoded.
    unknown_type: Any = object()
    app.resource("note://odd")(lambda: unknown_type)
    app.prompt(name="odd")(lambda: unknown_type)
    _, *refused = await answered(
        app,
        ("initialize", introduction("2025-06-18")),
        ("example.com/odd", {}),
        ("resources/read", {"uri": "note://odd"}),
        ("prompts/get", {"name": "odd"}),
    )
    assert [each["error"] for each in refused] == [{"code": code, "message": message}] * 3


async def test_a_tool_whose_value_cannot_be_encoded_has_failed_under_pierre() -> None:
    app = full_app(Policy.pierre())
    unknown_type: Any = object()
    app.add_tool(lambda: unknown_type, name="odd")
    _, refused = await answered(
        app, ("initialize", introduction("2025-06-18")), ("tools/call", {"name": "odd"})
    )
    assert refused["error"]["code"] == -32000
    assert "returned an invalid result (reference " in refused["error"]["message"]


# -- Pierre: names of notifications --------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "notifications/"])
async def test_a_client_understands_the_log_and_progress_notifications_of_pierre(
    prefix: str,
) -> None:
    logged: list[Any] = []
    progress: list[Any] = []

    def work(request: dict[str, Any]) -> Any:
        token = request["params"]["_meta"]["progressToken"]
        heard = {"progressToken": token, "progress": 50, "total": 100}
        log = {"level": "error", "data": "disk full"}
        name = "notifications/message" if prefix else "logging/logMessage"
        place.line.say({"jsonrpc": "2.0", "method": name, "params": log})
        place.line.say({"jsonrpc": "2.0", "method": f"{prefix}progress", "params": heard})
        return text("done")

    place = Place({"tools/call": work}, revision="2025-06-18")
    async with Client(
        place,
        policy=Policy.pierre(),
        revision="2025-06-18",
        on_log=lambda note: logged.append((note.level, note.data)),
    ) as client:
        await client.call_tool("x", on_progress=lambda *facts: progress.append(facts[0]))
    assert logged == [("error", "disk full")]
    assert progress == [50]


async def test_a_server_understands_bare_names_of_a_client_of_pierre() -> None:
    app = Server("pierre", policy=Policy.pierre())
    began, cancelled = asyncio.Event(), asyncio.Event()

    @app.tool
    async def hold() -> str:
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "held"

    async with connected(app, PER_REQUEST) as wire:  # without a handshake of its own
        wire.ask(1, "initialize", introduction("2025-06-18"))
        assert "result" in await wire.answer(1)
        wire.tell("initialized")
        wire.ask(2, "tools/call", {"name": "hold"})
        await began.wait()
        wire.tell("cancelled", {"requestId": 2})
        await asyncio.wait_for(cancelled.wait(), 10)


async def test_a_server_under_pierre_sends_official_names() -> None:
    app = Server("pierre", policy=Policy.pierre())

    @app.tool
    async def work(ctx: Context) -> str:
        await ctx.log("error", "disk full")
        await ctx.progress(1, 2)
        return "done"

    async with connected(app, PER_REQUEST) as wire:
        wire.ask(1, "initialize", introduction("2025-06-18"))
        assert "result" in await wire.answer(1)
        wire.tell("notifications/initialized")
        wire.ask(2, "tools/call", {"name": "work", "_meta": {"progressToken": "t"}})
        assert "result" in await wire.answer(2)
        sent = [each["method"] for each in wire.got if "method" in each]
    assert sent == ["notifications/message", "notifications/progress"]


# -- erlmcp: texts and data ---------------------------------------------------------------------

ERLMCP_ERRORS: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "tools/call",
        {"name": "missing_tool"},
        {
            "code": -32002,
            "message": "Tool not found",
            "data": {"tool": "missing_tool", "details": "Unknown tool: missing_tool"},
        },
    ),
    (
        "no/such",
        {},
        {"code": -32601, "message": "Method not found", "data": {"method": "no/such"}},
    ),
    (
        "resources/read",
        {"uri": "doc://readme"},
        {"code": -32001, "message": "Resource not found", "data": {"uri": "doc://readme"}},
    ),
    (
        "prompts/get",
        {"name": "nobody"},
        {"code": -32003, "message": "Prompt not found", "data": {"prompt": "nobody"}},
    ),
    (
        "tools/list",
        {"cursor": "nonsense"},
        {"code": -32071, "message": "Invalid cursor", "data": {"cursor": "nonsense"}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}},
        {
            "code": -32004,
            "message": "Capability not supported",
            "data": {"capability": "completions"},
        },
    ),
]


@pytest.mark.parametrize(
    ("method", "params", "error"), ERLMCP_ERRORS, ids=[method for method, *_ in ERLMCP_ERRORS]
)
async def test_erlmcp_answers_with_its_texts_and_data(
    method: str, params: Any, error: dict[str, Any]
) -> None:
    app = full_app(Policy.erlmcp())
    opened, refused = await answered(
        app, ("initialize", introduction("2025-11-25")), (method, params)
    )
    assert "result" in opened
    assert refused["error"] == error


async def test_erlmcp_names_the_tool_and_the_fault_of_its_arguments() -> None:
    app = full_app(Policy.erlmcp())
    _, refused = await answered(
        app,
        ("initialize", introduction("2025-11-25")),
        ("tools/call", {"name": "forecast", "arguments": {}}),
    )
    error = refused["error"]
    assert (error["code"], error["message"]) == (-32034, "Invalid tool arguments")
    assert error["data"]["tool"] == "forecast"
    assert "city" in error["data"]["details"]


async def test_erlmcp_puts_what_is_wrong_with_params_into_its_data() -> None:
    app = full_app(Policy.erlmcp())
    _, refused = await answered(
        app, ("initialize", introduction("2025-11-25")), ("resources/read", {"uri": 5})
    )
    error = refused["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid params")
    assert "$.uri" in error["data"]["details"]


async def test_before_initialize_erlmcp_serves_nothing_else() -> None:
    refused = await answered(full_app(Policy.erlmcp()), ("ping", {}), ("tools/list", {}))
    text = "Cannot execute operation before server initialization. Call initialize first."
    assert [each["error"] for each in refused] == [{"code": -32005, "message": text}] * 2


async def test_elsewhere_the_texts_are_ours_and_ping_is_answered() -> None:
    ping, opened, tool, method, capability = await answered(
        full_app(Policy()),
        ("ping", {}),
        ("initialize", introduction("2025-11-25")),
        ("tools/call", {"name": "missing_tool"}),
        ("no/such", {}),
        ("completion/complete", ERLMCP_ERRORS[-1][1]),
    )
    assert ping["result"] == {}
    assert "result" in opened
    assert tool["error"] == {"code": -32602, "message": "Unknown tool: missing_tool"}
    assert method["error"] == {"code": -32601, "message": "Unknown method: no/such"}
    assert capability["error"]["code"] == -32601
    assert "does not offer it" in capability["error"]["message"]


@pytest.mark.parametrize("name", sorted({name for name, *_ in WORDINGS}))
def test_the_words_of_a_profile_are_for_errors_that_it_sends(name: str) -> None:
    for profile_name, kind, _ in WORDINGS:
        if profile_name == name:
            assert profile(name).to_send(kind, "2025-11-25")
