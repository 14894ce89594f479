"""Starts Python programs by forking a process that has imported the library already.

A program that imports the library costs 100 ms of CPU before its first line; a fork costs 20 ms,
most of it when the interpreter exits. Tests start more than a thousand programs, so `install()`
makes `subprocess.Popen` fork one for

    python -u server.py ARGUMENTS
    python -m trunkline ARGUMENTS

where nothing else is asked of the interpreter. The process is a child of the test process as any
other, with the descriptors, folder, environment and session that were asked for. Any other
command is executed as usual, `python -c` among them, and so are the processes that a forked one
starts. A test that checks what its program imports uses `-c` or `NEW_PYTHON`.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

# An interpreter that is not forked: `-q` means nothing to a program.
NEW_PYTHON: Final = (sys.executable, "-q")

_SERVER: Final = Path(__file__).with_name("fork_server.py")
# Modules that may find the library imported; others want to see it before.
_MODULES: Final = ("trunkline", "tests.conversation.app")
# Makes the terminal that it was given the controlling one, for Ctrl-C, and becomes the command.
_LAUNCH: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
_IN_TERMINAL: Final = [sys.executable, "-S", "-c", _LAUNCH]
# Variables that are read when the interpreter starts, or when the library is imported.
_READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "TRUNKLINE_")
# Of these, variables that a forked process follows.
_FOLLOWED: Final = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
# What `Popen` has to be told for a fork to do it.
_PLAIN: Final = {
    "executable": None,
    "preexec_fn": None,
    "close_fds": True,
    "shell": False,
    "restore_signals": True,
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
    "process_group": -1,
}

_execute_child: Final[Any] = getattr(subprocess.Popen, "_execute_child")  # noqa: B009  # no stub
_PARAMETERS: Final = tuple(inspect.signature(_execute_child).parameters)[1:]
_PIPES: Final = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def in_terminal(command: list[str]) -> list[str]:
    """Return a command that takes its standard input for its controlling terminal."""
    return [*_IN_TERMINAL, *command]


def is_forking() -> bool:
    """Return True where `install` has an effect: the fork server needs Linux and CPython.

    Coverage has to see each process from its start.
    """
    is_known = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
    is_covered = "COVERAGE_PROCESS_START" in os.environ
    return is_known and sys.implementation.name == "cpython" and not is_covered


def install() -> None:
    """Make `subprocess.Popen` of this process fork what can be forked."""
    if not is_forking():
        return
    # Now, because tests look for processes and descriptors that are left.
    server = _ForkServer()

    def execute_child(process: Any, *arguments: Any) -> None:
        options = dict(zip(_PARAMETERS, arguments, strict=True))
        request = _request(options)
        pid = server.fork(request, _descriptors(options)) if request is not None else None
        if pid is None:
            return _execute_child(process, *arguments)
        process.pid = pid
        process._child_created = True
        process._close_pipe_fds(*(options[name] for name in _PIPES))
        return None

    setattr(subprocess.Popen, "_execute_child", execute_child)  # noqa: B010  # no stub


def _request(options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the request to the fork server; None for a command that cannot be forked."""
    words = options["args"]
    if isinstance(words, str | bytes | os.PathLike):
        return None
    if any(options[name] != plain for name, plain in _PLAIN.items()):
        return None
    words = [os.fsdecode(word) for word in words]
    has_terminal = words[: len(_IN_TERMINAL)] == _IN_TERMINAL
    if has_terminal:
        words = words[len(_IN_TERMINAL) :]
    try:
        folder = os.path.abspath(os.fsdecode(options["cwd"] or "."))
    except FileNotFoundError:
        return None  # the current folder was removed
    env = {os.fsdecode(name): os.fsdecode(value) for name, value in _environment(options).items()}
    if not _is_forkable(words, folder):
        return None
    return {
        "command": words,
        "folder": folder,
        "environment": env,
        "has_session": options["start_new_session"],
        "has_terminal": has_terminal,
        "descriptors": [0, 1, 2, *options["pass_fds"]],
    }


def _is_forkable(words: list[str], folder: str) -> bool:
    """Return True for a script that exists, or a module of `_MODULES`."""
    if not words or words[0] != sys.executable or not os.path.isdir(folder):
        return False
    rest = words[2:] if words[1:2] == ["-u"] else words[1:]
    if rest[:1] == ["-m"]:
        return rest[1:2] != [] and rest[1] in _MODULES
    return rest != [] and rest[0].endswith(".py") and os.path.isfile(os.path.join(folder, rest[0]))


def _environment(options: dict[str, Any]) -> Any:
    return os.environ if options["env"] is None else options["env"]


def _at_start(env: dict[str, str]) -> dict[str, str]:
    """Return the variables that have to be the same."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith(_READ_AT_START) and name not in _FOLLOWED
    }


def _descriptors(options: dict[str, Any]) -> list[int]:
    """Return what the child gets as 0, 1 and 2 (-1: as here), and what it keeps besides."""
    given = (options["p2cread"], options["c2pwrite"], options["errwrite"])
    return [number if fd == -1 else fd for number, fd in enumerate(given)] + [*options["pass_fds"]]


class _ForkServer:
    """The process that is forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._environment = _at_start(dict(os.environ))
        self._socket, theirs = socket.socketpair()
        with theirs:
            # It ends when the other end of the socket is closed.
            self._process = subprocess.Popen(
                [sys.executable, _SERVER, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> int | None:
        """Return the id of a new child; None if there is no server, or it would differ."""
        if _at_start(request["environment"]) != self._environment:
            return None
        ours, theirs = os.pipe()
        try:
            body = json.dumps(request).encode()
            with self._lock:
                head = struct.pack("!I", len(body))
                socket.send_fds(self._socket, [head], [theirs, *descriptors])
                self._socket.sendall(body)
        except OSError:  # it has ended: the library cannot be imported
            os.close(ours)
            return None
        finally:
            os.close(theirs)
        with open(ours, "rb") as file:
            answer = file.read()
        return struct.unpack("!I", answer)[0] if len(answer) == 4 else None
