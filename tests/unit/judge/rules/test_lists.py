"""Listings: cursors, caching, order, and what they promise of tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    SERVER_META,
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
    tool,
)
from trunkline.judge import TraceEntry

ERROR, WARN = "error", "warn"
LIST = call(1, "tools/list")


# -- cursors ---------------------------------------------------------------------------------


def test_a_cursor_is_one_that_the_same_listing_gave_out() -> None:
    rule = "mcp.pagination.cursor-unchanged"
    page = listed(1, tool("a"), nextCursor="n")
    keeps(rule, LIST, page, call(2, "tools/list", cursor="n"), listed(2, tool("b")))
    breaks(rule, ERROR, "/params/cursor", LIST, page, call(2, "tools/list", cursor="N"))
    breaks(rule, ERROR, "/params/cursor", LIST, page, call(2, "prompts/list", cursor="n"))
    breaks(rule, ERROR, "/params/cursor", call(1, "tools/list", cursor="n"))
    odd = [call(1, "tools/call", name="a"), complete(1, content=[], nextCursor="n")]
    breaks(rule, ERROR, "/params/cursor", *odd, call(2, "tools/list", cursor="n"))
    passes_over(rule, LIST, page, call(2, "completion/complete", cursor="n", **COMPLETE))


def test_a_reply_to_nothing_lists_nothing() -> None:
    broken = found(LIST, listed(1), listed(9, nextCursor="n"), call(2, "tools/list", cursor="n"))
    assert [rule for rule, *_ in broken] == ["mcp.id.echoed", "mcp.pagination.cursor-unchanged"]


def test_a_cursor_that_may_have_been_forgotten_is_not_called_unknown() -> None:
    pages: list[Any] = []
    for id in range(1100):
        pages += [call(id, "tools/list"), listed(id, nextCursor=str(id))]
    old = call("x", "tools/list", cursor="0")
    assert found(*pages, old) == []
    assert [rule for rule, *_ in found(*pages[:2000], call("x", "tools/list", cursor="y"))] == [
        "mcp.pagination.cursor-unchanged"
    ]


# -- caching ---------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["ttlMs", "cacheScope"])
def test_a_cacheable_result_has_both_caching_hints(missing: str) -> None:
    rule = "mcp.caching.hints-present"
    reply = listed(1)
    rest = {name: value for name, value in reply.message["result"].items() if name != missing}
    keeps(rule, LIST, reply)
    breaks(rule, ERROR, f"/result/{missing}", LIST, answer(1, **rest))


@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("resources/read", {"uri": "a:b"}, {"contents": []}),
        ("prompts/list", {}, {"prompts": []}),
        ("resources/list", {}, {"resources": []}),
        ("resources/templates/list", {}, {"resourceTemplates": []}),
    ],
)
def test_other_cacheable_results_have_caching_hints_too(
    method: str, params: dict[str, Any], result: dict[str, Any]
) -> None:
    rule = "mcp.caching.hints-present"
    ask_for = call(1, method, **params)
    keeps(rule, ask_for, complete(1, **result, ttlMs=0, cacheScope="private"))
    breaks(rule, ERROR, "/result/ttlMs", ask_for, complete(1, **result, cacheScope="private"))


def test_a_result_that_is_not_complete_needs_no_caching_hints() -> None:
    read = call(1, "resources/read", uri="a:b", declared={"roots": {}})
    reply = complete(1, resultType="input_required", inputRequests={"r": {"method": "roots/list"}})
    passes_over("mcp.caching.hints-present", read, reply)
    run = call(1, "tools/call", name="a")
    passes_over("mcp.caching.hints-present", run, complete(1, content=[]))


@pytest.mark.parametrize("ttl", [-1, 1.5, "1"])
def test_a_time_to_live_is_a_whole_number_from_zero(ttl: object) -> None:
    rule = "mcp.caching.ttl-not-negative"
    keeps(rule, LIST, listed(1, ttlMs=0))
    breaks(rule, ERROR, "/result/ttlMs", LIST, listed(1, ttlMs=ttl))


def test_all_pages_have_one_scope() -> None:
    rule = "mcp.caching.scope-same-on-pages"
    first = [LIST, listed(1, nextCursor="n"), call(2, "tools/list", cursor="n")]
    keeps(rule, *first, listed(2))
    breaks(rule, ERROR, "/result/cacheScope", *first, listed(2, cacheScope="private"))
    # A listing that begins again may have another.
    passes_over(rule, *first[:2], call(2, "tools/list"), listed(2, cacheScope="private"))


# -- order -----------------------------------------------------------------------------------


def test_the_same_tools_come_in_the_same_order() -> None:
    rule = "mcp.tools.order-stable"
    first = [LIST, listed(1, tool("b"), tool("a")), call(2, "tools/list")]
    keeps(rule, *first, listed(2, tool("b"), tool("a")))
    breaks(rule, WARN, "/result/tools", *first, listed(2, tool("a"), tool("b")))
    # Other tools may come in any order, and so may one page of several.
    passes_over(rule, *first, listed(2, tool("c"), tool("a")))
    passes_over(rule, *first, listed(2, tool("a"), tool("b"), nextCursor="n"))
    page = [LIST, listed(1, tool("c"), nextCursor="n"), call(2, "tools/list", cursor="n")]
    rest = [listed(2, tool("a"), tool("b")), call(3, "tools/list")]
    passes_over(rule, *page, *rest, listed(3, tool("b"), tool("a")))


def test_only_listings_of_tools_have_an_order() -> None:
    rule = "mcp.tools.order-stable"
    prompts = {"prompts": [], "ttlMs": 0, "cacheScope": "public"}
    both = [call(2, "prompts/list"), complete(2, **prompts)] * 2
    passes_over(rule, LIST, listed(1, tool("a")), *both)


# -- contents --------------------------------------------------------------------------------

COMPLETE: dict[str, Any] = {
    "ref": {"type": "ref/prompt", "name": "p"},
    "argument": {"name": "a", "value": ""},
}


def test_a_completion_has_at_most_100_values() -> None:
    rule, run = "mcp.completion.max-100", call(1, "completion/complete", **COMPLETE)
    keeps(rule, run, complete(1, completion={"values": ["a"] * 100}))
    where = "/result/completion/values"
    breaks(rule, ERROR, where, run, complete(1, completion={"values": ["a"] * 101}))


@pytest.mark.parametrize("blob", ["AA=", "*AA=", "A A=", "AA==AA=="])
def test_a_blob_of_a_resource_is_base64(blob: str) -> None:
    rule, read = "mcp.resources.blob-encoded", call(1, "resources/read", uri="a:b")

    def reply(*blobs: str) -> Any:
        contents = [{"uri": "a:b", "blob": each} for each in blobs]
        return complete(1, contents=contents, ttlMs=0, cacheScope="public")

    keeps(rule, read, reply("AA==", ""))
    breaks(rule, ERROR, "/result/contents/1/blob", read, reply("AA==", blob))


def test_a_blob_inside_a_tool_result_is_base64() -> None:
    rule, run = "mcp.resources.blob-encoded", call(1, "tools/call", name="a")

    def reply(blob: str) -> Any:
        embedded = {"type": "resource", "resource": {"uri": "a:b", "blob": blob}}
        return complete(1, content=[{"type": "text", "text": "*"}, embedded])

    keeps(rule, run, reply("AA=="))
    breaks(rule, ERROR, "/result/content/1/resource/blob", run, reply("A"))


# -- tools -----------------------------------------------------------------------------------

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
KNOWN = [LIST, listed(1, tool("a", inputSchema=NUMBER, outputSchema=NUMBER), tool("b"))]


def test_arguments_that_do_not_fit_are_refused() -> None:
    rule = "mcp.tools.inputs-validated"
    bad = call(2, "tools/call", name="a", arguments={"n": "1"})
    keeps(rule, *KNOWN, bad, refuse(2, -32602))
    keeps(rule, *KNOWN, bad, complete(2, content=[], isError=True))
    reply = complete(2, content=[], structuredContent={"n": 1})
    breaks(rule, ERROR, "/result", *KNOWN, bad, reply)
    breaks(rule, ERROR, "/result", *KNOWN, call(2, "tools/call", name="a"), reply)
    passes_over(rule, *KNOWN, call(2, "tools/call", name="a", arguments={"n": 1}), reply)
    other = call(2, "tools/call", name="b", arguments={"n": "1"})
    passes_over(rule, *KNOWN, other, complete(2, content=[]))


RUN = call(2, "tools/call", name="a", arguments={"n": 1})


def test_a_tool_that_declares_its_output_returns_it() -> None:
    rule = "mcp.tools.structured-present"
    where = "/result/structuredContent"
    keeps(rule, *KNOWN, RUN, complete(2, content=[], structuredContent={"n": 1}))
    breaks(rule, ERROR, where, *KNOWN, RUN, complete(2, content=[]))
    passes_over(rule, *KNOWN, RUN, complete(2, content=[], isError=True))
    other = call(2, "tools/call", name="b")
    passes_over(rule, *KNOWN, other, complete(2, content=[]))


def test_input_required_result_needs_no_structured_content() -> None:
    rule = "mcp.tools.structured-present"
    run = call(2, "tools/call", name="a", arguments={"n": 1}, declared={"roots": {}})
    asking = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
    passes_over(rule, *KNOWN, run, complete(2, **asking))


def test_the_creation_of_a_task_has_no_output_yet() -> None:
    can = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    told = ask(1, "tools/list"), answer(1, tools=[tool("a", outputSchema=NUMBER)])
    run = ask(2, "tools/call", name="a", task={})
    when = "2026-01-01T00:00:00Z"
    task = {"taskId": "t", "status": "working", "ttl": None, "createdAt": when}
    made = answer(2, task={**task, "lastUpdatedAt": when})
    passes_over("mcp.tools.structured-present", *opened(server=can), *told, run, made)


def test_result_without_result_type_counts_as_complete() -> None:
    can = {"tools": {}}
    told = ask(1, "tools/list"), answer(1, tools=[tool("a", outputSchema=NUMBER)])
    run, where = ask(2, "tools/call", name="a"), "/result/structuredContent"
    start = [*opened(server=can), *told, run]
    breaks("mcp.tools.structured-present", ERROR, where, *start, answer(2, content=[]))
    bare = answer(1, tools=[], cacheScope="public", _meta=SERVER_META)
    also = ("mcp.jsonrpc.result-type",)
    breaks("mcp.caching.hints-present", ERROR, "/result/ttlMs", LIST, bare, also=also)


def test_a_tool_whose_schema_is_too_long_to_keep_may_take_anything() -> None:
    long = {**NUMBER, "description": "x" * 16384}
    told = listed(1, tool("a", inputSchema=long, outputSchema=long))
    run = call(2, "tools/call", name="a", arguments={"n": "1"})
    reply = complete(2, content=[], structuredContent={"n": "1"})
    passes_over("mcp.tools.inputs-validated", LIST, told, run, reply)
    passes_over("mcp.tools.structured-conforms", LIST, told, run, reply)
    breaks(
        "mcp.tools.structured-present",
        ERROR,
        "/result/structuredContent",
        *(LIST, told, run),
        complete(2, content=[]),
    )


def test_the_output_of_a_tool_fits_what_it_declares() -> None:
    rule = "mcp.tools.structured-conforms"
    where = "/result/structuredContent"
    keeps(rule, *KNOWN, RUN, complete(2, content=[], structuredContent={"n": 1}))
    breaks(rule, ERROR, where, *KNOWN, RUN, complete(2, content=[], structuredContent={"n": "1"}))


def test_a_schema_beyond_what_is_understood_gets_no_verdict() -> None:
    odd = tool("a", outputSchema={"type": "object", "patternProperties": {}})
    reply = complete(2, content=[], structuredContent={"n": "1"})
    passes_over("mcp.tools.structured-conforms", LIST, listed(1, odd), RUN, reply)
    keeps("mcp.tools.structured-present", LIST, listed(1, odd), RUN, reply)


def test_the_newest_listing_of_a_tool_counts() -> None:
    again = [call(5, "tools/list"), listed(5, tool("a"), tool("b"), _meta=SERVER_META)]
    passes_over("mcp.tools.structured-present", *KNOWN, *again, RUN, complete(2, content=[]))


# -- names -----------------------------------------------------------------------------------


def tools_of(*names: str) -> list[TraceEntry]:
    return [call(1, "tools/list"), listed(1, *(tool(name) for name in names))]


@pytest.mark.parametrize("name", ["a b", "", "x" * 129, "h\u00e9", "a/b", "a:b", "a\n"])
def test_a_tool_has_a_name_of_letters_digits_and_three_marks(name: str) -> None:
    rule = "mcp.tools.name-form"
    keeps(rule, *tools_of("a", "A-9_.b", "x" * 128))
    breaks(rule, WARN, "/result/tools/1/name", *tools_of("a", name))


def test_a_tool_is_listed_once() -> None:
    rule = "mcp.tools.names-unique"
    keeps(rule, *tools_of("a", "A"))
    breaks(rule, WARN, "/result/tools/2/name", *tools_of("a", "b", "a"))


def test_names_are_free_in_earlier_revisions() -> None:
    start = opened("2025-06-18", server={"tools": {}})
    twice = answer(1, tools=[tool("a b"), tool("a b")])
    assert found(*start, ask(1, "tools/list"), twice) == []


# -- resources that are not there ------------------------------------------------------------


def read_after_listing(contents: list[Any], *uris: str, **more: Any) -> list[TraceEntry]:
    hints = {"ttlMs": 0, "cacheScope": "public"}
    rows = [{"uri": uri, "name": uri} for uri in uris]
    return [
        call(1, "resources/list"),
        complete(1, resources=rows, **hints, **more),
        call(2, "resources/read", uri="a://x"),
        complete(2, contents=contents, **hints),
    ]


def test_missing_resource_must_not_be_an_empty_result() -> None:
    rule = "mcp.resources.missing-not-empty"
    where = "/result/contents"
    breaks(rule, ERROR, where, *read_after_listing([], "a://y"))
    keeps(rule, *read_after_listing([{"uri": "a://x", "text": ""}], "a://y"))
    # One that is listed may be empty, and a page does not list them all.
    passes_over(rule, *read_after_listing([], "a://x"))
    passes_over(rule, *read_after_listing([], "a://y", nextCursor="2"))
    passes_over(rule, *read_after_listing([], "a://y")[2:])


# -- tools that have to be tasks -------------------------------------------------------------


def plain_call(support: str, *reply: TraceEntry, **params: Any) -> list[TraceEntry]:
    start = opened(server={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}})
    row = tool("slow", execution={"taskSupport": support})
    page = [ask(1, "tools/list"), answer(1, tools=[row])]
    return [*start, *page, ask(2, "tools/call", name="slow", **params), *reply]


def test_a_tool_that_requires_a_task_is_called_as_one() -> None:
    rule = "mcp.tasks.required-called"
    task = {"taskId": "t", "status": "working", "ttl": None}
    times = {"createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z"}
    keeps(rule, *plain_call("required", answer(2, task={**task, **times}), task={}))
    breaks(rule, ERROR, "/params/name", *plain_call("required"))
    passes_over(rule, *plain_call("optional", answer(2, content=[])))


def test_a_plain_call_of_a_tool_that_requires_a_task_is_refused() -> None:
    rule, also = "mcp.tasks.required-refused", ("mcp.tasks.required-called",)
    keeps(rule, *plain_call("required", refuse(2, -32601)), also=also)
    failed = answer(2, content=[], isError=True)
    breaks(rule, ERROR, "/error/code", *plain_call("required", failed), also=also)
