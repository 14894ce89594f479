"""Write the Structs of `src/trunkline/mcp/types.py` from the rows of the specification.

    python tools/generate_structs.py            write the file
    python tools/generate_structs.py --check    show what would change, exit 1

One Struct stands for a type in all revisions, so it has every member that the type ever
had. How a row becomes Python:

* Generated are the params and results of the methods, what is in them, the data of errors,
  and the known keys of `_meta`. Envelopes are not, nor what only other rows build upon.
* A member that every revision requires comes first and has no default. A constant that every
  revision requires is the tag of the Struct, which writes it.
* Any other member is None if absent in types that a program sees: results, what a server
  sends, and what is in them. Such a member reads null as absent, and is not written. It is UNSET
  in params that only a client sends, which only this library reads: there null is refused. It
  is UNSET, too, where null is a value of the member.
* A member whose type changes may be of any of its types. Unions hold Structs with tags, or
  one Struct; `tables.MERGED` and the tables below say what else there is. What fits none of
  them is refused, so that a new row cannot be translated without a decision.
* Of limits those are checked on which all revisions agree and which msgspec knows.
* Annotations are evaluated when the module is loaded: msgspec would otherwise evaluate each
  when a decoder is made, which takes three times as long. So what a type contains stands
  above it.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Final, TypeAlias

from trunkline.mcp.tables import FORMERLY, MERGED, class_name, members
from trunkline.spec.lookup import methods
from trunkline.spec.revisions import REVISIONS
from trunkline.spec.rows import Limits, TypeKind
from trunkline.spec.types import Expr, FieldView, parse, type_, types

TARGET: Final = Path(__file__).resolve().parents[1] / "src" / "trunkline" / "mcp" / "types.py"
WIDTH: Final = 100

SCHEMA: Final = "a JSON Schema, whose keywords a Struct would lose"
# Types that no Struct stands for: what stands for them, and why.
PLAIN: Final[dict[str, tuple[str, str]]] = {
    "ElicitRequestFormParams.requestedSchema": ("dict[str, Any]", SCHEMA),
    "ElicitRequestParams.requestedSchema": ("dict[str, Any]", SCHEMA),
    "GetTaskPayloadResult": ("dict[str, Any]", "whatever the request of the task returns"),
    "InputResponse": ("Any", "which of three it is, the request under the same key says"),
    "JSONObject": ("dict[str, Any]", "any JSON"),
    "Tool.inputSchema": ("dict[str, Any]", SCHEMA),
    "Tool.outputSchema": ("dict[str, Any]", SCHEMA),
}
# `_meta` takes any key, so it is a dict; these Structs read the keys that have a meaning.
META: Final = (
    "NotificationMetaObject",
    "RequestMetaObject",
    "ResultMetaObject",
    "SubscriptionsListenResultMetaObject",
)
# What only this library reads, though `methods` do not show it: null in it is refused.
READ_HERE: Final = ("RequestMetaObject", "SubscriptionsAcknowledgedNotificationParams")
# What a program sees though clients send it, too: a change of a subscription has it.
SEEN_TOO: Final = ("TaskStatusNotificationParams",)
# What programs read of a client, where a name of another library has advice. It makes reading an
# attribute slower, so what servers and clients read for every call is not among them.
WITH_HINTS: Final = (
    *("CompleteResult", "DiscoverResult", "GetPromptResult", "InitializeResult"),
    *("ListPromptsResult", "ListResourceTemplatesResult", "ListResourcesResult", "ListToolsResult"),
    *("Prompt", "ReadResourceResult", "Resource", "ResourceTemplate", "ServerCapabilities", "Tool"),
    "ToolAnnotations",
)
# What the JSON-RPC layer has already.
ELSEWHERE: Final = {"Error": "ErrorObject", "RequestId": "RequestId"}

# Limits that msgspec can check: on which type, under what name, and how.
LIMITED: Final[dict[tuple[str, Limits], tuple[str, str]]] = {
    ("int", (("minimum", 0),)): ("NotNegative", "Annotated[int, Meta(ge=0)]"),
    ("int | float", (("minimum", 0), ("maximum", 1))): (
        "Fraction",
        "Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]",
    ),
    ("list[str]", (("maxItems", 100),)): (
        "AtMost100Texts",
        "Annotated[list[str], Meta(max_length=100)]",
    ),
}
# It says what a text means, which takes more than a type to check.
NOT_CHECKED: Final = "format"

SCALARS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("str",),
    "integer": ("int",),
    # A whole number stays one, so that it is written as it was read.
    "number": ("int", "float"),
    "boolean": ("bool",),
    "null": ("None",),
}

PRELUDE: Final = '''\
"""The types of MCP, one Struct per type for all revisions.

Generated by `tools/generate_structs.py` from the rows of the specification: do not edit.

A member that some revision does not have, or does not require, is None if absent; `tables`
lists the members of each revision. UNSET is absent where null is a value (`ttl` of a task,
structured content), and in params that a client sends, where null is refused. Pass members
that have a default by name: their order changes with new revisions. A comment names the
revisions of a member where they are not those of the type.

Decoding drops members that the specification does not list. MCP lets a peer send them, so
a proxy forwards raw JSON, not Structs. `_meta`, JSON Schemas and other open members are
dicts and lose nothing.
"""

# No `from __future__ import annotations`: msgspec would evaluate every annotation again when
# a decoder is made.
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ..jsonrpc.messages import ErrorObject, RequestId, Shown
from ..migration_hints import RESULT_ATTRIBUTES, missing_member, not_subscriptable
'''

WIRE: Final = '''\
class Wire(Shown, Struct, frozen=True, rename="camel", omit_defaults=True):
    """A value of the protocol. It is written without absent members, and prints without secrets."""


class HintedWire(Wire, frozen=True):
    """A value that programs read; the name that another library has for a member has advice."""

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_member(self, name, RESULT_ATTRIBUTES.get(type(self).__name__, {}))

        def __getitem__(self, key: object) -> Any:
            raise not_subscriptable(self, key, RESULT_ATTRIBUTES.get(type(self).__name__, {}))
'''

# Functions of the module, below `Wire`.
HELPERS: Final = """\
def _decoded(text: str) -> bytes:
    # Imported here: most programs decode nothing.
    from binascii import a2b_base64

    # Some senders break base64 into lines.
    return a2b_base64("".join(text.split()), strict_mode=True)
"""

DATA_METHOD: Final = '''\
    def to_bytes(self) -> bytes:
        """Return `data` decoded.

        Raises:
            ValueError: it is not base64.
        """
        return _decoded(self.data)
'''

CONTENTS_METHOD: Final = '''\
    def to_bytes(self) -> bytes:
        """Return `blob` decoded, or `text` as UTF-8.

        Raises:
            ValueError: `blob` is not base64.
        """
        return (self.text or "").encode() if self.blob is None else _decoded(self.blob)
'''

# What a class has beside its members: what callers mostly want of it.
PROPERTIES: Final = {
    "AudioContent": DATA_METHOD,
    "CreateMessageResult": '''\
    @property
    def text(self) -> str:
        """The text blocks, joined by newlines; empty if there are none."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "\\n".join([block.text for block in blocks if isinstance(block, TextContent)])
''',
    "ImageContent": DATA_METHOD,
    "ReadResourceResult": '''\
    @property
    def text(self) -> str:
        """The texts of the contents, joined by newlines; empty if all are blobs."""
        return "\\n".join([each.text for each in self.contents if each.text is not None])
''',
    "ResourceContents": CONTENTS_METHOD,
}

Tag: TypeAlias = tuple[str, str]


class CannotExpress(Exception):
    """The rows say something that has no Struct, and no table here says what to do."""


# What a member may be


@dataclass(frozen=True)
class Shape:
    """Every type that a value may have, over all revisions."""

    # Python types and the aliases of simple ones: `str`, `Role`, `Any`.
    simple: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    structs: frozenset[str] = frozenset()
    items: Shape | None = None
    values: Shape | None = None


def join(one: Shape, other: Shape) -> Shape:
    """Return the shape of a value that may be of either."""
    return Shape(
        one.simple | other.simple,
        one.constants | other.constants,
        one.structs | other.structs,
        join_inner(one.items, other.items),
        join_inner(one.values, other.values),
    )


def join_inner(one: Shape | None, other: Shape | None) -> Shape | None:
    """Join what is in two lists or maps, where there are two."""
    return join(one, other) if one and other else one or other


def parts(shape: Shape) -> Iterator[Shape]:
    """Yield a shape and all that is in it."""
    yield shape
    for inner in (shape.items, shape.values):
        if inner:
            yield from parts(inner)


def python_name(wire_name: str) -> str:
    """Return what a member is called in Python: `_meta` is `meta`, a prefix is dropped."""
    name = wire_name.rpartition("/")[2].strip("_$")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def camel(name: str) -> str:
    """Return what msgspec makes of a name by itself."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


# Reading the rows


@dataclass
class Column:
    """One member of a Struct, over all revisions."""

    wire_name: str
    shape: Shape
    limits: Limits
    present: list[str]
    required: list[str]
    extension: str

    @property
    def name(self) -> str:
        """What it is called in Python."""
        return python_name(self.wire_name)


@dataclass
class Model:
    """A Struct to be written."""

    name: str
    present: list[str]
    columns: list[Column]
    tag: Tag | None = None
    extension: str = ""
    # True if a program sees values of the type.
    is_seen: bool = False

    @property
    def required(self) -> list[Column]:
        """The members that every revision of the type requires."""
        return [column for column in self.columns if column.required == self.present]


@dataclass
class Reader:
    """Reads what is generated, beginning with the methods."""

    models: dict[str, Model] = field(default_factory=dict)
    # Names for other types: what they stand for.
    aliases: dict[str, Shape] = field(default_factory=dict)

    def read(self) -> None:
        """Read everything that a message refers to."""
        for name in roots():
            for revision in REVISIONS:
                if type_(name, revision):
                    self.named_in(name, revision)
        for name in META:
            self.model(name)
        for old, new in renamed(self.models):
            self.aliases[old] = Shape(structs=frozenset((new,)))
            del self.models[old]
        for name in seen():
            self.see(name)

    def see(self, name: str) -> None:
        """Mark a type that a program sees, and all that is in it."""
        model = self.models.get(name)
        if model is None or model.is_seen:
            shapes = [] if model or name not in self.aliases else [self.aliases[name]]
        else:
            model.is_seen = True
            shapes = [column.shape for column in model.columns]
        for shape in shapes:
            for part in parts(shape):
                for inner in part.structs:
                    self.see(inner)

    def named_in(self, name: str, revision: str) -> Shape:
        """Return the shape of a type as one revision has it."""
        view = types(revision)[name]
        if name in META:
            return Shape(values=Shape(frozenset(("Any",))))
        if name in PLAIN:
            return self.plain(name)
        if name in ELSEWHERE:
            simple = view.kind != "object"
            known = frozenset((ELSEWHERE[name],))
            return Shape(simple=known) if simple else Shape(structs=known)
        if is_struct(name):
            return self.model(standing_for(name))
        shape = self.shape(view.expr, revision)
        return self.alias(name, view.kind, shape)

    def plain(self, name: str) -> Shape:
        """Return the shape of a type that no Struct stands for."""
        anything = Shape(frozenset(("Any",)))
        shape = anything if PLAIN[name][0] == "Any" else Shape(values=anything)
        if name.endswith("Result"):  # a result is looked up by its name
            self.aliases[name] = shape
        return shape

    def alias(self, name: str, kind: TypeKind, shape: Shape) -> Shape:
        """Keep the name of an enum, of a union or of a result; return its shape."""
        if kind == "alias" and not name.endswith("Result"):
            return shape
        self.aliases[name] = join(self.aliases.get(name, Shape()), shape)
        return shape if shape.structs else Shape(frozenset((name,)))

    def shape(self, expr: Expr, revision: str) -> Shape:
        """Return the shape of a type expression in one revision."""
        if expr.kind == "primitive":
            return Shape(frozenset(SCALARS.get(expr.name, ("Any",))))
        if expr.kind == "constant":
            return Shape(constants=frozenset((literal(expr.value),)))
        if expr.kind == "name":
            return self.named_in(expr.name, revision)
        shapes = [self.shape(part, revision) for part in expr.of]
        if expr.kind == "list":
            return Shape(items=shapes[0])
        return Shape(values=shapes[0]) if expr.kind == "map" else reduce(join, shapes)

    def model(self, name: str) -> Shape:
        """Read a Struct, unless that was done; return the shape of a value of it."""
        if name not in self.models:
            views = {r: found for r in REVISIONS if (found := members(name, r)) is not None}
            model = self.models[name] = Model(name, [*views], [], extension=extension_of(name))
            model.columns = [self.column(wire_name, views) for wire_name in names_in(views)]
        return Shape(structs=frozenset((name,)))

    def column(self, wire_name: str, views: Mapping[str, Mapping[str, FieldView]]) -> Column:
        """Return one member, over all revisions that have it."""
        found = {r: view[wire_name] for r, view in views.items() if wire_name in view}
        shape = reduce(join, (self.shape(view.expr, r) for r, view in found.items()))
        limits = {view.limits for view in found.values()}
        return Column(
            wire_name,
            self.settled(shape),
            limits.pop() if len(limits) == 1 else (),
            [*found],
            [r for r, view in found.items() if view.required],
            next((view.extension for view in found.values() if view.extension), ""),
        )

    def settled(self, shape: Shape) -> Shape:
        """Return a shape without what another part of it says already."""
        former = {FORMERLY[name] for name in shape.structs if name in FORMERLY}
        enums = (self.aliases[name].constants for name in shape.simple if name in self.aliases)
        constants = shape.constants.difference(*enums)
        items = shape.items and self.settled(shape.items)
        values = shape.values and self.settled(shape.values)
        if values and shape.structs:
            # An object of any members is what a Struct was before its members were listed.
            if "Any" not in values.simple:
                raise CannotExpress(f"a value is a map or {', '.join(sorted(shape.structs))}")
            values = None
        return Shape(shape.simple, constants, shape.structs - former, items, values)


def roots() -> list[str]:
    """Return the types that messages name: params, results, and what errors carry."""
    rows = [row for revision in REVISIONS for row in methods(revision)]
    texts = [text for row in rows for text in (row.params, row.result) if text]
    exprs = [part for text in texts for part in (parse(text).of or (parse(text),))]
    data = [n for r in REVISIONS for n in types(r) if n.endswith(".error.data")]
    return sorted({*(expr.name for expr in exprs), *data})


def seen() -> list[str]:
    """Return the types of `roots` that a program sees, and the known keys of `_meta`."""
    rows = [row for revision in REVISIONS for row in methods(revision)]
    sent_by_clients = {row.params for row in rows if row.by != "server"}
    hidden = {*sent_by_clients, *READ_HERE}.difference(SEEN_TOO)
    return [name for name in (*roots(), *META) if name not in hidden]


def is_struct(name: str) -> bool:
    """Return True if a type has a Struct: it is an object in some revision."""
    return any(view.kind == "object" for r in REVISIONS if (view := type_(name, r)))


def standing_for(name: str) -> str:
    """Return the type whose Struct a type shares."""
    return next((merged for merged, names in MERGED.items() if name in names), name)


def renamed(models: Mapping[str, Model]) -> list[tuple[str, str]]:
    """Return the former names that no revision has beside the new one, with that."""
    pairs = [(old, new) for new, old in FORMERLY.items() if {old, new} <= models.keys()]
    return [pair for pair in pairs if not any(all(type_(n, r) for n in pair) for r in REVISIONS)]


def extension_of(name: str) -> str:
    """Return the extension without which a type would not be, or nothing."""
    found = {view.extension for r in REVISIONS if (view := type_(name, r))}
    return found.pop() if len(found) == 1 else ""


def names_in(views: Mapping[str, Mapping[str, FieldView]]) -> list[str]:
    """Return the members that any revision has, by name as in the official files."""
    return sorted({name for view in views.values() for name in view})


def literal(value: object) -> str:
    """Return a constant as source text."""
    return f'"{value}"' if isinstance(value, str) else str(value)


# Telling Structs apart


def set_tags(models: Mapping[str, Model]) -> None:
    """Choose the tag of every Struct that has a constant, and see that unions have one."""
    for model in models.values():
        constants = list(constants_of(model))
        if len(constants) > 1:
            raise CannotExpress(f"{model.name} has two constants: {constants}")
        if constants:
            model.tag = constants[0]
    for model in models.values():
        for column in model.columns:
            for part in parts(column.shape):
                must_differ(f"{model.name}.{column.wire_name}", part.structs, models)


def constants_of(model: Model) -> Iterator[Tag]:
    """Yield the members that are one text in every revision, and are always there."""
    for column in model.required:
        value = next(iter(column.shape.constants), "")
        if column.shape == Shape(constants=frozenset((value,))) and value.startswith('"'):
            yield column.wire_name, value


def must_differ(place: str, names: frozenset[str], models: Mapping[str, Model]) -> None:
    """Refuse a union of Structs that no tag tells apart."""
    if len(names) < 2:
        return
    tags = {models[name].tag for name in names if name in models}
    fields = {tag[0] if tag else "" for tag in tags}
    if None in tags or len(tags) < len(names) or len(fields) > 1:
        raise CannotExpress(f"{place}: nothing tells {', '.join(sorted(names))} apart")


# Writing


class Writer:
    """Writes what was read, each type below those it contains."""

    def __init__(self, reader: Reader) -> None:
        self.models = reader.models
        self.aliases = reader.aliases
        self.uses = uses_of_methods()
        self.limited: dict[str, str] = {}
        self.done: dict[str, str] = {}

    def text(self) -> str:
        """Return the whole file."""
        for name in sorted({*self.models, *self.aliases}):
            self.write(name)
        names = sorted(map(class_name, self.done))
        exported = "".join(f'    "{name}",\n' for name in names)
        limited = [f"{name}: TypeAlias = {text}\n" for name, text in sorted(self.limited.items())]
        blocks = [
            PRELUDE,
            f"__all__ = [\n{exported}]\n",
            "".join(limited),
            f"\n{WIRE}",
            f"\n{HELPERS}",
        ]
        return "\n".join(blocks) + laid_out(self.done.values())

    def write(self, name: str) -> None:
        """Write a type, below what it contains."""
        if name in self.done:
            return
        for inner in self.contained(name):
            if inner in self.models or inner in self.aliases:
                self.write(inner)
        in_models = name in self.models
        self.done[name] = self.struct(self.models[name]) if in_models else self.alias(name)

    def contained(self, name: str) -> list[str]:
        """Return the types that a type mentions."""
        model = self.models.get(name)
        shapes = [c.shape for c in model.columns] if model else [self.aliases[name]]
        found = [part for shape in shapes for part in parts(shape)]
        unions = [self.union_named(part.structs) for part in found] if model else []
        names = {n for part in found for n in (*part.structs, *part.simple)}
        return sorted(names.union(union for union in unions if union))

    def alias(self, name: str) -> str:
        """Return the source of a type alias."""
        text = self.annotation(self.aliases[name], within=name)
        line = f"{class_name(name)}: TypeAlias = {text}\n"
        if len(line) <= WIDTH:
            return line
        if not text.startswith("Literal["):
            return f"{class_name(name)}: TypeAlias = (\n    {text}\n)\n"
        values = "".join(f"    {value},\n" for value in sorted(self.aliases[name].constants))
        return f"{class_name(name)}: TypeAlias = Literal[\n{values}]\n"

    def struct(self, model: Model) -> str:
        """Return the source of a class."""
        tag = f', tag_field="{model.tag[0]}", tag={model.tag[1]}' if model.tag else ""
        base = "HintedWire" if model.name in WITH_HINTS else "Wire"
        lines = [f"class {class_name(model.name)}({base}, frozen=True{tag}):", self.doc(model), ""]
        if model.tag:
            wire_name, value = model.tag
            lines.append(f"    {python_name(wire_name)}: ClassVar[Literal[{value}]] = {value}")
        untagged = [c for c in model.columns if not model.tag or c.wire_name != model.tag[0]]
        required = [column for column in untagged if column in model.required]
        optional = [column for column in untagged if column not in model.required]
        for column in (*required, *optional):
            lines += self.member(column, model)
        must_not_shadow(model)
        source = "\n".join(lines).rstrip() + "\n"
        more = PROPERTIES.get(class_name(model.name))
        return source if more is None else f"{source}\n{more}"

    def doc(self, model: Model) -> str:
        """Return the docstring of a class: what it is for, and since when."""
        merged = " or ".join(f"`{name}`" for name in MERGED.get(model.name, (model.name,)))
        use = self.uses.get(model.name, merged)
        when = revisions_text(model.present, REVISIONS)
        extension = f" ({extension_text(model.extension)})" if model.extension else ""
        return f'    """{use}, {when or "in every revision"}{extension}."""'

    def member(self, column: Column, model: Model) -> list[str]:
        """Return the lines of one member."""
        absent = "" if column in model.required else absent_text(column, model)
        annotation = self.annotation(column.shape, column.limits, absent=absent)
        line = f"    {column.name}: {annotation}{default_text(column, absent)}"
        comment = comment_text(column, model)
        both = f"{line}  # {comment}" if comment else line
        if len(both) <= WIDTH:
            return [both]
        above = [f"    # {comment}"] if comment else []
        return [*above, *folded(line)]

    def annotation(
        self, shape: Shape, limits: Limits = (), *, absent: str = "", within: str = ""
    ) -> str:
        """Return a shape as source text."""
        if "Any" in shape.simple:
            return "Any"
        kinds = [*self.structs_text(shape.structs, within), *self.containers(shape)]
        kinds += sorted(shape.simple - {"None"}, key=simple_order)
        if shape.constants and "str" not in shape.simple:
            kinds.append(f"Literal[{', '.join(sorted(shape.constants))}]")
        text = self.with_limits(" | ".join(kinds), limits)
        unset = " | UnsetType" if absent == "UNSET" else ""
        return text + unset + (" | None" if absent == "None" or "None" in shape.simple else "")

    def containers(self, shape: Shape) -> Iterator[str]:
        """Yield the list and the dict that a value may be."""
        if shape.items:
            yield f"list[{self.annotation(shape.items)}]"
        if shape.values:
            yield f"dict[str, {self.annotation(shape.values)}]"

    def structs_text(self, names: frozenset[str], within: str) -> list[str]:
        """Return the Structs of a union, by the name of the union if it has one."""
        union = self.union_named(names)
        return [union] if union and union != within else [class_name(n) for n in sorted(names)]

    def union_named(self, names: frozenset[str]) -> str | None:
        """Return the name of the union of these Structs, or None."""
        unions = (name for name, shape in self.aliases.items() if shape == Shape(structs=names))
        return next(unions, None) if len(names) > 1 else None

    def with_limits(self, text: str, limits: Limits) -> str:
        """Return a type with what else is asked of it, where msgspec can check that."""
        checked = tuple(limit for limit in limits if limit[0] != NOT_CHECKED)
        if not checked:
            return text
        if (text, checked) not in LIMITED:
            raise CannotExpress(f"{text} with {checked} is not in LIMITED")
        name, source = LIMITED[text, checked]
        self.limited[name] = source
        return name


def laid_out(sources: Iterable[str]) -> str:
    """Return classes and aliases with the space between them that our formatter wants."""
    text, after_class = "", True
    for source in sources:
        is_class = source.startswith("class ")
        text += ("\n\n" if is_class or after_class else "") + source
        after_class = is_class
    return text


def simple_order(name: str) -> tuple[bool, str]:
    """Put an int before a float, and aliases before what Python has."""
    return not name[0].isupper(), {"float": "inu"}.get(name, name)


def absent_text(column: Column, model: Model) -> str:
    """Return what an optional member is if it is absent."""
    null_is_a_value = not {"Any", "None"}.isdisjoint(column.shape.simple)
    return "None" if model.is_seen and not null_is_a_value else "UNSET"


def default_text(column: Column, absent: str) -> str:
    """Return what stands behind the annotation of a member; `absent` is empty if required."""
    named = "" if camel(column.name) == column.wire_name else f'name="{column.wire_name}"'
    if not named:
        return f" = {absent}" if absent else ""
    return f" = field(default={absent}, {named})" if absent else f" = field({named})"


def folded(line: str) -> list[str]:
    """Return a line as our formatter folds it where it is too long."""
    if len(line) <= WIDTH:
        return [line]
    start, opening, arguments = line.partition(" = field(")
    if not opening:
        raise CannotExpress(f"this does not fit on a line: {line}")
    return [start + opening, f"        {arguments.removesuffix(')')}", "    )"]


def comment_text(column: Column, model: Model) -> str:
    """Return the revisions that have or require a member, where that is not all of them."""
    present = revisions_text(column.present, model.present)
    required = revisions_text(column.required, column.present) if column.required else ""
    extension = extension_text(column.extension) if column.extension and not model.extension else ""
    words = [present, f"required {required}" if required else "", extension]
    if column.required == column.present and column not in model.required:
        words[1] = "required"
    return "; ".join(word for word in words if word)


def revisions_text(found: list[str], among: Iterable[str]) -> str:
    """Return the revisions `found` as text, or nothing where they are all."""
    if found == [*among]:
        return ""
    runs: list[list[str]] = []
    for revision in REVISIONS:
        if revision in found:
            previous = REVISIONS.index(revision) - 1
            if runs and runs[-1][-1] == REVISIONS[previous]:
                runs[-1].append(revision)
            else:
                runs.append([revision])
    return " and ".join(map(run_text, runs))


def run_text(run: list[str]) -> str:
    """Return a run of revisions as text."""
    if run[-1] == REVISIONS[-1]:
        return f"since {run[0]}"
    if run[0] == REVISIONS[0]:
        return f"up to {run[-1]}"
    return f"in {run[0]} only" if len(run) == 1 else f"from {run[0]} to {run[-1]}"


def extension_text(extension: str) -> str:
    """Return what people call an extension."""
    return f"{extension.rpartition('/')[2]} extension"


def must_not_shadow(model: Model) -> None:
    """Refuse a member whose name would hide a type that a later annotation needs."""
    names = {column.name for column in model.columns}
    if "dict" in names or "str" in names:
        raise CannotExpress(f"{model.name} has a member called like a type")
    if "list" in names and any(part.items for c in model.columns for part in parts(c.shape)):
        raise CannotExpress(f"{model.name} has a member `list` and a list")


def uses_of_methods() -> dict[str, str]:
    """Return what the params and results of methods are for, as sentences."""
    taken: dict[str, list[str]] = {}
    given: dict[str, list[str]] = {}
    for revision in REVISIONS:
        for row in methods(revision):
            taken.setdefault(row.params or "", []).append(row.name)
            if row.result:
                for part in parse(row.result).of or (parse(row.result),):
                    given.setdefault(part.name, []).append(row.name)
    sentences = {name: f"Params of {names_text(found)}" for name, found in taken.items()}
    return sentences | {name: f"Result of {names_text(found)}" for name, found in given.items()}


def names_text(names: Iterable[str]) -> str:
    """Return the names of some methods, unless there are too many for a line."""
    unique = sorted(set(names))
    return ", ".join(f"`{name}`" for name in unique) if len(unique) <= 3 else "several methods"


def generated() -> str:
    """Return the text of the file.

    Raises:
        CannotExpress: a row needs a decision that no table has.
    """
    reader = Reader()
    reader.read()
    set_tags(reader.models)
    return Writer(reader).text()


def main(arguments: list[str] | None = None) -> int:
    """Write or check; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the Structs of MCP from its rows.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    text = generated()
    if not options.check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    there = TARGET.read_text(encoding="utf-8")
    changes = difflib.unified_diff(there.splitlines(), text.splitlines(), "there", "generated", n=1)
    for line in changes:
        print(line)
    return int(there != text)


if __name__ == "__main__":
    sys.exit(main())
