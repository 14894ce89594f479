"""Guards: the scopes, the `allow` and the `visible` functions of an entry.

A `Guard` is made when an entry is registered, so that a mistake is reported on the line of its
author. An entry without options for access has none, and costs nothing. `decisions.py` applies
guards to requests.

The rules that live here, and only here:

* The guard of an entry of a mounted server holds together with that of the mount: all scopes are
  needed, and all functions have to agree.
* `allow` gets the context first, and of the arguments those that it has parameters for, by name.
* `visible` gets the context alone and is not a coroutine function: it is called for every entry of
  a list.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from ...auth.scopes import check_scopes

__all__ = ["Allow", "AllowCheck", "Guard", "Visible", "guard_of", "joined"]

# Of the author: take the context of the protocol; the first returns a bool, or an awaitable of one.
Allow: TypeAlias = Callable[..., Any]
Visible: TypeAlias = Callable[[Any], object]

_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
_KEYWORDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class AllowCheck(Struct, frozen=True, eq=False):
    """A function of the author that decides on one call, and the arguments it takes."""

    function: Allow
    # None is all of them.
    names: tuple[str, ...] | None = ()

    def __repr__(self) -> str:
        return f"<AllowCheck {_label(self.function)}>"

    @property
    def needs_arguments(self) -> bool:
        """Whether it decides by the arguments, and not by the context alone."""
        return self.names is None or bool(self.names)

    def call(self, context: Any, arguments: dict[str, Any]) -> Any:
        """Return what the function returns."""
        if self.names is None:
            return self.function(context, **arguments)
        given = {name: arguments[name] for name in self.names if name in arguments}
        return self.function(context, **given)


class Guard(Struct, frozen=True, eq=False):
    """What a request has to satisfy to use an entry, and to see it."""

    scopes: frozenset[str] = frozenset()
    allow: tuple[AllowCheck, ...] = ()
    visible: tuple[Visible, ...] = ()

    def __repr__(self) -> str:
        parts = [*sorted(self.scopes), *map(repr, self.allow), *map(_label, self.visible)]
        return f"<Guard {', '.join(parts)}>"


def joined(outer: Guard | None, inner: Guard | None) -> Guard | None:
    """Return the guard that holds where both hold; the outer one decides first."""
    if outer is None or inner is None:
        return inner if outer is None else outer
    return Guard(
        outer.scopes | inner.scopes, outer.allow + inner.allow, outer.visible + inner.visible
    )


def guard_of(
    scopes: Iterable[str],
    allow: Allow | None,
    visible: Visible | None,
    names: Collection[str] | None,
) -> Guard | None:
    """Return the guard of an entry, or None if it has no options for access.

    `names` are the arguments of its handler; None where they are not known before a call, as for
    a JSON Schema or a mounted server.

    Raises:
        TypeError: an option has the wrong type, or a function takes other parameters.
        ValueError: a text is not a scope.
    """
    needed = check_scopes(scopes)
    checks = () if allow is None else (_allow_check(allow, names),)
    if visible is not None:
        _check_visible(visible)
    shown = () if visible is None else (visible,)
    return Guard(needed, checks, shown) if needed or checks or shown else None


def _allow_check(allow: Any, known: Collection[str] | None) -> AllowCheck:
    if not callable(allow):
        raise TypeError(f"allow is a function of context and arguments, not {type(allow).__name__}")
    parameters = _parameters(allow, "allow")
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise TypeError(f"allow={_label(allow)} takes the context first, then arguments by name")
    names: list[str] = []
    for each in parameters[1:]:
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            return AllowCheck(allow, None)
        if each.kind not in _KEYWORDS:
            raise TypeError(f"allow={_label(allow)} takes arguments by name, not {each}")
        if known is None or each.name in known:
            names.append(each.name)
        elif each.default is inspect.Parameter.empty:
            raise TypeError(
                f"allow={_label(allow)} has a parameter {each.name!r}, which is not an argument: "
                f"arguments are {', '.join(known) or 'none'}"
            )
    return AllowCheck(allow, tuple(names))


def _check_visible(visible: Any) -> None:
    if not callable(visible):
        raise TypeError(f"visible is a function of the context, not {type(visible).__name__}")
    is_async = inspect.iscoroutinefunction(visible) or inspect.iscoroutinefunction(
        getattr(visible, "__call__", None)  # noqa: B004  # checks that it is async, not that it exists
    )
    if is_async:
        raise TypeError(
            f"{_label(visible)} is async: visible is called for each entry of a list, on the "
            "event loop; decide by the principal, and use allow= for what has to wait"
        )
    needed = [
        each
        for each in _parameters(visible, "visible")
        if each.default is inspect.Parameter.empty
        and each.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    ]
    if len(needed) > 1 or any(each.kind is inspect.Parameter.KEYWORD_ONLY for each in needed):
        raise TypeError(f"{_label(visible)} takes the context alone: visible=def name(context)")


def _parameters(function: Any, option: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise TypeError(f"the parameters of {option}={_label(function)} are unknown") from error


def _label(function: Any) -> str:
    return f"{getattr(function, '__qualname__', None) or type(function).__qualname__}()"
