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


def retry_after_error(retry_after_ms: Any) -> PeerError:
    return PeerError(-32603, "later", {"retryAfterMs": retry_after_ms}, kind="INTERNAL_ERROR")


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (retry_after_error(2000), 2.0),
        (retry_after_error(2000.5), 2.0005),
        (retry_after_error(10**400), 60.0),
        (retry_after_error(-5), 0.25),
        (retry_after_error("soon"), 0.25),
        (retry_after_error(True), 0.25),
        (PeerError(-32000, "later", {"retryAfterMs": 3000}), 3.0),
        (PeerError(-32603, "broken", "data", kind="INTERNAL_ERROR"), 0.25),
        (RequestTimeout("no answer"), 0.25),
        (PeerError(-32602, "no such task", kind="INVALID_PARAMS"), None),
        (ConnectionLost("gone"), None),
    ],
)
def test_delay_follows_retry_after_and_is_none_for_final_errors(
    error: Any, wait: float | None
) -> None:
    assert RetryPolicy().next_delay(error) == wait


def test_with_needs_hint_only_errors_with_retry_after_are_retried() -> None:
    assert RetryPolicy().next_delay(retry_after_error(2000), needs_hint=True) == 2.0
    assert RetryPolicy().next_delay(retry_after_error("soon"), needs_hint=True) is None
    assert RetryPolicy().next_delay(RequestTimeout("no answer"), needs_hint=True) is None


def test_retries_back_off_up_to_a_maximum_and_reset_on_success() -> None:
    found = RetryPolicy()
    waits = [found.next_delay(retry_after_error(0)) for _ in range(retry.MAX_RETRIES)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert found.next_delay(retry_after_error(0)) is None
    assert found.next_delay(retry_after_error(0)) == 0.25
    found.reset()
    assert found.next_delay(retry_after_error(0)) == 0.25
