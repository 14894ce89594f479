"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import scene


@pytest.fixture
def census() -> Iterator[None]:
    """Count only what a test makes itself."""
    with scene.census():
        yield
