"""Plain callbacks of clients that block: their order, their number, and their thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trunkline import Client, Server
from trunkline.client.subscriptions.budget import WeighedCallback
from trunkline.client.sync import callbacks as module
from trunkline.client.sync.callbacks import Callbacks
from trunkline.client.sync.event_loop_thread import LoopProxy

WAIT = 20.0


@contextmanager
def linked() -> Iterator[LoopProxy]:
    proxy = LoopProxy(Client(Server("empty")), Callbacks())
    proxy.connect()
    try:
        yield proxy
    finally:
        proxy.close()


def threads() -> list[str]:
    """Return the threads of synchronous clients; handler threads of other tests may still end."""
    names = [each.name for each in threading.enumerate()]
    return [name for name in names if name in ("trunkline-loop", "trunkline-told")]


def test_an_outcome_waits_for_the_callbacks_before_it() -> None:
    order: list[str] = []
    with linked() as proxy:
        told = proxy.callbacks.told("told", lambda text: (time.sleep(0.05), order.append(text)))
        assert told is not None

        async def call_back() -> None:
            for text in ("one", "two"):
                told(text)

        proxy.run(call_back)
        assert order == ["one", "two"]


def test_a_callback_that_blocks_does_not_keep_a_client_from_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CANCEL_TIMEOUT_S", 0.1)
    go = threading.Event()
    with linked() as proxy:
        told = proxy.callbacks.told("told", lambda: go.wait(WAIT))
        assert told is not None
        proxy.call(told)
    assert threads() == ["trunkline-told"]
    go.set()
    for each in threading.enumerate():
        if each.name == "trunkline-told":
            each.join(WAIT)


def test_notifications_beyond_the_callback_queue_are_dropped_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MAX_QUEUED", 3)
    go, seen = threading.Event(), list[int]()
    with linked() as proxy:
        told = proxy.callbacks.told("on_log", lambda n: (go.wait(WAIT), seen.append(n)))
        assert isinstance(told, WeighedCallback)
        for n in range(5):
            proxy.call(told.call_weighed, 0, n)
        go.set()
    assert seen == [0, 1, 2]
    dropped = "on_log is too slow for the server: one notification dropped"
    assert [record.getMessage() for record in caplog.records] == [dropped] * 2
    assert proxy.callbacks.budget.dropped == 2


def test_notifications_that_wait_are_bounded_in_bytes() -> None:
    go, seen = threading.Event(), list[int]()
    with linked() as proxy:
        budget = proxy.callbacks.budget
        budget.max_bytes = 1000
        told = proxy.callbacks.told("on_log", lambda n: (go.wait(WAIT), seen.append(n)))
        assert isinstance(told, WeighedCallback)
        for n, weight in enumerate((2000, 1, 0)):
            proxy.call(told.call_weighed, weight, n)
        assert (budget.held, budget.dropped) == (2000, 2)
        go.set()
    assert seen == [0]
    assert budget.held == 0


def test_callbacks_of_calls_are_never_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_QUEUED", 3)
    go, seen = threading.Event(), list[int]()
    with linked() as proxy:
        proxy.callbacks.budget.max_bytes = 0
        told = proxy.callbacks.told("on_success", lambda n: (go.wait(WAIT), seen.append(n)))
        assert told is not None
        for n in range(5):
            proxy.call(told, n)
        go.set()
    assert seen == [0, 1, 2, 3, 4]


def test_async_callbacks_stay_on_the_loop() -> None:
    callbacks = Callbacks()

    async def given() -> None: ...

    assert callbacks.told("given", given) is given
    assert callbacks.told("none", None) is None


def test_awaitable_returned_by_a_plain_callback_is_awaited_on_the_loop() -> None:
    seen: list[str] = []

    async def later() -> None:
        seen.append(threading.current_thread().name)

    with linked() as proxy:
        told = proxy.callbacks.told("told", lambda: later())
        assert told is not None

        async def call_back() -> None:
            told()

        proxy.run(call_back)
    assert seen == ["trunkline-loop"]
    assert threads() == []


def test_a_callback_that_raises_does_not_keep_the_next_from_being_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[int] = []

    def fail(n: int) -> None:
        seen.append(n)
        raise (ValueError("a fault") if n else SystemExit)

    with linked() as proxy:
        told = proxy.callbacks.told("on_log", fail)
        assert told is not None
        for n in range(2):
            proxy.call(told, n)
    assert seen == [0, 1]
    first, second = (record.getMessage() for record in caplog.records)
    assert first == "on_log raised SystemExit: ignored on the callback thread"
    assert second.startswith("on_log raised an exception\n")
