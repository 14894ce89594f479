"""What `validate` found, as a stored value, and what the renderers beside this one share.

A renderer is a module with `render(report) -> str`. It computes nothing about the protocol
and opens nothing: the same report makes every format, now or later. No renderer sees a
message: a report holds only text from which secrets were taken.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
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
    "render",
    "visible",
]

FORMATS: Final = ("text", "json", "junit", "sarif", "markdown")


class Excerpt(NamedTuple):
    """The place of a finding in its message, pretty-printed, and what to point at."""

    lines: tuple[str, ...]
    # The line that is pointed at, and the columns from and up to.
    line: int
    start: int
    end: int


class LocatedFinding(NamedTuple):
    """A finding and its place."""

    finding: Finding
    excerpt: Excerpt | None


class JudgedMessage(NamedTuple):
    """One message and what was found about it."""

    # Counted from one, as people do.
    number: int
    # What it is, in a few words: "request tools/call".
    label: str
    method: str
    line: int | None
    sender: str
    seen: tuple[LocatedFinding, ...]


class ValidationReport(NamedTuple):
    """Everything that one run of `validate` has to say."""

    name: str
    # "message", "list", "lines" or "trace".
    shape: str
    revision: str
    # How the revision came to be this one.
    why: str
    strict: bool
    messages: tuple[JudgedMessage, ...]

    def all_seen(self) -> Iterator[tuple[JudgedMessage, LocatedFinding]]:
        """Yield every finding, with its message."""
        return ((message, seen) for message in self.messages for seen in message.seen)

    def counts(self) -> Counter[str]:
        """Return how many findings there are of each level."""
        return Counter(seen.finding.level for _, seen in self.all_seen())

    def fails(self, level: str) -> bool:
        """Say whether a finding of this level makes the run a failure."""
        return level == "error" or (self.strict and level == "warn")

    def failed(self) -> bool:
        """Say whether anything was found that counts."""
        return any(self.fails(level) for level in self.counts())

    def summary(self) -> str:
        """Return one line that says how it went."""
        counts = self.counts()
        parts = [
            _count(counts[level], word)
            for level, word in (("error", "error"), ("warn", "warning"), ("info", "remark"))
            if counts[level]
        ]
        judged = _count(len(self.messages), "message")
        return f"{judged} by MCP {self.revision}: {', '.join(parts) or 'nothing found'}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def render(report: ValidationReport, form: str) -> str:
    """Return a report in one of `FORMATS`."""
    text: str = import_module(f".{form}", __name__).render(report)
    return text


# Text


def visible(text: str) -> str:
    """Return a peer's text with nothing in it that a terminal would act on or hide."""
    return escaped(text, kept="")


# Sources


# Compiled when a source is first looked at: a verb that prints no report has no use for them.
_PAGE: Final = r"(?:MCP )?(\d{4}-\d\d-\d\d)(?: · |, )([\w./-]+)(#[\w.-]+)?\Z"
_RFC: Final = r"RFC (\d+)(?:, section ([\d.]+))?"


def address(source: str) -> str:
    """Return the address of the page that a source names, or nothing where it names none."""
    if page := re.match(_PAGE, source):
        revision, path, heading = page.groups("")
        return f"https://modelcontextprotocol.io/specification/{revision}/{path.removesuffix('/index')}{heading}"
    if rfc := re.match(_RFC, source):
        section = f"#section-{rfc[2]}" if rfc[2] else ""
        return f"https://www.rfc-editor.org/rfc/rfc{rfc[1]}{section}"
    return "https://www.jsonrpc.org/specification" if source.startswith("JSON-RPC 2.0") else ""


# Output


def emit(text: str) -> None:
    """Print a text, even where its reader leaves early or cannot take every character.

    Raises:
        OSError: it cannot be written; `filename` is "standard output".
    """
    if sys.stdout is None:  # it was closed when Python started
        return
    encoding = sys.stdout.encoding or "utf-8"
    # What a peer wrote may have no form in the encoding of a terminal, or in any.
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    with writing():
        print(safe)
