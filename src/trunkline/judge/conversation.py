"""Check a conversation: each message by itself, and in the order of those before it.

    talk = Conversation()
    for entry in read_trace(lines):
        print(*talk.feed(entry), sep="\\n")
    talk.end()
    talk.outcomes()["mcp.progress.grows"].verdict

One conversation is the traffic of one client with one server. The revision is determined for
each message: `initialize` starts a session of the negotiated revision, and the `_meta` of a
request may name a protocol version. The rules are under `rules/`, by topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from msgspec import to_builtins
from msgspec.structs import replace

from ..errors import NOTHING
from ..jsonrpc.codec.decode_errors import UNREADABLE, read_json
from ..jsonrpc.codec.encode_errors import UNWRITABLE
from ..jsonrpc.limits import Limits
from ..jsonrpc.messages import shown_tuple
from ..jsonrpc.policy import Policy
from ..spec import lookup
from ..spec.jsonrpc import RULES
from ..spec.mcp.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION, SUBSCRIPTION_ID
from ..spec.mcp.methods import METHODS
from ..spec.requirements import Requirement, requirements
from ..spec.revisions import (
    HANDSHAKE,
    LATEST,
    NEWEST_HANDSHAKE,
    PER_REQUEST,
    REVISIONS,
    must_be_released,
)
from ..spec.rows import Role
from .finding import Finding
from .message import judge
from .rules import (
    elicitation,
    headers,
    http,
    lifecycle,
    lists,
    messages,
    multi_round_trip,
    per_request,
    progress,
    subscriptions,
    tasks,
)
from .rules.checker import Checker
from .rules.state import (
    ObservedCall,
    ObservedMessage,
    ObservedProgress,
    ObservedSession,
    State,
    key_of,
    object_at,
)
from .trace import TextFault, TraceEntry, TraceFault, TraceHttp
from .trace_writer import capture
from .unknown import NOTHING_HIDDEN, HiddenPlaces

__all__ = ["UNJUDGED", "VERDICTS", "Conversation", "Outcome", "Verdict"]

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

# The methods that no handshake revision has.
_NEW: Final = frozenset(row.name for row in METHODS) - {
    row.name for row in METHODS if HANDSHAKE.holds(row.when.since)
}
_PREFIX: Final = "io.modelcontextprotocol/"
_VENDOR: Final = ("mcp.method.vendor", "mcp.notification.vendor")
# What is read of a message whose text is faulty.
_OUTLINE: Final = ("id", "method", "result", "error")
# As the codec has it.
MAX_BATCH: Final = Limits().batch

# The methods that only one side ever sends.
_SENDERS: Final[dict[str, Role]] = {
    row.name: row.by
    for row in METHODS
    if row.by != "both" and all(row.by == other.by for other in METHODS if other.name == row.name)
}

_Rule: TypeAlias = Callable[[ObservedMessage, State, Checker], None]

# In this order: a rule may store facts about a request that a later rule reads.
_RULES: Final[tuple[_Rule, ...]] = (
    messages.check_envelope,
    messages.check_ids,
    lifecycle.check_lifecycle,
    lifecycle.check_negotiated,
    lifecycle.check_capabilities,
    per_request.check_sides,
    per_request.check_meta,
    per_request.check_result,
    per_request.check_error,
    per_request.check_discovery,
    progress.check_progress,
    progress.check_cancellation,
    progress.check_logging,
    multi_round_trip.check_rounds,
    subscriptions.check_subscriptions,
    lists.check_listings,
    lists.check_tools,
    elicitation.check_questions,
    elicitation.check_roots,
    tasks.check_tasks,
    headers.check_headers,
    http.check_stream,
    messages.check_refusals,
)


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
        self._given = revision
        self._policy = policy
        self._state = State()
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
            given = _as_entry(given, sender, transport, http)
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
                f"{call.method} with the id {call.id!r}",
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
        return {row.id: self._outcome(row) for row in requirements()}

    def _outcome(self, row: Requirement) -> Outcome:
        if self._revisions and not any(map(row.when.holds, self._revisions)):
            return Outcome("not-applicable", "the revisions in use do not have this requirement")
        if row.judge in ("unit", "none"):
            return Outcome("excluded", row.why)
        if row.judge != "trace" and not row.also_trace:
            return Outcome("not-testable", "it needs a probe")
        if row.id in UNJUDGED:
            return Outcome("not-testable", UNJUDGED[row.id])
        occasions, breaches = self._checker.occasions[row.id], self._checker.breaches[row.id]
        if breaches:
            bad: Verdict = "fail" if row.level in ("must", "must-not") else "warn"
            return Outcome(bad, row.why, occasions, breaches)
        if occasions:
            return Outcome("pass", row.why, occasions)
        return Outcome("not-observed", row.why)

    # -- one entry ---------------------------------------------------------------------------

    def _judge(self, entry: TraceEntry, index: int, hidden: HiddenPlaces) -> list[Finding]:
        text = entry.message if entry.raw is None else entry.raw
        value = _value(entry)
        if hidden and value is not NOTHING:
            value = hidden.removed_from(value)
        if _is_metadata(entry, self._state):
            return self._judge_metadata(entry, value)
        # A longer batch is not taken apart: the codec rejects it as a whole.
        items = value[:MAX_BATCH] if type(value) is list else [value]
        seen = [self._observe(item, entry, index) for item in items if type(item) is dict]
        if seen and entry.sender is None and seen[0].sender is not None:
            entry = seen[0].entry
        revision = seen[0].revision if seen else self._revision_without_message(entry)
        self._checker.use_revision(revision)
        self._revisions.add(revision)
        kinds = ["initialize" if each.method == "initialize" else each.kind for each in seen]
        http.check_exchange(entry, kinds, self._state, self._checker)
        has_text = entry.unread is not None or (text is not NOTHING and text not in ("", b""))
        if has_text:
            messages.check_line(entry, bool(seen) or _is_damaged(entry), self._checker)
        self._judge_items(seen, type(value) is list)
        http.remember_exchange(entry, seen, self._state, revision)
        alone: list[Finding] = []
        if has_text:
            alone = self._judge_alone(text, seen, entry, revision)
        if not seen:
            self._remember_unread(entry, index)
        return [*self._checker.found, *alone]

    def _remember_unread(self, entry: TraceEntry, index: int) -> None:
        # A damaged request may be answered with its id, and a damaged reply ends its request.
        outline = _outline(entry)
        if outline is None:
            return
        seen = self._observe(outline, entry, index)
        if seen.kind == "request":
            seen.call = ObservedCall(seen)
            seen.call.meta_complete = True  # it was not read
            _remember_request(seen, self._state)
        elif seen.kind == "reply" and seen.call is not None:
            seen.call.answered = True
            key = key_of(seen.call.sender, seen.call.id)
            if key is not None and self._state.open.get(key) is seen.call:
                del self._state.open[key]
                self._state.closed[key] = seen.call

    def _judge_items(self, seen: list[ObservedMessage], in_batch: bool) -> None:
        for place, each in enumerate(seen):
            self._checker.base = f"/{place}" if in_batch else ""
            each.in_batch = in_batch
            self._checker.use_revision(each.revision)
            if each.kind == "request":
                each.call = ObservedCall(each)
                if each.method in multi_round_trip.METHODS or PER_REQUEST.holds(each.revision):
                    each.call.retry_key = per_request.retry_key(each)
            for rule in _RULES:
                rule(each, self._state, self._checker)
            self._remember(each)
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
        found = [_recorded(each) for each in entry.faults]
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
        self._checker.use_revision(self._revision_without_message(entry))
        scopes = value.get("scopes_supported") if type(value) is dict else None
        if type(scopes) is list:
            kept = "offline_access" not in scopes
            where = "/scopes_supported"
            self._checker.check("mcp.auth.no-offline-access", kept, where, scopes)
        http.remember_exchange(entry, [], self._state, self._checker.revision)
        return self._checker.found

    # -- one message -------------------------------------------------------------------------

    def _observe(self, members: dict[str, Any], entry: TraceEntry, index: int) -> ObservedMessage:
        sender = entry.sender or _sender_of(members, self._state)
        if sender is not None and entry.sender is None:
            entry = replace(entry, sender=sender)
        seen = ObservedMessage(members, entry, index, sender)
        if seen.kind == "reply":
            key = key_of(messages.other(sender), seen.id)
            seen.call = None if key is None else self._state.open.get(key)
        seen.revision = self._revision_of(seen)
        if seen.method:
            seen.row = lookup.method(seen.method, seen.revision)
        return seen

    def _revision_of(self, seen: ObservedMessage) -> str:
        if seen.kind == "reply":
            return self._revision_of_reply(seen)
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

    def _revision_of_reply(self, seen: ObservedMessage) -> str:
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

    def _revision_without_message(self, entry: TraceEntry) -> str:
        exchange = self._state.exchange(entry)
        if exchange is not None:
            return exchange.revision
        return self._usual(ObservedMessage({}, entry, 0, entry.sender))

    # -- memory ------------------------------------------------------------------------------

    def _remember(self, seen: ObservedMessage) -> None:
        state = self._state
        self._revisions.add(seen.revision)
        if PER_REQUEST.holds(seen.revision):
            state.per_request = seen.revision
        if seen.sender is not None:
            state.notified[seen.sender] = seen.kind == "notification"
        lists.remember_listing(seen, state)
        if seen.kind == "request":
            _remember_request(seen, state)
        elif seen.kind == "reply" and seen.call is not None:
            _remember_reply(seen, seen.call, state)
        elif seen.method == "notifications/initialized":
            state.session.initialized = True
        elif seen.method == "notifications/cancelled":
            for asker in ("client", "server"):
                key = key_of(asker, seen.params.get("requestId"))
                if key is not None and key in state.open:
                    state.open[key].cancelled = True
        tasks.remember_task(seen, state)


def _remember_request(seen: ObservedMessage, state: State) -> None:
    call = seen.call
    if call is None or seen.key is None:
        return
    if seen.method == "initialize" and state.session.phase != "asked":
        _begin_session(seen, state)
    state.open[seen.key] = call
    state.closed.pop(seen.key, None)
    state.ids[seen.key] = None
    token = key_of(seen.sender, call.token)
    if token is not None:
        state.tokens[token] = ObservedProgress(call)


def _begin_session(seen: ObservedMessage, state: State) -> None:
    if seen.is_http or state.session.phase == "none":
        # Ids are unique within a session, and a new one starts here.
        state.ids.clear()
    state.session = ObservedSession()
    state.session.phase = "asked"
    state.session.revision = seen.revision
    state.session.client = object_at(seen.params, "capabilities")


def _remember_reply(seen: ObservedMessage, call: ObservedCall, state: State) -> None:
    key = key_of(call.sender, call.id)
    call.answered = True
    if key is not None and state.open.get(key) is call:
        del state.open[key]
        state.closed[key] = call
    multi_round_trip.remember_round(seen, state)
    result = seen.result
    if call.method == "initialize":
        _settle(seen, state)
    elif call.method == "server/discover" and result is not None:
        state.discovered = result
        state.supported = _texts(result.get("supportedVersions"))
    if seen.code == -32022 and seen.error is not None:
        supported = _texts(object_at(seen.error, "data").get("supported"))
        state.modern_error = any(not HANDSHAKE.holds(each) for each in supported)
        if call.retry_key is not None and supported:
            state.refused[call.retry_key] = supported


def _settle(seen: ObservedMessage, state: State) -> None:
    if seen.result is None:
        state.session = ObservedSession()
        return
    state.session.phase = "agreed"
    state.session.revision = seen.revision
    state.session.server = object_at(seen.result, "capabilities")
    version = seen.result.get("protocolVersion")
    state.session.is_released = type(version) is not str or version in REVISIONS


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if type(each) is str) if type(value) is list else ()


# -- reading ---------------------------------------------------------------------------------


def _as_entry(
    given: Any, sender: Role | None, transport: str, http: TraceHttp | Mapping[str, Any] | None
) -> TraceEntry:
    if http is not None and not isinstance(http, TraceHttp):
        http = TraceHttp(**http)
    if isinstance(given, str | bytes | bytearray | memoryview):
        raw = given if isinstance(given, str) else bytes(given)
        return TraceEntry(sender=sender, transport=transport, raw=raw, http=http)
    if not isinstance(given, dict | list):
        given = _plain(given)
    return TraceEntry(sender=sender, transport=transport, message=given, http=http)


def _plain(given: Any) -> Any:
    try:
        return to_builtins(given)
    except UNWRITABLE:
        return given  # `judge` reports it


def _value(entry: TraceEntry) -> Any:
    if entry.message is not NOTHING:
        return entry.message
    if not entry.raw:
        return NOTHING
    try:
        return read_json(entry.raw)
    except UNREADABLE:
        return NOTHING


def _recorded(fault: TextFault) -> Finding:
    source = RULES[fault.rule].source if fault.rule in RULES else "Trunkline"
    return Finding(fault.rule, "error", fault.where, "", fault.expected, source)


def _is_damaged(entry: TraceEntry) -> bool:
    """Return True if a frame that is not JSON was meant as a message."""
    return _outline(entry) is not None


def _outline(entry: TraceEntry) -> dict[str, Any] | None:
    """Return the members of a frame that is not JSON which say what it was, or None."""
    unread = entry.unread
    if unread is None:
        if entry.raw is None:
            return None
        unread = capture(entry).unread
        if unread is None:
            return None
    if type(unread.value) is dict and "jsonrpc" in unread.value:
        return {name: each for name, each in unread.value.items() if name in _OUTLINE}
    members: dict[str, Any] = {"method": unread.method} if unread.method else {}
    if unread.id is not None:
        members["id"] = unread.id
    if not members:
        return None
    return members if "method" in members else {**members, "result": {}}


def _is_metadata(entry: TraceEntry, state: State) -> bool:
    exchange = state.exchange(entry) if entry.sender == "server" else None
    return exchange is not None and "/.well-known/" in exchange.path


def _sender_of(members: dict[str, Any], state: State) -> Role | None:
    # For recordings without senders: a method that only one side sends, or the open request.
    method = members.get("method")
    if type(method) is str:
        return _SENDERS.get(method)
    asked_by_client = key_of("client", members.get("id")) in state.open
    asked_by_server = key_of("server", members.get("id")) in state.open
    if asked_by_client == asked_by_server:
        return None
    return "server" if asked_by_client else "client"


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
