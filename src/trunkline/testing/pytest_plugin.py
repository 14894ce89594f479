"""The pytest plugin of this library: the fixture `both_eras`.

Pytest loads this module in every run, so nothing of the library is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .both_eras import BothEras

__all__ = ["both_eras"]


@pytest.fixture
def both_eras() -> Callable[..., BothEras]:
    """Return `run_in_both_eras_sync`: `both_eras(app, "book", {"city": "Oslo"}, answers)`."""
    from .both_eras import run_in_both_eras_sync

    return run_in_both_eras_sync
