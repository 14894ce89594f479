"""Elicitation, sampling and roots: requests to the client, and its list of roots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ...jsonrpc.codec.tokenizer import pointer
from .checker import Checker
from .state import Members, ObservedMessage, State, declares, object_at

__all__ = ["check_questions", "check_roots", "is_declared"]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def is_declared(params: Members, declared: Members) -> bool:
    """Return True if the client declared the mode of an elicitation."""
    if params.get("mode") == "url":
        return declares(declared, "elicitation.url")
    # An empty object means forms only.           [MCP 2025-11-25, client/elicitation]
    has_forms = declares(declared, "elicitation.form")
    return has_forms or (
        declares(declared, "elicitation") and not object_at(declared, "elicitation")
    )


def check_questions(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check elicitation and sampling requests, on the wire or inside a result."""
    for method, params, where, declared in _questions(seen, state):
        if method == "elicitation/create":
            _check_elicitation(seen, params, where, declared, checker)
        elif method == "sampling/createMessage":
            _check_sampling(params, where, checker)


def _questions(
    seen: ObservedMessage, state: State
) -> Iterator[tuple[Any, Members, str, Members | None]]:
    if seen.kind == "request" and seen.sender == "server":
        declared = state.session.client if state.session.phase == "agreed" else None
        yield seen.method, seen.params, "/params", declared
    elif seen.result is not None and seen.sender == "server" and "inputRequests" in seen.result:
        declared = None if seen.call is None else seen.call.declared
        for key, request in object_at(seen.result, "inputRequests").items():
            if type(request) is dict:
                where = pointer(("result", "inputRequests", key, "params"))
                yield request.get("method"), object_at(request, "params"), where, declared


def _check_elicitation(
    seen: ObservedMessage, params: Members, where: str, declared: Members | None, checker: Checker
) -> None:
    mode = params.get("mode", "form")
    if declared is not None:
        kept = is_declared(params, declared)
        checker.check("mcp.elicitation.declared-mode", kept, f"{where}/mode", mode)
        # A client without elicitation refuses the method as unknown, with another code.
        is_other_mode = "elicitation" in declared and not kept
        if is_other_mode and seen.kind == "request" and seen.call is not None:
            seen.call.refusals_due.append(("mcp.elicitation.undeclared-refused", -32602))
    url = params.get("url")
    if mode == "url" and type(url) is str:
        checker.check("mcp.elicitation.url-https", _is_safe(url), f"{where}/url", url)


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" or (parts.hostname or "") in _LOOPBACK
    except ValueError:
        return False


# -- sampling --------------------------------------------------------------------------------


def _check_sampling(params: Members, where: str, checker: Checker) -> None:
    messages = params.get("messages")
    used: set[Any] = set()
    for place, message in enumerate(messages if type(messages) is list else ()):
        if type(message) is not dict:
            continue
        at = f"{where}/messages/{place}/content"
        uses, results, others = _sorted_blocks(message)
        if results:
            checker.check("mcp.sampling.results-alone", not uses and not others, at)
        if used or results:
            checker.check("mcp.sampling.results-match", results == used, at)
        used = uses
    if used:
        checker.check("mcp.sampling.results-match", False, f"{where}/messages")


def _sorted_blocks(message: Members) -> tuple[set[Any], set[Any], int]:
    # The ids of tool uses, the ids of tool results, and the number of other blocks.
    content = message.get("content")
    uses: set[Any] = set()
    results: set[Any] = set()
    others = 0
    for block in content if type(content) is list else [content]:
        if type(block) is not dict:
            continue
        kind = block.get("type")
        if kind == "tool_use":
            uses.add(str(block.get("id")))
        elif kind == "tool_result":
            results.add(str(block.get("toolUseId")))
        else:
            others += 1
    return uses, results, others


# -- roots -----------------------------------------------------------------------------------


def check_roots(seen: ObservedMessage, state: State, checker: Checker) -> None:
    """Check the URIs of the roots that a client lists."""
    if seen.sender != "client":
        return
    if seen.result is not None:
        if seen.call is not None and seen.call.method == "roots/list":
            _check_uris(seen.result, "/result", checker)
        return
    for key, answer in object_at(seen.params, "inputResponses").items():
        if type(answer) is dict and "roots" in answer:
            _check_uris(answer, pointer(("params", "inputResponses", key)), checker)


def _check_uris(holder: Members, where: str, checker: Checker) -> None:
    roots = holder.get("roots")
    for place, root in enumerate(roots if type(roots) is list else ()):
        uri = root.get("uri") if type(root) is dict else None
        if type(uri) is str:
            kept = uri.startswith("file://") and ".." not in unquote(uri).split("/")
            checker.check("mcp.roots.uris-valid", kept, f"{where}/roots/{place}/uri", uri)
