"""The client's end of stdio: a server that is started as a child process.

`Stdio` is the address, a value; each transport made from it is one process. Starting and ending
it is done in `processes`; what the frames say is nobody's business here.

The rules that live here, and only here:

* stdout carries frames. stderr is a log, whatever it says: its lines are kept for the day the
  server dies, and handed to whoever asked for them. [MCP 2026-07-28, basic/transports/stdio]
* An end that we did not ask for is an error, even with exit status 0: somebody was talking to
  this server. It is told after everything the server wrote, with its status and last words;
  whoever paused us has all of it when they go on. Once `finish` was called, an exit with 0 is
  in order.
* What was handed in as a secret is not shown: not in a repr, and not in the server's log.
* What is kept of the log a terminal can show without acting on it; `on_stderr` gets it raw.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ...errors import TransportError, visible
from ...jsonrpc.framing import NewlineFraming, Oversize
from ...redaction import HIDDEN, is_secret_name, redact, show
from ..base import ignore
from ..framed import FramedTransport
from ..io.fd import FdReader, FdWriter, check_platform
from .launching import launch
from .process import Child

if TYPE_CHECKING:
    from collections.abc import Iterable
    from subprocess import Popen

    from ...jsonrpc.policy import Policy
    from ..base import Frame, Transport

__all__ = ["Begun", "Stdio"]

_log: Final = logging.getLogger("trunkline.transports")

# What is kept of the server's log: enough for a traceback, too little to fill memory.
_LINES_KEPT: Final = 20
# Of a line longer than this only the beginning is kept; a log may hold a line without end.
_LINE_LIMIT: Final = 8192
# When something ended, how long the rest may take: the status, and what was written before.
# While bytes still come it is waited for again, up to a bound: others may hold the pipe.
_REST_WAIT: Final = 1.0
_REST_WAITS: Final = 5
# A shorter value would be found in the middle of innocent words.
_SHORTEST_SECRET: Final = 6
# What a program needs of the environment to find its way: none of it is where secrets are.
_LEAST_INHERITED: Final = (
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
)


# A client remembers by the address, weakly, which era a server belongs to.
@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Stdio:
    """A server that is started by a command and spoken to over its standard streams.

    `Stdio("python", ["server.py"])` and `Stdio(["python", "server.py"])` are the same. The
    command is looked up on PATH and started without a shell. The child inherits our whole
    environment, or with `inherit_env=False` only PATH, HOME and the like; `env` adds to it, or
    replaces what has the same name. `on_stderr` is called, on the event loop, with each line of
    the server's log that is not blank; what `env` and `args` hold under a name like `API_KEY`
    or `--token` is hidden in it. When closing, the server is given `grace` seconds to exit by
    itself, and as many again after SIGTERM.
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
            raise ValueError(f"Stdio.grace is not negative: {self.grace}")
        # A value, whatever the caller does to what was handed in.
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
            shown.append(repr([text for text, _ in _judged(map(str, self.args))]))
        if self.env:
            # The names only: a variable is where people put secrets.
            shown.append(f"env={[redact(name) for name in sorted(self.env)]}")
        if not self.inherit_env:
            shown.append("inherit_env=False")
        if self.cwd is not None:
            shown.append(f"cwd={redact(self.cwd)!r}")
        return f"Stdio({', '.join(shown)})"

    def __rich_repr__(self) -> Iterable[str]:
        yield repr(self)


class Begun:
    """A server that was started before there was anything to talk to it with.

    It is an address that works once. Until then whoever started the process ends it.
    """

    def __init__(self, address: Stdio, process: Popen[bytes]) -> None:
        self._address = address
        self._process = process
        self.is_taken = False

    def transport(self, policy: Policy) -> Transport:
        """Return the one connection there is, not yet connected."""
        if self.is_taken:
            raise TransportError("a process that was started for one connection has had it")
        self.is_taken = True
        return _StdioTransport(self._address, policy, self._process)


class _StdioTransport(FramedTransport):
    """One process, and the conversation with it."""

    def __init__(self, address: Stdio, policy: Policy, process: Popen[bytes] | None = None) -> None:
        super().__init__(policy, "stdio")
        self._process = process  # one that was started already
        # Called with what the server writes on stderr, as it is and as it comes.
        self.on_stderr: Callable[[bytes], object] = ignore
        self._address = address
        self._child: Child | None = None
        self._log_reader: FdReader | None = None
        self._received = 0  # bytes, to see whether more is still coming
        self._output_end: asyncio.Future[None] | None = None
        self._stderr = _Stderr(address)
        self._is_paused = False
        self._was_paused = False  # since it was last looked at
        self._is_finished = False  # the server was told that nothing more comes
        self._is_closing = False

    @property
    def exit_status(self) -> int | None:
        """What the process ended with, negative if by a signal; None while it runs."""
        if self._child is None or not self._child.exited.done():
            return None
        return self._child.exited.result()

    def pause(self) -> None:
        """Read nothing more until `resume`."""
        self._is_paused = self._was_paused = True
        super().pause()

    def resume(self) -> None:
        """Read on."""
        self._is_paused = False
        super().resume()

    async def close(self) -> None:
        """Write what was sent, and end the process."""
        # Whoever closes does not go on later.
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
        address = self._address
        self._output_end = loop.create_future()
        self._stderr.ended = loop.create_future()
        self._child = child = Child(loop, self._process or _launched(address))
        try:
            self._writer = FdWriter(loop, child.stdin, self._drained, self._input_broke)
            self._reader = FdReader(loop, child.stdout, self._receive, self._output_ended)
            log = FdReader(loop, child.stderr, self._receive_log, self._stderr.end)
            self._log_reader = log
        except BaseException:  # a cancelled task too: nothing may be left open
            self._clear_away()
            self._child = None
            raise
        child.exited.add_done_callback(lambda _: self._lose("the server exited"))
        self._is_open = True

    # What the child does

    def _receive(self, data: bytes) -> None:
        self._received += len(data)
        super()._receive(data)

    def _receive_log(self, data: bytes) -> None:
        try:
            self.on_stderr(data)
        except Exception:  # noqa: BLE001  # a fault in showing a log ends no connection
            _log.exception("on_stderr raised")
        self._stderr.receive(data)

    def _output_ended(self, error: OSError | None) -> None:
        self._receive_end()
        if self._output_end is not None:
            self._output_end.set_result(None)
        self._lose("the server closed its output")

    def _input_broke(self, error: OSError) -> None:
        self._lose("the server closed its input")

    def _lose(self, reason: str) -> None:
        """Begin to end, because the other side did."""
        if self._ending is None:
            self._begin_to_end(self._end(reason))

    # How it ends

    def _end_output(self) -> None:
        self._is_finished = True
        if self._writer is not None:
            self._writer.close()
        if self._child is not None:
            self._child.close_stdin()

    async def _end(self, lost: str | None = None) -> None:
        child = self._child
        if child is None:
            return
        try:
            if lost is not None:
                await self._hear_the_rest(child)
                self._report(self._loss(lost))
            if self._writer is not None:
                await self._writer.finish(_REST_WAIT)
                self._writer.close()
            child.close_stdin()
            await child.end(self._address.grace)
            await self._hear_the_rest(child)
        finally:
            # Also when the loop is being shut down and cancels us.
            self._clear_away()
            self._report(None)

    async def _hear_the_rest(self, child: Child) -> None:
        """Wait, not for long, until the child is gone and what it wrote is read."""
        ends = [child.exited, self._output_end, self._stderr.ended]
        waits = 0
        while waits < _REST_WAITS:
            before, self._was_paused = self._received, self._is_paused
            _, missing = await asyncio.wait([e for e in ends if e], timeout=_REST_WAIT)
            if self._was_paused and missing and not self._is_closing:
                continue  # the rest is where it was, until whoever paused us goes on
            if not missing or self._received == before:
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
        if self._writer is not None:
            self._writer.close()
        for reader in (self._reader, self._log_reader):
            if reader is not None:
                reader.close()
        if self._child is not None:
            self._child.discard()


class _Stderr:
    """The server's log: its last lines, without the secrets it was given."""

    def __init__(self, address: Stdio) -> None:
        self.lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self.ended: asyncio.Future[None] | None = None
        self._on_line = address.on_stderr
        self._split = NewlineFraming(_LINE_LIMIT)
        self._secrets = _secrets(address)

    def receive(self, data: bytes) -> None:
        """Take in the lines that `data` completes."""
        self._take(self._split.feed(data))

    def end(self, error: OSError | None) -> None:
        """Take in a last line that lacks its end."""
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
            self._tell(text)

    def _tell(self, line: str) -> None:
        if self._on_line is not None:
            try:
                self._on_line(line)
            except Exception:  # noqa: BLE001  # a fault in showing a log ends no connection
                _log.exception("on_stderr raised")


def _text(given: object, place: str) -> str:
    """Return an argument or a path as the text it is started with."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str):
        raise TypeError(f"{place} is a text or a path, not {_kind(text)}")
    return text


def _checked(env: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the variables, all of which are texts; a value is never quoted."""
    for name, value in env.items():
        if not isinstance(name, str):
            raise TypeError(f"Stdio.env has texts for names, not {_kind(name)}")
        if not isinstance(value, str):
            raise TypeError(f"Stdio.env[{show(name)}] is a text, not {_kind(value)}")
    return dict(env)


def _launched(address: Stdio) -> Popen[bytes]:
    """Start the process of an address.

    Raises:
        TransportError: it cannot be started, or this platform lacks what it takes to talk to it
            and to end it; then it was not tried.
    """
    check_platform()
    return launch(
        [str(address.command), *map(str, address.args)],
        env=_environment(address),
        cwd=None if address.cwd is None else str(address.cwd),
    )


def _environment(address: Stdio) -> dict[str, str]:
    """Return the environment of a process that is started now."""
    inherited: Mapping[str, str] = os.environ
    if not address.inherit_env:
        inherited = {name: os.environ[name] for name in _LEAST_INHERITED if name in os.environ}
    return {**inherited, **(address.env or {})}


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _judged(args: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield each argument as it may be shown, with the secret that it holds, or ""."""
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
    """Return what the server was given and must not be shown, the longest first."""
    given = [secret for _, secret in _judged(map(str, address.args))]
    given += [value for name, value in (address.env or {}).items() if is_secret_name(name)]
    return sorted((s for s in given if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time one has no name
