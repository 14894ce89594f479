"""Check a conversation: each message by itself, and in the order of those before it.

    talk = Conversation()
    for entry in read_trace(lines):
        print(*talk.feed(entry), sep="\\n")
    talk.end()
    talk.outcomes()["mcp.progress.grows"].verdict

One conversation is the traffic of one client with one server. The revision is determined for
each message (`revision_inference.py`). The rules are under `rules/`, by topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from ...errors import NOTHING
from ...jsonrpc.limits import Limits
from ...jsonrpc.policy import Policy
from ...redaction import show_json
from ...spec import lookup
from ...spec.mcp.meta import CLIENT_CAPABILITIES
from ...spec.requirements import requirements
from ...spec.revisions import PER_REQUEST, must_be_released
from ...spec.rows import Role
from ..finding import Finding
from ..messages.message import judge
from ..rules import http as http_rules
from ..rules import messages, multi_round_trip, per_request
from ..rules.checker import Checker
from ..rules.state import ObservedCall, ObservedMessage, State, key_of, object_at
from ..trace.reader import TraceEntry, TraceFault, TraceHttp
from ..unknown import NOTHING_HIDDEN, HiddenPlaces
from .entries import as_entry, is_damaged, outline_of, recorded_fault, sender_of, value_of
from .memory import close_request, remember, remember_request
from .outcomes import Outcome, outcome_of
from .revision_inference import RevisionInference
from .rule_order import RULES

__all__ = ["Conversation"]

_VENDOR: Final = ("mcp.method.vendor", "mcp.notification.vendor")
# As the codec has it.
MAX_BATCH: Final = Limits().batch


class Conversation:
    """Checks one conversation, message by message.

    `revision` applies where neither the message nor its session names one. A `policy` replaces
    the official rules about the envelope.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """

    def __init__(self, revision: str | None = None, policy: Policy | None = None) -> None:
        if revision is not None:
            must_be_released(revision)
        self._policy = policy
        self._state = State()
        self._revision = RevisionInference(self._state, revision)
        self._checker = Checker()
        self._count = 0
        self._revisions: set[str] = set() if revision is None else {revision}

    def feed(
        self,
        given: Any,
        sender: Role | None = None,
        transport: str = "",
        http: TraceHttp | Mapping[str, Any] | None = None,
    ) -> list[Finding]:
        """Return the findings about the next message, in order.

        `given` is an entry of a recording, or a message as for `judge`; in the latter case the
        other arguments say how it was sent.
        """
        index, self._count = self._count, self._count + 1
        if isinstance(given, TraceFault):
            expected = f"an entry: {given.why}"
            place = f"line {given.line}"
            return [Finding("trace.line", "warn", "", place, expected, "Trunkline", index)]
        if not isinstance(given, TraceEntry):
            given = as_entry(given, sender, transport, http)
        hidden = HiddenPlaces(given.hidden) if given.hidden else NOTHING_HIDDEN
        self._checker.begin_entry(index, hidden)
        return sorted(self._judge(given, index, hidden))

    def end(self) -> list[Finding]:
        """Return the findings about requests without a reply."""
        checker, state = self._checker, self._state
        checker.begin_entry(self._count)
        messages.check_missing_replies(state, checker)
        left = [
            Finding(
                "trace.unanswered",
                "info",
                "",
                f"{call.method} with the id {show_json(call.id)}",
                "a reply before the recording ends",
                "Trunkline",
                call.index,
            )
            for call in state.open.values()
            if not call.cancelled
        ]
        return sorted([*checker.found, *left])

    def outcomes(self) -> dict[str, Outcome]:
        """Return the outcome of every requirement so far, by id."""
        return {row.id: outcome_of(row, self._checker, self._revisions) for row in requirements()}

    # -- one entry ---------------------------------------------------------------------------

    def _judge(self, entry: TraceEntry, index: int, hidden: HiddenPlaces) -> list[Finding]:
        text = entry.message if entry.raw is None else entry.raw
        value = value_of(entry)
        if hidden and value is not NOTHING:
            value = hidden.removed_from(value)
        if _is_metadata(entry, self._state):
            return self._judge_metadata(entry, value)
        # A longer batch is not taken apart: the codec rejects it as a whole.
        items = value[:MAX_BATCH] if type(value) is list else [value]
        seen = [self._observe(item, entry, index) for item in items if type(item) is dict]
        if seen and entry.sender is None and seen[0].sender is not None:
            entry = seen[0].entry
        revision = seen[0].revision if seen else self._revision.without_message(entry)
        self._checker.use_revision(revision)
        self._revisions.add(revision)
        kinds = ["initialize" if each.method == "initialize" else each.kind for each in seen]
        http_rules.check_exchange(entry, kinds, self._state, self._checker)
        has_text = entry.unread is not None or (text is not NOTHING and text not in ("", b""))
        if has_text:
            messages.check_line(entry, bool(seen) or is_damaged(entry), self._checker)
        self._judge_items(seen, type(value) is list)
        http_rules.remember_exchange(entry, seen, self._state, revision)
        alone: list[Finding] = []
        if has_text:
            alone = self._judge_alone(text, seen, entry, revision)
        if not seen:
            self._remember_unread(entry, index)
        return [*self._checker.found, *alone]

    def _remember_unread(self, entry: TraceEntry, index: int) -> None:
        # A damaged request may be answered with its id, and a damaged reply ends its request.
        outline = outline_of(entry)
        if outline is None:
            return
        seen = self._observe(outline, entry, index)
        if seen.kind == "request":
            seen.call = ObservedCall(seen)
            seen.call.meta_complete = True  # it was not read
            remember_request(seen, self._state)
        elif seen.kind == "reply" and seen.call is not None:
            close_request(seen.call, self._state)

    def _judge_items(self, seen: list[ObservedMessage], in_batch: bool) -> None:
        for place, each in enumerate(seen):
            self._checker.base = f"/{place}" if in_batch else ""
            each.in_batch = in_batch
            self._checker.use_revision(each.revision)
            if each.kind == "request":
                each.call = ObservedCall(each)
                if each.method in multi_round_trip.METHODS or PER_REQUEST.holds(each.revision):
                    each.call.retry_key = per_request.retry_key(each)
            for rule in RULES:
                rule(each, self._state, self._checker)
            self._revisions.add(each.revision)
            remember(each, self._state)
        self._checker.base = ""

    def _judge_alone(
        self, text: Any, seen: list[ObservedMessage], entry: TraceEntry, revision: str
    ) -> list[Finding]:
        # Findings about the single message that no requirement of the conversation states.
        call = seen[0].call if len(seen) == 1 and seen[0].kind == "reply" else None
        request = None
        if call is not None:
            declared = {"_meta": {CLIENT_CAPABILITIES: call.declared}}
            request = {"method": call.method, "params": declared}
        found = [recorded_fault(each) for each in entry.faults]
        if entry.unread is None:
            known = {(each.rule, each.where) for each in found}
            found += [
                each
                for each in judge(text, revision, entry.sender, request, self._policy)
                if (each.rule, each.where) not in known
                and each.where not in self._checker.hidden
                and not (each.rule in _VENDOR and self._has_extension(seen))
            ]
        if not found:
            return []
        self._checker.use_revision(revision)
        rest = messages.translate(found, self._checker)
        return [replace(each, message_index=self._checker.index) for each in rest]

    def _has_extension(self, seen: list[ObservedMessage]) -> bool:
        """Return True if both sides declare an extension, which may define any method."""
        state = self._state
        server = state.session.server
        if state.discovered is not None:
            server = {**server, **object_at(state.discovered, "capabilities")}
        offered = object_at(server, "extensions").keys()
        client = set(object_at(state.session.client, "extensions"))
        for each in seen:
            client |= object_at(object_at(each.meta, CLIENT_CAPABILITIES), "extensions").keys()
        return bool(offered & client)

    def _judge_metadata(self, entry: TraceEntry, value: Any) -> list[Finding]:
        # The authorization metadata that a server publishes.
        self._checker.use_revision(self._revision.without_message(entry))
        scopes = value.get("scopes_supported") if type(value) is dict else None
        if type(scopes) is list:
            kept = "offline_access" not in scopes
            where = "/scopes_supported"
            self._checker.check("mcp.auth.no-offline-access", kept, where, scopes)
        http_rules.remember_exchange(entry, [], self._state, self._checker.revision)
        return self._checker.found

    # -- one message -------------------------------------------------------------------------

    def _observe(self, members: dict[str, Any], entry: TraceEntry, index: int) -> ObservedMessage:
        sender = entry.sender or sender_of(members, self._state)
        if sender is not None and entry.sender is None:
            entry = replace(entry, sender=sender)
        seen = ObservedMessage(members, entry, index, sender)
        if seen.kind == "reply":
            key = key_of(messages.other(sender), seen.id)
            seen.call = None if key is None else self._state.open.get(key)
        seen.revision = self._revision.of(seen)
        if seen.method:
            seen.row = lookup.method(seen.method, seen.revision)
        return seen


def _is_metadata(entry: TraceEntry, state: State) -> bool:
    exchange = state.exchange(entry) if entry.sender == "server" else None
    return exchange is not None and "/.well-known/" in exchange.path
