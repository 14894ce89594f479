"""The table of the command in docs/interop.md: each server, version and verb, all passed."""

from __future__ import annotations

import pytest

from interop.checks import Unexpected
from interop.command.page import BEGIN, END, PAGE, mark, reasons
from interop.command.project import CLIENTS, ERAS
from interop.command.scene import Done
from interop.command.servers import SERVERS, Use
from interop.command.verbs import OTHER_VERBS, VERBS
from trunkline.cli import VERBS as ALL_VERBS

PASSED = {(server, verb.name): "" for server in SERVERS for verb in VERBS}


def rows(under: str = BEGIN) -> list[list[str]]:
    """Return the rows of the first table under a line of the page."""
    page, _, _ = PAGE.read_text(encoding="utf-8").partition(END)
    _, _, written = page.partition(under)
    table, _, _ = written.lstrip().partition("\n\n")
    return [line.strip("| ").split(" | ") for line in table.splitlines()]


def test_every_verb_is_a_column_or_has_a_reason() -> None:
    columns = [verb.name for verb in VERBS]
    assert sorted([*columns, *OTHER_VERBS]) == sorted(ALL_VERBS)


def test_at_least_eight_servers_come_from_npm_and_pypi() -> None:
    elsewhere = {
        server.package: server.registry for server in SERVERS if server.library != "itself"
    }
    assert len(elsewhere) >= 8
    assert {*elsewhere.values()} == {"npm", "PyPI"}


def test_the_page_has_each_server_and_version_and_every_cell() -> None:
    heads, _, *found = rows()
    assert heads[5:] == [verb.name for verb in VERBS]
    wanted = [
        [
            *(server.name, server.registry, server.library, server.transport, server.revision),
            *(mark(server, verb.name, PASSED) for verb in VERBS),
        ]
        for server in SERVERS
    ]
    assert found == wanted, "other servers, versions or verbs: make interop-full"


def test_the_page_has_every_reason() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"\n- n/a {number}: {why}.\n" in page for why, number in reasons().items())


def test_the_page_has_the_clients_of_a_project() -> None:
    heads, _, *found = rows("### A project of init")
    assert heads == ["Client", *ERAS]
    assert found == [[client, *("ok" for _ in ERAS)] for client in CLIENTS]


def test_every_verb_is_used_by_some_server() -> None:
    for verb in VERBS:
        assert any(not verb.reason(server) for server in SERVERS), verb.name


def test_each_server_has_a_failing_call_distinct_from_its_call() -> None:
    for server in SERVERS:
        assert not isinstance(server.call, Use) or server.call != server.failing
        assert server.failing.shows, server.name


@pytest.mark.parametrize(
    ("status", "out", "err", "said"),
    [
        (1, "", None, "status 0, expected 1"),
        (0, "^two", None, "'\\^two' is not in standard output"),
        (0, "one", "three", "'three' is not in standard error"),
        (0, "one", None, "something is in standard error"),
    ],
)
def test_a_cell_fails_by_status_and_by_both_outputs(
    status: int, out: str, err: str | None, said: str
) -> None:
    done = Done(["list"], 0, "one\n", "warning\n")
    done.expect(0, out="^one$", err="warn")
    with pytest.raises(Unexpected, match=said):
        done.expect(status, out=out, err=err)
