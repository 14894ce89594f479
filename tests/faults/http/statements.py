"""Which statement of the specification a test is about, and from which side.

    @good("BP-092")
    def test_a_session_lasts(...): ...

    @bad("BP-092")
    def test_a_session_that_was_deleted_is_not_found(...): ...

A good case is a client that does what it should, and is served; a bad one does what it should
not, or asks for what must not happen. `test_statements.py` counts both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trunkline.spec.requirements import requirements

F = TypeVar("F", bound=Callable[..., Any])


def good(*ids: str) -> Callable[[F], F]:
    """Mark a good case of some statements."""
    return _marked("good", ids)


def bad(*ids: str) -> Callable[[F], F]:
    """Mark a bad case of some statements."""
    return _marked("bad", ids)


def _marked(side: str, ids: tuple[str, ...]) -> Callable[[F], F]:
    for id in ids:
        if not requirements(ref=id):
            raise LookupError(f"no statement {id}")

    def mark(test: F) -> F:
        before = getattr(test, "statements", frozenset())
        test.statements = before | {(id, side) for id in ids}  # type: ignore[attr-defined]
        return test

    return mark
