"""Revisions without sessions: `_meta` of requests, `resultType`, error codes, discovery."""

from __future__ import annotations

from typing import Any, Final

from ...errors import NOTHING
from ...spec.mcp.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
    SERVER_INFO,
)
from ...spec.mcp.methods import EXTENSION_METHODS
from ...spec.mcp.tasks_extension import EXTENSION
from .checker import Checker
from .state import Members, ObservedMessage, State, declares, fingerprint, object_at

__all__ = ["check_discovery", "check_error", "check_meta", "check_result", "check_sides"]

_HINTS: Final = ("ttlMs", "cacheScope")
_DISCOVERED: Final = ("supportedVersions", "capabilities", *_HINTS)
_TASKS: Final = f"extensions.{EXTENSION}"

# [MCP 2026-07-28, basic]
_RETIRED: Final = (-32002, -32042)
_DEFINED: Final = (-32020, -32021, -32022)
_SPECIFIED: Final = range(-32099, -32019)
_LEGACY: Final = range(-32019, -31999)


def at_meta(key: str) -> str:
    """Return the JSON pointer of a key in the `_meta` of a request."""
    return "/params/_meta/" + key.replace("/", "~1")


def check_sides(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check that only clients send requests and only servers send replies."""
    if seen.sender == "server":
        kept = seen.kind != "request"
        checker.check("mcp.jsonrpc.no-server-requests", kept, "/method", seen.method)
    elif seen.sender == "client":
        checker.check("mcp.jsonrpc.no-client-replies", seen.kind != "reply", "/id", seen.id)


def check_meta(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the `_meta` of a request, and the version of a retry."""
    if seen.kind != "request" or seen.sender != "client":
        return
    for rule, key in (
        ("mcp.meta.version-present", PROTOCOL_VERSION),
        ("mcp.meta.capabilities-present", CLIENT_CAPABILITIES),
        ("mcp.meta.client-info", CLIENT_INFO),
    ):
        checker.check(rule, key in seen.meta, at_meta(key))
    _check_extensions(object_at(seen.meta, CLIENT_CAPABILITIES), checker)
    extension = EXTENSION_METHODS.get(seen.method)
    if seen.row is not None and seen.row.extension:
        extension = seen.row.extension
    if extension and state.discovered is not None:
        name = f"extensions.{extension}"
        kept = declares(object_at(state.discovered, "capabilities"), name)
        checker.check("mcp.capability.extension-client", kept, "/method", seen.method)
    _check_repeated(seen, state, checker)


def _check_extensions(capabilities: Members, checker: Checker) -> None:
    if object_at(capabilities, "extensions"):
        # A breach is a finding about the single message.
        checker.check("mcp.capability.extension-ids", True)


def retry_key(seen: ObservedMessage) -> int:
    """Return a hash that two attempts at the same request share."""
    left_out = ("_meta", "inputResponses", "requestState")
    params = {name: value for name, value in seen.params.items() if name not in left_out}
    return fingerprint(seen.method, params)


def _check_repeated(seen: ObservedMessage, state: State, checker: Checker) -> None:
    supported = state.refused.pop(retry_key(seen), None) if state.refused else None
    version = seen.meta.get(PROTOCOL_VERSION)
    if supported is not None:
        expected = f"one of {', '.join(supported)}"
        checker.check(
            "mcp.version.retry-supported",
            version in supported,
            at_meta(PROTOCOL_VERSION),
            version,
            expected,
        )


# -- replies ---------------------------------------------------------------------------------


def check_result(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check `resultType` and `_meta` of a result."""
    if seen.result is None or seen.sender != "server":
        return
    kind = seen.result.get("resultType")
    if not checker.requires("mcp.jsonrpc.result-type"):
        return
    checker.check("mcp.jsonrpc.result-type", type(kind) is str, "/result/resultType")
    checker.check("mcp.meta.server-info", SERVER_INFO in seen.meta, _at_result_meta(SERVER_INFO))
    if seen.call is not None and not declares(seen.call.declared, _TASKS):
        kept = kind != "task"
        checker.check("mcp.capability.extension-server", kept, "/result/resultType", kind)


def _at_result_meta(key: str) -> str:
    return "/result/_meta/" + key.replace("/", "~1")


def check_error(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the code of an error and the data that belongs to it."""
    code = seen.code
    if seen.error is None or seen.sender != "server" or type(code) is not int:
        return
    where = "/error/code"
    checker.check("mcp.jsonrpc.codes-retired", code not in _RETIRED, where, code)
    if code not in _RETIRED:
        kept = code in _DEFINED or code not in _SPECIFIED
        checker.check("mcp.jsonrpc.codes-reserved", kept, where, code)
        checker.check("mcp.jsonrpc.codes-legacy", code not in _LEGACY, where, code)
    data = object_at(seen.error, "data")
    if code == -32022:
        kept = _is_texts(data.get("supported")) and type(data.get("requested")) is str
        checker.check("mcp.version.unsupported-data", kept, "/error/data", data or NOTHING)
    elif code == -32021:
        kept = type(data.get("requiredCapabilities")) is dict
        where = "/error/data/requiredCapabilities"
        checker.check("mcp.capability.missing-data", kept, where, data or NOTHING)


def _is_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def check_discovery(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the result of server/discover."""
    if seen.result is None or seen.call is None or seen.call.method != "server/discover":
        return
    missing = [name for name in _DISCOVERED if name not in seen.result]
    places = [f"/result/{name}" for name in missing]
    where = places[0] if places else ""
    if not missing or set(missing) - set(_HINTS):
        # The rule about caching reports missing hints.
        checker.check("mcp.version.discover-fields", not missing, where, also=places)
    _check_extensions(object_at(seen.result, "capabilities"), checker)
