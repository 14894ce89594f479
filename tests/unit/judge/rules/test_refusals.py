"""What has to be refused is refused, with the right code and status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.judge.rules.recording import (
    META,
    PREFIX,
    ask,
    breaks,
    call,
    complete,
    found,
    keeps,
    listed,
    over,
    passes_over,
    refuse,
)
from trunkline.judge import TraceEntry

ERROR = "error"
LIST = call(1, "tools/list")


def over_http(request: TraceEntry, reply: TraceEntry, status: int | None) -> list[TraceEntry]:
    return [over(1, request), over(1, reply, status=status)]


# -- statuses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code", "data", "status"),
    [
        (
            "mcp.http.unsupported-version-400",
            -32022,
            {"supported": ["2099-01-01"], "requested": "2026-07-28"},
            400,
        ),
        ("mcp.http.missing-capability-400", -32021, {"requiredCapabilities": {}}, 400),
        ("mcp.http.unknown-method-404", -32601, {}, 404),
    ],
)
def test_an_error_has_the_status_of_its_code(
    rule: str, code: int, data: dict[str, Any], status: int
) -> None:
    reply = refuse(1, code, **data)
    keeps(rule, *over_http(LIST, reply, status))
    breaks(rule, ERROR, "", *over_http(LIST, reply, 200))
    passes_over(rule, LIST, reply)
    passes_over(rule, *over_http(LIST, refuse(1, -32602), 200))


def test_the_status_of_a_stream_holds_for_all_its_messages() -> None:
    start = [over(1, LIST), over(1, by="server", status=200)]
    breaks("mcp.http.unknown-method-404", ERROR, "", *start, over(1, refuse(1, -32601)))


def test_a_reply_to_nothing_refuses_nothing() -> None:
    assert found(LIST, refuse(9, -32601)) == [("mcp.id.echoed", ERROR, "/id")]


# -- incomplete requests ---------------------------------------------------------------------


def bare(missing: str) -> TraceEntry:
    meta = {name: value for name, value in META.items() if name != PREFIX + missing}
    return ask(1, "tools/list", _meta=meta)


LATEST = "2026-07-28"


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
def test_a_request_whose_meta_is_incomplete_is_refused(missing: str) -> None:
    rule = "mcp.meta.incomplete-refused"
    short = "version" if missing == "protocolVersion" else "capabilities"
    also = (f"mcp.meta.{short}-present",)
    request = bare(missing)
    keeps(rule, request, refuse(1, -32602), also=also, revision=LATEST)
    breaks(rule, ERROR, "/error/code", request, listed(1), also=also, revision=LATEST)
    breaks(rule, ERROR, "/error/code", request, refuse(1, -32020), also=also, revision=LATEST)
    passes_over(rule, LIST, refuse(1, -32603))


def test_over_http_the_check_of_headers_may_come_first() -> None:
    rule = "mcp.meta.incomplete-refused"
    also = ("mcp.meta.capabilities-present",)
    keeps(rule, *over_http(bare("clientCapabilities"), refuse(1, -32020), 400), also=also)


def test_a_request_whose_meta_is_incomplete_gets_status_400() -> None:
    rule = "mcp.http.incomplete-meta-400"
    also = ("mcp.meta.capabilities-present",)
    request = bare("clientCapabilities")
    keeps(rule, *over_http(request, refuse(1, -32602), 400), also=also)
    breaks(rule, ERROR, "", *over_http(request, refuse(1, -32602), 200), also=also)


# -- versions --------------------------------------------------------------------------------


def test_a_version_that_the_server_does_not_have_is_refused() -> None:
    rule = "mcp.version.unsupported-refused"

    def start(version: str) -> list[TraceEntry]:
        facts = {"supportedVersions": [version], "capabilities": {}, "ttlMs": 0}
        return [
            call(0, "server/discover"),
            complete(0, **facts, cacheScope="public"),
            LIST,
        ]

    data = {"supported": ["2099-01-01"], "requested": LATEST}
    keeps(rule, *start("2099-01-01"), refuse(1, -32022, **data))
    breaks(rule, ERROR, "/error/code", *start("2099-01-01"), listed(1))
    passes_over(rule, *start(LATEST), listed(1))
    passes_over(rule, LIST, listed(1))


# -- headers ---------------------------------------------------------------------------------

HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Mcp-Protocol-Version": LATEST,
    "Mcp-Method": "tools/list",
}
FAULTS = [
    ("mcp.headers.missing-refused", {"Mcp-Method": None}, "mcp.headers.method"),
    ("mcp.headers.missing-refused", {"Mcp-Protocol-Version": None}, "mcp.headers.version-on-post"),
    ("mcp.headers.mismatch-refused", {"Mcp-Method": "x"}, "mcp.headers.method"),
    (
        "mcp.headers.version-mismatch-refused",
        {"Mcp-Protocol-Version": "2025-11-25"},
        "mcp.headers.version-as-body",
    ),
]


def posted(changes: dict[str, Any]) -> TraceEntry:
    given = {name: value for name, value in {**HEADERS, **changes}.items() if value is not None}
    return over(1, LIST, method="POST", headers=given)


@pytest.mark.parametrize(("rule", "changes", "fault"), FAULTS)
def test_headers_that_differ_from_the_body_are_refused(
    rule: str, changes: dict[str, Any], fault: str
) -> None:
    request, reply = posted(changes), refuse(1, -32020)
    keeps(rule, request, over(1, reply, status=400), also=(fault,))
    keeps(rule, request, over(1, reply), also=(fault,))
    breaks(rule, ERROR, "/error/code", request, over(1, reply, status=200), also=(fault,))
    other = over(1, refuse(1, -32602), status=400)
    breaks(rule, ERROR, "/error/code", request, other, also=(fault,))
    passes_over(rule, posted({}), over(1, refuse(1, -32602), status=400))


def test_the_first_fault_of_the_headers_counts() -> None:
    request = posted({"Mcp-Protocol-Version": "2025-11-25", "Mcp-Method": "x"})
    also = ("mcp.headers.version-as-body", "mcp.headers.method")
    reply = over(1, refuse(1, -32602), status=400)
    rule = "mcp.headers.version-mismatch-refused"
    breaks(rule, ERROR, "/error/code", request, reply, also=also)


@pytest.mark.parametrize(("rule", "changes", "fault"), FAULTS[2:])
def test_headers_that_differ_from_the_body_get_no_result(
    rule: str, changes: dict[str, Any], fault: str
) -> None:
    validated = "mcp.security.headers-validated"
    keeps(validated, posted(changes), over(1, refuse(1, -32020), status=400), also=(fault,))
    reply = over(1, listed(1), status=200)
    breaks(validated, ERROR, "/result", posted(changes), reply, also=(fault, rule))


def test_headers_that_are_missing_cannot_differ() -> None:
    rules = [rule for rule, *_ in found(posted({"Mcp-Method": None}), over(1, listed(1)))]
    assert rules == ["mcp.headers.method", "mcp.headers.missing-refused"]
