"""Tasks on the wire: each revision gets its own names, and what belongs to them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, Raw, ValidationError, to_builtins
from msgspec.json import decode, encode

from tests.rigs.messages import PER_REQUEST
from tests.unit.server.task_talk import CORE, RELATED
from tests.unit.server.tasks.tool_record import record
from trunkline import Server
from trunkline.engine.tasks.progress import ProgressReport
from trunkline.jsonrpc.messages import ErrorObject
from trunkline.judge import judge_type
from trunkline.mcp import CallToolResult, ProgressNotificationParams, TextContent
from trunkline.server.tasks import wire as forms
from trunkline.spec.revisions import REVISIONS

APP = Server("test", version="1")
QUESTION = Raw(b'{"method":"roots/list"}')


def wire_json(value: Any) -> Any:
    """Return the value as it is decoded from the wire."""
    return decode(encode(value))


def test_a_revision_has_tasks_in_its_core_or_as_an_extension_or_not() -> None:
    assert {each: forms.task_form(each) for each in REVISIONS} == {
        "2024-11-05": None,
        "2025-03-26": None,
        "2025-06-18": None,
        CORE: "core",
        PER_REQUEST: "extension",
    }


@pytest.mark.parametrize("revision", [CORE, PER_REQUEST])
@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"ttl": None},
        {"status": "input_required", "questions": {"a": QUESTION}},
        {"status": "completed", "result": Raw(b'{"content":[]}')},
        {"status": "failed", "error": Raw(b'{"code":-32603,"message":"no"}')},
        {"status": "cancelled", "status_message": "The task was cancelled."},
    ],
)
def test_task_messages_conform_to_the_schema_of_the_revision(revision: str, facts: Any) -> None:
    rev, made = APP._core.revision(revision), record(**facts)
    sent = {
        "GetTaskResult": forms.get_task_result(made, rev),
        "TaskStatusNotificationParams": forms.status_params(made, rev),
        "CancelTaskResult": forms.cancel_task_result(made, rev),
        "CreateTaskResult": forms.create_task_result(record(), rev),
    }
    if revision == CORE:
        sent["ListTasksResult"] = forms.list_tasks_result([made, record()], "next", rev)
    for name, value in sent.items():
        found = judge_type(wire_json(value), name, revision)
        # The question asks for roots.
        assert {each.rule for each in found} <= {"mcp.method.deprecated"}, name


def test_the_names_of_one_form_are_not_in_the_other() -> None:
    made = record()
    core = wire_json(forms.get_task_result(made, APP._core.revision(CORE)))
    extension = wire_json(forms.get_task_result(made, APP._core.revision(PER_REQUEST)))
    assert (core["ttl"], core["pollInterval"]) == (60_000, 1000)
    assert (extension["ttlMs"], extension["pollIntervalMs"]) == (60_000, 1000)
    assert {"ttlMs", "pollIntervalMs", "resultType", "_meta"}.isdisjoint(core)
    assert {"ttl", "pollInterval"}.isdisjoint(extension)


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [
        (b"{}", None),
        (b'{"ttl":1500}', 1.5),
        (b'{"ttl":1500.0}', 1.5),
        (b'{"ttl":1.5e3}', 1.5),
        (b'{"ttl":1' + b"0" * 400 + b"}", 10**9),
        (b'{"ttl":1e300}', 10**9),
    ],
)
def test_ttl_is_read_in_milliseconds(raw: bytes, seconds: float | None) -> None:
    assert forms.read_ttl(Raw(raw)) == seconds


@pytest.mark.parametrize("raw", [b"null", b"7", b'{"ttl":0}', b'{"ttl":1.5}', b'{"ttl":"x"}'])
def test_invalid_ttl_is_refused(raw: bytes) -> None:
    with pytest.raises(ValidationError):
        forms.read_ttl(Raw(raw))


def test_error_result_fails_a_core_task_and_completes_an_extension_task() -> None:
    rev = APP._core.revision(PER_REQUEST)
    fine = CallToolResult([TextContent("x")])
    broken = CallToolResult([TextContent("x")], is_error=True)
    error = ErrorObject(-32603, "no" * 1000)
    for form in ("core", "extension"):
        assert forms.outcome_of(fine, form, rev).status == "completed"
        failed = forms.outcome_of(error, form, rev)
        assert failed.status == "failed"
        assert failed.result is UNSET
        assert len(failed.message) == 200
    assert forms.outcome_of(broken, "core", rev).status == "failed"
    assert forms.outcome_of(broken, "core", rev).result is not UNSET
    assert forms.outcome_of(broken, "extension", rev).status == "completed"


def test_an_outcome_that_cannot_be_written_is_a_failure() -> None:
    rev = APP._core.revision(PER_REQUEST)
    broken = CallToolResult([TextContent("\ud800")])
    outcome = forms.outcome_of(broken, "extension", rev)
    assert (outcome.status, outcome.message) == ("failed", "The result cannot be encoded as JSON.")


def test_a_payload_names_its_task_where_the_revision_has_that() -> None:
    made = record(status="completed", result=Raw(b'{"content":[],"_meta":{"com.example/a":1}}'))
    core = forms.task_payload(made, APP._core.revision(CORE))
    assert core["_meta"] == {"com.example/a": 1, RELATED: {"taskId": made.id}}
    assert "_meta" in forms.task_payload(made, APP._core.revision(PER_REQUEST))
    assert RELATED not in forms.task_payload(made, APP._core.revision(PER_REQUEST))["_meta"]


def test_a_message_of_a_task_keeps_its_own_meta() -> None:
    params = ProgressNotificationParams(1, "t", meta={"com.example/a": 1})
    named = forms.with_related_task(params, "id", APP._core.revision(CORE))
    assert to_builtins(named)["_meta"] == {"com.example/a": 1, RELATED: {"taskId": "id"}}
    assert forms.with_related_task(params, "id", APP._core.revision(PER_REQUEST)) is params


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ((3, 5, "step 3"), "step 3 (3 of 5)"),
        ((3, 5, None), "3 of 5"),
        ((3, None, "step 3"), "step 3 (3)"),
        ((3, None, None), "3"),
        ((3, None, ""), "3"),
        ((3.0, 5.0, None), "3 of 5"),
        ((0.25, 1, None), "0.25 of 1"),
        ((1 / 3, 1.5, None), "0.333 of 1.5"),
        ((100, 1000, None), "100 of 1000"),
        ((1e300, None, None), "1e+300"),
        ((10**5000, float("inf"), None), "? of inf"),
        ((1, 2, "a\ud800b"), "a?b (1 of 2)"),
        ((1, None, "x" * 1000), "x" * 199 + "… (1)"),
    ],
)
def test_progress_is_shown_as_a_status_message(report: Any, text: str) -> None:
    assert forms.progress_message(ProgressReport(*report)) == text
