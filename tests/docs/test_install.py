"""The install lines of the README work in a fresh environment, bare and with each extra."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

from tests.docs.test_console import follow

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# What proves that an extra is there, by its name.
USES = {
    "all": "import cryptography, httptools, joserfc, jsonschema_rs, opentelemetry, prompt_toolkit, "
    "websockets, ruamel.yaml",
    "auth": "from trunkline.auth import SigningKey; SigningKey.generate().sign({})",
    "cli": "from trunkline.cli.shell.prompt_editor import PromptEditor",
    "crypto": "from cryptography.hazmat.primitives.ciphers.aead import AESGCM",
    "http": "from trunkline.server.runtime.http_listener import HttpListener",
    "otel": "from opentelemetry import trace",
    "schema": "import jsonschema_rs",
    "yaml": "import trunkline.hosts.yaml_text",
    "ws": "from trunkline.transports.websocket.client import DialledWebSocket",
}
SECONDS = 300

# They share one environment, and each installs more into it.
pytestmark = pytest.mark.xdist_group("install")
fetches_packages = pytest.mark.full


def run(*command: str, binaries: Path | None = None) -> str:
    """Run a command at the root of the repository, and return what it prints."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if binaries is not None:
        environment["PATH"] = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of programs of an environment in which the README was followed."""
    section = README.partition("## Install")[2]
    block = re.search(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    clone, *lines = block[1].splitlines()
    assert clone.startswith("git clone ")
    folder = tmp_path_factory.mktemp("fresh")
    venv.EnvBuilder(with_pip=True).create(folder)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    for line in lines:
        run("bash", "-c", line, binaries=binaries)
    return binaries


@fetches_packages
def test_a_bare_install_brings_one_dependency_and_the_command(installed: Path) -> None:
    names = {line.partition("=")[0] for line in run(str(installed / "pip"), "freeze").splitlines()}
    assert {name.partition(" ")[0] for name in names} == {"msgspec", "trunkline"}
    assert run(str(installed / "trunkline"), "--version").startswith("trunkline ")


@fetches_packages
def test_the_wheel_is_typed(installed: Path) -> None:
    folder = run(str(installed / "python"), "-c", "import trunkline; print(trunkline.__path__[0])")
    assert (Path(folder.strip()) / "py.typed").exists()
    assert (Path(folder.strip()) / "__init__.pyi").exists()


@fetches_packages
def test_the_command_writes_a_project_there(installed: Path, tmp_path: Path) -> None:
    shown = run(str(installed / "trunkline"), "init", str(tmp_path / "lamp"))
    assert shown.startswith("Created lamp in ")
    assert (tmp_path / "lamp" / "tests" / "test_lamp.py").exists()


@fetches_packages
def test_the_readme_works_there(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_TEST_BIN", str(installed))
    for package in set(re.findall(r"npx -y (\S+)", README)):
        if npx := shutil.which("npx"):  # fetched before, because a client waits 30 s at most
            run(npx, "-y", "-p", package, "node", "-e", "0")
    follow(README, tmp_path, with_needs=True)


@fetches_packages
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_can_be_installed_and_used(extra: str, installed: Path) -> None:
    (wheel,) = ROOT.glob("dist/*.whl")
    run(str(installed / "pip"), "install", "--quiet", f"{wheel}[{extra}]")
    run(str(installed / "python"), "-c", USES[extra])


@fetches_packages
def test_the_line_of_the_readme_installs_an_extra_from_the_checkout(installed: Path) -> None:
    run("sh", "-c", f"{extra_line()} --quiet", binaries=installed)
    run(str(installed / "python"), "-c", USES["http"])


def extra_line() -> str:
    """Return the command of the README that installs an extra from a checkout."""
    (line,) = re.findall(r"`(pip install [^`]*\[http\]\")` brings one", README)
    return str(line)


def test_the_readme_installs_extras_from_the_checkout_and_not_by_a_pattern_of_files() -> None:
    # "dist/*.whl[http]" is not a file to a shell: the brackets are part of its pattern.
    assert extra_line() == 'pip install ".[http]"'
    assert not re.search(r"\*\.whl\[", README)


def test_the_readme_names_every_extra() -> None:
    line = next(line for line in README.splitlines() if line.startswith("Extras: "))
    assert all(f"`{extra}`" in line for extra in EXTRAS)
