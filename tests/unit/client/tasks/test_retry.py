"""Errors after which a server is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.client.tasks import retry
from trunkline.client.tasks.retry import RetryPolicy
from trunkline.errors import ConnectionLost, PeerError, RequestTimeout


@pytest.fixture(autouse=True)
def longest_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.concurrency.backoff._uniform", lambda: 1.0)


def told(wish: Any) -> PeerError:
    return PeerError(-32603, "later", {"retryAfterMs": wish}, kind="INTERNAL_ERROR")


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (told(2000), 2.0),
        (told(2000.5), 2.0005),
        (told(10**400), 60.0),
        (told(-5), 0.25),
        (told("soon"), 0.25),
        (told(True), 0.25),
        (PeerError(-32000, "later", {"retryAfterMs": 3000}), 3.0),
        (PeerError(-32603, "broken", "data", kind="INTERNAL_ERROR"), 0.25),
        (RequestTimeout("no answer"), 0.25),
        (PeerError(-32602, "no such task", kind="INVALID_PARAMS"), None),
        (ConnectionLost("gone"), None),
    ],
)
def test_what_is_pardoned_and_when_to_ask_again(error: Any, wait: float | None) -> None:
    assert RetryPolicy().next_delay(error) == wait


def test_only_a_server_that_says_when_is_asked_again_where_an_error_may_be_the_answer() -> None:
    assert RetryPolicy().next_delay(told(2000), needs_hint=True) == 2.0
    assert RetryPolicy().next_delay(told("soon"), needs_hint=True) is None
    assert RetryPolicy().next_delay(RequestTimeout("no answer"), needs_hint=True) is None


def test_so_many_in_a_row_are_pardoned_and_an_answer_counts_them_anew() -> None:
    found = RetryPolicy()
    waits = [found.next_delay(told(0)) for _ in range(retry.MAX_RETRIES)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert found.next_delay(told(0)) is None
    assert found.next_delay(told(0)) == 0.25
    found.reset()
    assert found.next_delay(told(0)) == 0.25
