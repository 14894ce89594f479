"""A clock that can be paused for a bounded time."""

from __future__ import annotations

from trunkline.client.session.timeouts import PausableClock


class Source:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_a_paused_clock_stands_still_and_then_continues() -> None:
    source = Source()
    clock = PausableClock(source, 10)
    assert clock.now() == 100
    clock.pause()
    source.at = 104
    clock.pause()  # paused already: the pause began at 100
    assert (clock.now(), clock.is_paused) == (100, True)
    clock.resume()
    clock.resume()
    source.at = 105
    assert (clock.now(), clock.is_paused) == (101, False)
    assert (clock.paused_s, clock.remaining_pause_s) == (4, 6)


def test_a_pause_counts_up_to_the_limit_of_all_pauses() -> None:
    source = Source()
    clock = PausableClock(source, 10)
    clock.pause()
    source.at = 107
    clock.resume()
    clock.pause()
    source.at = 120  # 13 s, of which 3 s are left
    assert clock.now() == 110
    clock.resume()
    assert (clock.now(), clock.remaining_pause_s) == (110, 0)


def test_the_limit_can_be_reset_during_a_pause() -> None:
    source = Source()
    clock = PausableClock(source, 10)
    clock.pause()
    source.at = 108
    clock.reset_limit()
    source.at = 118
    assert (clock.now(), clock.is_paused) == (100, True)
    source.at = 119
    assert clock.now() == 101
