"""What a server counts, and how often it logs that."""

from __future__ import annotations

import asyncio

import pytest

from tests.rigs.server_connection import connected
from trunkline import Server, ServerLimits
from trunkline.engine import counters as module
from trunkline.engine.counters import Counters, reached


def test_each_kind_of_event_is_logged_once_in_ten_seconds_with_the_number_since(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    counters = Counters()
    for _ in range(50):
        counters.refuse("server_bytes")
    counters.drop_notification("x/y", "there is no room")
    assert caplog.messages == [
        "request refused: ServerLimits.server_bytes is reached",
        "notification x/y dropped: there is no room",
    ]
    now += 10
    counters.refuse("server_bytes")
    assert caplog.messages[2].endswith("(and 49 times since this was last logged)")
    assert counters.refused == {"server_bytes": 51}
    assert counters.dropped_notifications == 1


def test_stats_are_of_this_moment_and_a_new_server_has_none() -> None:
    app = Server("tests", limits=ServerLimits(in_flight=1))
    gate = asyncio.Event()

    @app.tool
    async def hold() -> str:
        await gate.wait()
        return "done"

    empty = app.stats()
    assert empty.connections == empty.in_flight == empty.held_bytes == 0
    assert empty.refused == {}

    async def main() -> None:
        async with connected(app) as wire:
            opened = app.stats().held_bytes
            assert opened > 0  # what the client says of itself
            wire.call(1, "hold")
            wire.call(2, "hold")
            now = app.stats()
            assert (now.connections, now.in_flight, now.waiting) == (1, 1, 1)
            assert now.held_bytes > opened  # by the one that waits
            gate.set()
            await wire.answer(2)
            assert app.stats().held_bytes == opened

    asyncio.run(main())
    assert app.stats() == empty


def test_refusals_name_the_limit_and_whose_it_is() -> None:
    assert reached("in_flight") == "ServerLimits.in_flight is reached"
    assert reached("tenant_in_flight") == "TenantLimits.in_flight is reached"
    assert reached("client_in_flight").endswith("its share of ServerLimits.in_flight_overall")
    assert reached("client_bytes").endswith("its share of ServerLimits.server_bytes")
