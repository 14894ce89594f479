"""Bar charts as SVG, for documentation: text in, text out.

A chart has its own background and follows `prefers-color-scheme`, so that it is readable on light
and dark pages, also where a page has chosen the other of the two. Numbers are printed beside the
bars: colours and lengths repeat what the text says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

_PLOT: Final = 380
# Beside the plot: the number of the longest bar, and the border.
_NUMBER: Final = 114
# Labels end here, left of the plot, and begin at the border at the earliest. A reader's font is
# not known: the width of a character is that of DejaVu Sans and Verdana, the widest usual ones.
_MARGIN: Final = 20
_GAP: Final = 8
_CHARACTER: Final = 7.9
# Titles fit above a plot that begins here or further right.
_LEAST_LEFT: Final = 366
_TOP: Final = 72
_ROW: Final = 24
_BAR: Final = 14
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"

_STYLE: Final = f"""
  text {{ font-family: {_FONT}; font-size: 13px; fill: #24323d; }}
  .title {{ font-size: 16px; font-weight: 600; }}
  .quiet {{ fill: #5b6873; font-size: 12px; }}
  .number {{ font-variant-numeric: tabular-nums; }}
  .page {{ fill: #ffffff; stroke: #d7dde2; }}
  .grid {{ stroke: #e3e8ec; }}
  .base {{ stroke: #5b6873; }}
  .ours {{ fill: #0b7a70; }}
  .loss {{ fill: #b3541e; }}
  .rival {{ fill: #a3afb8; }}
  .mark {{ stroke: #24323d; stroke-width: 2; }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e2e8ec; }}
    .quiet {{ fill: #9fadb8; }}
    .page {{ fill: #161b1f; stroke: #333d45; }}
    .grid {{ stroke: #2a333a; }}
    .base {{ stroke: #9fadb8; }}
    .ours {{ fill: #4fc3b5; }}
    .loss {{ fill: #f0995c; }}
    .rival {{ fill: #66737d; }}
    .mark {{ stroke: #e2e8ec; }}
  }}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart; `mark` is a value to compare it with, such as a target."""

    label: str
    value: float
    text: str
    kind: str = "ours"
    mark: float | None = None


def bars(title: str, subtitle: str, rows: Sequence[Bar], *, ratios: bool = False) -> str:
    """Return a chart of horizontal bars.

    With `ratios` the scale is logarithmic and bars begin at 1: those to its left are losses.
    """
    left = _label_width(rows)
    width = left + _PLOT + _NUMBER
    scale = _Scale.of_ratios(rows, left) if ratios else _Scale.of_amounts(rows, left)
    height = _TOP + _ROW * len(rows) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{_attribute(title)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
        f'<text class="title" x="20" y="30">{escape(title)}</text>',
        f'<text class="quiet" x="20" y="50">{escape(subtitle)}</text>',
    ]
    bottom = _TOP + _ROW * len(rows)
    for tick in scale.ticks:
        x, kind = scale.at(tick), "base" if tick == scale.base else "grid"
        parts.append(f'<line class="{kind}" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
        label = f"{tick:g}x" if ratios else f"{tick:g}"
        parts.append(
            f'<text class="quiet" x="{x}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
        )
    for number, row in enumerate(rows):
        parts += _row(row, scale, left, _TOP + _ROW * number)
    return "\n".join([*parts, "</svg>", ""])


def _label_width(rows: Sequence[Bar]) -> int:
    """Return the x at which the plot begins: the longest label fits to its left."""
    longest = max((len(row.label) for row in rows), default=0)
    return max(_LEAST_LEFT, _MARGIN + math.ceil(longest * _CHARACTER) + _GAP)


def _row(row: Bar, scale: _Scale, left: int, top: int) -> list[str]:
    start, end = sorted((scale.at(scale.base), scale.at(row.value)))
    middle = top + _ROW // 2
    y = middle - _BAR // 2
    text_at = max(end, scale.at(row.mark) if row.mark is not None else 0) + 8
    parts = [
        f'<text x="{left - _GAP}" y="{middle + 4}" text-anchor="end">{escape(row.label)}</text>',
        f'<rect class="{row.kind}" x="{start}" y="{y}" width="{max(1, round(end - start, 1))}" '
        f'height="{_BAR}" rx="2"/>',
        f'<text class="number" x="{round(text_at, 1)}" y="{middle + 4}">{escape(row.text)}</text>',
    ]
    if row.mark is not None:
        x = scale.at(row.mark)
        parts.append(f'<line class="mark" x1="{x}" y1="{y - 3}" x2="{x}" y2="{y + _BAR + 3}"/>')
    return parts


class _Scale:
    """From values to places on the x axis."""

    def __init__(
        self, ticks: list[float], ends: tuple[float, float], left: int, *, is_log: bool
    ) -> None:
        self.ticks = ticks
        self.base = 1.0 if is_log else 0.0
        self._is_log = is_log
        self._left = left
        self._low, self._high = (self._plain(end) for end in ends)

    @classmethod
    def of_ratios(cls, rows: Sequence[Bar], left: int) -> _Scale:
        """A logarithmic scale that has 1 and all values."""
        values = [each for row in rows for each in (row.value, row.mark) if each]
        ladder = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
        low = max(each for each in ladder if each <= min([1.0, *values]))
        high = min(each for each in ladder if each >= max([2.0, *values]))
        ticks = [each for each in ladder if low <= each <= high]
        return cls(ticks, (low, high), left, is_log=True)

    @classmethod
    def of_amounts(cls, rows: Sequence[Bar], left: int) -> _Scale:
        """A linear scale from 0."""
        most = max([each for row in rows for each in (row.value, row.mark) if each] or [1.0])
        step = 10.0 ** math.floor(math.log10(most))
        step = next(each for each in (step / 5, step / 2, step, step * 2) if most / each <= 6)
        count = math.ceil(most / step)
        ticks = [round(step * number, 6) for number in range(count + 1)]
        return cls(ticks, (0.0, ticks[-1]), left, is_log=False)

    def at(self, value: float) -> float:
        """Return the x of a value."""
        share = (self._plain(value) - self._low) / (self._high - self._low)
        return round(self._left + _PLOT * min(1.0, max(0.0, share)), 1)

    def _plain(self, value: float) -> float:
        return math.log(value) if self._is_log else value


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
