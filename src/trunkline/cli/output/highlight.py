"""Syntax highlighting of JSON text: keys, strings, numbers and literals in colours.

Loaded only if the output is coloured.
"""

from __future__ import annotations

import re
from typing import Final

from .terminal import STYLE_CODES

__all__ = ["highlight"]

# Characters; a longer text is scrolled past, not read.
_MAX_LENGTH: Final = 1_000_000
_TOKEN: Final = re.compile(
    r'(?P<text>"(?:[^"\\]+|\\.)*+")(?P<colon>\s*:)?'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"|(?P<literal>true|false|null)"
)
_STYLES: Final = {"key": "cyan", "text": "green", "number": "yellow", "literal": "magenta"}


def highlight(text: str) -> str:
    """Return JSON text with colours, or a very long one as it is."""
    return text if len(text) > _MAX_LENGTH else _TOKEN.sub(_coloured, text)


def _coloured(found: re.Match[str]) -> str:
    kind, token = str(found.lastgroup), found[0]
    if kind == "colon":  # a key
        return f"{_painted(found['text'], 'key')}{found['colon']}"
    return _painted(token, kind)


def _painted(token: str, kind: str) -> str:
    return f"\033[{STYLE_CODES[_STYLES[kind]]}m{token}\033[0m"
