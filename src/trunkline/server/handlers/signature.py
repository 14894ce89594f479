"""Signatures of handlers: functions, methods, partials and callable objects.

`Handler` unwraps a callable and finds out if it is asynchronous, which parameters a caller
fills, and what their annotations resolve to. It knows nothing of JSON; `arguments` and `output`
make schemas of the annotations.

The rules that live here, and only here:

* A keyword that a `functools.partial` has bound is not an argument: a model cannot replace
  what an author put in (a connection, a key).
* A plain wrapper (`functools.wraps`) around an async function is expected to return its
  coroutine, so it counts as async; what a call returned is checked before it is awaited.
* A name that only the enclosing function knows is looked up in the frames that are running
  when the handler is registered: a decorator is called from inside that function.
"""

from __future__ import annotations

import inspect
import os
import sys
import typing
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, FunctionType, MethodType, SimpleNamespace
from typing import Any, Final

__all__ = ["Handler"]

# Wrappers around wrappers: far more than any program has, and an end for a circle of them.
_MAX_LAYERS: Final = 100

_VARIADIC: Final[dict[Any, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


class Handler:
    """The signature of one callable; needed only while it is registered."""

    __slots__ = ("_layers", "function", "label")

    def __init__(self, function: Callable[..., Any]) -> None:
        """Unwrap `function`.

        Raises:
            TypeError: it cannot be a handler; the text says why, and what to do.
        """
        self.function = function
        self.label = _label(function)
        _refuse(function, self.label)
        self._layers = tuple(_layers(function))
        if any(map(_yields, self._layers[: self._outer()])):
            raise TypeError(
                f"{self.label} is a generator: a handler returns one result; return a list instead"
            )

    @property
    def is_async(self) -> bool:
        """Whether a call returns something that has to be awaited."""
        return any(map(inspect.iscoroutinefunction, self._layers))

    @property
    def location(self) -> str:
        """The file and line of the function, as in "server.py:9"; "" if it has none."""
        code = getattr(self._layers[-1], "__code__", None)
        if code is None:
            return ""
        return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"

    @property
    def docstring(self) -> str | None:
        """The docstring, of the callable itself or of what it wraps."""
        for layer in self._layers:
            # Every partial has the one of the class.
            found = None if isinstance(layer, partial) else getattr(layer, "__doc__", None)
            if isinstance(found, str):
                return found
        return None

    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """Return the parameters that a caller can fill.

        Raises:
            TypeError: they are not known, or are `*args` or `**kwargs`.
        """
        try:
            found = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            raise TypeError(
                f"the parameters of {self.label} are not known: wrap it in a function"
            ) from None
        bound = {
            name for layer in self._layers if isinstance(layer, partial) for name in layer.keywords
        }
        left = tuple(each for each in found if each.name not in bound)
        for parameter in left:
            stars = _VARIADIC.get(parameter.kind)
            if stars is not None:
                raise TypeError(
                    f"{self.label} takes {stars}{parameter.name}: a caller names each argument; "
                    f"write them out, or take one dict"
                )
        return left

    def resolved(self, annotations: dict[str, Any]) -> dict[str, Any]:
        """Return annotations with the names in strings resolved.

        Raises:
            TypeError: a name is not known where the handler was written.
        """
        innermost = self._layers[-1]
        spaces: tuple[dict[str, Any], dict[str, Any]] = (
            getattr(innermost, "__globals__", {}),
            {each.__name__: each for each in getattr(innermost, "__type_params__", ())},
        )
        try:
            return _evaluated(annotations, spaces)
        except NameError:
            pass
        around = {**_enclosing(innermost), **spaces[1]}
        return {
            name: self._one_resolved(name, annotation, (spaces[0], around))
            for name, annotation in annotations.items()
        }

    def returned(self) -> Any:
        """Return the return annotation; `inspect.Signature.empty` without one.

        Raises:
            TypeError: a name in it is not known where the handler was written.
        """
        for layer in self._layers:
            found = getattr(layer, "__annotations__", None)
            if isinstance(layer, FunctionType) and found and "return" in found:
                return self.resolved({"return": found["return"]})["return"]
        return inspect.Signature.empty

    def _one_resolved(
        self, name: str, annotation: Any, spaces: tuple[dict[str, Any], dict[str, Any]]
    ) -> Any:
        what = "what it returns" if name == "return" else f'parameter "{name}"'
        try:
            return _evaluated({name: annotation}, spaces)[name]
        except NameError as error:
            raise TypeError(
                f'{self.label}: the annotation of {what} names "{error.name}", which is not '
                f"known there: define or import it at the top of the module"
            ) from None

    def _outer(self) -> int:
        for count, layer in enumerate(self._layers, 1):
            if hasattr(layer, "__wrapped__"):
                return count
        return len(self._layers)


def _yields(layer: Any) -> bool:
    return inspect.isasyncgenfunction(layer) or inspect.isgeneratorfunction(layer)


def _label(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{name.rpartition('<locals>.')[2]}()"


def _refuse(function: Any, label: str) -> None:
    if isinstance(function, classmethod):
        raise TypeError(
            "a classmethod has no class yet inside the class body: register it afterwards, "
            "as Class.method"
        )
    if isinstance(function, type):
        raise TypeError(f"{label} is a class: register a function, or an object of the class")
    if not callable(function):
        raise TypeError(f"{type(function).__name__} cannot be called: register a function")


def _layers(function: Any) -> Iterator[Any]:
    """Yield a callable and what it wraps, down to a function."""
    for _ in range(_MAX_LAYERS):
        yield function
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, FunctionType):
            return
        else:
            function = inspect.getattr_static(type(function), "__call__", None)
            if not isinstance(function, FunctionType):
                return


def _evaluated(
    annotations: dict[str, Any], spaces: tuple[dict[str, Any], dict[str, Any]]
) -> dict[str, Any]:
    # `get_type_hints` takes any object with annotations.
    holder: Any = SimpleNamespace(__annotations__=annotations)
    return typing.get_type_hints(holder, *spaces, include_extras=True)


def _enclosing(function: Any) -> dict[str, Any]:
    """Return the local variables of the functions around `function`."""
    found: dict[str, Any] = {}
    if isinstance(function, FunctionType) and function.__closure__:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:
                pass  # named before it is bound
    around = set()
    outer = getattr(function, "__qualname__", "").rpartition(".<locals>.")[0]
    while outer:
        around.add(outer)
        outer = outer.rpartition(".<locals>.")[0]
    frame: FrameType | None = sys._getframe(1)
    while around and frame is not None:
        if frame.f_code.co_qualname in around and frame.f_globals is function.__globals__:
            found = {**frame.f_locals, **found}
        frame = frame.f_back
    return found
