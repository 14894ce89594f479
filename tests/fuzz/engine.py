"""Runs a fuzz target with Atheris, guided by the branches that the library takes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FunctionType


def fuzz(check: Callable[[bytes], None]) -> None:
    """Call a target with inputs, as the command line asks, until the process ends.

    Only the library is instrumented: that of everything else takes half a minute. Its modules are
    imported already, so that a target stands alone.
    """
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    for each in gc.get_objects():
        if isinstance(each, FunctionType) and (each.__module__ or "").startswith("trunkline"):
            atheris.instrument_func(each)
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
