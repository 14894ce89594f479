"""Signals handled by the event loop, on every platform.

The loop of Windows handles no signals itself; there a handler of the process passes them on to it.
"""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable
    from types import FrameType

__all__ = ["handle_signals"]


def handle_signals(
    loop: asyncio.AbstractEventLoop,
    numbers: Iterable[signal.Signals],
    on_signal: Callable[[signal.Signals], object],
) -> Callable[[], None]:
    """Call `on_signal` on the loop for each of the signals; return the function that ends this.

    Outside the main thread no signal can be handled, and none is.
    """
    restored: list[Callable[[], object]] = []
    for number in numbers:
        try:
            loop.add_signal_handler(number, on_signal, number)
            restored.append(partial(loop.remove_signal_handler, number))
        except NotImplementedError:
            before = signal.getsignal(number)
            if _set(number, _forwarder(loop, number, on_signal)):
                restored.append(partial(_set, number, before))
        except (RuntimeError, ValueError):
            pass  # not in the main thread

    def restore() -> None:
        for each in restored:
            each()

    return restore


def _forwarder(
    loop: asyncio.AbstractEventLoop,
    number: signal.Signals,
    on_signal: Callable[[signal.Signals], object],
) -> Callable[[int, FrameType | None], None]:
    def forward(_: int, __: FrameType | None) -> None:
        try:
            loop.call_soon_threadsafe(on_signal, number)
        except RuntimeError:
            pass  # the loop is closed

    return forward


def _set(number: signal.Signals, handler: object) -> bool:
    try:
        # None was not set by Python, and cannot be set by it.
        signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]  # as `getsignal` returned it
    except ValueError:
        return False  # not in the main thread
    return True
