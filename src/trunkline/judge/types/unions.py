"""Checks of unions: the intended member type is chosen first, and only its faults are reported.

So a mistake is one finding, and not a list of reasons why a value matches none of five types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from .checks import Check, kind_of
from .collector import Path, Sink
from .hints import near

__all__ = ["Option", "union"]


class Option(NamedTuple):
    """One member type of a union."""

    name: str
    # The JSON types it can have.
    kinds: frozenset[str]
    check: Check
    # The constants of each constant member; None means that the member may be left out.
    tags: Mapping[str, tuple[str | None, ...]] = {}
    # The members whose constants the official file does not have.
    ours: frozenset[str] = frozenset()
    # Of an object, the members it must have and those it may have.
    required: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()


def union(options: Sequence[Option], expected: str) -> Check:
    """Return a check that a value matches one of `options`.

    The JSON type selects the option, then a discriminator: a member whose constants differ
    between the options. Otherwise the option with the fewest faults is taken as intended.
    """
    by_kind: dict[str, tuple[Option, ...]] = {}
    for option in options:
        for kind in option.kinds:
            by_kind[kind] = (*by_kind.get(kind, ()), option)
    for_objects = _discriminated(by_kind.get("object", ()))

    def check(value: Any, path: Path, sink: Sink) -> None:
        kind = kind_of(value)
        found = by_kind.get(kind)
        if found is None:
            sink.report("mcp.type.json-type", path, value, expected)
        elif kind == "object":
            for_objects(value, path, sink)
        elif len(found) == 1:
            found[0].check(value, path, sink)
        else:
            _best(found, value, path, sink)

    return check


def _discriminated(options: Sequence[Option]) -> Check:
    if len(options) == 1:
        return options[0].check
    tag = _tag_of(options)
    if not tag:
        return lambda value, path, sink: _best(options, value, path, sink)
    table: dict[str | None, tuple[Option, ...]] = {}
    for option in options:
        for constant in option.tags[tag]:
            table[constant] = (*table.get(constant, ()), option)
    names = [name for name in table if name is not None]
    listed = " or ".join(map(repr, names))

    def check(value: Any, path: Path, sink: Sink) -> None:
        constant = value.get(tag)
        if type(constant) is not str and not (constant is None and tag not in value):
            sink.report("mcp.type.constant", (path, tag), constant, listed)
            return
        found = table.get(constant)
        if found is None:
            if constant is None:
                _best(options, value, path, sink)
            else:
                expected = listed + near(constant, names)
                sink.report("mcp.type.constant", (path, tag), constant, expected)
        elif len(found) > 1:
            _best(found, value, path, sink)
        elif sink.by_file and tag in found[0].ours:
            _by_file(found[0], options, tag, value, path, sink)
        else:
            found[0].check(value, path, sink)

    return check


def _tag_of(options: Sequence[Option]) -> str:
    # The discriminator with the most constants, or an empty string.
    shared = set.intersection(*(set(option.tags) for option in options)) if options else set()

    def kinds(name: str) -> int:
        return len({constant for option in options for constant in option.tags[name]})

    telling = [name for name in sorted(shared) if kinds(name) > 1]
    return max(telling, key=kinds) if telling else ""


def _best(options: Sequence[Option], value: Any, path: Path, sink: Sink) -> None:
    """Report the faults of a value as the option that it is nearest to.

    Its own members count first: a result with a hundred bad elements is still that result.
    """
    if type(value) is dict:
        distances = [_distance(option, value) for option in options]
        nearest = min(distances)
        options = [each for each, far in zip(options, distances, strict=True) if far == nearest]
    if len(options) == 1:
        options[0].check(value, path, sink)
        return
    best: Sink | None = None
    for option in options:
        trial = sink.trial()
        option.check(value, path, trial)
        if best is None or trial.weight() < best.weight():
            best = trial
        if best.weight() == (0, 0, 0):
            return
    if best is not None:
        sink.absorb(best)


def _distance(option: Option, value: dict[str, Any]) -> tuple[int, int]:
    # The number of missing members, and of unknown ones.
    missing = sum(name not in value for name in option.required)
    # A few names suffice; a hostile object may have a million.
    unknown = sum(name not in option.known for name in islice(value, 64))
    return missing, unknown


def _by_file(
    chosen: Option, options: Sequence[Option], tag: str, value: Any, path: Path, sink: Sink
) -> None:
    """Check the option that one of our constants selects, more leniently if the file is wider.

    In the file the constant is any string, so a value without the required members of one
    option passes as another. For the schema file that is valid; the prose requires them.
    """
    trial = sink.trial()
    chosen.check(value, path, trial)
    if _ERRORS.intersection(trial.rules()) == {"mcp.type.required"} and any(
        _admits(option, tag, value, sink) for option in options if option is not chosen
    ):
        for rule, at, got, expected, source in trial.facts():
            softened = "mcp.type.told-by-value" if rule == "mcp.type.required" else rule
            sink.report(softened, at, got, expected, source)
    else:
        sink.absorb(trial)


# The errors that a schema validator would report too.
_ERRORS: Final = frozenset(
    {
        "mcp.type.json-type",
        "mcp.type.required",
        "mcp.type.constant",
        "mcp.type.limit",
        "mcp.type.format",
    }
)


def _admits(option: Option, tag: str, value: dict[str, Any], sink: Sink) -> bool:
    # True if the value would match the option with another value of the discriminator.
    constant = next((name for name in option.tags[tag] if name is not None), None)
    trial = sink.trial()
    option.check({**value, tag: constant}, None, trial)
    return _ERRORS.isdisjoint(trial.rules())
