"""Signals that end a verb. What is left of a run that was ended is in tests/terminal."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trunkline.cli import VERBS, main
from trunkline.cli import command as command_module
from trunkline.cli.signals import (
    Terminated,
    clean_termination,
    ctrl_c_handled,
    signals_deferred,
)

BOTH = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """Begin as a program does that nobody changed, and see that all is as it was in the end."""
    given = {number: signal.signal(number, signal.SIG_DFL) for number in BOTH}
    before = [signal.getsignal(number) for number in (signal.SIGINT, *BOTH)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGINT, *BOTH)] == before
    for number, act in given.items():
        signal.signal(number, act)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_with_a_status_of_its_own(number: int, status: int) -> None:
    with pytest.raises(Terminated) as caught, clean_termination():
        signal.raise_signal(number)
    assert caught.value.status == status


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_during_an_import_comes_after_it(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"imported_under_{number.name.lower()}"
    body = f"import signal\nsignal.raise_signal({int(number)})\nis_complete = True\n"
    (tmp_path / f"{name}.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    found: list[bool] = []
    with pytest.raises(Terminated), clean_termination():
        found.append(importlib.import_module(name).is_complete)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(0.005)
    assert found == [True]


def test_ctrl_c_stays_what_it_was() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, clean_termination():
        signal.raise_signal(signal.SIGINT)
    assert not isinstance(caught.value, Terminated)


def test_sigterm_calls_a_custom_sigint_handler() -> None:
    asked: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        with clean_termination():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked == [signal.SIGINT]


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with clean_termination():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, *BOTH])
def test_a_signal_that_is_held_comes_at_the_end(number: int) -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), clean_termination(), signals_deferred():
        signal.raise_signal(number)
        signal.raise_signal(number)
        steps.append("done")
    assert steps == ["done"]


def test_signal_handlers_are_not_changed_from_a_thread() -> None:
    found: list[object] = []

    def work() -> None:
        with clean_termination(), signals_deferred():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert found == [signal.getsignal(signal.SIGTERM)]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_ctrl_c_can_be_handled_and_other_signals_still_end_the_verb(
    number: int, status: int
) -> None:
    pressed: list[str] = []
    handled = ctrl_c_handled(lambda: pressed.append("once"))
    with pytest.raises(Terminated) as caught, clean_termination(), handled:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(number)
    assert (pressed, caught.value.status) == (["once"] * 2, status)


def test_ctrl_c_is_as_before_after_it_was_handled() -> None:
    with pytest.raises(KeyboardInterrupt), clean_termination():
        with ctrl_c_handled(lambda: None):
            pass
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with clean_termination(), ctrl_c_handled(lambda: pytest.fail("it is ignored")):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


class Referent:
    """Has weak references."""


def wait() -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(0.005)
    return 0


def run_verb(
    work: Callable[[], int], monkeypatch: pytest.MonkeyPatch, dropped: list[object] | None = None
) -> int:
    """Run a function as a verb of the command; `dropped` gets what the interpreter would print."""

    def show(each: sys.UnraisableHookArgs) -> None:
        assert dropped is not None
        dropped.append(each.exc_type)

    monkeypatch.setattr(sys, "unraisablehook", show)
    monkeypatch.setattr(command_module, "run", lambda *_: work())
    status = main([next(iter(VERBS))])
    assert sys.unraisablehook is show
    return status


@pytest.mark.parametrize("has_pthread_kill", [True, False])
def test_signal_in_the_callback_of_a_weak_reference_ends_the_verb(
    has_pthread_kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_pthread_kill:
        monkeypatch.delattr(signal, "pthread_kill")

    def work() -> int:
        referent = Referent()
        reference = weakref.ref(referent, lambda _: signal.raise_signal(signal.SIGINT))
        del referent
        assert reference() is None
        return wait()

    assert run_verb(work, monkeypatch) == 130


def test_sigterm_in_a_destructor_ends_the_verb_with_its_own_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    def work() -> int:
        try:
            with clean_termination():
                Interrupted()
                return wait()
        except Terminated as end:
            return end.status

    assert run_verb(work, monkeypatch) == 143


def test_other_dropped_exceptions_of_a_verb_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __init__(self, error: type[BaseException]) -> None:
            self.error = error

        def __del__(self) -> None:
            raise self.error

    def work() -> int:
        Failing(LookupError)
        # Not of a signal: these arrive on the main thread.
        thread = threading.Thread(target=Failing, args=(KeyboardInterrupt,))
        thread.start()
        thread.join(30)
        return 0

    dropped: list[object] = []
    assert run_verb(work, monkeypatch, dropped) == 0
    assert dropped == [LookupError, KeyboardInterrupt]
