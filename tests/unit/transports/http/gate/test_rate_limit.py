"""Rates of clients: bursts, refills, networks, and a bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trunkline.transports.http.gate import rate_limit
from trunkline.transports.http.gate.rate_limit import RateLimiter


def test_a_burst_passes_and_then_the_rate() -> None:
    limit = RateLimiter(2.0, 3)
    assert [limit.wait("a", 10.0) for _ in range(3)] == [None] * 3
    assert limit.wait("a", 10.0) == 0.5
    assert limit.wait("a", 10.25) == 0.25
    assert limit.wait("a", 10.5) is None
    assert limit.wait("a", 10.5) == 0.5
    # A bucket that was full for long holds no more than the burst.
    assert [limit.wait("a", 100.0) for _ in range(4)] == [None] * 3 + [0.5]


def test_client_that_waits_for_retry_after_is_admitted() -> None:
    for rate in (0.1, 0.3, 0.7, 1.1, 3.0, 7.0, 11.3, 99.9):
        limit = RateLimiter(rate, 3)
        now = 12345.678
        for _ in range(100):
            wait = limit.wait("a", now)
            if wait is not None:
                assert wait > 0
                now += wait
                assert limit.wait("a", now) is None


def test_a_refused_request_costs_nothing() -> None:
    limit = RateLimiter(1.0, 1)
    assert limit.wait("a", 0.0) is None
    assert [limit.wait("a", 0.5) for _ in range(100)] == [0.5] * 100
    assert limit.wait("a", 1.0) is None


def test_clients_do_not_share_a_bucket() -> None:
    limit = RateLimiter(1.0, 1)
    names = [
        "10.0.0.1",
        "10.0.0.2",
        "",
        "unknown",
        "alice",
        "user:alice",
        "user:bob",
        "2001:db8::1",
    ]
    assert [limit.wait(each, 0.0) for each in names] == [None] * len(names)
    assert None not in [limit.wait(each, 0.0) for each in names]


def test_an_ipv6_client_is_its_network_and_an_ipv4_client_its_address() -> None:
    limit = RateLimiter(1.0, 1)
    assert limit.wait("2001:db8:0:1::1", 0.0) is None
    assert limit.wait("2001:db8:0:1:ffff::2", 0.0) is not None
    assert limit.wait("2001:db8:0:2::1", 0.0) is None
    # A socket of both families reports IPv4 in IPv6 form, all within one network.
    assert limit.wait("::ffff:10.0.0.1", 0.0) is None
    assert limit.wait("::ffff:10.0.0.2", 0.0) is None
    assert limit.wait("10.0.0.1", 0.0) is not None


def test_longest_idle_client_is_forgotten_first() -> None:
    limit = RateLimiter(0.001, 1)
    assert limit.wait("busy", 0.0) is None
    for each in range(rate_limit.MAX_CLIENTS + 100):
        assert limit.wait(f"client {each}", float(each) / 1000) is None
        assert limit.wait("busy", float(each) / 1000) is not None
    assert len(limit._buckets) == rate_limit.MAX_CLIENTS
    assert limit.wait("client 0", 20.0) is None
    assert limit.wait(f"client {rate_limit.MAX_CLIENTS}", 20.0) is not None


def test_a_long_name_is_not_kept() -> None:
    limit = RateLimiter(1.0, 1)
    assert limit.wait("a" * 10_000, 0.0) is None
    assert limit.wait("a" * 10_000, 0.0) is not None
    assert limit.wait("a" * 9_999 + "b", 0.0) is None
    assert all(len(each) < 64 for each in limit._buckets)


@given(
    rate=st.floats(0.01, 1000.0),
    burst=st.integers(1, 50),
    gaps=st.lists(st.floats(0.0, 5.0), max_size=60),
)
def test_no_client_gets_more_than_its_burst_and_its_rate(
    rate: float, burst: int, gaps: list[float]
) -> None:
    limit = RateLimiter(rate, burst)
    now, tokens, last = 1000.0, float(burst), 1000.0
    for gap in gaps:
        now += gap
        # A bucket that is refilled, as the definition has it.
        tokens, last = min(float(burst), tokens + (now - last) * rate), now
        wait = limit.wait("a", now)
        if wait is None:
            assert tokens >= 1 - 1e-3
            tokens -= 1
        else:
            assert tokens < 1
            assert 0 < wait <= 1 / rate + 1e-6
            assert limit.wait("a", now + wait) is None
            tokens, last, now = min(float(burst), tokens + wait * rate) - 1, now + wait, now + wait
