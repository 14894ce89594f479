"""Builds sites as `make docs` does, by the Python of `.venv-docs`, and reads their pages."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PYTHON = ROOT / ".venv-docs" / "bin" / "python"
# How `make docs` builds, but for the folders.
BUILD = "-m sphinx -W --keep-going -q -E -d"
# Of one build, which takes half a minute on an idle core.
TIMEOUT_S = 600


@dataclass
class Page(HTMLParser):
    """What a browser makes of a page: its tags, its links, and what can be linked to."""

    tags: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    neighbours: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = {name: value or "" for name, value in attrs}
        assert not [name for name in given if name.startswith("on")], given
        self.links += [
            (tag, given[name])
            for name in ("href", "src", "action", "data", "poster")
            if name in given
        ]
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "link" and given.get("rel") in ("next", "prev"):
            self.neighbours[given["rel"]] = given["href"]


def parse(html: str) -> Page:
    page = Page()
    page.feed(html)
    return page


def start(docs: Path, out: Path, seed: str = "0") -> subprocess.Popen[str]:
    assert PYTHON.exists(), "there is no .venv-docs: `make docs` sets it up"
    command = [*BUILD.split(), f"{out}.doctrees"]
    return subprocess.Popen(
        [str(PYTHON), *command, str(docs), str(out)],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def finish(build: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        output = build.communicate(timeout=TIMEOUT_S)[0]
    finally:
        build.kill()
    return build.returncode, output
