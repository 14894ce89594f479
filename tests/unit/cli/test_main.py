"""The frame around the verbs: help, exit statuses, colour, and readers that leave early."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import pytest

from trunkline.cli import VERBS, main
from trunkline.cli import command as command_module
from trunkline.cli.commands import spec
from trunkline.cli.exit_codes import EXIT_CODES
from trunkline.cli.output.terminal import table, wants_colour

COMMAND = [sys.executable, "-m", "trunkline"]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with nothing said about colour but this."""
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**plain, **environment},
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"usage: trunkline {verb}")
    assert shown.err == ""


def test_help_lists_every_verb_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {verb} " in shown for verb in VERBS)
    assert all(f"  {status} " in shown for status in EXIT_CODES)


def test_help_loads_no_verb() -> None:
    script = "import sys; from trunkline.cli import main; main(['--help']); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(run.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint({"argparse", "msgspec", "json", "trunkline.cli.command"})


@pytest.mark.parametrize("verb", ["spec", "completion"])
def test_a_verb_loads_no_decoder_unless_it_judges(verb: str) -> None:
    script = f"import sys, trunkline.cli.commands.{verb}; print('msgspec' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "False\n"


def test_a_misspelt_verb_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["valdate"]) == 2
    shown = capsys.readouterr()
    assert shown.err == "trunkline: unknown verb 'valdate'; did you mean 'validate'?\n"
    assert shown.out == ""


def test_misuse_is_one_line_that_names_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spec", "methods", "--nonsense"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "--help" in shown.err


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(spec, "run", interrupted)
    assert command_module.run("spec", ["methods"]) == 130


@pytest.mark.parametrize("words", [["spec", "types"], ["spec", "schema"], ["completion", "bash"]])
def test_a_reader_that_leaves_early_sees_no_traceback(words: list[str]) -> None:
    # The reading end is closed before the first byte: no pipe could be shorter.
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        run = subprocess.run(
            [*COMMAND, *words], stdout=gone, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert run.stderr == b""
    assert run.returncode == 0


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["spec", "methods"], ["spec", "--help"], ["list", "-h"]]
)
def test_closed_or_full_stdout_prints_no_traceback(words: list[str]) -> None:
    for end, status in ((">&-", 0), ("> /dev/full", 2)):
        line = " ".join([*COMMAND, *words, end])
        done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=60, check=False)
        assert done.returncode == status, line
        assert b"Traceback" not in done.stderr
        assert b"Exception" not in done.stderr
        told = b"standard output: No space left on device\n"
        assert done.stderr.endswith(told) == bool(status)


@pytest.mark.parametrize("words", [["valdate"], ["spec", "methd"], ["spec", "method", "nope"]])
def test_misuse_with_closed_stderr_prints_nothing_on_stdout(words: list[str]) -> None:
    line = " ".join([*COMMAND, *words, "2>&-"])
    done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_output_in_a_pipe_has_no_colour() -> None:
    assert "\033" not in command("spec", "methods").stdout


def test_colour_can_be_forced_and_forbidden() -> None:
    assert "\033[1m" in command("spec", "methods", FORCE_COLOR="1").stdout
    assert "\033" not in command("spec", "methods", FORCE_COLOR="1", NO_COLOR="1").stdout
    for off in ("0", "false"):
        assert "\033" not in command("spec", "methods", FORCE_COLOR=off).stdout


def test_colour_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with open(os.devnull) as nowhere:
        assert not wants_colour(nowhere)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wants_colour()


def test_a_table_is_aligned_and_has_no_blanks_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = table([("a", "bb", ""), ("ccc", "d", "e")], ("X", "Y", "Z"))
    assert shown.splitlines() == ["X    Y   Z", "a    bb", "ccc  d   e"]


def test_output_survives_a_terminal_that_knows_ascii_only() -> None:
    run = command("spec", "method", "tools/call", PYTHONIOENCODING="ascii")
    assert (run.returncode, run.stderr) == (0, "")
    assert "server/tools#calling-tools" in run.stdout


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_a_terminal_of_80_columns(verb: str) -> None:
    shown = command(*([verb] if verb else []), "--help", COLUMNS="80").stdout
    assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_ends_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb, "--help"])
    examples = capsys.readouterr().out.partition("\nexamples:\n")[2]
    assert examples.count(f"  trunkline {verb}") >= 1
    assert examples.endswith("\n")


def test_help_followed_by_a_verb_shows_the_help_of_the_verb(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["help", "call"]) == 0
    assert capsys.readouterr().out.startswith("usage: trunkline call TARGET TOOL")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("inspect", "list"), ("lint", "validate"), ("run", "serve"), ("dev", "serve --reload")],
)
def test_a_verb_of_another_tool_is_translated(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word]) == 2
    assert capsys.readouterr().err == (
        f"trunkline: unknown verb {word!r}; did you mean {meant!r}?\n"
    )


def test_an_option_of_another_tool_is_translated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "x.py", "--port", "8000"]) == 2
    assert "unrecognized arguments: --port 8000; use --http 8000;" in capsys.readouterr().err
