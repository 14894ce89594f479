"""Public names and what is known of them, for the reference pages.

The names come from `__all__` of the imported package, so that names which are loaded on first
use (PEP 562) count as well. Signatures, docstrings and comments come from the source, by griffe:
annotations and defaults read as they were written. A name that the source does not explain (a
function made by a call, a constant of another library) is described by its value.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe

SOURCE = Path(__file__).resolve().parents[2] / "src"
ROOT = "trunkline"
COMMENT = re.compile(r"^\s*#:? ?(.*)$")
TRAILING = re.compile(r"(?:^|\s)#:? (.*)$")
# Remarks to tools, not to readers.
DIRECTIVE = re.compile(r"\s*#? *(noqa|type:|pragma|fmt:|mypy:|ruff:).*$")
MAX_VALUE = 60
MAX_ALIAS = 200
# The public packages.
PACKAGES = (
    "trunkline",
    "trunkline.auth",
    "trunkline.client",
    "trunkline.compat",
    "trunkline.compat.erlmcp",
    "trunkline.compat.mcpp",
    "trunkline.compat.pierre",
    "trunkline.errors",
    "trunkline.jsonrpc",
    "trunkline.judge",
    "trunkline.mcp",
    "trunkline.server",
    "trunkline.skills",
    "trunkline.spec",
    "trunkline.store",
    "trunkline.testing",
    "trunkline.transports",
)


@dataclass(frozen=True)
class Entry:
    """A public name, or a member of a public class.

    `kind` is an object type of Sphinx' Python domain. `key` is equal for two names of one object.
    """

    package: str
    name: str
    kind: str
    key: str
    signatures: tuple[str, ...]
    options: dict[str, str]
    text: str
    fields: tuple[Entry, ...] = ()
    members: tuple[Entry, ...] = ()
    # The names in the signatures: each with the key of the object that it means.
    scope: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The name with its package, as an import would write it."""
        return f"{self.package}.{self.name}"

    @property
    def summary(self) -> str:
        """The first paragraph of the text."""
        return self.text.partition("\n\n")[0]


def public_names(package: str) -> list[str]:
    """Return what a package exports."""
    return list(importlib.import_module(package).__all__)


def is_exception(package: str, name: str) -> bool:
    """Return True if an exported name is an exception."""
    value = getattr(importlib.import_module(package), name)
    return isinstance(value, type) and issubclass(value, BaseException)


@cache
def _source() -> griffe.Object:
    found = griffe.load(ROOT, search_paths=[str(SOURCE)], resolve_aliases=True)
    assert isinstance(found, griffe.Object)
    return found


def _static(package: str, name: str) -> griffe.Object | None:
    """Return what the source says of a name, where it is defined, or None if it says nothing."""
    path = f"{package}.{name}".removeprefix(f"{ROOT}.")
    try:
        found = _source()[path]
        return found.final_target if found.is_alias else found
    except (KeyError, griffe.AliasResolutionError):
        return None


@cache
def entry(package: str, name: str) -> Entry:
    """Return what is known of an exported name."""
    value = getattr(importlib.import_module(package), name)
    static = _static(package, name)
    if isinstance(value, ModuleType):
        return _module(package, name, value)
    if isinstance(static, griffe.Class):
        return _class(package, name, static, value)
    if isinstance(static, griffe.Function):
        return _function(package, name, static)
    if inspect.isroutine(value):
        return _made_function(package, name, value)
    return _value(package, name, static, value)


# One function per kind.


def _module(package: str, name: str, value: ModuleType) -> Entry:
    text = markdown(griffe.Docstring(inspect.getdoc(value) or ""))
    return Entry(package, name, "module", value.__name__, (name,), {}, text)


def _class(package: str, name: str, static: griffe.Class, value: type) -> Entry:
    is_raised = issubclass(value, BaseException)
    fields = tuple(_fields(package, name, static, value))
    signature = _of_fields(value, fields) if fields else _of_init(static)
    taken = {each.name for each in fields}
    members = [each for each in _members(package, name, static) if each.name not in taken]
    init = _init(static)
    more = "" if fields else _aliases(_annotations(init))
    # The options of a constructor may be described there; its first sentence says nothing new.
    made = markdown(init.docstring, is_list=True) if init and not fields else ""
    if is_raised:
        bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
        more = "\n".join(part for part in (f":base: {bases}", more) if part)
    return Entry(
        package,
        name,
        "exception" if is_raised else "class",
        static.canonical_path,
        (name + signature,),
        {},
        markdown(static.docstring, "\n".join(part for part in (made, more) if part)),
        fields,
        tuple(members),
        {} if fields else _scope(_expressions(init)),
    )


def _function(package: str, name: str, static: griffe.Function) -> Entry:
    each = static.overloads or [static]
    aliases = _aliases(part for one in each for part in _annotations(one))
    local = name.rpartition(".")[2]
    return Entry(
        package,
        name,
        "function",
        static.canonical_path,
        tuple(local + _arguments(one) for one in each),
        {"async": ""} if "async" in static.labels else {},
        markdown(static.docstring, aliases),
        scope=_scope(part for one in each for part in _expressions(one)),
    )


def _made_function(package: str, name: str, value: Any) -> Entry:
    text = markdown(griffe.Docstring(inspect.getdoc(value) or ""))
    signature = str(inspect.signature(value)).replace("'", "")
    return Entry(package, name, "function", f"{package}.{name}", (name + signature,), {}, text)


def _value(package: str, name: str, static: griffe.Object | None, value: Any) -> Entry:
    """Return an entry for an alias of types, or a constant."""
    text, written = "", ""
    if isinstance(static, griffe.Attribute):
        text = markdown(static.docstring) or comment(static)
        written = str(static.value or "")
    key = static.canonical_path if static else f"{package}.{name}"
    if isinstance(value, type) or not isinstance(value, (str, int, tuple, dict, frozenset)):
        if len(written) > 4 * MAX_VALUE or not static:
            written = ""
        # A call makes a new type or constant; what it is called with explains nothing.
        options = {"canonical": written} if written and "(" not in written else {}
        scope = _scope([static.value]) if isinstance(static, griffe.Attribute) and options else {}
        kind = "type" if options else "data"
        return Entry(package, name, kind, key, (name,), options, text, scope=scope)
    shown = repr(value)
    options = {"value": shown} if len(shown) <= MAX_VALUE else {}
    return Entry(package, name, "data", key, (name,), options, text)


# Members of classes.


def _members(package: str, owner: str, static: griffe.Class) -> Iterator[Entry]:
    """Yield the public methods and properties of a class, inherited ones too."""
    found = {**static.inherited_members, **static.members}
    # Bases come first, as in the source of one class that were written out.
    for name, member in found.items():
        if name.startswith("_") and name not in ("__call__",):
            continue
        if member.is_alias:
            member = member.final_target
        path = f"{owner}.{name}"
        if isinstance(member, griffe.Function) and member.docstring:
            made = _function(package, path, member)
            options = dict(made.options)
            for label in ("classmethod", "staticmethod"):
                if label in member.labels:
                    options[label] = ""
            yield dataclasses.replace(made, kind="method", options=options)
        elif isinstance(member, griffe.Attribute) and member.docstring:
            is_property = "property" in member.labels
            options = {"type": str(member.annotation)} if member.annotation else {}
            yield Entry(
                package,
                path,
                "property" if is_property else "attribute",
                member.canonical_path,
                (name,),
                options,
                markdown(member.docstring),
                scope=_scope([member.annotation]),
            )


def _fields(package: str, owner: str, static: griffe.Class, value: type) -> Iterator[Entry]:
    """Yield the fields of a record (Struct, dataclass, named tuple) or an enumeration."""
    for name in _field_names(value):
        member = static.all_members.get(name)
        if name.startswith("_") or member is None:
            continue
        if member.is_alias:
            member = member.final_target
        if not isinstance(member, griffe.Attribute):
            continue
        options = {"type": str(member.annotation)} if member.annotation else {}
        shown = _default(member)
        if shown:
            options["value"] = shown
        text = markdown(member.docstring) or comment(member)
        yield Entry(
            package,
            f"{owner}.{name}",
            "attribute",
            f"{owner}.{name} of {package}",
            (name,),
            options,
            text,
            scope=_scope([member.annotation]),
        )


def _field_names(value: type) -> Sequence[str]:
    if issubclass(value, enum.Enum):
        return list(value.__members__)
    if hasattr(value, "__struct_fields__"):
        return list(value.__struct_fields__)
    if dataclasses.is_dataclass(value):
        return [each.name for each in dataclasses.fields(value)]
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return list(value._fields)
    return []


def _default(member: griffe.Attribute) -> str:
    """Return the default of a field as it is written; of `field(...)` what it makes."""
    value = member.value
    if isinstance(value, griffe.ExprCall):
        given = {each.name: each.value for each in value.arguments if hasattr(each, "name")}
        if str(value.function).rpartition(".")[2] == "field":
            if "default" in given:
                return str(given["default"])
            return f"{given['default_factory']}()" if "default_factory" in given else ""
    return "" if value is None else str(value)


def _of_fields(value: type, fields: Sequence[Entry]) -> str:
    """Return the arguments of a record by name; their types stand with the fields."""
    if issubclass(value, enum.Enum):
        return ""
    positional = set(getattr(value, "__match_args__", ()))
    if dataclasses.is_dataclass(value):
        positional = {each.name for each in dataclasses.fields(value) if not each.kw_only}
    shown: list[str] = []
    for each in sorted(fields, key=lambda each: each.signatures[0] not in positional):
        name = each.signatures[0]
        if name not in positional and "*" not in shown:
            shown.append("*")
        default = each.options.get("value", "")
        shown.append(f"{name}={default}" if default else name)
    return f"({', '.join(shown)})"


def _init(static: griffe.Class) -> griffe.Function | None:
    init = static.all_members.get("__init__")
    if init is not None and init.is_alias:
        init = init.final_target
    return init if isinstance(init, griffe.Function) else None


def _of_init(static: griffe.Class) -> str:
    init = _init(static)
    return _arguments(init, returns=False) if init else ""


# The names in annotations.

Written = griffe.Expr | str | None


def _annotations(static: griffe.Function | None) -> Iterator[Written]:
    if static is not None:
        yield static.returns
        yield from (each.annotation for each in static.parameters)


def _aliases(annotations: Iterable[Written]) -> str:
    """Return what annotations mean by names that are not exported, as a field of a list."""
    found: dict[str, str] = {}
    waiting = list(_scope(annotations).items())
    while waiting:
        name, key = waiting.pop()
        static = _source()[key.removeprefix(f"{ROOT}.")]
        if name in found or key in _exported() or not isinstance(static, griffe.Attribute):
            continue
        written = " ".join(str(static.value or "").split())
        # A call makes something new, such as a TypeVar.
        if written and not isinstance(static.value, griffe.ExprCall) and len(written) < MAX_ALIAS:
            found[name] = written
            waiting += _scope([static.value]).items()
    if not found:
        return ""
    lines = [f"  - `{name}` = `{found[name]}`" for name in sorted(found)]
    return "\n".join([":types:", *lines])


@cache
def _exported() -> frozenset[str]:
    """Return the keys of all public names."""
    found = (_static(package, name) for package in PACKAGES for name in public_names(package))
    return frozenset(static.canonical_path for static in found if static)


def _expressions(static: griffe.Function | None) -> Iterator[Written]:
    if static is not None:
        yield static.returns
        for each in static.parameters:
            yield each.annotation
            yield each.default


def _scope(expressions: Iterable[Written]) -> dict[str, str]:
    """Return the key of every name of ours in some expressions."""
    found: dict[str, str] = {}
    for expression in expressions:
        if isinstance(expression, griffe.Expr):
            for part in expression.iterate(flat=True):
                if isinstance(part, griffe.ExprName):
                    path = part.canonical_path
                    if path.startswith(f"{ROOT}.") and (key := _key(path)):
                        found[part.name] = key
    return found


@cache
def _key(path: str) -> str:
    try:
        found = _source()[path.removeprefix(f"{ROOT}.")]
        return str(found.final_target.canonical_path if found.is_alias else found.canonical_path)
    except (KeyError, griffe.AliasResolutionError):
        return ""


# Text.


def _arguments(static: griffe.Function, returns: bool = True) -> str:
    """Return the arguments of a function as they are written, without `self`."""
    shown: list[str] = []
    last = None
    given = [each for each in static.parameters if each.name not in ("self", "cls")]
    kinds = griffe.ParameterKind
    for each in given:
        if last == kinds.positional_only and each.kind != kinds.positional_only:
            shown.append("/")
        is_starred = any(one.startswith("*") for one in shown)
        if each.kind == kinds.keyword_only and not is_starred:
            shown.append("*")
        prefix = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(each.kind, "")
        text = f"{prefix}{each.name}"
        text += f": {each.annotation}" if each.annotation is not None else ""
        if each.default is not None and not prefix:
            text += f" = {each.default}" if each.annotation is not None else f"={each.default}"
        shown.append(text)
        last = each.kind
    if last == kinds.positional_only:
        shown.append("/")
    arrow = f" -> {static.returns}" if returns and static.returns is not None else ""
    return f"({', '.join(shown)}){arrow}"


def markdown(docstring: griffe.Docstring | None, more: str = "", *, is_list: bool = False) -> str:
    """Return a docstring as Markdown, its sections as a field list with `more` at its end.

    `is_list` returns the list alone.
    """
    if docstring is None:
        return more
    parts: list[str] = []
    listed: list[str] = []
    for section in docstring.parse("google", warnings=False):
        kind = section.kind.value
        if kind == "text":
            parts.append(section.value)
        elif kind == "raises":
            listed += [f":raises {each.annotation}: {_joined(each)}" for each in section.value]
        elif kind == "parameters":
            listed += [f":param {each.name}: {_joined(each)}" for each in section.value]
        elif kind in ("returns", "yields"):
            word = {"returns": "returns", "yields": "yields"}[kind]
            listed += [f":{word}: {_joined(each)}" for each in section.value]
        elif kind == "examples":
            for form, text in section.value:
                parts.append(text if form.value == "text" else f"```python\n{text}\n```")
        elif kind == "admonition":
            parts.append(f"**{section.title}** {section.value.description}")
        else:
            raise ValueError(f"a docstring has a section of kind {kind}, which is not rendered")
    if more:
        listed.append(more)
    if is_list:
        return "\n".join(listed)
    if listed:
        parts.append("\n".join(listed))
    return "\n\n".join(parts)


def _joined(item: Any) -> str:
    return " ".join(item.description.split())


def comment(member: griffe.Attribute) -> str:
    """Return the comment above a field, or behind it, as text."""
    if member.lineno is None or member.endlineno is None:
        return ""
    lines = member.lines_collection[member.filepath]
    above: list[str] = []
    at = member.lineno - 2
    while at >= 0 and (found := COMMENT.match(lines[at])):
        above.insert(0, found[1])
        at -= 1
    behind = TRAILING.search(DIRECTIVE.sub("", lines[member.endlineno - 1]))
    said = above or ([behind[1]] if behind else [])
    text = " ".join(DIRECTIVE.sub("", line).strip() for line in said).strip()
    # Rulers between parts of a class are not about the field below them.
    if re.match(r"-- .* -{2,}", text):
        return ""
    return text and text[0].upper() + text[1:] + ("" if text[-1] in ".!?:" else ".")
