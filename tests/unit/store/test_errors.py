"""The texts and facts of the errors of a store."""

from __future__ import annotations

import pytest

from trunkline.errors import TrunklineError
from trunkline.store.errors import (
    EndReason,
    InvalidStoreKey,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreUnavailable,
    SubscriptionEnded,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StoreClosed(), "the store was closed"),
        (StoreFull("keys", 3), "the store is full: keys is limited to 3"),
        (StoreUnavailable("no answer from engine:6379"), "no answer from engine:6379"),
        (SubscriptionEnded(EndReason.SLOW), "the subscription ended: the subscriber fell behind"),
        (InvalidStoreKey("a key has no empty part"), "a key has no empty part"),
    ],
)
def test_each_error_says_what_happened(error: StoreError, text: str) -> None:
    assert isinstance(error, TrunklineError)
    assert str(error) == text


def test_the_facts_of_an_error_are_attributes() -> None:
    full = StoreFull("keys", 3)
    assert (full.bound, full.limit) == ("keys", 3)
    assert SubscriptionEnded(EndReason.LOST).reason is EndReason.LOST


def test_the_password_of_an_engine_is_not_shown() -> None:
    error = StoreUnavailable("redis://user:tweety@engine:6379 does not answer")
    for shown in (str(error), repr(error)):
        assert "tweety" not in shown
        assert "does not answer" in shown
