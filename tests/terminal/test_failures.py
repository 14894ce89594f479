"""Failures of servers and of the user's own words, as they look in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Terminal

    Start = Callable[..., Terminal]

# The reference of a failure is made from fixed bytes.
SERVER = """\
import os, sys
os.urandom = lambda count: bytes(range(count))
from trunkline import Context, Server, ToolError

app = Server("failing", version="1.0")
print("loading the model", file=sys.stderr, flush=True)


def divide(by):
    return 1 / by


@app.tool
def fail(by: int = 0) -> float:
    return divide(by)


@app.tool
def expect() -> str:
    raise ToolError("There is no city called Olso; did you mean Oslo?")


@app.tool
def mistyped() -> int:
    return "seven"


@app.tool
def die() -> str:
    print("\\033[31mout of memory\\033[0m \\u202eyrros", file=sys.stderr, flush=True)
    os._exit(9)


@app.tool
async def sure(ctx: Context) -> str:
    answer = await ctx.elicit("Delete all?", bool)
    return f"{answer.content}"


app.run()
"""


@pytest.fixture
def failing(tmp_path: Path) -> dict[str, object]:
    """Return where the server is."""
    (tmp_path / "failing.py").write_text(SERVER, encoding="utf-8")
    return {"cwd": tmp_path}


# Compiled under its short name, so that a traceback is the same in every folder.
_START = "name = 'failing.py'; exec(compile(open(name).read(), name, 'exec'))"
COMMAND = ("--", sys.executable, "-c", _START)


@pytest.mark.parametrize("tool", ["fail", "expect", "mistyped", "die"])
def test_a_tool_that_fails(on_screen: Start, failing: dict[str, object], tool: str) -> None:
    run = on_screen("call", tool, *COMMAND, **failing)
    assert run.wait() == (3 if tool == "die" else 1)
    run.assert_usable()
    run.assert_screen(f"failure-{tool}")


def test_a_program_that_is_not_a_server(on_screen: Start) -> None:
    run = on_screen("list", "--", "echo", "\033[1mListening on port 3000\033[0m")
    assert run.wait() == 3
    run.assert_usable()
    run.assert_screen("failure-printed")


@pytest.mark.parametrize("verb", ["", "call", "serve", "spec"])
def test_help(on_screen: Start, verb: str) -> None:
    run = on_screen("help", *([verb] if verb else []))
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen(f"help-{verb or 'verbs'}")


def test_a_plain_type_is_asked_for_as_an_answer(
    terminal: Start, failing: dict[str, object]
) -> None:
    run = terminal("call", "sure", *COMMAND, **failing)
    run.until("  answer (y/n):")
    run.type("maybe\n")
    run.until("y or n, please")
    run.type("y\n")
    assert run.wait() == 0
    assert run.text.endswith("True")


@pytest.mark.parametrize("words", [[], ["--http", "0"], ["--tcp", "0", "--reload"]])
def test_after_ctrl_c_in_serve_the_prompt_begins_a_line(
    terminal: Start, tmp_path: Path, words: list[str]
) -> None:
    file = tmp_path / "quiet.py"
    file.write_text("from trunkline import Server\napp = Server('quiet')\n")
    run = terminal("serve", str(file), *words)
    if not words:
        # It is served when it answers.
        run.type('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    run.until("listening on" if words else '"result":{}')
    run.type("\x03")
    assert run.wait() == 0
    assert run.screen.cursor.x == 0
    run.assert_usable()
