"""The client of the TypeScript SDK, talking to a server of ours: `typescript/client.mjs`.

The script is told which check to run, one after the other, and says what it found.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TextIO

from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from .checks import ANY, PATIENCE, Check, Checks, Place, Unexpected, expect
from .http import node

__all__ = ["CHECKS", "Talk", "opened"]

HANDSHAKE = Window(until=V2026_07_28)
PER_REQUEST = Window(V2026_07_28)
NAMES = {
    "the server says who it is": ANY,
    "discover tells who and what": PER_REQUEST,
    "ping is answered": HANDSHAKE,
    "everything is listed": ANY,
    "a text comes back as it went": ANY,
    "many calls at once are told apart": ANY,
    "an object is structured": ANY,
    "an image is an image": ANY,
    "a tool that fails says so": ANY,
    "bad arguments are named": Window(V2025_11_25),
    "an unknown tool is refused": ANY,
    "the server knows who is asking": ANY,
    "progress is reported": ANY,
    "the log is heard": HANDSHAKE,
    "a call that is cancelled stops": ANY,
    "a call that takes too long stops": ANY,
    "resources are read": ANY,
    "a missing resource is an error": ANY,
    "a prompt is filled in": ANY,
    "arguments are completed": ANY,
    "the model of the client is asked": ANY,
    "the roots of the client are asked": ANY,
    "the user of the client is asked": ANY,
    "a form has a field of each kind": ANY,
    "the user is sent to a page": Window(V2025_11_25),
    "one question follows from another": ANY,
    "questions are asked together": ANY,
    "a prompt asks": ANY,
    "who subscribed is told": ANY,
    "lists that grow are told": ANY,
}


class Talk:
    """One run of the script."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.revision = ""

    async def begin(self) -> None:
        """Wait until the script has connected."""
        found = await self._line()
        self.revision = found["revision"]
        expect(found["checks"], list(NAMES), "checks of the script")

    async def run(self, name: str) -> None:
        """Have the script run a check.

        Raises:
            Unexpected: what it found wrong.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n".encode())
        found = await self._line()
        if "error" in found:
            raise Unexpected(found["error"])
        expect(found["check"], name)

    async def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise Unexpected("the script ended")
        found: dict[str, Any] = json.loads(line)
        return found

    async def end(self) -> None:
        """See that the script closes and ends.

        Raises:
            Unexpected: it did not, or not well.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            expect(await self._process.wait(), 0, "exit status of the client")


def _check(name: str, when: Window) -> Check:
    return Check(name, lambda talk: talk.run(name), when)


CHECKS = Checks(_check(name, when) for name, when in NAMES.items())


@asynccontextmanager
async def opened(place: Place, mode: str, log: TextIO) -> AsyncIterator[Talk]:
    """Run the script; `mode` is "legacy", "auto", or a revision without a handshake."""
    process = await asyncio.create_subprocess_exec(
        *node.command("client.mjs", place.url, mode),
        env=node.environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
    )
    try:
        talk = Talk(process)
        await talk.begin()
        yield talk
        await talk.end()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
