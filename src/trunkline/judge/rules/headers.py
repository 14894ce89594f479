"""HTTP since 2026-07-28: one message per POST, and headers that repeat parts of its body."""

from __future__ import annotations

from typing import Any, Final

from ...mcp.header_values import (
    decode_header_text,
    header_text,
    is_encoded,
    is_unsafe,
    same_value,
)
from ...redaction import HIDDEN
from ...spec.mcp.headers import NAME_MEMBERS
from ...spec.mcp.meta import PROTOCOL_VERSION
from ..unknown import Unknown
from .checker import Checker
from .state import ObservedMessage, State, object_at

__all__ = ["check_headers"]

# The rule about `Mcp-Name`, by the member of params that it repeats.
_NAME_RULES: Final = {
    "name": "mcp.headers.name",
    "uri": "mcp.headers.name",
    "taskId": "mcp.tasks.name-header",
}


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
    if not seen.method:
        return  # not a text, which alone a header can repeat
    given = _header(seen, "mcp-method")
    kept = given == seen.method
    checker.check("mcp.headers.method", kept, "", given, f"Mcp-Method: {seen.method}")
    if not kept:
        _fault(seen, "missing" if given is None else "mismatch")


def _check_name(seen: ObservedMessage, checker: Checker) -> None:
    member = NAME_MEMBERS.get(seen.method)
    if member is None:
        return
    body = seen.params.get(member)
    if type(body) is not str:
        return
    given = _header(seen, "mcp-name")
    kept = given is not None and decode_header_text(given) == body
    checker.check(_NAME_RULES[member], kept, "", given, f"Mcp-Name: {body}")
    if not kept:
        _fault(seen, "missing" if given is None else "mismatch")
    _check_form(body, given, checker)


def _check_form(body: str, given: str | None, checker: Checker) -> None:
    # A value that HTTP cannot carry as it is has to be in Base64.
    if given is not None and is_unsafe(body):
        kept = is_encoded(given) and decode_header_text(given) == body
        checker.check("mcp.headers.encoded", kept, "", given)


def _check_params(seen: ObservedMessage, state: State, checker: Checker) -> None:
    tool = state.tools.get(str(seen.params.get("name")))
    if tool is None or not (tool.headers or tool.has_faulty_header):
        return
    is_usable = not tool.has_faulty_header
    checker.check("mcp.headers.bad-annotation-excluded", is_usable, "/params/name")
    arguments = object_at(seen.params, "arguments")
    for row in tool.headers:
        given = _header(seen, row.key.decode())
        value: Any = row.value(arguments)
        if isinstance(value, Unknown) or given == HIDDEN:
            continue
        if value is None:
            omitted = "mcp.headers.params-omitted"
            checker.check(omitted, given is None, _pointer(row.path), given)
            continue
        text = header_text(value)
        if type(value) is int:
            safe = "mcp.headers.params-safe-integers"
            checker.check(safe, text is not None, _pointer(row.path), value)
        if text is None:
            continue  # the arguments are at fault
        decoded = None if given is None else decode_header_text(given)
        kept = decoded is not None and same_value(decoded, value)
        expected = f"{row.header}: {text}"
        checker.check("mcp.headers.params-mirrored", kept, "", given, expected)
        if not kept:
            _fault(seen, "param missing" if given is None else "param mismatch")
        _check_form(text, given, checker)


def _pointer(path: tuple[str, ...]) -> str:
    steps = (name.replace("~", "~0").replace("/", "~1") for name in path)
    return "/".join(("/params/arguments", *steps))
