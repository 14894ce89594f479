"""Runs a module as on a system without POSIX: `python -m tests.without_posix MODULE ARG...`.

What Windows does not have is hidden from the library, and from the library alone: modules,
functions and constants, the signals and the descriptors of the event loop. The standard library
still finds them, as this is not Windows.
"""

from __future__ import annotations

import asyncio
import asyncio.selector_events
import asyncio.unix_events
import builtins
import os
import runpy
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: Final = _words(
    "fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog termios tty"
)

# What the standard library has on Linux and not on Windows, in any version since 3.11.
NAMES: Final[dict[str, frozenset[str]]] = {
    "os": _words("""
        O_ACCMODE O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_FSYNC O_LARGEFILE O_NDELAY
        O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_RSYNC O_SYNC O_TMPFILE P_ALL P_PGID P_PID
        P_PIDFD RTLD_GLOBAL RTLD_LAZY RTLD_LOCAL RTLD_NOW WCONTINUED WCOREDUMP WEXITED WEXITSTATUS
        WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG
        WUNTRACED chown chroot confstr copy_file_range ctermid environb eventfd fchdir fchmod fchown
        fdatasync fork forkpty fpathconf fstatvfs fwalk get_blocking getegid getenvb geteuid getgid
        getgrouplist getgroups getloadavg getpgid getpgrp getpriority getrandom getresgid getresuid
        getsid getuid getxattr initgroups killpg lchown listxattr lockf login_tty major makedev
        memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open pipe2 posix_fadvise
        posix_fallocate posix_spawn posix_spawnp pread preadv pwrite pwritev readv register_at_fork
        removexattr sched_getaffinity sched_setaffinity sched_yield sendfile set_blocking setegid
        seteuid setgid setgroups setpgid setpgrp setpriority setregid setresgid setresuid setreuid
        setsid setuid setxattr splice statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait
        wait3 wait4 waitid writev
        """),
    "signal": _words("""
        ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL
        SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTOP SIGSYS SIGTRAP SIGTSTP
        SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK
        SIG_SETMASK SIG_UNBLOCK alarm getitimer pause pidfd_send_signal pthread_kill
        pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
        """),
    "select": _words(
        "PIPE_BUF POLLERR POLLHUP POLLIN POLLNVAL POLLOUT POLLPRI POLLRDHUP epoll poll"
    ),
    "socket": _words("AF_UNIX SO_PEERCRED SO_REUSEPORT recv_fds send_fds"),
}

# The loop itself uses some of those that remove.
_LOOP_CALLS: Final = ("add_reader", "add_signal_handler", "add_writer")


def hide() -> None:
    """Hide from the library, in this process, what Windows does not have."""
    for module in (os, select, signal, socket):
        _hide_names(module, NAMES[module.__name__])
    _hide_modules()
    for name in _LOOP_CALLS:
        refused = getattr(asyncio.AbstractEventLoop, name)
        for loop in (
            asyncio.selector_events.BaseSelectorEventLoop,
            asyncio.unix_events.SelectorEventLoop,
        ):
            if name in vars(loop):
                setattr(loop, name, refused)


def _hide_names(module: ModuleType, names: frozenset[str]) -> None:
    hidden = {name: vars(module)[name] for name in names if name in vars(module)}
    if module is socket:
        # Its own functions use these as global names.
        hidden.pop("AF_UNIX", None)
    for name in hidden:
        delattr(module, name)

    def lookup(name: str) -> Any:
        if name in hidden and not _is_ours(sys._getframe(1).f_globals):
            return hidden[name]
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    module.__getattr__ = lookup  # type: ignore[method-assign]  # PEP 562


def _hide_modules() -> None:
    found = builtins.__import__

    def import_(name: str, globals: Any = None, *more: Any, **named: Any) -> Any:
        if name in MODULES and _is_ours(globals or {}):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found(name, globals, *more, **named)

    builtins.__import__ = import_


def _is_ours(globals: dict[str, Any]) -> bool:
    return str(globals.get("__name__", "")).partition(".")[0] == "trunkline"


@contextmanager
def children_without_threads() -> Iterator[None]:
    """Have asyncio watch children by descriptor, as it does from 3.12 on.

    A thread for each child would end only after all that can be waited for.
    """
    if sys.version_info >= (3, 12):
        yield
        return
    before = asyncio.get_child_watcher()
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    try:
        yield
    finally:
        asyncio.set_child_watcher(before)


if __name__ == "__main__":
    hide()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
