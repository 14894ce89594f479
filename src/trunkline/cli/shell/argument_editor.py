"""Edits the arguments of a tool as JSON, in the editor that the environment names.

The file is readable by its owner only, and deleted afterwards. A text that is not a JSON object
is kept in memory: the next `edit` of the same tool opens it again.
"""

from __future__ import annotations

import os
import shlex
import sys
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import DecodeError
from msgspec.json import decode

from ..command import UsageError
from ..connect.tool_arguments import argument_template
from ..output.content import json_text

__all__ = ["ArgumentEditor", "editor_command"]

# Without $VISUAL and $EDITOR: POSIX requires vi, Windows comes with notepad.
_DEFAULT_EDITOR: Final = "notepad" if sys.platform == "win32" else "vi"
_MAX_BYTES: Final = 16 * 1024 * 1024


def editor_command() -> list[str]:
    """Return the command of the user's editor.

    Raises:
        UsageError: there is none.
    """
    from shutil import which

    for name in ("VISUAL", "EDITOR"):
        given = os.environ.get(name, "").strip()
        if given:
            try:
                return shlex.split(given, posix=sys.platform != "win32")
            except ValueError:
                raise UsageError(f"${name} has a quote that is not closed") from None
    if which(_DEFAULT_EDITOR) is None:
        raise UsageError("edit needs an editor: set $VISUAL or $EDITOR")
    return [_DEFAULT_EDITOR]


class ArgumentEditor:
    """Opens the arguments of tools in an editor."""

    def __init__(self) -> None:
        # By tool: what was saved last, for the next time.
        self._texts: dict[str, str] = {}

    async def edit(self, tool: str, schema: Any) -> dict[str, Any] | None:
        """Return the arguments that were saved, or None if the file was left empty.

        Raises:
            UsageError: the editor failed, or what was saved is not a JSON object.
        """
        text = self._texts.get(tool) or json_text(argument_template(schema)) + "\n"
        with TemporaryDirectory(prefix="trunkline-") as folder:
            path = os.path.join(folder, "arguments.json")
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            await _run([*editor_command(), path])
            saved = _read(path)
        if not saved.strip():
            self._texts.pop(tool, None)
            return None
        self._texts[tool] = saved
        return _arguments(saved, tool)


async def _run(command: list[str]) -> None:
    import asyncio

    try:
        process = await asyncio.create_subprocess_exec(*command)
    except OSError as error:
        raise UsageError(f"the editor {command[0]!r} cannot be started: {error.strerror}") from None
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if status != 0:
        raise UsageError(f"the editor ended with status {status}: nothing was called")


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise UsageError("what was saved is not UTF-8 text") from None


def _arguments(text: str, tool: str) -> dict[str, Any]:
    again = f"edit {shlex.quote(tool)} opens it again"
    try:
        value = decode(text.encode())
    except (DecodeError, RecursionError) as error:
        # The text is not quoted: it may hold a secret.
        raise UsageError(f"what was saved is not JSON: {error}; {again}") from None
    if not isinstance(value, dict):
        raise UsageError(f"what was saved is not a JSON object; {again}")
    return value
