"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rigs import leaks


@pytest.fixture
def census() -> Iterator[None]:
    """Count only what a test makes itself."""
    with leaks.census():
        yield
