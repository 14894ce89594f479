"""The fixture, as pytest finds it, and what loading it costs everybody else."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

TESTS = """
from trunkline import Context, Server

app = Server("tests")
orders = []


@app.tool
async def careless(context: Context) -> str:
    orders.append("new")
    return (await context.elicit("Sure?", bool)).action


@app.tool
async def careful(context: Context) -> str:
    await context.once("order", lambda: orders.append("new"))
    return (await context.elicit("Sure?", bool)).action


def test_careful(both_eras):
    assert both_eras(app, "careful", None, [True]).result.text == "accept"


def test_careless(both_eras):
    both_eras(app, "careless", None, [True])
"""


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    # Alone: whatever else is installed here is not what is tested.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = (sys.executable, *command)
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_fixture_runs_a_tool_in_both_eras(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(TESTS)
    arguments = ("-m", "pytest", "-p", "trunkline.testing.pytest_plugin", "-q", str(tmp_path))
    done = run(*arguments, cwd=tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "orders: 2 items in 2026-07-28, 1 in 2025-11-25" in done.stdout
    assert "await context.once(key, ...)" in done.stdout


def test_plugin_is_registered_as_pytest11_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"trunkline": "trunkline.testing.pytest_plugin"}
    assert not any(each.startswith("pytest") for each in project["dependencies"])


def test_loading_the_plugin_loads_nothing_else_of_the_library() -> None:
    script = (
        "import sys, trunkline.testing.pytest_plugin\n"
        "print(sorted(each for each in sys.modules if each.startswith('trunkline')))"
    )
    names = [
        *("trunkline", "trunkline._lazy_exports"),
        *("trunkline.testing", "trunkline.testing.pytest_plugin"),
    ]
    assert run("-c", script).stdout.strip() == str(names)


def test_the_rest_of_the_package_needs_no_pytest() -> None:
    script = (
        "import sys\n"
        "sys.modules['pytest'] = None\n"
        "from trunkline.testing import *\n"
        "print(run_in_both_eras.__name__, BothEras.__name__)"
    )
    assert run("-c", script).stdout.split() == ["run_in_both_eras", "BothEras"]
