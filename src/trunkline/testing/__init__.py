"""What helps to test programs made with this library; nothing here is needed to run one.

Nothing is imported until a name is used: pytest loads a plugin of this package in every run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .both_eras import BothEras, EraRun, ErasDiffer, run_in_both_eras, run_in_both_eras_sync
    from .scripted_answers import AskedQuestion, UnansweredQuestion

__all__ = [
    "AskedQuestion",
    "BothEras",
    "EraRun",
    "ErasDiffer",
    "UnansweredQuestion",
    "run_in_both_eras",
    "run_in_both_eras_sync",
]

_ANSWERS = ("AskedQuestion", "UnansweredQuestion")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(
        import_module(f"{__name__}.{'scripted_answers' if name in _ANSWERS else 'both_eras'}"), name
    )
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
