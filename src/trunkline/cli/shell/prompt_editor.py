"""Reads the lines of a shell with prompt_toolkit: editing, history, completion.

The only module that imports prompt_toolkit, and only `trunkline shell` imports it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.output import ColorDepth, create_output

from ..output.terminal import wants_colour
from .catalogue import Catalogue
from .completion import ShellCompleter
from .history import HistoryFile, default_path
from .line_editor import LineInterrupted
from .options import command_options

__all__ = ["PromptEditor", "prompt_editor"]


def prompt_editor(
    prompt: Callable[[], str],
    catalogue: Catalogue,
    commands: Mapping[str, str],
    *,
    has_history: bool,
    on_history_error: Callable[[OSError], object],
) -> PromptEditor:
    """Return an editor that completes commands, their options and what the server lists."""
    history = HistoryFile(default_path()) if has_history else None
    completer = ShellCompleter(catalogue, commands, command_options)
    return PromptEditor(prompt, completer, history, on_history_error)


class _FileHistory(History):
    """The history of prompt_toolkit, in our file."""

    def __init__(self, file: HistoryFile | None, on_error: Callable[[OSError], object]) -> None:
        super().__init__()
        self._file = file
        self._on_error = on_error

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, newest first."""
        return [] if self._file is None else reversed(self._file.read())

    def store_string(self, string: str) -> None:
        """Add a line to the file; an error is reported once."""
        if self._file is not None:
            try:
                self._file.append(string)
            except OSError as error:
                self._file = None
                self._on_error(error)


class _Completer(Completer):
    """The completer of prompt_toolkit, with our candidates."""

    def __init__(self, completer: ShellCompleter) -> None:
        self._completer = completer

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """Return nothing: candidates are awaited."""
        return ()

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the candidates; a key that is typed meanwhile cancels this."""
        text = document.text_before_cursor
        start, candidates = await self._completer.candidates(text)
        for each in candidates:
            yield Completion(
                each.text, start - len(text), display=each.shown, display_meta=each.about
            )


class PromptEditor:
    """Reads lines from a terminal, and edits them there."""

    def __init__(
        self,
        prompt: Callable[[], str],
        completer: ShellCompleter,
        history: HistoryFile | None,
        on_history_error: Callable[[OSError], object],
    ) -> None:
        output = create_output()
        # A request for the cursor position that is answered late would be typed into the shell
        # that comes after this one.
        if hasattr(output, "enable_cpr"):
            output.enable_cpr = False
        self._session: PromptSession[str] = PromptSession(
            prompt,
            completer=_Completer(completer),
            complete_while_typing=False,
            history=_FileHistory(history, on_history_error),
            color_depth=None if wants_colour() else ColorDepth.DEPTH_1_BIT,
            enable_suspend=True,
            output=output,
        )

    async def read(self) -> str | None:
        """Return the next line, or None at Ctrl-D."""
        try:
            # Signals are handled by the shell, and exceptions of other tasks by the event loop.
            return await self._session.prompt_async(
                handle_sigint=False, set_exception_handler=False
            )
        except EOFError:
            return None
        except KeyboardInterrupt:
            raise LineInterrupted from None

    async def print_above(self, text: str) -> None:
        """Print lines above the one that is being typed."""
        async with in_terminal():
            sys.stderr.write(text)
            sys.stderr.flush()

    @asynccontextmanager
    async def suspended(self) -> AsyncIterator[None]:
        """Give the terminal to something else, with echo, and draw the line again after it."""
        async with in_terminal():
            yield

    def interrupt(self) -> None:
        """End `read` with `LineInterrupted`."""
        if self._session.app.is_running:
            self._session.app.exit(exception=KeyboardInterrupt())
