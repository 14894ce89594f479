"""What a server asks of the client's user and model, and the roots a client names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    answer,
    ask,
    breaks,
    call,
    complete,
    found,
    keeps,
    opened,
    passes_over,
    refuse,
)
from trunkline.judge import TraceEntry
from trunkline.judge.rules.elicitation import is_declared

ERROR, WARN = "error", "warn"
FORM: dict[str, Any] = {
    "message": "m",
    "requestedSchema": {"type": "object", "properties": {}},
}


def link(url: str = "https://x.test/") -> dict[str, Any]:
    return {"mode": "url", "message": "m", "url": url, "elicitationId": "1"}


def elicit(params: dict[str, Any]) -> TraceEntry:
    return ask(1, "elicitation/create", by="server", **params)


def inside(method: str, params: dict[str, Any], declared: Any) -> list[TraceEntry]:
    """Return a call and a result that asks back."""
    asked = {"a/b~": {"method": method, "params": params}}
    return [
        call(1, "tools/call", name="a", declared=declared),
        complete(1, resultType="input_required", inputRequests=asked),
    ]


# -- elicitation -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "form", "url"),
    [
        ({}, False, False),
        ({"elicitation": {}}, True, False),
        ({"elicitation": {"form": {}}}, True, False),
        ({"elicitation": {"url": {}}}, False, True),
        ({"elicitation": {"form": {}, "url": {}}}, True, True),
    ],
)
def test_an_empty_capability_means_forms_alone(
    declared: dict[str, Any], form: bool, url: bool
) -> None:
    assert is_declared({}, declared) is form
    assert is_declared({"mode": "form"}, declared) is form
    assert is_declared({"mode": "url"}, declared) is url


FORMS, LINKS = {"elicitation": {}}, {"elicitation": {"url": {}}}


def test_an_elicitation_is_in_a_mode_that_was_declared() -> None:
    rule = "mcp.elicitation.declared-mode"
    keeps(rule, *opened(client=FORMS), elicit(FORM))
    keeps(rule, *opened(client=LINKS), elicit(link()))
    breaks(rule, ERROR, "/params/mode", *opened(client=FORMS), elicit(link()))
    breaks(rule, ERROR, "/params/mode", *opened(client=LINKS), elicit(FORM))
    # What the client declared holds once the server has agreed.
    early = found(opened(client=FORMS)[0], elicit(link()))
    assert early == [("mcp.lifecycle.server-waits", WARN, "/method")]


def test_an_elicitation_inside_a_result_is_in_a_mode_that_its_request_declared() -> None:
    rule, method = "mcp.elicitation.declared-mode", "elicitation/create"
    keeps(rule, *inside(method, FORM, FORMS))
    where = "/result/inputRequests/a~1b~0/params/mode"
    also = ("mcp.rounds.declared-only",)
    breaks(rule, ERROR, where, *inside(method, FORM, LINKS), also=also)


def test_a_mode_that_was_not_declared_is_refused() -> None:
    rule, also = "mcp.elicitation.undeclared-refused", ("mcp.elicitation.declared-mode",)
    conversation = [*opened(client=FORMS), elicit(link())]
    keeps(rule, *conversation, refuse(1, -32602, by="client"), also=also)
    reply = answer(1, by="client", action="accept")
    breaks(rule, ERROR, "/error/code", *conversation, reply, also=also)
    passes_over(rule, *opened(client=FORMS), elicit(FORM), refuse(1, -32603, by="client"))
    # A client without elicitation does not know the method.
    unknown = found(*opened(), elicit(link()), refuse(1, -32601, by="client"))
    assert rule not in [each for each, *_ in unknown]


@pytest.mark.parametrize("url", ["http://x.test/", "http://localhost.x.test/", "http://[", ""])
def test_a_link_is_safe(url: str) -> None:
    rule = "mcp.elicitation.url-https"
    start = opened(client=LINKS)
    keeps(rule, *start, elicit(link()))
    breaks(rule, WARN, "/params/url", *start, elicit(link(url)))
    where = "/result/inputRequests/a~1b~0/params/url"
    params = {"mode": "url", "message": "m", "url": url}
    breaks(rule, WARN, where, *inside("elicitation/create", params, LINKS))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_link_to_the_same_machine_is_safe(host: str) -> None:
    start = opened(client=LINKS)
    keeps("mcp.elicitation.url-https", *start, elicit(link(f"http://{host}:8000/")))


def test_only_a_link_of_the_mode_for_links_is_looked_at() -> None:
    rule, start = (
        "mcp.elicitation.url-https",
        opened(client={"elicitation": {"form": {}, "url": {}}}),
    )
    form = {**FORM, "url": "http://x.test/"}
    assert rule not in [each for each, *_ in found(*start, elicit(form))]
    odd = {**link(), "url": 1}
    assert rule not in [each for each, *_ in found(*start, elicit(odd))]


def test_an_error_asks_for_nothing() -> None:
    assert found(call(1, "tools/call", name="a"), refuse(1, -32603)) == []


# -- sampling --------------------------------------------------------------------------------

START = opened(client={"sampling": {"tools": {}}})
TEXT = {"type": "text", "text": "x"}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "a", "input": {}}


def result(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": id, "content": []}


def sample(*contents: Any) -> TraceEntry:
    roles = ["user", "assistant"] * len(contents)
    messages = [
        {"role": role, "content": each} for role, each in zip(roles, contents, strict=False)
    ]
    params = {"messages": messages, "maxTokens": 1}
    return ask(1, "sampling/createMessage", by="server", **params)


def test_tool_results_stand_alone_in_their_message() -> None:
    rule = "mcp.sampling.results-alone"
    keeps(rule, *START, sample(TEXT, [use("1"), use("2")], [result("1"), result("2")]))
    where = "/params/messages/2/content"
    breaks(rule, ERROR, where, *START, sample(TEXT, use("1"), [result("1"), TEXT]))


def test_tool_results_do_not_stand_beside_tool_uses() -> None:
    rule, where = "mcp.sampling.results-alone", "/params/messages/2/content"
    mixed = sample(TEXT, use("1"), [result("1"), use("2")], [result("2")])
    breaks(rule, ERROR, where, *START, mixed)


@pytest.mark.parametrize(
    ("contents", "where"),
    [
        ((TEXT, [use("1"), use("2")], [result("1")]), "/2/content"),
        ((TEXT, [use("1")], [result("1"), result("2")]), "/2/content"),
        ((TEXT, [use("1")], TEXT), "/2/content"),
        ((result("1"),), "/0/content"),
        ((TEXT, use("1")), ""),
    ],
)
def test_every_tool_use_is_followed_by_its_result(contents: tuple[Any, ...], where: str) -> None:
    rule = "mcp.sampling.results-match"
    keeps(rule, *START, sample(TEXT, [use("1"), TEXT], [result("1")], TEXT, TEXT))
    breaks(rule, ERROR, f"/params/messages{where}", *START, sample(*contents))
    passes_over(rule, *START, sample(TEXT, TEXT))


def test_samples_inside_a_result_are_looked_at_too() -> None:
    messages = [{"role": "user", "content": result("1")}]
    params = {"messages": messages, "maxTokens": 1}
    where = "/result/inputRequests/a~1b~0/params/messages/0/content"
    conversation = inside("sampling/createMessage", params, {"sampling": {}})
    breaks("mcp.sampling.results-match", ERROR, where, *conversation)


# -- roots -----------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["https://x.test/", "file:///a/../b", "file:///a/%2e%2E/b", "/a"])
def test_a_root_is_a_file_without_steps_upwards(uri: str) -> None:
    rule, start = "mcp.roots.uris-valid", opened(client={"roots": {}})
    asked = ask(1, "roots/list", by="server")
    fine = [{"uri": "file:///a"}, {"uri": "file:///a..b/..c"}]
    keeps(rule, *start, asked, answer(1, by="client", roots=fine))
    bad = answer(1, by="client", roots=[*fine, {"uri": uri}])
    breaks(rule, ERROR, "/result/roots/2/uri", *start, asked, bad)


def test_roots_that_answer_a_result_are_looked_at_too() -> None:
    rule = "mcp.roots.uris-valid"
    run = {"name": "a", "declared": {"roots": {}}}

    def named(uri: str) -> TraceEntry:
        answers = {"r": {"roots": [{"uri": uri}]}}
        return call(1, "tools/call", inputResponses=answers, **run)

    keeps(rule, named("file:///a"))
    breaks(rule, ERROR, "/params/inputResponses/r/roots/0/uri", named("a:b"))


def test_only_roots_are_looked_at() -> None:
    rule, bad = "mcp.roots.uris-valid", [{"uri": "a:b"}]
    start = opened(client={"roots": {}, "sampling": {}})
    lost = found(*start, answer(9, by="client", roots=bad))
    assert lost == [("mcp.id.echoed", ERROR, "/id")]
    ping = ask(1, "ping", by="server"), answer(1, by="client", roots=bad)
    assert rule not in [each for each, *_ in found(*start, *ping)]
    odd = call(1, "tools/call", name="a", inputResponses={"q": 1, "r": {"roots": bad}})
    where = "/params/inputResponses/r/roots/0/uri"
    assert (rule, ERROR, where) in found(odd)
