"""Starting a child process, and doing away with one: without an event loop.

Loads next to nothing, so that a program can start its server first and load what it takes to
talk to it while that loads too. `processes` watches a child from then on.

* No shell is ever involved.
* A child leads a session of its own. Ctrl-C in our terminal is for us; and whatever the child
  starts is in its group, and is ended with it. (What leaves the group on purpose is free.)
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from ...errors import TransportError
from ...redaction import show

__all__ = ["KILL_WAIT", "discard", "launch"]

# How long the kernel may take to end what was sent SIGKILL.
KILL_WAIT: Final = 1.0


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
        raise TransportError(_why_not(command[0], cwd, error)) from None


def discard(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group at once, and leave nothing of it."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it has just left
    try:
        process.wait(KILL_WAIT)
    except subprocess.TimeoutExpired:
        pass  # stuck in the kernel, where no signal reaches it
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _why_not(command: str, cwd: str | None, error: Exception) -> str:
    """Return why a command cannot be started."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # In brackets: behind a colon, a name like `get-token` would have it hidden as its secret.
    # The system says which of the two names it could not use.
    if cwd is not None and isinstance(error, OSError) and error.filename == cwd:
        return f"cannot start {show(command)} in {show(cwd)} ({why})"
    return f"cannot start {show(command)} ({why})"
