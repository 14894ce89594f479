"""Every Python block of the docs runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A block that begins with the name of a file is one: `test_console.py` writes and runs those.
FILE = re.compile(r"# [\w./-]+\.py\b")


def blocks(page: Path) -> list[str]:
    return [block for block in BLOCK.findall(page.read_text()) if not FILE.match(block)]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name
)
def test_the_blocks_of_a_page_run_in_order(page: Path) -> None:
    names: dict[str, object] = {"__name__": "docs"}
    for number, block in enumerate(blocks(page), 1):
        exec(compile(block, f"{page.name} block {number}", "exec", dont_inherit=True), names)


def test_the_pages_with_blocks_are_found() -> None:
    assert {"clients.md", "jsonrpc.md"} <= {page.name for page in PAGES if blocks(page)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
