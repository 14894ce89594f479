"""One client that takes all it can get leaves every other client served.

Four quiet clients get every answer meanwhile, none refused, each within a bounded number of turns
of the event loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final

import pytest

from tests.faults.http.floods import (
    APART,
    FLOODS,
    WEBSOCKET_FLOODS,
    Crowd,
    Flood,
    asgi_crowd,
    calls_by_batches,
    calls_by_single_requests,
    crowd,
    crowd_with_few_requests,
    streams,
    threads,
    unfinished_bodies,
)

Serve = Callable[[str], AbstractContextManager[Crowd]]

# Which servers a flood reaches.
REACHED: Final = [
    *((crowd, each) for each in (*FLOODS, *WEBSOCKET_FLOODS)),
    *((crowd_with_few_requests, each) for each in (calls_by_single_requests, streams)),
    *((asgi_crowd, each) for each in FLOODS),
]


def name_of(each: Serve | Flood) -> str:
    return each.__name__


@pytest.mark.parametrize(("serve", "flood"), REACHED, ids=name_of)
@pytest.mark.parametrize("apart", APART)
def test_flood_of_one_client_refuses_no_other_client(
    apart: str, serve: Serve, flood: Flood
) -> None:
    with serve(apart) as made, ExitStack() as stack:
        flood(made, made.flooding, stack)
        made.check(threaded=flood is threads)
        made.served.open_gate("flood")


@pytest.mark.parametrize(("serve", "flood"), REACHED, ids=name_of)
def test_two_floods_refuse_no_other_client_and_leave_nothing(serve: Serve, flood: Flood) -> None:
    with serve("addresses") as made:
        with ExitStack() as stack:
            flood(made, made.flooding, stack)
            flood(made, made.other, stack)
            made.check(threaded=flood is threads)
        # A flood that leaves and comes back.
        with ExitStack() as stack:
            flood(made, made.flooding, stack)
            made.check(threaded=flood is threads)
        made.served.open_gate("flood")
        made.end()


def test_refusal_of_a_share_has_the_time_to_try_again_and_is_counted() -> None:
    with crowd("addresses") as made, ExitStack() as stack:
        calls_by_batches(made, made.flooding, stack)
        made.served.until(lambda: made.served.app.stats().refused.get("client_in_flight"))
        stats = made.served.on_loop(made.served.app.stats)
        assert stats.largest_client["in_flight"] == 56
        with made.flooding.connect() as wire:
            answer = wire.ask(made.flooding.single(wire, "echo", text="x"))
        assert answer.status == 503
        assert json.loads(answer.body)["error"]["data"] == {"retryAfterMs": 1000}
        made.served.open_gate("flood")


def test_refusals_of_a_flood_are_logged_once_per_second_and_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with crowd("addresses") as made, ExitStack() as stack:
        calls_by_batches(made, made.flooding, stack)
        made.served.until(lambda: made.served.app.stats().refused.get("client_in_flight"))
        unfinished_bodies(made, made.flooding, stack)
        made.served.until(lambda: made.served.app.stats().refused.get("client_bytes"))
        stats = made.served.on_loop(made.served.app.stats)
        made.served.open_gate("flood")
    text = "request refused: its client has its share of ServerLimits."
    logged = [each.getMessage().partition(" (and")[0] for each in caplog.records]
    assert {*logged} == {f"{text}in_flight_overall", f"{text}server_bytes"}
    assert len(logged) < sum(stats.refused.values()) / 10
