"""A client and a server as two processes, twice: with a handshake and without.

    make demo-full

The server of `weather.py` is started over stdio. A client calls its tools, reads a
resource, fills in a prompt, hears of progress, answers a question of a tool, is refused, and
gives up on a slow call; in 2025-11-25 and in 2026-07-28. Every line that went over the pipes
is printed, and the judge has the last word on each exchange. Anything that is not as it
should be makes this fail.

The question is the same line of code in both: `await ctx.elicit(...)`. In 2025-11-25 the server
sends a request; in 2026-07-28 it answers with the question, and the call is sent again.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from trunkline import Client, PeerError, RequestTimeout, Stdio
from trunkline.judge import Conversation, Finding, TraceEntry
from trunkline.mcp import ElicitRequestParams
from trunkline.transports import Frame, Tapped

SERVER = Path(__file__).with_name("weather.py")
REVISIONS = ("2025-11-25", "2026-07-28")
# How much of a message is printed.
WIDTH = 150


class Forecast(Struct):
    """What the tool gives, as this client knows it."""

    city: str
    days: list[str]


class Ear:
    """Shows, and has judged, every message of a conversation."""

    def __init__(self) -> None:
        self.talk = Conversation()
        self.findings: list[Finding] = []
        self.messages = 0

    def hear(self, sender: Literal["client", "server"], frame: Frame) -> None:
        """Take note of one frame."""
        if isinstance(frame, bytes):
            text = frame.decode("utf-8", "backslashreplace").strip()
            arrow = "->" if sender == "client" else "<-"
            print(f"   {arrow} {text if len(text) <= WIDTH else text[: WIDTH - 3] + '...'}")
            self.messages += 1
            self.findings += self.talk.feed(TraceEntry(sender=sender, transport="stdio", raw=frame))


def answer(question: ElicitRequestParams) -> dict[str, Any]:
    """Answer as a user would: five days, and whatever luggage is suggested."""
    print(f"   ?? {question.message}")
    return {"days": 5}


async def converse(client: Client) -> list[str]:
    """Use the server; return what was not as it should be."""
    wrong: list[str] = []

    def expect(what: str, got: object, wanted: object) -> None:
        good = got == wanted
        print(f"   {'ok   ' if good else 'WRONG'} {what}: {got!r}")
        if not good:
            wrong.append(f"{what}: {got!r} is not {wanted!r}")

    tools = await client.list_tools()
    expect("tools", [tool.name for tool in tools], ["forecast", "pack", "wait_for_spring"])

    steps: list[float] = []
    result = await client.call_tool(
        "forecast",
        {"city": "Oslo", "days": 2},
        result_type=Forecast,
        on_progress=lambda done, total, message: steps.append(done),
    )
    expect("forecast", result.value, Forecast("Oslo", ["rain", "clouds"]))
    expect("progress", steps, [1, 2])

    failed = await client.call_tool("forecast", {"city": "Atlantis"})
    expect("a city that is not there", failed.is_error, True)
    unfit = await client.call_tool("forecast", {"city": "Rome", "days": "three"})
    expect("days that are no number", unfit.is_error, True)
    try:
        await client.call_tool("hindcast")
    except PeerError as error:
        expect("a tool that is not there", error.kind, "INVALID_PARAMS")

    packed = await client.call_tool("pack", {"city": "Nuuk"})
    expect("a question", packed.value, "a coat for 5 days, in a bag")

    read = await client.read_resource("weather://now/Rome")
    expect("a resource", read.contents[0].text, "sun")
    prompt = await client.get_prompt("report", {"city": "Nuuk"})
    text = prompt.messages[0].content
    expect("a prompt", getattr(text, "text", ""), "Write a dry weather report for Nuuk.")

    try:
        await client.call_tool("wait_for_spring", timeout=0.3)
    except RequestTimeout as error:
        expect("giving up", type(error).__name__, "RequestTimeout")
    read = await client.read_resource("weather://now/Oslo")
    expect("still there", read.contents[0].text, "rain")
    return wrong


async def show(revision: str) -> list[str]:
    """Hold the conversation in one revision; return what was wrong with it."""
    print(f"\n== {revision} {'=' * 60}\n")
    ear = Ear()
    server = Tapped(Stdio(sys.executable, [str(SERVER)]), ear.hear)
    async with Client(server, revision=revision, name="demo", on_elicit=answer) as client:
        wrong = await converse(client)
    findings = [*ear.findings, *ear.talk.end()]
    for found in findings:
        print(f"\n   {found}")
    # What is merely deprecated is worth a word, and no fault.
    faults = [found for found in findings if found.level != "info"]
    kept = sum(each.verdict == "pass" for each in ear.talk.outcomes().values())
    verdict = f"{len(faults)} findings" if faults else "clean"
    print(f"\n   the judge on {ear.messages} messages: {verdict}, {kept} requirements kept")
    return wrong + [str(found) for found in faults]


def main() -> int:
    """Show both eras; return 0 if all was as it should be."""
    wrong = [problem for revision in REVISIONS for problem in asyncio.run(show(revision))]
    print("\n" + ("\n".join(wrong) if wrong else "Both exchanges are clean."))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough; a second complaint at exit would be noise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
