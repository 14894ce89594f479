"""Compares two runs of a handler and describes the differences.

The rules that live here, and only here:

* Results are compared in the form of the older revision: members and blocks that it does not
  have are ignored.
* Errors are equal if they have the same meaning; numbers may differ between revisions.
* Questions are compared in order, unless several were open at a time: then the order is not
  defined.
* A side effect that happens less often than in the handshake era is allowed: a cache, or a key
  that exists by now, has that effect.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, to_builtins
from msgspec.json import encode

from ..client.requests.tool_result import ToolResult
from ..mcp.shaping import narrow
from ..mcp.types import CallToolResult, TextContent
from ..redaction import show
from ..spec.profiles import profile
from .scripted_answers import AskedQuestion
from .side_effects import SideEffect, more_often

if TYPE_CHECKING:
    from .both_eras import EraRun

__all__ = ["differences"]

_ADVICE: Final = (
    "Code before a question runs again with the answers. Put what must happen once into\n"
    "`await context.once(key, ...)`."
)
# Members of results that describe the message, not the result.
_OF_THE_MESSAGE: Final = ("_meta", "resultType", "ttlMs", "cacheScope")

# The log reference in the text of a failed tool; different each time.
_REFERENCE: Final = re.compile(r"\(reference [0-9a-f]+\)")


def differences(handshake: EraRun, per_request: EraRun) -> list[str]:
    """Return the differences, most telling first."""
    effects = [*_effects(handshake, per_request), *_reports(handshake, per_request)]
    if effects:
        head = f"It did more in {per_request.revision} than in {handshake.revision}:"
        effects = ["\n".join([head, *effects, _ADVICE])]
    return [*_outcomes(handshake, per_request), *_questions(handshake, per_request), *effects]


# -- results ---------------------------------------------------------------------------------


def _outcomes(one: EraRun, other: EraRun) -> Iterator[str]:
    if (one.error is None) != (other.error is None):
        yield _difference(
            "One era answers with an error", one, other, _outcome(one), _outcome(other)
        )
    elif one.error is not None and other.error is not None:
        if not _means_the_same(one, other):
            yield _difference("The errors differ", one, other, _outcome(one), _outcome(other))
    elif isinstance(one.result, ToolResult):
        yield from _results(one, other)
    else:
        ours, theirs = _plain(one.result, one), _plain(other.result, one)
        if ours != theirs:
            yield _difference("The results differ", one, other, show(ours), show(theirs))


def _outcome(run: EraRun) -> str:
    if run.error is not None:
        return f"error {run.error.code}, {show(run.error.message)}"
    return _outcome_text(run.result) if isinstance(run.result, ToolResult) else "a result"


def _outcome_text(result: ToolResult[Any]) -> str:
    return f"{'failed, ' if result.is_error else ''}{show(result.text)}"


def _means_the_same(one: EraRun, other: EraRun) -> bool:
    if one.error is None or other.error is None:
        return False
    return one.error.code == other.error.code or bool(_kinds(one) & _kinds(other))


def _kinds(run: EraRun) -> set[str]:
    """Return the meanings of the error number in its revision."""
    known = profile("mcp")
    if run.error is None:
        return set()
    return {
        kind
        for kind in known.symbols(run.revision)
        if known.number(kind, run.revision) == run.error.code
    }


def _results(one: EraRun, other: EraRun) -> Iterator[str]:
    ours, theirs = one.result, other.result
    if _essence(ours, one) != _essence(theirs, one):
        yield _difference(
            "The results differ", one, other, _outcome_text(ours), _outcome_text(theirs)
        )
    elif not ours.is_error and _blocks(ours, one) != _blocks(theirs, one):
        blocks = show(_blocks(ours, one)), show(_blocks(theirs, one))
        yield _difference("The content differs", one, other, *blocks)
    if _has_structure(one.revision) and _value(ours) != _value(theirs):
        values = show(_value(ours)), show(_value(theirs))
        yield _difference("The structured results differ", one, other, *values)


def _essence(result: ToolResult[Any], run: EraRun) -> tuple[bool, str]:
    # In the older revision a block may be sent as a text.
    blocks = narrow(CallToolResult(result.content), run.revision).content
    text = "\n".join(each.text for each in blocks if isinstance(each, TextContent))
    return result.is_error, _REFERENCE.sub("", text) if result.is_error else text


def _blocks(result: ToolResult[Any], run: EraRun) -> Any:
    return to_builtins(narrow(CallToolResult(result.content), run.revision))["content"]


def _has_structure(revision: str) -> bool:
    example = CallToolResult([], structured_content={})
    return narrow(example, revision).structured_content is not UNSET


def _value(result: ToolResult[Any]) -> Any:
    return result.structured_content if result.is_error else result.value


def _plain(result: Any, run: EraRun) -> Any:
    found = to_builtins(narrow(result, run.revision))
    return {name: found[name] for name in found if name not in _OF_THE_MESSAGE}


# -- questions -------------------------------------------------------------------------------


def _questions(one: EraRun, other: EraRun) -> Iterator[str]:
    ours, theirs = [[_asked(each) for each in run.questions] for run in (one, other)]
    if one.asked_together or other.asked_together:
        ours.sort()
        theirs.sort()
    if ours != theirs:
        told = [_listed(run.questions) for run in (one, other)]
        yield (
            f"The questions differ:\n"
            f"  {one.revision}:{told[0]}\n  {other.revision}:{told[1]}\n"
            "A question that depends on an earlier run, on a clock or on chance differs when the\n"
            "handler runs again. Questions of concurrent tasks need keys of their own, because\n"
            "their order can change."
        )


def _asked(question: AskedQuestion) -> tuple[str, str, str, str]:
    return question.key, question.method, question.text, question.url or ""


def _listed(questions: list[AskedQuestion]) -> str:
    return "".join(f"\n    {each}" for each in questions) or " none"


# -- side effects ----------------------------------------------------------------------------


def _effects(one: EraRun, other: EraRun) -> Iterator[str]:
    for name, before, change in more_often(one.changes, other.changes, other.rounds):
        often = f"{_amount(change.amount)} {change.unit} in {other.revision}"
        yield f"  {name}: {often}, {_amount(before)} in {one.revision}{_added(change)}"


def _reports(one: EraRun, other: EraRun) -> Iterator[str]:
    before, after = (Counter(_report(each) for each in run.reports) for run in (one, other))
    if after.total() <= before.total():
        return
    for report, often in (after - before).items():
        earlier = before[report]
        yield f"  {report}: {earlier + often} sent in {other.revision}, {earlier} in {one.revision}"


def _report(message: dict[str, Any]) -> str:
    params = dict(message.get("params", {}))
    for each in ("_meta", "progressToken"):
        params.pop(each, None)
    return f"{message['method']} {show(encode(params).decode())}"


def _amount(amount: float) -> str:
    return f"{amount:g}" if isinstance(amount, float) else str(amount)


def _added(change: SideEffect) -> str:
    return f": {', '.join(map(show, change.added))}" if change.added else ""


def _difference(head: str, one: EraRun, other: EraRun, ours: str, theirs: str) -> str:
    return f"{head}:\n  {one.revision}: {ours}\n  {other.revision}: {theirs}"
