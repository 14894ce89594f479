"""The rows of HTTP statuses agree with each other, with the error codes, and with both eras.

Every refusal in the source names a row: no literal status is sent.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.cases import for_each
from trunkline.spec import lookup
from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.http_conditions import HTTP, HTTP_STATUSES
from trunkline.spec.mcp.http_status import HTTP_STATUSES as MCP_STATUSES
from trunkline.spec.mcp.http_status import MCP
from trunkline.spec.mcp.requirements import REQUIREMENTS
from trunkline.spec.revisions import (
    LATEST,
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    UnknownRevision,
)
from trunkline.spec.rows import HttpStatus

HANDSHAKE: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)

ROWS: Final = (*HTTP_STATUSES, *MCP_STATUSES)


def taken_by(row: HttpStatus, revision: str) -> bool:
    """Return True if a row of MCP takes the place of a row of HTTP in a revision."""
    return row in HTTP_STATUSES and any(
        each.condition == row.condition and each.when.holds(revision) for each in MCP_STATUSES
    )


each_row = for_each(
    "row",
    [pytest.param(row, id=f"{row.condition} {row.when.since} {row.level}") for row in ROWS],
)
each_revision = pytest.mark.parametrize("revision", REVISIONS)


# The rows


@each_row
def test_a_row_is_what_its_lookup_finds_in_each_revision_of_its_window(row: HttpStatus) -> None:
    assert any(row.when.holds(revision) for revision in REVISIONS)
    for revision in REVISIONS:
        holds = row.when.holds(revision) and not taken_by(row, revision)
        assert (lookup.http_condition(row.condition, revision) is row) == holds
        assert (row in lookup.http_statuses(revision)) == holds
        assert (row in lookup.specification(revision).http_statuses) == holds


@each_revision
def test_one_row_of_a_condition_and_of_a_kind_holds_at_a_time(revision: str) -> None:
    rows = lookup.http_statuses(revision)
    names = Counter([row.condition for row in rows] + [kind for row in rows for kind in row.kinds])
    assert [name for name, count in names.items() if count > 1] == []


def test_the_windows_of_a_condition_stand_below_each_other_and_meet() -> None:
    for earlier, later in pairwise(MCP_STATUSES):
        if earlier.condition == later.condition:
            assert earlier.when.until == later.when.since
    names = [row.condition for row in MCP_STATUSES]
    groups = [name for name, following in pairwise([*names, ""]) if name != following]
    assert len(groups) == len(set(groups))


@each_row
def test_a_row_says_in_a_sentence_what_it_is(row: HttpStatus) -> None:
    assert re.fullmatch(r"[A-Z]\S*.*[^.]\.", row.doc)
    assert ". " not in row.doc
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", row.condition)


@each_row
def test_a_row_says_where_it_comes_from(row: HttpStatus) -> None:
    if row.level == "own":
        assert re.fullmatch(r"RFC \d{4} · section-[0-9.]+", row.anchor)
        return
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d) · [a-z_/+-]+(#[a-z0-9_-]+)?", row.anchor)
    assert found
    assert found[1] == [each for each in REVISIONS if row.when.holds(each)][-1]


@each_row
def test_a_status_is_one_that_http_defines(row: HttpStatus) -> None:
    assert row.status in {each.value for each in HTTPStatus}
    assert row.status < 300 or row.status >= 400


# The error codes


@each_row
def test_the_kinds_of_a_row_are_known_and_errors(row: HttpStatus) -> None:
    assert all(kind in set(ErrorKind) for kind in row.kinds)
    assert not row.kinds or row.status >= 400


@each_revision
def test_kinds_and_error_codes_name_the_same_status(revision: str) -> None:
    sent = {row.symbol: row.http for row in lookup.errors(revision) if row.sent}
    own = {kind: row.status for row in lookup.http_statuses(revision) for kind in row.kinds}
    assert {kind: http for kind, http in sent.items() if http is not None} == own
    for kind in ErrorKind:
        assert lookup.http_status(kind, revision) == own.get(kind, 200)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (ErrorKind.PARSE_ERROR, 400),
        (ErrorKind.INVALID_REQUEST, 400),
        (ErrorKind.MESSAGE_TOO_LARGE, 413),
        (ErrorKind.OVERLOADED, 503),
        (ErrorKind.SERVICE_UNAVAILABLE, 503),
        (ErrorKind.RATE_LIMITED, 429),
        (ErrorKind.UNAUTHORIZED, 401),
        (ErrorKind.ORIGIN_NOT_ALLOWED, 403),
        (ErrorKind.HEADER_MISMATCH, 400),
        (ErrorKind.INVALID_PARAMS, 200),
        (ErrorKind.INTERNAL_ERROR, 200),
        (ErrorKind.TOOL_NOT_FOUND, 200),
        (ErrorKind.RESOURCE_NOT_FOUND, 200),
        ("INVENTED", 200),
    ],
)
def test_a_status_that_is_the_same_in_every_revision(kind: str, status: int) -> None:
    assert {lookup.http_status(kind, revision) for revision in REVISIONS} == {status}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (ErrorKind.METHOD_NOT_FOUND, 404),
        (ErrorKind.CAPABILITY_NOT_SUPPORTED, 404),
        (ErrorKind.MISSING_REQUEST_META, 400),
        (ErrorKind.UNSUPPORTED_PROTOCOL_VERSION, 400),
        (ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY, 400),
    ],
)
def test_an_error_in_a_session_is_an_ordinary_answer(kind: str, status: int) -> None:
    assert {lookup.http_status(kind, revision) for revision in HANDSHAKE} == {200}
    assert lookup.http_status(kind, V2026_07_28) == status
    assert lookup.http_status(kind) == status


def test_sessions_and_lifecycle_have_a_status_before_2026_07_28() -> None:
    for kind, status in (("SESSION_NOT_FOUND", 404), ("NOT_INITIALIZED", 400)):
        assert {lookup.http_status(kind, revision) for revision in HANDSHAKE} == {status}
        assert lookup.http_status(kind, V2026_07_28) == 200


# Conditions


@pytest.mark.parametrize(
    ("condition", "status", "revisions"),
    [
        ("session-required", 400, HANDSHAKE[1:]),
        ("session-unknown", 404, HANDSHAKE),
        ("version-header-unsupported", 400, HANDSHAKE[2:]),
        ("get-not-offered", 405, REVISIONS[1:]),
        ("event-id-unknown", 400, HANDSHAKE[1:]),
        ("accepted", 202, REVISIONS),
        ("wrong-accept", 406, REVISIONS),
        ("wrong-content-type", 415, REVISIONS),
        ("host-not-allowed", 421, REVISIONS),
        ("headers-too-large", 431, REVISIONS),
        ("request-timeout", 408, REVISIONS),
    ],
)
def test_a_condition_has_a_status_where_it_can_occur(
    condition: str, status: int, revisions: tuple[str, ...]
) -> None:
    found = {each: lookup.http_condition(condition, each) for each in REVISIONS}
    assert {each: row.status for each, row in found.items() if row} == dict.fromkeys(
        revisions, status
    )


def test_requirements_that_name_a_status_agree_with_the_rows() -> None:
    # By the status in the id of a requirement, and the condition that it is about.
    about = {
        "mcp.http.incomplete-meta-400": "incomplete-meta",
        "mcp.http.unsupported-version-400": "version-unsupported",
        "mcp.http.missing-capability-400": "capability-missing",
        "mcp.http.accepted-202": "accepted",
        "mcp.http.notification-202": "accepted",
        "mcp.http.get-stream-or-405": "get-not-offered",
        "mcp.http.get-delete-405": "get-not-offered",
        "mcp.session.ended-404": "session-unknown",
        "mcp.session.missing-400": "session-required",
        "mcp.session.delete-405": "delete-not-offered",
        "mcp.headers.version-invalid-400": "version-header-unsupported",
        "mcp.http.unknown-method-404": "method-unknown",
        "mcp.http.origin-403": "origin-not-allowed",
        "mcp.auth.bad-token-401": "authentication-required",
    }
    rows = {row.id: row for row in REQUIREMENTS if re.search(r"-[245]\d\d$", row.id)}
    assert set(rows) == set(about)
    for id_, condition in about.items():
        for revision in REVISIONS:
            if rows[id_].when.holds(revision):
                found = lookup.http_condition(condition, revision)
                assert found is not None
                assert (found.status, found.level) == (int(id_[-3:]), rows[id_].level)


def test_a_revision_that_was_never_released_is_refused() -> None:
    for find in (lookup.http_status, lookup.http_condition):
        with pytest.raises(UnknownRevision):
            find("PARSE_ERROR", "2020-01-01")
    with pytest.raises(UnknownRevision):
        lookup.http_statuses("2020-01-01")
    assert lookup.http_condition("invented", LATEST) is None


def test_a_condition_has_one_status_in_every_revision_and_table() -> None:
    found = {(row.condition, row.status) for row in ROWS}
    assert len(found) == len({condition for condition, _ in found}) == len(HTTP | MCP)


# The source

SOURCE: Final = Path(__file__).resolve().parents[2] / "src" / "trunkline"
# What answers HTTP requests. The authorization server of tests answers as OAuth has it.
ANSWERING: Final = (
    *("transports/http", "transports/websocket", "auth/server", "server", "cli/proxy"),
)
SENT: Final = [
    path
    for folder in ANSWERING
    for path in sorted((SOURCE / folder).rglob("*.py"))
    if "client" not in path.relative_to(SOURCE).parts and path.name != "client.py"
]
TABLES: Final = {"HTTP": HTTP, "MCP": MCP}
# What decides by the status of a response that another server has sent.
READERS: Final = ("auth/server/verifiers/introspection.py", "auth/server/verifiers/issuer.py")


def is_error_status(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and 400 <= node.value < 600


def literals(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the places that send, set or compare a status by its number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            is_sent = name in ("Refusal", "respond", "_refusal", "refuse") and node.args
            values = [*node.args[:1]] if is_sent else []
            values += [each.value for each in node.keywords if "status" in (each.arg or "")]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            is_status = any("status" in ast.unparse(each).lower() for each in targets)
            values = list(ast.walk(node.value)) if is_status and node.value is not None else []
        elif isinstance(node, ast.Compare) and "status" in ast.unparse(node.left):
            values = list(ast.walk(node))
        elif isinstance(node, ast.FunctionDef):
            values = [each for each in [*node.args.defaults, *node.args.kw_defaults] if each]
        else:
            continue
        if any(is_error_status(part) for each in values for part in ast.walk(each)):
            yield node


@for_each("path", SENT, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_refusal_has_a_literal_status(path: Path) -> None:
    if str(path.relative_to(SOURCE)) not in READERS:
        found = [ast.unparse(each)[:200] for each in literals(ast.parse(path.read_text()))]
        assert found == [], "name a condition: Refusal(HTTP[...], ...) or HTTP[...].status"


def test_a_refusal_names_a_condition_of_its_table() -> None:
    named = set()
    for path in SENT:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                table = TABLES.get(node.value.id)
                for each in ast.walk(node.slice) if table is not None else ():
                    if isinstance(each, ast.Constant):
                        assert table is not None
                        assert each.value in table, f"{path}: {each.value}"
                        named.add(each.value)
    # The others are the statuses of JSON-RPC errors, by their kind, and of plain answers.
    by_kind = {row.condition for row in ROWS if row.kinds}
    assert set(HTTP | MCP) - named - by_kind == {"answered"}


@pytest.mark.parametrize(
    "text",
    [
        'Refusal(404, "no")',
        "responder.respond(200 if ready else 503, b'')",
        "exchange.status = 413",
        "if status in (429, 503): pass",
        "raise Refused('no', status=400)",
        "def refuse(self, status: int = 403): pass",
    ],
)
def test_literal_statuses_are_found(text: str) -> None:
    assert list(literals(ast.parse(text)))
