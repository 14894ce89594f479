"""YAML: a reader that keeps offsets, and edits that keep the text around them.

`ruamel.yaml` reads; the text is edited here, so that only the entry is rewritten.

The rules that live here, and only here:

* YAML 1.2, one document, no tags of programs. A name that appears twice is an error.
* An edit changes the lines of one entry. All other text stays as it is: comments, order, quotes,
  indentation, line ends, a byte order mark.
* Comments inside an entry, and those right below it that are indented deeper than its name,
  belong to it and go with it when it is removed; all others stay.
* A new entry has the indentation of its neighbours, and goes after the last. New lists have the
  indentation of the first list of the file.
* Entries in flow style (`{...}`), anchors and aliases are not edited.
* An error names line and column and never quotes the text: values may be secrets.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from ..extras import install_command
from .errors import TextEditError

try:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode
except ImportError:
    raise TextEditError(
        f"YAML needs ruamel.yaml: {install_command('yaml')}; "
        "without it, `trunkline install --to json` prints an entry to adapt"
    ) from None

__all__ = [
    "YamlTextError",
    "add_entry",
    "loads",
    "remove_entry",
    "scalars",
    "set_members",
]

# The reader is written in Python: 0.1 s for each 10 KiB, which is a large configuration.
_MAX_BYTES: Final = 1 << 18
# Values, those behind aliases counted each time: some aliases of aliases would fill the memory.
_MAX_VALUES: Final = 100_000
_BOM: Final = "\ufeff"
_BLANK_OR_COMMENT: Final = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
_ALIAS: Final = re.compile(r"[ \t]*:[ \t]*\*[^\s,\[\]{}]+")
# Letters that cannot be taken for anything but text. Words of YAML 1.1 are quoted too.
_PLAIN: Final = re.compile(r"(?:\.{0,2}/|[A-Za-z_])[A-Za-z0-9_./@+=-]*(?::[A-Za-z0-9_./@+=-]+)*")
_WORDS: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


class YamlTextError(TextEditError):
    """A text is not YAML, or is YAML that is not edited; the text has line and column."""

    def __init__(self, problem: str, text: str = "", at: int = 0) -> None:
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        super().__init__(f"line {line}, column {column}: {problem}" if text else problem)


def loads(text: str) -> Any:
    """Return the value of a text; an empty dict if there is none, but comments.

    Raises:
        YamlTextError: it is not YAML that can be used here.
    """
    return _read(text)[1]


def scalars(text: str) -> Iterator[tuple[tuple[str | int, ...], int, int, Any]]:
    """Yield each value that is not a collection: its path, where it begins and ends, and it.

    A value behind an alias is yielded once, where it stands.
    """
    plain = text.removeprefix(_BOM)
    start = len(text) - len(plain)
    root = _read(text)[0]
    waiting: list[tuple[tuple[str | int, ...], Node]] = [] if root is None else [((), root)]
    seen: set[int] = set()
    while waiting:
        path, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            waiting += [((*path, str(key.value)), value) for key, value in node.value]
        elif isinstance(node, SequenceNode):
            waiting += [((*path, place), item) for place, item in enumerate(node.value)]
        else:
            yield path, start + _start(node), start + _end(plain, node), node.value


# Reading


def _read(text: str) -> tuple[Node | None, Any]:
    """Return the nodes of a text, whose offsets count from behind a byte order mark, and its value.

    Raises:
        YamlTextError: it is not YAML that can be used here.
    """
    plain = text.removeprefix(_BOM)
    if len(plain) > _MAX_BYTES:
        raise YamlTextError(f"more than {_MAX_BYTES >> 10} KiB of YAML")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they quote the text
            root: Node | None = YAML(typ="safe", pure=True).compose(plain)
            if root is not None:
                _check_size(root)
            value = YAML(typ="safe", pure=True).load(plain)
    except DuplicateKeyError as error:
        _fail(error, "a name appears twice", plain)
    except MarkedYAMLError as error:
        # What these texts quote are names of tags and anchors, and single characters.
        said = str(error.problem or error.context or "not readable")
        _fail(error, said.removeprefix("but "), plain)
    except YAMLError:
        raise YamlTextError("a character that YAML does not allow") from None
    except YamlTextError:
        raise
    except RecursionError:
        raise YamlTextError("nested too deep") from None
    except TypeError:
        raise YamlTextError("a name that is not text") from None
    except (ValueError, OverflowError):
        raise YamlTextError("a number or a date that cannot be represented") from None
    return root, {} if value is None else value


def _fail(error: MarkedYAMLError, problem: str, text: str) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    raise YamlTextError(problem, text, 0 if mark is None else mark.index) from None


def _check_size(root: Node) -> None:
    """Raise if a document is too large with its aliases followed, or contains itself."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: Node) -> int:
        here = id(node)
        if here in open_nodes:
            raise YamlTextError("an alias inside its own anchor")
        if here not in sizes:
            open_nodes.add(here)
            sizes[here] = 1 + sum(map(size, _children(node)))
            open_nodes.discard(here)
        return sizes[here]

    if size(root) > _MAX_VALUES:
        raise YamlTextError(f"more than {_MAX_VALUES} values")


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, SequenceNode):
        yield from node.value


def _is_flow(node: Node) -> bool:
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _start(node: Node) -> int:
    found: int = node.start_mark.index
    return found


def _end(text: str, node: Node) -> int:
    """Return the offset after the last character of a value, without what follows it."""
    end: int = node.end_mark.index
    if isinstance(node, ScalarNode):
        if end == _start(node):
            return 0  # nothing is written: the next token is where it "stands"
        # A block scalar takes the blank lines after it.
        return _start(node) + len(text[_start(node) : end].rstrip()) if node.style else end
    if _is_flow(node):
        return end
    # A block ends where the next one begins: comments and blank lines between are not of it.
    last = _start(node)
    at = last
    for line in text[at:end].splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if not _BLANK_OR_COMMENT.fullmatch(bare):
            last = at + len(bare)
        at += len(line)
    inner = [each for each in _children(node) if _start(each) >= _start(node)]
    # The last line of a block scalar may look like a comment.
    return max([last, *(_end(text, each) for each in inner[-1:])])


# Edits


class _Document:
    """A text to be edited, and the nodes in it."""

    def __init__(self, text: str) -> None:
        self.mark = _BOM if text.startswith(_BOM) else ""
        self.text = text.removeprefix(_BOM)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.root = _read(text)[0]
        self.unit, self.list_indent = _style(self.root)

    def fail(self, problem: str, at: int) -> NoReturn:
        raise YamlTextError(f"{problem}; edit the file by hand", self.text, at)

    def block(self, node: Node) -> Any:
        """Return the items of a collection in block style."""
        if node.anchor is not None:
            self.fail("an anchor is not edited", _start(node))
        if _is_flow(node):
            self.fail("{} and [] with content are not edited", _start(node))
        return node.value

    def pair(self, node: Node, name: str) -> tuple[Node, Node] | None:
        """Return a name of a mapping and its value; None if it is not there."""
        if not isinstance(node, MappingNode):
            self.fail("expected names with values here", _start(node))
        for key, value in self.block(node):
            if key.value == name and isinstance(key, ScalarNode):
                if _start(value) < key.end_mark.index:
                    self.fail("an alias is not edited", _start(key))
                return key, value
        return None

    def column(self, at: int) -> int:
        return at - self.line(at)

    def line(self, at: int) -> int:
        """Return the offset of the line that an offset is in."""
        return self.text.rfind("\n", 0, at) + 1

    def after(self, at: int) -> int:
        """Return the offset of the line after the one that an offset is in."""
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    def block_end(self, key: Node | None, value: Node, column: int) -> int:
        """Return the offset of the line after an entry and the comments that belong to it.

        An item of a list has no `key`.
        """
        begin = _start(value) if key is None else key.end_mark.index
        alias = None if key is None else _ALIAS.match(self.text, begin)
        end = self.after(alias.end() if alias else max(begin, _end(self.text, value)))
        while end < len(self.text):
            line = self.text[end : self.after(end)]
            bare = line.lstrip(" ")
            if not bare.startswith("#") or len(line) - len(bare) <= column:
                break
            end += len(line)
        return end

    def insert(self, at: int, lines: Sequence[str]) -> str:
        """Return the text with lines at the begin of a line."""
        head = self.text[:at]
        if head and not head.endswith("\n"):
            head += self.newline
        added = "".join(f"{line}{self.newline}" for line in lines)
        return f"{self.mark}{head}{added}{self.text[at:]}"

    def cut(self, start: int, end: int, new: str = "") -> str:
        """Return the text with a part replaced."""
        return f"{self.mark}{self.text[:start]}{new}{self.text[end:]}"

    # How values are written

    def member(self, name: str, value: Any, indent: int) -> list[str]:
        """Return the lines of a name and its value."""
        blanks = " " * indent
        if isinstance(value, Mapping) and value:
            inner = indent + self.unit
            return [f"{blanks}{_scalar(name)}:", *self.members(value, inner)]
        if isinstance(value, list | tuple) and value:
            return [
                f"{blanks}{_scalar(name)}:",
                *(f"{blanks}{' ' * self.list_indent}- {_scalar(each)}" for each in value),
            ]
        return [f"{blanks}{_scalar(name)}: {_scalar(value)}"]

    def members(self, values: Mapping[str, Any], indent: int) -> list[str]:
        """Return the lines of the members of a mapping."""
        return [line for name, value in values.items() for line in self.member(name, value, indent)]

    def entry(
        self, name: str, values: Mapping[str, Any], indent: int, *, dash: int = 0
    ) -> list[str]:
        """Return the lines of an entry; `dash` is the width of the one before an item of a list."""
        if not dash:
            return self.member(name, values, indent)
        first, *rest = self.members(values, indent + dash)
        return [f"{' ' * indent}-{first[indent + 1 :]}", *rest]


def _style(root: Node | None) -> tuple[int, int]:
    """Return the indentation of mappings and of lists in a document; 2 and 2 if it has none."""
    units: list[int] = []
    lists: list[int] = []
    waiting = [] if root is None else [root]
    while waiting and not (units and lists):
        node = waiting.pop(0)
        for key, value in node.value if isinstance(node, MappingNode) else ():
            if isinstance(value, ScalarNode) or _is_flow(value) or value.anchor is not None:
                continue
            depth = value.start_mark.column - key.start_mark.column
            (lists if isinstance(value, SequenceNode) else units).append(depth)
        waiting += [each for each in _children(node) if not isinstance(each, ScalarNode)]
    unit = next((each for each in units if each > 0), 2)
    return unit, next((each for each in lists if each >= 0), 2)


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON in ASCII escapes what YAML does not allow, and writes others as two halves.
    return json.dumps(value, ensure_ascii=not value.isprintable())


def _is_empty(node: Node) -> bool:
    return str(node.tag).endswith(":null") if isinstance(node, ScalarNode) else not node.value


def add_entry(
    text: str, keys: Sequence[str], name: str, values: Mapping[str, Any], *, is_list: bool = False
) -> str:
    """Return a text with one more entry below `keys`; what is missing on the way is added.

    Raises:
        YamlTextError: the text cannot be read, or not be edited safely.
    """
    here = _Document(text)
    node = here.root
    if node is None:
        return here.insert(len(here.text), _chain(here, keys, name, values, 0, is_list=is_list))
    for place, step in enumerate(keys):
        found = here.pair(node, step)
        if found is None:
            column = node.start_mark.column
            at = here.after(_last_end(here, node))
            if place == 0:
                at = len(here.text)  # after comments at the end of the file
            lines = _chain(here, keys[place:], name, values, column, is_list=is_list)
            return here.insert(at, lines)
        key, node = found
        if _is_empty(node):
            rest = keys[place + 1 :]
            return _fill(here, key, node, rest, name, values, is_list=is_list)
    if isinstance(node, SequenceNode) != is_list:
        here.fail("expected another kind of collection here", _start(node))
    items = here.block(node)
    column, dash = node.start_mark.column, 0
    if is_list:
        dash = items[0].start_mark.column - column
        if _start(items[-1]) < _start(node):
            here.fail("an alias is not edited", _start(node))
        at = here.block_end(None, items[-1], column)
    else:
        key, value = items[-1]
        at = here.block_end(key, value, column)
    return here.insert(at, here.entry(name, values, column, dash=dash))


def _last_end(here: _Document, node: Node) -> int:
    key, value = here.block(node)[-1]
    return here.block_end(key, value, key.start_mark.column) - 1


def _chain(
    here: _Document,
    keys: Sequence[str],
    name: str,
    values: Mapping[str, Any],
    column: int,
    *,
    is_list: bool,
) -> list[str]:
    """Return the lines of the names `keys`, each below the one before, and of an entry in them."""
    lines = []
    for key in keys:
        lines.append(f"{' ' * column}{_scalar(key)}:")
        column += here.unit
    if is_list:
        column += here.list_indent - here.unit
    return [*lines, *here.entry(name, values, column, dash=2 if is_list else 0)]


def _fill(
    here: _Document,
    key: Node,
    value: Node,
    rest: Sequence[str],
    name: str,
    values: Mapping[str, Any],
    *,
    is_list: bool,
) -> str:
    """Return the text with an entry in a collection that is empty: `[]`, `{}`, null or nothing."""
    colon = here.text.find(":", key.end_mark.index)
    end = max(colon + 1, _end(here.text, value))
    stop = here.after(end)
    tail = here.text[end:stop]
    if not _BLANK_OR_COMMENT.fullmatch(tail.rstrip("\r\n")):
        here.fail("something follows an empty collection", end)
    column = key.start_mark.column
    lines = _chain(here, (str(key.value), *rest), name, values, column, is_list=is_list)[1:]
    filled = _Document(here.cut(colon + 1, end))
    return filled.insert(filled.after(colon), lines)


def remove_entry(text: str, keys: Sequence[str], name: str, *, name_key: str = "") -> str:
    """Return a text without an entry; unchanged if there is none.

    `name_key` is the member of an item of a list that has its name.

    Raises:
        YamlTextError: as `add_entry`.
    """
    here = _Document(text)
    container = _container(here, keys)
    if container is None:
        return text
    key, node = container
    found = _entry(here, node, name, name_key)
    if found is None:
        return text
    start, end = _lines_of(here, node, found)
    if len(node.value) == 1:
        colon = here.text.find(":", key.end_mark.index) + 1
        empty = " []" if isinstance(node, SequenceNode) else " {}"
        return f"{here.mark}{here.text[:colon]}{empty}{here.text[colon:start]}{here.text[end:]}"
    return here.cut(start, end)


def _container(here: _Document, keys: Sequence[str]) -> tuple[Node, Node] | None:
    """Return the name and the collection that `keys` lead to."""
    found: tuple[Node, Node] | None = None
    node = here.root
    for step in keys:
        if node is None or _is_empty(node):
            return None
        found = here.pair(node, step)
        if found is None:
            return None
        node = found[1]
    return found


def _entry(
    here: _Document, node: Node, name: str, name_key: str
) -> tuple[Node | None, Node] | None:
    """Return the name and the value of an entry; in a list it has no name of its own."""
    if _is_empty(node):
        return None
    if not name_key:
        return here.pair(node, name)
    if not isinstance(node, SequenceNode):
        here.fail("expected a list here", _start(node))
    found = [
        item
        for item in here.block(node)
        if isinstance(item, MappingNode)
        and any(key.value == name_key and value.value == name for key, value in item.value)
    ]
    if len(found) > 1:
        here.fail("two entries have that name", _start(found[1]))
    if found and _start(found[0]) < _start(node):
        here.fail("an alias is not edited", _start(node))
    return (None, found[0]) if found else None


def _lines_of(here: _Document, node: Node, found: tuple[Node | None, Node]) -> tuple[int, int]:
    """Return where the lines of an entry begin and end."""
    key, value = found
    first = value if key is None else key
    start = here.line(_start(first))
    before = here.text[start : _start(first)]
    if before.strip(" ") != ("" if key is not None else "-"):
        here.fail("an entry that does not begin its line is not edited", _start(first))
    return start, here.block_end(key, value, node.start_mark.column)


def set_members(
    text: str,
    keys: Sequence[str],
    name: str,
    values: Mapping[str, Any],
    dropped: Sequence[str],
    *,
    name_key: str = "",
) -> str:
    """Return a text whose entry has the given members and not the dropped ones.

    Members of a value that is a mapping are set one by one; others of it stay.

    Raises:
        YamlTextError: as `add_entry`.
    """
    for each in dropped:
        text = _drop(text, keys, name, each, name_key)
    for each, value in values.items():
        if isinstance(value, Mapping):
            text = _merge(text, keys, name, each, value, name_key)
        else:
            text = _set(text, keys, name, (), each, value, name_key)
    return text


def _open(
    text: str, keys: Sequence[str], name: str, inside: Sequence[str], name_key: str
) -> tuple[_Document, Node]:
    """Return a document and the mapping that is an entry, or is inside it."""
    here = _Document(text)
    container = _container(here, keys)
    found = None if container is None else _entry(here, container[1], name, name_key)
    if found is None:
        raise YamlTextError(f"the entry {name!r} is not there")
    node = found[1]
    for step in inside:
        pair = here.pair(node, step)
        if pair is None:
            raise YamlTextError(f"the entry {name!r} has no {step}")
        node = pair[1]
    if not isinstance(node, MappingNode):
        here.fail("expected names with values here", _start(node))
    here.block(node)
    return here, node


def _set(
    text: str,
    keys: Sequence[str],
    name: str,
    inside: Sequence[str],
    member: str,
    value: Any,
    name_key: str,
) -> str:
    here, node = _open(text, keys, name, inside, name_key)
    column = node.start_mark.column
    found = here.pair(node, member)
    if found is None:
        return here.insert(here.after(_last_end(here, node)), here.member(member, value, column))
    key, old = found
    if loads(text) == loads(_replaced(here, key, old, member, value)):
        return text
    return _replaced(here, key, old, member, value)


def _replaced(here: _Document, key: Node, old: Node, member: str, value: Any) -> str:
    is_plain = isinstance(value, str | bool | int) or value is None
    if is_plain and isinstance(old, ScalarNode) and old.style not in ("|", ">") and old.value:
        shown = _scalar(value)
        if old.style and isinstance(value, str) and not shown.startswith('"'):
            shown = f'"{shown}"'  # the user quotes
        return here.cut(_start(old), old.end_mark.index, shown)
    column = key.start_mark.column
    lines = here.member(member, value, column)
    end = max(_end(here.text, old), here.text.find(":", key.end_mark.index) + 1)
    return here.cut(_start(key), end, here.newline.join(lines)[column:])


def _merge(
    text: str,
    keys: Sequence[str],
    name: str,
    member: str,
    values: Mapping[str, Any],
    name_key: str,
) -> str:
    here, node = _open(text, keys, name, (), name_key)
    found = here.pair(node, member)
    if found is None or _is_empty(found[1]):
        return _set(text, keys, name, (), member, values, name_key) if values else text
    if _is_flow(found[1]):
        # A mapping in braces is one line, which is rewritten, as an inline table of TOML is.
        merged = {str(key.value): value.value for key, value in found[1].value}
        shown = json.dumps({**merged, **values}, ensure_ascii=False)
        return here.cut(_start(found[1]), found[1].end_mark.index, shown)
    for each, value in values.items():
        if isinstance(value, Mapping):
            raise YamlTextError(f"{member} of the entry {name!r} has mappings in it")
        text = _set(text, keys, name, (member,), each, value, name_key)
    return text


def _drop(text: str, keys: Sequence[str], name: str, member: str, name_key: str) -> str:
    here, node = _open(text, keys, name, (), name_key)
    found = here.pair(node, member)
    if found is None:
        return text
    key, value = found
    start = here.line(_start(key))
    if here.text[start : _start(key)].strip(" "):
        # The first of an item of a list stands behind the dash, and so does the next one then.
        place = [each.value for each, _ in node.value].index(member) + 1
        if place == len(node.value):
            here.fail("the only member of an entry is not removed", _start(key))
        return here.cut(_start(key), _start(node.value[place][0]))
    return here.cut(start, here.block_end(key, value, key.start_mark.column))
