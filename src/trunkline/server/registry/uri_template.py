"""URI templates: expansion, and matching of URIs.                                 [RFC 6570]

    template = UriTemplate("repo://{owner}/{name}{?ref}")
    template.match("repo://ann/tools?ref=main")     {"owner": "ann", "name": "tools", "ref": "main"}

Levels 1 to 3 of the RFC: every operator, several variables in one expression. Modifiers (`*`
and `:3`) are not supported. Adjacent expressions that cannot be separated are an error, unless
the template is only expanded.

The RFC specifies expansion and leaves matching open, since several values can give one URI.
The rules of matching live here, and only here:

* An expression matches as little as possible: up to the first place where the next literal
  begins. The literal at the end of the template ends the URI, so the last expression matches
  the rest. There is no backtracking, so the time is linear.
* `{x}` and `{+x}` match at least one character. An expression with an operator character, such
  as `{?x}`, may be missing, and its variables with it; of several variables the last may.
* `{x}`, `{.x}`, `{/x}` and `{;x}` do not match `/`, `?` or `#`; `{?x}` and `{&x}` do not match
  `#`. Pairs of name and value come in any order; a name outside the template does not match.
* Pairs are no more than the variables of their expressions.
* A URI is split before it is decoded: `%2F` never ends a value, but is a `/` in it. Values that
  lead out of a folder, such as `..%2F..%2Fetc`, do not match if `safe` is set; `path_safety.py`
  has the rules.

Matching runs on the event loop and a client chooses the URI, so that no step is a loop in Python
over its characters: a `RequestedUri` is prepared once for all templates, and a template compares
its first literal before anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .path_safety import is_safe_value

__all__ = ["RequestedUri", "UriTemplate"]

# Characters. Far beyond what is in use; the time of matching grows with both.
MAX_TEMPLATE_LENGTH: Final = 4096
MAX_URI_LENGTH: Final = 8192

_SHOWN: Final = 80


class _Operator(NamedTuple):
    """The character after `{`: a row of the table in appendix A of the RFC."""

    first: str
    between: str
    # Whether a value has its name before it, and what follows the name of an empty value.
    named: bool = False
    if_empty: str = ""
    # Whether reserved characters are left as they are.
    reserved: bool = False
    # Characters that a matched value cannot hold, since they end the part of the URI.
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
# Operators that the RFC reserves.
_RESERVED_OPERATORS: Final = "=,!@|"

# None of these can backtrack.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NAME: Final = re.compile(
    r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*"
)
_NOT_LITERAL: Final = re.compile(r'[\x00-\x20"<>\\^`|\x7f\ud800-\udfff]|%(?![0-9A-Fa-f]{2})')
_FOREIGN: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^\x00-\x7f]+")
_NOT_NORMAL: Final = re.compile(r"(?:%(?:[a-f][0-9A-Fa-f]|[0-9A-F][a-f]))+|[^\x00-\x7f]+")
_TRIPLET: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_NOT_UNRESERVED: Final = re.compile(rb"[^A-Za-z0-9._~-]")
_NOT_RESERVED: Final = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]")


class _Expression(NamedTuple):
    """One expression in braces."""

    operator: _Operator
    names: tuple[str, ...]

    def expand(self, values: Mapping[str, str | int | None]) -> str:
        """Return its expansion."""
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
    """Matches an expression, or several that make one list of pairs, as `{?x}{&y}`."""

    operator: _Operator
    # The operator characters, one of which begins it; empty for `{x}` and `{+x}`.
    marks: tuple[str, ...]
    names: tuple[str, ...]
    allowed: frozenset[str]

    def read(self, text: str, values: dict[str, str], safe: bool) -> bool:
        """Add the values in `text` to `values`; return False if it does not match."""
        if not text and not self.marks:
            return False
        for name, piece in self._pieces(text):
            value = _decoded(piece)
            if value is None or any(char in piece for char in self.operator.barred):
                return False
            if safe and not is_safe_value(piece, value):
                return False
            # A variable in two places has one value.
            if name not in self.allowed or values.setdefault(name, value) != value:
                return False
        return True

    def _pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield names and encoded values in `text`; names may be unknown."""
        if not self.operator.named:
            # The last one matches the rest; barred characters are checked by `read`.
            pieces = text.split(self.operator.between, len(self.names) - 1)
            yield from zip(self.names, pieces, strict=False)
            return
        # One more than there are names, so that what is too much has a name that is unknown.
        for pair in text.split(self.operator.between, len(self.names)):
            name, _, value = pair.partition("=")
            yield name, value


class _ExpressionRun:
    """Adjacent expressions, separated by their operator characters."""

    __slots__ = ("_boundaries", "_readers", "_starts", "least")

    def __init__(self, readers: list[_ExpressionReader]) -> None:
        self._readers = readers
        # The least number of characters it matches.
        self.least = 0 if readers[0].marks else 1
        # For each expression: the first one from there on that a character begins.
        starts: list[dict[str, int]] = [{}]
        for index in range(len(readers) - 1, -1, -1):
            starts.append({**starts[-1], **dict.fromkeys(readers[index].marks, index)})
        self._starts = starts[::-1]
        # For each expression: the characters that end it, without and with the separators it
        # contains.
        self._boundaries: dict[tuple[int, bool], re.Pattern[str] | None] = {}

    def read(self, text: str, values: dict[str, str], safe: bool) -> bool:
        """Add the values in `text` to `values`; return False if it does not match."""
        at = start = 0
        index = -1 if self._readers[0].marks else 0
        room = self._room(index)
        # Each turn ends an expression or counts a separator of it, so the template bounds them.
        while (boundary := self._boundary(index, room > 0)) is not None:
            mark = boundary.search(text, at)
            if mark is None:
                break
            at = mark.end()
            if room and mark[0] == self._readers[index].operator.between:
                room -= 1
                continue
            if not self._read(index, text[start : mark.start()], values, safe):
                return False
            index = self._starts[index + 1][mark[0]]
            start, room = at, self._room(index)
        return self._read(index, text[start:], values, safe)

    def _boundary(self, index: int, has_room: bool) -> re.Pattern[str] | None:
        """Return what to search for after an expression has begun, or None for the last."""
        key = index, has_room
        if key not in self._boundaries:
            marks = {*self._starts[index + 1]}
            if has_room:
                marks.add(self._readers[index].operator.between)
            self._boundaries[key] = (
                re.compile(f"[{re.escape(''.join(sorted(marks)))}]") if marks else None
            )
        return self._boundaries[key]

    def _room(self, index: int) -> int:
        """Return how many separators an expression contains."""
        return len(self._readers[index].names) - 1 if index >= 0 else 0

    def _read(self, index: int, text: str, values: dict[str, str], safe: bool) -> bool:
        return self._readers[index].read(text, values, safe) if index >= 0 else not text


class RequestedUri:
    """A URI that is matched with templates, prepared once for all of them."""

    __slots__ = ("_normal", "can_match", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.can_match = len(text) <= MAX_URI_LENGTH and (text.isascii() or _is_encodable(text))
        self._normal: str | None = None

    @property
    def normal(self) -> str:
        """The URI with one spelling of each percent-encoded byte."""
        if self._normal is None:
            self._normal = _normal(self.text)
        return self._normal


class UriTemplate:
    """A URI template. It is immutable, and compares by text."""

    __slots__ = ("_has_encoded", "_head", "_parts", "_rest", "text", "variables")

    def __init__(self, text: str, *, only_expand: bool = False) -> None:
        """Parse a template; with `only_expand` it need not be suitable for matching.

        Raises:
            ValueError: it is not valid, or not supported; the text says what is wrong.
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
            raise _fault(text, "it must begin with a scheme and a colon, as in 'file:'")
        self._head, self._rest = _arrange(() if only_expand else self._parts)
        # The spelling of percent-encoding matters in literals and names. Values are decoded.
        literals = (part for part in self._parts if isinstance(part, str))
        self._has_encoded = any("%" in each for each in (*literals, *names))

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
            ValueError: a value has a lone surrogate, which cannot be encoded.
        """
        parts = self._parts
        return "".join(part if isinstance(part, str) else part.expand(values) for part in parts)

    def match(self, uri: str | RequestedUri, *, safe: bool = False) -> dict[str, str] | None:
        """Return the decoded values in `uri`, or None if it does not match.

        Nothing matches a template that was made with `only_expand`. Values come from the peer:
        that of `{x}` may hold any character, `/` and NUL included, unless `safe` is set.
        """
        asked = uri if isinstance(uri, RequestedUri) else RequestedUri(uri)
        head = self._head
        # Each template for matching begins with a scheme.
        if not asked.can_match or not head:
            return None
        if not self._has_encoded:
            return self._read(asked.text, safe) if asked.text.startswith(head) else None
        # A part as long as the literal is enough to compare: no character becomes shorter.
        if not _normal(asked.text[: len(head)]).startswith(head):
            return None
        return self._read(asked.normal, safe)

    def _read(self, text: str, safe: bool) -> dict[str, str] | None:
        values: dict[str, str] = {}
        at = len(self._head)
        # The literal that ends the template ends the URI.
        tail = self._rest[-1][1] if self._rest else ""
        limit = len(text) - len(tail)
        if not text.endswith(tail):
            return None
        for number, (run, literal) in enumerate(self._rest, start=1):
            is_last = number == len(self._rest)
            end = limit if is_last else text.find(literal, at + run.least, limit)
            if end < at or not run.read(text[at:end], values, safe):
                return None
            at = end + len(literal)
        return values if at == len(text) else None


# Parsing


def _parse(text: str) -> Iterator[str | _Expression]:
    """Yield literals, encoded as in a URI, and expressions."""
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
            raise _fault(text, "every '{' needs its '}'")
        yield _expression(text, text[start + 1 : end])
        at = end + 1


def _literal(text: str, literal: str) -> str:
    if "}" in literal:
        raise _fault(text, "every '}' needs its '{'")
    wrong = _NOT_LITERAL.search(literal)
    if wrong:
        raise _fault(text, f"{wrong[0]!r} has to be percent-encoded")
    return _FOREIGN.sub(_encoded_unless_triplet, literal)


def _expression(text: str, inner: str) -> _Expression:
    mark = inner[:1] if inner[:1] in _OPERATORS else ""
    if inner[:1] and inner[:1] in _RESERVED_OPERATORS:
        raise _fault(text, f"the RFC reserves the operator {inner[:1]!r}")
    names = tuple(inner[len(mark) :].split(","))
    for name in names:
        if name.endswith("*") or ":" in name:
            plain = name.partition(":")[0].rstrip("*")[:_SHOWN]
            raise _fault(
                text,
                f"modifiers are not supported, and {name[:_SHOWN]!r} has one; "
                f"{{+{plain}}} matches several segments of a path",
            )
        if not _NAME.fullmatch(name):
            raise _fault(
                text, f"names are made of letters, digits and '_', unlike {name[:_SHOWN]!r}"
            )
    return _Expression(_OPERATORS[mark], names)


def _arrange(
    parts: tuple[str | _Expression, ...],
) -> tuple[str, tuple[tuple[_ExpressionRun, str], ...]]:
    """Return the first literal, then each run of expressions with the literal after it."""
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
    readers: list[_ExpressionReader] = []
    for operator, names in run:
        last = readers[-1] if readers else None
        marks = (operator.first,) if operator.first else ()
        if last and not marks:
            shown = f"{{{','.join(last.names)}}} and {{{','.join(names)}}}"
            raise ValueError(f"{shown[:_SHOWN]} cannot be separated: put a '/' between")
        if last and operator.named and operator.first == last.operator.between:
            # Only the name of a pair tells which of the two it belongs to.
            readers.pop()
            marks, names = (*last.marks, *marks), (*last.names, *names)
            operator = last.operator
        readers.append(_ExpressionReader(operator, marks, names, frozenset(names)))
    return readers


def _fault(text: str, rule: str) -> ValueError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return ValueError(f"{shown!r} is not a URI template: {rule}")


# Encoding


def _text(name: str, value: object) -> str:
    # In Python a bool is an int.
    if isinstance(value, bool) or not isinstance(value, str | int):
        kind = type(value).__name__
        raise TypeError(f"the value of {name!r} is a text or an integer, and not of type {kind}")
    return str(value)


def _escaped(found: re.Match[bytes]) -> bytes:
    """Return a byte percent-encoded; what is encoded already stays."""
    return b"%%%02X" % found[0][0] if len(found[0]) == 1 else found[0]


def _encoded(found: re.Match[str]) -> str:
    """Percent-encode, with upper-case digits."""
    text = found[0]
    if text[0] == "%":
        return text.upper()
    return f"%{text.encode().hex('%')}".upper()


def _encoded_unless_triplet(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == "%" else _encoded(found)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _normal(uri: str) -> str:
    """Return a URI with one spelling of each percent-encoded byte."""
    if uri.isascii() and "%" not in uri:
        return uri
    # Without the triplets in capitals, which most are: a call for each takes time.
    return _NOT_NORMAL.sub(_encoded, uri)


def _decoded(piece: str) -> str | None:
    """Return a value percent-decoded; None if that is not UTF-8."""
    if "%" not in piece:
        return piece
    raw = piece.encode()
    try:
        raw = _unescaped(raw)
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _unescaped(raw: bytes) -> bytes:
    """Return bytes with each `%41` replaced by its byte; a `%` without two digits stays."""
    if b"\\" not in raw:
        # The escapes of Python have the same form, and are decoded in C.
        try:
            return raw.replace(b"%", b"\\x").decode("unicode_escape").encode("latin-1")
        except UnicodeDecodeError:
            pass  # a `%` without two digits
    return _TRIPLET.sub(lambda found: bytes((int(found[1], 16),)), raw)
