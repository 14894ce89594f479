"""Extras: the command that installs one works in every shell, and is written in one place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from trunkline.extras import install_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
MODULES = sorted((ROOT / "src").rglob("*.py"))
# zsh takes brackets without quotes for a pattern.
UNQUOTED = re.compile(r"pip install (?:-\S+ )*[\w/.]*\[")


def test_the_name_of_an_extra_is_quoted() -> None:
    assert install_command("http") == 'pip install "trunkline[http]"'


def test_no_page_has_a_command_that_zsh_refuses() -> None:
    assert UNQUOTED.search("pip install trunkline[http]")
    found = [path.name for path in PAGES if UNQUOTED.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_every_error_takes_the_command_from_the_one_function() -> None:
    command = re.compile(r"install \W?trunkline\[")
    found = [path.name for path in MODULES if command.search(path.read_text(encoding="utf-8"))]
    assert found == ["extras.py"]


def test_every_extra_that_an_error_names_exists() -> None:
    named = re.compile(r"install_command\(\W(\w+)\W\)")
    texts = [path.read_text(encoding="utf-8") for path in MODULES]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {extra for text in texts for extra in named.findall(text)}
    assert {"http", "ws", "auth"} <= extras <= project["optional-dependencies"].keys()
