"""Finds the side effects of a handler by comparing the objects it can reach, before and after.

A handler that runs again repeats what it did before its question. Compared are the closure of the
handler, the globals its code names, the same of the functions it calls, the state of its server,
and members of these. Nothing is traced or replaced. Files, databases and the network are not seen;
the author names them as `effects`.

The rules that live here, and only here:

* Only growth counts. A cache is filled by the first run alone, and setting a value it already
  had is not an effect.
* A number may be a counter or a clock. It counts as a counter if it grew at most once per run of
  the handler; one that the author names is a counter.
"""

from __future__ import annotations

import io
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from inspect import getattr_static
from itertools import count
from math import isclose, isfinite
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple
from unittest.mock import NonCallableMock

from msgspec import Struct, field

from ..jsonrpc.messages import Shown

__all__ = ["EffectWatch", "SideEffect", "more_often"]

# A handler reaches a handful of functions. The bound is for one that reaches a whole program: a
# snapshot is taken twice per run.
_MAX_FUNCTIONS: Final = 200
# Members of an object, keys of a dict.
_MAX_MEMBERS: Final = 200
# Added items shown in a message.
_MAX_SHOWN: Final = 6

# This library, whose own objects are not effects of the handler.
_OURS: Final = __name__.split(".")[0]

_COUNT: Final = re.compile(r"count\((-?\d+)\)")


class SideEffect(Shown, Struct):
    """By how much something has grown."""

    # For messages: "2 items".
    unit: str
    amount: float = 0
    # The first added items.
    added: list[Any] = field(default_factory=list)
    # True if the author named it.
    is_named: bool = False

    def plus(self, other: SideEffect) -> SideEffect:
        """Return the sum of both."""
        added = [*self.added, *other.added][:_MAX_SHOWN]
        return SideEffect(self.unit, self.amount + other.amount, added, self.is_named)


class EffectWatch:
    """Compares what a handler can reach, and what its author names, before and after."""

    def __init__(
        self, handler: Callable[..., Any], state: Any, named: Any, ignore: frozenset[str]
    ) -> None:
        """Watch what `handler` reaches, the `state` of its server, and `named`.

        `named` is one effect, or several in a tuple.

        Raises:
            TypeError: several effects are in a list, which is itself one effect.
        """
        self._handler = handler
        self._state = state
        self._named = _several(named)
        self._ignore = ignore
        self._before: dict[str, Any] = {}
        # By name: what has grown between `begin` and `end`.
        self.changes: dict[str, SideEffect] = {}

    def begin(self) -> None:
        """Take a snapshot before the handler runs."""
        self._before = self._look()

    def end(self) -> None:
        """Take another snapshot, and add up what has grown."""
        after = self._look()
        named = {_named_as(at) for at in range(len(self._named))}
        for name, snapshot in after.items():
            before = self._before.get(name)
            if before is None or type(before) is not type(snapshot):
                continue
            for place, change in _grown(name, before, snapshot):
                change.is_named = name in named
                known = self.changes.get(place)
                self.changes[place] = change if known is None else known.plus(change)

    def _look(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        ids = {id(each) for each in self._named}
        for name, value in _reachable(self._handler, self._state):
            if id(value) in ids or name in self._ignore:
                continue
            snapshot = _snapshot(value)
            if snapshot is not None:
                found[name] = snapshot
        for at, each in enumerate(self._named):
            is_question = callable(each) and not isinstance(each, NonCallableMock)
            snapshot = _snapshot(each() if is_question else each)
            if snapshot is None:
                raise TypeError(f"{_named_as(at)} is not a number, container or mock: {each!r}")
            found[_named_as(at)] = snapshot
        return found


def more_often(
    earlier: Mapping[str, SideEffect], later: Mapping[str, SideEffect], runs: int
) -> Iterator[tuple[str, float, SideEffect]]:
    """Yield what grew more in `later`: its name, the amount in `earlier`, and the effect.

    `runs` is the number of times the handler was run in `later`.
    """
    for name, change in later.items():
        before = earlier[name].amount if name in earlier else 0
        if change.amount <= before:
            continue
        is_member = change.unit == _MEMBER
        if change.unit in (_NUMBER, _MEMBER) and not change.is_named:
            # A counter grows at most once per run; this is a clock.
            if before and change.amount > runs * before:
                continue
            if is_member and not before:
                continue  # a new key with a number: new keys are counted already
            if isinstance(change.amount, float) and not _is_multiple(change.amount, before):
                continue
        yield name, before, change


def _is_multiple(amount: float, of: float) -> bool:
    return of == 0 or isclose(amount / of, round(amount / of), rel_tol=1e-6)


def _several(named: Any) -> tuple[Any, ...]:
    if named is None:
        return ()
    if isinstance(named, tuple):
        return named
    if isinstance(named, list) and named and all(map(callable, named)):
        raise TypeError("put several effects into a tuple: a list is one effect that grows")
    return (named,)


def _named_as(at: int) -> str:
    return f"effects[{at}]"


# -- snapshots -------------------------------------------------------------------------------


class _Calls(list[Any]):
    """Calls of a mock."""


class _Size(int):
    """The length of a buffer or a queue."""


_NUMBER: Final = "in all"
_MEMBER: Final = "at that key"


def _snapshot(value: Any) -> Any:
    """Return a copy or the size of a value, or None if it cannot grow."""
    if isinstance(value, NonCallableMock):
        return _Calls(value.mock_calls)
    if isinstance(value, Counter):
        return Counter(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | deque):
        return list(value)
    if isinstance(value, set | bytearray):
        return set(value) if isinstance(value, set) else _Size(len(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return _size(value)


def _size(value: Any) -> _Size | None:
    if isinstance(value, count):
        found = _COUNT.fullmatch(repr(value))
        return None if found is None else _Size(found[1])
    if isinstance(value, io.StringIO | io.BytesIO):
        return None if value.closed else _Size(len(value.getvalue()))
    size = getattr(type(value), "qsize", None)
    return None if size is None else _Size(value.qsize())


def _grown(name: str, before: Any, after: Any) -> Iterator[tuple[str, SideEffect]]:
    if isinstance(after, Counter):
        for key in list(after)[:_MAX_MEMBERS]:
            if after[key] != before[key]:
                more = abs(after[key] - before[key])
                yield f"{name}[{key!r}]", SideEffect("counted", more)
    elif isinstance(after, dict):
        yield from _grown_keys(name, before, after)
    elif isinstance(after, list):
        unit = "calls" if isinstance(after, _Calls) else "items"
        added = after[len(before) :]
        if added:
            yield name, SideEffect(unit, len(added), added[:_MAX_SHOWN])
    elif isinstance(after, set):
        added = list(after - before)
        if added:
            yield name, SideEffect("items", len(added), added[:_MAX_SHOWN])
    elif after != before:
        yield name, SideEffect(_NUMBER, abs(after - before))


def _grown_keys(
    name: str, before: dict[Any, Any], after: dict[Any, Any]
) -> Iterator[tuple[str, SideEffect]]:
    added = [key for key in after if key not in before]
    if added:
        yield name, SideEffect("keys", len(added), added[:_MAX_SHOWN])
    for key in list(after)[:_MAX_MEMBERS]:
        new, old = after[key], before.get(key, 0)
        if isinstance(new, int) and isinstance(old, int) and new != old:
            yield f"{name}[{key!r}]", SideEffect(_MEMBER, abs(new - old))


# -- reachable objects -----------------------------------------------------------------------


class _NamedValue(NamedTuple):
    """A value that code refers to by a name."""

    name: str
    value: Any
    # The id of the scope, so that two values with the same name stay distinct.
    binder: int
    # The function that refers to it.
    where: str


def _reachable(handler: Any, state: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that a handler may change, with stable names."""
    seen: set[int] = set()
    binders: dict[str, int] = {}
    home = ""
    waiting = deque([_NamedValue("", handler, 0, "")])
    # Last, when the package of the handler is known.
    later = [] if state is None else [_NamedValue("context.state", state, 1, "")]
    while waiting or later:
        found = waiting.popleft() if waiting else later.pop()
        function = _function(found.value)
        if function is None:
            binder = binders.setdefault(found.name, found.binder)
            # Two functions may use one name for two values.
            name = found.name if binder == found.binder else f"{found.where}.{found.name}"
            yield from _members(name, found.value, home)
            waiting += _methods(found.value, home)
            continue
        for owner in _owners(found.value):
            waiting.append(_NamedValue("self", owner, id(owner), function.__qualname__))
        top = _top(function)
        if id(function) in seen or len(seen) >= _MAX_FUNCTIONS:
            continue
        seen.add(id(function))
        if top != _OURS:
            home = home or top
        waiting += _cells(function)
        if top == home:
            # Of other packages only bound values, not their globals.
            waiting += _globals(function)


def _methods(value: Any, home: str) -> Iterator[_NamedValue]:
    """Yield the methods of an object of the handler's own package."""
    kind = value if isinstance(value, type) else type(value)
    if home and _top(kind) == home:
        for name, each in vars(kind).items():
            if isinstance(each, FunctionType):
                yield _NamedValue(name, each, id(kind), kind.__qualname__)


def _function(value: Any) -> FunctionType | None:
    """Return the Python function of a callable, or None."""
    while isinstance(value, partial | MethodType):
        value = value.func if isinstance(value, partial) else value.__func__
    if isinstance(value, FunctionType):
        return value
    if isinstance(value, NonCallableMock | type):
        return None
    call = getattr_static(type(value), "__call__", None)
    return call if isinstance(call, FunctionType) else None


def _owners(value: Any) -> Iterator[Any]:
    """Yield the objects that a callable is bound to."""
    while isinstance(value, partial):
        yield from (*value.args, *value.keywords.values())
        value = value.func
    if isinstance(value, MethodType):
        yield value.__self__
    elif not isinstance(value, FunctionType):
        # A callable object is bound to itself.
        yield _ObjectMembers(value)


class _ObjectMembers:
    """The members of an object, without its `__call__`."""

    def __init__(self, value: Any) -> None:
        self.__dict__ = getattr(value, "__dict__", {})


def _cells(function: FunctionType) -> Iterator[_NamedValue]:
    """Yield the closure of a function, and what it wraps."""
    where = function.__qualname__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield _NamedValue(name, cell.cell_contents, id(cell), where)
        except ValueError:
            pass  # not bound yet
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield _NamedValue("", wrapped, id(function), where)


def _globals(function: FunctionType) -> Iterator[_NamedValue]:
    """Yield the globals in the code of a function, also as `module.name`."""
    spelled, known = _spelled(function.__code__), function.__globals__
    for name in spelled:
        value = known.get(name)
        if isinstance(value, ModuleType):
            if value.__name__.split(".")[0] == _top(function):
                inner = vars(value)
                for each in spelled:
                    if each in inner and not isinstance(inner[each], ModuleType):
                        yield _NamedValue(each, inner[each], id(inner), name)
        elif name in known:
            yield _NamedValue(name, value, id(known), function.__qualname__)


def _top(thing: Any) -> str:
    """Return the top-level package of a class or function."""
    return (getattr(thing, "__module__", None) or "").split(".")[0]


def _spelled(code: CodeType) -> list[str]:
    """Return the names in code, and in functions defined within."""
    found = dict.fromkeys(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found.update(dict.fromkeys(_spelled(each)))
    return list(found)


def _members(name: str, value: Any, home: str) -> Iterator[tuple[str, Any]]:
    """Yield a value that can grow, or the members of an object or class that can."""
    if _snapshot(value) is not None:
        yield name, value
        if isinstance(value, Mapping):
            for key, inner in list(value.items())[:_MAX_MEMBERS]:
                if isinstance(inner, Sized | NonCallableMock):
                    yield f"{name}[{key!r}]", inner
        return
    is_class = isinstance(value, type)
    top = _top(value if is_class else type(value))
    if isinstance(value, ModuleType) or (is_class and top != home):
        return
    if top == _OURS and not isinstance(value, _ObjectMembers):
        return  # internal counters of the server
    held = getattr(value, "__dict__", {})
    if isinstance(value, Struct):
        held = {each: getattr(value, each) for each in value.__struct_fields__}
    for inner, member in list(held.items())[:_MAX_MEMBERS]:
        if not inner.startswith("__"):
            yield f"{name}.{inner}", member
