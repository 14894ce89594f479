"""Failures of servers that a verb has started: what they wrote is shown with the error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

SERVER = """
import os, sys, time
from trunkline import Server, ToolError
import logging
logging.basicConfig(level=logging.WARNING)

app = Server("failing", version="1.0")
print("loading the model", file=sys.stderr)


def divide(by):
    return 1 / by


@app.tool
def fail() -> int:
    return divide(0)


@app.tool
async def fail_later() -> int:
    return divide(0)


@app.tool
def expect() -> str:
    raise ToolError("there is no such city")


@app.tool
def mistyped() -> int:
    return "seven"


@app.tool
def die(status: int = 9) -> str:
    print("out of memory", file=sys.stderr, flush=True)
    os._exit(status)


@app.tool
def flood() -> str:
    for number in range(20000):
        print(f"line {number} " + "x" * 100, file=sys.stderr)
    return divide(0)


@app.tool
def hostile() -> str:
    print("\\033]0;owned\\007\\033[2J\\u202e", file=sys.stderr)
    return divide(0)


@app.tool
def leak() -> str:
    print("environment:", dict(os.environ), file=sys.stderr)
    raise ValueError(os.environ["PLAIN"] + os.environ["API_TOKEN"])


@app.resource("note://1")
def note() -> str:
    return str(divide(0))


if __name__ == "__main__":
    app.run()
"""

# A server that is not one of this library: it answers any request with a result that failed.
FOREIGN = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "foreign", "version": "1"}}
    elif asked.get("method") == "tools/call":
        for each in LINES:
            print(each, file=sys.stderr, flush=True)
        result = {"content": [{"type": "text", "text": "it broke"}], "isError": True}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"],
                          "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
def failing(tmp_path: Path) -> list[str]:
    """Return the words that start the server."""
    file = tmp_path / "failing.py"
    file.write_text(SERVER, encoding="utf-8")
    return ["--", sys.executable, str(file)]


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return a function that returns the words that start a program."""

    def words(text: str) -> list[str]:
        file = tmp_path / "script.py"
        file.write_text(text, encoding="utf-8")
        return ["--", sys.executable, str(file)]

    return words


@pytest.mark.parametrize("tool", ["fail", "fail_later"])
def test_a_tool_that_raises_shows_the_frames_of_its_author(
    run: Run, failing: list[str], tool: str
) -> None:
    shown = run("call", tool, *failing)
    assert (shown.status, shown.out) == (1, "")
    first, heading, *lines = shown.err.splitlines()
    assert first.startswith(f"The tool '{tool}' failed unexpectedly (reference ")
    assert heading == "stderr of the server:"
    at = lines.index("  Traceback (most recent call last):")
    # Nothing of the library but one line, then what the author wrote.
    assert lines[at + 1].startswith("    … ")
    assert lines[at + 1].endswith("of trunkline")
    assert lines[at + 2].startswith(f'    File "{failing[2]}"')
    assert lines[at + 2].endswith(f"in {tool}")
    assert lines[at + 3] == "      return divide(0)"
    assert lines[at + 4].endswith("in divide")
    assert lines[-1] == "  ZeroDivisionError: division by zero"
    assert sum("File " in line for line in lines) == 2
    # What the server wrote before is there as well.
    assert "  loading the model" in lines


def test_the_traceback_is_shown_with_json_output_too(run: Run, failing: list[str]) -> None:
    shown = run("call", "fail", "-o", "json", *failing)
    assert shown.status == 1
    assert '"isError": true' in shown.out
    assert "ZeroDivisionError: division by zero" in shown.err


def test_verbose_shows_the_log_once_and_unfolded(run: Run, failing: list[str]) -> None:
    shown = run("call", "fail", "-v", *failing)
    assert shown.err.count("ZeroDivisionError: division by zero") == 1
    assert "of trunkline" not in shown.err


def test_a_failure_that_the_author_expected_is_its_text_alone(run: Run, failing: list[str]) -> None:
    shown = run("call", "expect", *failing)
    assert (shown.status, shown.err) == (1, "there is no such city\n")


def test_a_wrong_result_says_what_was_expected_and_what_came(run: Run, failing: list[str]) -> None:
    shown = run("call", "mistyped", *failing)
    assert "returned an invalid result (reference " in shown.err
    last = shown.err.splitlines()[-1]
    assert "int" in last
    assert "str" in last
    assert "seven" not in shown.err


def test_a_resource_that_raises_shows_its_traceback(run: Run, failing: list[str]) -> None:
    shown = run("read", "note://1", *failing)
    assert shown.status == 1
    assert "INTERNAL_ERROR" in shown.err
    assert "ZeroDivisionError: division by zero" in shown.err
    assert "frames of trunkline" in shown.err


def test_a_server_that_dies_during_a_call_shows_its_last_lines(
    run: Run, failing: list[str]
) -> None:
    shown = run("call", "die", *failing)
    assert shown.status == 3
    assert "the server exited (exit status 9)\n" in shown.err
    assert shown.err.endswith("stderr of the server:\n  loading the model\n  out of memory\n")
    assert shown.err.count("out of memory") == 1


def test_a_server_that_cannot_start_shows_why(run: Run, script: Callable[[str], list[str]]) -> None:
    shown = run("list", *script("import nonsense_that_is_missing\n"))
    assert shown.status == 3
    assert "the server exited (exit status 1)" in shown.err
    assert "ModuleNotFoundError: No module named 'nonsense_that_is_missing'" in shown.err


def test_a_server_that_does_not_answer_shows_what_it_wrote(run: Run) -> None:
    # A shell: on a busy machine Python may take longer to start than the timeout.
    waits = ["sh", "-c", "echo waiting for a database >&2; exec sleep 60"]
    shown = run("list", "--timeout", "2", "--", *waits)
    assert shown.status == 3
    assert "stderr of the server:\n  waiting for a database\n" in shown.err


def test_server_output_that_is_not_a_message_is_quoted(
    run: Run, script: Callable[[str], list[str]]
) -> None:
    shown = run("list", *script("print(1)\n"))
    assert shown.status == 3
    assert shown.err.endswith("(exit status 0); it printed '1', which is not a message\n")
    shown = run("list", *script("print('\\033[1mReady\\n{}')\n"))
    assert "it printed '\\x1b[1mReady' and more lines that are not messages\n" in shown.err


def test_a_program_that_is_not_a_server_is_asked_about(
    run: Run, script: Callable[[str], list[str]]
) -> None:
    shown = run("list", *script("pass\n"))
    assert shown.err.endswith("(exit status 0); is it an MCP server on stdio?\n")


def test_a_flood_is_bounded_and_the_server_does_not_block(run: Run, failing: list[str]) -> None:
    shown = run("call", "flood", *failing)
    assert shown.err.count("\n") < 60
    assert len(shown.err) < 16_000
    assert "line 19999 " in shown.err
    assert "ZeroDivisionError" in shown.err


def test_lines_of_the_server_cannot_control_the_terminal(run: Run, failing: list[str]) -> None:
    shown = run("call", "hostile", *failing)
    assert "\\x1b]0;owned\\x07\\x1b[2J\\u202e" in shown.err
    assert not {"\033", "\007", "\u202e"} & set(shown.err)


@pytest.mark.parametrize("more", [[], ["-v"]])
def test_values_of_env_are_never_shown(run: Run, failing: list[str], more: list[str]) -> None:
    given = ["--env", "PLAIN=CANARY-plain\"'-value", "--env", "API_TOKEN=CANARY"]
    shown = run("call", "leak", *given, *more, *failing)
    assert shown.status == 1
    assert "environment:" in shown.err
    assert "ValueError: [redacted]" in shown.err
    assert "CANARY" not in shown.err
    assert "CANARY" not in shown.out


def test_a_value_of_several_lines_is_hidden_line_by_line(
    run: Run, script: Callable[[str], list[str]]
) -> None:
    key = "-----BEGIN X-----\nCANARY-one\nCANARY-two\n-----END X-----"
    text = "import os, sys\nprint(os.environ['KEY'], file=sys.stderr)\nsys.exit(4)\n"
    shown = run("list", "--env", f"KEY={key}", *script(text))
    assert "(exit status 4)" in shown.err
    assert "CANARY" not in shown.err


def test_a_failed_call_of_another_server_shows_a_traceback_of_its_log(
    run: Run, script: Callable[[str], list[str]]
) -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "KeyError: 1"]
    shown = run("call", "any", "--json", "{}", *script(f"LINES = {lines!r}\n{FOREIGN}"))
    assert shown.status == 1
    assert shown.err.splitlines()[0] == "it broke"
    assert shown.err.endswith("".join(f"  {line}\n" for line in lines))


def test_missing_revision_has_its_own_status_and_message(
    run: Run, script: Callable[[str], list[str]]
) -> None:
    shown = run("list", "--revision", "2026-07-28", *script(f"LINES = []\n{FOREIGN}"))
    assert shown.status == 1
    assert shown.err.endswith(
        "the server does not speak MCP 2026-07-28; leave --revision out to negotiate\n"
    )


def test_a_failed_call_of_another_server_is_its_text_if_nothing_was_raised(
    run: Run, script: Callable[[str], list[str]]
) -> None:
    shown = run("call", "any", "--json", "{}", *script(f"LINES = ['INFO called']\n{FOREIGN}"))
    assert (shown.status, shown.err) == (1, "it broke\n")
