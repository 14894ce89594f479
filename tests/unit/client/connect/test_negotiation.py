"""Which revision a server speaks: the first questions, and what is made of the answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.unit.client.scripted import (
    NEWEST_HANDSHAKE,
    SILENT,
    Place,
    Refused,
    discovery,
    initialized,
    run,
)
from trunkline import memory_pair
from trunkline.client import Client
from trunkline.client.connect.targets import remembered_era
from trunkline.errors import (
    ConnectionLost,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
    TrunklineError,
)
from trunkline.spec.revisions import LATEST, REVISIONS

HANDSHAKES = [revision for revision in REVISIONS if revision != LATEST]
VERSION = "io.modelcontextprotocol/protocolVersion"


def connect(place: Place, **options: Any) -> Client:
    """Connect, close, and return the client with what it saw."""

    async def main() -> Client:
        client = Client(place, **options)
        async with client:
            seen.update(
                revision=client.revision,
                era=client.era,
                info=client.server_info,
                capabilities=client.server_capabilities,
                instructions=client.instructions,
            )
        return client

    seen: dict[str, Any] = {}
    client = run(main())
    client.seen = seen  # type: ignore[attr-defined]  # for the tests to look at
    return client


def test_server_that_answers_discover_is_used_in_the_per_request_era() -> None:
    place = Place({"server/discover": discovery(instructions="be kind")})
    client = connect(place)
    assert client.seen["revision"] == LATEST
    assert client.seen["era"] == "per_request"
    assert client.seen["info"].name == "scripted"
    assert client.seen["capabilities"].tools is not None
    assert client.seen["instructions"] == "be kind"
    assert place.line.methods() == ["server/discover"]
    meta = place.line.sent[0]["params"]["_meta"]
    assert meta[VERSION] == LATEST
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "trunkline"
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert meta["io.modelcontextprotocol/clientCapabilities"] == tasks


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32700, -32603, -32000, -32002, 0, 1, 42])
def test_any_other_error_is_that_of_a_server_of_the_handshake(code: int) -> None:
    place = Place({"server/discover": Refused(code)}, revision=NEWEST_HANDSHAKE)
    client = connect(place)
    assert client.seen["revision"] == NEWEST_HANDSHAKE
    assert client.seen["era"] == "handshake"
    assert place.line.methods() == ["server/discover", "initialize", "notifications/initialized"]
    offered = place.line.sent[1]["params"]
    assert offered["protocolVersion"] == NEWEST_HANDSHAKE
    assert offered["clientInfo"]["name"] == "trunkline"
    assert "_meta" not in offered


def test_an_error_without_an_id_ends_the_question_too() -> None:
    def nameless(message: dict[str, Any]) -> Any:
        error = {"code": -32600, "message": "what?"}
        place.line.say({"jsonrpc": "2.0", "id": None, "error": error})
        return SILENT

    place = Place({"server/discover": nameless}, revision=NEWEST_HANDSHAKE)
    client = connect(place, probe_timeout=600)
    assert client.seen["era"] == "handshake"


@pytest.mark.parametrize("result", [{}, {"supportedVersions": "all"}, {"ok": True}])
def test_a_result_that_discovers_nothing_is_that_of_a_server_of_the_handshake(
    result: dict[str, Any],
) -> None:
    place = Place({"server/discover": result}, revision="2025-06-18")
    assert connect(place).seen["revision"] == "2025-06-18"


def test_unanswered_discover_falls_back_to_initialize() -> None:
    place = Place({"server/discover": SILENT}, revision=NEWEST_HANDSHAKE)
    client = connect(place, probe_timeout=0.01)
    assert client.seen["era"] == "handshake"
    # Nothing is cancelled: what comes late is not needed, and does no harm.
    assert place.line.methods() == ["server/discover", "initialize", "notifications/initialized"]


def test_a_late_discovery_counts_if_it_comes_before_the_handshake() -> None:
    asked: list[dict[str, Any]] = []

    def opened(message: dict[str, Any]) -> Any:
        place.line.say({"jsonrpc": "2.0", "id": asked[0]["id"], "result": discovery()})
        return SILENT

    def hold(message: dict[str, Any]) -> Any:
        asked.append(message)
        return SILENT

    place = Place({"server/discover": hold, "initialize": opened})
    client = connect(place, probe_timeout=0.01)
    assert client.seen["era"] == "per_request"
    assert place.line.methods() == ["server/discover", "initialize"]


def test_a_discovery_that_comes_after_the_handshake_is_ignored_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        place = Place({"server/discover": SILENT}, revision=NEWEST_HANDSHAKE)
        async with Client(place, probe_timeout=0.01) as client:
            id = place.line.sent[0]["id"]
            place.line.say({"jsonrpc": "2.0", "id": id, "result": discovery()})
            await client.ping()
            assert client.era == "handshake"

    run(main())
    assert not caplog.records


def test_a_refused_handshake_still_leaves_the_discovery_to_be_awaited() -> None:
    asked: list[dict[str, Any]] = []

    def hold(message: dict[str, Any]) -> Any:
        asked.append(message)
        return SILENT

    def refuse(message: dict[str, Any]) -> Any:
        loop = asyncio.get_running_loop()
        reply = {"jsonrpc": "2.0", "id": asked[0]["id"], "result": discovery()}
        loop.call_later(0.02, place.line.say, reply)
        return Refused(-32022, "this server has no handshake")

    place = Place({"server/discover": hold, "initialize": refuse})
    assert connect(place, probe_timeout=0.01).seen["era"] == "per_request"


def test_a_server_that_says_nothing_at_all_runs_into_the_limit() -> None:
    place = Place({"server/discover": SILENT, "initialize": SILENT})
    with pytest.raises(RequestTimeout, match=r"no connection within 0\.1 s"):
        connect(place, probe_timeout=0.01, connect_timeout=0.1)
    assert place.line.closed
    assert "notifications/cancelled" not in place.line.methods()


def test_an_unsupported_version_leads_to_the_newest_handshake_both_speak() -> None:
    data = {"supported": ["2024-11-05", "2025-06-18", "1999-01-01"], "requested": LATEST}
    place = Place({"server/discover": Refused(-32022, data=data)}, revision="2025-06-18")
    assert connect(place).seen["revision"] == "2025-06-18"
    assert place.line.last("initialize")["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize("pinned", [None, LATEST])
def test_a_refused_version_that_is_supported_is_asked_for_once_more(pinned: str | None) -> None:
    refusal = Refused(-32022, data={"supported": [LATEST], "requested": LATEST})
    answers = [refusal, discovery()]
    place = Place({"server/discover": lambda _: answers.pop(0)})
    assert connect(place, revision=pinned).seen["era"] == "per_request"
    assert place.line.methods() == ["server/discover"] * 2

    place = Place({"server/discover": refusal})
    with pytest.raises(RemoteProtocolError, match="none-reported"):
        connect(place, revision=pinned)
    assert place.line.methods() == ["server/discover"] * 2


@pytest.mark.parametrize("data", [None, {"supported": ["2099-01-01"]}, {"supported": 5}, [1]])
def test_server_without_a_common_version_raises(data: Any) -> None:
    place = Place({"server/discover": Refused(-32022, data=data)})
    with pytest.raises(RemoteProtocolError) as caught:
        connect(place)
    assert caught.value.rule == "mcp.version.none-reported"
    assert LATEST in str(caught.value)
    assert place.line.methods() == ["server/discover"]
    assert place.line.closed


def test_a_discovery_of_handshake_versions_only_leads_to_the_handshake() -> None:
    place = Place({"server/discover": discovery("2025-03-26")}, revision="2025-03-26")
    assert connect(place).seen["revision"] == "2025-03-26"


@pytest.mark.parametrize("code", [-32021, -32020])
def test_an_error_of_the_per_request_era_stays_in_it(code: int) -> None:
    place = Place({"server/discover": Refused(code)})
    client = connect(place)
    assert client.seen["era"] == "per_request"
    assert client.seen["info"] is None
    assert place.line.methods() == ["server/discover"]


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_a_server_may_offer_another_version_of_the_handshake(revision: str) -> None:
    place = Place(revision=revision)
    assert connect(place).seen["revision"] == revision


@pytest.mark.parametrize("offered", ["2099-01-01", LATEST, ""])
def test_a_version_we_do_not_speak_ends_the_connection(offered: str) -> None:
    place = Place({"initialize": initialized(offered)}, revision=NEWEST_HANDSHAKE)
    with pytest.raises(RemoteProtocolError) as caught:
        connect(place)
    assert caught.value.rule == "mcp.version.disconnects"
    assert caught.value.got == offered
    assert NEWEST_HANDSHAKE in caught.value.expected
    assert "notifications/initialized" not in place.line.methods()
    assert place.line.closed


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_a_pinned_handshake_goes_straight_to_it(revision: str) -> None:
    place = Place(revision=revision)
    assert connect(place, revision=revision).seen["revision"] == revision
    assert place.line.methods() == ["initialize", "notifications/initialized"]
    assert place.line.sent[0]["params"]["protocolVersion"] == revision


def test_a_pinned_version_is_not_traded_for_another() -> None:
    place = Place({"initialize": initialized("2025-03-26")})
    with pytest.raises(RemoteProtocolError) as caught:
        connect(place, revision="2025-06-18")
    assert caught.value.got == "2025-03-26"
    assert "2025-06-18" in caught.value.expected


def test_a_pinned_per_request_revision_does_not_fall_back() -> None:
    place = Place(revision=NEWEST_HANDSHAKE)
    with pytest.raises(PeerError) as caught:
        connect(place, revision=LATEST)
    assert caught.value.code == -32601
    assert place.line.methods() == ["server/discover"]


def test_pinned_per_request_revision_missing_on_the_server_raises() -> None:
    place = Place({"server/discover": discovery(NEWEST_HANDSHAKE)})
    with pytest.raises(RemoteProtocolError, match="none-reported"):
        connect(place, revision=LATEST)


def test_unreadable_discovery_raises_for_a_pinned_per_request_revision() -> None:
    place = Place({"server/discover": {}})
    with pytest.raises(RemoteProtocolError, match="discover-fields"):
        connect(place, revision=LATEST)


def test_refused_handshake_raises_and_closes_the_connection() -> None:
    place = Place({"initialize": Refused(-32603, "not today")}, revision=NEWEST_HANDSHAKE)
    with pytest.raises(PeerError, match="not today"):
        connect(place)
    assert place.line.closed


def test_incomplete_initialize_result_raises() -> None:
    place = Place({"initialize": {"protocolVersion": NEWEST_HANDSHAKE}}, revision=NEWEST_HANDSHAKE)
    with pytest.raises(RemoteProtocolError, match="initialize"):
        connect(place)


def test_the_era_is_remembered_with_the_address() -> None:
    place = Place({"server/discover": SILENT}, revision=NEWEST_HANDSHAKE)
    connect(place, probe_timeout=0.01)
    connect(place, probe_timeout=600)
    assert place.lines[1].methods() == ["initialize", "notifications/initialized"]


def test_a_pinned_revision_says_nothing_of_the_server() -> None:
    place = Place({"initialize": initialized(NEWEST_HANDSHAKE)})
    connect(place, revision=NEWEST_HANDSHAKE)
    assert connect(place).seen["era"] == "per_request"


def test_server_that_changed_its_era_is_negotiated_again() -> None:
    place = Place(revision=NEWEST_HANDSHAKE)
    connect(place)
    place.answers["initialize"] = Refused(-32022)
    place.answers["server/discover"] = discovery()
    assert connect(place).seen["era"] == "per_request"
    assert place.lines[1].methods() == ["initialize", "server/discover"]


def declared(revision: str, **options: Any) -> Any:
    """What a client says of itself."""
    place = Place(revision=revision)
    connect(place, revision=revision, **options)
    params = place.line.sent[0]["params"]
    if "capabilities" in params:
        return params["capabilities"]
    return params["_meta"]["io.modelcontextprotocol/clientCapabilities"]


def test_capabilities_are_what_there_are_handlers_for() -> None:
    options: dict[str, Any] = {
        "roots": ["file:///a"],
        "on_sample": print,
        "on_elicit": print,
        "on_elicit_url": print,
        "sampling_tools": True,
        "experimental": {"x": {}},
        "extensions": {"com.example/stars": {"most": 5}},
    }
    both_modes = {"form": {}, "url": {}}
    stars = {"com.example/stars": {"most": 5}}
    own = {"experimental": {"x": {}}, "extensions": stars}
    roots = {"listChanged": True}
    assert declared("2024-11-05", **options) == {"roots": roots, "sampling": {}, **own}
    assert declared("2025-06-18", **options) == {
        "roots": roots,
        "sampling": {},
        "elicitation": {},
        **own,
    }
    assert declared("2025-11-25", **options) == {
        "roots": roots,
        "sampling": {"tools": {}},
        "elicitation": both_modes,
        **own,
    }
    assert declared(LATEST, **options) == {
        "roots": {},
        "sampling": {"tools": {}},
        "elicitation": both_modes,
        **own,
        "extensions": {**stars, "io.modelcontextprotocol/tasks": {}},
    }


def test_capabilities_without_handlers_are_not_declared() -> None:
    for revision in ("2024-11-05", "2025-06-18", "2025-11-25", LATEST):
        assert declared(revision, tasks=False) == {}
    assert declared("2025-11-25", on_elicit=print) == {"elicitation": {"form": {}}}
    assert declared("2025-11-25", on_sample=print) == {"sampling": {}}
    # Pages came later than forms, and an empty object would mean forms.
    assert declared("2025-11-25", on_elicit_url=print) == {"elicitation": {"url": {}}}
    assert declared("2025-06-18", on_elicit_url=print) == {}


def test_an_extension_is_declared_by_its_id() -> None:
    with pytest.raises(ValueError, match=r"com\.example/stars"):
        Client(Place(), extensions={"stars": {}})
    with pytest.raises(TypeError, match="settings"):
        Client(Place(), extensions={"com.example/stars": 5})  # type: ignore[dict-item]
    given = {"io.modelcontextprotocol/tasks": {"own": 1}}
    assert declared(LATEST, extensions=given) == {"extensions": given}
    assert declared(LATEST, extensions=given, tasks=False) == {"extensions": given}


@pytest.mark.parametrize(
    "options", [{"sampling_tools": True}, {"max_rounds": 0}, {"max_rounds": 1.5}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Client(Place(), **options)


def test_client_title_is_sent_in_revisions_that_have_it() -> None:
    for revision, told in (("2025-03-26", None), ("2025-06-18", "Mine")):
        place = Place(revision=revision)
        connect(place, revision=revision, name="me", version="2", title="Mine")
        info = place.line.sent[0]["params"]["clientInfo"]
        assert (info["name"], info["version"], info.get("title")) == ("me", "2", told)


def test_a_server_that_goes_away_while_connecting_is_a_transport_error() -> None:
    def leave(message: dict[str, Any]) -> Any:
        error = TransportError("the server exited", exit_status=3, stderr=("no module",))
        asyncio.get_running_loop().call_soon(place.line.end, error)
        return SILENT

    place = Place({"server/discover": leave})
    with pytest.raises(TransportError) as caught:
        connect(place)
    assert caught.value.exit_status == 3
    assert caught.value.stderr == ("no module",)
    assert place.line.closed


def test_the_log_level_is_asked_for_when_connecting() -> None:
    logging = initialized(NEWEST_HANDSHAKE, capabilities={"logging": {}})
    place = Place({"initialize": logging, "logging/setLevel": {}}, revision=NEWEST_HANDSHAKE)
    connect(place, logging_level="error")
    assert place.line.last("logging/setLevel")["params"]["level"] == "error"
    place = Place(revision=NEWEST_HANDSHAKE)
    connect(place, logging_level="error")
    assert "logging/setLevel" not in place.line.methods()


def test_connecting_that_is_cancelled_leaves_nothing_open() -> None:
    async def main() -> None:
        place = Place({"server/discover": SILENT})
        client = Client(place)
        task = asyncio.create_task(client.connect())
        while not place.lines or not place.line.sent:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert place.line.closed
        assert not client.is_connected

    run(main())


def test_a_client_connects_once_at_a_time() -> None:
    async def main() -> None:
        async with Client(Place()) as client:
            with pytest.raises(TrunklineError, match="already connected"):
                await client.connect()

    run(main())


def test_nulls_for_absent_members_are_accepted() -> None:
    result = initialized(NEWEST_HANDSHAKE, instructions=None, _meta=None)
    result["capabilities"] = {"tools": {"listChanged": None}, "logging": None}
    place = Place({"initialize": result}, revision=NEWEST_HANDSHAKE)
    client = connect(place)
    assert client.seen["instructions"] is None
    assert client.seen["capabilities"].logging is None
    assert client.seen["capabilities"].tools.list_changed is None


def test_an_error_without_an_id_answers_the_older_of_two_questions() -> None:
    def nameless(message: dict[str, Any]) -> Any:
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "what?"}}
        asyncio.get_running_loop().call_later(0.05, place.line.say, error)
        return SILENT

    def slow(message: dict[str, Any]) -> Any:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": initialized(NEWEST_HANDSHAKE)}
        asyncio.get_running_loop().call_later(0.1, place.line.say, reply)
        return SILENT

    place = Place({"server/discover": nameless, "initialize": slow})
    client = connect(place, probe_timeout=0.01, connect_timeout=5)
    assert client.seen["revision"] == NEWEST_HANDSHAKE


@pytest.mark.parametrize("probe_timeout", [600, 0.01])
def test_an_error_of_the_per_request_era_settles_it_however_late(probe_timeout: float) -> None:
    def late(message: dict[str, Any]) -> Any:
        error = {"code": -32021, "message": "declare more", "data": {"requiredCapabilities": {}}}
        reply = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        asyncio.get_running_loop().call_later(0.05, place.line.say, reply)
        return SILENT

    def later(message: dict[str, Any]) -> Any:
        error = {"code": -32601, "message": "no handshake here"}
        reply = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        asyncio.get_running_loop().call_later(0.1, place.line.say, reply)
        return SILENT

    place = Place({"server/discover": late, "initialize": later})
    assert connect(place, probe_timeout=probe_timeout).seen["era"] == "per_request"


@pytest.mark.parametrize("initialize", [SILENT, {"resultType": "complete"}, Refused(-32601)])
def test_server_that_dropped_the_handshake_is_probed_with_discover(initialize: Any) -> None:
    place = Place(revision=NEWEST_HANDSHAKE)
    connect(place)
    place.answers["initialize"] = initialize
    place.answers["server/discover"] = discovery()
    client = connect(place, probe_timeout=0.01, connect_timeout=5)
    assert client.seen["era"] == "per_request"
    assert remembered_era(place) == "per_request"


def test_a_slow_handshake_that_was_to_be_expected_still_counts() -> None:
    def slow(message: dict[str, Any]) -> Any:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": initialized(NEWEST_HANDSHAKE)}
        asyncio.get_running_loop().call_later(0.05, place.line.say, reply)
        return SILENT

    place = Place(revision=NEWEST_HANDSHAKE)
    connect(place)
    place.answers["initialize"] = slow
    assert connect(place, probe_timeout=0.01).seen["era"] == "handshake"


def test_remembered_era_is_forgotten_when_the_handshake_times_out() -> None:
    place = Place(revision=NEWEST_HANDSHAKE)
    connect(place)
    place.answers["initialize"] = SILENT
    with pytest.raises(RequestTimeout):
        connect(place, probe_timeout=600, connect_timeout=0.02)
    assert remembered_era(place) is None


def test_nulls_in_a_discovery_are_accepted() -> None:
    found = discovery(capabilities={"tools": {"listChanged": None}}, instructions=None)
    place = Place({"server/discover": found})
    client = connect(place)
    assert client.seen["era"] == "per_request"
    assert client.seen["instructions"] is None


def test_discovery_with_an_enormous_ttl_is_accepted() -> None:
    place = Place({"server/discover": discovery(ttlMs=10**400)})
    assert connect(place).seen["era"] == "per_request"


# -- connecting again ------------------------------------------------------------------------


def test_a_lost_client_is_connected_again_by_one_task_only() -> None:
    async def main() -> None:
        place = Place()
        client = Client(place)
        await client.connect()
        await lose(place)
        found = await asyncio.gather(client.connect(), client.connect(), return_exceptions=True)
        assert found[0] is None
        assert "already connected" in str(found[1])
        assert len(place.lines) == 2
        await client.close()
        assert all(line.closed for line in place.lines)

    run(main())


async def lose(place: Place) -> None:
    """End a connection whose transport takes a moment to be gone."""
    line = place.line
    line.end(TransportError("gone"))
    close = line.close

    async def slowly() -> None:
        await asyncio.sleep(0.02)
        await close()

    line.close = slowly  # type: ignore[method-assign]


def test_a_client_that_is_closed_before_it_connects_again_stays_closed() -> None:
    async def main() -> None:
        place = Place()
        client = Client(place)
        await client.connect()
        await lose(place)
        task = asyncio.create_task(client.connect())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await task
        assert not client.is_connected
        assert all(line.closed for line in place.lines)
        # And it is not for ever.
        await client.connect()
        assert client.is_connected
        await client.close()

    run(main())


def test_a_client_that_is_closed_as_it_connects_does_not_say_that_it_has() -> None:
    async def main() -> None:
        def answer(message: dict[str, Any]) -> Any:
            closing.append(asyncio.create_task(client.close()))
            return discovery()

        closing: list[asyncio.Task[None]] = []
        place = Place({"server/discover": answer}, at_once=True)
        client = Client(place)
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await client.connect()
        await closing[0]
        assert place.line.closed

    run(main())


def test_a_server_that_says_initialized_itself_is_tolerated() -> None:
    async def main() -> list[Any]:
        near, far = memory_pair()

        def answer(frame: Any, route: Any) -> None:
            message = json.loads(frame)
            if message.get("method") == "initialize":
                reply(message["id"], initialized("2025-11-25"))
                said = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
                far.send(json.dumps(said).encode(), None)
            elif "id" in message:
                reply(message["id"], {"tools": []})

        def reply(id: Any, result: Any) -> None:
            far.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode(), None)

        far.on_message = answer
        far.on_error = lambda _: None
        await far.connect()
        async with Client(near, revision="2025-11-25") as client:
            return await client.list_tools()

    assert run(main()) == []
