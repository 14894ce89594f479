"""Child processes: start one, watch it, and terminate it with its process group.

`launch` and `discard` need no event loop, and this module loads none: a program can start its
server first and load the client while the server loads.

The rules that live here, and only here:

* No shell is involved.
* A child leads a session of its own. Ctrl-C in our terminal does not reach it, and the processes
  it starts are in its group and are terminated with it, unless they leave the group.
* Termination escalates: close stdin, then SIGTERM, then SIGKILL, with a bounded wait after
  each.                                                  [MCP 2026-07-28, basic/transports/stdio]
* A child whose parent dies sees the end of its stdin, and no signal: a death signal would need
  code that runs between fork and exec, which is not safe with threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...errors import TransportError
from ...redaction import show

if TYPE_CHECKING:
    import asyncio

__all__ = ["Child", "discard", "launch", "start_failure"]

# The time the kernel is given to end a process after SIGKILL.
_KILL_TIMEOUT_S: Final = 1.0
# A group that outlives its leader is polled: only the kernel knows its members.
_POLL_INTERVAL_S: Final = 0.01


def launch(
    command: Sequence[str], *, env: Mapping[str, str] | None, cwd: str | None
) -> subprocess.Popen[bytes]:
    """Start a process with three pipes. This takes about a millisecond: Python forks by vfork.

    Raises:
        TransportError: it cannot be started; the text names the command and the reason, never
            the arguments or the environment.
    """
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise start_failure(command[0], cwd, error) from None


def start_failure(program: str, cwd: str | None, error: OSError | ValueError) -> TransportError:
    """Return the error that names the program, or the folder, and the reason."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # The system names the one of the two that it could not use.
    is_folder = cwd is not None and isinstance(error, OSError) and error.filename == cwd
    where = f" in {show(cwd)}" if is_folder else ""
    # In brackets: behind a colon, a name like `get-token` would have it hidden as its secret.
    return TransportError(f"cannot start {show(program)}{where} ({why})")


def discard(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group, reap it, and close its pipes."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGKILL)
    _release(process)


def _signal_group(pid: int, number: int) -> bool:
    """Signal a process group; return True if it has members."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False  # empty, or only zombies, for which macOS raises PermissionError
    return True


def _release(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_KILL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel, where no signal reaches it
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


class Child:
    """A running child process, watched by an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes]) -> None:
        """Watch a process that `launch` has started; if that fails, it is killed."""
        self._process = process
        self.pid = self._process.pid
        # Done when the process has exited and was reaped; the result is its exit status.
        self.exited: asyncio.Future[int] = loop.create_future()
        self._loop = loop
        self._pidfd: int | None = None
        self._waiter: threading.Thread | None = None
        self._is_known_gone = False
        try:
            self._watch()
        except BaseException:  # a cancelled task too: no child is left unwatched
            self.discard()
            raise

    @property
    def stdin(self) -> int:
        """The descriptor of our end of its stdin."""
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def stdout(self) -> int:
        """The descriptor of our end of its stdout."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def stderr(self) -> int:
        """The descriptor of our end of its stderr."""
        assert self._process.stderr is not None
        return self._process.stderr.fileno()

    def close_stdin(self) -> None:
        """End its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def end(self, grace: float) -> None:
        """Wait `grace` seconds for the process to exit, then terminate it and its group."""
        import asyncio  # here: see the head of this module

        await asyncio.wait((self.exited,), timeout=grace)
        if self._is_gone():
            return
        self._signal(signal.SIGTERM)
        deadline = self._loop.time() + grace
        while not self._is_gone() and self._loop.time() < deadline:
            await asyncio.sleep(_POLL_INTERVAL_S)
        if self._is_gone():
            return
        self._signal(signal.SIGKILL)
        # The rest of the group is not waited for: it is init that reaps orphans, and a container
        # may have none.
        await asyncio.wait((self.exited,), timeout=_KILL_TIMEOUT_S)

    async def released(self) -> None:
        """Return when `discard` has taken effect, which it has when it returns."""

    def discard(self) -> None:
        """Kill the process and its group, reap it, and close its pipes."""
        if not self._is_gone():
            self._signal(signal.SIGKILL)
        _release(self._process)
        self._reap()
        self._unwatch()

    def _is_gone(self) -> bool:
        """Return True if the process and all of its group have exited."""
        if not self._is_known_gone:
            has_exited = self._process.returncode is not None
            self._is_known_gone = has_exited and not self._signal(0)
        return self._is_known_gone

    def _signal(self, number: int) -> bool:
        # The number of a group is not reused while it has members, or a leader that was not
        # reaped. Once it has neither it is known to be gone, and never signalled again.
        return _signal_group(self.pid, number)

    def _watch(self) -> None:
        if sys.platform == "linux":
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except OSError:
                pass  # an old kernel, or a sandbox without it
            else:
                self._loop.add_reader(self._pidfd, self._reap)
                return
        self._waiter = threading.Thread(
            target=self._wait, name=f"trunkline child {self.pid}", daemon=True
        )
        self._waiter.start()

    def _wait(self) -> None:
        self._process.wait()
        try:
            self._loop.call_soon_threadsafe(self._reap)
        except RuntimeError:
            pass  # the loop is closed

    def _reap(self) -> None:
        status = self._process.poll()
        self._is_gone()  # looked at now, before its number can be reused
        if status is not None and not self.exited.done():
            self.exited.set_result(status)
            self._unwatch()

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._waiter is not None:
            self._waiter.join(_KILL_TIMEOUT_S)
            self._waiter = None
