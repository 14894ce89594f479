"""Docstrings: the description of a function or class, and of each of its arguments.

Three styles are parsed: Google (`Args:` and an indented list), NumPy (`Parameters` underlined
with dashes) and Sphinx (`:param name: text`). They may be mixed. Each line is read once, so the
time grows with the length alone.

Sections on results, errors and generators are left out: the schema of a tool has its own places
for those. Any other text is part of the description.
"""

from __future__ import annotations

import re
from inspect import cleandoc
from typing import Final, NamedTuple

__all__ = ["Docstring", "read"]

_ARGUMENTS: Final = frozenset(
    [
        "args",
        "arguments",
        "parameters",
        "params",
        "keyword_args",
        "keyword_arguments",
        "other_parameters",
        "other_args",
        "attributes",
        "members",
    ]
)
_LEFT_OUT: Final = frozenset(
    ["returns", "return", "raises", "except", "exceptions", "yields", "yield", "warns"]
)

# `city: text`, `city (str): text`, `city (str, optional) : text`
_ITEM: Final = re.compile(r"[*]{0,2}(\w+)[ ]?(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?[ ]?:(?: +|$)(.*)")
# `city : str`, `city`, `x, y : int`
_NUMPY_ITEM: Final = re.compile(r"[*]{0,2}\w+(?: *, *[*]{0,2}\w+)*(?: *:.*)?$")
_FIELD: Final = re.compile(r":(\w+)(?: +([^:]*))?:(?: +|$)(.*)")
_FIELDS_OF_ARGUMENTS: Final = frozenset(
    ["param", "parameter", "arg", "argument", "key", "keyword", "ivar"]
)
_RULE: Final = re.compile(r"(?:-{3,}|={3,})$")


class Docstring(NamedTuple):
    """The description in a docstring, and one for each argument it names."""

    text: str
    arguments: dict[str, str]


def read(docstring: str | None) -> Docstring:
    """Parse a docstring; None gives an empty description."""
    if not docstring:
        return Docstring("", {})
    reader = _DocstringParser()
    lines = cleandoc(docstring).split("\n")
    for place, line in enumerate(lines):
        following = lines[place + 1].strip() if place + 1 < len(lines) else ""
        reader.line(line, following)
    return reader.done()


class _DocstringParser:
    """Goes through a docstring line by line, and knows which section it is in."""

    def __init__(self) -> None:
        self._prose: list[str] = []
        self._found: dict[str, list[str]] = {}
        # Where text goes: to the prose, to some arguments, or nowhere.
        self._target: list[list[str]] = [self._prose]
        self._section = "prose"  # or "google", "numpy", "field", "left out"
        self._margin = 0  # how far the items of a section are indented; 0 before the first

    def line(self, line: str, following: str) -> None:
        """Take one line; `following` is the one after it."""
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text:
            self._blank()
        elif indent == 0 and self._opens(text, following):
            pass
        elif self._section == "google" and indent > 0:
            self._google(text, indent)
        elif self._section == "numpy":
            self._numpy(text, indent)
        elif self._section == "field" and indent > 0:
            self._add(text)
        elif self._section == "left out" and (indent > 0 or self._margin < 0):
            pass  # of a section that is not kept
        else:
            self._return_to_prose()
            self._prose.append(line.rstrip())

    def done(self) -> Docstring:
        """Return all that was found."""
        found = {name: " ".join(parts) for name, parts in self._found.items()}
        return Docstring(
            "\n".join(self._prose).strip(), {name: text for name, text in found.items() if text}
        )

    def _opens(self, text: str, following: str) -> bool:
        """Begin another section, if this line does, and say whether it does."""
        field = _FIELD.match(text) if text.startswith(":") else None
        if field is not None:
            self._field(field)
            return True
        if _RULE.match(text) and self._margin < 0:
            return True  # the rule under a heading that was just taken
        underlined = bool(_RULE.match(following)) and len(following) >= len(text) - 2
        if not underlined and not text.endswith(":"):
            return False
        name = text.removesuffix(":").strip().lower().replace(" ", "_")
        if name in _ARGUMENTS:
            self._section = "numpy" if underlined else "google"
        elif name in _LEFT_OUT:
            self._section = "left out"
        else:
            if not underlined:
                return False
            self._return_to_prose()
            self._prose.append(text)
            return True
        # A negative margin says that the section is ended by a heading, not by the margin.
        self._margin = -1 if underlined else 0
        self._target = []
        return True

    def _return_to_prose(self) -> None:
        self._section = "prose"
        self._margin = 0
        self._target = [self._prose]

    def _blank(self) -> None:
        if self._section == "prose":
            self._prose.append("")
        elif self._section == "field":
            self._return_to_prose()

    def _google(self, text: str, indent: int) -> None:
        item = _ITEM.match(text) if indent <= (self._margin or indent) else None
        if item is None:
            self._add(text)
            return
        self._margin = indent
        self._begin([item[1]], item[2])

    def _numpy(self, text: str, indent: int) -> None:
        if indent == 0 and _NUMPY_ITEM.match(text):
            names = text.partition(":")[0].split(",")
            self._begin([name.strip().lstrip("*") for name in names], "")
        elif indent > 0:
            self._add(text)
        elif not _RULE.match(text):
            self._return_to_prose()
            self._prose.append(text)

    def _field(self, field: re.Match[str]) -> None:
        self._section = "field"
        self._margin = 0
        self._target = []
        words = (field[2] or "").split()
        if field[1] in _FIELDS_OF_ARGUMENTS and words:
            self._begin([words[-1].lstrip("*\\")], field[3])  # `:param int days:` names its type

    def _begin(self, names: list[str], text: str) -> None:
        self._target = [self._found.setdefault(name, []) for name in names]
        self._add(text)

    def _add(self, text: str) -> None:
        if text:
            for target in self._target:
                target.append(text)
