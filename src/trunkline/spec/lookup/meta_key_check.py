"""Checks the syntax and the prefix of a key of `_meta` in one revision of MCP.

    check_meta_key("com.example.mcp/trace", "2025-06-18")   None
    check_meta_key("mcp.dev/trace", "2025-06-18").rule      "mcp.meta.key-reserved"

The rules, whose rows are in `mcp/meta.py`:

* Before 2025-06-18 a key is any text.
* From then on a key is a name, optionally after a prefix of labels and a slash.
* Some prefixes are reserved: in 2025-06-18 those where `mcp` or `modelcontextprotocol` precedes
  another label, later those where it is the second label. Keys that the revision itself defines
  under such a prefix are valid.

Labels are case-sensitive: the specification does not say otherwise.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..mcp.meta import GRAMMARS
from ..revisions import LATEST, REVISIONS, must_be_released
from ..rows import MetaGrammar
from . import meta_key

__all__ = ["KEY_RESERVED", "KEY_SYNTAX", "MetaProblem", "check_meta_key", "meta_grammar"]

KEY_SYNTAX: Final = "mcp.meta.key-syntax"
KEY_RESERVED: Final = "mcp.meta.key-reserved"

# Neither pattern can match a text in two ways, so matching takes linear time.
_LABEL: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_NAME: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")


class MetaProblem(NamedTuple):
    """Why a key is invalid."""

    rule: str
    says: str
    anchor: str


_GRAMMARS: Final = {
    revision: grammar
    for revision in REVISIONS
    for grammar in GRAMMARS
    if grammar.when.holds(revision)
}


def meta_grammar(revision: str = LATEST) -> MetaGrammar:
    """Return the grammar of keys in `revision`.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    must_be_released(revision)
    return _GRAMMARS[revision]


def check_meta_key(key: str, revision: str = LATEST) -> MetaProblem | None:
    """Return why `key` is invalid, or None.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
    """
    grammar = meta_grammar(revision)
    if not grammar.formed:
        return None
    prefix, slash, name = key.partition("/")
    labels = prefix.split(".") if slash else []
    fault = _misspelt(labels, name if slash else key)
    if fault:
        return MetaProblem(KEY_SYNTAX, fault, grammar.anchor)
    if _is_reserved(labels, grammar) and meta_key(key, revision) is None:
        says = f"another prefix: this one is reserved, and {revision} does not define the key"
        return MetaProblem(KEY_RESERVED, says, grammar.anchor)
    return None


def _misspelt(labels: list[str], name: str) -> str:
    if not all(_LABEL.fullmatch(label) for label in labels):
        return "a label starts with a letter, ends with a letter or digit, and has only those and hyphens"
    if not _NAME.fullmatch(name):
        return "a name starts and ends with a letter or digit, and has only those, '-', '_' and '.'"
    return ""


def _is_reserved(labels: list[str], grammar: MetaGrammar) -> bool:
    if grammar.reserved == "before-another":
        return any(label in grammar.labels for label in labels[:-1])
    return len(labels) > 1 and labels[1] in grammar.labels
