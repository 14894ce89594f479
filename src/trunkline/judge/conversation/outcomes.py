"""Verdicts: what a conversation says of each requirement, and why some are not judged."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ...jsonrpc.messages import shown_tuple
from ...spec.requirements import Requirement
from ..rules.checker import Checker

__all__ = ["UNJUDGED", "VERDICTS", "Outcome", "Verdict", "outcome_of"]

Verdict: TypeAlias = Literal[
    "pass", "fail", "warn", "not-applicable", "not-observed", "not-testable", "excluded"
]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


class Outcome(NamedTuple):
    """The verdict on one requirement. `why` says what prevents or limits it, if anything."""

    verdict: Verdict
    why: str = ""
    occasions: int = 0
    breaches: int = 0

    def __repr__(self) -> str:
        return shown_tuple(self)


# Requirements whose breach a recording could show, but that are not checked.
UNJUDGED: Final[dict[str, str]] = {
    "mcp.version.discover-answered": "an error may mean a server of the handshake revisions",
    "mcp.version.http-body-read": "the fallback of a client over HTTP is not tracked",
    "mcp.http.refused-status": "a recording does not show whether a message was accepted",
    "mcp.sse.replay-same-stream": "the original stream of an event is not tracked",
    "mcp.headers.version-invalid-400": "the versions that a handshake server supports are unknown",
    "mcp.sse.resumed-by-get": "the reason why a client opens a stream is not tracked",
    "mcp.headers.names-any-case": "it takes a header in another case that is then not found",
    "mcp.headers.values-exact-case": "checked with the other header mismatches",
    "mcp.headers.decoded": "checked with the other header mismatches",
    "mcp.headers.bad-base64-refused": "checked with the other header mismatches",
    "mcp.http.notification-refused": "a recording does not show whether a message was accepted",
    "mcp.http.lost-stream-new-id": "lost streams are not tracked",
    "mcp.rounds.missing-asked-again": "the answers that a server needs are unknown",
    "mcp.tools.bad-input-result": "the reason why a server answers with an error is unknown",
    "mcp.prompts.inputs-validated": "listings of prompts are not kept",
}


def outcome_of(row: Requirement, checker: Checker, revisions: Collection[str]) -> Outcome:
    """Return the outcome of one requirement, in a conversation of these revisions."""
    if revisions and not any(map(row.when.holds, revisions)):
        return Outcome("not-applicable", "the revisions in use do not have this requirement")
    if row.judge in ("unit", "none"):
        return Outcome("excluded", row.why)
    if row.judge != "trace" and not row.also_trace:
        return Outcome("not-testable", "it needs a probe")
    if row.id in UNJUDGED:
        return Outcome("not-testable", UNJUDGED[row.id])
    occasions, breaches = checker.occasions[row.id], checker.breaches[row.id]
    if breaches:
        bad: Verdict = "fail" if row.level in ("must", "must-not") else "warn"
        return Outcome(bad, row.why, occasions, breaches)
    if occasions:
        return Outcome("pass", row.why, occasions)
    return Outcome("not-observed", row.why)
