"""Conversations: how a message finds its revision, what is remembered, what comes out."""

from __future__ import annotations

import inspect
import random
import re
from typing import Any

import pytest

from tests.effort import examples
from tests.rigs.messages import META
from trunkline.jsonrpc import Request
from trunkline.judge.conversation.conversation import Conversation
from trunkline.judge.conversation.outcomes import UNJUDGED, VERDICTS
from trunkline.judge.rules.schema_check import fits
from trunkline.judge.rules.state import BoundedDict, declares
from trunkline.judge.trace.reader import TraceEntry, TraceFault, read_trace
from trunkline.judge.trace.writer import write_entry
from trunkline.skills import resources as skills
from trunkline.skills.entries import EXTENSION as SKILLS
from trunkline.spec.mcp.methods import EXTENSION_METHODS
from trunkline.spec.profiles import UnknownRevision
from trunkline.spec.requirements import requirements
from trunkline.spec.rows import Role

# The rule that a notification is never answered.
ANSWERED = "mcp.jsonrpc.notification-unanswered"


def call(id: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def reply(id: object, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def opened(revision: str) -> Conversation:
    talk = Conversation()
    info = {"name": "x", "version": "1"}
    talk.feed(
        call("i", "initialize", protocolVersion=revision, capabilities={}, clientInfo=info),
        "client",
    )
    talk.feed(
        reply("i", protocolVersion=revision, capabilities={"tools": {}}, serverInfo=info), "server"
    )
    talk.feed({"jsonrpc": "2.0", "method": "notifications/initialized"}, "client")
    return talk


def rules(found: list[Any]) -> list[str]:
    return [item.rule for item in found if item.level != "info"]


def test_a_session_is_judged_by_what_was_agreed_on() -> None:
    talk = opened("2024-11-05")
    assert rules(talk.feed([call(1, "ping")], "client")) == ["mcp.batch.unstated"]
    assert rules(opened("2025-06-18").feed([call(1, "ping")], "client")) == ["mcp.batch.removed"]


def test_messages_of_both_eras_are_accepted_in_one_conversation() -> None:
    talk = opened("2025-11-25")
    assert rules(talk.feed(call(1, "tools/list", _meta=META), "client")) == []
    assert "mcp.caching.hints-present" in rules(talk.feed(reply(1, tools=[]), "server"))
    assert rules(talk.feed(call(2, "tools/list"), "client")) == []
    assert rules(talk.feed(reply(2, tools=[]), "server")) == []
    outcomes = talk.outcomes()
    assert outcomes["mcp.lifecycle.initialize-first"].verdict == "pass"
    assert outcomes["mcp.meta.version-present"].verdict == "pass"


def test_version_header_sets_the_revision_of_a_message_without_meta() -> None:
    talk = Conversation()
    talk.feed(
        call(1, "tools/list"),
        "client",
        http={"method": "POST", "headers": {"MCP-Protocol-Version": "2026-07-28"}},
    )
    assert talk.outcomes()["mcp.meta.version-present"].verdict == "fail"


def test_sender_of_a_bare_message_is_inferred() -> None:
    talk = Conversation()
    talk.feed(call(1, "tools/list", _meta=META))
    found = talk.feed(reply(1, tools=[]))
    assert "mcp.caching.hints-present" in rules(found)


def test_findings_know_their_message() -> None:
    talk = Conversation("2025-11-25")
    talk.feed(call(1, "ping"), "client")
    (found,) = talk.feed(reply(2), "server")
    assert (found.rule, found.message_index, found.where) == ("mcp.id.echoed", 1, "/id")


def test_unreadable_line_is_a_finding() -> None:
    (found,) = Conversation().feed(TraceFault(7, "no"))
    assert (found.rule, found.got) == ("trace.line", "line 7")


def test_message_objects_are_messages() -> None:
    talk = Conversation("2025-11-25")
    assert talk.feed(Request(id=1, method="ping"), "client") == []
    assert talk.feed(b'{"jsonrpc":"2.0","id":1,"result":{}}', "server") == []
    assert talk.outcomes()["mcp.lifecycle.ping-empty"].verdict == "pass"


@pytest.mark.parametrize("message", [call(1, "ping"), Request(id=1, method="ping")])
def test_a_parsed_message_is_judged_by_the_rules_of_its_transport(message: Any) -> None:
    clean = "mcp.stdio.stdin-clean"
    talk = Conversation()
    talk.feed(message, "client", "stdio")
    assert talk.outcomes()[clean].verdict == "pass"
    other = Conversation()
    other.feed(message, "client", "http")
    assert other.outcomes()[clean].verdict == "not-observed"


@pytest.mark.parametrize(("transport", "found"), [("stdio", [ANSWERED]), ("http", [])])
def test_an_error_without_an_id_may_answer_a_notification_over_http_alone(
    transport: str, found: list[str]
) -> None:
    talk = opened("2025-11-25")
    talk.feed({"jsonrpc": "2.0", "method": "notifications/initialized"}, "client", transport)
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "refused"}}
    assert [rule for rule in rules(talk.feed(error, "server", transport)) if rule == ANSWERED] == (
        found
    )


def test_unanswered_request_is_a_finding_at_the_end() -> None:
    talk = opened("2025-11-25")
    talk.feed(call(1, "tools/call", name="a"), "client")
    talk.feed(call(2, "tools/call", name="a"), "client")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    talk.feed(cancel, "client")
    talk.feed(call("2", "tools/call", name="a"), "client")
    found, other = talk.end()
    assert (found.rule, found.level, found.message_index) == ("trace.unanswered", "info", 3)
    assert (found.got, other.got) == (
        "tools/call with the id 1",
        'tools/call with the id "2"',
    )


def test_a_late_reply_after_a_cancellation_is_in_order() -> None:
    talk = opened("2025-11-25")
    talk.feed(call(1, "tools/call", name="a"), "client")
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    talk.feed(cancel, "client")
    assert rules(talk.feed(reply(1, content=[]), "server")) == []


def test_nothing_observed_is_not_a_pass() -> None:
    outcomes = Conversation().outcomes()
    assert {outcome.verdict for outcome in outcomes.values()} == {
        "not-observed",
        "not-testable",
        "excluded",
    }


def test_each_requirement_has_the_outcome_of_its_judge() -> None:
    outcomes = Conversation("2025-06-18").outcomes()
    for row in requirements():
        outcome = outcomes[row.id]
        assert outcome.verdict in VERDICTS
        if not row.when.holds("2025-06-18"):
            assert outcome.verdict == "not-applicable"
        elif row.judge in ("unit", "none"):
            assert (outcome.verdict, outcome.why) == ("excluded", row.why)
        elif row.judge != "trace" and (not row.also_trace or row.id in UNJUDGED):
            assert outcome.verdict == "not-testable"
        else:
            assert outcome.verdict == "not-observed"


def test_breach_of_should_is_a_warning_and_of_must_a_failure() -> None:
    talk = Conversation()
    meta = {key: value for key, value in META.items() if not key.endswith("clientInfo")}
    talk.feed(call(1, "tools/list", _meta=meta), "client")
    talk.feed(call(1, "tools/list", _meta=meta), "client")
    outcomes = talk.outcomes()
    assert outcomes["mcp.meta.client-info"].verdict == "warn"
    assert outcomes["mcp.meta.client-info"].breaches == 2
    assert outcomes["mcp.id.open-unique"].verdict == "fail"


def test_a_revision_that_was_never_released_is_refused() -> None:
    with pytest.raises(UnknownRevision):
        Conversation("2020-01-01")


def test_reply_to_an_evicted_request_is_not_called_unknown() -> None:
    talk = opened("2025-11-25")
    for id in range(3000):
        talk.feed(call(id, "tools/call", name="a"), "client")
    assert rules(talk.feed(reply(0, content=[]), "server")) == []
    assert rules(talk.feed(reply(2999, content=[]), "server")) == []


def test_a_bounded_map_forgets_the_oldest() -> None:
    kept: BoundedDict[int, str] = BoundedDict(2)
    for number in range(3):
        kept[number] = ""
    assert (list(kept), kept.evicted) == ([1, 2], True)


def test_capabilities_are_found_by_their_place() -> None:
    declared = {"a": {"b": True, "c": False}, "extensions": {"x.y/z": {}}}
    assert declares(declared, "a")
    assert declares(declared, "a.b")
    assert not declares(declared, "a.c")
    assert not declares(declared, "a.b.c")
    assert declares(declared, "extensions.x.y/z")


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"n": 1}, {"type": "object", "properties": {"n": {"type": "integer"}}}, True),
        ({"n": 1.0}, {"properties": {"n": {"type": "integer"}}}, True),
        ({"n": True}, {"properties": {"n": {"type": "integer"}}}, False),
        ({}, {"required": ["n"]}, False),
        ({"m": 1}, {"additionalProperties": False}, False),
        ([1, "2"], {"items": {"type": "number"}}, False),
        (True, {"enum": [1]}, False),
        (1, {"const": 1}, True),
        (5, {"maximum": 4}, False),
        ("abc", {"minLength": 4}, False),
        (None, {"type": ["null", "string"]}, True),
        ("x", {"pattern": "y"}, None),
        ({"n": 1}, {"properties": {"n": {"$ref": "#"}}}, None),
        ({"n": 1}, {"required": 5}, None),
        (1, {"enum": 5}, None),
        (1, False, False),
    ],
)
def test_values_are_held_against_simple_schemas(
    value: object, schema: object, expected: bool | None
) -> None:
    assert fits(value, schema) is expected


WORDS: list[Any] = [
    *("jsonrpc", "2.0", "id", "method", "params", "result", "error", "_meta", "code", "data"),
    *("initialize", "ping", "tools/call", "tools/list", "subscriptions/listen", "tasks/get"),
    *("notifications/progress", "notifications/cancelled", "notifications/message", "progress"),
    *("resultType", "input_required", "task", "inputRequests", "requestState", "inputResponses"),
    *("tools", "name", "inputSchema", "outputSchema", "structuredContent", "content", "messages"),
    *("progressToken", "requestId", "notifications", "taskId", "taskIds", "status", "completed"),
    *("capabilities", "protocolVersion", "supported", "cursor", "nextCursor", "level", "roots"),
    *META,
    *(None, True, False, 0, 1, -32022, -32601, 1.5, ""),
]


def any_value(chance: random.Random, depth: int) -> Any:
    kind = chance.random()
    if depth == 0 or kind < 0.4:
        return chance.choice(WORDS)
    if kind < 0.55:
        return [any_value(chance, depth - 1) for _ in range(chance.randrange(3))]
    names = [word for word in WORDS if isinstance(word, str)]
    return {
        chance.choice(names): any_value(chance, depth - 1) for _ in range(chance.randrange(1, 6))
    }


def any_message(chance: random.Random) -> Any:
    message = any_value(chance, 4)
    if isinstance(message, dict) and chance.random() < 0.8:
        message["jsonrpc"] = "2.0"
        message["id"] = chance.choice([1, 2, "1", None, [], 3])
        which = chance.choice(["method", "result", "error"])
        message[which] = any_value(chance, 3)
        if which == "method":
            message["method"] = chance.choice([word for word in WORDS if isinstance(word, str)])
            message["params"] = any_value(chance, 4)
    return message


@pytest.mark.parametrize("seed", range(examples(20)))
def test_any_message_is_judged_without_an_exception(seed: int) -> None:
    chance = random.Random(seed)
    talk = Conversation(chance.choice([None, "2025-11-25", "2026-07-28"]))
    for _ in range(300):
        senders: list[Role | None] = ["client", "server", None]
        sender = chance.choice(senders)
        http = chance.choice(
            [
                None,
                {"method": "POST", "headers": {"Accept": "x", "Mcp-Name": "=?base64?*?="}},
                {"status": 404, "headers": {}},
            ]
        )
        entry = TraceEntry(sender=sender, message=any_message(chance), stream=chance.choice([1, 2]))
        talk.feed(entry)
        talk.feed(any_message(chance), sender, chance.choice(["stdio", "http"]), http)
        for again in read_trace([write_entry(entry)]):
            talk.feed(again)
    talk.end()
    assert set(talk.outcomes()) == {row.id for row in requirements()}


def _round_trip(*states: str | None) -> list[str]:
    """Return the rules broken by calls that are alike, each asked back and sent again at once."""
    talk = Conversation()
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
    found: list[Any] = []

    def feed(sender: Any, message: dict[str, Any]) -> None:
        found.extend(talk.feed({"jsonrpc": "2.0", **message}, sender))

    def call(id: int, which: int, **more: Any) -> None:
        params = {"name": "t", "arguments": {"which": which}, "_meta": meta, **more}
        feed("client", {"id": id, "method": "tools/call", "params": params})

    alike = len(set(states)) == len(states)
    for number, state in enumerate(states):
        call(number, 0 if alike else number)
        result = {
            "resultType": "input_required",
            "inputRequests": {"r": {"method": "roots/list"}},
            "requestState": state,
        }
        feed("server", {"id": number, "result": result})
    for number, state in enumerate(states):
        answers = {"r": {"roots": []}}
        call(100 + number, 0 if alike else number, inputResponses=answers, requestState=state)
    return [each.rule for each in found if each.rule.startswith("mcp.rounds.")]


def test_equal_calls_with_input_required_are_matched_by_request_state() -> None:
    assert _round_trip("one", "two", "three") == []


def test_request_state_shared_by_several_calls_is_not_a_breach() -> None:
    assert _round_trip("same", "same") == []


@pytest.mark.parametrize(("declared", "is_asked"), [({}, False), ({"elicitation": {}}, True)])
def test_undeclared_elicitation_mode_is_judged_only_if_elicitation_is_declared(
    declared: dict[str, Any], is_asked: bool
) -> None:
    talk = Conversation()

    def feed(sender: Any, message: dict[str, Any]) -> list[str]:
        return [each.rule for each in talk.feed({"jsonrpc": "2.0", **message}, sender)]

    info = {"name": "tests", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": declared, "clientInfo": info}
    feed("client", {"id": 1, "method": "initialize", "params": opening})
    answer = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
    feed("server", {"id": 1, "result": answer})
    feed("client", {"method": "notifications/initialized"})
    url = {"mode": "url", "message": "Go", "url": "https://x.test/", "elicitationId": "1"}
    feed("server", {"id": 7, "method": "elicitation/create", "params": url})
    unknown = {"code": -32601, "message": "Method not found"}
    broken = feed("client", {"id": 7, "error": unknown})
    assert ("mcp.elicitation.undeclared-refused" in broken) is is_asked


# Methods of extensions

STARS = {"extensions": {"com.example/stars": {}}}


def discovered(capabilities: dict[str, Any]) -> dict[str, Any]:
    hints = {"ttlMs": 0, "cacheScope": "public", "resultType": "complete"}
    served = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
    result = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **hints}
    return {"jsonrpc": "2.0", "id": 1, "result": {**result, "_meta": served}}


def request_of(id: int, method: str, capabilities: dict[str, Any]) -> dict[str, Any]:
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta}}


@pytest.mark.parametrize(
    ("client", "server", "found"),
    [
        (STARS, STARS, []),
        (STARS, {}, ["mcp.method.vendor"]),
        ({}, STARS, ["mcp.method.vendor"]),
        ({}, {}, ["mcp.method.vendor"]),
    ],
)
def test_a_method_may_be_that_of_an_extension_that_both_declare(
    client: dict[str, Any], server: dict[str, Any], found: list[str]
) -> None:
    talk = Conversation()
    assert talk.feed(request_of(1, "server/discover", client), "client") == []
    assert talk.feed(discovered(server), "server") == []
    told = talk.feed(request_of(2, "stars/list", client), "client")
    assert [each.rule for each in told] == found
    assert {each.level for each in told} <= {"info"}
    reply = {"jsonrpc": "2.0", "id": 2, "result": discovered({})["result"]}
    assert talk.feed(reply, "server") == []


def test_a_method_of_an_official_extension_needs_that_extension() -> None:
    skills = {"extensions": {"io.modelcontextprotocol/skills": {}}}
    for server, found in ((skills, []), ({}, ["mcp.capability.extension-client"])):
        talk = Conversation()
        talk.feed(request_of(1, "server/discover", skills), "client")
        talk.feed(discovered(server), "server")
        told = talk.feed(request_of(2, "skills/list", skills), "client")
        assert [each.rule for each in told] == found


def test_the_methods_of_our_own_extensions_are_known() -> None:
    assert set(EXTENSION_METHODS.values()) == {SKILLS}
    source = inspect.getsource(skills)
    assert set(re.findall(r'\.method\("([^"]+)"', source)) == set(EXTENSION_METHODS)


def test_a_finding_names_the_page_of_the_revision_that_is_spoken() -> None:
    talk = Conversation()
    hello = {"protocolVersion": "2024-11-05", "capabilities": {}}
    (finding,) = talk.feed(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, "client"
    )
    assert finding.source == "2024-11-05 · basic/lifecycle"
    noise = Conversation("2025-06-18").feed(b"hello", "server", "stdio")
    assert [each.source for each in noise] == ["2025-06-18 · basic/transports"]


def test_a_long_batch_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[object] = []
    observe = Conversation._observe

    def counted(self: Conversation, members: Any, *given: Any) -> Any:
        observed.append(members)
        return observe(self, members, *given)

    monkeypatch.setattr(Conversation, "_observe", counted)
    found = Conversation("2025-03-26").feed(b"[" + b"{}," * 500_000 + b"{}]", "client", "stdio")
    assert len(observed) == 1000
    assert "jsonrpc.limit.batch-length" in {each.rule for each in found}
