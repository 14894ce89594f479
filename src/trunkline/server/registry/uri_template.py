"""URI templates, filled in and read backwards.                                    [RFC 6570]

    template = UriTemplate("repo://{owner}/{name}{?ref}")
    template.match("repo://ann/tools?ref=main")     {"owner": "ann", "name": "tools", "ref": "main"}

Levels 1 to 3 of the RFC: every operator, several variables in one expression. Modifiers (`*`
and `:3`) are refused. So are expressions with nothing between them, where no reader could say
where one ends, unless the template is only to be filled in.

The RFC says how to fill a template in and leaves reading to others, since several values can
give one URI. The rules of reading live here, and only here:

* An expression takes as little as it can: up to the first place where what follows it can
  begin. What ends the template ends the URI, so the last expression takes what is left.
  Nothing is tried twice, so the time is that of the length.
* `{x}` and `{+x}` take one character at least. An expression with a mark of its own, such
  as `{?x}`, may be missing, and its variables with it; of several variables the last may.
* `{x}`, `{.x}`, `{/x}` and `{;x}` take no `/`, `?` or `#`; `{?x}` and `{&x}` no `#`. Pairs
  of a name and a value come in any order; a name that is not in the template fits nowhere.
* A URI is split first and decoded after: `%2F` never ends a value, but is a `/` in it.
  **Whoever makes a path of a value has to check it**: `..%2F..%2Fetc` is one value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

__all__ = ["UriTemplate"]

# Far beyond what people write; a reader's work grows with both.
MAX_TEMPLATE_LENGTH: Final = 4096
MAX_URI_LENGTH: Final = 8192

_SHOWN: Final = 80


class _Operator(NamedTuple):
    """What the character behind `{` means: a row of the table in the RFC's appendix A."""

    first: str
    between: str
    # Whether a value comes with its name, and what follows the name if the value is empty.
    named: bool = False
    if_empty: str = ""
    # Whether reserved characters go into a URI as they are.
    reserved: bool = False
    # What a value that was read cannot hold, since it ends the part of the URI.
    barred: str = ""


_OPERATORS: Final[Mapping[str, _Operator]] = {
    "": _Operator("", ",", barred="/?#"),
    "+": _Operator("", ",", reserved=True),
    "#": _Operator("#", ",", reserved=True),
    ".": _Operator(".", ".", barred="/?#"),
    "/": _Operator("/", "/", barred="/?#"),
    ";": _Operator(";", ";", named=True, barred="/?#"),
    "?": _Operator("?", "&", named=True, if_empty="=", barred="#"),
    "&": _Operator("&", "&", named=True, if_empty="=", barred="#"),
}
# The operators that the RFC keeps for later.
_KEPT: Final = "=,!@|"

# None of these can match a text in two ways.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NAME: Final = re.compile(
    r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*"
)
_NOT_LITERAL: Final = re.compile(r'[\x00-\x20"<>\\^`|\x7f\ud800-\udfff]|%(?![0-9A-Fa-f]{2})')
_MARKS: Final = re.compile(r"[#./;?&]")
_FOREIGN: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^\x00-\x7f]+")
_TRIPLET: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_NOT_UNRESERVED: Final = re.compile(rb"[^A-Za-z0-9._~-]")
_NOT_RESERVED: Final = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


class _Expression(NamedTuple):
    """What stands between braces."""

    operator: _Operator
    names: tuple[str, ...]

    def expand(self, values: Mapping[str, str | int | None]) -> str:
        """Return what the RFC puts in its place."""
        known = [(name, values.get(name)) for name in self.names]
        items = [self._item(name, _text(name, value)) for name, value in known if value is not None]
        return self.operator.first + self.operator.between.join(items) if items else ""

    def _item(self, name: str, value: str) -> str:
        foreign = _NOT_RESERVED if self.operator.reserved else _NOT_UNRESERVED
        text = foreign.sub(_escaped, value.encode()).decode()
        if not self.operator.named:
            return text
        return f"{name}={text}" if text else f"{name}{self.operator.if_empty}"


class _ExpressionReader(NamedTuple):
    """How an expression is read: one, or several that make one list of pairs, as `{?x}{&y}`."""

    operator: _Operator
    # The marks of which one stands before it; none where it begins by itself.
    marks: tuple[str, ...]
    names: tuple[str, ...]
    allowed: frozenset[str]

    def read(self, text: str, values: dict[str, str]) -> bool:
        """Put the values in `text` to the others; say whether it can be this expression."""
        if not text and not self.marks:
            return False
        for name, piece in self._pieces(text):
            value = _decoded(piece)
            if value is None or any(char in piece for char in self.operator.barred):
                return False
            # A variable that stands in two places has one value.
            if name not in self.allowed or values.setdefault(name, value) != value:
                return False
        return True

    def _pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the names and undecoded values in `text`, where names may be wrong."""
        if not self.operator.named:
            # The last takes what is left; what it cannot hold is looked for there.
            pieces = text.split(self.operator.between, len(self.names) - 1)
            yield from zip(self.names, pieces, strict=False)
            return
        for pair in text.split(self.operator.between):
            name, _, value = pair.partition("=")
            yield name, value


class _ExpressionRun:
    """Expressions with nothing between them, and how to tell them apart by their marks."""

    __slots__ = ("_readers", "_starts", "least")

    def __init__(self, readers: list[_ExpressionReader]) -> None:
        self._readers = readers
        # How many characters it takes at least.
        self.least = 0 if readers[0].marks else 1
        # For each expression, which of it and those after it a mark begins: the first.
        starts: list[dict[str, int]] = [{}]
        for index in range(len(readers) - 1, -1, -1):
            starts.append({**starts[-1], **dict.fromkeys(readers[index].marks, index)})
        self._starts = starts[::-1]

    def read(self, text: str, values: dict[str, str]) -> bool:
        """Put the values in `text` to the others; say whether it can be this run."""
        at = 0
        index = -1 if self._readers[0].marks else 0
        room = self._room(index)
        for mark in _MARKS.finditer(text):
            if room and mark[0] == self._readers[index].operator.between:
                room -= 1
                continue
            following = self._starts[index + 1].get(mark[0])
            if following is None:
                continue
            if not self._read(index, text[at : mark.start()], values):
                return False
            at, index, room = mark.end(), following, self._room(following)
        return self._read(index, text[at:], values)

    def _room(self, index: int) -> int:
        """Return how many separators an expression takes before they count as marks."""
        return len(self._readers[index].names) - 1 if index >= 0 else 0

    def _read(self, index: int, text: str, values: dict[str, str]) -> bool:
        return self._readers[index].read(text, values) if index >= 0 else not text


class UriTemplate:
    """A template with the URIs that it stands for. It does not change, and compares by text."""

    __slots__ = ("_head", "_parts", "_rest", "text", "variables")

    def __init__(self, text: str, *, only_expand: bool = False) -> None:
        """Take a template apart; with `only_expand` it may be one that cannot be read.

        Raises:
            ValueError: it is none, or none of ours; the text says what is wrong with it.
        """
        if len(text) > MAX_TEMPLATE_LENGTH:
            raise ValueError(
                f"a URI template has up to {MAX_TEMPLATE_LENGTH} characters, not {len(text)}"
            )
        self.text = text
        self._parts = tuple(_parse(text))
        names = [
            name for part in self._parts if isinstance(part, _Expression) for name in part.names
        ]
        self.variables = tuple(dict.fromkeys(names))
        head = self._parts[0] if self._parts else ""
        if not isinstance(head, str) or not _SCHEME.match(head):
            raise _fault(text, "it begins with a scheme and a colon, as in 'file:'")
        self._head, self._rest = _arrange(() if only_expand else self._parts)

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, UriTemplate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def expand(self, values: Mapping[str, str | int | None]) -> str:
        """Return the URI with these values; a variable that is None or missing is left out.

        Raises:
            TypeError: a value is neither a text nor an integer.
            ValueError: a value has half of a character, which no URI can carry.
        """
        parts = self._parts
        return "".join(part if isinstance(part, str) else part.expand(values) for part in parts)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values that are in `uri`, decoded; None if it is none of this template.

        No URI is one of a template that is only to be filled in. The values are the peer's: that
        of `{x}` may hold any character, `/` and NUL included.
        """
        # Every template that can be read begins with a scheme.
        if len(uri) > MAX_URI_LENGTH or not self._head:
            return None
        try:
            text = uri if uri.isascii() and "%" not in uri else _normal(uri)
        except UnicodeEncodeError:
            return None
        return self._read(text) if text.startswith(self._head) else None

    def _read(self, text: str) -> dict[str, str] | None:
        values: dict[str, str] = {}
        at = len(self._head)
        # What ends the template ends the URI.
        tail = self._rest[-1][1] if self._rest else ""
        limit = len(text) - len(tail)
        if not text.endswith(tail):
            return None
        for number, (run, literal) in enumerate(self._rest, start=1):
            is_last = number == len(self._rest)
            end = limit if is_last else text.find(literal, at + run.least, limit)
            if end < at or not run.read(text[at:end], values):
                return None
            at = end + len(literal)
        return values if at == len(text) else None


# Taking a template apart


def _parse(text: str) -> Iterator[str | _Expression]:
    """Yield what is in a template: literals as they go into a URI, and expressions."""
    at = 0
    while at < len(text):
        start = text.find("{", at)
        literal = text[at:] if start < 0 else text[at:start]
        if literal:
            yield _literal(text, literal)
        if start < 0:
            return
        end = text.find("}", start)
        if end < 0:
            raise _fault(text, "every '{' has its '}'")
        yield _expression(text, text[start + 1 : end])
        at = end + 1


def _literal(text: str, literal: str) -> str:
    if "}" in literal:
        raise _fault(text, "every '}' has its '{'")
    wrong = _NOT_LITERAL.search(literal)
    if wrong:
        raise _fault(text, f"{wrong[0]!r} is not among its characters unless it is encoded")
    return _FOREIGN.sub(_encoded_unless_triplet, literal)


def _expression(text: str, inner: str) -> _Expression:
    mark = inner[:1] if inner[:1] in _OPERATORS else ""
    if inner[:1] and inner[:1] in _KEPT:
        raise _fault(text, f"no expression begins with {inner[:1]!r}: the RFC keeps it for later")
    names = tuple(inner[len(mark) :].split(","))
    for name in names:
        if name.endswith("*") or ":" in name:
            raise _fault(text, f"modifiers are not supported, and {name[:_SHOWN]!r} has one")
        if not _NAME.fullmatch(name):
            raise _fault(
                text, f"names are made of letters, digits and '_', unlike {name[:_SHOWN]!r}"
            )
    return _Expression(_OPERATORS[mark], names)


def _arrange(
    parts: tuple[str | _Expression, ...],
) -> tuple[str, tuple[tuple[_ExpressionRun, str], ...]]:
    """Return the literal at the start, then each run of expressions with the literal after it."""
    literals: list[str] = [""]
    runs: list[list[_Expression]] = []
    for before, part in zip(("", *parts), parts, strict=False):
        if isinstance(part, str):
            literals[-1] = _FOREIGN.sub(_encoded, part)
        elif isinstance(before, _Expression):
            runs[-1].append(part)
        else:
            runs.append([part])
            literals.append("")
    rest = zip((_ExpressionRun(_readers(run)) for run in runs), literals[1:], strict=True)
    return literals[0], tuple(rest)


def _readers(run: list[_Expression]) -> list[_ExpressionReader]:
    """Return how the expressions of a run are read."""
    readers: list[_ExpressionReader] = []
    for operator, names in run:
        last = readers[-1] if readers else None
        marks = (operator.first,) if operator.first else ()
        if last and not marks:
            shown = f"{{{','.join(last.names)}}} and {{{','.join(names)}}}"
            raise ValueError(f"nothing tells where one of {shown[:_SHOWN]} ends: put a '/' between")
        if last and operator.named and operator.first == last.operator.between:
            # Which of the two a pair belongs to, only its name says.
            readers.pop()
            marks, names = (*last.marks, *marks), (*last.names, *names)
            operator = last.operator
        readers.append(_ExpressionReader(operator, marks, names, frozenset(names)))
    return readers


def _fault(text: str, rule: str) -> ValueError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return ValueError(f"{shown!r} is no URI template: {rule}")


# Characters


def _text(name: str, value: object) -> str:
    # Booleans are integers to Python, and texts of their own to everybody else.
    if isinstance(value, bool) or not isinstance(value, str | int):
        kind = type(value).__name__
        raise TypeError(f"the value of {name!r} is a text or an integer, and not of type {kind}")
    return str(value)


def _escaped(found: re.Match[bytes]) -> bytes:
    """Return a byte as a URI has it; what is escaped already stays."""
    return b"%%%02X" % found[0][0] if len(found[0]) == 1 else found[0]


def _encoded(found: re.Match[str]) -> str:
    """Return what no URI holds as it holds it; of two spellings of an escape, the first."""
    text = found[0]
    if text[0] == "%":
        return text.upper()
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _encoded_unless_triplet(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == "%" else _encoded(found)


def _normal(uri: str) -> str:
    """Return a URI in which equal things are spelled alike.

    Raises:
        UnicodeEncodeError: it has half of a character.
    """
    return _FOREIGN.sub(_encoded, uri)


def _decoded(piece: str) -> str | None:
    """Return what a value stands for; None if that is no text."""
    if "%" not in piece:
        return piece
    try:
        return _TRIPLET.sub(lambda found: bytes((int(found[1], 16),)), piece.encode()).decode()
    except UnicodeDecodeError:
        return None
