"""`trunkline init` at a terminal: its questions, and its screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_folder_is_asked_for(terminal: Start, tmp_path: Path) -> None:
    run = terminal("init")
    run.until("Folder of the new project [.]:")
    run.type("lamp\n")
    assert run.wait() == 0
    assert "Created lamp in lamp" in run.text
    assert (tmp_path / "lamp" / "lamp.py").exists()
    run.assert_usable()


def test_a_name_is_proposed_and_a_bad_one_asked_again(terminal: Start, tmp_path: Path) -> None:
    run = terminal("init", "json")
    run.until("Name of the project [json-server]:")
    assert "'json' cannot be the name: json.py would hide the module json" in run.text
    run.type("my lamp\n")
    run.until("Name of the project [my-lamp]:")
    run.type("\n")
    assert run.wait() == 0
    assert (tmp_path / "json" / "my_lamp.py").exists()


@pytest.mark.parametrize(("key", "status"), [("\x04", 2), ("\x03", 130)], ids=["ctrl-d", "ctrl-c"])
def test_a_question_can_be_left(terminal: Start, tmp_path: Path, key: str, status: int) -> None:
    run = terminal("init")
    run.until("Folder of the new project [.]:")
    run.type(key)
    assert run.wait() == status
    assert "Traceback" not in run.text
    assert list(tmp_path.iterdir()) == []
    run.assert_usable()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_path_and_no_command_is_cut(terminal: Start, columns: int) -> None:
    run = terminal("init", "weather-station", columns=columns)
    assert run.wait() == 0
    lines = run.text.splitlines()
    assert lines[0] == "Created weather-station in weather-station"
    for path in ("weather_station.py", "tests/test_weather_station.py", "pyproject.toml"):
        # Where it is too narrow for both, the description is below.
        assert any(f"{line} ".startswith(f"  {path} ") for line in lines)
    assert "  python -m pytest" in lines
    assert "…" not in run.text[run.text.index("Next") :]
    assert b"\x1b[1m" in run.raw


def test_without_colour_nothing_is_emphasized(terminal: Start) -> None:
    run = terminal("init", "lamp", NO_COLOR="1")
    assert run.wait() == 0
    assert b"\x1b" not in run.raw
