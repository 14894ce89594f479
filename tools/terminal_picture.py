"""A picture of a terminal as SVG, from lines with styles: `⟨bold cyan⟩text⟨/⟩`.

The lines are those that the tests of the terminal compare; `tests/terminal/test_picture.py` makes
the picture of the documentation from commands that it runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

# A cell of the terminal, and what is around the text, in pixels.
_CELL: Final = 8.4
_LINE: Final = 19
_BAR: Final = 34
_PAD: Final = 18

_PALETTE: Final = {
    "red": "#ff8a80",
    "green": "#8fdc9a",
    "yellow": "#f2cf73",
    "blue": "#8ab8ff",
    "magenta": "#e3a5f5",
    "cyan": "#7fdbe0",
}
_STYLED: Final = re.compile(r"⟨([^⟩/]*)⟩(.*?)⟨/⟩|([^⟨]+)")


def terminal_picture(title: str, lines: Sequence[str], columns: int) -> str:
    """Return a terminal of so many columns that shows the lines."""
    width = round(2 * _PAD + columns * _CELL)
    height = _BAR + 2 * _PAD + _LINE * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{_attribute(title)}">',
        f"<title>{escape(title)}</title>",
        "<style>text { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, "
        "'DejaVu Sans Mono', monospace; font-size: 14px; fill: #dfe6ea; white-space: pre; } "
        ".bold { font-weight: 700; } .dim { fill: #8b99a3; }</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#12181c"/>',
        *(
            f'<circle cx="{_PAD + 4 + 20 * number}" cy="{_BAR // 2 + 2}" r="6" fill="#39444c"/>'
            for number in range(3)
        ),
    ]
    for number, line in enumerate(lines):
        parts += _texts(line, _BAR + _PAD + _LINE * number + 10)
    return "\n".join([*parts, "</svg>", ""])


def _texts(line: str, y: int) -> list[str]:
    """Return the parts of a line, each at its column and as wide as its cells in any font."""
    parts: list[str] = []
    column = 0
    for style, styled, plain in _STYLED.findall(line):
        text = styled or plain
        if text.strip():
            parts.append(
                f'<text x="{_PAD + column * _CELL:.1f}" y="{y}" xml:space="preserve" '
                f'textLength="{len(text) * _CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
                f"{_look(style.split())}>{escape(text)}</text>"
            )
        column += len(text)
    return parts


def _look(names: Sequence[str]) -> str:
    classes = [each for each in names if each in ("bold", "dim")]
    fills = [_PALETTE[each] for each in names if each in _PALETTE]
    look = f' class="{" ".join(classes)}"' if classes else ""
    return look + (f' style="fill: {fills[0]}"' if fills else "")


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
