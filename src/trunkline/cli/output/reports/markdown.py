"""Renders a report as Markdown, for a page or a review."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from . import JudgedMessage, LocatedFinding, ValidationReport, address
from .text import advice, marker, sentence, where_it_is

__all__ = ["render"]

# Escaped, so that a peer's text cannot become links or pictures.
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()|~&])")


def render(report: ValidationReport) -> str:
    """Return the report as a section of a page."""
    lines = [
        f"## {_plain(report.name)}",
        "",
        f"{report.summary()}. The revision is {report.why}.",
        *(line for message, seen in report.all_seen() for line in _finding(report, message, seen)),
        *(f"\nNot shown: {_plain(each)}." for each in report.left_out()),
    ]
    return "\n".join(lines)


def _finding(
    report: ValidationReport, message: JudgedMessage, seen: LocatedFinding
) -> Iterator[str]:
    finding = seen.finding
    yield ""
    yield f"### {finding.level}: {_plain(finding.rule)}"
    yield ""
    place = f"{where_it_is(report, message)}, message {message.number}, {message.label}"
    yield f"In {_plain(place)}: {_code(sentence(finding))}."
    if finding.expected:
        told = advice(finding)
        yield _plain(f"{told[0].upper()}{told[1:].rstrip('.')}.")
    yield f"Source: {_source(finding.source)}"
    if seen.excerpt is not None:
        yield ""
        yield from _block(seen)


def _block(seen: LocatedFinding) -> Iterator[str]:
    """Yield the excerpt as an indented block, which no text in it can end."""
    excerpt = seen.excerpt
    for number, line in enumerate(excerpt.lines if excerpt else ()):
        yield f"    {line}"
        if excerpt and number == excerpt.line:
            yield f"    {marker(excerpt)}"


def _source(source: str) -> str:
    page = address(source)
    return f"[{_plain(source)}]({page})" if page else _plain(source)


def _code(text: str) -> str:
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
