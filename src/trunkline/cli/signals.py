"""Signals that end a verb: SIGTERM and SIGHUP as Ctrl-C does, and none of them halfway.

For verbs that leave something behind if they are ended by the system: a child, or a terminal
that shows nothing of what is typed. A server has rules of its own for its end.

The rules that live here, and only here:

* A signal that was ignored when we started stays ignored: `nohup` means it.
* SIGTERM and SIGHUP do what Ctrl-C would do just then, whoever has taken that over.
* While a child is started or ended a signal is only noted. It acts when that is done: a child
  that nobody knows of yet could be ended by nobody.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

__all__ = ["Terminated", "clean_termination", "signals_deferred"]

# There is no SIGHUP on Windows.
_ENDING: Final = tuple(
    number
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", None))
    if isinstance(number, signal.Signals)
)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP has ended a verb; `status` is what a shell calls that."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


@contextmanager
def clean_termination() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end what is done here as Ctrl-C does.

    Raises:
        Ended: one of them came.
    """
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        ctrl_c = signal.getsignal(signal.SIGINT)
        if ctrl_c is signal.default_int_handler or not callable(ctrl_c):
            # Nobody has taken it over; or it is ignored, as in the background of a script.
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
def signals_deferred() -> Iterator[None]:
    """Let no signal in here; one that comes acts at the end."""
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
            return  # not in the main thread, where signals are somebody else's
