"""Tasks: those of 2025-11-25, which either side may run, and those of the later extension."""

from __future__ import annotations

from typing import Any, Final

from ...spec.mcp.tasks_extension import EXTENSION
from .checker import Checker
from .messages import other
from .state import (
    Members,
    ObservedCall,
    ObservedMessage,
    ObservedTask,
    State,
    declares,
    fingerprint,
    key_of,
    object_at,
)

__all__ = ["check_tasks", "remember_task"]

_FINAL: Final = ("completed", "failed", "cancelled")
_OPEN: Final = ("working", "input_required")
_DECLARED: Final = f"extensions.{EXTENSION}"


def check_tasks(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check requests about tasks and the replies to them."""
    in_core = checker.requires("mcp.tasks.starts-working")
    if not in_core and not checker.requires("mcp.tasks.get-complete"):
        return
    if seen.kind == "request":
        _check_request(seen, state, in_core)
    elif seen.kind == "reply" and seen.call is not None:
        watch = _check_core if in_core else _check_extension
        watch(seen, seen.call, state, checker)


def _check_request(seen: ObservedMessage, state: State, in_core: bool) -> None:
    # The receiver has to refuse these.
    call = seen.call
    assert call is not None
    if in_core:
        holder = other(seen.sender) or ""
        task = state.tasks.get((holder, str(call.task_id)))
        if seen.method == "tasks/cancel" and task is not None and task.status in _FINAL:
            call.refusals_due.append((f"mcp.tasks.cancel-final-{holder}", -32602))
    elif seen.method == "tasks/result":
        call.refusals_due.append(("mcp.tasks.result-removed", -32601))
    elif _is_about_tasks(call) and not declares(call.declared, _DECLARED):
        call.refusals_due.append(("mcp.tasks.undeclared-refused", -32021))


def _is_about_tasks(call: ObservedCall) -> bool:
    return call.method.startswith("tasks/") or "taskIds" in call.filter


# -- in the core -----------------------------------------------------------------------------


def _check_core(seen: ObservedMessage, call: ObservedCall, state: State, checker: Checker) -> None:
    result = seen.result
    if result is None:
        return
    if call.wants_task and type(result.get("task")) is dict:
        status = result["task"].get("status")
        where = "/result/task/status"
        checker.check("mcp.tasks.starts-working", status == "working", where, status)
    if call.method != "tasks/get":
        return
    task = state.tasks.get((seen.sender or "", str(call.task_id)))
    status = result.get("status")
    if task is not None and task.status in _FINAL:
        kept = status == task.status
        checker.check("mcp.tasks.final-stays", kept, "/result/status", status, task.status)
    if task is not None and task.fetched:
        checker.check("mcp.tasks.result-blocks", status not in _OPEN, "/result/status", status)


# -- in the extension ------------------------------------------------------------------------


def _check_extension(
    seen: ObservedMessage, call: ObservedCall, state: State, checker: Checker
) -> None:
    result = seen.result
    if result is not None and result.get("resultType") == "task":
        kept = declares(call.declared, _DECLARED)
        checker.check("mcp.tasks.declared-only", kept, "/result/resultType", "task")
    if call.method in ("tasks/update", "tasks/cancel") and result is not None:
        bare = not {"taskId", "status", "task"} & set(result)
        kept = result.get("resultType") == "complete" and bare
        checker.check("mcp.tasks.ack-only", kept, "/result", result)
    if call.method == "tasks/get":
        task = state.tasks.get(("server", str(call.task_id)))
        if task is not None and _is_alive(task, seen.entry.at):
            checker.check("mcp.tasks.durable", seen.code != -32602, "/error/code", seen.code)
        if result is not None:
            _check_report(result, task, checker)


def _is_alive(task: ObservedTask, now: float | None) -> bool:
    if task.ttl is None:
        return True
    if task.created is None or now is None or type(task.ttl) not in (int, float):
        return False
    return now < task.created + task.ttl / 1000  # type: ignore[operator]  # a number, see above


def _check_report(result: Members, task: ObservedTask | None, checker: Checker) -> None:
    kind, status = result.get("resultType"), result.get("status")
    checker.check("mcp.tasks.get-complete", kind == "complete", "/result/resultType", kind)
    if status in ("failed", "completed"):
        has_error = type(result.get("error")) is dict
        kept = has_error if status == "failed" else not has_error
        checker.check("mcp.tasks.failed-has-error", kept, "/result/status", status)
    if task is None:
        return
    if task.end is not None:
        kept = _end_of(result) == task.end
        checker.check("mcp.tasks.end-stays", kept, "/result/status", status)
    for key, question in object_at(result, "inputRequests").items():
        known = task.input_requests.get(key)
        kept = known is None or known == fingerprint(question)
        checker.check("mcp.tasks.keys-not-reused", kept, f"/result/inputRequests/{key}", question)


def _end_of(result: Members) -> int:
    return fingerprint(result.get("status"), result.get("result"), result.get("error"))


# -- memory ----------------------------------------------------------------------------------


def remember_task(seen: ObservedMessage, state: State) -> None:
    """Update a task from a reply or a notification."""
    if seen.kind == "notification" and seen.method.startswith("notifications/tasks"):
        _note(seen, seen.params, seen.params.get("taskId"), state)
        return
    result, call = seen.result, seen.call
    if result is None or call is None:
        return
    created = result.get("task") if call.wants_task else None
    if type(created) is dict:
        _create(seen, call, created, "ttl", state)
    elif result.get("resultType") == "task":
        _create(seen, call, result, "ttlMs", state)
    elif call.method == "tasks/get":
        _note(seen, result, call.task_id, state)
    elif call.method == "tasks/result":
        task = state.tasks.get((seen.sender or "", str(call.task_id)))
        if task is not None:
            task.fetched = True


def _create(
    seen: ObservedMessage, call: ObservedCall, facts: Members, ttl: str, state: State
) -> None:
    task = _note(seen, facts, facts.get("taskId"), state)
    task.created = seen.entry.at
    task.ttl = facts.get(ttl)
    token = key_of(call.sender, call.token)
    if token in state.tokens and token is not None:
        state.tokens[token].task = str(facts.get("taskId"))


def _note(seen: ObservedMessage, facts: Members, id: Any, state: State) -> ObservedTask:
    key = (seen.sender or "", str(id))
    task = state.tasks.get(key)
    if task is None:
        task = state.tasks[key] = ObservedTask()
    status = facts.get("status")
    # The first final status counts: another one later is a breach.
    if type(status) is str and task.status not in _FINAL:
        task.status = status
        if status in _FINAL and seen.kind == "reply":
            task.end = _end_of(facts)
    for name, question in object_at(facts, "inputRequests").items():
        task.input_requests[name] = fingerprint(question)
    return task
