"""JSON with comments: a parser that keeps offsets, and edits that keep the text around them.

The rules that live here, and only here:

* `//` and `/* */` comments and trailing commas are accepted; everything else is RFC 8259.
* An edit changes the text of one member and the commas beside it. All other text stays as it
  is: comments, order, indentation, line ends, a byte order mark.
* Comments inside a member belong to it and go with it when it is removed; all others stay.
* A new member has the indentation of its neighbours, and goes after the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from .errors import TextEditError

__all__ = ["JsonMember", "JsonNode", "JsoncError", "loads", "parse", "remove_member", "set_member"]

# Deeper than any configuration; each level costs two frames of Python's stack.
_MAX_DEPTH: Final = 200
# Columns up to which a list of plain values stays on one line.
_MAX_LINE: Final = 88

# Possessive: nothing is kept to go back to, which would take 100 bytes for a character.
_SPACE: Final = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING: Final = re.compile(
    r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
)
_SCALAR: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_BLANK: Final = re.compile(r"[ \t]*")
_BOM: Final = "\ufeff"


class JsoncError(TextEditError):
    """A text is not JSON with comments; the text has line and column."""

    def __init__(self, problem: str, text: str, at: int) -> None:
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        super().__init__(f"line {line}, column {column}: {problem}")


class JsonMember(NamedTuple):
    """A member of an object: where its name, its value and the comma after it are."""

    name: str
    start: int
    node: JsonNode
    # Offset of the comma after it, or -1.
    comma: int


class JsonNode(NamedTuple):
    """A value in a text. `members` is None if it is not an object; `items` are of an array."""

    start: int
    end: int
    value: Any
    members: tuple[JsonMember, ...] | None = None
    items: tuple[JsonNode, ...] = ()

    def member(self, name: str) -> JsonMember | None:
        """Return the member with a name; the last one if there are several, as JSON readers do."""
        found = [each for each in self.members or () if each.name == name]
        return found[-1] if found else None


def loads(text: str) -> Any:
    """Return the value of a text.

    Raises:
        JsoncError: it is not JSON with comments.
    """
    try:
        # The parser in C first: most files have neither comments nor trailing commas.
        return json.loads(text.removeprefix(_BOM), parse_constant=_no_constant)
    except RecursionError:
        raise JsoncError("nested too deep", text, 0) from None
    except ValueError:
        return parse(text).value


def parse(text: str) -> JsonNode:
    """Return the value of a text, with the offsets of all members of objects.

    Raises:
        JsoncError: it is not JSON with comments.
    """
    return _JsoncParser(text).parse()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


class _JsoncParser:
    """A recursive descent parser over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0

    def parse(self) -> JsonNode:
        """Return the only value of the text."""
        node = self._value(self._skip(1 if self._text.startswith(_BOM) else 0))
        end = self._skip(node.end)
        if end != len(self._text):
            self._fail("unexpected text after the value", end)
        return node

    def _fail(self, problem: str, at: int) -> NoReturn:
        raise JsoncError(problem, self._text, at)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        end = found.end() if found else at
        if self._text.startswith("/*", end):
            self._fail("the comment is not closed", end)
        return end

    def _value(self, at: int) -> JsonNode:
        first = self._text[at : at + 1]
        if first == "{":
            return self._nested(self._object, at)
        if first == "[":
            return self._nested(self._array, at)
        if first == '"':
            value, end = self._string(at)
            return JsonNode(at, end, value)
        found = _SCALAR.match(self._text, at)
        if found is None:
            self._fail("expected a value" if first else "unexpected end of the text", at)
        try:
            return JsonNode(at, found.end(), json.loads(found[0]))
        except ValueError:  # more digits than Python converts
            self._fail("the number is too long", at)

    def _nested(self, read: Any, at: int) -> JsonNode:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail("nested too deep", at)
        node: JsonNode = read(at)
        self._depth -= 1
        return node

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if found is None:
            self._fail("the string is not closed, or has a character that must be escaped", at)
        return json.loads(found[0]), found.end()

    def _object(self, start: int) -> JsonNode:
        members: list[JsonMember] = []
        value: dict[str, Any] = {}
        at = self._skip(start + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                self._fail("expected a name in double quotes, or }", at)
            name, end = self._string(at)
            colon = self._skip(end)
            if self._text[colon : colon + 1] != ":":
                self._fail("expected a colon", colon)
            node = self._value(self._skip(colon + 1))
            after = self._skip(node.end)
            comma = after if self._text[after : after + 1] == "," else -1
            members.append(JsonMember(name, at, node, comma))
            value[name] = node.value
            at = self._skip(after + 1) if comma >= 0 else after
            if comma < 0 and self._text[at : at + 1] != "}":
                self._fail("expected a comma, or }", at)
        return JsonNode(start, at + 1, value, tuple(members))

    def _array(self, start: int) -> JsonNode:
        items: list[JsonNode] = []
        at = self._skip(start + 1)
        while self._text[at : at + 1] != "]":
            node = self._value(at)
            items.append(node)
            at = self._skip(node.end)
            if self._text[at : at + 1] == ",":
                at = self._skip(at + 1)
            elif self._text[at : at + 1] != "]":
                self._fail("expected a comma, or ]", at)
        return JsonNode(start, at + 1, [each.value for each in items], None, tuple(items))


# Edits


def set_member(text: str, path: Sequence[str], name: str, value: Any) -> str:
    """Return a text whose object at `path` has a member; objects that are missing are added.

    Raises:
        JsoncError: the text cannot be read, a value on the path is not an object, or a name on
            it appears twice.
    """
    style = _Style(text)
    here = parse(text)
    for place, step in enumerate(path):
        found = _only(here, step, text)
        if found is None:
            for inner in (name, *reversed(path[place + 1 :])):
                value = {inner: value}
            return _insert(text, here, step, value, style)
        here = found.node
    found = _only(here, name, text)
    if found is None:
        return _insert(text, here, name, value, style)
    indent = style.indent_at(found.start)
    shown = style.render(value, indent, found.node.start - style.line_start(found.start))
    return text[: found.node.start] + shown + text[found.node.end :]


def remove_member(text: str, path: Sequence[str], name: str) -> str:
    """Return a text without a member of the object at `path`; unchanged if there is none.

    Raises:
        JsoncError: as `set_member`.
    """
    here = parse(text)
    for step in path:
        found = _only(here, step, text)
        if found is None:
            return text
        here = found.node
    gone = _only(here, name, text)
    if gone is None:
        return text
    members = here.members or ()
    place = members.index(gone)
    cuts = [(gone.start, gone.node.end)]
    if gone.comma >= 0:
        cuts.append((gone.comma, gone.comma + 1))
    elif place > 0:
        # The last one: the comma before it has nothing to separate any more.
        before = members[place - 1].comma
        cuts.append((before, before + 1))
    for start, end in sorted(cuts, reverse=True):
        text = _cut(text, start, end)
    return text


def _only(node: JsonNode, name: str, text: str) -> JsonMember | None:
    """Return the member with a name.

    Which of two members with one name a host reads is not defined: an edit must not guess.
    """
    if node.members is None:
        raise JsoncError("expected an object here", text, node.start)
    found = [each for each in node.members if each.name == name]
    if len(found) > 1:
        raise JsoncError(f"the name {name!r} appears twice in one object", text, found[1].start)
    return found[0] if found else None


def _cut(text: str, start: int, end: int) -> str:
    """Return a text without a part, and without the line that this leaves blank."""
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    blank = _BLANK.match(text, end)
    stop = blank.end() if blank else end
    if not text[line:start].strip(" \t"):
        if text.startswith("\r\n", stop):
            return text[:line] + text[stop + 2 :]
        if text[stop : stop + 1] in ("\n", "\r"):
            return text[:line] + text[stop + 1 :]
        # Something follows on the line: the indentation stays.
        return text[:start] + text[stop:]
    # Something is before it on the line: no blanks stay at its end, nor two where one was.
    head = text[:start]
    if text[stop : stop + 1] in ("\n", "\r", ""):
        return head.rstrip(" \t") + text[stop:]
    if text[stop] == "}":
        return head.rstrip(" \t") + text[end:]
    return head + text[stop:] if head.endswith((" ", "\t", "{")) else head + text[end:]


class _Style:
    """How a text is laid out: its line end and the blanks of one level."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
        self.unit = "  "
        if found is not None:
            self.unit = "\t" if found[1][0] == "\t" else found[1]

    def line_start(self, at: int) -> int:
        """Return the offset of the line that an offset is in."""
        return max(self._text.rfind("\n", 0, at), self._text.rfind("\r", 0, at)) + 1

    def indent_at(self, at: int) -> str:
        """Return the blanks at the start of the line that an offset is in."""
        start = self.line_start(at)
        found = _BLANK.match(self._text, start + self._text.startswith(_BOM, start))
        return found[0] if found else ""

    def render(self, value: Any, indent: str, column: int) -> str:
        """Return a value as text whose first line begins at `column` of a line so indented."""
        if isinstance(value, Mapping) and value:
            inner = indent + self.unit
            lines = []
            for name, item in value.items():
                head = f"{inner}{_encode(name)}: "
                lines.append(head + self.render(item, inner, len(head)))
            return f"{{{self.newline}{f',{self.newline}'.join(lines)}{self.newline}{indent}}}"
        if isinstance(value, list | tuple):
            inner = indent + self.unit
            flat = f"[{', '.join(self.render(item, inner, 0) for item in value)}]"
            if "\n" not in flat and column + len(flat) <= _MAX_LINE:
                return flat
            rows = f",{self.newline}".join(
                inner + self.render(item, inner, len(inner)) for item in value
            )
            return f"[{self.newline}{rows}{self.newline}{indent}]"
        return _encode(value)


def _encode(value: Any) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False)


def _insert(text: str, node: JsonNode, name: str, value: Any, style: _Style) -> str:
    """Return a text with one more member at the end of an object."""
    if node.members is None:
        raise JsoncError("expected an object here", text, node.start)
    if not node.members:
        return _insert_first(text, node, name, value, style)
    last = node.members[-1]
    line = style.line_start(last.start)
    is_inline = bool(text[line : last.start].strip(" \t" + _BOM))
    if is_inline:
        head = f"{_encode(name)}: "
        if last.comma >= 0:
            at = last.comma + 1
            return f"{text[:at]} {head}{_flat(value)},{text[at:]}"
        at = last.node.end
        return f"{text[:at]}, {head}{_flat(value)}{text[at:]}"
    indent = style.indent_at(last.start)
    head = f"{indent}{_encode(name)}: "
    new = style.newline + head + style.render(value, indent, len(head))
    if last.comma >= 0:
        at = _end_of_line(text, last.comma + 1)
        return f"{text[:at]}{new},{text[at:]}"
    end = last.node.end
    at = _end_of_line(text, end)
    return f"{text[:end]},{text[end:at]}{new}{text[at:]}"


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_encode(name)}: {_flat(item)}" for name, item in value.items())
        return f"{{{inner}}}"
    return _encode(value)


def _insert_first(text: str, node: JsonNode, name: str, value: Any, style: _Style) -> str:
    indent = style.indent_at(node.start)
    head = f"{indent}{style.unit}{_encode(name)}: "
    new = style.newline + head + style.render(value, indent + style.unit, len(head))
    inner = text[node.start + 1 : node.end - 1]
    comments = list(_COMMENT.finditer(inner))
    kept = inner[: comments[-1].end()] if comments else ""
    rest = inner[len(kept) :]
    if not comments or "\n" not in rest:
        rest = style.newline + indent
    return f"{text[: node.start + 1]}{kept}{new}{rest}{text[node.end - 1 :]}"


def _end_of_line(text: str, at: int) -> int:
    """Return the offset after the blanks and comments that follow on the same line."""
    end = at
    while True:
        blank = _BLANK.match(text, end)
        start = blank.end() if blank else end
        found = _COMMENT.match(text, start)
        if found is None:
            return end
        end = found.end()
