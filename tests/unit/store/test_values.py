"""Keys, and what is shown of them."""

from __future__ import annotations

import pickle

import pytest

from trunkline.store import (
    EndReason,
    InvalidStoreKey,
    Key,
    Lease,
    LogEntry,
    Message,
    Retention,
    Stored,
    StoreError,
    StoreFull,
    SubscriptionEnded,
)


def test_a_key_is_equal_only_part_by_part() -> None:
    assert Key("a", "thing", "b") == Key("a", "thing", "b")
    assert hash(Key("a", "thing", "b")) == hash(Key("a", "thing", "b"))
    assert Key("a", "thing", "b:c") != Key("a:b", "thing", "c")
    assert Key("a", "thing", "\u00e4") != Key("a", "thing", "a\u0308")


@pytest.mark.parametrize("kind", ["", "Thing", "a:b", "1a", "-a", "a\n", "ä", "a" * 33, None, b"a"])
def test_a_kind_is_a_word_of_the_code(kind: str) -> None:
    with pytest.raises(InvalidStoreKey, match="the kind of a key"):
        Key("acme", kind, "one")


@pytest.mark.parametrize("text", ["x" * 513, "ä" * 257, "\ud800", "a\udfff", None, 5, b"bytes"])
def test_a_part_that_an_engine_could_not_keep_is_refused_and_not_repeated(text: str) -> None:
    for make in (lambda: Key(text, "thing", "one"), lambda: Key("acme", "thing", text)):
        with pytest.raises(InvalidStoreKey, match="at most 512 bytes") as refused:
            make()
        assert len(str(refused.value)) < 100
        assert isinstance(refused.value, StoreError)


def test_the_longest_parts_are_taken() -> None:
    assert Key("ä" * 256, "a" * 32, "x" * 512).name == "x" * 512
    assert Key("", "a", "").name == ""


def test_neither_names_nor_bytes_are_shown() -> None:
    key = Key("acme", "session", "hush-hush")
    for value in (
        key,
        Lease(key, 7),
        Message(key, b"hush-hush"),
        Stored(b"hush-hush", 7),
        LogEntry(7, b"hush-hush"),
    ):
        shown = f"{value!r} {value!s} {list(getattr(value, '__rich_repr__', list)())}"
        assert "hush-hush" not in shown
        assert "7" in shown or "acme" in shown


@pytest.mark.parametrize(("entries", "age", "ttl"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, -1)])
def test_a_log_that_keeps_nothing_is_refused(entries: int, age: float, ttl: float) -> None:
    with pytest.raises(ValueError):
        Retention(entries, age, ttl)


def test_errors_keep_their_facts_between_processes() -> None:
    full = pickle.loads(pickle.dumps(StoreFull("keys", 5)))
    assert (full.bound, full.limit) == ("keys", 5)
    ended = pickle.loads(pickle.dumps(SubscriptionEnded(EndReason.LOST)))
    assert ended.reason is EndReason.LOST
