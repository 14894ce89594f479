"""The verb `shell` without a terminal: commands from a pipe, and the exit status."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from trunkline.cli import main
from trunkline.judge.trace.reader import TraceEntry, read_trace

WAIT = 60
# The program with a module that cannot be imported.
WITHOUT_EDITOR = """
import sys
sys.modules["prompt_toolkit"] = None
from trunkline.cli import main
sys.exit(main())
"""


class Piped:
    """A run of the shell with commands from a pipe: in this process, or by a program."""

    def __init__(self, script: str | bytes, *words: str, program: list[str] | None = None) -> None:
        given = script if isinstance(script, bytes) else script.encode()
        if program is None:
            self.status, self.out, self.err = run_here(given, "shell", *words)
            return
        run = subprocess.run(
            [*program, "shell", *words],
            input=given,
            capture_output=True,
            timeout=WAIT,
            check=False,
        )
        self.status = run.returncode
        self.out = run.stdout.decode()
        self.err = run.stderr.decode()


def run_here(given: bytes, *words: str) -> tuple[int, str, str]:
    """Run a verb in this process; return its status and what it wrote."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    theirs, ours = os.pipe()
    with open(theirs) as pipe, pytest.MonkeyPatch.context() as patch:
        with open(ours, "wb") as script:
            script.write(given)  # far less than a pipe holds
        patch.setattr(sys, "stdin", pipe)
        with redirect_stdout(out), redirect_stderr(err):
            status = main(words)
    written = []
    for each in (out, err):
        each.flush()
        written.append(each.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return status, written[0], written[1]


def test_commands_are_read_from_a_pipe_and_only_results_are_printed(server: list[str]) -> None:
    run = Piped("add a=1 b=2\n\n# a comment\ncall add a=3 b=4\nread demo://notes", *server)
    assert (run.status, run.err) == (0, "")
    assert run.out == "3\n7\none\ntwo\\x1b[2J\n"


def test_a_file_as_standard_input_is_read_to_its_end(server: list[str], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("add a=1 b=2\nadd a=2 b=3\n")
    with script.open("rb") as file:
        run = subprocess.run(
            [sys.executable, "-m", "trunkline", "shell", *server],
            stdin=file,
            capture_output=True,
            timeout=WAIT,
            check=False,
        )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"3\n5\n", b"")


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("fail\nadd a=1 b=2\nnope", 1, "the sky is"),
        ("nope\nfail", 2, "line 1: there is no command and no tool 'nope'"),
        ("ad a=1", 2, "did you mean 'add'?"),
        ("add a=1", 2, "an argument is missing for the tool 'add'"),
        ("add a=x b=1", 2, "a takes an integer, not 'x'"),
        ('add a="1', 2, "a quote is not closed"),
        ("read x:y", 1, "the server refused resources/read"),
        ("read", 2, "URI is missing; try help read"),
        ("call --nope", 2, "--nope"),
        ("log loud", 2, "log takes LEVEL"),
        ("unsubscribe x:y", 2, "the server has no subscription 'x:y'"),
        ("edit add", 2, "edit needs a terminal"),
        ("call add --json -", 2, "where commands come from"),
        ("save /nowhere/at/all", 2, "cannot be written"),
        ("tasks get 9", 2, "there is no task '9'"),
        ("\nstatus now", 2, "line 2: status takes no words"),
    ],
)
def test_the_status_is_that_of_the_first_command_that_failed(
    server: list[str], script: str, status: int, said: str
) -> None:
    run = Piped(f"{script}\nadd a=20 b=3\n", *server)
    assert (run.status, said in run.err) == (status, True), run.err
    # The commands after it are run.
    assert run.out.endswith("23\n")


def test_a_server_that_cannot_be_reached_is_status_3() -> None:
    run = Piped("status\n", "--", sys.executable, "-c", "import sys; sys.exit('gone')")
    assert (run.status, run.out) == (3, "")
    assert "gone" in run.err


def test_exit_leaves_the_rest_unread(server: list[str]) -> None:
    run = Piped("add a=1 b=2\nexit\nnope\n", *server)
    assert (run.status, run.out, run.err) == (0, "3\n", "")


def test_a_pipe_needs_no_prompt_toolkit(server: list[str]) -> None:
    run = Piped("add a=1 b=2\n", *server, program=[sys.executable, "-c", WITHOUT_EDITOR])
    assert (run.status, run.out, run.err) == (0, "3\n", "")


def test_a_line_that_is_not_utf_8_is_an_error_of_that_line(server: list[str]) -> None:
    run = Piped(b"call \xff\nadd a=1 b=2\n", *server)
    assert (run.status, run.out) == (2, "3\n")
    assert "TOOL is not UTF-8 text" in run.err


def test_a_tool_with_the_name_of_a_command_is_called_by_call(tmp_path: Path) -> None:
    source = tmp_path / "app.py"
    source.write_text(
        "from trunkline import Server\napp = Server('x')\n\n\n"
        "@app.tool\ndef ping() -> str:\n    return 'the tool'\n"
    )
    words = ["--", sys.executable, "-m", "trunkline", "serve", str(source)]
    run = Piped("call ping\nping\n", *words)
    assert run.status == 0
    assert run.out.startswith("the tool\nx")
    assert "answers" in run.out


# Revisions and recordings


def test_the_revision_is_switched_and_the_recording_holds_every_connection(
    server: list[str], tmp_path: Path
) -> None:
    file, trace = tmp_path / "saved.jsonl", tmp_path / "trace.jsonl"
    script = f"""
        revision
        revision 2025-06-18
        add a=1 b=2
        revision auto
        login user=ada password=4711
        save {file}
    """
    run = Piped(script, "--trace", str(trace), *server)
    assert (run.status, run.err) == (0, "")
    assert run.out.splitlines()[:4] == [
        "MCP 2026-07-28 (negotiated)",
        "MCP 2025-06-18 (chosen)",
        "3",
        "MCP 2026-07-28 (negotiated)",
    ]
    assert "4711" not in file.read_text() + trace.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    lines = file.read_bytes().splitlines()
    found = [each for each in read_trace(lines) if isinstance(each, TraceEntry)]
    assert len({each.connection for each in found}) == 3
    methods = [each.message["method"] for each in found if "method" in each.message]
    assert methods.count("server/discover") == 2
    assert methods.count("initialize") == 1
    # What --trace writes is the same.
    assert [json.loads(line)["message"] for line in trace.read_text().splitlines()[1:]] == [
        each.message for each in found
    ]
    for each in (file, trace):
        judged = subprocess.run(
            [sys.executable, "-m", "trunkline", "validate", str(each)],
            capture_output=True,
            timeout=WAIT,
            check=False,
        )
        assert judged.returncode == 0, judged.stdout


def test_save_replaces_no_file_that_is_not_a_recording(server: list[str], tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    run = Piped(f"save {other}\n", *server)
    assert run.status == 2
    assert "is not a recording: it is not replaced" in run.err
    assert other.read_text() == "mine"


# Commands


def test_status_shows_the_server_and_what_is_set(server: list[str]) -> None:
    run = Piped("subscribe demo://notes\nlog error\nwatch off\nstatus\n", *server)
    assert (run.status, run.err) == (0, "")
    shown = dict(
        line.split(None, 1) for line in run.out.splitlines() if line.partition(" ")[0][-1:] == ":"
    )
    assert shown["server:"] == "demo 1.0"
    assert shown["revision:"] == "2026-07-28 (per request)"
    assert shown["transport:"] == "stdio"
    assert shown["subscriptions:"] == "demo://notes"
    assert (shown["watch:"], shown["log:"]) == ("off", "error")
    assert "tools" in shown["capabilities:"]


def test_the_target_is_shown_without_secrets(process: list[str]) -> None:
    start = ["--", "sh", "-c", f"exec {sys.executable} {process[-1]}", "sh"]
    run = Piped("status\n", *start, "--api-key", "canary-4711")
    assert run.status == 0
    assert "target:" in run.out
    assert "canary-4711" not in run.out + run.err


def test_help_shows_every_command_and_its_options(server: list[str]) -> None:
    run = Piped("help\nhelp call\nhelp revision\n", *server)
    assert (run.status, run.err) == (0, "")
    for each in ("list", "call", "edit", "read", "watch", "tasks", "save", "exit"):
        assert f"\n{each}" in f"\n{run.out}"
    assert "--task " in run.out
    assert "--tls-ca" not in run.out
    assert "revision [R|auto]" in run.out


def test_options_of_a_verb_work_as_in_the_verb(server: list[str], tmp_path: Path) -> None:
    script = f"add a=1 b=2 --json\ncall draw --save {tmp_path}\nping -c 2 --interval 0\n"
    run = Piped(script, *server)
    assert (run.status, run.err) == (0, "")
    document, _, rest = run.out.partition("\n}\n")
    assert json.loads(f"{document}}}")["structuredContent"] == 3
    assert f"saved {tmp_path}/draw-1.png" in rest
    assert "2 sent, 2 answered" in rest


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_tasks_are_started_listed_and_cancelled(tmp_path: Path, revision: str) -> None:
    source = tmp_path / "app.py"
    source.write_text(
        "import asyncio\nfrom trunkline import Server\napp = Server('x')\n\n\n"
        "@app.tool(task='required')\n"
        "async def sleep(seconds: float) -> str:\n"
        "    await asyncio.sleep(seconds)\n    return 'rested'\n"
    )
    words = ["--revision", revision, "--", sys.executable, "-m", "trunkline", "serve", str(source)]
    script = """
        call sleep seconds=0 --task
        tasks result 1
        call sleep seconds=60 --task
        tasks
        tasks cancel 2
        tasks get 2
    """
    run = Piped(script, *words)
    assert run.err == ""
    assert run.status == 0
    assert "rested" in run.out
    assert "working" in run.out
    assert run.out.splitlines()[-1].startswith("sleep: cancelled")


def test_a_tool_that_raises_shows_the_traceback_of_the_server_once(tmp_path: Path) -> None:
    source = tmp_path / "app.py"
    source.write_text(
        "from trunkline import Server\napp = Server('x')\n\n\n"
        "@app.tool\ndef broken() -> str:\n    return {}['the key']\n\n\n"
        "@app.tool\ndef fine() -> str:\n    return 'fine'\n"
    )
    run = Piped("broken\nfine\n", "--", sys.executable, "-m", "trunkline", "serve", str(source))
    assert (run.status, run.out) == (1, "fine\n")
    assert run.err.count("KeyError: 'the key'") == 1


def test_a_lost_connection_fails_the_command_and_the_next_one_connects_again(
    tmp_path: Path,
) -> None:
    source = tmp_path / "app.py"
    source.write_text(
        "import os\nfrom trunkline import Server\napp = Server('x')\n\n\n"
        "@app.tool\ndef die() -> str:\n    os._exit(7)\n\n\n"
        "@app.tool\ndef fine() -> str:\n    return 'fine'\n"
    )
    run = Piped("die\nfine\n", "--", sys.executable, "-m", "trunkline", "serve", str(source))
    assert (run.status, run.out) == (3, "fine\n")
    assert "trunkline shell: line 1: " in run.err
    assert "exit status 7" in run.err
    assert run.err.endswith("connecting again\n")


def test_words_and_a_target_are_misuse(server: list[str]) -> None:
    run = Piped("", "add", *server)
    assert run.status == 2
    assert "shell takes one target, or a command after --" in run.err


def test_the_state_of_an_entry_has_its_name_and_not_its_arguments(
    server: list[str], tmp_path: Path
) -> None:
    secret = "CANARY-4f80d1"
    command, *args = server[1:]
    entry = {"command": "sh", "args": ["-c", f': {secret}; exec "$@"', "sh", command, *args]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"one": entry}}))
    run = Piped("status", "one", "--config", str(config))
    assert run.status == 0
    assert f"target:        one --config {config}\n" in run.out
    assert secret not in run.out
