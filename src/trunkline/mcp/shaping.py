"""Shape results for a revision: narrow a value to the members that the revision has.

    narrow(result, "2024-11-05")

A handler returns one value for all revisions. Before it is sent, members that the negotiated
revision does not have are removed, at any depth, and content blocks that it does not have are
replaced. The `tables` of a type are compiled once per revision; a value that needs no change, as
most do, is returned as it is.

The rules that live here, and only here:

* `STAND_INS` lists the replacements of content blocks. They lose nothing that a reader would
  have seen.
* Before 2025-11-25 a sampled message holds one block. Several become several messages; in an
  answer, which is one message, they become one text.
* Members without a type (`_meta`, JSON Schemas, structured content, raw JSON) stay unchanged. So
  do values of types outside the protocol, subclasses included, and values of a type that the
  revision lacks and that have no replacement: preventing those is up to the caller.

Required members that a value lacks are not filled in: only its sender knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin

from msgspec import UNSET, Struct
from msgspec.json import encode
from msgspec.structs import fields, replace

from ..spec.revisions import REVISIONS, must_be_released
from ..spec.types import Expr, FieldView
from . import types as wire
from .tables import drops, knows, members

__all__ = ["STAND_INS", "narrow", "narrowing"]

# Narrows values of one type; None where a revision has all of it.
Work: TypeAlias = Callable[[Any], Any]
Table: TypeAlias = Mapping[type, Work]

# An embedded resource needs a URI, and audio of a tool has none.
AUDIO_URI: Final = "urn:trunkline:audio"
# The types of a list that a handler may return.
_SEQUENCES: Final = (list, tuple)


S = TypeVar("S", bound=Struct)


def narrow(value: S, revision: str) -> S:
    """Return `value` with only what `revision` has; the same object if nothing changes.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    try:
        work = _plans[revision][type(value)]
    except KeyError:
        work = _plan(type(value), revision)
    return value if work is None else work(value)


@cache
def narrowing(kind: type[Struct], revision: str, absent: tuple[str, ...] = ()) -> Work | None:
    """Return what `narrow` does with values of a type; None if it changes none of them.

    The members `absent` are not looked at: the caller knows that the values do not have them.
    """
    must_be_released(revision)
    return _compile(kind, revision, absent)


# Replacements


def _audio_as_resource(block: wire.AudioContent) -> wire.EmbeddedResource:
    contents = wire.ResourceContents(AUDIO_URI, blob=block.data, mime_type=block.mime_type)
    return wire.EmbeddedResource(contents, meta=block.meta, annotations=block.annotations)


def _link_as_text(block: wire.ResourceLink) -> wire.TextContent:
    """Return a link as text: `Title (name, type, size): uri`."""
    size = None if block.size is None else f"{block.size} bytes"
    name = None if block.title is None else block.name
    details = ", ".join(str(text) for text in (name, block.mime_type, size) if text is not None)
    called = block.name if block.title is None else block.title
    text = f"{called} ({details}): {block.uri}" if details else f"{called}: {block.uri}"
    if block.description is not None:
        text = f"{text}\n{block.description}"
    return wire.TextContent(text, meta=block.meta, annotations=block.annotations)


def _as_json_text(block: Struct) -> wire.TextContent:
    return wire.TextContent(encode(block).decode())


# Replacements for each block that some revision lacks, best first. The first that is allowed in
# the same place is used: a sampled message holds no resource.
STAND_INS: Final[Mapping[type[Struct], tuple[tuple[type[Struct], Work], ...]]] = {
    wire.AudioContent: (
        (wire.EmbeddedResource, _audio_as_resource),
        (wire.TextContent, _as_json_text),
    ),
    wire.ResourceLink: ((wire.TextContent, _link_as_text),),
    wire.ToolUseContent: ((wire.TextContent, _as_json_text),),
    wire.ToolResultContent: ((wire.TextContent, _as_json_text),),
}

# The replacements of a block that is not in a list of a known type.
ANYWHERE: Final = frozenset(made for choices in STAND_INS.values() for made, _ in choices)

# Types whose values with several blocks can be split into several values.
SPLIT: Final[Mapping[type[Struct], str]] = {wire.SamplingMessage: "content"}


# Plans, made once. A key is a released revision, then a type of the protocol: neither unknown
# revisions nor other types can grow this.

_plans: Final[dict[str, dict[type, Work | None]]] = {revision: {} for revision in REVISIONS}


def _plan(kind: type[Struct], revision: str) -> Work | None:
    must_be_released(revision)
    plans = _plans[revision]
    if kind in plans or not _is_ours(kind):
        return plans.get(kind)
    # Types do not contain themselves, so this ends.
    work = _compile(kind, revision)
    # Two threads may both get here; both get the one that was stored first.
    return plans.setdefault(kind, work)


def _is_ours(kind: object) -> bool:
    if not isinstance(kind, type) or not issubclass(kind, wire.Wire):
        return False
    return getattr(wire, kind.__name__, None) is kind


def _compile(kind: type[Struct], revision: str, absent: Collection[str] = ()) -> Work | None:
    known = members(kind.__name__, revision)
    if known is None:
        return _stand_in(kind, ANYWHERE, revision)
    unknown = drops(kind.__name__, revision)
    dropped = tuple(
        (field.name, field.default)
        for field in fields(kind)
        if field.encode_name in unknown and field.name not in absent
    )
    inner = {
        field.name: _of_member(field.type, known[field.encode_name], revision)
        for field in fields(kind)
        if field.encode_name not in unknown
    }
    changed = tuple((name, work) for name, work in inner.items() if work is not None)
    return _of_struct(dropped, changed) if dropped or changed else None


def _stand_in(kind: type[Struct], place: frozenset[Any], revision: str) -> Work | None:
    """Return what replaces values of a type that `revision` lacks, or None."""
    for made, make in STAND_INS.get(kind, ()):
        if made in place:
            return _then(make, _plan(made, revision))
    return None


def _then(first: Work, second: Work | None) -> Work:
    return first if second is None else lambda value: second(first(value))


def _of_member(hint: Any, view: FieldView, revision: str) -> Work | None:
    """Return what narrows a member, by its type and by what `revision` says of it."""
    kinds = _structs(hint)
    alone = _table(kinds, revision)
    for part in _parts(hint):
        if get_origin(part) is dict:
            values = _table(_structs(get_args(part)[1]), revision)
            return _values(values) if values else None
        if get_origin(part) is list:
            several = _of_items(_structs(get_args(part)[0]), revision)
            return _one_or_several(alone, several, view) if kinds else several
    return _one(alone) if alone else None


def _of_items(kinds: frozenset[Any], revision: str) -> Work | None:
    table = _table(kinds, revision)
    each = _each(table) if table else None
    for kind in kinds & SPLIT.keys():
        if not _holds_several(kind, revision):
            each = _then(_apart(kind, SPLIT[kind]), each)
    return each


def _one_or_several(alone: Table, several: Work | None, view: FieldView) -> Work | None:
    """Narrow a member that is a block, or a list of blocks in some revisions."""
    if not _takes_a_list(view.expr):
        return _joined(_one(alone))
    if several is None:
        return None
    one, each = _one(alone), several
    return lambda value: each(value) if type(value) in _SEQUENCES else one(value)


def _parts(hint: Any) -> Iterator[Any]:
    """Yield the members of a union, nested ones included."""
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _parts(get_args(hint)[0])
    elif origin is Union or origin is UnionType:
        for part in get_args(hint):
            yield from _parts(part)
    else:
        yield hint


def _structs(hint: Any) -> frozenset[Any]:
    """Return the types of the protocol in a hint."""
    return frozenset(part for part in _parts(hint) if _is_ours(part))


def _table(kinds: frozenset[Any], revision: str) -> Table:
    found = {
        kind: _plan(kind, revision)
        if knows(kind.__name__, revision)
        else _stand_in(kind, kinds, revision)
        for kind in kinds
    }
    return {kind: work for kind, work in found.items() if work is not None}


def _takes_a_list(expr: Expr) -> bool:
    return any(part.kind == "list" for part in (expr, *expr.of))


def _holds_several(kind: type[Struct], revision: str) -> bool:
    """Return True if a value of a type in `SPLIT` may hold several blocks in `revision`."""
    known = members(kind.__name__, revision) or {}
    return SPLIT[kind] not in known or _takes_a_list(known[SPLIT[kind]].expr)


# The closures of a plan, which return the same object if nothing changes


def _of_struct(dropped: tuple[tuple[str, Any], ...], inner: tuple[tuple[str, Work], ...]) -> Work:
    def work(value: Any) -> Any:
        changes: dict[str, Any] | None = None
        for name, absent in dropped:
            if getattr(value, name) is not absent:
                changes = changes or {}
                changes[name] = absent
        for name, narrowed in inner:
            before = getattr(value, name)
            if before is not None and before is not UNSET:
                after = narrowed(before)
                if after is not before:
                    changes = changes or {}
                    changes[name] = after
        return value if changes is None else replace(value, **changes)

    return work


def _one(table: Table) -> Work:
    get = table.get

    def work(value: Any) -> Any:
        narrowed = get(type(value))
        return value if narrowed is None else narrowed(value)

    return work


def _each(table: Table) -> Work:
    get = table.get
    one = _one(table)

    def work(items: Any) -> Any:
        # Raw JSON may be in place of a list.
        if type(items) not in _SEQUENCES:
            return items
        for item in items:
            narrowed = get(type(item))
            if narrowed is not None and narrowed(item) is not item:
                return [one(each) for each in items]
        return items

    return work


def _values(table: Table) -> Work:
    one = _one(table)

    def work(items: Any) -> Any:
        if type(items) is not dict:
            return items
        narrowed = {key: one(item) for key, item in items.items()}
        return narrowed if any(narrowed[key] is not items[key] for key in items) else items

    return work


def _apart(kind: type[Struct], member: str) -> Work:
    """Split each value of a type that holds several blocks into values that hold one."""

    def holds_many(item: Any) -> bool:
        return type(item) is kind and type(getattr(item, member)) in _SEQUENCES

    def apart(item: Any) -> Iterator[Any]:
        # An empty one is left to `_joined`, which makes it an empty text.
        if holds_many(item) and getattr(item, member):
            for each in getattr(item, member):
                yield replace(item, **{member: each})
        else:
            yield item

    def work(items: Any) -> Any:
        if type(items) not in _SEQUENCES:
            return items
        if not any(map(holds_many, items)):
            return items
        return [each for item in items for each in apart(item)]

    return work


def _joined(one: Work) -> Work:
    """Join several blocks into one text; a single block stays."""

    def text(block: Any) -> str:
        return block.text if type(block) is wire.TextContent else encode(block).decode()

    def work(value: Any) -> Any:
        if type(value) not in _SEQUENCES:
            return one(value)
        blocks = [one(block) for block in value]
        return blocks[0] if len(blocks) == 1 else wire.TextContent("\n".join(map(text, blocks)))

    return work
