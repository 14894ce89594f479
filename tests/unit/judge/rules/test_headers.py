"""HTTP since 2026-07-28: one message per POST, and headers that repeat its body."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    TASKS,
    answer,
    batch,
    breaks,
    call,
    found,
    keeps,
    listed,
    opened,
    over,
    passes_over,
    refuse,
    tell,
    tool,
)
from trunkline.judge import TraceEntry

ERROR = "error"
LATEST = "2026-07-28"


def base64(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def post(entry: TraceEntry, **headers: str | None) -> TraceEntry:
    """Return a POST with the headers it needs; an underscore stands for a hyphen."""
    own: dict[str, str | None] = {
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": LATEST,
        "Mcp-Method": entry.message.get("method") if type(entry.message) is dict else None,
    }
    own |= {name.replace("_", "-"): value for name, value in headers.items()}
    given = {name: value for name, value in own.items() if value is not None}
    return over(1, entry, method="POST", headers=given)


LIST = call(1, "tools/list")


# -- the message -----------------------------------------------------------------------------


def test_a_post_holds_one_request_or_notification() -> None:
    rule = "mcp.http.single-message"
    keeps(rule, post(LIST))
    broken = [each for each in found(post(batch(LIST))) if each[0] == rule]
    assert broken == [(rule, ERROR, "/0")]
    passes_over(rule, LIST)
    passes_over(rule, over(1, LIST, method="PUT"))


def test_a_client_posts_no_replies() -> None:
    rule = "mcp.http.no-replies-posted"
    keeps(rule, post(LIST))
    reply = post(answer(9, by="client"), Mcp_Method=None)
    broken = [each for each in found(post(LIST), reply) if each[0] == rule]
    assert broken == [(rule, ERROR, "/id")]


@pytest.mark.parametrize(
    ("accept", "is_kept"),
    [
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0.5 , Application/JSON;q=1", True),
        ("*/*", True),
        ("application/*,text/*", True),
        ("application/json", False),
        ("text/event-stream", False),
        (None, False),
    ],
)
def test_a_client_takes_both_types(accept: str | None, is_kept: bool) -> None:
    rule = "mcp.http.accept-both-types"
    if is_kept:
        keeps(rule, post(LIST, Accept=accept))
    else:
        breaks(rule, ERROR, "", post(LIST, Accept=accept))
    passes_over(rule, over(1, LIST, method="POST"))


@pytest.mark.parametrize("value", ["a\rb", "a\x7f"])
def test_a_header_holds_no_control_characters(value: str) -> None:
    rule = "mcp.security.header-injection"
    keeps(rule, post(LIST, Other=value))
    breaks(rule, ERROR, "", post(LIST, mcp_other=value))
    bare = post(LIST, Mcp_Protocol_Version=None, Mcp_Method=None)
    assert rule not in [each for each, *_ in found(bare)]


# -- version, method and name ----------------------------------------------------------------


def test_every_post_says_its_version() -> None:
    rule = "mcp.headers.version-on-post"
    keeps(rule, post(LIST))
    breaks(rule, ERROR, "", post(LIST, Mcp_Protocol_Version=None))


def test_the_version_is_that_of_the_body() -> None:
    rule = "mcp.headers.version-as-body"
    keeps(rule, post(LIST))
    breaks(rule, ERROR, "", post(LIST, Mcp_Protocol_Version="2025-11-25"))


def test_the_method_is_that_of_the_body() -> None:
    rule = "mcp.headers.method"
    keeps(rule, post(LIST))
    breaks(rule, ERROR, "", post(LIST, Mcp_Method="Tools/list"))
    breaks(rule, ERROR, "", post(LIST, Mcp_Method=None))


@pytest.mark.parametrize(
    ("method", "params", "rule"),
    [
        ("tools/call", {"name": "a"}, "mcp.headers.name"),
        ("prompts/get", {"name": "a"}, "mcp.headers.name"),
        ("resources/read", {"uri": "a"}, "mcp.headers.name"),
        ("tasks/get", {"taskId": "a"}, "mcp.tasks.name-header"),
        ("tasks/update", {"taskId": "a", "inputResponses": {}}, "mcp.tasks.name-header"),
        ("tasks/cancel", {"taskId": "a"}, "mcp.tasks.name-header"),
    ],
)
def test_the_name_is_that_of_the_body(method: str, params: dict[str, Any], rule: str) -> None:
    also = ("mcp.type.format",) if method == "resources/read" else ()
    request = call(1, method, declared=TASKS, **params)
    keeps(rule, post(request, Mcp_Name="a"), also=also)
    keeps(rule, post(request, Mcp_Name=base64("a")), also=also)
    breaks(rule, ERROR, "", post(request, Mcp_Name="A"), also=also)
    breaks(rule, ERROR, "", post(request), also=also)
    passes_over(rule, post(LIST))


@pytest.mark.parametrize("name", ["ä", " a"])
def test_a_name_that_a_header_cannot_carry_is_encoded(name: str) -> None:
    rule, request = "mcp.headers.encoded", call(1, "tools/call", name=name)
    keeps(rule, post(request, Mcp_Name=base64(name)))
    breaks(rule, ERROR, "", post(request, Mcp_Name=name))
    passes_over(rule, post(call(1, "tools/call", name="a"), Mcp_Name="a"))


def test_a_name_that_looks_encoded_is_encoded() -> None:
    name = base64("a")
    request = call(1, "tools/call", name=name)
    keeps("mcp.headers.encoded", post(request, Mcp_Name=base64(name)))
    also = ("mcp.headers.name",)
    breaks("mcp.headers.encoded", ERROR, "", post(request, Mcp_Name=name), also=also)


def refused(entries: list[TraceEntry]) -> list[str]:
    """Return which refusals are missing where the server answers as if all were well."""
    reply = over(1, refuse(entries[-1].message["id"], -32603), status=400)
    return [rule for rule, *_ in found(*entries, reply) if rule.endswith("-refused")]


@pytest.mark.parametrize("name", ["name", "uri"])
def test_a_name_that_is_missing_or_differs_has_to_be_refused(name: str) -> None:
    request = call(1, "tools/call" if name == "name" else "resources/read", **{name: "a:b"})
    assert refused([post(request, Mcp_Name="a:b")]) == []
    assert refused([post(request, Mcp_Name="a:c")]) == ["mcp.headers.mismatch-refused"]
    assert refused([post(request)]) == ["mcp.headers.missing-refused"]


# -- arguments -------------------------------------------------------------------------------

PROPERTIES = {"where": {"type": "string", "x-mcp-header": "Region"}, "other": {}}
KNOWN = [LIST, listed(1, tool("a", inputSchema={"type": "object", "properties": PROPERTIES}))]


def run(*, header: str | None = None, name: str = "a", **arguments: Any) -> TraceEntry:
    request = call(2, "tools/call", name=name, arguments=arguments)
    return post(request, Mcp_Name=name, mcp_param_region=header)


@pytest.mark.parametrize(
    ("value", "text"), [("x", "x"), (True, "true"), (False, "false"), (1, "1"), (42, "42.0")]
)
def test_an_argument_is_repeated_where_the_listing_says_so(value: object, text: str) -> None:
    rule = "mcp.headers.params-mirrored"
    keeps(rule, *KNOWN, run(where=value, header=text))
    keeps(rule, *KNOWN, run(where=value, header=base64(text)))
    breaks(rule, ERROR, "", *KNOWN, run(where=value, header=text + "x"))
    breaks(rule, ERROR, "", *KNOWN, run(where=value))


def test_an_argument_inside_another_is_repeated_too() -> None:
    rule = "mcp.headers.params-mirrored"
    inner = {"properties": {"a/b": {"type": "integer", "x-mcp-header": "Deep"}}}
    schema = {"type": "object", "properties": {"inner": inner}}
    known = [LIST, listed(1, tool("a", inputSchema=schema))]
    request = call(2, "tools/call", name="a", arguments={"inner": {"a/b": 1}})
    keeps(rule, *known, post(request, Mcp_Name="a", mcp_param_deep="1"))
    breaks(rule, ERROR, "", *known, post(request, Mcp_Name="a", mcp_param_deep="2"))
    omitted, where = "mcp.headers.params-omitted", "/params/arguments/inner/a~1b"
    absent = call(2, "tools/call", name="a", arguments={"inner": {}})
    breaks(omitted, ERROR, where, *known, post(absent, Mcp_Name="a", mcp_param_deep="2"))


def test_an_argument_without_a_header_form_is_passed_over() -> None:
    passes_over("mcp.headers.params-mirrored", *KNOWN, run(where=1.5))
    passes_over("mcp.headers.params-mirrored", *KNOWN, run(where=["x"]))


def test_an_argument_that_is_missing_or_differs_has_to_be_refused() -> None:
    assert refused([*KNOWN, run(where="x", header="x")]) == []
    mismatch, missing = "mcp.headers.params-mismatch-refused", "mcp.headers.params-missing-refused"
    assert refused([*KNOWN, run(where="x", header="y")]) == [mismatch]
    assert refused([*KNOWN, run(where="x")]) == [missing]


def test_an_integer_that_a_header_repeats_is_safe() -> None:
    rule, where = "mcp.headers.params-safe-integers", "/params/arguments/where"
    keeps(rule, *KNOWN, run(where=2**53 - 1, header="9007199254740991"))
    breaks(rule, ERROR, where, *KNOWN, run(where=2**53, header="9007199254740992"))
    breaks(rule, ERROR, where, *KNOWN, run(where=-(2**53)))
    passes_over(rule, *KNOWN, run(where="x", header="x"))


def test_a_tool_with_a_faulty_annotation_is_not_called() -> None:
    rule = "mcp.headers.bad-annotation-excluded"
    properties = {"where": {"type": "number", "x-mcp-header": "Region"}}
    schema = {"type": "object", "properties": properties}
    faulty = [LIST, listed(1, tool("a", inputSchema=schema))]
    keeps(rule, *KNOWN, run(where="x", header="x"))
    breaks(rule, ERROR, "/params/name", *faulty, run(where=1.5, header="1.5"))
    passes_over(rule, *KNOWN, run(where="x", name="b"))
    # Other transports have no headers.
    passes_over(rule, *faulty, call(2, "tools/call", name="a", arguments={"where": 1.5}))


def test_an_argument_of_another_tool_or_without_a_header_is_not_repeated() -> None:
    rule = "mcp.headers.params-mirrored"
    passes_over(rule, *KNOWN, run(other="x"))
    passes_over(rule, *KNOWN, run(where="x", name="b"))


def test_an_argument_that_a_header_cannot_carry_is_encoded() -> None:
    rule = "mcp.headers.encoded"
    keeps(rule, *KNOWN, run(where="ä", header=base64("ä")))
    breaks(rule, ERROR, "", *KNOWN, run(where="ä", header="ä"))


@pytest.mark.parametrize("arguments", [{}, {"where": None}])
def test_an_argument_that_is_not_there_is_not_repeated(arguments: dict[str, Any]) -> None:
    rule, where = "mcp.headers.params-omitted", "/params/arguments/where"
    keeps(rule, *KNOWN, run(**arguments))
    breaks(rule, ERROR, where, *KNOWN, run(header="x", **arguments))
    passes_over(rule, *KNOWN, run(where="x", header="x"))


def test_each_argument_is_looked_at() -> None:
    text = {"type": "string"}
    properties = {"a": {**text, "x-mcp-header": "A"}, "b": {**text, "x-mcp-header": "B"}}
    schema = {"type": "object", "properties": properties}
    known = [LIST, listed(1, tool("a", inputSchema=schema))]
    request = post(call(2, "tools/call", name="a", arguments={"b": "x"}), Mcp_Name="a")
    breaks("mcp.headers.params-mirrored", ERROR, "", *known, request)


def test_a_notification_has_no_refusal_to_wait_for() -> None:
    note = tell("notifications/cancelled", by="client", requestId=1)
    broken = found(post(LIST), post(note, Mcp_Protocol_Version=None, Mcp_Method=None))
    assert broken == [("mcp.headers.version-on-post", ERROR, "")]


def test_the_revisions_before_have_no_such_headers() -> None:
    passes_over("mcp.http.single-message", *[over(1, each) for each in opened()])
