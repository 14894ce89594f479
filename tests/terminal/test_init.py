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


def test_the_files_and_the_next_commands(on_screen: Start) -> None:
    run = on_screen("init", "weather-station")
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("init")


def test_a_question_and_a_proposal(on_screen: Start) -> None:
    run = on_screen("init", "json")
    run.until("Name of the project [json-server]:")
    run.type("\n")
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("init-question")
