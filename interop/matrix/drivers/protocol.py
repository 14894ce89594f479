"""How a driver talks with the matrix: JSON, one value per line, over standard streams.

    python -m interop.matrix.drivers.MODULE '{"command": [...]}' ERA

The first line is written when the client has connected: the verbs that it has. Each request is a
verb and its arguments; each answer is a value, a failure, or a sentence that says why the client
has no such thing. At the end of its input a driver closes its connection and exits with 0.

The verbs, which every driver has as far as its client does:

- tools: the names of the parameters of each tool
- call(name, arguments): the text, the kinds of blocks, the structured content, if it is an error
- at_once(calls): several of them
- resources, templates, prompts: addresses, templates and names
- read(uri): the text or the blob; prompt(name, arguments): the texts
- complete(prompt, argument, value): the values
- ping; progress(name, arguments): each step and total; log(level, name, lines): the levels sent
- ask(name, arguments): a call, whose question the client answers with a city

A driver runs in the environment of its client, so this module needs the standard library alone.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

__all__ = ["Lacks", "Target", "drive", "gathered", "member", "parameters", "plain", "result_of"]


class Lacks(Exception):
    """The client has no API for what a step needs; the text says what it lacks."""


class Target(NamedTuple):
    """The server of a conversation: a command, or a URL; and the era to speak, if it can be set."""

    command: list[str]
    url: str
    era: str

    @property
    def is_modern(self) -> bool:
        """Whether the era is the one without a handshake."""
        return self.era == "per-request"


def drive(opened: Callable[[Target], AbstractAsyncContextManager[Any]]) -> None:
    """Run the driver: connect, answer each line, close.

    `opened` gives an object whose methods are the verbs; they may be coroutines, or block.
    """
    place, era = sys.argv[1:]
    target = Target(**{"command": [], "url": "", **json.loads(place)}, era=era)
    # What a library prints is not an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asyncio.run(_answer_all(opened, target, answers))


async def _answer_all(opened: Any, target: Target, answers: Any) -> None:
    def write(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    async with opened(target) as client:
        verbs = [name for name in dir(client) if not name.startswith("_")]
        write({"verbs": verbs})
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            try:
                if asked["verb"] == "at_once" and "at_once" not in verbs:
                    value: Any = await gathered(client.call, asked["arguments"]["calls"])
                else:
                    value = await _do(getattr(client, asked["verb"]), asked["arguments"])
                write({"value": value})
            except Lacks as lack:
                write({"lacks": str(lack)})
            except Exception as error:  # noqa: BLE001  # how a client fails is what is asked for
                write({"failed": _text(error), "code": _code(error)})


async def gathered(call: Callable[..., Any], calls: list[list[Any]]) -> list[Any]:
    """Make several calls at once."""
    return await asyncio.gather(
        *(_do(call, {"name": name, "arguments": given}) for name, given in calls)
    )


async def _do(verb: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(verb):
        return await verb(**arguments)
    return await asyncio.to_thread(verb, **arguments)


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(error: BaseException) -> str:
    error = _leaf(error)
    return f"{type(error).__name__}: {error}"


def _code(error: BaseException) -> int | None:
    """Return the code of a JSON-RPC error, where a library keeps it."""
    found: BaseException | None = _leaf(error)
    while found is not None:
        for holder in (found, getattr(found, "error", None)):
            code = getattr(holder, "code", None)
            if isinstance(code, int):
                return int(code)
        found = found.__cause__
    return None


# -- values that most libraries for Python share ---------------------------------------------


def member(value: Any, *names: str) -> Any:
    """Return the first member of these names that there is: versions of `mcp` spell them apart."""
    for name in names:
        found = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        if found is not None:
            return found
    return None


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return value


def parameters(schema: Any) -> list[str]:
    """Return the names of the parameters in a JSON Schema."""
    return sorted(member(plain(schema), "properties") or {})


def result_of(result: Any) -> dict[str, Any]:
    """Return what `tools/call` gave, as every driver reports it."""
    blocks = member(result, "content") or []
    return {
        "text": "".join(member(each, "text") or "" for each in blocks),
        "kinds": [str(member(each, "type")) for each in blocks],
        "structured": plain(member(result, "structured_content", "structuredContent")),
        "is_error": bool(member(result, "is_error", "isError")),
    }
