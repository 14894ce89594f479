"""Whether what has to be refused is refused, and with the right code and status."""

from __future__ import annotations

from typing import Final

from .notes import Notes
from .state import Call, Seen, State

__all__ = ["ANY", "status_of", "watch_refusals"]

# In the place of a code: any error will do, and so will a result that says it failed.
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
}


def status_of(seen: Seen, state: State) -> int | None:
    """Return the status that a message of the server came with, if it is known."""
    if seen.entry.http is not None and seen.entry.http.status is not None:
        return seen.entry.http.status
    exchange = state.exchange(seen.entry)
    return None if exchange is None else exchange.status


def watch_refusals(seen: Seen, state: State, notes: Notes) -> None:
    """Look at the reply to a request that should not have been sent as it was."""
    call = seen.call
    if seen.kind != "reply" or call is None:
        return
    code, status = seen.code, status_of(seen, state)
    if type(code) is int and code in _STATUS and status is not None:
        rule, expected = _STATUS[code]
        notes.check(rule, status == expected, "", status, f"status {expected}")
    for rule, refusal in call.extra:
        if refusal == ANY:
            failed = seen.result is not None and seen.result.get("isError") is True
            notes.check(rule, seen.error is not None or failed, "/result")
        else:
            notes.check(rule, code == refusal, "/error/code", code, f"the error {refusal}")
    if call.sender == "client":
        _watch_meta(call, code, status, notes)
        _watch_version(call, code, state, notes)
        _watch_headers(seen, call, status, notes)


def _watch_meta(call: Call, code: object, status: int | None, notes: Notes) -> None:
    if call.meta_complete:
        return
    # Over HTTP the check of headers may come first.
    codes = (-32602, -32020) if status is not None else (-32602,)
    notes.check("mcp.meta.incomplete-refused", code in codes, "/error/code", code)
    if status is not None:
        notes.check("mcp.http.incomplete-meta-400", status == 400, "", status)


def _watch_version(call: Call, code: object, state: State, notes: Notes) -> None:
    if state.supported and type(call.version) is str and call.version not in state.supported:
        notes.check("mcp.version.unsupported-refused", code == -32022, "/error/code", code)


def _watch_headers(seen: Seen, call: Call, status: int | None, notes: Notes) -> None:
    if not call.header_fault:
        return
    refused = seen.code == -32020 and status in (400, None)
    notes.check(_HEADERS[call.header_fault], refused, "/error/code", seen.code)
    if call.header_fault != "missing":
        notes.check("mcp.security.headers-validated", seen.result is None, "/result")
