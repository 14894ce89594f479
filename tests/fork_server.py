"""The process that `forked_python` forks: imports the library, then waits for requests.

A request is its length in four bytes, the descriptors, and an object. The new process writes its
id to the first descriptor when it is ready, and goes on as the command that was asked for.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import io
import json
import os
import platform
import runpy
import signal
import socket
import struct
import sys
import termios
import threading
import types
from importlib import import_module
from typing import Any, Final, TextIO

# What most programs need. All of it has to be fit for a fork: no threads, no open files.
_IMPORTED: Final = (
    "asyncio",
    "trunkline.cli.commands.call",
    "trunkline.cli.commands.serve",
    "trunkline.cli.commands.shell",
    "trunkline.cli.proxy.run",
    "trunkline.transports.http.server.http_server",
    "trunkline.transports.stdio.client",
)
# Makes the new process a child of the parent of this one.
_CLONE_PARENT: Final = 0x8000
_CLONE: Final = {"x86_64": 56, "aarch64": 220}
_MOST_DESCRIPTORS: Final = 64
# Above the numbers that a command asks for.
_OUT_OF_THE_WAY: Final = 512


def main() -> None:
    """Serve requests; return never, but in a new process, and when nobody can ask any more."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests and what they started
    for name in _IMPORTED:
        import_module(name)
    import trunkline

    for name in trunkline.__all__:
        getattr(trunkline, name)
    gc.collect()
    gc.freeze()
    while head_and_fds := _receive(requests):
        request, fds = head_and_fds
        if _fork() == 0:
            requests.close()
            _become(request, *fds)
            return
        for fd in fds:
            os.close(fd)


def _receive(requests: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    head, fds, _, _ = socket.recv_fds(requests, 4, _MOST_DESCRIPTORS)
    if len(head) < 4:
        return None
    left = struct.unpack("!I", head)[0]
    body = b""
    while len(body) < left:
        part = requests.recv(left - len(body))
        if not part:
            return None  # the tests were killed
        body += part
    return json.loads(body), fds


def _fork() -> int:
    """Fork a sibling; do around it what `os.fork` does."""
    python, libc = ctypes.pythonapi, ctypes.PyDLL(None)
    python.PyOS_BeforeFork()
    pid: int = libc.syscall(_CLONE[platform.machine()], _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid:
        python.PyOS_AfterFork_Parent()
    else:
        python.PyOS_AfterFork_Child()
    return pid


def _become(request: dict[str, Any], answer: int, *fds: int) -> None:
    """Take on what a process is started with, answer, and run the command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_kill = _pthread_kill
    if request["has_session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    answer, *fds_away = (_moved_away(fd) for fd in (answer, *fds))
    for fd, number in zip(fds_away, request["descriptors"], strict=True):
        os.dup2(fd, number)
        os.close(fd)
    if request["has_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    command = request["command"]
    words = command[1:]
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED")) or words[0] == "-u"
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    if words[0] == "-u":
        words = words[1:]
    sys.stdin = sys.__stdin__ = _stream(0, sys.__stdin__, is_unbuffered=False)
    sys.stdout = sys.__stdout__ = _stream(1, sys.__stdout__, is_unbuffered=is_unbuffered)
    sys.stderr = sys.__stderr__ = _stream(2, sys.__stderr__, is_unbuffered=is_unbuffered)
    os.write(answer, struct.pack("!I", os.getpid()))
    os.close(answer)
    sys.orig_argv = command
    _run(words)


def _pthread_kill(thread: int, number: int, send: Any = signal.pthread_kill) -> None:
    """Send a thread a signal. The C library has the main one by its id before the fork."""
    if thread == threading.main_thread().ident:
        os.kill(os.getpid(), number)  # Linux gives it to the main thread
    else:
        send(thread, number)


def _moved_away(fd: int) -> int:
    """Return the same descriptor under a number that no command asks for."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
    os.close(fd)
    return moved


def _stream(fd: int, like: TextIO, *, is_unbuffered: bool) -> TextIO:
    """Return a standard stream as the interpreter makes it."""
    mode, buffering = "rb" if fd == 0 else "wb", 0 if is_unbuffered else -1
    raw = open(fd, mode, buffering=buffering, closefd=False)  # noqa: SIM115  # of the process
    return io.TextIOWrapper(
        raw,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=not is_unbuffered and (fd == 2 or raw.isatty()),
        write_through=is_unbuffered,
    )


def _run(words: list[str]) -> None:
    """Run a module or a script as the main one."""
    main_module = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    if words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        sys.path[0] = os.getcwd()
        runpy._run_module_as_main(words[1])
        return
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
    main_module.__file__ = os.path.abspath(words[0])
    with open(words[0], "rb") as file:
        code = compile(file.read(), main_module.__file__, "exec")
    exec(code, main_module.__dict__)


main()
