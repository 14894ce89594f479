"""A child process and its group: started, watched, and ended for certain.

Bytes and frames are not its business: it hands out the three pipes and says when the process
is gone. No shell is ever involved.

The rules that live here, and only here:

* A child leads a session of its own. Ctrl-C in our terminal is for us; and whatever the child
  starts is in its group, and is ended with it. (What leaves the group on purpose is free.)
* Ending is asked for, then demanded: its input is closed, SIGTERM, SIGKILL, with a bounded
  wait after each.                                       [MCP 2026-07-28, basic/transports/stdio]
* A child whose parent dies is told by the end of its input, and by nothing else: a death
  signal would need code that runs between fork and exec, which is not safe with threads.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from ..errors import TransportError
from ..redaction import show
from .pipes import check_platform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Child"]

# How often a group is looked at that outlives its leader: only the kernel knows its members.
_LOOK_AGAIN: Final = 0.01
# How long the kernel may take to end what was sent SIGKILL.
_KILL_WAIT: Final = 1.0


class Child:
    """A process that was started, with the pipes to it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | None,
    ) -> None:
        """Start the process. This takes about a millisecond: Python forks without copying.

        Raises:
            TransportError: it cannot be started; the text names the command and the reason,
                never the arguments or the environment. Or this platform lacks what it takes to
                talk to it and to end it; then it was not tried.
        """
        check_platform()
        try:
            self._process = subprocess.Popen(
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
            raise TransportError(_why_not(command[0], cwd, error)) from None
        self.pid = self._process.pid
        # Done when the process is gone, and no longer a zombie; its status is the result.
        self.exited: asyncio.Future[int] = loop.create_future()
        self._loop = loop
        self._pidfd: int | None = None
        self._waiter: threading.Thread | None = None
        self._is_known_gone = False
        try:
            self._watch()
        except BaseException:
            self.discard()
            raise

    @property
    def stdin(self) -> int:
        """The descriptor to write to."""
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def stdout(self) -> int:
        """The descriptor to read from."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def stderr(self) -> int:
        """The descriptor to read its log from."""
        assert self._process.stderr is not None
        return self._process.stderr.fileno()

    def close_stdin(self) -> None:
        """Tell the process that nothing more will come."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def end(self, grace: float) -> None:
        """Wait `grace` seconds for the process to exit, then make it, and what it started."""
        await asyncio.wait((self.exited,), timeout=grace)
        if self._is_gone():
            return
        self._signal(signal.SIGTERM)
        await self._wait_until_gone(grace)
        if self._is_gone():
            return
        self._signal(signal.SIGKILL)
        # Not for the others: nobody outlives this signal, but somebody else has to collect them,
        # and in a container that may be nobody.
        await asyncio.wait((self.exited,), timeout=_KILL_WAIT)

    def discard(self) -> None:
        """Leave nothing behind, without waiting for anybody's consent."""
        if not self._is_gone():
            self._signal(signal.SIGKILL)
        try:
            self._process.wait(_KILL_WAIT)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel, where no signal reaches it
        self._collect()
        self._unwatch()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _is_gone(self) -> bool:
        """Say whether the process and all of its group are gone."""
        if not self._is_known_gone:
            has_exited = self._process.returncode is not None
            self._is_known_gone = has_exited and not self._signal(0)
        return self._is_known_gone

    def _signal(self, number: int) -> bool:
        """Signal the group; say whether there is one.

        Its number is not given to another while it has members, or a leader that was not
        collected. Once it has neither it is known to be gone, and never signalled again.
        """
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False  # nobody, or only zombies (as macOS puts it)
        return True

    async def _wait_until_gone(self, patience: float) -> None:
        deadline = self._loop.time() + patience
        while not self._is_gone() and self._loop.time() < deadline:
            await asyncio.sleep(_LOOK_AGAIN)

    def _watch(self) -> None:
        """Notice the exit: by a descriptor where there is such a thing, else by a thread."""
        if sys.platform == "linux":
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except OSError:
                pass  # an old kernel, or a sandbox without it
            else:
                self._loop.add_reader(self._pidfd, self._collect)
                return
        self._waiter = threading.Thread(
            target=self._wait, name=f"trunkline child {self.pid}", daemon=True
        )
        self._waiter.start()

    def _wait(self) -> None:
        self._process.wait()
        try:
            self._loop.call_soon_threadsafe(self._collect)
        except RuntimeError:
            pass  # the loop is closed: nobody wants to know

    def _collect(self) -> None:
        """Take the status, which ends the zombie."""
        status = self._process.poll()
        self._is_gone()  # looked at now, before its number can be somebody else's
        if status is not None and not self.exited.done():
            self.exited.set_result(status)
            self._unwatch()

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._waiter is not None:
            self._waiter.join(_KILL_WAIT)
            self._waiter = None


def _why_not(command: str, cwd: str | None, error: Exception) -> str:
    """Return why a command cannot be started."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # In brackets: behind a colon, a name like `get-token` would have it hidden as its secret.
    # The system says which of the two names it could not use.
    if cwd is not None and isinstance(error, OSError) and error.filename == cwd:
        return f"cannot start {show(command)} in {show(cwd)} ({why})"
    return f"cannot start {show(command)} ({why})"
