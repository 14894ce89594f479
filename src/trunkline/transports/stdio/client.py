"""The client's stdio transport: a server started as a child process.

`Stdio` is the address, a value; each transport made from it is one process, which `process`
starts and terminates.

The rules that live here, and only here:

* stdout carries frames. stderr is a log: its last lines are kept for the error that reports an
  exit, and each is passed to `on_stderr`.          [MCP 2026-07-28, basic/transports/stdio]
* An exit during a connection is an error, even with status 0. It is reported after everything
  the server wrote, with the status and the last log lines; while the transport is paused it
  waits. After `finish`, an exit with status 0 is normal.
* Secrets in `env` and `args` are shown neither in a repr nor in the server's log.
* Control characters are escaped in the lines that are kept; `on_stderr` gets lines unescaped.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ...errors import TransportError, visible
from ...jsonrpc.framing.framing import NewlineFraming, Oversize
from ...redaction import HIDDEN, is_secret_name, redact, show
from ..base import ignore, log_raised
from ..framed import FramedTransport
from ..io.fd import FdReader, FdWriter, can_watch
from .process import Child, launch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from subprocess import Popen

    from ...jsonrpc.policy import Policy
    from ..base import Frame, Transport
    from .loop_process import LoopChild, LoopReader

__all__ = ["StartedServer", "Stdio", "redacted_command"]


# The last lines of the server's log: enough for a traceback, too little to fill memory.
_MAX_LOG_LINES: Final = 20
# A longer line is truncated; a log may hold a line without end.
_MAX_LOG_LINE_BYTES: Final = 8192
# After a pipe has ended or the process has exited, how long the rest may take. While bytes still
# arrive the wait is repeated, up to a bound: other processes may hold the pipe.
_REST_TIMEOUT_S: Final = 1.0
_MAX_REST_WAITS: Final = 5
# A shorter value would match in the middle of ordinary words.
_MIN_SECRET_LENGTH: Final = 6
# The environment of a child without `inherit_env`: what most programs need, without secrets.
_BASIC_VARIABLES: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    # On Windows, where programs need more.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
)


# A client remembers by the address, weakly, which era a server belongs to.
@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Stdio:
    """A server that is started by a command and connected by its standard streams.

    `Stdio("python", ["server.py"])` and `Stdio(["python", "server.py"])` are the same. The
    command is looked up on PATH and started without a shell. The child inherits the whole
    environment, or with `inherit_env=False` only PATH, HOME and the like; `env` adds or replaces
    variables. `on_stderr` is called, on the event loop, with each line of the server's log that
    is not blank; values that `env` and `args` hold under a name like `API_KEY` or `--token` are
    hidden in it. On close, the server has `grace` seconds to exit, and as many after SIGTERM.
    """

    command: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    args: Sequence[str | os.PathLike[str]] = ()
    _: KW_ONLY
    env: Mapping[str, str] | None = field(default=None, hash=False)
    inherit_env: bool = True
    cwd: str | os.PathLike[str] | None = None
    on_stderr: Callable[[str], object] | None = None
    grace: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.args, str | bytes):
            raise TypeError("Stdio.args is a sequence of arguments, not one string")
        command = self.command
        if isinstance(command, str | bytes) or not isinstance(command, Sequence):
            command = (command,)
        words = [
            *(_text(each, "Stdio.command") for each in command),
            *(_text(each, f"Stdio.args[{at}]") for at, each in enumerate(self.args)),
        ]
        if not words or not words[0]:
            raise ValueError("Stdio.command is empty")
        if self.grace < 0:
            raise ValueError(f"Stdio.grace must not be negative: {self.grace}")
        # Copies, so that the address stays the same when the caller changes its arguments.
        put = object.__setattr__
        put(self, "command", words[0])
        put(self, "args", tuple(words[1:]))
        if self.env is not None:
            put(self, "env", MappingProxyType(_checked(self.env)))
        if self.cwd is not None:
            put(self, "cwd", _text(self.cwd, "Stdio.cwd"))

    def transport(self, policy: Policy) -> Transport:
        """Return a transport that will start one such process."""
        return _StdioTransport(self, policy)

    def __repr__(self) -> str:
        shown = [repr(redact(self.command))]
        if self.args:
            shown.append(repr([text for text, _ in _hide_secrets(map(str, self.args))]))
        if self.env:
            # The names only: values are often secrets.
            shown.append(f"env={[redact(name) for name in sorted(self.env)]}")
        if not self.inherit_env:
            shown.append("inherit_env=False")
        if self.cwd is not None:
            shown.append(f"cwd={redact(self.cwd)!r}")
        return f"Stdio({', '.join(shown)})"

    def __rich_repr__(self) -> Iterable[str]:
        yield repr(self)


class StartedServer:
    """The address of a process that `launch` has started already, for one connection.

    Until `is_taken`, the code that started the process has to end it.
    """

    def __init__(self, address: Stdio, process: Popen[bytes]) -> None:
        self._address = address
        self._process = process
        self.is_taken = False

    def transport(self, policy: Policy) -> Transport:
        """Return the transport to the process, not yet connected."""
        if self.is_taken:
            raise TransportError("a process that was started beforehand connects once")
        self.is_taken = True
        return _StdioTransport(self._address, policy, self._process)


class _StdioTransport(FramedTransport):
    # Replaced by tests of the other way.
    _can_watch = staticmethod(can_watch)

    def __init__(self, address: Stdio, policy: Policy, process: Popen[bytes] | None = None) -> None:
        super().__init__(policy, "stdio")
        self._process = process  # one that was started already
        # Called with the bytes that the server writes to stderr.
        self.on_stderr: Callable[[bytes], object] = ignore
        self._address = address
        self._child: Child | LoopChild | None = None
        self._log_reader: FdReader | LoopReader | None = None
        self._output_end: asyncio.Future[None] | None = None
        self._stderr = _Stderr(address)
        self._was_paused = False  # since the last check
        self._is_finished = False  # the input of the server was ended
        self._is_closing = False

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative after a signal; None while the process runs."""
        if self._child is None or not self._child.exited.done():
            return None
        return self._child.exited.result()

    def pause(self) -> None:
        """Stop reading until `resume`."""
        self._was_paused = True
        super().pause()

    async def close(self) -> None:
        """Write what was sent, and end the process."""
        self._is_closing = True
        self.resume()
        await super().close()

    async def connect(self) -> None:
        """Start the process.

        Raises:
            TransportError: it cannot be started; the text names the command and the reason.
        """
        if self._child is not None or self._ending is not None:
            raise TransportError("a transport connects once")
        loop = asyncio.get_running_loop()
        self._output_end = loop.create_future()
        self._stderr.ended = loop.create_future()
        watches = self._can_watch(loop)
        child = self._watch(loop) if watches else await self._start_by_loop(loop)
        child.exited.add_done_callback(lambda _: self._lose("the server exited"))
        self._is_open = True

    def _watch(self, loop: asyncio.AbstractEventLoop) -> Child:
        process = self._process
        if process is None:
            command, env, cwd = _command(self._address)
            process = launch(command, env=env, cwd=cwd)
        self._child = child = Child(loop, process)
        try:
            self._writer = FdWriter(loop, child.stdin, self._drained, self._input_broke)
            self._reader = FdReader(loop, child.stdout, self._receive, self._output_ended)
            log = FdReader(loop, child.stderr, self._receive_log, self._stderr.end)
            self._log_reader = log
        except BaseException:  # a cancelled task too: nothing may be left open
            self._clear_away()
            self._child = None
            raise
        return child

    async def _start_by_loop(self, loop: asyncio.AbstractEventLoop) -> LoopChild:
        # Imported here: few event loops need it.
        from .loop_process import LoopChild

        assert self._process is None, "processes are started beforehand only where they are watched"
        command, env, cwd = _command(self._address)
        self._child = child = await LoopChild.start(loop, command, env=env, cwd=cwd)
        self._writer = child.writer(self._drained, self._input_broke)
        self._reader = child.reader(1, self._receive, self._output_ended)
        self._log_reader = child.reader(2, self._receive_log, self._stderr.end)
        return child

    # Events of the child

    def _receive_log(self, data: bytes) -> None:
        try:
            self.on_stderr(data)
        except Exception as error:  # noqa: BLE001  # a failed callback ends no connection
            log_raised(error, "stdio transport: on_stderr raised, log bytes dropped")
        self._stderr.receive(data)

    def _output_ended(self, error: OSError | None) -> None:
        if self._ends_later(partial(self._output_ended, error)):
            return  # an event loop may report the end of a pipe that is paused
        self._receive_end()
        if self._output_end is not None:
            self._output_end.set_result(None)
        self._lose("the server closed its output")

    def _input_broke(self, error: OSError) -> None:
        self._lose("the server closed its input")

    def _lose(self, reason: str) -> None:
        if self._ending is None:
            self._begin_to_end(self._end(reason))

    # Closing

    def _end_output(self) -> None:
        self._is_finished = True
        self._writer.close()
        if self._child is not None:
            self._child.close_stdin()

    async def _end(self, lost: str | None = None) -> None:
        child = self._child
        if child is None:
            return
        try:
            if lost is not None:
                await self._read_rest(child)
                self._report(self._loss(lost))
            await self._writer.finish(_REST_TIMEOUT_S)
            self._writer.close()
            child.close_stdin()
            await child.end(self._address.grace)
            await self._read_rest(child)
            self._clear_away()
            await child.released()
        finally:
            # Also when the loop shuts down and cancels this task.
            self._clear_away()
            self._report(None)

    async def _read_rest(self, child: Child | LoopChild) -> None:
        """Wait for the exit of the child and the end of its pipes, within bounds."""
        ends = [child.exited, self._output_end, self._stderr.ended]
        waits = 0
        while waits < _MAX_REST_WAITS:
            before, self._was_paused = self.received, self._is_paused
            _, missing = await asyncio.wait([e for e in ends if e], timeout=_REST_TIMEOUT_S)
            if self._was_paused and missing and not self._is_closing:
                continue  # the rest stays in the pipe until `resume`
            if not missing or (self.received == before and not self._is_behind):
                return
            waits += 1

    def _loss(self, reason: str) -> TransportError | None:
        status = self.exit_status
        if status == 0 and self._is_finished:
            return None
        if status is not None:
            reason = "the server exited"
            if status < 0:
                reason = f"the server was ended by {_signal_name(-status)}"
        return TransportError(reason, exit_status=status, stderr=tuple(self._stderr.lines))

    def _clear_away(self) -> None:
        self._writer.close()
        for reader in (self._reader, self._log_reader):
            if reader is not None:
                reader.close()
        if self._child is not None:
            self._child.discard()


class _Stderr:
    """The last lines of the server's log, with secrets hidden."""

    def __init__(self, address: Stdio) -> None:
        self.lines: deque[str] = deque(maxlen=_MAX_LOG_LINES)
        self.ended: asyncio.Future[None] | None = None
        self._on_line = address.on_stderr
        self._split = NewlineFraming(_MAX_LOG_LINE_BYTES)
        self._secrets = _secrets(address)

    def receive(self, data: bytes) -> None:
        self._take(self._split.feed(data))

    def end(self, error: OSError | None) -> None:
        self._take(self._split.end())
        if self.ended is not None:
            self.ended.set_result(None)

    def _take(self, lines: Iterable[Frame]) -> None:
        for line in lines:
            if isinstance(line, bytes):
                text = line.decode("utf-8", "replace")
            elif isinstance(line, Oversize):
                text = line.head.decode("utf-8", "replace") + "…"
            else:
                continue
            for secret in self._secrets:
                text = text.replace(secret, HIDDEN)
            self.lines.append(visible(text))
            if self._on_line is not None:
                try:
                    self._on_line(text)
                except Exception as error:  # noqa: BLE001  # as above
                    log_raised(error, "stdio transport: on_stderr raised, log line dropped")


def _text(given: object, place: str) -> str:
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):
        raise TypeError(f"{place} is a string or a path, not {_kind(text)}")
    return text


def _checked(env: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the variables; no error text quotes a value."""
    for name, value in env.items():
        if not isinstance(name, str):
            raise TypeError(f"Stdio.env has strings for names, not {_kind(name)}")
        if not isinstance(value, str):
            raise TypeError(f"Stdio.env[{show(name)}] is a string, not {_kind(value)}")
    return dict(env)


def _command(address: Stdio) -> tuple[list[str], dict[str, str], str | None]:
    """Return the command with its arguments, the environment, and the folder."""
    inherited: Mapping[str, str] = os.environ
    if not address.inherit_env:
        inherited = {name: os.environ[name] for name in _BASIC_VARIABLES if name in os.environ}
    given = address.env or {}
    if os.name == "nt":
        given = {name.upper(): value for name, value in given.items()}  # as in `os.environ`
    command = [str(address.command), *map(str, address.args)]
    cwd = None if address.cwd is None else str(address.cwd)
    return command, {**inherited, **given}, cwd


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def redacted_command(words: Iterable[str]) -> list[str]:
    """Return the words of a command, with the values of options such as `--token` hidden."""
    return [text for text, _ in _hide_secrets(words)]


def _hide_secrets(args: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield each argument with its secret hidden, and that secret, or ""."""
    previous = ""
    for arg in args:
        name, equals, value = arg.partition("=")
        if previous.startswith("-") and is_secret_name(previous) and not arg.startswith("-"):
            yield HIDDEN, arg
        elif equals and is_secret_name(name):
            yield f"{name}={HIDDEN}", value
        else:
            yield str(redact(arg)), ""
        previous = "" if equals else arg


def _secrets(address: Stdio) -> list[str]:
    """Return the secrets that the server was given, the longest first."""
    given = [secret for _, secret in _hide_secrets(map(str, address.args))]
    given += [value for name, value in (address.env or {}).items() if is_secret_name(name)]
    return sorted((s for s in given if len(s) >= _MIN_SECRET_LENGTH), key=len, reverse=True)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time one has no name
