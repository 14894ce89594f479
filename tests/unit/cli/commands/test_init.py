"""The verb `init`: what it writes, what it refuses, and what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILES = {
    "weather_station.py",
    "tests/test_weather_station.py",
    "pyproject.toml",
    "README.md",
    ".gitignore",
    ".github/workflows/test.yml",
}
PAGE = (Path(__file__).parents[4] / "docs" / "new-project.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(folder: Path) -> dict[str, str]:
    found = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_text() for each in found}


def test_a_project_is_written_and_the_next_commands_are_shown(run: Any, tmp_path: Path) -> None:
    shown = run("init", "weather-station")
    assert (shown.status, shown.err) == (0, "")
    assert set(files(tmp_path / "weather-station")) == FILES
    (block,) = re.findall(r"^```console\n\$ (.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert block == f"trunkline init weather-station\n{shown.out}"


def test_the_current_folder_gives_the_name(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lamp").mkdir()
    monkeypatch.chdir(tmp_path / "lamp")
    shown = run("init", ".")
    assert shown.status == 0
    assert shown.out.startswith("Created lamp in the current folder\n")
    assert "  cd " not in shown.out
    assert 'title="Lamp",' in (tmp_path / "lamp" / "lamp.py").read_text()


def test_a_folder_like_an_option_is_entered_by_its_path(run: Any) -> None:
    shown = run("init", "--name", "lamp", "--", "-x")
    assert shown.status == 0
    assert "  cd ./-x\n" in shown.out


def test_parents_are_made_and_the_path_is_quoted(run: Any, tmp_path: Path) -> None:
    shown = run("init", "my work/lamp")
    assert shown.status == 0
    assert "  cd 'my work/lamp'\n" in shown.out
    assert (tmp_path / "my work" / "lamp" / "lamp.py").exists()


def test_name_and_title_are_used_everywhere(run: Any, tmp_path: Path) -> None:
    shown = run("init", "here", "--name", "Desk-Lamp", "--title", """Ada's "big" lamp \\o/""")
    assert shown.status == 0
    made = files(tmp_path / "here")
    assert """title='Ada\\'s "big" lamp \\\\o/',""" in made["desk_lamp.py"]
    assert made["README.md"].startswith("""# Ada's "big" lamp \\o/\n""")
    assert '"Desk-Lamp",' in made["desk_lamp.py"]
    assert "tests/test_desk_lamp.py" in made
    assert "@" not in made["pyproject.toml"]


@pytest.mark.parametrize(
    ("name", "said", "proposal"),
    [
        ("My Server", "ASCII letters, digits, and - or _ between them", "my-server"),
        ("Grüße", "ASCII letters", "grusse"),
        ("-x-", "ASCII letters", "x"),
        ("my.server", "ASCII letters", "my-server"),
        ("☃", "ASCII letters", "my-server"),
        ("json", "json.py would hide the module json", "json-server"),
        ("trunkline", "trunkline.py would hide the module trunkline", "trunkline-server"),
        ("tests", "tests.py would hide the module tests", "tests-server"),
        ("class", "class cannot be the name of a Python module", "class-server"),
        ("2048", "2048 cannot be the name of a Python module", "server-2048"),
        ("n" * 49, "at most 48 characters", "n" * 41),
    ],
)
def test_a_bad_name_is_refused_with_a_proposal(
    run: Any, tmp_path: Path, name: str, said: str, proposal: str
) -> None:
    shown = run("init", "here", f"--name={name}")
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err
    assert shown.err.endswith(f"; try --name {proposal}\n")
    assert list(tmp_path.iterdir()) == []
    assert run("init", "here", "--name", proposal).status == 0


def test_yes_takes_the_current_folder_and_the_proposed_name(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "My Lamp").mkdir()
    monkeypatch.chdir(tmp_path / "My Lamp")
    shown = run("init", "--yes")
    assert shown.status == 0
    assert shown.out.startswith("Created my-lamp in the current folder\n")


def test_yes_does_not_change_a_name_that_was_given(run: Any) -> None:
    shown = run("init", "here", "--name", "json", "--yes")
    assert shown.status == 2
    assert "try --name json-server" in shown.err


def test_without_a_terminal_a_folder_has_to_be_named(run: Any, tmp_path: Path) -> None:
    shown = run("init")
    assert shown.status == 2
    assert "name a folder for the project, or . for the current folder" in shown.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("title", ["", " ", "two\nlines", "\x1b[31mred", "t" * 101, "\u202eabc"])
def test_a_title_is_one_printable_line(run: Any, tmp_path: Path, title: str) -> None:
    shown = run("init", "here", "--title", title)
    assert shown.status == 2
    assert "cannot be the title: it has 1 to 100 characters, on one line" in shown.err
    assert "\x1b" not in shown.err
    assert "\u202e" not in shown.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_left_alone(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "lamp"
    folder.mkdir()
    for name in ("a", "b\x1b", "c", "d", "e", "README.md"):
        (folder / name).write_text("mine")
    before = files(folder)
    shown = run("init", "lamp")
    assert (shown.status, shown.out) == (2, "")
    assert shown.err == (
        "trunkline init: lamp is not empty: it has README.md, a, b\\x1b, c, d and 1 more; name "
        "another folder, or add --keep to create only the files that are missing\n"
    )
    assert files(folder) == before


def test_keep_creates_only_what_is_missing(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "lamp"
    folder.mkdir()
    (folder / "README.md").write_text("mine")
    (folder / "notes.txt").write_text("mine")
    (folder / ".gitignore").symlink_to("nowhere")
    shown = run("init", "lamp", "--keep")
    assert shown.status == 0
    assert "Kept as they are\n  README.md\n  .gitignore\n" in shown.out
    assert (folder / "README.md").read_text() == "mine"
    assert os.readlink(folder / ".gitignore") == "nowhere"
    assert (folder / "lamp.py").exists()
    again = run("init", "lamp", "--keep")
    assert again.status == 0
    assert "Created" not in again.out


def test_git_and_a_virtual_environment_are_not_in_the_way(run: Any, tmp_path: Path) -> None:
    for name in (".git", ".venv"):
        (tmp_path / "lamp" / name).mkdir(parents=True)
    assert run("init", "lamp").status == 0
    (tmp_path / "lamp2").mkdir()
    (tmp_path / "lamp2" / ".gitignore").write_text("mine")
    shown = run("init", "lamp2")
    assert shown.status == 2
    assert "lamp2 is not empty: it has .gitignore;" in shown.err


def test_a_file_is_not_a_folder(run: Any, tmp_path: Path) -> None:
    (tmp_path / "lamp").write_text("mine")
    shown = run("init", "lamp")
    assert shown.status == 2
    assert "'lamp' is a file; name a folder" in shown.err
    shown = run("init", "lamp/inner")
    assert shown.status == 2
    assert (tmp_path / "lamp").read_text() == "mine"


def test_the_command_runs_as_a_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", "init", "lamp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "lamp" / "lamp.py").exists()
