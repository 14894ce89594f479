"""What is kept, for how long, and how much of it."""

from __future__ import annotations

from trunkline.client.requests.cache import MAX_BYTES, MAX_ENTRIES, MAX_TTL_MS, Cache, fresh_until


def test_a_result_is_fresh_until_its_time_is_over() -> None:
    cache = Cache()
    cache.keep(("tools/list", None), b"x", until=10.0, changes=0)
    assert cache.get(("tools/list", None), 9.9) == b"x"
    assert cache.get(("tools/list", ""), 9.9) is None
    assert cache.get(("tools/list", None), 10.0) is None
    assert len(cache) == 0


def test_entries_are_bounded_and_the_least_used_goes_first() -> None:
    cache = Cache()
    for number in range(MAX_ENTRIES):
        cache.keep(("resources/read", str(number)), b"x", 10.0, 0)
    assert cache.get(("resources/read", "0"), 0.0) == b"x"
    cache.keep(("resources/read", "new"), b"x", 10.0, 0)
    assert len(cache) == MAX_ENTRIES
    assert cache.get(("resources/read", "0"), 0.0) == b"x"
    assert cache.get(("resources/read", "1"), 0.0) is None


def test_bytes_are_bounded() -> None:
    cache = Cache()
    half = b"x" * (MAX_BYTES // 2)
    for number in range(3):
        cache.keep(("resources/read", str(number)), half, 10.0, 0)
    assert len(cache) == 2
    cache.keep(("resources/read", "0"), b"x" * (MAX_BYTES + 1), 10.0, 0)
    assert cache.get(("resources/read", "0"), 0.0) is None
    cache.keep(("resources/read", "1"), b"small", 10.0, 0)
    cache.keep(("resources/read", "3"), half, 10.0, 0)
    assert cache.get(("resources/read", "1"), 0.0) == b"small"


def test_a_change_drops_what_it_is_about() -> None:
    cache = Cache()
    for key in (("tools/list", None), ("tools/list", "x"), ("resources/read", "x")):
        cache.keep(key, b"x", 10.0, 0)
    cache.drop("tools/list")
    assert len(cache) == 1
    cache.drop("resources/read", what="y")
    assert len(cache) == 1
    cache.drop("resources/read", what="x")
    assert len(cache) == 0
    assert cache.changes == 3


def test_result_requested_before_a_change_is_not_cached() -> None:
    cache = Cache()
    before = cache.changes
    cache.drop("tools/list")
    cache.keep(("tools/list", None), b"x", 10.0, before)
    assert len(cache) == 0
    cache.keep(("tools/list", None), b"x", 10.0, cache.changes)
    cache.clear()
    assert len(cache) == 0


def test_no_result_is_fresh_for_ever() -> None:
    assert fresh_until(5.0, 1500) == 6.5
    assert fresh_until(5.0, 10**400) == 5.0 + MAX_TTL_MS / 1000
