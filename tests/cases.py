"""Many small cases as one test: `for_each` instead of `pytest.mark.parametrize`.

    @for_each("row", ROWS, ids=lambda row: row.name)
    def test_a_row_has_a_sentence(row: Row) -> None: ...

pytest takes longer to set up a test than such a case takes. All cases run, whatever fails, and a
failure shows each case that failed: its id, its values and its traceback.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeAlias

Test: TypeAlias = Callable[..., None]
Ids: TypeAlias = Callable[[Any], object] | Iterable[object] | None


def for_each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Ids = None
) -> Callable[[Test], Test]:
    """Run a test with each of some cases.

    It is called as `pytest.mark.parametrize` is, and may stand beside it. Fixtures of the test are
    the same for all cases.
    """
    parameters = (names,) if isinstance(names, str) else tuple(names)
    found = [(_values(case, len(parameters)), case) for case in cases]
    if not found:
        raise ValueError("there is no case to run")
    labels = [*_labels(found, ids)]
    if len(labels) != len(found):
        raise ValueError(f"there are {len(found)} cases and {len(labels)} ids")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            __tracebackhide__ = True
            failures: list[Exception] = []
            for label, (values, _) in zip(labels, found, strict=True):
                given = dict(zip(parameters, values, strict=True))
                try:
                    test(**given, **fixtures)
                except Exception as failure:  # noqa: BLE001  # raised below, with all others
                    failure.add_note(f"case {label}: {_shown(given)}")
                    failures.append(failure)
            if failures:
                count = f"{len(failures)} of {len(found)} cases failed"
                raise ExceptionGroup(count, failures)

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # read by pytest
        return run

    return decorate


def _values(case: Any, count: int) -> tuple[Any, ...]:
    if hasattr(case, "marks"):  # a `pytest.param`
        return tuple(case.values)
    return (case,) if count == 1 else tuple(case)


def _labels(found: list[tuple[tuple[Any, ...], Any]], ids: Ids) -> Iterator[str]:
    """Return what each case is called."""
    if ids is not None and not callable(ids):
        yield from map(str, ids)
        return
    for values, case in found:
        if getattr(case, "id", None) is not None and hasattr(case, "marks"):
            yield str(case.id)
        else:
            yield "-".join(str(value if ids is None else ids(value)) for value in values)


def _shown(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())
