"""The package as a whole: what it loads, what it offers, and its command."""

from __future__ import annotations

import subprocess
import sys

import pytest

import trunkline
from trunkline.cli import main

# What would make every start pay for a feature that few use.
HEAVY = {
    "msgspec",
    "asyncio",
    "http",
    "email",
    "ssl",
    "socket",
    "urllib",
    "typing",
    "dataclasses",
    "inspect",
    "enum",
    "re",
    "json",
    "logging",
    "argparse",
    "uuid",
    "datetime",
    "decimal",
}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter. -I: nothing of the caller's surroundings gets in."""
    return subprocess.run(
        [sys.executable, "-I", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def loaded(statement: str) -> set[str]:
    """Return the modules that `statement` loads in a fresh interpreter beyond its own."""
    # -S: what other packages hook into every start is not ours. It takes the search path with
    # it, so that is put back by hand.
    script = (
        f"import sys; sys.path[:] = {sys.path!r}; before = set(sys.modules)\n"
        f"try: {statement}\n"
        "except SystemExit: pass\n"
        "print(*(set(sys.modules) - before))"
    )
    run = python("-S", "-c", script)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


# Loading


def test_importing_the_package_loads_nothing_else() -> None:
    # The package and its table of names: each name is loaded when it is first used.
    assert loaded("import trunkline") == {"trunkline", "trunkline._lazy_exports"}


def test_printing_the_version_loads_nothing_of_the_library() -> None:
    found = loaded("sys.argv = ['trunkline', '--version']; import trunkline.__main__")
    # `trunkline.__main__` was there too, until it ended the program.
    ours = {name for name in found if name.startswith("trunkline")}
    assert ours == {
        *("trunkline", "trunkline._lazy_exports", "trunkline.cli", "trunkline.cli.exit_codes")
    }
    assert packages(found).isdisjoint(HEAVY)
    # Four of ours, `__future__`, and the ten that `collections.abc` brings where it is not
    # there yet; in a start with site-packages it is.
    assert len(found) <= 16


def test_the_exceptions_load_without_the_decoder() -> None:
    found = loaded("import trunkline; trunkline.TrunklineError")
    assert "trunkline.errors" in found
    assert packages(found).isdisjoint({"msgspec", "asyncio", "http", "email", "ssl", "json"})
    # Two of ours, and what redaction needs: `re` (with `enum`), `typing`, `collections`.
    assert len(found) <= 48


def test_the_wire_core_loads_no_event_loop_and_no_network() -> None:
    found = packages(loaded("from trunkline.jsonrpc import *"))
    assert found.isdisjoint({"asyncio", "http", "email", "ssl", "socket", "urllib", "subprocess"})
    assert "msgspec" in found


# Names


def test_every_public_name_is_there() -> None:
    for name in trunkline.__all__:
        assert getattr(trunkline, name) is not None
    assert trunkline.TrunklineError.__module__ == "trunkline.errors"
    assert trunkline.jsonrpc.__name__ == "trunkline.jsonrpc"
    assert trunkline.spec.__name__ == "trunkline.spec"


def test_the_directory_lists_the_public_names() -> None:
    assert dir(trunkline) == sorted(trunkline.__all__)
    assert {"TrunklineError", "__version__", "jsonrpc", "spec"} <= set(dir(trunkline))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as caught:
        trunkline.nonsense  # noqa: B018
    assert str(caught.value) == "module 'trunkline' has no attribute 'nonsense'"
    assert not hasattr(trunkline, "Trunkline")
    with pytest.raises(ImportError):
        exec("from trunkline import nonsense")


def test_the_version_is_a_version() -> None:
    parts = trunkline.__version__.split(".")
    assert len(parts) == 3
    assert all(part.isdigit() for part in parts)


# The command


def test_the_command_prints_the_version() -> None:
    run = python("-m", "trunkline", "--version")
    assert (run.returncode, run.stdout) == (0, f"trunkline {trunkline.__version__}\n")
    assert run.stderr == ""


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_the_command_prints_how_it_is_used(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("usage: trunkline")
    assert "--version" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("arguments", [["--version"], ["-V"]])
def test_the_version_has_two_spellings(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"trunkline {trunkline.__version__}\n"


def test_an_unknown_argument_ends_with_two_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate"]) == 2
    shown = capsys.readouterr()
    assert shown.err == "trunkline: unknown verb 'frobnicate'; try trunkline --help\n"
    assert shown.out == ""


def test_the_exit_status_reaches_the_shell() -> None:
    run = python("-m", "trunkline", "--nonsense")
    assert run.returncode == 2
    assert "--nonsense" in run.stderr
    assert run.stdout == ""
