"""Rules about single messages and the replies to them: envelope, ids, refusals.

The rules that live here, and only here:

* Findings of `judge` that a requirement states become breaches of that requirement.
* Every request is answered once, with its own id; a notification is not answered.
* A request that has to be refused is refused, with the right code and HTTP status.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ...errors import NOTHING
from ...spec.mcp.methods import METHODS
from ...spec.rows import Role
from ..finding import Finding
from ..trace.reader import TraceEntry
from .checker import Checker, traceable
from .state import ObservedCall, ObservedMessage, State, key_of

__all__ = [
    "ANY",
    "check_envelope",
    "check_ids",
    "check_line",
    "check_missing_replies",
    "check_refusals",
    "other",
    "status_of",
    "translate",
]

_NOTIFICATIONS: Final = frozenset(row.name for row in METHODS if row.kind == "notification")
_TRACING: Final = ("traceparent", "tracestate", "baggage")
_CLEAN: Final = ("mcp.stdio.stdin-clean", "mcp.stdio.stdout-clean")
_OF_LINES: Final = ("jsonrpc.text.", "jsonrpc.message.")
# Instead of a code: any error, or a result with isError.
ANY: Final = 0

_STATUS: Final = {
    -32022: ("mcp.http.unsupported-version-400", 400),
    -32021: ("mcp.http.missing-capability-400", 400),
    -32601: ("mcp.http.unknown-method-404", 404),
}
_HEADERS: Final = {
    "missing": "mcp.headers.missing-refused",
    "mismatch": "mcp.headers.mismatch-refused",
    "version": "mcp.headers.version-mismatch-refused",
    "param missing": "mcp.headers.params-missing-refused",
    "param mismatch": "mcp.headers.params-mismatch-refused",
}


# -- envelope --------------------------------------------------------------------------------


@cache
def _requirements() -> dict[str, tuple[str, ...]]:
    # The requirements that state the same as a rule about single messages.
    table: dict[str, tuple[str, ...]] = {
        "mcp.notification.id": ("mcp.jsonrpc.notification-no-id",),
        "mcp.meta.key-syntax": ("mcp.meta.key-grammar",),
        "mcp.meta.key-reserved": ("mcp.meta.reserved-any-label", "mcp.meta.reserved-second-label"),
        "mcp.meta.trace": ("mcp.meta.trace-values",),
        "mcp.extension.id": ("mcp.capability.extension-ids",),
    }
    for row in traceable().values():
        if row.same_as:
            table[row.same_as] = (*table.get(row.same_as, ()), row.id)
    return table


def translate(found: list[Finding], checker: Checker) -> list[Finding]:
    """Turn findings about single messages into breaches of requirements; return the rest."""
    rest: list[Finding] = []
    for finding in found:
        ids = [id for id in _requirements().get(finding.rule, ()) if checker.requires(id)]
        if finding.rule == "jsonrpc.text.duplicate-key" and _is_input_key(finding.where):
            ids = [id for id in ("mcp.rounds.keys-unique",) if checker.requires(id)]
        for id in ids:
            checker.add_finding(finding, id)
        if not ids:
            rest.append(finding)
    # Where a requirement was broken, a finding about the type of the same place adds nothing;
    # nor does one about the text or the kind of a line that is not a message.
    places = ({finding.where for finding in checker.found} - {""}) | checker.covered
    is_noise = any(finding.rule in _CLEAN for finding in checker.found)
    return [
        finding
        for finding in rest
        if finding.where not in places and not (is_noise and finding.rule.startswith(_OF_LINES))
    ]


def _is_input_key(where: str) -> bool:
    return where.startswith("/result/inputRequests/") and where.count("/") == 3


def check_line(entry: TraceEntry, is_message: bool, checker: Checker) -> None:
    """Check one line of stdin or stdout."""
    if entry.transport != "stdio":
        return
    if entry.sender is not None:
        name = "stdout" if entry.sender == "server" else "stdin"
        got = NOTHING if entry.raw is None else entry.raw
        checker.check(f"mcp.stdio.{name}-clean", is_message, "", got)
    raw = entry.raw.encode("utf-8", "replace") if isinstance(entry.raw, str) else entry.raw
    if is_message:
        checker.check("mcp.stdio.one-line", raw is None or b"\n" not in raw.strip())


def check_envelope(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Count the occasions for rules about single messages; `translate` adds the breaches."""
    checker.check("mcp.jsonrpc.version-present", True)
    checker.check("mcp.jsonrpc.version-value", True)
    checker.check("mcp.batch.removed", True)
    if isinstance(seen.entry.raw, bytes):
        checker.check("mcp.jsonrpc.utf8", True)
    if seen.kind == "request":
        checker.check("mcp.id.type", True)
        checker.check("mcp.id.not-null", True)
    elif seen.kind == "reply":
        checker.check("mcp.jsonrpc.one-outcome", True)
    if seen.error is not None:
        checker.check("mcp.jsonrpc.error-code", True)
        checker.check("mcp.jsonrpc.error-message", True)
    if seen.kind == "notification" and seen.method in _NOTIFICATIONS:
        checker.check("mcp.jsonrpc.notification-no-id", True)
    if seen.meta:
        _check_meta_keys(seen, checker)


def _check_meta_keys(seen: ObservedMessage, checker: Checker) -> None:
    checker.check("mcp.meta.key-grammar", True)
    if any("/" in key for key in seen.meta):
        checker.check("mcp.meta.reserved-any-label", True)
        checker.check("mcp.meta.reserved-second-label", True)
    if any(key in seen.meta for key in _TRACING):
        checker.check("mcp.meta.trace-values", True)


# -- ids and replies -------------------------------------------------------------------------


def other(sender: Role | None) -> Role | None:
    """Return the other side."""
    if sender is None:
        return None
    return "client" if sender == "server" else "server"


def check_ids(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check that ids are unique, and that a reply answers an open request."""
    if seen.kind == "request" and seen.key is not None:
        checker.check("mcp.id.session-unique", seen.key not in state.ids, "/id", seen.id)
        checker.check("mcp.id.open-unique", seen.key not in state.open, "/id", seen.id)
    elif seen.kind == "notification" and seen.sender is not None:
        checker.check("mcp.jsonrpc.notification-unanswered", True)
    elif seen.kind == "reply":
        _check_reply(seen, state, checker)


def _check_reply(seen: ObservedMessage, state: State, checker: Checker) -> None:
    if seen.id is None:
        # Over HTTP the response that rejects a notification may hold an error without an id.
        asker = other(seen.sender)
        if asker is not None and not seen.is_http and state.notified.get(asker):
            checker.check("mcp.jsonrpc.notification-unanswered", False, "", seen.id)
        return
    key = key_of(other(seen.sender), seen.id)
    if key is None:
        return  # reported as a fault of the single message
    call = seen.call
    if call is None and state.open.evicted:
        return
    again = "; this one was answered before" if key in state.closed else ""
    expected = f"the id of an open request, of the same JSON type{again}"
    checker.check("mcp.id.echoed", call is not None, "/id", seen.id, expected)
    if call is not None and call.in_batch:
        checker.check(_batch_rule(call), True)


def _batch_rule(call: ObservedCall) -> str:
    return f"mcp.batch.{other(call.sender)}-receives"


def check_missing_replies(state: State, checker: Checker) -> None:
    """Check the requests of batches that are still open at the end."""
    for call in state.open.values():
        if call.in_batch and not call.cancelled:
            checker.use_revision(call.revision)
            checker.check(_batch_rule(call), False, "", call.id, f"a reply to {call.method}")


# -- refusals --------------------------------------------------------------------------------


def status_of(seen: ObservedMessage, state: State) -> int | None:
    """Return the HTTP status of a message of the server, if it is known."""
    if seen.entry.http is not None and seen.entry.http.status is not None:
        return seen.entry.http.status
    exchange = state.exchange(seen.entry)
    return None if exchange is None else exchange.status


def check_refusals(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the reply to a request that the server has to refuse."""
    call = seen.call
    if seen.kind != "reply" or call is None:
        return
    code, status = seen.code, status_of(seen, state)
    if type(code) is int and code in _STATUS and status is not None:
        rule, expected = _STATUS[code]
        checker.check(rule, status == expected, "", status, f"status {expected}")
    for rule, refusal in call.refusals_due:
        if refusal == ANY:
            failed = seen.result is not None and seen.result.get("isError") is True
            checker.check(rule, seen.error is not None or failed, "/result")
        else:
            checker.check(rule, code == refusal, "/error/code", code, f"the error {refusal}")
    if call.sender == "client":
        _check_meta(call, code, status, checker)
        _check_version(call, code, state, checker)
        _check_headers(seen, call, status, checker)


def _check_meta(call: ObservedCall, code: object, status: int | None, checker: Checker) -> None:
    if call.meta_complete:
        return
    # Over HTTP the server may check the headers first.
    codes = (-32602, -32020) if status is not None else (-32602,)
    checker.check("mcp.meta.incomplete-refused", code in codes, "/error/code", code)
    if status is not None:
        checker.check("mcp.http.incomplete-meta-400", status == 400, "", status)


def _check_version(call: ObservedCall, code: object, state: State, checker: Checker) -> None:
    if state.supported and type(call.version) is str and call.version not in state.supported:
        # A request whose headers disagree with its body has two faults, and either is named.
        codes = (-32022, -32020) if call.header_fault else (-32022,)
        checker.check("mcp.version.unsupported-refused", code in codes, "/error/code", code)


def _check_headers(
    seen: ObservedMessage, call: ObservedCall, status: int | None, checker: Checker
) -> None:
    if not call.header_fault:
        return
    refused = seen.code == -32020 and status in (400, None)
    checker.check(_HEADERS[call.header_fault], refused, "/error/code", seen.code)
    if call.header_fault not in ("missing", "param missing"):
        checker.check("mcp.security.headers-validated", seen.result is None, "/result")
