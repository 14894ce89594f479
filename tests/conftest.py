"""What holds for every test."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take signals as a terminal would send them, however this run was started.

    Whoever starts a program in the background, or with nohup, may have it ignore SIGINT or SIGHUP.
    It would hand that on to every process that a test starts to interrupt it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # This run itself goes on; what it starts has the default.
        signal.signal(signal.SIGHUP, lambda *_: None)
