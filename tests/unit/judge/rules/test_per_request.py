"""What every message carries without a session: `_meta`, kinds of results, codes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rigs.messages import META
from tests.unit.judge.rules.recording import (
    PREFIX,
    SERVER_META,
    TASKS,
    answer,
    ask,
    breaks,
    call,
    complete,
    found,
    keeps,
    listed,
    opened,
    passes_over,
    refuse,
    tell,
)
from trunkline.judge import TraceEntry

ERROR, WARN = "error", "warn"
LIST = call(1, "tools/list")


# -- sides -----------------------------------------------------------------------------------


def test_a_server_sends_no_requests() -> None:
    rule = "mcp.jsonrpc.no-server-requests"
    keeps(rule, LIST, listed(1))
    roots = ask(1, "roots/list", by="server", _meta=META)
    breaks(rule, ERROR, "/method", LIST, roots, revision="2026-07-28")
    passes_over(rule, *opened(client={"roots": {}}), ask(1, "roots/list", by="server"))


def test_a_client_sends_no_replies() -> None:
    rule = "mcp.jsonrpc.no-client-replies"
    keeps(rule, LIST, listed(1))
    reply = answer(9, by="client", _meta=META)
    rules = [each for each in found(LIST, reply, revision="2026-07-28") if each[0] == rule]
    assert rules == [(rule, ERROR, "/id")]


# -- requests --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "key", "level"),
    [
        ("mcp.meta.version-present", "protocolVersion", ERROR),
        ("mcp.meta.capabilities-present", "clientCapabilities", ERROR),
        ("mcp.meta.client-info", "clientInfo", WARN),
    ],
)
def test_a_request_names_its_revision_its_capabilities_and_its_client(
    rule: str, key: str, level: str
) -> None:
    keeps(rule, LIST)
    rest = {name: value for name, value in META.items() if name != PREFIX + key}
    where = f"/params/_meta/io.modelcontextprotocol~1{key}"
    breaks(rule, level, where, ask(1, "tools/list", _meta=rest), revision="2026-07-28")
    passes_over(rule, tell("notifications/cancelled", by="client", requestId=1, _meta=META))


def test_an_extension_is_used_where_the_server_has_it() -> None:
    rule = "mcp.capability.extension-client"
    get = call(2, "tasks/get", taskId="t", declared=TASKS)
    keeps(rule, *discovered(capabilities=TASKS), get)
    breaks(rule, ERROR, "/method", *discovered(), get)
    passes_over(rule, get)
    passes_over(rule, *discovered(), call(2, "tools/list"))


@pytest.mark.parametrize("name", ["tasks", "a b/c"])
def test_the_name_of_an_extension_has_a_prefix(name: str) -> None:
    rule = "mcp.capability.extension-ids"
    keeps(rule, call(1, "tools/list", declared=TASKS))
    keeps(rule, *discovered(capabilities=TASKS))
    broken = [
        each for each, *_ in found(call(1, "tools/list", declared={"extensions": {name: {}}}))
    ]
    assert broken == [rule]
    assert rule in [
        each for each, *_ in found(*discovered(capabilities={"extensions": {name: {}}}))
    ]
    passes_over(rule, LIST)


def version(value: str) -> TraceEntry:
    return call(2, "tools/list", meta={PREFIX + "protocolVersion": value})


def test_a_request_is_repeated_in_a_revision_that_the_server_has() -> None:
    rule = "mcp.version.retry-supported"
    data = {"supported": ["2026-07-28", "2099-01-01"], "requested": "2098-01-01"}
    first = [version("2098-01-01"), refuse(2, -32022, **data)]
    unknown = ("mcp.meta.version",)
    keeps(rule, *first, version("2026-07-28"), also=unknown)
    where = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
    broken = [each for each in found(*first, version("2097-01-01")) if each[0] == rule]
    assert broken == [(rule, WARN, where)]
    # Another request is not the same one again, and the same one is judged once.
    outcome = [each for each, *_ in found(*first, call(3, "prompts/list"), version("2026-07-28"))]
    assert rule not in outcome
    # A server may refuse a released revision as well.
    data = {"supported": ["2099-01-01"], "requested": "2026-07-28"}
    first = [version("2026-07-28"), refuse(2, -32022, **data)]
    assert rule in [each for each, *_ in found(*first, version("2026-07-28"))]


# -- replies ---------------------------------------------------------------------------------


def test_a_result_says_what_kind_it_is() -> None:
    rule, run = "mcp.jsonrpc.result-type", call(1, "tools/call", name="a")
    keeps(rule, run, complete(1, content=[]))
    bare = answer(1, content=[], _meta=SERVER_META)
    breaks(rule, ERROR, "/result/resultType", run, bare)
    breaks(rule, ERROR, "/result/resultType", run, complete(1, content=[], resultType=1))
    passes_over(rule, *opened(server={"tools": {}}), ask(1, "tools/list"), answer(1, tools=[]))


def test_a_result_says_which_server_it_is_from() -> None:
    rule, run = "mcp.meta.server-info", call(1, "tools/call", name="a")
    keeps(rule, run, complete(1, content=[]))
    where = "/result/_meta/io.modelcontextprotocol~1serverInfo"
    breaks(rule, WARN, where, run, complete(1, content=[], _meta={}))


WHEN = "2026-01-01T00:00:00Z"
TASK: dict[str, Any] = {
    **{"taskId": "t", "status": "working", "ttlMs": None, "resultType": "task"},
    **{"createdAt": WHEN, "lastUpdatedAt": WHEN},
}


def test_a_result_of_an_extension_is_for_a_client_that_declared_it() -> None:
    rule = "mcp.capability.extension-server"
    bare = call(1, "tools/call", name="a")
    keeps(rule, bare, complete(1, content=[]))
    also = ("mcp.tasks.declared-only",)
    breaks(rule, ERROR, "/result/resultType", bare, complete(1, **TASK), also=also)
    passes_over(rule, call(1, "tools/call", name="a", declared=TASKS), complete(1, **TASK))


# -- codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-32002, -32042])
def test_a_code_that_is_retired_is_not_sent(code: int) -> None:
    rule = "mcp.jsonrpc.codes-retired"
    keeps(rule, LIST, refuse(1, -32602))
    breaks(rule, ERROR, "/error/code", LIST, refuse(1, code))


@pytest.mark.parametrize("code", [-32099, -32040, -32023])
def test_a_code_of_the_specification_is_one_that_it_defines(code: int) -> None:
    rule = "mcp.jsonrpc.codes-reserved"
    for fine in (-32100, -32602, -31999, 1):
        assert rule not in [each for each, *_ in found(LIST, refuse(1, fine))]
    keeps(rule, LIST, refuse(1, -32602))
    breaks(rule, ERROR, "/error/code", LIST, refuse(1, code))


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_the_codes_that_the_specification_defines_may_be_sent(code: int) -> None:
    data = {"requiredCapabilities": {}, "supported": [], "requested": ""}
    rules = [each for each, *_ in found(LIST, refuse(1, code, **data))]
    assert not {"mcp.jsonrpc.codes-reserved", "mcp.jsonrpc.codes-legacy"} & set(rules)


@pytest.mark.parametrize("code", [-32019, -32000])
def test_the_codes_that_implementations_once_used_are_avoided(code: int) -> None:
    rule = "mcp.jsonrpc.codes-legacy"
    keeps(rule, LIST, refuse(1, -32602))
    breaks(rule, WARN, "/error/code", LIST, refuse(1, code))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"supported": ["2026-07-28"]},
        {"requested": "2098-01-01"},
        {"supported": [1], "requested": "2098-01-01"},
        {"supported": "2026-07-28", "requested": "2098-01-01"},
    ],
)
def test_a_version_that_is_refused_comes_with_those_there_are(data: dict[str, Any]) -> None:
    rule = "mcp.version.unsupported-data"
    keeps(rule, LIST, refuse(1, -32022, supported=["2099-01-01"], requested="2026-07-28"))
    broken = [each for each in found(LIST, refuse(1, -32022, **data)) if each[0] == rule]
    assert broken == [(rule, ERROR, "/error/data")]


@pytest.mark.parametrize("data", [{}, {"requiredCapabilities": ["roots"]}])
def test_a_capability_that_is_missing_is_named(data: dict[str, Any]) -> None:
    rule, where = "mcp.capability.missing-data", "/error/data/requiredCapabilities"
    keeps(rule, LIST, refuse(1, -32021, requiredCapabilities={"roots": {}}))
    broken = [each for each in found(LIST, refuse(1, -32021, **data)) if each[0] == rule]
    assert broken == [(rule, ERROR, where)]


# -- discovery -------------------------------------------------------------------------------


def discovered(**more: Any) -> list[TraceEntry]:
    facts = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0}
    members = {**facts, "cacheScope": "public", **more}
    given = {name: value for name, value in members.items() if value is not None}
    return [call(1, "server/discover"), complete(1, **given)]


@pytest.mark.parametrize("name", ["supportedVersions", "capabilities"])
def test_a_server_says_all_of_itself(name: str) -> None:
    rule = "mcp.version.discover-fields"
    keeps(rule, *discovered())
    breaks(rule, ERROR, f"/result/{name}", *discovered(**{name: None}))
    passes_over(rule, LIST, listed(1))


def test_hints_that_are_missing_are_reported_once() -> None:
    rule = "mcp.caching.hints-present"
    for missing in ({"ttlMs": None}, {"cacheScope": None}, {"ttlMs": None, "cacheScope": None}):
        breaks(rule, ERROR, f"/result/{next(iter(missing))}", *discovered(**missing))
