"""Every name that a described system prints can be imported from its front."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

INDEX: Final[dict[str, list[dict[str, Any]]]] = tomllib.loads(
    (Path(__file__).parent / "names.toml").read_text(encoding="utf-8")
)
ENTRIES: Final = [
    (entry["module"], entry.get("of", ""), name)
    for entries in INDEX.values()
    for entry in entries
    for name in entry["names"].split()
]


@pytest.mark.parametrize(
    ("module", "of", "name"), ENTRIES, ids=[".".join(filter(None, each)) for each in ENTRIES]
)
def test_a_name_of_the_index_is_in_the_front_of_its_system(module: str, of: str, name: str) -> None:
    front = import_module(f"trunkline.compat.{module}")
    assert hasattr(getattr(front, of) if of else front, name)
    if not of:
        assert name in front.__all__ or name in dir(front)


def test_the_index_has_every_system_and_no_name_twice() -> None:
    assert [*INDEX] == ["erlmcp", "pierre", "spec parser", "mcpp"]
    counted = {
        system: sum(len(entry["names"].split()) for entry in entries)
        for system, entries in INDEX.items()
    }
    # As many as the documents of the systems print; a removed name is noticed here.
    assert counted == {"erlmcp": 82, "pierre": 77, "spec parser": 24, "mcpp": 74}
    assert [each for each, count in Counter(ENTRIES).items() if count > 1] == []
