"""A child process and its group: watched, and ended for certain.

Bytes and frames are not its business: it hands out the three pipes and says when the process
is gone. How one is started is in `launching`.

The rules that live here, and only here:

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
from typing import Final

from .launching import KILL_WAIT

__all__ = ["Child"]

# How often a group is looked at that outlives its leader: only the kernel knows its members.
_LOOK_AGAIN: Final = 0.01


class Child:
    """A process that was started, with the pipes to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes]) -> None:
        """Watch a process that `launch` has started; if that fails, it is ended."""
        self._process = process
        self.pid = self._process.pid
        # Done when the process is gone, and no longer a zombie; its status is the result.
        self.exited: asyncio.Future[int] = loop.create_future()
        self._loop = loop
        self._pidfd: int | None = None
        self._waiter: threading.Thread | None = None
        self._is_known_gone = False
        try:
            self._watch()
        except BaseException:  # whatever it was, a child that nobody watches is not left
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
        await asyncio.wait((self.exited,), timeout=KILL_WAIT)

    def discard(self) -> None:
        """Leave nothing behind, without waiting for anybody's consent."""
        if not self._is_gone():
            self._signal(signal.SIGKILL)
        try:
            self._process.wait(KILL_WAIT)
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
            self._waiter.join(KILL_WAIT)
            self._waiter = None
