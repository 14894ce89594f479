"""Reads the lines of a shell: the interface, and the plain reader.

The plain reader is for pipes, for terminals that cannot move the cursor, and for installations
without prompt_toolkit. Lines are read by the event loop, so that the connection is served while
the user thinks; the terminal itself edits the line. The readline module of Python is not used: it
would block the event loop, and with it the answers to the server's pings.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from ...transports.io.fd import can_watch
from ..connect.elicitation import read_line
from ..output.terminal import is_terminal

__all__ = ["LineEditor", "LineInterrupted", "PlainEditor", "can_edit"]

_READ_BYTES: Final = 65536


class LineInterrupted(Exception):
    """Ctrl-C was pressed: the line is dropped."""


class LineEditor(Protocol):
    """Reads lines, one at a time."""

    async def read(self) -> str | None:
        """Return the next line, or None at the end of the input.

        Raises:
            LineInterrupted: Ctrl-C was pressed.
        """

    async def print_above(self, text: str) -> None:
        """Print lines above the one that is being typed."""

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """Give the terminal to something else in this block."""

    def interrupt(self) -> None:
        """End `read` with `LineInterrupted`."""


def can_edit() -> bool:
    """Return True on a terminal that can be drawn on, if prompt_toolkit is installed."""
    from importlib.util import find_spec

    if not is_terminal(sys.stdin) or not is_terminal(sys.stdout):
        return False
    if os.environ.get("TERM", "") in ("", "dumb", "unknown") and sys.platform != "win32":
        return False
    try:
        return find_spec("prompt_toolkit") is not None
    except ValueError:
        return False  # blocked by None in `sys.modules`


class PlainEditor:
    """Reads lines from standard input as they are."""

    def __init__(self, prompt: Callable[[], str]) -> None:
        # A script that pipes commands sees no prompt.
        self._has_prompt = is_terminal(sys.stdin) and is_terminal(sys.stderr)
        self._prompt = prompt
        self._rest = b""
        self._is_at_end = sys.stdin is None
        self._ready: asyncio.Future[None] | None = None
        self._is_suspended = False

    async def read(self) -> str | None:
        """Return the next line, or None at the end of the input."""
        self._write_prompt()
        while b"\n" not in self._rest and not self._is_at_end:
            await self._receive()
        line, sign, self._rest = self._rest.partition(b"\n")
        if not sign and not line:
            if self._has_prompt:
                self._write("\n")  # Ctrl-D leaves the cursor behind the prompt
            return None
        encoding = sys.stdin.encoding or "utf-8"
        return line.decode(encoding, "surrogateescape").rstrip("\r")

    async def print_above(self, text: str) -> None:
        """Print lines, and the prompt again; what was typed stays with the terminal."""
        self._write(f"\n{text}" if self._has_prompt else text)
        self._write_prompt()

    @asynccontextmanager
    async def suspended(self) -> AsyncIterator[None]:
        """Read nothing in this block; another reader has standard input."""
        loop = asyncio.get_running_loop()
        self._is_suspended = True
        if self._ready is not None:
            loop.remove_reader(sys.stdin.fileno())
            self._write("\n")
        try:
            yield
        finally:
            self._is_suspended = False
            if self._ready is not None:
                self._write_prompt()
                loop.add_reader(sys.stdin.fileno(), self._wake)

    def interrupt(self) -> None:
        """End `read` with `LineInterrupted`."""
        if self._ready is not None and not self._ready.done():
            self._write("\n")
            self._ready.set_exception(LineInterrupted())

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        if not can_watch(loop):
            line = await read_line(sys.stdin.fileno())
            self._is_at_end = line is None
            self._rest += b"" if line is None else f"{line}\n".encode()
            return
        await self._until_readable(loop)
        try:
            raw = os.read(sys.stdin.fileno(), _READ_BYTES)
        except OSError:
            raw = b""  # the terminal is gone
        self._is_at_end = not raw
        self._rest += raw

    async def _until_readable(self, loop: asyncio.AbstractEventLoop) -> None:
        descriptor = sys.stdin.fileno()
        self._ready = loop.create_future()
        try:
            if not self._is_suspended:
                loop.add_reader(descriptor, self._wake)
            await self._ready
        except PermissionError:
            pass  # a regular file: it is always readable, and cannot be watched
        finally:
            self._ready = None
            loop.remove_reader(descriptor)

    def _wake(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def _write_prompt(self) -> None:
        if self._has_prompt:
            self._write(self._prompt())

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            pass  # as for every other note
