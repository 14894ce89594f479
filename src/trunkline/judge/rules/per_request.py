"""What every message carries since there is no session: `_meta`, kinds of results, codes."""

from __future__ import annotations

from typing import Any, Final

from ...errors import NOTHING
from ...spec.mcp.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
    SERVER_INFO,
)
from ...spec.mcp.tasks_extension import EXTENSION
from .notes import Notes
from .state import Members, Seen, State, declares, fingerprint, object_at

__all__ = ["watch_discovery", "watch_error", "watch_meta", "watch_result", "watch_sides"]

_DISCOVERED: Final = ("supportedVersions", "capabilities", "ttlMs", "cacheScope")
_TASKS: Final = f"extensions.{EXTENSION}"

# [MCP 2026-07-28, basic]
_RETIRED: Final = (-32002, -32042)
_DEFINED: Final = (-32020, -32021, -32022)
_SPECIFIED: Final = range(-32099, -32019)
_LEGACY: Final = range(-32019, -31999)


def at_meta(key: str) -> str:
    """Return the place of a key in the `_meta` of a request."""
    return "/params/_meta/" + key.replace("/", "~1")


def watch_sides(seen: Seen, state: State, notes: Notes) -> None:
    """Look who asks and who answers."""
    if seen.sender == "server":
        kept = seen.kind != "request"
        notes.check("mcp.jsonrpc.no-server-requests", kept, "/method", seen.method)
    elif seen.sender == "client":
        notes.check("mcp.jsonrpc.no-client-replies", seen.kind != "reply", "/id", seen.id)


def watch_meta(seen: Seen, state: State, notes: Notes) -> None:
    """Look at what a request says of itself."""
    if seen.kind != "request" or seen.sender != "client":
        return
    for rule, key in (
        ("mcp.meta.version-present", PROTOCOL_VERSION),
        ("mcp.meta.capabilities-present", CLIENT_CAPABILITIES),
        ("mcp.meta.client-info", CLIENT_INFO),
    ):
        notes.check(rule, key in seen.meta, at_meta(key))
    _watch_extensions(object_at(seen.meta, CLIENT_CAPABILITIES), notes)
    if seen.row is not None and seen.row.extension and state.discovered is not None:
        name = f"extensions.{seen.row.extension}"
        kept = declares(object_at(state.discovered, "capabilities"), name)
        notes.check("mcp.capability.extension-client", kept, "/method", seen.method)
    _watch_repeated(seen, state, notes)


def _watch_extensions(capabilities: Members, notes: Notes) -> None:
    if object_at(capabilities, "extensions"):
        notes.check("mcp.capability.extension-ids", True)  # the judge of messages knows the form


def likeness(seen: Seen) -> int:
    """Return what two attempts at the same request have in common."""
    left_out = ("_meta", "inputResponses", "requestState")
    params = {name: value for name, value in seen.params.items() if name not in left_out}
    return fingerprint(seen.method, params)


def _watch_repeated(seen: Seen, state: State, notes: Notes) -> None:
    supported = state.refused.pop(likeness(seen), None) if state.refused else None
    version = seen.meta.get(PROTOCOL_VERSION)
    if supported is not None:
        expected = f"one of {', '.join(supported)}"
        notes.check(
            "mcp.version.retry-supported",
            version in supported,
            at_meta(PROTOCOL_VERSION),
            version,
            expected,
        )


# -- replies ---------------------------------------------------------------------------------


def watch_result(seen: Seen, state: State, notes: Notes) -> None:
    """Look at what a result says of itself."""
    if seen.result is None or seen.sender != "server":
        return
    kind = seen.result.get("resultType")
    if not notes.asks("mcp.jsonrpc.result-type"):
        return
    notes.check("mcp.jsonrpc.result-type", type(kind) is str, "/result/resultType")
    notes.check("mcp.meta.server-info", SERVER_INFO in seen.meta, _at_result_meta(SERVER_INFO))
    if seen.call is not None and not declares(seen.call.declared, _TASKS):
        kept = kind != "task"
        notes.check("mcp.capability.extension-server", kept, "/result/resultType", kind)


def _at_result_meta(key: str) -> str:
    return "/result/_meta/" + key.replace("/", "~1")


def watch_error(seen: Seen, state: State, notes: Notes) -> None:
    """Look at the code of an error, and at what has to come with it."""
    code = seen.code
    if seen.error is None or seen.sender != "server" or type(code) is not int:
        return
    where = "/error/code"
    notes.check("mcp.jsonrpc.codes-retired", code not in _RETIRED, where, code)
    if code not in _RETIRED:
        kept = code in _DEFINED or code not in _SPECIFIED
        notes.check("mcp.jsonrpc.codes-reserved", kept, where, code)
        notes.check("mcp.jsonrpc.codes-legacy", code not in _LEGACY, where, code)
    data = object_at(seen.error, "data")
    if code == -32022:
        kept = _is_texts(data.get("supported")) and type(data.get("requested")) is str
        notes.check("mcp.version.unsupported-data", kept, "/error/data", data or NOTHING)
    elif code == -32021:
        kept = type(data.get("requiredCapabilities")) is dict
        where = "/error/data/requiredCapabilities"
        notes.check("mcp.capability.missing-data", kept, where, data or NOTHING)


def _is_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def watch_discovery(seen: Seen, state: State, notes: Notes) -> None:
    """Look at what a server says of itself."""
    if seen.result is None or seen.call is None or seen.call.method != "server/discover":
        return
    missing = [name for name in _DISCOVERED if name not in seen.result]
    where = f"/result/{missing[0]}" if missing else ""
    notes.check("mcp.version.discover-fields", not missing, where)
    _watch_extensions(object_at(seen.result, "capabilities"), notes)
