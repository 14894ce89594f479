"""Parser of SKILL.md frontmatter: the subset of YAML that is used there.

    read("---\\nname: pdf\\ndescription: Reads PDFs\\n---\\n# PDF\\n")   {"name": "pdf", ...}

Supported: nested mappings and lists, as blocks or in brackets on one line; plain strings, also over
several lines; quoted strings on one line; `|` and `>` blocks; comments. Plain words have their YAML
1.2 meaning: `true`, `null`, `7` and `1.5` are not strings; `yes` and dates are.
                                                        [YAML 1.2.2, 10.3.2 core schema]

Rejected, with file and line: anchors, aliases, tags, directives, several documents, keys that are
not strings, quoted strings over several lines, infinities, and duplicate keys. A guess could show a
user other text than the model is given.

Length and depth are bounded, since a client parses what a server sends.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..errors import TrunklineError

__all__ = ["FrontmatterError", "read"]

# A description has at most 1024 characters, and metadata is small; a peer may send anything.
_MAX_FRONTMATTER_CHARS: Final = 64 * 1024
# Each level is a recursive call.
_MAX_DEPTH: Final = 32
# JSON decoders differ on larger integers.
_MAX_DIGITS: Final = 18

# White space of YAML; Python's str.strip() removes more.
_SPACE: Final = " \t"
# Allowed only as escapes in quoted strings.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Unambiguous patterns: no backtracking, linear in the length of a line.
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
# First characters of unsupported syntax.
_UNSUPPORTED: Final = {
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
    """Frontmatter that cannot be parsed: file, line and reason."""

    def __init__(self, where: str, line: int, why: str) -> None:
        super().__init__(f"{where}, line {line}: {why}")
        self.where = where
        self.line = line
        self.why = why


def read(text: str, where: str = "SKILL.md") -> dict[str, Any]:
    """Return the frontmatter of a SKILL.md as a JSON object; `where` is named in errors.

    Raises:
        FrontmatterError: it is missing, malformed, or uses unsupported syntax.
    """
    head = text[: _MAX_FRONTMATTER_CHARS + 1].replace("\r\n", "\n").replace("\r", "\n")
    lines = head.split("\n")
    if lines[0].rstrip(_SPACE) != "---":
        raise FrontmatterError(where, 1, "a skill must begin with frontmatter between two ---")
    for number in range(1, len(lines)):
        if lines[number].rstrip(_SPACE) == "---":
            break
    else:
        text = f"no closing --- within {_MAX_FRONTMATTER_CHARS} characters"
        raise FrontmatterError(where, 1, text)
    for line in range(1, number):
        if _CONTROL.search(lines[line]):
            raise FrontmatterError(where, line + 1, "the line contains a control character")
    return _FrontmatterParser(lines[1:number], where).document()


class _FrontmatterParser:
    """The lines between the marks, and the current line."""

    def __init__(self, lines: list[str], where: str) -> None:
        self._lines = lines
        self._where = where
        self._at = 0

    def document(self) -> dict[str, Any]:
        if not self._skip_blank():
            raise self._fault("the frontmatter is empty")
        found = self._node(0, -1)
        if self._skip_blank():
            raise self._fault("unexpected indentation")
        if not isinstance(found, dict):
            self._at = 0
            raise self._fault("the frontmatter must be a mapping: name: …, description: …")
        return found

    # -- lines -------------------------------------------------------------------------------

    def _fault(self, why: str) -> FrontmatterError:
        # The first of these lines is the second of the file.
        return FrontmatterError(self._where, self._at + 2, why)

    def _skip_blank(self) -> bool:
        """Go to the next line with content; return False at the end."""
        while self._at < len(self._lines):
            if self._lines[self._at].lstrip(_SPACE)[:1] not in ("", "#"):
                return True
            self._at += 1
        return False

    def _indent(self) -> int:
        line = self._lines[self._at]
        bare = line.lstrip(" ")
        if bare.startswith("\t"):
            raise self._fault("indentation must be spaces, not tabs")
        return len(line) - len(bare)

    # -- blocks ------------------------------------------------------------------------------

    def _node(self, depth: int, outer: int) -> Any:
        """Return the value that begins at this line, inside a block indented by `outer`."""
        if depth > _MAX_DEPTH:
            raise self._fault(f"nested more than {_MAX_DEPTH} levels deep")
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
                raise self._fault("expected a key with a colon and a space: key: value")
            key, rest = self._key(pair[0]), pair[1]
            if key in found:
                raise self._fault(f"duplicate key {key!r}")
            found[key] = self._after(rest, indent, depth, takes_list=True)
        if self._at < len(self._lines) and self._skip_blank() and self._indent() > indent:
            raise self._fault("the line is indented further than its neighbours")
        return found

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while self._skip_blank() and self._indent() == indent:
            text = self._lines[self._at][indent:]
            if text != "-" and not text.startswith("- "):
                break
            rest = text[1:].strip(_SPACE)
            if rest == "-" or rest.startswith("- ") or self._split(rest) is not None:
                # A block of its own, indented to where it begins after the dash.
                self._lines[self._at] = (
                    " " * (indent + len(text) - len(text[1:].lstrip(_SPACE))) + rest
                )
                found.append(self._node(depth + 1, indent))
            else:
                found.append(self._after(rest, indent, depth, takes_list=False))
        return found

    def _after(self, rest: str, indent: int, depth: int, *, takes_list: bool) -> Any:
        """Return the value after a key or dash, on the same line or below."""
        if rest and not rest.startswith("#"):
            return self._value(rest, indent, depth)
        self._at += 1
        if not self._skip_blank():
            return None
        inner = self._indent()
        text = self._lines[self._at][inner:]
        # A list may have the indentation of its key.
        is_list = takes_list and inner == indent and (text == "-" or text.startswith("- "))
        return self._node(depth + 1, indent) if inner > indent or is_list else None

    def _split(self, text: str) -> tuple[str, str] | None:
        """Return the raw key and the text after its colon, or None without a key."""
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
            return None  # text between a quoted key and its colon
        return text[: colon.start()].strip(_SPACE), text[colon.end() :].strip(_SPACE)

    # -- scalars -----------------------------------------------------------------------------

    def _value(self, text: str, indent: int, depth: int) -> Any:
        """Return the value that begins on this line with `text`, and move past it."""
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
            raise self._fault("unexpected text after the value")

    def _plain(self, text: str, indent: int) -> Any:
        """Return a plain scalar, which continues while lines are indented further."""
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
                raise self._fault("a string cannot continue after a comment")
            parts += ["\n" * blank or " ", self._plain_part(line.strip(_SPACE), is_first=False)]
            has_ended = _COMMENT.search(line) is not None
            blank = 0
            self._at += 1
        return word if len(parts) == 1 else "".join(parts)

    def _plain_part(self, text: str, *, is_first: bool = True) -> str:
        bare = _COMMENT.sub("", text).strip(_SPACE)
        first = text[0]
        if is_first and first in _UNSUPPORTED:
            raise self._fault(f"{_UNSUPPORTED[first]} ({first}) is not supported; quote the string")
        if is_first and first in "-?:" and text[1:2] in ("", " "):
            raise self._fault(f"a string cannot begin with {first!r}; quote the string")
        if ": " in bare or bare.endswith(":"):
            raise self._fault("the string contains a colon; quote the string")
        return bare

    def _block(self, head: str, indent: int) -> str:
        if not _BLOCK.fullmatch(head):
            raise self._fault("only a digit, + or - may follow | or >")
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
        """Return the lines of a block without the indentation of its first line."""
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip(" "):
                own = self._indent() if width is None else len(line) - len(line.lstrip(" "))
                if own <= indent or (width is not None and own < width):
                    break
                if width is None and any(len(each) > own for each in lines):
                    raise self._fault("a leading blank line is indented further than the block")
                width = own if width is None else width
            lines.append(line)
            self._at += 1
        return ["" if width is None else line[width:] for line in lines]

    def _quoted(self, text: str, at: int) -> tuple[str, int]:
        pattern = _QUOTES[text[at]]
        match = pattern.match(text, at)
        if match is None:
            raise self._fault("a quoted string must end on the same line")
        if pattern is _SINGLE:
            return match[1].replace("''", "'"), match.end()
        return self._unescaped(match[1]), match.end()

    def _unescaped(self, text: str) -> str:
        def one(match: re.Match[str]) -> str:
            code = match[1]
            if len(code) > 1:
                number = int(code[1:], 16)
                if number > 0x10FFFF:
                    raise self._fault(f"\\{code} is not a character")
                return chr(number)
            if code not in _ESCAPES:
                raise self._fault(f"\\{code} is not an escape sequence")
            return _ESCAPES[code]

        found = _ESCAPE.sub(one, text)
        try:
            # As in JSON, a character beyond U+FFFF may be written as a surrogate pair.
            return found.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._fault("the quoted string contains a lone surrogate") from None

    def _key(self, raw: str) -> str:
        if raw[0] in "\"'":
            return self._quoted(raw, 0)[0]
        if raw[0] in _UNSUPPORTED or raw.startswith(("? ", "- ")):
            raise self._fault(f"a key cannot begin with {raw[0]!r}; quote the key")
        if not isinstance(self._scalar(raw), str):
            raise self._fault(f"the key {raw!r} is not a string; quote the key")
        return raw

    def _scalar(self, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        is_decimal = _INTEGER.fullmatch(text) is not None
        if is_decimal or _OTHER_BASE.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                raise self._fault("the number is too long; quote it if it is a string")
            return int(text, 10 if is_decimal else 0)
        if _FLOAT.fullmatch(text):
            value = float(text)
            if value in (float("inf"), float("-inf")):
                raise self._fault("the number is too large; quote it if it is a string")
            return value
        if _NO_NUMBER.fullmatch(text):
            raise self._fault("JSON has no such number; quote it if it is a string")
        return text

    # -- in brackets -------------------------------------------------------------------------

    def _flow(self, text: str, at: int, depth: int) -> tuple[Any, int]:
        """Return a value in brackets, or inside them, and its end."""
        if depth > _MAX_DEPTH:
            raise self._fault(f"nested more than {_MAX_DEPTH} levels deep")
        first = text[at]
        if first in "\"'":
            return self._quoted(text, at)
        if first not in "[{":
            match = _FLOW_PLAIN.match(text, at)
            if match is None:
                raise self._fault("a value is missing between the brackets")
            if _COMMENT.search(match[0]):
                raise self._fault("a bracket must close on the same line")
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
                raise self._fault("expected a comma between values in brackets")
        return (values if first == "[" else members), at + 1

    def _member(self, text: str, at: int, depth: int, members: dict[str, Any]) -> int:
        match = _QUOTES.get(text[at], _FLOW_KEY).match(text, at)
        colon = None if match is None else _FLOW_COLON.match(text, match.end())
        if match is None or colon is None:
            raise self._fault("expected a key with a colon and a space between braces")
        key = self._key(match[0])
        if key in members:
            raise self._fault(f"duplicate key {key!r}")
        at = self._next(text, colon.end())
        if text[at] in ",}":
            members[key] = None
            return at
        members[key], at = self._flow(text, at, depth + 1)
        return at

    def _next(self, text: str, at: int) -> int:
        """Return the position of the next character that is not white space."""
        while at < len(text) and text[at] in " \t":
            at += 1
        if at == len(text) or text[at] == "#":
            raise self._fault("a bracket must close on the same line")
        return at


def _folded(lines: list[str]) -> str:
    """Fold the lines of a `>` block: blank and further indented lines keep their breaks."""
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
