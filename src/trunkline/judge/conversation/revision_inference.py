"""The revision of each message: the one it names, or the one that those before it suggest.

`initialize` starts a session of the negotiated revision, and the `_meta` of a request may name a
version. Any other message belongs to its session, to the request it is about, or to the revision
of the last message of its era.
"""

from __future__ import annotations

from typing import Any, Final

from ...spec.mcp.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from ...spec.mcp.methods import METHODS
from ...spec.revisions import HANDSHAKE, LATEST, NEWEST_HANDSHAKE, PER_REQUEST, REVISIONS
from ..rules.state import ObservedCall, ObservedMessage, State, key_of
from ..trace.reader import TraceEntry

__all__ = ["RevisionInference"]

# The methods that no handshake revision has.
_NEW: Final = frozenset(row.name for row in METHODS) - {
    row.name for row in METHODS if HANDSHAKE.holds(row.when.since)
}
_PREFIX: Final = "io.modelcontextprotocol/"


class RevisionInference:
    """Finds the revision of messages; `given` applies where nothing else names one."""

    __slots__ = ("_given", "_state")

    def __init__(self, state: State, given: str | None) -> None:
        self._state = state
        self._given = given

    def of(self, seen: ObservedMessage) -> str:
        """Return the revision that a message is judged by."""
        if seen.kind == "reply":
            return self._of_reply(seen)
        if seen.method == "initialize":
            return _handshake(seen.params.get("protocolVersion"))
        if PROTOCOL_VERSION in seen.meta:
            version = seen.meta[PROTOCOL_VERSION]
            return version if _is_per_request(version) else LATEST
        # In a session, a request with a new method is one with an unknown method.
        in_session = self._state.session.phase == "agreed" and seen.kind == "request"
        is_new = SUBSCRIPTION_ID in seen.meta or (seen.method in _NEW and not in_session)
        related = _related(seen, self._state)
        if related is not None and (not is_new or PER_REQUEST.holds(related.revision)):
            return related.revision
        return self._usual_per_request(seen) if is_new else self._usual(seen)

    def _of_reply(self, seen: ObservedMessage) -> str:
        if seen.call is None:
            return self._usual(seen)
        if seen.call.method == "initialize" and seen.result is not None:
            return _handshake(seen.result.get("protocolVersion"), seen.call.revision)
        return seen.call.revision

    def _usual(self, seen: ObservedMessage) -> str:
        # The revision of a message that names none: that of the session, or the likeliest.
        if self._state.session.phase != "none":
            return self._state.session.revision
        if self._given is not None:
            return self._given
        header = _version_header(seen.entry)
        if header in REVISIONS:
            return header
        is_new = self._state.per_request or any(key.startswith(_PREFIX) for key in seen.meta)
        return self._usual_per_request(seen) if is_new else NEWEST_HANDSHAKE

    def _usual_per_request(self, seen: ObservedMessage) -> str:
        # The same for a message that only per-request revisions have.
        likely = (self._state.per_request, self._given or "", _version_header(seen.entry))
        return next((each for each in likely if _is_per_request(each)), LATEST)

    def without_message(self, entry: TraceEntry) -> str:
        """Return the revision of an entry that has no message."""
        exchange = self._state.exchange(entry)
        if exchange is not None:
            return exchange.revision
        return self._usual(ObservedMessage({}, entry, 0, entry.sender))


def _version_header(entry: TraceEntry) -> str:
    return "" if entry.http is None else entry.http.header("mcp-protocol-version") or ""


def _is_per_request(version: Any) -> bool:
    return version in REVISIONS and PER_REQUEST.holds(version)


def _handshake(version: Any, otherwise: str = NEWEST_HANDSHAKE) -> str:
    return version if version in REVISIONS and HANDSHAKE.holds(version) else otherwise


def _related(seen: ObservedMessage, state: State) -> ObservedCall | None:
    # The request that a message of the server belongs to, if it is known.
    if seen.sender != "server":
        return None
    if seen.method == "notifications/progress":
        key = key_of("client", seen.params.get("progressToken"))
        progress = None if key is None else state.tokens.get(key)
        if progress is not None:
            return progress.call
    exchange = state.exchange(seen.entry)
    return exchange.calls[0] if exchange is not None and exchange.calls else None
