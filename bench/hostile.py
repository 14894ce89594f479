"""Hostile texts: milliseconds of the event loop per MiB that a peer sends.

Run as `python -m bench.hostile`. Each case is a text that is expensive in one way, at a place
that reads what a peer sent: validation, exception texts, URI templates, logs, decoding,
recordings and the judge. It runs with 1, 2 and 4 MiB (`--quick`: 1 MiB), and the better of two
CPU times counts. The goal is 50 ms per MiB at every size, so that growth beyond linear is a miss
as well. `--only TEXT` selects cases by name.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from time import process_time
from typing import Any, Final

from bench.section import Section
from trunkline import Client, Server
from trunkline.exception_text import as_redacted
from trunkline.jsonrpc import InvalidMessage, decode
from trunkline.judge import Conversation, judge
from trunkline.redaction import conceal, redact
from trunkline.server.handlers.schema_validator import SchemaCheck
from trunkline.spec.revisions import V2025_11_25

MIB: Final = 1 << 20
SIZES: Final = (1, 2, 4)
GROUP: Final = "CPU time per MiB"

Work = Callable[[], object]
"""The measured part of a case."""


def validation() -> dict[str, Callable[[int], Work]]:
    """Values that break a JSON Schema everywhere, and arguments that a tool does not have."""
    items = SchemaCheck({"properties": {"v": {"items": {"type": "integer"}}}})
    choice = SchemaCheck({"items": {"anyOf": [{"type": "integer"}, {"required": ["b"]}]}})
    nested = SchemaCheck({"anyOf": [{"items": {"type": "integer"}}, {"type": "object"}]})
    closed = SchemaCheck({"properties": {"a": {}}, "additionalProperties": False})
    text = SchemaCheck({"type": "string"})

    def checked(check: SchemaCheck, value: Any) -> Work:
        return lambda: check.problem(value)

    return {
        "schema, items of another type": lambda n: checked(items, {"v": ["x"] * (n // 4)}),
        "schema, items that fit no alternative": lambda n: checked(choice, ["x"] * (n // 4)),
        "schema, alternatives with items": lambda n: checked(nested, ["x"] * (n // 4)),
        "schema, names that are not allowed": lambda n: checked(closed, names(n)),
        "schema, lists in place of a text": lambda n: checked(text, [[]] * (n // 3)),
        "unknown arguments of a tool": lambda n: called(lambda city: "x", names(n)),
    }


def exceptions() -> dict[str, Callable[[int], Work]]:
    """Exceptions that repeat what a peer sent."""

    def fail(text: str) -> str:
        raise ValueError(f"no such city: {text}")

    def group(count: int) -> Work:
        error = ExceptionGroup("several", [ValueError("x") for _ in range(count)])
        return lambda: as_redacted(error)

    return {
        "exception text of newlines": lambda n: called(fail, {"text": "\n" * (n // 2)}),
        "exception text of starts of tokens": lambda n: called(fail, {"text": "-eyJ" * (n // 4)}),
        "exception for each item": lambda n: group(n // 4),
        "cause of an exception": lambda n: lambda: as_redacted(KeyError("\x1b" * n)),
    }


def uris() -> dict[str, Callable[[int], Work]]:
    """URIs of 8 KiB and 20 templates, of which none or one begins alike."""
    app = Server("bench")
    for number in range(20):
        app.add_resource(lambda a, b: "x", f"db://t{number}/{{a}}/{{b}}")

    def found(uri: str, size: int) -> Work:
        uri = uri[:8192]

        def work() -> None:
            for _ in range(size // len(uri)):
                next(app._core.catalog.find_resources(uri), None)

        return work

    return {
        "URIs, encoded": lambda n: found("db://t0/" + "%61" * 2720, n),
        "URIs, letters to be encoded": lambda n: found("db://t0/x/" + "ü" * 8180, n),
        "URIs, dots and slashes": lambda n: found("db://t0/" + "./" * 4090, n),
        "URIs, of no template": lambda n: found("db://x/" + "%c3" * 2720, n),
    }


def texts() -> dict[str, Callable[[int], Work]]:
    """Redaction of values in logs, and of recordings."""
    plain, starts = "plain text, nothing to hide. ", "-eyJ"
    return {
        "log, one long text": lambda n: lambda text=starts * (n // 4): redact(text),
        "log, many values": lambda n: lambda value=[starts] * (n // 8): redact(value),
        "recording, plain text": lambda n: lambda text=plain * (n // 29): conceal(text),
        "recording, starts of tokens": lambda n: lambda text=starts * (n // 4): conceal(text),
        "recording, newlines": lambda n: lambda text="\n" * n: conceal(text),
        "recording, names of secrets": lambda n: lambda text="token=" * (n // 6): conceal(text),
        "recording, hosts": lambda n: lambda text="://a" * (n // 4): conceal(text),
    }


def frames() -> dict[str, Callable[[int], Work]]:
    """Frames that are not quite messages: decoded, and judged."""
    head = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":'
    made: dict[str, Callable[[int], bytes]] = {
        "batch of empty objects": lambda n: b"[" + b"{}," * (n // 3) + b"{}]",
        "deep lists": lambda n: head + b"[" * (n // 2) + b"]" * (n // 2) + b"}}",
        "names twice": lambda n: head + b"{" + b'"a":1,' * (n // 6) + b'"a":1}}}',
        "half a character": lambda n: head + b'"' + b"x" * n + b'\\ud83d"}}',
        "invalid UTF-8 at the end": lambda n: head + b'"' + b"x" * n + b'\xff"}}',
        "one long number": lambda n: head + b"1" * n + b"}}",
        "cut off": lambda n: head + b'"' + b"\\u0061" * (n // 6),
    }

    def decoded(frame: bytes) -> None:
        try:
            decode(frame)
        except InvalidMessage as error:
            str(error)

    def judged(frame: bytes) -> None:
        list(judge(frame, V2025_11_25, sender="client"))

    def heard(frame: bytes) -> None:
        Conversation().feed(frame, "client")

    def case(read: Callable[[bytes], None], make: Callable[[int], bytes]) -> Callable[[int], Work]:
        def prepared(size: int) -> Work:
            frame = make(size)
            return lambda: read(frame)

        return prepared

    decoding = {f"decode, {name}": case(decoded, make) for name, make in made.items()}
    judging = {f"judge, {name}": case(judged, make) for name, make in made.items()}
    batches = made["batch of empty objects"]
    return {**decoding, **judging, "conversation, batch of empty objects": case(heard, batches)}


def names(size: int) -> dict[str, int]:
    """An object of so many bytes with as many names as fit."""
    return {f"k{number}": 1 for number in range(size // 12)}


def called(tool: Callable[..., Any], arguments: dict[str, Any]) -> Work:
    """Return a call of a tool by a client in this process; both encode and decode it."""
    app = Server("bench")
    app.add_tool(tool, "tool", inline=True)

    async def script() -> None:
        async with Client(app, timeout=600) as client:
            await client.call_tool("tool", arguments)

    return lambda: asyncio.run(script())


CASES: Final = {**validation(), **exceptions(), **uris(), **texts(), **frames()}


def ms_per_mib(work: Work, mib: int) -> float:
    """Return the CPU time of the better of two runs."""
    taken = []
    for _ in range(2):
        start = process_time()
        work()
        taken.append(process_time() - start)
    return min(taken) * 1000 / mib


def main() -> int:
    """Run the cases and print the table."""
    about = "Texts that a hostile peer can send: CPU time per MiB, the most of 1, 2 and 4 MiB."
    section = Section("hostile", about, ("trunkline", "msgspec"), has_only=True)
    # What is logged is made, and thrown away.
    logging.disable(logging.NOTSET)
    logging.getLogger("trunkline").addHandler(logging.NullHandler())
    logging.getLogger("trunkline").propagate = False
    sizes = SIZES[:1] if section.is_quick else SIZES
    print(f"  {'ms per MiB':40}", *(f"{size:>4} MiB" for size in sizes))
    found = []
    for name, make in CASES.items():
        if section.options.only in name:
            spent = [ms_per_mib(make(size * MIB), size) for size in sizes]
            print(f"  {name:40}", *(f"{each:8.1f}" for each in spent), flush=True)
            section.value(GROUP, name, max(spent), "ms")
            found.append(max(spent))
    section.value(GROUP, "the worst", max(found), "ms")
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
