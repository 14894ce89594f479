"""Requests of several rounds: what a server asks back, and how a client goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    breaks,
    call,
    complete,
    found,
    keeps,
    passes_over,
    refuse,
)
from trunkline.judge import TraceEntry

ERROR = "error"
ALL = {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}
ROOTS = {"method": "roots/list"}


def run(id: Any, *, declared: Any = ALL, name: str = "a", **params: Any) -> TraceEntry:
    return call(id, "tools/call", name=name, declared=declared, **params)


def back(id: Any, /, *, requests: Any = None, **more: Any) -> TraceEntry:
    asked = {} if requests is None else {"inputRequests": requests}
    return complete(id, resultType="input_required", **asked, **more)


# -- what a server asks ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params"), [("prompts/get", {"name": "a"}), ("resources/read", {"uri": "a:b"})]
)
def test_three_methods_may_ask_back(method: str, params: dict[str, str]) -> None:
    rule, reply = "mcp.rounds.three-methods", back(1, requests={"r": ROOTS})
    keeps(rule, run(1), reply)
    keeps(rule, call(1, method, declared=ALL, **params), reply)
    breaks(rule, ERROR, "/result/resultType", call(1, "tools/list", declared=ALL), reply)


def test_a_result_that_asks_back_has_questions_or_a_state() -> None:
    rule = "mcp.rounds.asks-or-state"
    keeps(rule, run(1), back(1, requests={"r": ROOTS}))
    keeps(rule, run(1), back(1, requestState="s"))
    breaks(rule, ERROR, "/result", run(1), back(1))


def test_a_question_is_of_one_of_three_kinds() -> None:
    rule = "mcp.rounds.kinds"
    keeps(rule, run(1), back(1, requests={"r": ROOTS}))
    asked = {"r": ROOTS, "a/b~": {"method": "ping"}}
    breaks(rule, ERROR, "/result/inputRequests/a~1b~0/method", run(1), back(1, requests=asked))


FORM = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}}
URL = {"method": "elicitation/create", "params": {"mode": "url", "message": "m"}}
MESSAGES = {"messages": [], "maxTokens": 1}
SAMPLE = {"method": "sampling/createMessage", "params": MESSAGES}
TOOLS = {"method": "sampling/createMessage", "params": {**MESSAGES, "tools": []}}
CHOICE = {"method": "sampling/createMessage", "params": {**MESSAGES, "toolChoice": {}}}


@pytest.mark.parametrize(
    ("request_", "enough", "too_little"),
    [
        (ROOTS, {"roots": {}}, {"sampling": {}}),
        (SAMPLE, {"sampling": {}}, {"roots": {}}),
        (TOOLS, {"sampling": {"tools": {}}}, {"sampling": {}}),
        (CHOICE, {"sampling": {"tools": {}}}, {"sampling": {}}),
        (FORM, {"elicitation": {}}, {"roots": {}}),
        (FORM, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        (URL, {"elicitation": {"url": {}}}, {"elicitation": {}}),
    ],
)
def test_a_server_asks_for_what_the_client_declared(
    request_: dict[str, Any], enough: dict[str, Any], too_little: dict[str, Any]
) -> None:
    def broken(declared: dict[str, Any]) -> list[tuple[str, str, str]]:
        each = found(run(1, declared=declared), back(1, requests={"q": request_}))
        return [one for one in each if one[0] == "mcp.rounds.declared-only"]

    assert broken(enough) == []
    assert broken(too_little) == [("mcp.rounds.declared-only", ERROR, "/result/inputRequests/q")]


def test_capabilities_declared_for_one_request_apply_to_it_alone() -> None:
    rule, reply = "mcp.rounds.declared-only", back(2, requests={"a/b~": ROOTS})
    keeps(rule, run(1, declared={}), run(2), reply)
    where = "/result/inputRequests/a~1b~0"
    breaks(rule, ERROR, where, run(1), run(2, declared={}), reply)


def test_only_the_text_shows_that_a_key_is_there_twice() -> None:
    rule = "mcp.rounds.keys-unique"
    head = b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","_meta":'
    head += b'{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}},"inputRequests":{'
    one, two = b'"r":{"method":"roots/list"}', b'"q":{"method":"roots/list"}'

    def raw(*items: bytes) -> TraceEntry:
        return TraceEntry(sender="server", raw=head + b",".join(items) + b"}}}")

    keeps(rule, run(1), raw(one, two))
    breaks(rule, ERROR, "/result/inputRequests/r", run(1), raw(one, one))
    passes_over(rule, run(1), back(1, requests={"r": ROOTS}))


# -- how a client goes on --------------------------------------------------------------------

ANSWERS = {"r": {"roots": []}}
FIRST = [run(1), back(1, requests={"r": ROOTS}, requestState="s")]
STATELESS = [run(1), back(1, requests={"r": ROOTS})]


def again(id: Any = 2, /, **params: Any) -> TraceEntry:
    return run(id, **{"inputResponses": ANSWERS, "requestState": "s", **params})


def test_every_question_is_answered() -> None:
    rule = "mcp.rounds.all-answered"
    keeps(rule, *FIRST, again())
    where = "/params/inputResponses"
    breaks(rule, ERROR, where, *FIRST, again(inputResponses={"q": {"roots": []}}))
    breaks(rule, ERROR, where, *FIRST, run(2, requestState="s"))


def test_the_state_comes_back_as_it_was() -> None:
    rule = "mcp.rounds.state-echoed"
    keeps(rule, *FIRST, again())
    breaks(rule, ERROR, "/params/requestState", *FIRST, again(requestState="S"))
    breaks(rule, ERROR, "/params/requestState", *FIRST, run(2, inputResponses=ANSWERS))


def test_a_client_adds_no_state_of_its_own() -> None:
    rule = "mcp.rounds.state-not-added"
    keeps(rule, *STATELESS, run(2, inputResponses=ANSWERS))
    breaks(rule, ERROR, "/params/requestState", *STATELESS, again())


@pytest.mark.parametrize("id", [2, "1"])
def test_the_next_round_has_an_id_of_its_own(id: int | str) -> None:
    rule = "mcp.rounds.new-id"
    keeps(rule, *FIRST, again(id))
    breaks(rule, ERROR, "/id", *FIRST, again(1))


def test_a_state_is_not_given_to_another_request() -> None:
    rule = "mcp.rounds.state-not-shared"
    keeps(rule, *FIRST, again())
    breaks(rule, ERROR, "/params/requestState", *FIRST, again(name="b"))


def test_a_request_of_its_own_is_not_a_next_round() -> None:
    passes_over("mcp.rounds.new-id", *FIRST, run(2))
    passes_over("mcp.rounds.new-id", again(name="b"))
    refused = [run(1), refuse(1, -32603)]
    passes_over("mcp.rounds.new-id", *refused, run(1, inputResponses=ANSWERS))
    done = [run(1), complete(1, content=[])]
    passes_over("mcp.rounds.new-id", *done, run(1, inputResponses=ANSWERS))


def test_a_reply_to_nothing_asks_for_nothing() -> None:
    broken = found(run(1), back(9, requests={"r": ROOTS}), run(2, inputResponses={}))
    assert broken == [("mcp.id.echoed", ERROR, "/id")]


def test_a_method_without_rounds_has_no_next_round() -> None:
    first = call(1, "tools/list", declared=ALL), back(1, requests={"r": ROOTS}, requestState="s")
    second = call(1, "tools/list", declared=ALL, requestState="S")
    rules = [rule for rule, *_ in found(*first, second)]
    assert [rule for rule in rules if "rounds" in rule] == ["mcp.rounds.three-methods"]


def test_a_round_is_gone_on_with_once() -> None:
    keeps("mcp.rounds.new-id", *FIRST, again(), complete(2, content=[]), run(3, requestState="s"))


def test_equal_requests_are_matched_by_request_state() -> None:
    two = [run(2), back(2, requests={"q": ROOTS}, requestState="t")]
    second = again(3, requestState="t", inputResponses={"q": {"roots": []}})
    keeps("mcp.rounds.all-answered", *FIRST, *two, again(4), second)
    keeps("mcp.rounds.all-answered", *FIRST, *two, second, again(4))
    rule, where = "mcp.rounds.all-answered", "/params/inputResponses"
    wrong = again(3, requestState="t")
    breaks(rule, ERROR, where, *FIRST, *two, wrong)
    breaks(rule, ERROR, where, *FIRST, *two, again(4), wrong)


@pytest.mark.parametrize(("count", "is_remembered"), [(64, True), (65, False)])
def test_up_to_64_equal_requests_are_remembered(count: int, is_remembered: bool) -> None:
    talk: list[TraceEntry] = []
    for id in range(count):
        talk += [run(id), back(id, requests={f"r{id}": ROOTS}, requestState=str(id))]
    # The last one stands for what was forgotten.
    late = run("x", requestState="0", inputResponses={"r0": {"roots": []}})
    assert (found(*talk, late) == []) is is_remembered
