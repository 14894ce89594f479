"""The verb `completion`: the scripts name what there is, and bash understands its own."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from trunkline.cli import VERBS, main
from trunkline.spec.revisions import REVISIONS

SHELLS = ("bash", "zsh", "fish")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_verbs_words_options_and_revisions(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = script(shell, capsys)
    for word in (*VERBS, *REVISIONS, "requirements", "diff", "strict", "sarif"):
        assert word in shown


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_the_same_each_time(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert script(shell, capsys) == script(shell, capsys)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_parse_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here")
    run = subprocess.run(
        [found, "-n"], input=script(shell, capsys), capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_an_unknown_shell_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sp", ["spec"]),
        ("--v", ["--version"]),
        ("spec meth", ["methods", "method"]),
        ("spec diff 2025-0", ["2025-03-26", "2025-06-18"]),
        ("spec method --j", ["--json"]),
        ("spec errors --profile pi", ["pierre", "pierre-a2a"]),
        ("validate --format s", ["sarif"]),
        ("validate --rev", ["--revision"]),
        ("validate --revision d", ["detect"]),
        ("validate file", []),
        ("completion f", ["fish"]),
        ("list -o j", ["json"]),
        ("ping --output t", ["text"]),
        ("list t", ["tools", "templates"]),
        ("list unix:x r", ["resources"]),
        ("call add -- --js", []),
        ("call add -- python --js", []),
        ("list -- prin", ["printenv", "printf"]),
    ],
)
def test_bash_offers_what_fits(
    typed: str, offered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = " ".join(f"'{word}'" for word in ("trunkline", *typed.split()))
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(typed.split())}; _trunkline"
    tell = 'echo "${COMPREPLY[@]}"'
    run = subprocess.run(
        ["bash", "-c", f"{script('bash', capsys)}\n{ask}\n{tell}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stderr == ""
    # Of commands there may be more than these, or the same twice.
    given = run.stdout.split()
    assert set(offered) <= set(given) if " -- prin" in typed else given == offered
