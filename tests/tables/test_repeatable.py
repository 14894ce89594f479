"""The methods that a client may send twice."""

from __future__ import annotations

import pytest

from trunkline.spec import lookup
from trunkline.spec.mcp import repeatable
from trunkline.spec.mcp.extension_methods import EXTENSION_METHODS
from trunkline.spec.revisions import REVISIONS


@pytest.mark.parametrize(
    ("names", "kind"),
    [(repeatable.REQUESTS, "request"), (repeatable.NOTIFICATIONS, "notification")],
)
def test_every_repeatable_method_is_one_of_a_client(names: frozenset[str], kind: str) -> None:
    for name in names:
        rows = [row for each in REVISIONS if (row := lookup.method(name, each)) is not None]
        assert all(row.kind == kind for row in rows), name
        # In some revision; in others the server alone may send it.
        is_sent = any(row.by in ("client", "both") for row in rows)
        assert is_sent or name in EXTENSION_METHODS, name
