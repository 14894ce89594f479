"""What Trunkline does, in about fifty lines of output: `make demo`.

A server and its source, the command line, one tool in both eras of the protocol with the judge
listening, and a fault in the recorded traffic of another server. Every line is printed by a
real process; anything that is not as expected makes the demo fail.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from trunkline import Client, Stdio
from trunkline.judge import Conversation, Finding, TraceEntry
from trunkline.transports import Frame, Tapped

HERE = Path(__file__).resolve().parent
TRIPS = HERE / "trips.py"
FOREIGN = HERE / "foreign.jsonl"
REVISIONS = ("2025-11-25", "2026-07-28")

_IN_COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(code: int, text: str) -> str:
    """Return the text in bold (1), red (31), green (32) or cyan (36), where that can be seen."""
    return f"\033[{code}m{text}\033[0m" if _IN_COLOUR else text


def heading(text: str) -> None:
    """Print the heading of a scene."""
    print(f"\n{paint(1, text)}")


def show_command(words: Sequence[str], *, status: int = 0) -> None:
    """Run `trunkline` with these words, and show the command and its output.

    Raises:
        SystemExit: its exit status is another than `status`.
    """
    print(paint(36, f"$ trunkline {' '.join(words)}"), flush=True)
    # Paths are shown as they are typed at the root of the repository.
    command = [sys.executable, "-m", "trunkline", *words]
    run = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=False)
    for line in (run.stdout + run.stderr).rstrip().splitlines():
        print(f"  {line}")
    if run.returncode != status:
        sys.exit(f"trunkline {words[0]} ended with {run.returncode}, not {status}")


def summary(sender: str, message: dict[str, Any]) -> str | None:
    """Return a message in a few words, or None for those of the handshake."""
    arrow = "->" if sender == "client" else "<-"
    method = message.get("method", "")
    if "initialize" in method or "discover" in method:
        return None
    if method:
        has_answers = "inputResponses" in message.get("params", {})
        return f"{arrow} {method}{' + answer' if has_answers else ''}"
    result = message["result"]
    if "content" in result and "action" in result:
        return f"{arrow} {result['action']} {result['content']['value']}"
    if "content" in result:
        return f'{arrow} "{result["content"][0]["text"]}"'
    return f"{arrow} {result['resultType']}" if "inputRequests" in result else None


async def converse(revision: str) -> None:
    """Call `book` in one revision, and show the wire and the verdict of the judge.

    Raises:
        SystemExit: the answer is wrong, or the judge found something.
    """
    judge = Conversation()
    findings: list[Finding] = []
    steps: list[str] = []

    def observe(sender: Literal["client", "server"], frame: Frame) -> None:
        if isinstance(frame, bytes):
            findings.extend(judge.feed(TraceEntry(sender=sender, transport="stdio", raw=frame)))
            if (step := summary(sender, json.loads(frame))) is not None:
                steps.append(step)

    server = Tapped(Stdio(sys.executable, [str(TRIPS)]), observe)
    async with Client(server, revision=revision, on_elicit=lambda _: {"value": 3}) as client:
        result = await client.call_tool("book", {"city": "Oslo"})
    findings.extend(judge.end())
    faults = [str(found) for found in findings if found.level != "info"]
    if result.value != "Oslo, 3 days" or faults:
        sys.exit(f"{revision}: {result.value!r}, {faults}")
    kept = sum(each.verdict == "pass" for each in judge.outcomes().values())
    print(f"  {paint(1, revision)}  {'  '.join(steps)}")
    print(f"              {paint(32, 'judge: no faults')}, {kept} requirements met")


def main() -> None:
    """Show the scenes, one after the other."""
    heading("1. A server is a function (examples/trips.py)")
    source = TRIPS.read_text(encoding="utf-8")
    for line in source[source.index("@app.tool") : source.index("\n\nif __name__")].splitlines():
        print(f"  {line}")

    heading("2. Any MCP server, from the terminal")
    show_command(["list", "examples/trips.py"])
    show_command(["call", "examples/trips.py", "book", "city=Oslo", "--answer", "value=3"])
    show_command(["call", "examples/trips.py", "book", "cty=Oslo"], status=2)

    heading("3. The same tool in both eras of the protocol: a request, or a call sent again")
    for revision in REVISIONS:
        asyncio.run(converse(revision))

    heading("4. What is wrong with the traffic of another server")
    show_command(["validate", "examples/foreign.jsonl"], status=1)

    print(f"\n{paint(32, 'All as expected.')} Next: docs/tutorial/1-first-server.md")


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; a second error at exit would be noise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
