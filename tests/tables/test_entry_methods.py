"""The table of methods that name an entry agrees with the rows of the specification."""

from __future__ import annotations

from functools import partial

from trunkline.server.methods.entry_methods import ENTRY_METHODS, serve_entry
from trunkline.server.methods.methods import method_handlers
from trunkline.server.tasks.methods import TASK_METHODS
from trunkline.spec.mcp.methods import LISTED, METHODS, NAMED

# Methods that name an entry and need no right to it, with the reason.
WITHOUT_ACCESS = {
    "resources/unsubscribe": "it ends what the caller began, and is answered alike for any URI",
}


def test_every_method_that_names_an_entry_is_served_by_the_walk_that_checks_access() -> None:
    named = {name for name, kind in NAMED.items() if kind != "task"}
    assert set(ENTRY_METHODS) == named - set(WITHOUT_ACCESS)
    for name, row in ENTRY_METHODS.items():
        handler = method_handlers[name]
        assert isinstance(handler, partial)
        assert (handler.func, handler.args) == (serve_entry, (row,))


def test_every_method_that_names_a_task_is_a_task_method() -> None:
    of_tasks = {name for names in (NAMED, LISTED) for name, kind in names.items() if kind == "task"}
    assert set(TASK_METHODS) == of_tasks


def test_rows_of_one_method_name_and_list_the_same() -> None:
    for row in METHODS:
        assert NAMED.get(row.name) == row.entry
        assert LISTED.get(row.name) == row.lists
