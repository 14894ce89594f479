"""What the tests of `trunkline.testing` share."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from trunkline.testing import ErasDiffer, run_in_both_eras_sync


class Trip(Struct):
    city: str
    days: int = 3


def differs(*args: Any, **options: Any) -> str:
    """Return what the author of a tool is told."""
    with pytest.raises(ErasDiffer) as caught:
        run_in_both_eras_sync(*args, **options)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)
