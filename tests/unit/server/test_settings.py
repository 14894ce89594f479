"""What is set for a whole server: bounds that are bounds, and how long things may be kept."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.engine.limits import ServerLimits
from trunkline.server.settings import CacheHint


def test_nothing_is_kept_unless_an_author_says_so() -> None:
    assert CacheHint() == CacheHint(0, "private")
    assert CacheHint(1.5).milliseconds == 1500


def test_joined_cache_hint_has_the_shortest_ttl_and_the_strictest_scope() -> None:
    assert CacheHint(60, "public").joined(CacheHint(5, "public")) == CacheHint(5, "public")
    assert CacheHint(60, "public").joined(CacheHint(60, "private")).scope == "private"


@pytest.mark.parametrize(
    "make",
    [lambda: CacheHint(-1), lambda: CacheHint(float("nan")), lambda: CacheHint(1, "all")],  # type: ignore[arg-type]  # on purpose
)
def test_a_cache_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"CacheHint\."):
        make()


@pytest.mark.parametrize(
    ("name", "value"),
    [("in_flight", 0), ("in_flight", True), ("threads", 2.5), ("grace", -1), ("stall", "1")],
)
def test_invalid_server_limits_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"ServerLimits.{name}"):
        ServerLimits(**{name: value})
