"""What holds for every test."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take Ctrl-C as a terminal would send it, however this run was started.

    Whoever starts a program in the background may have it ignore SIGINT. It would hand that on to
    every process that a test starts to interrupt it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
