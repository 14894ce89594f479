"""Short conversations as Python data, and what the judge finds in them.

`ask`, `tell`, `answer` and `refuse` make the entries of a session after `opened`. Since
2026-07-28 each request describes itself: `call` and `complete` add what that takes. `over`
puts an entry on an HTTP stream. `keeps` and `breaks` judge the whole conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from tests.rigs.messages import INFO, META, initialize_params
from trunkline.judge import Conversation, Finding, TraceEntry
from trunkline.judge.trace.reader import TraceHttp
from trunkline.spec.rows import Role

PREFIX: Final = "io.modelcontextprotocol/"
SERVER_META: Final = {PREFIX + "serverInfo": INFO}
TASKS: Final = {"extensions": {PREFIX + "tasks": {}}}


# -- entries ---------------------------------------------------------------------------------


def sent(by: Role, **members: Any) -> TraceEntry:
    """Return an entry whose message has these members besides `jsonrpc`."""
    return TraceEntry(sender=by, message={"jsonrpc": "2.0", **members})


def ask(id: Any, method: str, /, *, by: Role = "client", **params: Any) -> TraceEntry:
    """Return a request."""
    return sent(by, id=id, method=method, params=params)


def tell(method: str, /, *, by: Role = "server", **params: Any) -> TraceEntry:
    """Return a notification."""
    return sent(by, method=method, params=params)


def answer(id: Any, /, *, by: Role = "server", **result: Any) -> TraceEntry:
    """Return a reply with a result."""
    return sent(by, id=id, result=result)


def refuse(id: Any, code: int, /, *, by: Role = "server", **data: Any) -> TraceEntry:
    """Return a reply with an error."""
    error = {"code": code, "message": "no", **({"data": data} if data else {})}
    return sent(by, id=id, error=error)


def batch(*entries: TraceEntry) -> TraceEntry:
    """Return the messages of entries of one side as one batch."""
    return TraceEntry(sender=entries[0].sender, message=[each.message for each in entries])


def opened(
    revision: str = "2025-11-25",
    client: Mapping[str, Any] | None = None,
    server: Mapping[str, Any] | None = None,
) -> list[TraceEntry]:
    """Return the three messages that open a session; `client` and `server` are capabilities."""
    agreed = {"protocolVersion": revision, "capabilities": dict(server or {}), "serverInfo": INFO}
    return [
        ask("i", "initialize", **initialize_params(revision, client)),
        answer("i", **agreed),
        tell("notifications/initialized", by="client"),
    ]


def call(
    id: Any,
    method: str,
    /,
    *,
    declared: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    **params: Any,
) -> TraceEntry:
    """Return a request of 2026-07-28; `declared` are the capabilities of the client."""
    own = {**META, PREFIX + "clientCapabilities": dict(declared or {}), **(meta or {})}
    return ask(id, method, **params, _meta=own)


def complete(id: Any, /, **result: Any) -> TraceEntry:
    """Return a result of 2026-07-28; of what it needs, `result` may replace each member."""
    return answer(id, **{"resultType": "complete", "_meta": SERVER_META, **result})


def listed(id: Any, /, *tools: Mapping[str, Any], **more: Any) -> TraceEntry:
    """Return a result of `tools/list` of 2026-07-28."""
    hints = {"ttlMs": 0, "cacheScope": "public"}
    return complete(id, **{"tools": list(tools), **hints, **more})


def tool(name: str, **more: Any) -> dict[str, Any]:
    """Return a tool as a listing has it."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def over(
    stream: int,
    entry: TraceEntry | None = None,
    *,
    by: Role = "client",
    method: str = "",
    path: str = "",
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    **facts: Any,
) -> TraceEntry:
    """Return an entry, or one without a message, as part of an HTTP exchange."""
    entry = TraceEntry(sender=by) if entry is None else entry
    http = TraceHttp(method, path, status, headers)
    return replace(entry, transport="http", http=http, stream=stream, **facts)


# -- judgement -------------------------------------------------------------------------------


def found(*entries: TraceEntry, revision: str | None = None) -> list[tuple[str, str, str]]:
    """Return rule, level and pointer of all findings above the level of a remark."""
    return [(each.rule, each.level, each.where) for each in _judged(entries, revision)[1]]


def keeps(
    rule: str, *entries: TraceEntry, also: tuple[str, ...] = (), revision: str | None = None
) -> None:
    """Assert that the conversation has an occasion for `rule`, and breaks only those in `also`."""
    talk, findings = _judged(entries, revision)
    assert {each.rule for each in findings} == set(also)
    assert talk.outcomes()[rule].verdict == "pass"


def passes_over(rule: str, *entries: TraceEntry, revision: str | None = None) -> None:
    """Assert that the conversation has no occasion for `rule`, and breaks no other."""
    talk, findings = _judged(entries, revision)
    assert findings == []
    outcome = talk.outcomes()[rule]
    assert (outcome.occasions, outcome.breaches) == (0, 0)


def breaks(
    rule: str,
    level: str,
    where: str,
    *entries: TraceEntry,
    also: tuple[str, ...] = (),
    revision: str | None = None,
) -> None:
    """Assert that the last message breaks `rule` at `where`, and nothing else does.

    `also` names the rules that the conversation cannot but break as well.
    """
    talk, findings = _judged(entries, revision)
    own = [each for each in findings if each.rule == rule]
    assert [(each.level, each.where) for each in own] == [(level, where)]
    assert {each.rule for each in findings} == {rule, *also}
    assert own[0].message_index == len(entries) - 1
    assert talk.outcomes()[rule].verdict == ("fail" if level == "error" else "warn")


def _judged(
    entries: tuple[TraceEntry, ...], revision: str | None
) -> tuple[Conversation, list[Finding]]:
    talk = Conversation(revision)
    findings = [each for entry in entries for each in talk.feed(entry)]
    findings += talk.end()
    return talk, [each for each in findings if each.level != "info"]
