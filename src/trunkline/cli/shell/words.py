"""Splits a line into words, by the quoting rules of a POSIX shell.

A line can be copied to a terminal behind `trunkline` and means the same there, except that
nothing is expanded: `$`, `*`, `;` and `|` are ordinary characters.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from ..command import UsageError

__all__ = ["PartialLine", "partial_line", "quoted", "split_words"]


class PartialLine(NamedTuple):
    """A line that ends at the cursor: the words before, and the one that is being typed."""

    words: list[str]
    # Without its quotes; empty after a space.
    word: str
    # Where its first character, or its quote, is in the line.
    start: int

    def __repr__(self) -> str:
        from ...jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


def split_words(line: str) -> list[str]:
    """Return the words of a line; a line that begins with # has none.

    Raises:
        UsageError: a quote is not closed, or nothing follows the last backslash.
    """
    if line.lstrip().startswith("#"):
        return []
    try:
        return shlex.split(line)
    except ValueError as error:
        what = "a quote is not closed" if "quotation" in str(error) else "nothing follows the \\"
        raise UsageError(what) from None


def partial_line(text: str) -> PartialLine:
    """Return the words of a line up to the cursor; a quote may still be open."""
    words: list[str] = []
    word, start, quote, is_word, is_escaped = "", len(text), "", False, False
    for at, each in enumerate(text):
        if not is_word and not each.isspace():
            is_word, word, start = True, "", at
        if is_escaped:
            # In double quotes a backslash escapes only itself and the quote.
            word += each if not quote or each in '"\\' else f"\\{each}"
            is_escaped = False
        elif each == "\\" and quote != "'":
            is_escaped = True
        elif quote:
            quote, word = ("", word) if each == quote else (quote, word + each)
        elif each in "'\"":
            quote = each
        elif each.isspace():
            if is_word:
                words.append(word)
            is_word, word, start = False, "", len(text)
        else:
            word += each
    return PartialLine(words, word, start)


def quoted(text: str) -> str:
    """Return a word as it is typed, in quotes if it needs them."""
    return shlex.quote(text)
