"""Multi-round-trip requests: input_required results, and the retries that answer them."""

from __future__ import annotations

from typing import Any, Final

from ...jsonrpc.codec.tokenizer import pointer
from .checker import Checker
from .elicitation import is_declared
from .state import (
    Members,
    ObservedCall,
    ObservedMessage,
    ObservedRoundTrip,
    State,
    declares,
    object_at,
)

__all__ = ["METHODS", "check_rounds", "remember_round"]

METHODS: Final = ("tools/call", "prompts/get", "resources/read")
_KINDS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
# Equal calls that are open at once, and calls that share a requestState. The client decides how
# many there are; beyond this number they are not told apart.
_MAX_SAME_CALLS: Final = 64


def check_rounds(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check an input_required result, or the retry that answers it."""
    if seen.result is not None and seen.result.get("resultType") == "input_required":
        if seen.call is not None:
            _check_asking(seen.result, seen.call, seen, checker)
    elif seen.kind == "request" and seen.method in METHODS:
        is_retry = "inputResponses" in seen.params or "requestState" in seen.params
        if is_retry and checker.requires("mcp.rounds.new-id"):
            _check_retry(seen, state, checker)


def _check_asking(
    result: Members, call: ObservedCall, seen: ObservedMessage, checker: Checker
) -> None:
    kept = call.method in METHODS
    checker.check("mcp.rounds.three-methods", kept, "/result/resultType", call.method)
    asks = "inputRequests" in result or "requestState" in result
    checker.check("mcp.rounds.asks-or-state", asks, "/result")
    requests = object_at(result, "inputRequests")
    if requests and seen.entry.raw is not None:
        # Only the text shows a duplicate name: parsed JSON has lost it.
        checker.check("mcp.rounds.keys-unique", True)
    for key, request in requests.items():
        where = pointer(("result", "inputRequests", key))
        method = request.get("method") if type(request) is dict else None
        checker.check("mcp.rounds.kinds", method in _KINDS, f"{where}/method", method)
        if method in _KINDS:
            kept = _is_declared(request, call.declared)
            checker.check("mcp.rounds.declared-only", kept, where, method)


def _is_declared(request: Members, declared: Members) -> bool:
    method, params = request["method"], object_at(request, "params")
    if method == "elicitation/create":
        return is_declared(params, declared)
    if method == "roots/list":
        return declares(declared, "roots")
    needs_tools = "tools" in params or "toolChoice" in params
    return declares(declared, "sampling.tools" if needs_tools else "sampling")


def _check_retry(seen: ObservedMessage, state: State, checker: Checker) -> None:
    assert seen.call is not None
    assert seen.call.retry_key is not None
    given: Any = seen.params.get("requestState")
    if type(given) is str and given in state.round_states:
        kept = seen.call.retry_key in state.round_states[given]
        checker.check("mcp.rounds.state-not-shared", kept, "/params/requestState", given)
    asked = _round_of(seen.call.retry_key, given, state, is_certain=not seen.entry.hidden)
    if asked is None:
        return
    missing = asked.keys - object_at(seen.params, "inputResponses").keys()
    expected = f"an answer to {', '.join(sorted(missing))}"
    checker.check(
        "mcp.rounds.all-answered", not missing, "/params/inputResponses", expected=expected
    )
    if asked.state is None:
        kept = "requestState" not in seen.params
        checker.check("mcp.rounds.state-not-added", kept, "/params/requestState", given)
    else:
        checker.check(
            "mcp.rounds.state-echoed", given == asked.state, "/params/requestState", given
        )
    is_new = type(seen.id) is not type(asked.id) or seen.id != asked.id
    checker.check("mcp.rounds.new-id", is_new, "/id", seen.id)


def _round_of(
    retry_key: int, given: Any, state: State, *, is_certain: bool
) -> ObservedRoundTrip | None:
    # Equal calls are told apart by their state. Where something was hidden, several calls may
    # only seem to be equal.
    found = state.rounds.pop(retry_key, ())
    if not found or (not is_certain and len(found) > 1):
        return None
    chosen = next((each for each in found if each.state == given), found[-1])
    rest = tuple(each for each in found if each is not chosen)
    if rest:
        state.rounds[retry_key] = rest
    return chosen


def remember_round(seen: ObservedMessage, state: State) -> None:
    """Remember the input requests of a result until the request is retried."""
    result, call = seen.result, seen.call
    if result is None or call is None or call.retry_key is None:
        return
    if result.get("resultType") != "input_required":
        return
    text = result.get("requestState")
    keys = frozenset(object_at(result, "inputRequests"))
    others = state.rounds.get(call.retry_key, ())[-_MAX_SAME_CALLS + 1 :]
    state.rounds[call.retry_key] = (*others, ObservedRoundTrip(call.id, call.retry_key, keys, text))
    if type(text) is str:
        # A server may send the same state to several calls if it stores nothing in it.
        before = state.round_states.get(text, frozenset())
        if len(before) < _MAX_SAME_CALLS:
            state.round_states[text] = before | {call.retry_key}
