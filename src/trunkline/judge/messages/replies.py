"""Checks of a result against the method it answers, and of an error against its code."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from ...redaction import show_json
from ...spec import lookup
from ...spec.mcp.methods import EXTENSION_METHODS
from ...spec.mcp.rules import RULES
from ...spec.mcp.tasks_extension import EXTENSION
from ...spec.rows import Method
from ...spec.types import TypeView, types
from ..types.collector import Path, Sink
from ..types.type_checks import compiled
from .calls import is_vendor_method, judge_meta
from .context import AnsweredRequest, MessageContext
from .envelope import Members

__all__ = ["judge_reply"]

# The values of `resultType`, each with its default type.                 [MCP 2026-07-28, basic]
_RESULT_TYPES: Final = {
    "complete": "Result",
    "input_required": "InputRequiredResult",
    "task": "CreateTaskResult",
}
# Only the prose of the extension says which requests may become a task.
_MAY_BE_TASKS: Final = frozenset(("tools/call",))

# The reserved block of codes [JSON-RPC 2.0, section 5.1]; within it, the server errors, and the
# codes that the MCP specification assigns.                               [MCP 2026-07-28, basic]
_RESERVED: Final = range(-32768, -31999)
_SERVER_ERRORS: Final = range(-32099, -31999)
_SPECIFIED: Final = range(-32099, -32019)


def judge_reply(members: Members, path: Path, context: MessageContext, sink: Sink) -> None:
    """Report what is wrong with a message that has a result or an error."""
    if context.sender == "client" and RULES["mcp.reply.from-client"].when.holds(sink.revision):
        sink.report("mcp.reply.from-client", path)
    known = context.request
    if known is not None and known.id is not None and "id" in members:
        _judge_id(known.id, members["id"], (path, "id"), sink)
    if type(members.get("result")) is dict:
        _judge_result(members["result"], (path, "result"), known, sink)
    if type(members.get("error")) is dict:
        _judge_error(members["error"], (path, "error"), context, sink)


def _judge_id(asked: int | str, answered: Any, at: Path, sink: Sink) -> None:
    # 7 and "7" are different ids, and in Python True == 1.
    if answered is not None and (type(answered) is not type(asked) or answered != asked):
        expected = f"the id of the request it answers: {show_json(asked)}"
        sink.report("mcp.reply.id", at, answered, expected)


# -- results ---------------------------------------------------------------------------------


def _judge_result(result: Members, at: Path, asked: AnsweredRequest | None, sink: Sink) -> None:
    row = lookup.method(asked.method, sink.revision) if asked else None
    if asked is not None and (row is None or row.result is None or row.form != "wire"):
        if asked.method not in EXTENSION_METHODS and not is_vendor_method(asked.method):
            got = asked.method or None
            sink.report("mcp.result.of-unknown-method", at, got, f"a request of {sink.revision}")
        row = None
    others = asked is not None and bool(asked.extensions - {EXTENSION})
    compiled(_type_of(result, row, at, sink, others), sink.revision)(result, at, sink)
    judge_meta(result, at, "result", sink)


def _type_of(
    result: Members, row: Method | None, at: Path, sink: Sink, others: bool = False
) -> str:
    """Return the expected type of a result, by its method and its `resultType`.

    With `others` the request has declared extensions that may define further result types.
    """
    expected = (row.result if row else None) or "Result"
    kind = result.get("resultType")
    if type(kind) is not str or not RULES["mcp.result.type-unknown"].when.holds(sink.revision):
        return expected
    found = _RESULT_TYPES.get(kind)
    if found is None and others:
        return "Result"
    if found is None or (kind == "task" and row is not None and row.name not in _MAY_BE_TASKS):
        sink.report("mcp.result.type-unknown", (at, "resultType"), kind)
        return "Result"
    if kind == "input_required" and row is not None and found not in expected:
        sink.report("mcp.result.input-not-allowed", (at, "resultType"), kind)
    return expected if kind == "complete" else found


# -- errors ----------------------------------------------------------------------------------


def _judge_error(error: Members, at: Path, context: MessageContext, sink: Sink) -> None:
    code = error.get("code")
    if type(code) is not int or type(error.get("message")) is not str:
        return  # reported by the codec
    _judge_code(code, (at, "code"), context, sink)
    shapes = _error_types(sink.revision)
    compiled(shapes.get(code) or shapes[None], sink.revision)(error, at, sink)


def _judge_code(code: int, at: Path, context: MessageContext, sink: Sink) -> None:
    revision, profile = sink.revision, context.policy.codes
    official = lookup.error(code, "mcp", revision)
    if official is not None:
        if not official.sent:
            sink.report("mcp.error.not-sent", at, code)
        return
    if code in _SPECIFIED and RULES["mcp.error.undefined"].when.holds(revision):
        sink.report("mcp.error.undefined", at, code)
    elif code not in _RESERVED or lookup.error(code, profile, revision) is not None:
        return
    elif code not in _SERVER_ERRORS:
        sink.report("mcp.error.reserved", at, code)
    elif RULES["mcp.error.legacy-range"].when.holds(revision):
        sink.report("mcp.error.legacy-range", at, code)


@cache
def _error_types(revision: str) -> dict[int | None, str]:
    # The type of the error object by code; None is the type for all other codes.
    table = types(revision)
    found: dict[int | None, str] = {None: "Error" if "Error" in table else "JSONRPCError.error"}
    for view in table.values():
        code = _code_of(view)
        if code is not None:
            found[code] = view.name
    return found


def _code_of(view: TypeView) -> int | None:
    field = view.fields.get("code") if "message" in view.fields else None
    value = field.expr.value if field is not None and field.expr.kind == "constant" else None
    return value if isinstance(value, int) else None
