"""The commands of a shell: a table, and what each of them does.

A command returns an exit status, as a verb does. `list`, `call`, `read`, `prompt` and `ping` run
the verb of the same name on the connection of the shell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import visible
from ...redaction import show
from ...spec.mcp.meta import LOG_LEVELS
from ...spec.revisions import REVISIONS
from ..command import UsageError, check_text
from ..connect.errors import unknown_name
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.reports import emit
from ..output.terminal import columns, row_width, table, wrap
from .options import VERBS, command_parser, verb_module

if TYPE_CHECKING:
    from ...client.client import Client
    from ...client.tasks.task_call import TaskHandle
    from .session import ShellSession

__all__ = ["COMMANDS", "ShellCommand", "summaries"]

_Run = Callable[["ShellSession", list[str]], Awaitable[int]]


class ShellCommand(NamedTuple):
    """A command: what follows its name, what it does, and the function that does it."""

    usage: str
    summary: str
    run: _Run
    # Lines of `help COMMAND`.
    more: str = ""

    def __repr__(self) -> str:
        from ...jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


def summaries() -> dict[str, str]:
    """Return the names of the commands with their summaries."""
    return {name: each.summary for name, each in COMMANDS.items()}


# Verbs


async def _verb(shell: ShellSession, words: list[str]) -> int:
    name, *rest = words
    options = command_parser(name).parse_intermixed_args(rest)
    options.prog, options.command, options.verbose = name, shell.command, shell.is_verbose
    if not hasattr(options, "save"):
        options.save = None
    if options.json == "-":
        raise UsageError("--json - reads standard input, which is where commands come from")
    needed = {"call": "TOOL", "read": "URI", "prompt": "NAME"}.get(name)
    if needed is not None:
        if not options.words:
            raise UsageError(f"{needed} is missing; try help {name}")
        check_text(options.words[0], needed)
    if getattr(options, "task", False):
        return await _call_as_task(shell, options.words)
    work = verb_module(name).work_of(options, options.words)
    status: int = await work(await shell.connection.live(), shell.console)
    return status


async def _call_as_task(shell: ShellSession, words: Sequence[str]) -> int:
    from ..connect.tool_arguments import parse_arguments

    name, *given = words
    client = await shell.connection.live()
    tool = await _tool(client, name)
    arguments = parse_arguments(given, tool.input_schema, f"the tool {name!r}")
    task = await client.call_tool_as_task(name, arguments)
    if task.id is None:
        shell.console.note("the server did not make it a task: it is done")
        return _show_result(shell, await task.result(), name)
    number = shell.add_task(name, task)
    emit(f"task {number}: {task.status or 'started'}")
    return SUCCESS


async def _tool(client: Client, name: str) -> Any:
    tools = await client.list_tools()
    for each in tools:
        if each.name == name:
            return each
    raise unknown_name(name, (each.name for each in tools), "tool")


def _show_result(shell: ShellSession, result: Any, name: str) -> int:
    if result.is_error:
        shell.console.failure = result.text
    status: int = verb_module("call").show_result(
        result, command_parser_defaults(shell, "call"), name
    )
    return status


def command_parser_defaults(shell: ShellSession, name: str) -> Any:
    """Return the options of a command that was given none."""
    options = command_parser(name).parse_args([])
    options.prog, options.command, options.verbose = name, shell.command, shell.is_verbose
    return options


async def _edit(shell: ShellSession, words: list[str]) -> int:
    (name,) = _taken(words, "edit", "TOOL")
    if not shell.is_interactive:
        raise UsageError("edit needs a terminal")
    client = await shell.connection.live()
    tool = await _tool(client, name)
    async with shell.terminal():
        arguments = await shell.argument_editor.edit(name, tool.input_schema)
    if arguments is None:
        shell.console.note("nothing was saved: nothing was called")
        return SUCCESS
    client = await shell.connection.live()
    with shell.console.waiting(f"calling {name}"):
        result = await client.call_tool(name, arguments, on_progress=shell.console.progress)
    return _show_result(shell, result, name)


# Changes and log


async def _subscribe(shell: ShellSession, words: list[str]) -> int:
    (uri,) = _taken(words, "subscribe", "URI")
    await (await shell.connection.live()).subscribe(uri)
    shell.connection.uris.add(uri)
    emit(f"changes of {visible(uri, kept='')} are shown")
    return SUCCESS


async def _unsubscribe(shell: ShellSession, words: list[str]) -> int:
    (uri,) = _taken(words, "unsubscribe", "URI")
    if uri not in shell.connection.uris:
        raise unknown_name(uri, sorted(shell.connection.uris), "subscription")
    shell.connection.uris.discard(uri)
    await (await shell.connection.live()).unsubscribe(uri)
    return SUCCESS


async def _watch(shell: ShellSession, words: list[str]) -> int:
    given = _optional(words, "watch", "on or off", ("on", "off"))
    if given is not None:
        shell.console.is_watching = given == "on"
    emit(f"watch: {'on' if shell.console.is_watching else 'off'}")
    return SUCCESS


async def _log(shell: ShellSession, words: list[str]) -> int:
    level = _optional(words, "log", "LEVEL", LOG_LEVELS)
    if level is not None:
        client = await shell.connection.live()
        if client.era != "per_request" and client.server_capabilities.logging is None:
            raise UsageError("the server declares no log")
        await client.set_logging_level(level)  # type: ignore[arg-type]  # one of LOG_LEVELS
        shell.set_log_level(level)
    emit(f"log: {shell.log_level}")
    return SUCCESS


# Tasks


async def _tasks(shell: ShellSession, words: list[str]) -> int:
    action, *rest = words[1:] or ["list"]
    if action == "list":
        return await _list_tasks(shell)
    if action not in ("get", "result", "cancel") or len(rest) != 1:
        raise UsageError("tasks takes: list, get N, result N or cancel N")
    name, task = shell.task(rest[0])
    await shell.connection.live()
    if action == "result":
        with shell.console.waiting(f"waiting for {name}"):
            result = await task.result()
        return _show_result(shell, result, name)
    if action == "cancel":
        await task.cancel()
    await task.refresh()
    emit(_task_line(name, task))
    return SUCCESS


async def _list_tasks(shell: ShellSession) -> int:
    """Show the tasks of this shell, and those that the server lists, if its revision can."""
    client = await shell.connection.live()
    if shell.connection.can_list_tasks:
        for found in await client.list_tasks():
            shell.adopt_task(found.task_id, client)
    rows = []
    for number, (name, task) in shell.tasks.items():
        if not task.done():
            await task.refresh()
        rows.append((str(number), visible(name, kept=""), task.status or "", _message(task)))
    emit(table(rows, ("", "tool", "status", "")) if rows else "no tasks")
    return SUCCESS


def _task_line(name: str, task: TaskHandle[Any]) -> str:
    return f"{visible(name, kept='')}: {task.status} {_message(task)}".rstrip()


def _message(task: TaskHandle[Any]) -> str:
    return visible(task.message or "", kept="")


# The connection


async def _revision(shell: ShellSession, words: list[str]) -> int:
    chosen = _optional(words, "revision", "R or auto", (*REVISIONS, "auto"))
    if chosen is None:
        client = await shell.connection.live()
    else:
        client = await shell.reconnect(None if chosen == "auto" else chosen)
    how = "chosen" if shell.connection.revision else "negotiated"
    emit(f"MCP {visible(client.revision, kept='')} ({how})")
    return SUCCESS


async def _reconnect(shell: ShellSession, words: list[str]) -> int:
    _taken(words, "reconnect")
    client = await shell.reconnect(shell.connection.revision)
    emit(f"connected to {shell.connection.server}, MCP {visible(client.revision, kept='')}")
    return SUCCESS


async def _status(shell: ShellSession, words: list[str]) -> int:
    _taken(words, "status")
    emit(columns(_facts(shell)))
    return SUCCESS


def _facts(shell: ShellSession) -> list[tuple[str, str]]:
    connection, client = shell.connection, shell.connection.client
    trace = connection.trace
    kept = f"{trace.count} messages, {trace.size} bytes"
    if trace.dropped:
        kept += f"; {trace.dropped} more were not kept"
    facts = [
        ("target", shell.connection.target),
        ("transport", connection.transport),
        ("subscriptions", ", ".join(visible(each, kept="") for each in sorted(connection.uris))),
        ("watch", "on" if shell.console.is_watching else "off"),
        ("log", shell.log_level),
        ("recorded", kept),
    ]
    if client is None:
        return [("server", f"{connection.server}, not connected"), *facts]
    info = client.server_info
    called = connection.server if info is None else visible(f"{info.name} {info.version}", kept="")
    from msgspec import to_builtins

    declared = to_builtins(client.server_capabilities)
    return [
        ("server", called),
        ("revision", f"{visible(client.revision, kept='')} ({client.era.replace('_', ' ')})"),
        ("capabilities", ", ".join(visible(each, kept="") for each in declared) or "none"),
        *facts,
    ]


async def _save(shell: ShellSession, words: list[str]) -> int:
    (path,) = _taken(words, "save", "FILE")
    trace = shell.connection.trace
    trace.save(path)
    emit(f"saved {trace.count} messages to {show(path)}")
    if trace.dropped:
        shell.console.note(f"{trace.dropped} messages after the first {trace.size} bytes are not")
        return PROBLEMS_FOUND
    return SUCCESS


# The shell


async def _help(shell: ShellSession, words: list[str]) -> int:
    name = _optional(words, "help", "COMMAND", COMMANDS)
    if name is None:
        rows = [(f"{each} {command.usage}".strip(), command.summary) for each, command in _shown()]
        emit(table(rows))
        more = "A tool can be called by its name alone. Ctrl-C cancels a command, Ctrl-D leaves."
        emit("\n".join(["", *wrap(more, row_width())]))
        return SUCCESS
    command = COMMANDS[name]
    lines = [f"{name} {command.usage}".strip(), f"  {command.summary}"]
    if command.more:
        lines.append("")
        for line in command.more.strip().splitlines():
            lines += wrap(line, row_width(), indent="  ", hanging=" " * 16)
    if name in VERBS:
        text = command_parser(name).format_help().partition("options:\n")[2]
        lines += ["", "options:", text.rstrip()]
    emit("\n".join(lines))
    return SUCCESS


def _shown() -> list[tuple[str, ShellCommand]]:
    return [(name, each) for name, each in COMMANDS.items() if name != "quit"]


async def _exit(shell: ShellSession, words: list[str]) -> int:
    shell.is_over = True
    return SUCCESS


# Words


def _taken(words: list[str], name: str, *needed: str) -> list[str]:
    """Return the words after a command, of which there are as many as `needed`."""
    given = words[1:]
    if len(given) < len(needed):
        raise UsageError(f"{needed[len(given)]} is missing; try help {name}")
    if len(given) > len(needed):
        raise UsageError(f"{name} takes {' '.join(needed) or 'no words'}; try help {name}")
    for word, called in zip(given, needed, strict=True):
        check_text(word, called)
    return given


def _optional(
    words: list[str], name: str, what: str, choices: Sequence[str] | dict[str, Any]
) -> str | None:
    """Return the only word after a command, or None."""
    if len(words) == 1:
        return None
    if len(words) > 2 or words[1] not in choices:
        allowed = "" if len(choices) > 10 else f": {', '.join(choices)}"
        raise UsageError(f"{name} takes {what}{allowed}")
    return words[1]


_ARGUMENTS: Final = """\
key=text      converted by the schema: a number if it asks for one
key:=JSON     JSON, whatever the schema says
key=@FILE     the text of a file; key=@@text for a text that begins with @
a.b=text      member b of the object a
a=1,2         a list; also a=1 a=2 or a=[1,2]
"""

COMMANDS: Final[dict[str, ShellCommand]] = {
    "list": ShellCommand("[KIND [NAME ...]]", "show what the server offers", _verb),
    "call": ShellCommand("TOOL [key=value ...]", "call a tool", _verb, _ARGUMENTS),
    "edit": ShellCommand("TOOL", "write the arguments of a tool in $EDITOR, and call it", _edit),
    "read": ShellCommand("URI", "read a resource", _verb),
    "prompt": ShellCommand("NAME [key=value ...]", "get a prompt", _verb),
    "subscribe": ShellCommand("URI", "show changes of a resource", _subscribe),
    "unsubscribe": ShellCommand("URI", "show them no longer", _unsubscribe),
    "watch": ShellCommand(
        "[on|off]", "show notifications and log messages while you type, or not", _watch
    ),
    "log": ShellCommand("[LEVEL]", "show log messages from a level on", _log),
    "tasks": ShellCommand(
        "[get|result|cancel N]", "show tasks, wait for one, or cancel it", _tasks
    ),
    "ping": ShellCommand("", "check that the server answers, and how fast", _verb),
    "status": ShellCommand("", "show server, revision, transport, capabilities", _status),
    "revision": ShellCommand(
        "[R|auto]", "show the revision of MCP, or connect in another", _revision
    ),
    "reconnect": ShellCommand("", "close the connection, and open a new one", _reconnect),
    "save": ShellCommand("FILE", "save all messages so far as a recording", _save),
    "help": ShellCommand("[COMMAND]", "show the commands, or one with its options", _help),
    "exit": ShellCommand("", "leave; also quit, or Ctrl-D", _exit),
    "quit": ShellCommand("", "leave", _exit),
}
