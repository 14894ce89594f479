"""Requests that stand for themselves: what each has to say, and what each result says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversation.app import INSTRUCTIONS
from tests.conversation.rig import PREFIX, Rig
from tests.conversation.rules import rule
from trunkline.spec.revisions import LATEST, PER_REQUEST, REVISIONS, V2026_07_28

NEW = V2026_07_28
# What a server of all revisions names, newest first.
SUPPORTED = [each for each in reversed(REVISIONS) if PER_REQUEST.holds(each)]
VERSION = f"{PREFIX}protocolVersion"
CAPABILITIES = f"{PREFIX}clientCapabilities"
SERVER_INFO = f"{PREFIX}serverInfo"


def bare(id: int, method: str, meta: Any = None, **params: Any) -> dict[str, Any]:
    if meta is not None:
        params["_meta"] = meta
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return {**message, "params": params} if params else message


@rule("BP-041", "BP-040")
@pytest.mark.parametrize(
    "meta",
    [
        None,
        {},
        {VERSION: LATEST},
        {CAPABILITIES: {}},
        {VERSION: 5, CAPABILITIES: {}},
        {VERSION: LATEST, CAPABILITIES: []},
        {VERSION: LATEST, CAPABILITIES: None},
        {VERSION: LATEST, CAPABILITIES: {}, f"{PREFIX}clientInfo": "me"},
        {VERSION: LATEST, CAPABILITIES: {}, "progressToken": 1.5},
        "meta",
    ],
)
async def test_request_without_required_meta_is_refused(rig: Rig, meta: Any) -> None:
    id = rig.raw.new_id()
    rig.raw.send(bare(id, "server/discover", meta))
    assert (await rig.raw.reply(id))["error"]["code"] == -32602


@rule("BP-041", fresh=True)
async def test_server_without_handshake_refuses_every_method_without_meta(
    rig: Rig,
) -> None:
    raw = await rig.line("per-request-only")
    for number, method in enumerate(["tools/list", "server/discover", "example/double"]):
        raw.send(bare(number, method))
        assert (await raw.reply(number))["error"]["code"] == -32602


@rule("BP-043", "K-13")
@pytest.mark.parametrize("asked", ["2099-01-01", "2025-11-25", "2024-11-05", "", "1.0"])
async def test_a_version_that_is_not_served_so_is_refused_with_those_that_are(
    rig: Rig, asked: str
) -> None:
    raw = rig.raw
    error = await raw.error("tools/list", **{VERSION: asked})
    assert error["code"] == -32022
    # Those that a request can name: a version that needs a handshake would be no help.
    assert error["data"] == {"supported": SUPPORTED, "requested": asked}


@rule("BP-045", "BP-042", "BP-145")
async def test_discover_result_has_versions_capabilities_and_cache_hints(rig: Rig) -> None:
    result = await rig.raw.result("server/discover")
    assert result["supportedVersions"] == list(REVISIONS[::-1])
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        "completions": {},
        "experimental": {"example/feature": {"on": True}},
    }
    assert (result["ttlMs"], result["cacheScope"]) == (30_000, "private")
    assert (result["resultType"], result["instructions"]) == ("complete", INSTRUCTIONS)
    assert "serverInfo" not in result
    info = {"name": "example", "version": "1.2.3", "title": "An example"}
    assert result["_meta"][SERVER_INFO] == info
    found = await rig.client.discover()
    assert found.supported_versions == list(REVISIONS[::-1])
    assert rig.client.server_info is not None
    assert rig.client.server_info.name == "example"


@rule("BP-021", "K-70", since=NEW)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": {}}),
        ("ping", {}),
        ("logging/setLevel", {"level": "info"}),
        ("resources/subscribe", {"uri": "note://text"}),
        ("resources/unsubscribe", {"uri": "note://text"}),
        ("tasks/result", {"taskId": "1"}),
        ("sampling/createMessage", {"messages": []}),
    ],
)
async def test_removed_method_is_method_not_found(
    rig: Rig, method: str, params: dict[str, Any]
) -> None:
    error = await rig.raw.error(method, params)
    assert error["code"] == -32601
    assert method in error["message"]


@rule("BP-021", since=NEW, provokes=("mcp.tasks.undeclared-refused",))
async def test_methods_of_an_extension_that_the_server_lacks_are_not_found(rig: Rig) -> None:
    # A server with the extension would say that the client did not declare it.
    assert (await rig.raw.error("tasks/get", {"taskId": "1"}))["code"] == -32601


CACHEABLE = [
    ("server/discover", {}, 30_000, "private"),
    ("tools/list", {}, 30_000, "private"),
    ("prompts/list", {}, 30_000, "private"),
    ("resources/templates/list", {}, 30_000, "private"),
    # As short-lived, and as private, as the most so of what is on it.
    ("resources/list", {}, 5_000, "private"),
    ("resources/read", {"uri": "note://text"}, 30_000, "private"),
    ("resources/read", {"uri": "config://app"}, 5_000, "public"),
]
OTHERS = [
    ("tools/call", {"name": "echo", "arguments": {"text": "x"}}),
    ("tools/call", {"name": "add", "arguments": {"a": 1}}),
    ("tools/call", {"name": "fails"}),
    ("tools/call", {"name": "explodes"}),
    ("tools/call", {"name": "forecast", "arguments": {"city": 5}}),
    ("tools/call", {"name": "in_short"}),
    ("prompts/get", {"name": "review", "arguments": {"code": "x"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "style", "value": "s"},
        },
    ),
    ("example/double", {"value": 2}),
]


@rule("BP-145")
@pytest.mark.parametrize(("method", "params", "ttl", "scope"), CACHEABLE)
async def test_cacheable_results_have_ttl_and_cache_scope(
    rig: Rig, method: str, params: dict[str, Any], ttl: int, scope: str
) -> None:
    result = await rig.raw.result(method, params)
    assert (result["ttlMs"], result["cacheScope"]) == (ttl, scope)


@rule("BP-148")
async def test_all_pages_of_a_list_say_the_same_scope(rig: Rig) -> None:
    said, cursor = set(), None
    while True:
        page = await rig.raw.result("tools/list", {} if cursor is None else {"cursor": cursor})
        said.add((page["ttlMs"], page["cacheScope"], page["resultType"]))
        if (cursor := page.get("nextCursor")) is None:
            break
    assert len(said) == 1


@rule("BP-015", "BP-042")
@pytest.mark.parametrize(
    ("method", "params"), [each[:2] for each in CACHEABLE] + OTHERS, ids=lambda each: str(each)[:24]
)
async def test_every_result_says_what_it_is_and_whose(
    rig: Rig, method: str, params: dict[str, Any]
) -> None:
    result = await rig.raw.result(method, params)
    assert result["resultType"] == "complete"
    assert result["_meta"][SERVER_INFO]["name"] == "example"


@rule("K-61", since="2025-03-26", until=NEW)
async def test_result_type_is_not_sent_before_2026_07_28(rig: Rig) -> None:
    for method, params in [*(each[:2] for each in CACHEABLE[1:]), *OTHERS]:
        reply = await rig.raw.ask(method, params)
        result = reply.get("result", {})
        assert result.keys().isdisjoint({"resultType", "ttlMs", "cacheScope"})
        assert SERVER_INFO not in result.get("_meta", {})


@rule("BP-046", "mcp.security.client-info-ignored")
async def test_requests_keep_no_state_from_one_to_the_next(rig: Rig) -> None:
    raw = rig.raw
    declared_meta = {
        f"{PREFIX}clientInfo": {"name": "first", "version": "1"},
        CAPABILITIES: {"sampling": {}, "elicitation": {}},
    }
    first = await raw.result("tools/call", {"name": "who"}, **declared_meta)
    id = raw.new_id()
    meta = {VERSION: LATEST, CAPABILITIES: {}}
    raw.send(bare(id, "tools/call", meta, name="who"))
    second = (await raw.reply(id))["result"]
    assert first["structuredContent"]["client"] == "first"
    assert set(first["structuredContent"]["declared"]) == {"sampling", "elicitation"}
    assert second["structuredContent"]["client"] == ""
    assert second["structuredContent"]["declared"] == []


@rule("BP-048", "BP-049", fresh=True)
async def test_lists_are_the_same_on_every_connection_and_in_the_same_order(rig: Rig) -> None:
    other = await rig.line()
    for method in ("tools/list", "prompts/list", "resources/list"):
        first = await rig.raw.result(method)
        await rig.raw.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        again, elsewhere = await rig.raw.result(method), await other.result(method)
        member = method.partition("/")[0]
        assert first[member] == again[member] == elsewhere[member]


@rule("K-61", "BP-067", "BP-046", since=NEW, fresh=True)
async def test_requests_of_both_eras_are_served_on_one_connection(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    new = await raw.text("who")
    raw.revision = "2025-11-25"
    await raw.shake_hands()
    old_hold = raw.start("tools/call", {"name": "hold", "arguments": {"key": "old"}})
    raw.revision = rig.revision
    new_hold = raw.start("tools/call", {"name": "hold", "arguments": {"key": "new"}})
    assert (await raw.result("server/discover"))["resultType"] == "complete"
    raw.revision = "2025-11-25"
    assert await raw.result("ping") == {}
    old = await raw.text("who")
    await raw.call("release", key="new")
    assert (await raw.reply(new_hold))["result"]["resultType"] == "complete"
    raw.revision = rig.revision
    assert (await raw.error("ping"))["code"] == -32601
    await raw.call("release", key="old")
    assert "resultType" not in (await raw.reply(old_hold))["result"]
    assert (new["revision"], old["revision"]) == (rig.revision, "2025-11-25")


@rule("K-61", since=NEW, fresh=True)
async def test_session_state_does_not_apply_to_requests_outside_it(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    raw.revision = "2025-11-25"
    await raw.shake_hands(capabilities={"roots": {}})
    await raw.result("logging/setLevel", {"level": "debug"})
    raw.revision = NEW
    seen = await raw.text("who")
    assert seen["declared"] == []
    await raw.call("speak", levels=["emergency"])
    await raw.call("grow", kind="tool", names=["later"])
    raw.revision = "2025-11-25"
    await raw.wait_for_notifications("notifications/tools/list_changed")
    assert raw.notifications("notifications/message") == []


@rule("BP-005", since=NEW)
async def test_an_id_may_be_used_again_once_it_was_answered(rig: Rig) -> None:
    raw = rig.raw
    params = {"name": "echo", "arguments": {"text": "x"}}
    id = f"again-{raw.new_id()}"
    for _ in range(2):
        raw.received.clear()
        assert "result" in await raw.ask("tools/call", params, id=id)


@rule("BP-022", "BP-154", since=NEW)
@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "ping"])
async def test_a_server_sends_no_requests(rig: Rig, method: str) -> None:
    declared_meta = {CAPABILITIES: {"roots": {}, "sampling": {}}}
    params = {"name": "ask", "arguments": {"method": method}}
    result = await rig.raw.result("tools/call", params, **declared_meta)
    assert "unsent" in result["structuredContent"]
    assert [each for each in await rig.raw.settle() if "method" in each] == []


@rule("BP-022", since=NEW)
async def test_unmatched_reply_is_ignored(rig: Rig) -> None:
    rig.raw.send({"jsonrpc": "2.0", "id": 1, "result": {}})
    rig.raw.send({"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": "no"}})
    assert await rig.raw.settle() == []


@rule("BP-052", "BP-053", since=NEW)
async def test_unknown_meta_keys_reach_the_handler(rig: Rig) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    seen = await rig.raw.result(
        "tools/call", {"name": "who"}, traceparent=trace, **{"org.example/own": {"a": [1]}}
    )
    meta = seen["structuredContent"]["meta"]
    assert (meta["traceparent"], meta["org.example/own"]) == (trace, {"a": [1]})


@rule("BP-154", "BP-141", since=NEW, fresh=True)
async def test_change_notifications_are_not_sent_without_a_listen_stream(rig: Rig) -> None:
    raw = await rig.line()
    await raw.call("grow", kind="tool", names=["one", "two"])
    await raw.call("touch", uris=["note://text"])
    for name in "abc":
        await raw.call("step", key="wait", name=name)
    assert [each for each in await raw.settle() if "method" in each] == []
