"""HTTP since 2026-07-28: one message per POST, and headers that repeat parts of its body."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from typing import Any, Final

from ...redaction import HIDDEN
from ...spec.mcp.meta import PROTOCOL_VERSION
from ..unknown import Unknown
from .checker import Checker
from .state import ObservedMessage, State, object_at

__all__ = ["check_headers", "decoded", "is_unsafe"]

_START, _END = "=?base64?", "?="
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_OF_TASKS: Final = ("tasks/get", "tasks/update", "tasks/cancel")


def is_unsafe(value: str) -> bool:
    """Return True if a header can carry a value only in Base64."""
    plain = value.isascii() and all(" " <= each <= "~" for each in value)
    looks = value.startswith(_START) and value.endswith(_END)
    return not plain or value != value.strip() or looks


def decoded(value: str) -> str | None:
    """Return the decoded value of a header, or None if its Base64 is invalid."""
    if not (value.startswith(_START) and value.endswith(_END)):
        return value
    try:
        return b64decode(value[len(_START) : -len(_END)], validate=True).decode("utf-8")
    except (Error, ValueError):
        return None


def check_headers(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the headers of a POST, and that its body is a single message."""
    http = seen.entry.http
    if http is None or seen.sender != "client" or not checker.requires("mcp.http.single-message"):
        return
    if http.method not in ("", "POST"):
        return
    single = not seen.in_batch and seen.kind in ("request", "notification")
    checker.check("mcp.http.single-message", single)
    checker.check("mcp.http.no-replies-posted", seen.kind != "reply", "/id", seen.id)
    if http.headers is None:
        return
    accept = http.header("accept") or ""
    checker.check("mcp.http.accept-both-types", _accepts_both(accept), "", accept)
    if any(name.lower().startswith("mcp-") for name in http.headers):
        bad = [v for k, v in http.headers.items() if k.lower().startswith("mcp-") and _breaks(v)]
        checker.check("mcp.security.header-injection", not bad, "", bad)
    _check_version(seen, checker)
    if seen.kind == "request":
        _check_method(seen, checker)
        _check_name(seen, checker)
        if seen.method == "tools/call":
            _check_params(seen, state, checker)


def _breaks(value: str) -> bool:
    return any(each < " " or each == "\x7f" for each in value)


def _accepts_both(accept: str) -> bool:
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    json = kinds & {"application/json", "application/*", "*/*"}
    events = kinds & {"text/event-stream", "text/*", "*/*"}
    return bool(json and events)


def _header(seen: ObservedMessage, name: str) -> str | None:
    return None if seen.entry.http is None else seen.entry.http.header(name)


def _fault(seen: ObservedMessage, fault: str) -> None:
    if seen.call is not None and not seen.call.header_fault:
        seen.call.header_fault = fault


def _check_version(seen: ObservedMessage, checker: Checker) -> None:
    given, body = _header(seen, "mcp-protocol-version"), seen.meta.get(PROTOCOL_VERSION)
    checker.check("mcp.headers.version-on-post", given is not None)
    if given is None:
        _fault(seen, "missing")
    elif type(body) is str:
        checker.check("mcp.headers.version-as-body", given == body, "", given, body)
        if given != body:
            _fault(seen, "version")


def _check_method(seen: ObservedMessage, checker: Checker) -> None:
    given = _header(seen, "mcp-method")
    kept = given == seen.method
    checker.check("mcp.headers.method", kept, "", given, f"Mcp-Method: {seen.method}")
    if not kept:
        _fault(seen, "missing" if given is None else "mismatch")


def _check_name(seen: ObservedMessage, checker: Checker) -> None:
    if seen.method in _NAMED:
        rule, body = "mcp.headers.name", seen.params.get(_NAMED[seen.method])
    elif seen.method in _OF_TASKS:
        rule, body = "mcp.tasks.name-header", seen.params.get("taskId")
    else:
        return
    if type(body) is not str:
        return
    given = _header(seen, "mcp-name")
    kept = given is not None and decoded(given) == body
    checker.check(rule, kept, "", given, f"Mcp-Name: {body}")
    if not kept:
        _fault(seen, "missing" if given is None else "mismatch")
    _check_form(body, given, checker)


def _check_form(body: str, given: str | None, checker: Checker) -> None:
    # A value that HTTP cannot carry as it is has to be in Base64.
    if given is not None and is_unsafe(body):
        kept = given.startswith(_START) and given.endswith(_END) and decoded(given) == body
        checker.check("mcp.headers.encoded", kept, "", given)


def _check_params(seen: ObservedMessage, state: State, checker: Checker) -> None:
    tool = state.tools.get(str(seen.params.get("name")))
    arguments = object_at(seen.params, "arguments")
    for argument, name in (tool.headers if tool is not None else {}).items():
        given = _header(seen, f"mcp-param-{name.lower()}")
        value: Any = arguments.get(argument)
        if isinstance(value, Unknown) or given == HIDDEN:
            continue
        if value is None:
            where = f"/params/arguments/{argument}"
            checker.check("mcp.headers.params-omitted", given is None, where, given)
            continue
        text = _as_text(value)
        kept = given is not None and decoded(given) == text
        expected = f"Mcp-Param-{name}: {text}"
        checker.check("mcp.headers.params-mirrored", kept, "", given, expected)
        if not kept:
            _fault(seen, "missing" if given is None else "mismatch")
        _check_form(text, given, checker)


def _as_text(value: Any) -> str:
    if type(value) is bool:
        return "true" if value else "false"
    return str(value)
