"""Fixtures of the tests over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.http.serving import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Return a server with default settings, which the tests of a module share."""
    with serving() as found:
        yield found
