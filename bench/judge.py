"""The message judge: a small message, a long list of tools, and what a hostile peer can cost.

Run as `python -m bench.judge`. Every message is judged once before anything is timed, and
has to come out as expected. Hostile messages are ten megabytes each and timed once, on the
wall clock: the target is that none takes more than a few seconds, whatever is in it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

from bench import harness
from bench.harness import Case
from bench.section import Section
from trunkline.judge import judge
from trunkline.spec.revisions import V2025_11_25, V2026_07_28

META: Final = "io.modelcontextprotocol/"
HOSTILE_BYTES: Final = 10_000_000

Judged = tuple[bytes, str, str | None]
"""The text of a message, its revision, and the method it answers."""


def small_request() -> bytes:
    """A call of a tool, with the metadata that the newest revision asks for."""
    meta = {
        f"{META}protocolVersion": V2026_07_28,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": {"name": "client", "version": "1"},
    }
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    return written({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def list_of_tools() -> bytes:
    """A result of tools/list of 20 KB."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tool = {"name": "tool", "title": "Tool", "description": "d" * 280, "inputSchema": schema}
    result = {
        "resultType": "complete",
        "ttlMs": 1000,
        "cacheScope": "public",
        "tools": [{**tool, "name": f"tool_{number}"} for number in range(44)],
        "_meta": {f"{META}serverInfo": {"name": "server", "version": "1"}},
    }
    return written({"jsonrpc": "2.0", "id": 1, "result": result})


def written(value: Any) -> bytes:
    """The text of a message, without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def hostile_messages() -> dict[str, Judged]:
    """Messages that are expensive in one way each."""
    size, revision = HOSTILE_BYTES, V2025_11_25
    call, answer = b'{"jsonrpc":"2.0","id":1,', b'{"jsonrpc":"2.0","id":1,"result":'
    calling = call + b'"method":"tools/call","params":{"name":"a",'
    nested = b"[" * (size // 2) + b"]" * (size // 2)
    keys = b",".join(b'"-%d":1' % number for number in range(size // 12))
    arrays, objects = b"[]," * (size // 3), b"{}," * (size // 3)
    tools = answer + b'{"tools":[' + b"1," * (size // 2) + b"1]}}"
    blocks = answer + b'{"content":[' + objects + b"1]}}"
    return {
        "nesting": (calling + b'"arguments":{"a":' + nested + b"}}}", revision, None),
        "nesting that is not closed": (b"[" * size, revision, None),
        "empty arrays": (calling + b'"arguments":{"a":[' + arrays + b"1]}}}", revision, None),
        "unknown members": (calling + keys + b"}}", revision, None),
        "unknown members of the envelope": (calling + b'"b":1},' + keys + b"}", revision, None),
        "bad keys of _meta": (calling + b'"_meta":{' + keys + b"}}}", revision, None),
        "wrong tools": (tools, revision, "tools/list"),
        "blocks without a type": (blocks, revision, "tools/call"),
        "a batch that is too long": (b"[" + objects + b"1]", revision, None),
    }


def run(item: Judged) -> object:
    """Judge one message."""
    text, revision, request = item
    return judge(text, revision, request=request)


def hostile_seconds() -> float:
    """Judge every hostile message once, print what it took, and return the most."""
    most = 0.0
    print("\nhostile messages of 10 MB, once each:")
    for name, item in hostile_messages().items():
        start = time.perf_counter()
        found = judge(item[0], item[1], request=item[2])
        took = time.perf_counter() - start
        most = max(most, took)
        last = found[-1].rule if found else "nothing found"
        print(f"  {name:<34}{took * 1000:>10.1f} ms   {len(found)} findings, last {last}")
    return most


def main() -> int:
    """Run the benchmark; the exit code says whether it holds."""
    about = "Messages judged: a small one, a list of tools, and what a hostile peer can cost."
    section = Section("judge", about, ("trunkline", "msgspec"))
    cases: dict[str, Judged] = {
        "small request": (small_request(), V2026_07_28, None),
        "20 KB of tools": (list_of_tools(), V2026_07_28, "tools/list"),
    }
    bench = section.bench(harness.FULL, harness.QUICK)
    for name, item in cases.items():
        if run(item) != []:
            sys.exit(f"{name}: something was found in a message that is in order")
        bench.add(Case("judge", name, run, (item,)))
    bench.control("judge", "small request")
    bench.run(harness.show_progress)
    harness.print_group(bench, "judge")
    section.value("hostile message of 10 MB", "the worst", hostile_seconds(), "s")
    harness.print_overhead(bench)
    harness.print_controls(bench)
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
