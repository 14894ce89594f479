"""Used DPoP proofs in a memory store: shares of principals, and what expires."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.rigs.clock import Clock
from tests.rigs.event_loop import on_a_loop
from trunkline.auth import VerifierUnavailable
from trunkline.auth.dpop import Proof
from trunkline.auth.server.verifiers.used_proofs import UsedProofs
from trunkline.store import Key, MemoryStore, StoreLimits

TTL_S = 71.0


class MarkerTable:
    """Used proofs in a store of some keys, with a clock for both."""

    def __init__(self, keys: int = 64, **limits: Any) -> None:
        self.clock = Clock(0.0)
        self.store = MemoryStore(StoreLimits(keys=keys, **limits), clock=self.clock)
        self.used = UsedProofs(self.store, TTL_S, clock=self.clock)
        self._ids = count()

    def proof(self, id: str | None = None) -> Proof:
        name = f"id-{next(self._ids)}" if id is None else id
        claims = {"jti": name, "htm": "POST", "htu": "https://mcp.example.org/mcp", "iat": 0}
        return Proof(claims, "print")

    async def take(self, principal: str, times: int = 1) -> int:
        """Use so many new proofs; return how many were accepted."""
        taken = 0
        for _ in range(times):
            try:
                taken += await self.used.take(self.proof(), principal)
            except VerifierUnavailable:
                pass
        return taken


@on_a_loop
async def test_principal_alone_fills_seven_eighths_of_the_table() -> None:
    table = MarkerTable(64)
    assert await table.take("eve", 100) == 56
    # Newcomers find room, each with its first proofs.
    assert [await table.take(name) for name in ("ann", "bob", "cleo")] == [1, 1, 1]


@on_a_loop
async def test_principal_beside_another_fills_half_of_the_table() -> None:
    table = MarkerTable(64)
    assert await table.take("ann") == 1
    assert await table.take("eve", 100) == 32
    assert await table.take("ann", 20) == 20


@on_a_loop
async def test_markers_count_until_they_expire() -> None:
    table = MarkerTable(64)
    await table.take("ann")
    table.clock.now = 1.0
    assert await table.take("eve", 100) == 32
    table.clock.now = TTL_S
    # That of the other principal has expired: it is alone.
    assert await table.take("eve", 100) == 24
    table.clock.now = TTL_S + 1
    assert await table.take("eve", 100) == 32
    table.clock.now += TTL_S
    assert await table.take("eve", 100) == 56


@on_a_loop
async def test_proof_that_was_used_before_does_not_count() -> None:
    table = MarkerTable(64)
    await table.take("ann")
    proof = table.proof("again")
    assert await table.used.take(proof, "eve")
    for _ in range(100):
        assert not await table.used.take(proof, "eve")
    assert await table.take("eve", 100) == 31


@on_a_loop
async def test_proof_that_the_store_does_not_take_does_not_count() -> None:
    table = MarkerTable(8)
    for number in range(8):  # of another use of the store
        await table.store.take(Key("", "other", str(number)), ttl=1)
    with pytest.raises(VerifierUnavailable, match="StoreFull"):
        await table.used.take(table.proof(), "ann")
    table.clock.now = 1.0
    await table.take("bob")
    assert await table.take("ann", 8) == 4


@on_a_loop
async def test_principals_whose_markers_have_expired_leave_nothing() -> None:
    table = MarkerTable(200_000, total_bytes=1 << 30)
    for number in range(100_000):
        await table.take(f"principal-{number}")
    assert len(table.used._counts) == 100_000
    assert table.used._limit is not None
    table.clock.now += TTL_S
    # A few at a time, as in the store: the next proofs are not delayed.
    uses = 0
    while len(table.used._counts) > 1:
        before = table.used._limit.used
        await table.take("ann")
        uses += 1
        assert before - table.used._limit.used < 256
    assert table.used._counts == {"ann": uses}
    assert len(table.used._expiring) == uses == table.used._limit.used


@on_a_loop
async def test_expired_markers_are_released_as_needed_when_the_share_is_used_up() -> None:
    table = MarkerTable(4096)
    for number in range(2000):
        await table.take(f"principal-{number}")
    assert await table.take("eve", 4096) == 1834
    table.clock.now += TTL_S
    assert await table.take("eve", 4096) == 3584


@on_a_loop
async def test_table_is_as_large_as_the_store_has_room_for_markers() -> None:
    limits: list[dict[str, int]] = [
        {"keys": 40},
        {"keys": 1000, "total_bytes": 40_000},
        {"keys": 1000, "tenant_keys": 30},
        {"keys": 1000, "tenant_bytes": 30_000},
    ]
    for each in limits:
        store = MemoryStore(StoreLimits(**each))
        names = (Key("", "kind", f"{number:04}") for number in count())
        expected = store.max_markers(next(names))
        taken = 0
        with pytest.raises(Exception, match="full"):
            while await store.take(next(names), ttl=60):
                taken += 1
        assert taken == expected
