"""Numbers and claims of the README and the front page: each is that of the page it comes from."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from trunkline import Client
from trunkline.spec.revisions import REVISIONS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
INTEROP = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
CONFORMANCE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
FRONT = {"README.md": README, "docs/index.md": INDEX}

# The revisions that have elicitation, as the front page says.
ASKING = ("2025-06-18", "2025-11-25", "2026-07-28")


def section(page: str, heading: str) -> str:
    """Return what stands below a heading, up to the next one of its level."""
    level = heading.partition(" ")[0]
    found = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^{level} |\Z)", page, re.DOTALL | re.MULTILINE
    )
    assert found is not None, heading
    return found[1]


def table(text: str) -> list[list[str]]:
    """Return the cells of the tables of a text, without their heads."""
    rows, is_body = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            is_body = False
        elif set(line) <= set("|-: "):
            is_body = True
        elif is_body:
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def measured(about: str) -> float:
    """Return what the page of benchmarks has measured of something."""
    (row,) = [row for row in table(section(BENCHMARKS, "## Targets")) if row[0] == about]
    return float(re.match(r"[\d.]+", row[1])[0])  # type: ignore[index]  # every row has a number


@pytest.mark.parametrize("page", FRONT)
def test_ratios_and_memory_are_those_of_the_benchmarks(page: str) -> None:
    text = FRONT[page]
    assert f"{measured('Stdio server, one call after another'):.0f}x less per call" in text
    assert f"{measured('Stdio server, 64 calls in flight'):.0f}x with 64 calls in flight" in text
    resident = measured("Resident memory of a stdio server after 1000 calls")
    assert f"{resident:.0f} MB for a server after 1000 calls" in text
    if page == "README.md":
        assert f"{measured('Stdio server, a text of 1 MB'):.0f}x for a text of 1 MB" in text


@pytest.mark.parametrize("page", FRONT)
def test_counts_of_scenarios_are_those_of_the_conformance_page(page: str) -> None:
    rows = table(CONFORMANCE)
    found = {(row[0], row[1]): row[4] for row in rows if len(row) == 7}
    passed = {(row[0], row[1]): row[5] for row in rows if len(row) == 7}
    assert found == passed, "a scenario fails"
    servers = [found["HTTP server", suite] for suite in ("`stable`", "`alpha`")]
    clients = [found["client", suite] for suite in ("`client stable`", "`client alpha`")]
    said = f"{' and '.join(servers)} for servers, {' and '.join(clients)} for clients"
    assert said in FRONT[page]


def test_counts_of_the_matrix_leave_trunkline_out() -> None:
    matrix = section(INTEROP, "## Matrix")
    servers = re.findall(r"^### Server: (.*)$", matrix, re.MULTILINE)
    rows = table(section(matrix, f"### Server: {servers[0]}"))
    others = [row[0] for row in rows if not row[0].startswith("Trunkline")]
    sdks = ("mcp 1", "mcp 2", "TypeScript SDK", "FastMCP", "MCP Inspector")
    frameworks = [name for name in others if not name.startswith(sdks)]
    assert f"{len(others)} clients, {len(frameworks)} agent frameworks among them" in README
    far = [name for name in servers if not name.startswith("Trunkline")]
    assert f"and {len(far)} servers, over stdio and HTTP" in README
    assert f"{len(others)} clients and {len(far)} servers of others in one matrix" in INDEX


def test_counts_of_the_servers_of_the_command_are_those_of_its_table() -> None:
    rows = table(section(INTEROP, "## The command").partition("### A project")[0])
    # A server over two transports is one.
    servers = {row[0] for row in rows}
    packages = {row[0] for row in rows if row[2] != "itself"}
    counts = f"with {len(servers)} servers, {len(packages)} of them packages"
    assert counts in README, counts
    assert f"{len(servers)} servers with the command" in INDEX


def test_counts_of_what_was_run_by_hand_are_those_of_its_tables() -> None:
    by_hand = section(INTEROP, "## Run by hand")
    servers = table(section(by_hand, "### Servers run by hand"))
    own = sum(several(row[1]) for row in servers if row[0] == "own servers")
    elsewhere = sum(several(row[0]) for row in servers if row[0] != "own servers")
    clients = sum(several(row[0]) for row in table(section(by_hand, "### Clients run by hand")))
    assert f"{elsewhere} servers and {clients} clients that were written elsewhere" in by_hand
    assert f"and {own} servers of our own" in by_hand


def test_hosts_of_the_front_pages_are_those_that_have_called_tools() -> None:
    rows = table(section(INTEROP, "## Hosts"))
    calling = list(dict.fromkeys(row[0] for row in rows if row[6] == "ok"))
    connecting = {row[0] for row in rows if row[2] and row[3]}
    names = f"{', '.join(calling[:-1])} and {calling[-1]} have called tools"
    assert names in README, names
    assert names in INDEX
    words = {2: "two", 4: "four", 5: "five", 8: "eight", 9: "nine", 10: "ten"}
    revisions = {row[each] for row in rows if row[6] == "ok" for each in (2, 3)}
    assert f"in {words[len(revisions)]} revisions" in README
    assert f"in {words[len(revisions)]} revisions" in INDEX
    assert f"{words[len(calling)]} read what" in README
    assert f"call tools; {words[len(connecting - {*calling})]} more connect" in README
    assert f"in one matrix, {words[len(connecting)]} of the hosts" in INDEX


def several(cell: str) -> int:
    """Return how many programs a cell names: `17 example servers`, or a list with commas."""
    number = re.match(r"(\d+) ", cell)
    return int(number[1]) if number else cell.count(",") + 1


def test_the_server_of_the_front_page_does_what_the_page_says_in_every_revision() -> None:
    block = re.search(r"^```python\n(.*?)^```", INDEX, re.DOTALL | re.MULTILINE)
    assert block is not None
    names: dict[str, object] = {"__name__": "docs"}
    exec(block[1], names)

    async def call(revision: str) -> tuple[bool, str]:
        async with Client(
            names["app"], revision=revision, on_elicit=lambda question: {"value": 3}
        ) as client:
            result = await client.call_tool("book", {"city": "Oslo"})
            return result.is_error, result.text

    for revision in REVISIONS:
        is_error, text = asyncio.run(call(str(revision)))
        assert is_error == (str(revision) not in ASKING), text
        assert (text == "Oslo, 3 days") == (str(revision) in ASKING)
    assert " and ".join((", ".join(ASKING[:-1]), ASKING[-1])) in INDEX


def test_the_front_page_installs_as_the_readme_does() -> None:
    block = re.search(r"^```sh\ngit clone.*?^```", README, re.DOTALL | re.MULTILINE)
    assert block is not None
    assert block[0] in INDEX
