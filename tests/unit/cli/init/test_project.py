"""A generated project passes its own tests and the usual checks, and can be built."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from trunkline import __version__
from trunkline.cli.init import project
from trunkline.cli.init.project import Project, create, propose_name, render, title_of

# A title with both quotes, a backslash and no ASCII, and the longest name.
PROJECTS = [
    Project("weather-station", "Weather station"),
    Project("Lamp-9_" + "x" * (project.MAX_NAME - 7), 'Ada\'s "hell" ⚡ \\n lamp'),
]
BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module", params=PROJECTS, ids=lambda each: each.module[:7])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Project, Path]:
    """Return a project and its folder."""
    folder = tmp_path_factory.mktemp("init") / "project"
    create(folder, render(request.param))
    return request.param, folder


def run(folder: Path, *command: str, status: int = 0) -> str:
    """Run a command in a project with the environment of a newcomer; return what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def python(folder: Path, *words: str) -> str:
    return run(folder, sys.executable, "-m", *words)


def test_its_tests_pass(made: tuple[Project, Path]) -> None:
    out = python(made[1], "pytest", "-W", "error", "-p", "no:cacheprovider")
    assert "7 passed" in out


def test_its_tests_can_fail(made: tuple[Project, Path], tmp_path: Path) -> None:
    about, _ = made
    contents = render(about)
    server = f"{about.module}.py"
    contents[server] = contents[server].replace('"Bonjour"', '"Salut"')
    create(tmp_path / "other", contents)
    out = run(tmp_path / "other", sys.executable, "-m", "pytest", status=1)
    assert "1 failed, 6 passed" in out


def test_formatter_and_linter_accept_it(made: tuple[Project, Path]) -> None:
    assert "already formatted" in python(made[1], "ruff", "format", "--no-cache", "--check", ".")
    python(made[1], "ruff", "check", "--no-cache", "--select", "E4,E7,E9,F,I,UP,B,PT,RUF022", ".")


def test_the_type_checker_accepts_it(tmp_path: Path) -> None:
    about = PROJECTS[0]
    create(tmp_path / "new", render(about))
    cache = f"--cache-dir={tmp_path / 'cache'}"
    python(tmp_path / "new", "mypy", "--strict", cache, f"{about.module}.py", "tests")


def test_wheel_of_the_project_contains_only_the_server(
    made: tuple[Project, Path], tmp_path: Path
) -> None:
    about, folder = made
    python(folder, "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        (entry,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        scripts = archive.read(entry).decode()
        facts = archive.read(metadata).decode()
    assert names == [f"{about.module}.py"]
    assert scripts == f"[console_scripts]\n{about.name} = {about.module}:main\n"
    assert f"\nSummary: {about.title}\n" in facts
    assert "\nVersion: 0.1.0\n" in facts
    assert f"\nRequires-Dist: trunkline>={__version__}\n" in facts


def test_its_readme_links_no_page_outside(made: tuple[Project, Path]) -> None:
    # Trunkline has no page on a package index yet.
    text = (made[1] / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"\]\(https?://", text)


def test_every_command_of_its_readme_works(made: tuple[Project, Path]) -> None:
    about, folder = made
    text = (folder / "README.md").read_text(encoding="utf-8")
    commands = [
        line for line in text.splitlines() if re.match(r"trunkline (list|read|prompt)", line)
    ]
    assert len(commands) == 3
    listed, read, got = (run(folder, "bash", "-c", line) for line in commands)
    assert listed.startswith(f"{about.title} ({about.name} 0.1.0), MCP 2026-07-28\n")
    assert read == "Bonjour\n"
    assert "greeting card for Ada" in got
    (call,) = (line for line in text.splitlines() if line.startswith("trunkline call"))
    answered = call.replace("name=Ada", "name=Ada --answer value=Spanish")
    assert run(folder, "bash", "-c", answered) == "Hola, Ada!\n"
    (install,) = (line for line in text.splitlines() if line.startswith("trunkline install"))
    assert f'"{about.name}"' in run(folder, "bash", "-c", f"{install} --create --dry-run")


def test_the_workflow_runs_what_the_readme_says(made: tuple[Project, Path]) -> None:
    folder = made[1]
    workflow = (folder / ".github" / "workflows" / "test.yml").read_text()
    assert re.findall(r"uses: (\S+)", workflow) == [
        "actions/checkout@v6",
        "actions/setup-python@v6",
    ]
    assert re.findall(r"run: (.+)", workflow) == [
        'python -m pip install -e ".[dev]"',
        "python -m pytest",
    ]
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [each.rpartition(" ")[2] for each in ours["classifiers"] if "Python :: 3." in each]
    assert f"python: {str(supported).replace(chr(39), chr(34))}" in workflow
    theirs = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert theirs["requires-python"] == ours["requires-python"]


def test_a_wheel_of_the_library_has_the_templates(tmp_path: Path) -> None:
    python(ROOT, "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    # From the archive itself, before the source of this environment.
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import trunkline.cli as cli; "
        "assert cli.__file__.startswith(sys.argv[1]); sys.exit(cli.main(sys.argv[2:]))"
    )
    run(tmp_path, sys.executable, "-c", script, str(wheel), "init", "lamp")
    assert (tmp_path / "lamp" / "lamp.py").read_text() == render(Project("lamp", "Lamp"))["lamp.py"]


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    contents = {"a/b/one.txt": "1", "two.txt": "2", "three\x00.txt": "3"}
    with pytest.raises((OSError, ValueError)):
        create(tmp_path / "new" / "project", contents)
    assert list(tmp_path.iterdir()) == []


def test_an_error_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError):
        create(tmp_path, {"a/one.txt": "1", "a/mine.txt": "2", "file/two.txt": "2"})
    found = sorted(each.name for each in tmp_path.rglob("*") if each.is_file())
    assert found == ["file", "mine.txt"]
    assert (tmp_path / "a" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "title"), [("weather-station", "Weather station"), ("my-MCP_x", "My MCP x")]
)
def test_a_title_is_made_from_the_name(name: str, title: str) -> None:
    assert title_of(name) == title


@pytest.mark.parametrize("text", ["", "...", "a" * 300, "--1", "\udcff", "if", "A  b__c", "Ⅷ"])
def test_a_proposal_is_always_valid(text: str) -> None:
    assert project.name_problem(propose_name(text)) == ""
