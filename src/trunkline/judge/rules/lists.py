"""Lists: cursors, caching, order, and calls checked against the listed schemas of a tool."""

from __future__ import annotations

import re
from typing import Any, Final

from ..types.formats import is_base64
from .checker import Checker
from .messages import ANY
from .schema_check import fits
from .state import (
    MAX_ENTRIES,
    Members,
    ObservedCall,
    ObservedMessage,
    ObservedTool,
    State,
    fingerprint,
    object_at,
)

__all__ = ["check_listings", "check_tools", "remember_listing"]

_LISTINGS: Final = frozenset(
    ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list")
)
_TOOL_NAME: Final = re.compile("[A-Za-z0-9_.-]{1,128}")
_CACHED: Final = (_LISTINGS - {"tasks/list"}) | {"server/discover", "resources/read"}


def check_listings(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check cursors, cache hints, order and Base64 of listed or read contents."""
    if seen.kind == "request" and seen.method in _LISTINGS:
        cursor = seen.params.get("cursor")
        if type(cursor) is str:
            known = (seen.method, cursor) in state.cursors
            if known or not state.cursors.evicted:
                checker.check("mcp.pagination.cursor-unchanged", known, "/params/cursor", cursor)
    elif seen.result is not None and seen.call is not None:
        if seen.call.method in _CACHED:
            _check_caching(seen.result, seen, checker)
        if seen.call.method == "tools/list":
            _check_names(seen.result, checker)
            if seen.call.cursor is None:
                _check_order(seen.result, state, checker)
        if seen.call.method == "resources/read":
            _check_empty(seen.result, seen.call, state, checker)
        if seen.call.method == "completion/complete":
            values = object_at(seen.result, "completion").get("values")
            if type(values) is list:
                kept = len(values) <= 100
                where = "/result/completion/values"
                checker.check("mcp.completion.max-100", kept, where, f"{len(values)} values")
        _check_blobs(seen.result, seen.call.method, checker)


def _check_caching(result: Members, seen: ObservedMessage, checker: Checker) -> None:
    if result.get("resultType", "complete") != "complete":
        return
    missing = [name for name in ("ttlMs", "cacheScope") if name not in result]
    places = [f"/result/{name}" for name in missing]
    where = places[0] if places else ""
    checker.check("mcp.caching.hints-present", not missing, where, also=places)
    if "ttlMs" in result:
        ttl = result["ttlMs"]
        kept = type(ttl) is int and ttl >= 0
        checker.check("mcp.caching.ttl-not-negative", kept, "/result/ttlMs", ttl)
    before = None if seen.call is None else seen.call.scope
    if before is not None and "cacheScope" in result:
        scope = result["cacheScope"]
        kept = scope == before
        checker.check("mcp.caching.scope-same-on-pages", kept, "/result/cacheScope", scope)


def _names(result: Members) -> list[str]:
    tools = result.get("tools")
    return [
        tool["name"]
        for tool in (tools if type(tools) is list else ())
        if type(tool) is dict and type(tool.get("name")) is str
    ]


def _check_names(result: Members, checker: Checker) -> None:
    tools = result.get("tools")
    known: set[str] = set()
    for place, tool in enumerate(tools if type(tools) is list else ()):
        name = tool.get("name") if type(tool) is dict else None
        if type(name) is not str:
            continue
        where = f"/result/tools/{place}/name"
        checker.check("mcp.tools.name-form", _TOOL_NAME.fullmatch(name), where, name)
        checker.check("mcp.tools.names-unique", name not in known, where, name)
        known.add(name)


def _check_empty(result: Members, call: ObservedCall, state: State, checker: Checker) -> None:
    listed = state.resources
    if type(result.get("contents")) is not list or listed is None or type(call.uri) is not str:
        return
    if result["contents"] or call.uri not in listed:
        is_empty = not result["contents"]
        checker.check("mcp.resources.missing-not-empty", not is_empty, "/result/contents", [])


def _check_order(result: Members, state: State, checker: Checker) -> None:
    if "nextCursor" in result:
        return
    names = _names(result)
    now = (fingerprint(sorted(names)), fingerprint(names))
    before = state.tool_order
    if before is not None and before[0] == now[0]:
        checker.check("mcp.tools.order-stable", before[1] == now[1], "/result/tools", names)
    state.tool_order = now


def _check_blobs(result: Members, method: str, checker: Checker) -> None:
    contents = result.get("contents") if method == "resources/read" else result.get("content")
    for place, item in enumerate(contents if type(contents) is list else ()):
        if type(item) is not dict:
            continue
        if method == "resources/read":
            where, holder = f"/result/contents/{place}", item
        else:
            where, holder = f"/result/content/{place}/resource", object_at(item, "resource")
        blob = holder.get("blob")
        if type(blob) is str:
            checker.check("mcp.resources.blob-encoded", is_base64(blob), f"{where}/blob", blob)


def remember_listing(seen: ObservedMessage, state: State) -> None:
    """Remember the cursor and the tools of a page."""
    result, call = seen.result, seen.call
    if seen.kind == "request" and seen.call is not None and seen.call.cursor is not None:
        key = (seen.method, str(seen.call.cursor))
        seen.call.scope = state.cursors.get(key)
    if result is None or call is None or call.method not in _LISTINGS:
        return
    cursor: Any = result.get("nextCursor")
    if type(cursor) is str:
        state.cursors[(call.method, cursor)] = result.get("cacheScope")
    if call.method == "resources/list":
        _remember_resources(result, call, state)
    if call.method == "tools/list":
        tools = result.get("tools")
        for tool in tools if type(tools) is list else ():
            if type(tool) is dict and type(tool.get("name")) is str:
                state.tools[tool["name"]] = ObservedTool(tool)


def _remember_resources(result: Members, call: ObservedCall, state: State) -> None:
    # Only a listing on one page is known to be complete.
    rows = result.get("resources")
    is_complete = call.cursor is None and "nextCursor" not in result and type(rows) is list
    if is_complete and len(result["resources"]) <= MAX_ENTRIES:
        state.resources = frozenset(
            row["uri"]
            for row in result["resources"]
            if type(row) is dict and type(row.get("uri")) is str
        )
    else:
        state.resources = None


# -- tools -----------------------------------------------------------------------------------


def check_tools(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check arguments and structured results of a tool against its listed schemas."""
    if seen.kind == "request" and seen.method == "tools/call" and seen.call is not None:
        tool = state.tools.get(str(seen.call.name))
        if tool is not None:
            _check_task_support(tool, seen.call, checker)
        arguments = seen.params.get("arguments", {})
        if tool is not None and tool.input is not None and fits(arguments, tool.input) is False:
            seen.call.refusals_due.append(("mcp.tools.inputs-validated", ANY))
    elif seen.result is not None and seen.call is not None and seen.call.method == "tools/call":
        tool = state.tools.get(str(seen.call.name))
        is_final = seen.result.get("resultType", "complete") == "complete"
        failed = seen.result.get("isError") is True
        if tool is not None and is_final and not failed and "task" not in seen.result:
            _check_output(seen.result, tool, checker)


def _check_task_support(tool: ObservedTool, call: ObservedCall, checker: Checker) -> None:
    if tool.task_support == "required":
        kept = call.wants_task
        checker.check("mcp.tasks.required-called", kept, "/params/name", call.name)
        if not kept:
            call.refusals_due.append(("mcp.tasks.required-refused", -32601))


def _check_output(result: Members, tool: ObservedTool, checker: Checker) -> None:
    if not tool.has_output:
        return
    where = "/result/structuredContent"
    present = "structuredContent" in result
    checker.check("mcp.tools.structured-present", present, where)
    if present and tool.output is not None:
        fit = fits(result["structuredContent"], tool.output)
        if fit is not None:
            checker.check("mcp.tools.structured-conforms", fit, where, result["structuredContent"])
