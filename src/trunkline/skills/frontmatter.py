"""The frontmatter of a SKILL.md: as much of YAML as people write there, and no more.

    read("---\\nname: pdf\\ndescription: Reads PDFs\\n---\\n# PDF\\n")   {"name": "pdf", ...}

What is read: nested mappings and lists, in blocks or in brackets on one line; plain texts,
also over several lines; quoted texts on one line; `|` and `>` blocks; comments. Plain words
mean what they mean in YAML 1.2: `true`, `null`, `7` and `1.5` are no texts, `yes` is one, and
a date is one.                                          [YAML 1.2.2, 10.3.2 core schema]

What is not: anchors, aliases, tags, directives, several documents, keys that are no texts,
quoted texts over several lines, infinities. Each is refused with the file and the line: a
reader that guessed would show a user other words than the model is given. For the same
reason a key that comes twice is refused.

A client reads what a server sends, so length and depth are bounded.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..errors import TrunklineError

__all__ = ["FrontmatterError", "read"]

# A description may have 1024 characters, and metadata is small; a peer could send anything.
_MAX_FRONTMATTER_CHARS: Final = 64 * 1024
# Nobody nests so deep, and every level is a call of Python's.
_MAX_DEPTH: Final = 32
# Integers beyond these are not the same to every reader of JSON.
_MAX_DIGITS: Final = 18

# What is space to YAML; to Python there is more.
_SPACE: Final = " \t"
# What no text may hold but in quotes, spelt out.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# None of these can match a text in two ways, so that a long line costs what its length does.
_COLON: Final = re.compile(r":(?=[ \t]|$)|[ \t]#")
_BLOCK: Final = re.compile(r"[|>](?:[+-]?[1-9]?|[1-9][+-])(?:[ \t]+#.*|[ \t]*)")
_COMMENT: Final = re.compile(r"(?:^|[ \t])#.*$")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SINGLE: Final = re.compile(r"'((?:[^']|'')*)'")
_QUOTES: Final = {'"': _DOUBLE, "'": _SINGLE}
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_FLOW_PLAIN: Final = re.compile(r"[^,\[\]{}#\"'][^,\[\]{}]*")
_FLOW_KEY: Final = re.compile(r"[^ \t\"'#,\[\]{}:]+(?: +[^ \t\"'#,\[\]{}:]+)*")
_FLOW_COLON: Final = re.compile(r"[ \t]*:(?=[ \t,\]}]|$)")

_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS: Final[dict[str, Any]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_ESCAPES: Final = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
# What begins something that is not read here.
_UNREAD: Final = {
    "&": "an anchor",
    "*": "an alias",
    "!": "a tag",
    "%": "a directive",
    "@": "a reserved mark",
    "`": "a reserved mark",
    ",": "a comma",
    "]": "a bracket",
    "}": "a bracket",
}


class FrontmatterError(TrunklineError, ValueError):
    """A frontmatter that cannot be read: in which file, at which line, and why."""

    def __init__(self, where: str, line: int, why: str) -> None:
        super().__init__(f"{where}, line {line}: {why}")
        self.where = where
        self.line = line
        self.why = why


def read(text: str, where: str = "SKILL.md") -> dict[str, Any]:
    """Return the frontmatter of a SKILL.md as a JSON object; `where` is named in errors.

    Raises:
        FrontmatterError: there is none, or it is not in order, or beyond what is read here.
    """
    head = text[: _MAX_FRONTMATTER_CHARS + 1].replace("\r\n", "\n").replace("\r", "\n")
    lines = head.split("\n")
    if lines[0].rstrip(_SPACE) != "---":
        raise FrontmatterError(where, 1, "a skill begins with its frontmatter, between two ---")
    for number in range(1, len(lines)):
        if lines[number].rstrip(_SPACE) == "---":
            break
    else:
        raise FrontmatterError(where, 1, "the frontmatter does not end with a --- in time")
    for line in range(1, number):
        if _CONTROL.search(lines[line]):
            raise FrontmatterError(where, line + 1, "there is a control character in this line")
    return _Reader(lines[1:number], where).document()


class _Reader:
    """The lines between the marks, and how far they were read."""

    def __init__(self, lines: list[str], where: str) -> None:
        self._lines = lines
        self._where = where
        self._at = 0

    def document(self) -> dict[str, Any]:
        if not self._skip_blank():
            raise self._fault("the frontmatter is empty")
        found = self._node(0, -1)
        if self._skip_blank():
            raise self._fault("this line belongs to nothing: look at how far it is indented")
        if not isinstance(found, dict):
            self._at = 0
            raise self._fault("the frontmatter is a mapping: name: …, description: …")
        return found

    # -- lines -------------------------------------------------------------------------------

    def _fault(self, why: str) -> FrontmatterError:
        # The first of these lines is the second of the file.
        return FrontmatterError(self._where, self._at + 2, why)

    def _skip_blank(self) -> bool:
        """Go to the next line with something on it; say whether there is one."""
        while self._at < len(self._lines):
            if self._lines[self._at].strip(_SPACE) and not self._lines[self._at].lstrip(
                _SPACE
            ).startswith("#"):
                return True
            self._at += 1
        return False

    def _indent(self) -> int:
        line = self._lines[self._at]
        bare = line.lstrip(" ")
        if bare.startswith("\t"):
            raise self._fault("a line is indented with spaces, not with tabs")
        return len(line) - len(bare)

    # -- blocks ------------------------------------------------------------------------------

    def _node(self, depth: int, outer: int) -> Any:
        """Return what begins at this line, in something that is indented as far as `outer`."""
        if depth > _MAX_DEPTH:
            raise self._fault(f"it is nested more than {_MAX_DEPTH} deep")
        indent = self._indent()
        text = self._lines[self._at][indent:]
        if text == "-" or text.startswith("- "):
            return self._list(indent, depth)
        if self._split(text) is not None:
            return self._mapping(indent, depth)
        return self._value(text, outer, depth)

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._skip_blank() and self._indent() == indent:
            text = self._lines[self._at][indent:]
            pair = None if text == "-" or text.startswith("- ") else self._split(text)
            if pair is None:
                raise self._fault("here is to be a key with a colon and a space: key: value")
            key, rest = self._key(pair[0]), pair[1]
            if key in found:
                raise self._fault(f"the key {key!r} comes twice")
            found[key] = self._after(rest, indent, depth, takes_list=True)
        if self._at < len(self._lines) and self._skip_blank() and self._indent() > indent:
            raise self._fault("this line is indented further than its neighbours")
        return found

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while self._skip_blank() and self._indent() == indent:
            text = self._lines[self._at][indent:]
            if text != "-" and not text.startswith("- "):
                break
            rest = text[1:].strip(_SPACE)
            if rest == "-" or rest.startswith("- ") or self._split(rest) is not None:
                # What follows the dash is a block of its own, indented as far as it begins.
                self._lines[self._at] = (
                    " " * (indent + len(text) - len(text[1:].lstrip(_SPACE))) + rest
                )
                found.append(self._node(depth + 1, indent))
            else:
                found.append(self._after(rest, indent, depth, takes_list=False))
        return found

    def _after(self, rest: str, indent: int, depth: int, *, takes_list: bool) -> Any:
        """Return the value whose beginning, if any, follows a key or a dash on its line."""
        if rest and not rest.startswith("#"):
            return self._value(rest, indent, depth)
        self._at += 1
        if not self._skip_blank():
            return None
        inner = self._indent()
        text = self._lines[self._at][inner:]
        # A list may stand right below its key.
        is_list = takes_list and inner == indent and (text == "-" or text.startswith("- "))
        return self._node(depth + 1, indent) if inner > indent or is_list else None

    def _split(self, text: str) -> tuple[str, str] | None:
        """Return a key as it is written and what follows its colon, or None if there is none."""
        start = 0
        if text[:1] in _QUOTES:
            match = _QUOTES[text[0]].match(text)
            if match is None:
                return None
            start = match.end()
        elif text[:1] in ("", "[", "{", "#"):
            return None
        colon = _COLON.search(text, start)
        if colon is None or colon[0] != ":" or not colon.start():
            return None
        if start and text[start : colon.start()].strip(_SPACE):
            return None  # something is between a quoted key and its colon
        return text[: colon.start()].strip(_SPACE), text[colon.end() :].strip(_SPACE)

    # -- texts -------------------------------------------------------------------------------

    def _value(self, text: str, indent: int, depth: int) -> Any:
        """Return a value that begins on this line, with `text`, and go behind it."""
        first = text[0]
        if first in "|>":
            return self._block(text, indent)
        if first in "\"'":
            value, end = self._quoted(text, 0)
            self._must_end(text[end:])
        elif first in "[{":
            value, end = self._flow(text, 0, depth)
            self._must_end(text[end:])
        else:
            return self._plain(text, indent)
        self._at += 1
        return value

    def _must_end(self, rest: str) -> None:
        if _COMMENT.sub("", rest).strip(_SPACE):
            raise self._fault("something follows a value that has ended")

    def _plain(self, text: str, indent: int) -> Any:
        """Return a plain text, which goes on for as long as lines are indented further."""
        parts = [self._plain_part(text)]
        word = self._scalar(parts[0])
        has_ended = _COMMENT.search(text) is not None
        self._at += 1
        blank = 0
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip(_SPACE):
                blank += 1
                self._at += 1
                continue
            if self._indent() <= indent or line.lstrip(_SPACE).startswith("#"):
                break
            if has_ended:
                raise self._fault("a text does not go on after a comment")
            parts += ["\n" * blank or " ", self._plain_part(line.strip(_SPACE), is_first=False)]
            has_ended = _COMMENT.search(line) is not None
            blank = 0
            self._at += 1
        return word if len(parts) == 1 else "".join(parts)

    def _plain_part(self, text: str, *, is_first: bool = True) -> str:
        bare = _COMMENT.sub("", text).strip(_SPACE)
        first = text[0]
        if is_first and first in _UNREAD:
            raise self._fault(f"{_UNREAD[first]} ({first}) begins here; quote a text that does")
        if is_first and first in "-?:" and text[1:2] in ("", " "):
            raise self._fault(f"{first!r} begins something else than a text; quote it if it is one")
        if ": " in bare or bare.endswith(":"):
            raise self._fault("there is a colon in the text; put the text in quotes")
        return bare

    def _block(self, head: str, indent: int) -> str:
        """Return a `|` or `>` text."""
        if not _BLOCK.fullmatch(head):
            raise self._fault("behind | or > comes at most a digit, + or -")
        marks = head.partition("#")[0].strip(_SPACE)
        keeps, strips = "+" in marks, "-" in marks
        digits = [int(each) for each in marks if each.isdigit()]
        self._at += 1
        lines = self._block_lines(indent, max(indent, 0) + digits[0] if digits else None)
        last = len(lines)
        while last and not lines[last - 1]:
            last -= 1
        body = "\n".join(lines[:last]) if marks[0] == "|" else _folded(lines[:last])
        if keeps:
            return body + "\n" * (len(lines) - last + bool(last))
        return body if strips or not last else body + "\n"

    def _block_lines(self, indent: int, width: int | None) -> list[str]:
        """Return the lines of a block without their indentation, which the first one shows."""
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip(" "):
                own = self._indent() if width is None else len(line) - len(line.lstrip(" "))
                if own <= indent or (width is not None and own < width):
                    break
                if width is None and any(len(each) > own for each in lines):
                    raise self._fault("a blank line before is indented further than this text")
                width = own if width is None else width
            lines.append(line)
            self._at += 1
        return ["" if width is None else line[width:] for line in lines]

    def _quoted(self, text: str, at: int) -> tuple[str, int]:
        """Return a quoted text, and where it ends."""
        pattern = _QUOTES[text[at]]
        match = pattern.match(text, at)
        if match is None:
            raise self._fault("a quoted text ends on the line on which it begins")
        if pattern is _SINGLE:
            return match[1].replace("''", "'"), match.end()
        return self._unescaped(match[1]), match.end()

    def _unescaped(self, text: str) -> str:
        def one(match: re.Match[str]) -> str:
            told = match[1]
            if len(told) > 1:
                number = int(told[1:], 16)
                if number > 0x10FFFF:
                    raise self._fault(f"there is no character \\{told}")
                return chr(number)
            if told not in _ESCAPES:
                raise self._fault(f"\\{told} means nothing in a quoted text")
            return _ESCAPES[told]

        found = _ESCAPE.sub(one, text)
        try:
            # JSON writes characters beyond the first 65536 as two, and so may a YAML text.
            return found.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._fault("there is half a character in a quoted text") from None

    def _key(self, told: str) -> str:
        if told[0] in "\"'":
            return self._quoted(told, 0)[0]
        if told[0] in _UNREAD or told.startswith(("? ", "- ")):
            raise self._fault(f"a key does not begin with {told[0]!r}; quote it if it does")
        if not isinstance(self._scalar(told), str):
            raise self._fault(f"a key is a text, and {told!r} is no text; quote it if it is one")
        return told

    def _scalar(self, text: str) -> Any:
        """Return what a plain word means."""
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                raise self._fault("this number is too long; quote it if it is a text")
            return int(text)
        if _OTHER_BASE.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                raise self._fault("this number is too long; quote it if it is a text")
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            value = float(text)
            if value in (float("inf"), float("-inf")):
                raise self._fault("this number is too large; quote it if it is a text")
            return value
        if _NO_NUMBER.fullmatch(text):
            raise self._fault("JSON has no such number; quote it if it is a text")
        return text

    # -- in brackets -------------------------------------------------------------------------

    def _flow(self, text: str, at: int, depth: int) -> tuple[Any, int]:
        """Return a value in brackets, or inside them, and where it ends."""
        if depth > _MAX_DEPTH:
            raise self._fault(f"it is nested more than {_MAX_DEPTH} deep")
        first = text[at]
        if first in "\"'":
            return self._quoted(text, at)
        if first not in "[{":
            match = _FLOW_PLAIN.match(text, at)
            if match is None:
                raise self._fault("a value is missing between the brackets")
            if _COMMENT.search(match[0]):
                raise self._fault("a bracket closes on the line on which it opens")
            return self._scalar(self._plain_part(match[0])), match.end()
        values: list[Any] = []
        members: dict[str, Any] = {}
        close = "]" if first == "[" else "}"
        at = self._next(text, at + 1)
        while text[at] != close:
            if first == "[":
                value, at = self._flow(text, at, depth + 1)
                values.append(value)
            else:
                at = self._member(text, at, depth, members)
            at = self._next(text, at)
            if text[at] == ",":
                at = self._next(text, at + 1)
            elif text[at] != close:
                raise self._fault("values in brackets have commas between them")
        return (values if first == "[" else members), at + 1

    def _member(self, text: str, at: int, depth: int, members: dict[str, Any]) -> int:
        match = _QUOTES.get(text[at], _FLOW_KEY).match(text, at)
        colon = None if match is None else _FLOW_COLON.match(text, match.end())
        if match is None or colon is None:
            raise self._fault("between braces here is to be a key with a colon and a space")
        key = self._key(match[0])
        if key in members:
            raise self._fault(f"the key {key!r} comes twice")
        at = self._next(text, colon.end())
        if text[at] in ",}":
            members[key] = None
            return at
        members[key], at = self._flow(text, at, depth + 1)
        return at

    def _next(self, text: str, at: int) -> int:
        """Return where the next character is that is no space."""
        while at < len(text) and text[at] in " \t":
            at += 1
        if at == len(text) or text[at] == "#":
            raise self._fault("a bracket closes on the line on which it opens")
        return at


def _folded(lines: list[str]) -> str:
    """Return the lines of a `>` text as one, but for blank and further indented ones."""
    found, blank, was_further = "", 0, False
    for number, line in enumerate(lines):
        if not line:
            blank += 1
            continue
        is_further = line[0] in " \t"
        if number == blank:  # only blank ones before it
            found = "\n" * blank
        elif was_further or is_further:
            found += "\n" * (blank + 1)
        else:
            found += "\n" * blank or " "
        found += line
        blank, was_further = 0, is_further
    return found
