"""A pytest plugin that adds a revision after the newest, with the facts of the newest.

    python -m pytest -p tests.imaginary_revision tests/conversation -k memory-2027-01-15

No row ends before it, so it has every fact of the newest revision. It has to be loaded before any
module that reads the revisions.
"""

from __future__ import annotations

import sys
from typing import Final

from trunkline.spec import revisions

NEXT: Final = "2027-01-15"

_readers = [name for name in sys.modules if name.startswith("trunkline.spec.")]
assert _readers == ["trunkline.spec.revisions"], _readers

NEWEST: Final = revisions.LATEST
vars(revisions).update(REVISIONS=(*revisions.REVISIONS, NEXT), LATEST=NEXT)
