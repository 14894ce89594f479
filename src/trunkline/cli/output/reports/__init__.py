"""The report of `validate`, and helpers of its renderers.

A renderer is a module of this package with `render(report) -> str`. It sees no messages: a report
holds only texts without secrets.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from ....errors import visible as escaped
from ..terminal import writing

if TYPE_CHECKING:
    from ....judge.finding import Finding

__all__ = [
    "FORMATS",
    "Excerpt",
    "JudgedMessage",
    "LocatedFinding",
    "ValidationReport",
    "address",
    "emit",
    "json_document",
    "render",
    "visible",
]

FORMATS: Final = ("text", "json", "junit", "sarif", "markdown")


class Excerpt(NamedTuple):
    """The part of a message around a finding, pretty-printed."""

    lines: tuple[str, ...]
    # The index of the marked line, and its marked columns.
    line: int
    start: int
    end: int

    def __repr__(self) -> str:
        from ....jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


class LocatedFinding(NamedTuple):
    """A finding with its excerpt."""

    finding: Finding
    excerpt: Excerpt | None

    def __repr__(self) -> str:
        from ....jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


class JudgedMessage(NamedTuple):
    """One message with its findings."""

    # Counted from 1.
    number: int
    # Such as "request tools/call".
    label: str
    method: str
    line: int | None
    sender: str
    seen: tuple[LocatedFinding, ...]

    def __repr__(self) -> str:
        from ....jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


class ValidationReport(NamedTuple):
    """The result of one run of `validate`."""

    name: str
    # "message", "list", "lines" or "trace".
    shape: str
    revision: str
    # Why it is judged by this revision.
    why: str
    strict: bool
    messages: tuple[JudgedMessage, ...]
    # Messages that are not in `messages`, and findings that are not in them: they are counted,
    # since the peers decide how many there are.
    more_messages: int = 0
    more: Mapping[tuple[str, str], int] = {}

    def __repr__(self) -> str:
        from ....jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)

    def all_seen(self) -> Iterator[tuple[JudgedMessage, LocatedFinding]]:
        """Yield every finding, with its message."""
        return ((message, seen) for message in self.messages for seen in message.seen)

    def counts(self) -> Counter[str]:
        """Return the number of findings of each level."""
        counts: Counter[str] = Counter(seen.finding.level for _, seen in self.all_seen())
        for (level, _), count in self.more.items():
            counts[level] += count
        return counts

    def total(self) -> int:
        """Return the number of messages."""
        return len(self.messages) + self.more_messages

    def left_out(self) -> list[str]:
        """Return a sentence about the further findings of each rule."""
        return [
            f"{_count(count, 'more finding')} of {visible(rule)}"
            for (_, rule), count in self.more.items()
        ]

    def fails(self, level: str) -> bool:
        """Return True if a finding of this level fails the run."""
        return level == "error" or (self.strict and level == "warn")

    def failed(self) -> bool:
        """Return True if a finding fails the run."""
        return any(self.fails(level) for level in self.counts())

    def summary(self) -> str:
        """Return the numbers of messages and findings, in one line."""
        counts = self.counts()
        parts = [
            _count(counts[level], word)
            for level, word in (("error", "error"), ("warn", "warning"), ("info", "remark"))
            if counts[level]
        ]
        judged = _count(self.total(), "message")
        return f"{judged} by MCP {self.revision}: {', '.join(parts) or 'nothing found'}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def render(report: ValidationReport, form: str) -> str:
    """Return a report in one of `FORMATS`."""
    text: str = import_module(f".{form}", __name__).render(report)
    return text


# Text


def visible(text: str) -> str:
    """Return a peer's text with control characters escaped."""
    return escaped(text, kept="")


def json_document(value: object) -> str:
    """Return indented JSON in which characters that a terminal would act on are escaped."""
    # Imported here: other verbs use this module to escape text.
    from json import dumps

    text = dumps(value, ensure_ascii=False, indent=2)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else dumps(each)[1:-1] for each in text
    )


# Sources


# Compiled on first use: a verb without a report does not need them.
_PAGE: Final = r"(?:MCP )?(\d{4}-\d\d-\d\d)(?: · |, )([\w./-]+)(#[\w.-]+)?\Z"
_RFC: Final = r"RFC (\d+)(?:, section ([\d.]+))?"


def address(source: str) -> str:
    """Return the URL of the page that a source names, or ""."""
    if page := re.match(_PAGE, source):
        revision, path, heading = page.groups("")
        return f"https://modelcontextprotocol.io/specification/{revision}/{path.removesuffix('/index')}{heading}"
    if rfc := re.match(_RFC, source):
        section = f"#section-{rfc[2]}" if rfc[2] else ""
        return f"https://www.rfc-editor.org/rfc/rfc{rfc[1]}{section}"
    return "https://www.jsonrpc.org/specification" if source.startswith("JSON-RPC 2.0") else ""


# Output


def emit(text: str) -> None:
    """Print a text; ignore a closed pipe, and escape what the encoding cannot represent.

    Raises:
        OSError: it cannot be written; `filename` is "standard output".
    """
    if sys.stdout is None:  # it was closed when Python started
        return
    encoding = sys.stdout.encoding or "utf-8"
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    with writing():
        print(safe)
