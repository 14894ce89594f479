"""What the judge of single messages finds, as requirements; and when there is an occasion."""

from __future__ import annotations

from functools import cache

from ...spec.mcp.methods import METHODS
from ..finding import Finding
from ..trace import TraceEntry
from .notes import Notes, traceable
from .state import Seen, State

__all__ = ["translate", "watch_envelope", "watch_line"]

_NOTIFICATIONS = frozenset(row.name for row in METHODS if row.kind == "notification")
_TRACING = ("traceparent", "tracestate", "baggage")


@cache
def _requirements() -> dict[str, tuple[str, ...]]:
    """Return the requirements that each rule of the message layer states."""
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


def translate(found: list[Finding], notes: Notes) -> list[Finding]:
    """Return the findings that no requirement states; the others become breaches of theirs."""
    rest: list[Finding] = []
    for finding in found:
        ids = [id for id in _requirements().get(finding.rule, ()) if notes.asks(id)]
        if finding.rule == "jsonrpc.text.duplicate-key" and _is_input_key(finding.where):
            ids = [id for id in ("mcp.rounds.keys-unique",) if notes.asks(id)]
        for id in ids:
            notes.take(finding, id)
        if not ids:
            rest.append(finding)
    # A requirement that says something of a place says it better than the type of the place.
    places = {finding.where for finding in notes.found} - {""}
    return [finding for finding in rest if finding.where not in places]


def _is_input_key(where: str) -> bool:
    return where.startswith("/result/inputRequests/") and where.count("/") == 3


def watch_line(entry: TraceEntry, is_message: bool, notes: Notes) -> None:
    """Look at one line of standard input or output."""
    if entry.transport != "stdio":
        return
    if entry.sender is not None:
        name = "stdout" if entry.sender == "server" else "stdin"
        notes.check(f"mcp.stdio.{name}-clean", is_message, "", entry.raw)
    raw = entry.raw.encode("utf-8", "replace") if isinstance(entry.raw, str) else entry.raw
    if is_message:
        notes.check("mcp.stdio.one-line", raw is None or b"\n" not in raw.strip())


def watch_envelope(seen: Seen, state: State, notes: Notes) -> None:
    """Note the occasions; what was broken is in the findings of the judge."""
    notes.check("mcp.jsonrpc.version-present", True)
    notes.check("mcp.jsonrpc.version-value", True)
    notes.check("mcp.batch.removed", True)
    if isinstance(seen.entry.raw, bytes):
        notes.check("mcp.jsonrpc.utf8", True)
    if seen.kind == "request":
        notes.check("mcp.id.type", True)
        notes.check("mcp.id.not-null", True)
    elif seen.kind == "reply":
        notes.check("mcp.jsonrpc.one-outcome", True)
    if seen.error is not None:
        notes.check("mcp.jsonrpc.error-code", True)
        notes.check("mcp.jsonrpc.error-message", True)
    if seen.kind == "notification" and seen.method in _NOTIFICATIONS:
        notes.check("mcp.jsonrpc.notification-no-id", True)
    if seen.meta:
        _watch_meta(seen, notes)


def _watch_meta(seen: Seen, notes: Notes) -> None:
    notes.check("mcp.meta.key-grammar", True)
    if any("/" in key for key in seen.meta):
        notes.check("mcp.meta.reserved-any-label", True)
        notes.check("mcp.meta.reserved-second-label", True)
    if any(key in seen.meta for key in _TRACING):
        notes.check("mcp.meta.trace-values", True)
