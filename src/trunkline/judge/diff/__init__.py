"""What has changed between two listings of a server, and whether it breaks its clients.

    shapes      a schema, taken apart
    inclusion   whether one schema allows all that another does
    schemas     what that means for arguments, and for results
    listings    the same for all that a server lists: `compare`
    saved       listings that were kept in a file: `read_listing`
    rules       every kind of change, its level and the reason, as rows

No I/O and no clock. Listings are strangers': nothing in them makes a comparison raise, hang
or grow beyond its bounds.
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
