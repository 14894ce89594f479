"""What can be asked of a server, and what cannot in which revision."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Struct

from tests.unit.client.scripted import (
    NEWEST_HANDSHAKE,
    SILENT,
    Place,
    Refused,
    discovery,
    initialized,
    run,
    text,
    use,
)
from trunkline.client import Client
from trunkline.errors import (
    ConnectionLost,
    InvalidMessage,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    ResultTypeMismatch,
    TrunklineError,
)
from trunkline.jsonrpc import Policy
from trunkline.spec.revisions import LATEST

VERSION = "io.modelcontextprotocol/protocolVersion"
LEVEL = "io.modelcontextprotocol/logLevel"


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def pages(message: dict[str, Any]) -> Any:
    """Three pages, the second of which has an empty cursor."""
    cursor = message["params"].get("cursor")
    rest = {None: ("a", ""), "": ("b", "next"), "next": ("c", None)}
    name, following = rest[cursor]
    page: dict[str, Any] = {"tools": [tool(name)]}
    return page if following is None else page | {"nextCursor": following}


def test_a_list_is_followed_to_its_end() -> None:
    place = Place({"tools/list": pages})
    found = use(place, lambda client: client.list_tools())
    assert [each.name for each in found] == ["a", "b", "c"]


def test_a_page_is_had_by_its_cursor() -> None:
    async def work(client: Client) -> None:
        first = await client.list_tools_page()
        assert [each.name for each in first.tools] == ["a"]
        last = await client.list_tools_page("next")
        assert [each.name for each in last.tools] == ["c"]

    use(Place({"tools/list": pages}), work)


def test_list_with_a_repeated_cursor_raises() -> None:
    place = Place({"tools/list": {"tools": [], "nextCursor": "again"}})
    with pytest.raises(RemoteProtocolError, match=r"mcp\.pagination\.end"):
        use(place, lambda client: client.list_tools())


def test_a_cursor_that_is_refused_starts_the_list_again() -> None:
    refusals = [Refused(-32602, "Invalid cursor")]

    def changing(message: dict[str, Any]) -> Any:
        if message["params"].get("cursor") and refusals:
            return refusals.pop()
        if message["params"].get("cursor"):
            return {"tools": [tool("b")]}
        return {"tools": [tool("a")], "nextCursor": "x", "ttlMs": 60000, "cacheScope": "public"}

    place = Place({"tools/list": changing})
    found = use(place, lambda client: client.list_tools())
    assert [each.name for each in found] == ["a", "b"]
    place = Place({"tools/list": Refused(-32602)})
    with pytest.raises(PeerError):
        use(place, lambda client: client.list_tools())
    assert place.line.methods().count("tools/list") == 1


def test_every_kind_of_list_is_read_into_its_type() -> None:
    place = Place(
        {
            "resources/list": {"resources": [{"name": "r", "uri": "x:r"}]},
            "resources/templates/list": {
                "resourceTemplates": [{"name": "t", "uriTemplate": "x:{t}"}]
            },
            "prompts/list": {"prompts": [{"name": "p"}]},
        }
    )

    async def work(client: Client) -> None:
        assert [each.uri for each in await client.list_resources()] == ["x:r"]
        assert [each.uri_template for each in await client.list_resource_templates()] == ["x:{t}"]
        assert [each.name for each in await client.list_prompts()] == ["p"]
        assert len((await client.list_resources_page()).resources) == 1
        assert len((await client.list_resource_templates_page()).resource_templates) == 1
        assert len((await client.list_prompts_page()).prompts) == 1

    use(place, work)


def test_resources_are_read_and_prompts_filled_in() -> None:
    place = Place(
        {
            "resources/read": {"contents": [{"uri": "x:r", "text": "hello"}]},
            "prompts/get": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]
            },
        }
    )

    async def work(client: Client) -> None:
        assert (await client.read_resource("x:r")).contents[0].text == "hello"
        prompt = await client.get_prompt("p", {"who": "me"})
        assert prompt.messages[0].role == "user"
        assert place.line.last("prompts/get")["params"]["arguments"] == {"who": "me"}

    use(place, work)


@pytest.mark.parametrize(("revision", "knows"), [("2025-03-26", False), (LATEST, True)])
def test_a_completion_has_its_context_where_that_is_known(revision: str, knows: bool) -> None:
    place = Place(
        {"completion/complete": {"completion": {"values": ["Oslo"], "hasMore": False}}},
        revision=revision,
    )

    async def work(client: Client) -> None:
        found = await client.complete("city", "Os", prompt="p", context={"country": "NO"})
        assert found.values == ["Oslo"]
        params = place.line.last("completion/complete")["params"]
        assert params["ref"] == {"type": "ref/prompt", "name": "p"}
        assert params["argument"] == {"name": "city", "value": "Os"}
        assert ("context" in params) is knows
        await client.complete("t", "", resource="x:{t}")
        params = place.line.last("completion/complete")["params"]
        assert params["ref"] == {"type": "ref/resource", "uri": "x:{t}"}
        with pytest.raises(TypeError, match="either `prompt` or `resource`"):
            await client.complete("t", "")

    use(place, work)


def test_every_per_request_request_carries_version_and_client_info() -> None:
    place = Place({"tools/list": {"tools": []}, "tools/call": text("x"), "acme/own": {"ok": 1}})

    async def work(client: Client) -> None:
        await client.list_tools()
        await client.call_tool("x", meta={"a": 1, VERSION: "mine"})
        await client.request("acme/own")
        await client.request("acme/own", {"b": 2, "_meta": {"c": 3}})
        for each in place.line.sent:
            meta = each["params"]["_meta"]
            assert meta[VERSION] == LATEST
            assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "trunkline"
        assert place.line.last("tools/call")["params"]["_meta"]["a"] == 1
        assert place.line.sent[-1]["params"]["b"] == 2
        assert place.line.sent[-1]["params"]["_meta"]["c"] == 3

    use(place, work)


def test_ping_returns_the_time_until_the_answer() -> None:
    async def main() -> None:
        place = Place({"ping": SILENT}, revision=NEWEST_HANDSHAKE)
        async with Client(place, revision=NEWEST_HANDSHAKE) as client:
            now = asyncio.get_running_loop().time
            before = now()
            pinged = asyncio.create_task(client.ping())
            asked = await place.line.until("ping")
            held = now()
            while now() == held:  # as long as the clock takes to move
                await asyncio.sleep(0.001)
            waited = now() - held
            place.line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
            taken = await pinged
            assert 0 < waited <= taken <= now() - before

    run(main())


def test_ping_and_subscriptions_belong_to_the_handshake() -> None:
    place = Place(
        {"resources/subscribe": {}, "resources/unsubscribe": {}}, revision=NEWEST_HANDSHAKE
    )

    async def work(client: Client) -> None:
        assert await client.ping() >= 0
        await client.subscribe("x:r")
        await client.unsubscribe("x:r")
        assert place.line.sent[-1]["params"] == {"uri": "x:r"}

    use(place, work)


@pytest.mark.parametrize(
    ("revision", "verb", "rule", "text_has"),
    [
        (LATEST, lambda c: c.ping(), "mcp.method.no-longer", "last in 2025-11-25"),
        (LATEST, lambda c: c.list_tasks(), "mcp.method.no-longer", "tasks"),
        (LATEST, lambda c: c.request("ping"), "mcp.method.no-longer", "ping"),
        (NEWEST_HANDSHAKE, lambda c: c.discover(), "mcp.method.not-yet", "added in 2026-07-28"),
        (NEWEST_HANDSHAKE, lambda c: c.request("roots/list"), "mcp.method.direction", "server"),
    ],
)
def test_a_verb_of_another_revision_is_refused_before_it_is_sent(
    revision: str, verb: Any, rule: str, text_has: str
) -> None:
    place = Place(revision=revision)

    async def work(client: Client) -> None:
        before = len(place.line.sent)
        with pytest.raises(LocalProtocolError) as caught:
            await verb(client)
        assert caught.value.rule == rule
        assert text_has in str(caught.value)
        assert len(place.line.sent) == before

    use(place, work)


def test_roots_list_changed_is_sent_in_handshake_revisions_only() -> None:
    async def work(client: Client) -> None:
        client.send_roots_list_changed()
        client.notify("notifications/acme", {"a": 1})

    place = Place(revision=NEWEST_HANDSHAKE)
    use(place, work)
    assert place.line.methods()[-2:] == [
        "notifications/roots/list_changed",
        "notifications/acme",
    ]
    with pytest.raises(LocalProtocolError, match="no-longer"):
        use(Place(), work)


def test_notification_may_be_awaited_or_not() -> None:
    async def work(client: Client) -> None:
        client.notify("notifications/acme", {"n": 1})
        await client.notify("notifications/acme", {"n": 2})
        await client.send_roots_list_changed()
        async with client.batch() as batch:
            await batch.notify("notifications/acme", {"n": 3})

    place = Place(revision="2025-03-26")
    use(place, work, revision="2025-03-26")
    *sent, batch = place.line.sent[-4:]
    assert [each.get("params", {}).get("n") for each in [*sent, *batch]] == [1, 2, None, 3]


def test_the_log_level_is_a_request_or_part_of_each() -> None:
    async def work(client: Client) -> None:
        await client.set_logging_level("warning")
        await client.call_tool("x")

    place = Place({"logging/setLevel": {}, "tools/call": text("x")}, revision=NEWEST_HANDSHAKE)
    use(place, work)
    assert place.line.last("logging/setLevel")["params"] == {"level": "warning"}
    assert "_meta" not in place.line.last("tools/call")["params"]
    place = Place({"tools/call": text("x")})
    use(place, work)
    assert place.line.methods() == ["server/discover", "tools/call"]
    assert place.line.last("tools/call")["params"]["_meta"][LEVEL] == "warning"
    use(place, lambda client: client.call_tool("x"), logging_level="error")
    assert place.line.last("tools/call")["params"]["_meta"][LEVEL] == "error"


def test_undeclared_methods_are_sent_unless_the_client_is_strict() -> None:
    place = Place({"prompts/list": {"prompts": []}, "tools/list": {"tools": []}})

    async def work(client: Client) -> None:
        await client.list_tools()
        await client.list_prompts()

    use(place, work)
    with pytest.raises(LocalProtocolError, match="the capability prompts"):
        use(place, work, strict=True)
    assert place.line.methods() == ["server/discover", "tools/list"]
    capabilities = {"resources": {"subscribe": False}}
    place = Place(
        {"initialize": initialized(NEWEST_HANDSHAKE, capabilities=capabilities)},
        revision=NEWEST_HANDSHAKE,
    )
    with pytest.raises(LocalProtocolError, match=r"resources\.subscribe"):
        use(place, lambda client: client.subscribe("x:r"), strict=True)


def test_a_raw_request_gives_a_dict_or_a_type() -> None:
    class Own(Struct):
        ok: int

    async def work(client: Client) -> None:
        assert await client.request("acme/own", {"a": 1}) == {"ok": 1, "more": None}
        assert await client.request("acme/own", result_type=Own) == Own(1)
        with pytest.raises(ResultTypeMismatch):
            await client.request("acme/own", result_type=dict[str, str])

    use(Place({"acme/own": {"ok": 1, "more": None}}), work)


# -- calls in hand ---------------------------------------------------------------------------


def test_a_call_can_be_awaited_more_than_once_and_asked() -> None:
    async def work(client: Client) -> None:
        call = client.submit_tool("x", {"a": 1})
        with pytest.raises(asyncio.InvalidStateError):
            call.result()
        assert "pending" in repr(call)
        first = await call
        assert await call is first
        assert call.result() is first
        assert call.exception() is None
        assert call.done()
        assert not call.cancel()
        assert "answered" in repr(call)
        assert await client.submit("acme/own") == {"ok": 1}

    use(Place({"tools/call": text("x"), "acme/own": {"ok": 1}}), work)


def test_a_call_calls_back() -> None:
    seen: list[Any] = []

    async def work(client: Client) -> None:
        good = client.submit_tool(
            "x", on_success=lambda result: seen.append(result.text), on_error=seen.append
        )
        await good
        place.answers["tools/call"] = Refused(-32602, "unknown")
        bad = client.submit_tool("x", on_success=seen.append, on_error=seen.append)
        bad.add_done_callback(lambda call: seen.append(call))
        with pytest.raises(PeerError):
            await bad
        place.answers["tools/call"] = {"content": 5}
        odd = client.submit_tool("x", on_error=seen.append)
        with pytest.raises(RemoteProtocolError):
            await odd
        await asyncio.sleep(0)
        assert seen[0] == "x"
        assert [type(each) for each in seen[1:]] == [PeerError, type(bad), RemoteProtocolError]

    place = Place({"tools/call": text("x")})
    use(place, work)


def test_exception_of_a_callback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(result: Any) -> None:
        raise KeyError("mine")

    async def work(client: Client) -> None:
        await client.submit_tool("x", on_success=fail)
        await asyncio.sleep(0)

    use(Place({"tools/call": text("x")}), work)
    assert "a callback of tools/call raised" in caplog.text


def test_cancelled_call_sends_a_cancelled_notification() -> None:
    place = Place({"tools/call": SILENT})

    async def work(client: Client) -> None:
        call = client.submit_tool("slow", on_error=print)
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert call.cancelled()
        assert "cancelled" in repr(call)
        asked = place.line.last("tools/call")
        assert place.line.last("notifications/cancelled")["params"]["requestId"] == asked["id"]

    use(place, work)


def test_unawaited_failed_call_is_not_reported_to_the_loop() -> None:
    problems: list[Any] = []

    async def work(client: Client) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, seen: problems.append(seen))
        client.submit_tool("x")
        await asyncio.sleep(0.01)

    use(Place({"tools/call": Refused(-1)}), work)
    assert not problems


# -- batches ---------------------------------------------------------------------------------


def test_a_batch_is_one_message() -> None:
    place = Place({"tools/call": text("x")}, revision="2025-03-26")

    async def work(client: Client) -> None:
        async with client.batch() as batch:
            one = batch.submit_tool("x", {"a": 1}, result_type=str)
            two = batch.submit("ping")
            dropped = batch.submit("ping")
            dropped.cancel()
            batch.notify("notifications/acme")
        assert (await one).value == "x"
        assert await two == {}
        sent = place.line.sent[-1]
        assert [each["method"] for each in sent] == ["tools/call", "ping", "notifications/acme"]
        with pytest.raises(TrunklineError, match="only inside its block"):
            batch.submit("ping")

    use(place, work, revision="2025-03-26")


def test_a_batch_that_is_left_by_an_exception_is_not_sent() -> None:
    place = Place(revision="2025-03-26")

    async def work(client: Client) -> None:
        before = len(place.line.sent)
        with pytest.raises(KeyError):
            async with client.batch() as batch:
                call = batch.submit("ping")
                raise KeyError
        assert call.cancelled()
        async with client.batch():
            pass
        with pytest.raises(LocalProtocolError, match=r"mcp\.batch\.initialize"):
            async with client.batch() as batch:
                batch.submit("initialize")
        with pytest.raises(LocalProtocolError):
            async with client.batch() as batch:
                call = batch.submit("ping", {"n": float("nan")})
        with pytest.raises(LocalProtocolError):
            await call
        assert len(place.line.sent) == before

    use(place, work, revision="2025-03-26")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25", LATEST])
def test_other_revisions_send_no_batches(revision: str) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.batch\.not-allowed"):
            async with client.batch():
                pass

    use(Place(revision=revision), work, revision=revision)


# -- keeping ---------------------------------------------------------------------------------


def fresh(message: dict[str, Any]) -> Any:
    return {"tools": [tool("a")], "ttlMs": 60000, "cacheScope": "private"}


def say(place: Place, method: str, **params: Any) -> None:
    place.line.say({"jsonrpc": "2.0", "method": method, "params": params})


def test_fresh_list_is_answered_from_the_cache() -> None:
    place = Place({"tools/list": fresh})

    async def work(client: Client) -> None:
        first = await client.list_tools()
        first[0].input_schema["spoilt"] = True
        second = await client.list_tools()
        assert "spoilt" not in second[0].input_schema
        assert place.line.methods().count("tools/list") == 1
        await client.list_tools(fresh=True)
        assert place.line.methods().count("tools/list") == 2
        say(place, "notifications/prompts/list_changed")
        await asyncio.sleep(0)
        await client.list_tools()
        assert place.line.methods().count("tools/list") == 2
        say(place, "notifications/tools/list_changed")
        await asyncio.sleep(0)
        await client.list_tools()
        assert place.line.methods().count("tools/list") == 3

    use(place, work)


def test_nothing_is_kept_unless_asked_to() -> None:
    place = Place({"tools/list": fresh})

    async def work(client: Client) -> None:
        await client.list_tools()
        await client.list_tools()

    use(place, work, cache=False)
    assert place.line.methods().count("tools/list") == 2
    place = Place({"tools/list": {"tools": []}})
    use(place, work)
    assert place.line.methods().count("tools/list") == 2


def test_resources_are_kept_by_their_uri() -> None:
    def contents(message: dict[str, Any]) -> Any:
        uri = message["params"]["uri"]
        return {"contents": [{"uri": uri, "text": uri}], "ttlMs": 60000, "cacheScope": "public"}

    place = Place({"resources/read": contents})

    async def work(client: Client) -> None:
        for _ in range(2):
            assert (await client.read_resource("x:a")).contents[0].text == "x:a"
            assert (await client.read_resource("x:b")).contents[0].text == "x:b"
        assert place.line.methods().count("resources/read") == 2
        await client.read_resource("x:a", meta={"mine": 1})
        assert place.line.methods().count("resources/read") == 3
        say(place, "notifications/resources/updated", uri="x:a")
        await asyncio.sleep(0)
        await client.read_resource("x:a")
        await client.read_resource("x:b")
        assert place.line.methods().count("resources/read") == 4

    use(place, work)


def test_list_requested_before_a_change_is_not_cached() -> None:
    def changed(message: dict[str, Any]) -> Any:
        say(place, "notifications/tools/list_changed")
        return fresh(message)

    place = Place({"tools/list": changed})

    async def work(client: Client) -> None:
        await client.list_tools()
        await client.list_tools()

    use(place, work)
    assert place.line.methods().count("tools/list") == 2


def test_discovery_is_cached_for_its_ttl() -> None:
    for ttl, asked in ((60000, 1), (0, 2)):
        place = Place({"server/discover": discovery(ttlMs=ttl)})
        found = use(place, lambda client: client.discover())
        assert found.supported_versions == [LATEST]
        assert place.line.methods().count("server/discover") == asked


def test_another_connection_begins_with_nothing_kept() -> None:
    place = Place({"tools/list": fresh})

    async def main() -> None:
        client = Client(place)
        for _ in range(2):
            async with client:
                await client.list_tools()
        assert [line.methods().count("tools/list") for line in place.lines] == [1, 1]

    run(main())


@pytest.mark.parametrize("revision", [NEWEST_HANDSHAKE, "2024-11-05"])
def test_where_no_revision_says_how_long_nothing_is_kept(revision: str) -> None:
    place = Place({"tools/list": fresh}, revision=revision)

    async def work(client: Client) -> None:
        await client.list_tools()
        await client.list_tools()

    use(place, work)
    assert place.line.methods().count("tools/list") == 2


def test_a_client_that_has_lost_its_server_says_so_instead_of_what_was_kept() -> None:
    place = Place({"tools/list": fresh})

    async def work(client: Client) -> None:
        await client.list_tools()
        place.line.end()
        with pytest.raises(ConnectionLost):
            await client.list_tools()

    use(place, work)


def test_list_with_an_enormous_ttl_is_accepted() -> None:
    place = Place({"tools/list": {"tools": [], "ttlMs": 10**400, "cacheScope": "private"}})
    assert use(place, lambda client: client.list_tools()) == []


# -- lists without end -----------------------------------------------------------------------


def endless(message: dict[str, Any]) -> Any:
    cursor = int(message["params"].get("cursor", 0)) + 1
    return {"tools": [tool("a")], "nextCursor": str(cursor)}


def test_the_time_of_a_list_is_for_all_its_pages() -> None:
    async def work(client: Client) -> None:
        with pytest.raises(RequestTimeout, match=r"the list did not end within 0\.05 s"):
            await client.list_tools(timeout=0.05)

    use(Place({"tools/list": endless}), work)
    with pytest.raises(RequestTimeout, match=r"the list did not end within 0\.05 s"):
        use(Place({"tools/list": endless}), lambda c: c.list_tools(), max_timeout=0.05)


def test_a_list_that_has_changed_is_asked_for_again_also_when_it_has_to_be_fresh() -> None:
    refusals = [Refused(-32602, "Invalid cursor")]

    def changing(message: dict[str, Any]) -> Any:
        if message["params"].get("cursor") and refusals:
            return refusals.pop()
        if message["params"].get("cursor"):
            return {"tools": [tool("b")]}
        return {"tools": [tool("a")], "nextCursor": "x"}

    found = use(Place({"tools/list": changing}), lambda client: client.list_tools(fresh=True))
    assert [each.name for each in found] == ["a", "b"]


# -- the log level ---------------------------------------------------------------------------


def test_unknown_log_level_is_refused_before_it_is_sent() -> None:
    async def work(client: Client) -> None:
        with pytest.raises(ValueError, match="level is one of"):
            await client.set_logging_level("loud")  # type: ignore[arg-type]

    for revision in (NEWEST_HANDSHAKE, LATEST):
        place = Place(revision=revision)
        use(place, work)
        assert "logging/setLevel" not in place.line.methods()


def test_the_log_can_be_switched_off_where_requests_ask_for_it() -> None:
    place = Place({"tools/call": text("x")})

    async def work(client: Client) -> None:
        await client.set_logging_level("debug")
        await client.call_tool("x")
        assert LEVEL in place.line.last("tools/call")["params"]["_meta"]
        await client.set_logging_level(None)
        await client.call_tool("x")
        assert LEVEL not in place.line.last("tools/call")["params"]["_meta"]
        await client.call_tool("x", meta={"a": 1})
        assert LEVEL not in place.line.last("tools/call")["params"]["_meta"]

    use(place, work)

    async def refused(client: Client) -> None:
        with pytest.raises(ValueError, match="cannot switch the log off"):
            await client.set_logging_level(None)

    use(Place(revision=NEWEST_HANDSHAKE), refused)


# -- calls that go wrong ---------------------------------------------------------------------


def test_unreadable_reply_is_raised_and_passed_to_on_error() -> None:
    heard: list[Any] = []
    levels = b"[" * 600 + b"]" * 600

    def hostile(message: dict[str, Any]) -> Any:
        place.line.say(
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":%b}}' % (message["id"], levels)
        )
        return SILENT

    place = Place({"tools/call": hostile})

    async def work(client: Client) -> None:
        with pytest.raises(RemoteProtocolError):
            await client.call_tool("x")
        with pytest.raises(RemoteProtocolError):
            await client.submit_tool("x", on_error=heard.append)

        def fail(raw: Any) -> Any:
            raise ZeroDivisionError

        place.answers["acme/own"] = {}
        call = client.submit("acme/own", on_error=heard.append)
        call._read = fail
        with pytest.raises(RemoteProtocolError) as caught:
            await call
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert call.exception() is caught.value
        await asyncio.sleep(0)

    use(place, work)
    assert [type(each) for each in heard] == [InvalidMessage, RemoteProtocolError]
    assert heard[0].rule == "jsonrpc.limit.depth"


# -- batches that go wrong -------------------------------------------------------------------


def test_calls_of_a_batch_that_could_not_be_sent_say_why() -> None:
    place = Place(revision="2025-03-26")

    async def work(client: Client) -> None:
        with pytest.raises(ConnectionLost):
            async with client.batch() as batch:
                call = batch.submit("ping")
                place.line.end()
        with pytest.raises(ConnectionLost):
            await call

    use(place, work, revision="2025-03-26")


def test_a_batch_is_entered_once() -> None:
    place = Place(revision="2025-03-26")

    async def work(client: Client) -> None:
        batch = client.batch()
        async with batch:
            call = batch.submit("ping")
        await call
        with pytest.raises(TrunklineError, match="sent once"):
            async with batch:
                pass
        assert len([each for each in place.line.sent if isinstance(each, list)]) == 1

    use(place, work, revision="2025-03-26")


def test_a_batch_is_as_strict_as_its_client() -> None:
    place = Place(revision="2025-03-26")

    async def work(client: Client) -> None:
        before = len(place.line.sent)
        with pytest.raises(LocalProtocolError, match="the capability resources"):
            async with client.batch() as batch:
                batch.submit("resources/list")
        assert len(place.line.sent) == before

    use(place, work, revision="2025-03-26", strict=True)


def test_calls_of_a_batch_have_their_time_and_their_progress() -> None:
    seen: list[float] = []

    def reports(message: dict[str, Any]) -> Any:
        token = message["params"]["_meta"]["progressToken"]
        say(place, "notifications/progress", progressToken=token, progress=1)
        return text("x") if message["params"]["name"] == "quick" else SILENT

    place = Place({"tools/call": reports, "ping": SILENT}, revision="2025-03-26")

    async def work(client: Client) -> None:
        async with client.batch() as batch:
            quick = batch.submit_tool("quick", on_progress=lambda n, *rest: seen.append(n))
            slow = batch.submit("ping", timeout=0.02)
            long = batch.submit("ping")
            with pytest.raises(ValueError, match="seconds above 0"):
                batch.submit("ping", timeout=float("nan"))
        assert (await quick).text == "x"
        with pytest.raises(RequestTimeout, match=r"0\.02 s"):
            await slow
        assert not long.done()
        session = client._connection.session
        assert session is not None
        assert not session._timeouts.tokens
        assert not session._timeouts.watches

    use(place, work, revision="2025-03-26")
    assert seen == [1]
    place = Place({"tools/call": reports}, revision="2025-03-26")

    async def by_the_client(client: Client) -> None:
        async with client.batch() as batch:
            call = batch.submit_tool("quick")
        await call

    use(place, by_the_client, revision="2025-03-26", on_progress=lambda n, *rest: seen.append(n))
    assert seen == [1, 1]


def test_a_batch_goes_by_a_new_connection_when_ids_are_used_up() -> None:
    place = Place({"tools/call": text("x")}, revision="2025-03-26")

    async def work(client: Client) -> None:
        await client.call_tool("x")
        async with client.batch() as batch:
            calls = [batch.submit_tool("x", on_progress=print) for _ in range(2)]
        assert [(await call).text for call in calls] == ["x", "x"]
        assert len(place.lines) == 2

    use(place, work, revision="2025-03-26", policy=Policy(max_id=3))
