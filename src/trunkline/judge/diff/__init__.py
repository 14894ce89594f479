"""Compares two listings of a server, and says which changes break its clients.

    rules            every kind of change with its level and the reason, as rows
    compare          compares all that a server lists: `compare`
    load             reads a listing from a file: `read_listing`
    change           the changes found, and their summary
    schema_diff      compares two schemas, of arguments or of results
    subschema        whether one schema accepts everything that another accepts
    normalize        JSON Schema to normal form; keywords reads the keywords of one schema
    normal_form      the normal form: alternatives by JSON type
    schema_document  drafts and references of one schema

No I/O and no clock. Listings are untrusted: nothing in them makes a comparison raise, hang or
exceed its bounds.
"""

from __future__ import annotations

from .change import Change, Comparison
from .compare import compare
from .load import read_listing
from .rules import LEVELS, RULES, DiffRule, Level

__all__ = [
    "LEVELS",
    "RULES",
    "Change",
    "Comparison",
    "DiffRule",
    "Level",
    "compare",
    "read_listing",
]
