"""How a script reaches into a handler, whatever carries its messages: through tools alone.

`hold` waits until `release` lets it go, and `noted` waits for what a handler wrote down under
a key that the script chose. Every server that scripts talk to has these tools.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from typing import Final
from weakref import WeakKeyDictionary

from trunkline import Context, Server

# How long anything here waits before it gives up, in seconds. Far beyond what a script needs, on a
# busy machine too.
HANGS: Final = 60.0


class Journal:
    """What handlers wrote down, and what they wait for, by a key that a script chooses."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.thread_gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self.notes: dict[str, list[str]] = defaultdict(list)
        self.written = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def clear(self) -> None:
        """Forget what other scripts wrote."""
        self.gates.clear()
        self.thread_gates.clear()
        self.notes.clear()

    def write(self, key: str, text: str) -> None:
        self.notes[key].append(text)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.written.set)

    async def read(self, key: str, count: int) -> list[str]:
        self._loop = asyncio.get_running_loop()
        async with asyncio.timeout(HANGS):
            while len(self.notes[key]) < count:
                self.written.clear()
                await self.written.wait()
        return self.notes[key]

    async def wait(self, key: str, ctx: Context) -> None:
        """Wait to be let go; write down how that ended."""
        self.write(key, "began")
        try:
            async with asyncio.timeout(HANGS):
                await self.gates[key].wait()
        except asyncio.CancelledError:
            self.write(key, f"cancelled {ctx.cancelled}")
            raise
        self.write(key, "done")


# Of the servers that list what they listed when they were made.
JOURNALS: Final[WeakKeyDictionary[Server, Journal]] = WeakKeyDictionary()


def add_waiting_tools(app: Server, journal: Journal) -> None:
    @app.tool
    async def hold(key: str, ctx: Context) -> str:
        """Wait to be let go; write down how it ended."""
        await journal.wait(key, ctx)
        return key

    @app.tool
    def hold_a_thread(key: str, ctx: Context) -> str:
        """Wait on a thread, which nobody can stop, and return all the same."""
        journal.write(key, "began")
        gate, until, is_noted = journal.thread_gates[key], time.monotonic() + HANGS, False
        while not gate.wait(0.01) and time.monotonic() < until:
            if ctx.cancelled and not is_noted:
                is_noted = True
                journal.write(key, "cancelled")
        journal.write(key, f"returned {ctx.cancelled}")
        return f"late {key}"

    @app.tool
    async def step(key: str, name: str) -> str:
        """Write down where it begins and ends, and let others go on in between."""
        journal.write(key, f"{name} begins")
        await asyncio.sleep(0.01)
        journal.write(key, f"{name} ends")
        return name

    @app.tool
    async def release(key: str) -> str:
        """Let go whoever waits."""
        journal.gates[key].set()
        journal.thread_gates[key].set()
        return key

    @app.tool
    async def noted(key: str, count: int = 1) -> list[str]:
        """Wait for so many notes under a key, and give them."""
        return await journal.read(key, count)
