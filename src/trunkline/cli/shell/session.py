"""One session of `trunkline shell`: reads lines, and runs each as a command.

The rules that live here, and only here:

* An error of a command is one line, and the shell goes on.
* Ctrl-C cancels the running command, and a question that it waits for; at the prompt it drops the
  line. Without a terminal it ends the shell, as SIGTERM and SIGHUP always do.
* A tool can be called by its name alone, unless a command has this name.
* Without a terminal the exit status is that of the first command that failed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from ...errors import TrunklineError, visible
from ...extras import install_command
from ...private_file import UnsafeFile
from ...redaction import show
from ...spec.mcp.meta import LOG_LEVELS
from ..command import UnreadableInput, UsageError
from ..connect.errors import explain, explain_failure, sentence, status
from ..exit_codes import INTERRUPTED, PROBLEMS_FOUND, SUCCESS, USAGE_ERROR
from ..output.progress import Console, is_interactive
from ..output.terminal import cut, fitted, is_terminal
from ..signals import ctrl_c_handled
from .argument_editor import ArgumentEditor
from .catalogue import Catalogue
from .commands import COMMANDS, summaries
from .connection import ShellConnection
from .line_editor import LineEditor, LineInterrupted, PlainEditor, can_edit
from .words import split_words

if TYPE_CHECKING:
    from subprocess import Popen

    from ...client.client import Client
    from ...client.tasks.task_call import TaskHandle
    from ..connect.elicitation import ElicitationPrompt
    from ..recording import Recording
    from .notifications import ShellConsole

__all__ = ["ShellSession"]

# Columns of the server's name in the prompt, and in the line before the first.
_MAX_PROMPT_NAME: Final = 24
_MAX_GREETING_NAME: Final = 100
# Seconds for the traceback of a failed tool to arrive.
_STDERR_TIMEOUT_S: Final = 0.5


class CommandFailed(Exception):
    """A command failed, with a text for the user and an exit status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class ShellSession:
    """The state of a shell: its connection, its terminal, and the tasks that it has started."""

    def __init__(
        self,
        options: argparse.Namespace,
        console: ShellConsole,
        process: Popen[bytes] | None,
        trace_file: Recording | None,
    ) -> None:
        self._options = options
        self.console = console
        self.is_interactive = is_interactive()
        self.is_verbose: bool = options.verbose
        self.is_over = False
        self.argument_editor = ArgumentEditor()
        # By number: the name of the tool and its task. Ids of tasks are not shown: an id is all
        # that is needed to read the result.
        self.tasks: dict[int, tuple[str, TaskHandle[Any]]] = {}
        self._task_numbers: dict[str, int] = {}
        self._questions = self._make_questions()
        self.connection = ShellConnection(
            options, console, prompt=self._questions, process=process, trace_file=trace_file
        )
        self._catalogue = Catalogue(lambda: self.connection.client)
        console.on_list_changed = self._catalogue.forget
        console.task_name = self._task_name
        self._editor = self._make_editor()
        self._running: asyncio.Task[int] | None = None
        self._line_number = 0
        self._first_failure = SUCCESS

    # -- what commands use ---------------------------------------------------------------------

    @property
    def command(self) -> list[str] | None:
        """The command after `--`, if the server was started by the shell."""
        given: list[str] | None = self._options.command
        return given

    @property
    def log_level(self) -> str:
        """The least level of log messages that are shown; "off" if none are requested."""
        client = self.connection.client
        is_asked = self._options.log is not None or client is None or client.era != "per_request"
        return self.console.level if is_asked else "off"

    def set_log_level(self, level: str) -> None:
        """Show log messages from a level on, on later connections too."""
        self._options.log = LOG_LEVELS[LOG_LEVELS.index(level)]
        self.console.set_level(level)

    async def reconnect(self, revision: str | None) -> Client:
        """Connect in a revision; None is negotiated.

        Raises:
            CommandFailed: there is no connection; the next one has the revision from before.
        """
        before = self.connection.revision
        self._catalogue.forget()
        try:
            return await self.connection.open(revision)
        except TrunklineError as error:
            text = sentence(error, self._options)
            self._options.revision = before
            raise CommandFailed(text, status(error)) from None

    def add_task(self, name: str, task: TaskHandle[Any]) -> int:
        """Keep a task; return its number."""
        number = len(self.tasks) + 1
        self.tasks[number] = name, task
        if task.id is not None:
            self._task_numbers[task.id] = number
        return number

    def adopt_task(self, id: str, client: Client) -> None:
        """Keep a task that the server has listed, unless it is there already."""
        if id not in self._task_numbers:
            self.add_task("?", client.task(id))

    def task(self, number: str) -> tuple[str, TaskHandle[Any]]:
        """Return the tool and the task of a number.

        Raises:
            UsageError: there is no such task.
        """
        if not number.isdecimal() or int(number) not in self.tasks:
            raise UsageError(f"there is no task {number!r}; `tasks` shows them")
        return self.tasks[int(number)]

    def _task_name(self, id: str) -> str:
        return f"task {self._task_numbers[id]}" if id in self._task_numbers else "a task"

    @asynccontextmanager
    async def terminal(self) -> AsyncIterator[None]:
        """Give the terminal to a question or to a program in this block."""
        with self.console.held():
            async with self._editor.suspended():
                try:
                    yield
                except asyncio.CancelledError:
                    if is_terminal(sys.stderr):
                        sys.stderr.write("\n")  # ends the line on which the terminal shows ^C
                    raise

    # -- reading -------------------------------------------------------------------------------

    async def run(self) -> int:
        """Connect, and run commands to the end of the input; return the exit status."""
        try:
            await self.connection.open(self._options.revision)
            gc.enable()
            if not self.is_interactive:
                await self._read_lines()
                return self._first_failure
            self._greet()
            loop = asyncio.get_running_loop()
            with ctrl_c_handled(lambda: loop.call_soon_threadsafe(self._interrupt)):
                await self._read_lines()
            return SUCCESS
        finally:
            self.console.pause()
            await self.connection.close()

    def _greet(self) -> None:
        client = self.connection.client
        revision = "" if client is None else f", MCP {visible(client.revision, kept='')}"
        name = cut(self.connection.server, _MAX_GREETING_NAME)
        self.console.note(fitted(f"{name}{revision}. `help` shows the commands, Ctrl-D leaves."))
        if isinstance(self._editor, PlainEditor) and not self._options.plain and not can_edit():
            self.console.note(
                fitted(f"completion and history need a terminal and {install_command('cli')}"),
                is_dim=True,
            )

    async def _read_lines(self) -> None:
        while not self.is_over:
            try:
                with self.console.prompting(self._editor.print_above):
                    text = await self._editor.read()
            except LineInterrupted:
                continue
            if text is None:
                return
            # Several, if lines were pasted.
            for line in text.splitlines() or [""]:
                self._line_number += 1
                if not self.is_over:
                    await self._run_line(line)

    def _make_editor(self) -> LineEditor:
        if self._options.plain or not self.is_interactive or not can_edit():
            return PlainEditor(self._prompt)
        # Imported here: the plain reader does without prompt_toolkit.
        from .prompt_editor import prompt_editor

        return prompt_editor(
            self._prompt,
            self._catalogue,
            summaries(),
            has_history=not self._options.no_history,
            on_history_error=self._history_failed,
        )

    def _history_failed(self, error: OSError) -> None:
        reason = error if isinstance(error, UnsafeFile) else error.strerror or error
        self.console.note(f"the history is not saved: {reason}", is_dim=True)

    def _prompt(self) -> str:
        name = cut(self.connection.server, _MAX_PROMPT_NAME)
        return f"{name}> " if self.connection.client is not None else f"{name} (not connected)> "

    # -- running -------------------------------------------------------------------------------

    async def _run_line(self, line: str) -> None:
        """Run a line as a command; Ctrl-C cancels it."""
        self._running = asyncio.get_running_loop().create_task(self._execute(line))
        try:
            await asyncio.wait([self._running])
        except asyncio.CancelledError:  # the shell is ended by a signal
            self._running.cancel()
            await asyncio.wait([self._running])
            raise
        finally:
            running, self._running = self._running, None
            self.console.clear()
        if running.cancelled():
            # Over the ^C that the terminal shows at the beginning of the line.
            self.console.note("\rcancelled" if self.is_interactive else "cancelled")
            found = INTERRUPTED
        else:
            found = running.result()
        self._first_failure = self._first_failure or found

    async def _execute(self, line: str) -> int:
        try:
            words = split_words(line)
            if not words:
                return SUCCESS
            self._forget_output()
            command = COMMANDS.get(words[0])
            if command is None:
                words = await self._bare_call(words)
                command = COMMANDS["call"]
            found = await command.run(self, words)
            await self._explain_failure()
            return found
        except TrunklineError as error:
            self._options.prog = self._blamed
            explain(error, self._options, self.console)
            return status(error)
        except CommandFailed as error:
            return self._fail(str(error), error.status)
        except (UsageError, LookupError, UnreadableInput) as error:
            return self._fail(str(error.args[0] if error.args else error), USAGE_ERROR)
        except OSError as error:
            what = "" if error.filename is None else f"{error.filename}: "
            return self._fail(f"{what}{error.strerror or error}", USAGE_ERROR)
        except Exception as error:  # noqa: BLE001  # a fault of one command ends no session
            kind = type(error).__name__
            return self._fail(f"unexpected {kind}: {visible(str(error))}", PROBLEMS_FOUND)

    async def _bare_call(self, words: list[str]) -> list[str]:
        """Return the words of a call if the first is a tool.

        Raises:
            UsageError: it is neither a command nor a tool.
        """
        client = await self.connection.live()
        if any(each.name == words[0] for each in await self._catalogue.tools()):
            return ["call", *words]
        tools = await client.list_tools()
        if any(each.name == words[0] for each in tools):
            return ["call", *words]
        from ..connect.tool_arguments import closest_name

        near = closest_name(words[0], [*COMMANDS, *(each.name for each in tools)])
        advice = "try help" if near is None else f"did you mean {show(near)}?"
        raise UsageError(f"there is no command and no tool {show(words[0])}; {advice}")

    def _fail(self, text: str, found: int) -> int:
        self.console.error(self._blamed, text)
        return found

    @property
    def _blamed(self) -> str:
        """What stands before an error."""
        return "error" if self.is_interactive else f"trunkline shell: line {self._line_number}"

    def _forget_output(self) -> None:
        """Forget what the server wrote before this command."""
        self.console.server_lines.clear()
        self.console.printed.clear()
        self.console.failure = None

    async def _explain_failure(self) -> None:
        """Show what the server wrote when a tool failed unexpectedly."""
        text, self.console.failure = self.console.failure, None
        if text is None or self.command is None:
            return
        from ..output.server_log import reference_in

        if reference_in(text) is not None:
            # Standard error is another pipe than the result: it may come later.
            deadline = asyncio.get_running_loop().time() + _STDERR_TIMEOUT_S
            while not self.console.server_lines and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(_STDERR_TIMEOUT_S / 10)
        explain_failure(text, self.console)

    # -- Ctrl-C and questions ------------------------------------------------------------------

    def _interrupt(self) -> None:
        is_asking = self._questions is not None and self._questions.is_asking
        if self._questions is not None:
            self._questions.cancel()
        if self._running is not None:
            self._running.cancel()
        elif not is_asking:
            self._editor.interrupt()

    def _make_questions(self) -> ElicitationPrompt | None:
        if not self._options.answer and not self.is_interactive:
            return None
        # Imported here: a script answers no questions.
        from ..connect.elicitation import ElicitationPrompt

        # A console of its own: what the shell prints waits for the end of the question.
        console = Console(is_verbose=self.is_verbose)
        return ElicitationPrompt(console, self._options.answer, self.terminal)
