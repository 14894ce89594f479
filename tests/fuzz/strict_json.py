"""A strict parser of RFC 8259, written for the tests: an oracle that shares no code with ours.

It takes what the grammar allows and nothing else. A lone surrogate is allowed by the grammar, and
kept. A name that is there twice has its last value. `UNFIT` stands for a number that no double or
Python integer holds, and nesting beyond `DEEPEST` is not decided: `Undecided` is raised.
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["DEEPEST", "UNFIT", "NotJson", "Undecided", "parse"]

DEEPEST: Final = 100
MOST_DIGITS: Final = 4300
UNFIT: Final = object()

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}", re.ASCII)
_LITERALS: Final = {"true": True, "false": False, "null": None}
_ESCAPES: Final = {
    **{'"': '"', "\\": "\\", "/": "/"},
    **{"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"},
}


class NotJson(ValueError):
    """The bytes are no JSON text."""


class Undecided(Exception):
    """The text nests deeper than this parser looks."""


def parse(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        NotJson: it is none.
        Undecided: it nests too deep to say.
    """
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        raise NotJson("not UTF-8") from error
    parser = _Parser(text)
    value = parser.value(0)
    parser.blanks()
    if parser.at != len(text):
        raise NotJson(f"more at {parser.at}")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def blanks(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t", "\n", "\r"):
            self.at += 1

    def takes(self, token: str) -> bool:
        self.blanks()
        found = self.text.startswith(token, self.at)
        self.at += len(token) * found
        return found

    def need(self, token: str) -> None:
        if not self.takes(token):
            raise NotJson(f"no {token} at {self.at}")

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise Undecided
        if self.takes("{"):
            return self.members(depth + 1)
        if self.takes("["):
            return self.elements(depth + 1)
        if self.text.startswith('"', self.at):
            return self.string()
        for literal, value in _LITERALS.items():
            if self.takes(literal):
                return value
        return self.number()

    def members(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.takes("}"):
            return found
        while True:
            self.blanks()
            name = self.string()
            self.need(":")
            found[name] = self.value(depth)
            if self.takes("}"):
                return found
            self.need(",")

    def elements(self, depth: int) -> list[Any]:
        found: list[Any] = []
        if self.takes("]"):
            return found
        while True:
            found.append(self.value(depth))
            if self.takes("]"):
                return found
            self.need(",")

    def string(self) -> str:
        if not self.text.startswith('"', self.at):
            raise NotJson(f"no string at {self.at}")
        self.at += 1
        # Units of UTF-16, so that two halves of a pair become one character.
        units: list[str] = []
        while True:
            character = self.text[self.at : self.at + 1]
            if not character or character < " ":
                raise NotJson(f"a string does not end, or has a control character, at {self.at}")
            self.at += 1
            if character == '"':
                break
            units.append(self.escape() if character == "\\" else character)
        text = "".join(units)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def escape(self) -> str:
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        digits = _HEX.match(self.text, self.at)
        if letter != "u" or digits is None:
            raise NotJson(f"no escape at {self.at}")
        self.at += 4
        return chr(int(digits[0], 16))

    def number(self) -> Any:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise NotJson(f"no value at {self.at}")
        self.at = found.end()
        if found[1] is None and found[2] is None:
            return int(found[0]) if len(found[0].lstrip("-")) <= MOST_DIGITS else UNFIT
        number = float(found[0])
        return number if abs(number) != float("inf") else UNFIT
