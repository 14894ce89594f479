"""Signal handling of verbs: SIGTERM and SIGHUP end a verb as Ctrl-C does.

For verbs that would leave a child process or a terminal without echo behind. Servers handle
signals themselves.

The rules that live here, and only here:

* A signal that was ignored at the start stays ignored, as under `nohup`.
* SIGTERM and SIGHUP call the current handler of SIGINT.
* During an import they are deferred: C modules may crash when their initialisation is interrupted.
* While a child is started or ended, signals are deferred: an interrupted start would leave a
  child that cannot be ended.
* A verb that stays, such as `shell`, may handle Ctrl-C itself; SIGTERM and SIGHUP still end it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from . import send_again

__all__ = ["Terminated", "clean_termination", "ctrl_c_handled", "signals_deferred"]

# Windows has no SIGHUP.
_ENDING: Final = tuple(
    number
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None))
    if isinstance(number, signal.Signals)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP ended a verb; `status` is the exit status, 128 plus its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


@contextmanager
def clean_termination() -> Iterator[None]:
    """Make SIGTERM and SIGHUP act as Ctrl-C in this block.

    Raises:
        Terminated: one of them arrived.
    """
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            _repeat_soon(number)
            return
        came.append(number)
        ctrl_c = signal.getsignal(signal.SIGINT)
        if ctrl_c is signal.default_int_handler or not callable(ctrl_c):
            # The default, or ignored as in the background of a script.
            raise Terminated(number)
        ctrl_c(signal.SIGINT, frame)

    taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    try:
        _set(dict.fromkeys(taken, end))
        yield
    except KeyboardInterrupt:
        if came:
            raise Terminated(came[0]) from None
        raise
    finally:
        _set(dict.fromkeys(taken, signal.SIG_DFL))


@contextmanager
def ctrl_c_handled(act: Callable[[], object]) -> Iterator[None]:
    """Call `act` for Ctrl-C in this block, which is inside `clean_termination`.

    SIGTERM and SIGHUP call the handler of SIGINT from before the block.
    """
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    before = {number: handler for number, handler in found.items() if callable(handler)}

    def end(number: int, frame: FrameType | None) -> None:
        _set({signal.SIGINT: before[signal.SIGINT]})
        before[signal.Signals(number)](number, frame)

    if signal.SIGINT not in before:
        yield  # ignored, as in the background of a script
        return
    try:
        _set(dict.fromkeys(before, end) | {signal.SIGINT: lambda _, __: act()})
        yield
    finally:
        _set(before)


def _is_importing(frame: FrameType | None) -> bool:
    """Return True if a frame runs inside an `import` statement."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _repeat_soon(number: int) -> None:
    """Send this process a signal again after a moment."""
    main = threading.main_thread().ident
    if main is not None:
        # A process that ends does not wait for it.
        threading.Thread(target=send_again, args=(main, number), daemon=True).start()


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Defer signals that arrive in this block to its end."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    before = {number: act for number, act in found.items() if callable(act)}
    try:
        _set(dict.fromkeys(before, note))
        yield
    finally:
        _set(before)
        if came:
            before[signal.Signals(came[0])](came[0], None)


_Act = Callable[[int, FrameType | None], object] | signal.Handlers


def _set(acts: Mapping[signal.Signals, _Act]) -> None:
    for number, act in acts.items():
        try:
            signal.signal(number, act)
        except ValueError:
            return  # not the main thread, which cannot set handlers
