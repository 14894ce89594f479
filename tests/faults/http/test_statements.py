"""Each statement about HTTP that a server keeps has a good and a bad case on plain sockets."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from trunkline.spec.requirements import requirements

NUMBERS = [
    *(f"BP-{n:03}" for n in (*range(80, 99), *range(110, 128))),
    *(f"SEC-{n:02}" for n in range(1, 11)),
]
# What a server cannot keep or break on a socket, and why.
ELSEWHERE = {"SEC-09": "which argument of a tool is secret, its author alone knows"}


def marks() -> Iterator[tuple[str, str]]:
    here = Path(__file__)
    for path in here.parent.glob("test_*.py"):
        if path != here:
            module = import_module(f"tests.faults.http.{path.stem}")
            for name, found in vars(module).items():
                if name.startswith("test_"):
                    yield from getattr(found, "statements", ())


def of_servers(id: str) -> bool:
    return any(row.actor in ("server", "both") for row in requirements(ref=id))


def test_each_statement_about_http_servers_has_a_good_and_a_bad_case() -> None:
    found = set(marks())
    wanted = {id for id in NUMBERS if of_servers(id)} - ELSEWHERE.keys()
    assert len(wanted) > 20
    missing = {(id, side) for id in wanted for side in ("good", "bad")} - found
    assert not missing, sorted(missing)


def test_statements_tested_elsewhere_are_of_servers_and_not_tested_here() -> None:
    tested = {id for id, _ in marks()}
    assert all(of_servers(id) and id not in tested for id in ELSEWHERE)
