"""`trunkline shell` in a real terminal: keys, completion, notifications, questions, signals."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]
SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]
# The program with a module that cannot be imported.
WITHOUT_EDITOR = """
import sys
sys.modules["prompt_toolkit"] = None
from trunkline.cli import main
sys.exit(main())
"""


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose history is empty."""
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


class Scripted:
    """The server of `scripted.py`, from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = ["--", sys.executable, str(Path(__file__).with_name("scripted.py"))]
        self.words.append(str(folder))

    def send(self, *lines: object) -> None:
        """Have it send messages."""
        told = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        new = self.folder / "new"
        new.write_text("".join(f"{each}\n" for each in told))
        new.rename(self.folder / f"{len(list(self.folder.iterdir()))}.send")

    def received(self, method: str) -> list[Any]:
        lines = (self.folder / "received").read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [each for each in found if each.get("method") == method]

    def answer(self, id: int) -> Any:
        lines = (self.folder / "received").read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return next((each for each in found if each.get("id") == id and "result" in each), None)

    @property
    def is_running(self) -> bool:
        try:
            os.kill(int((self.folder / "pid").read_text()), 0)
        except ProcessLookupError:
            return False
        return True


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    folder = tmp_path / "scripted"
    folder.mkdir()
    return Scripted(folder)


def notification(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def question(id: int, **fields: object) -> dict[str, object]:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    params = {"message": "Which?", "requestedSchema": schema}
    return {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}


def until_prompt(run: Any) -> None:
    """Wait for an empty prompt: what is typed before would be typed into a cooked terminal."""
    run.read_until(lambda: run.text.rpartition("\n")[2].endswith(">"))


def enter(run: Any, line: str, shown: str) -> None:
    """Type a line, and wait for what it shows and for the next prompt."""
    run.type(f"{line}\r")
    run.until(shown)
    until_prompt(run)


def drop(run: Any) -> None:
    """Drop the line by Ctrl-C."""
    run.type("\x03")
    until_prompt(run)


def leave(run: Any) -> None:
    """Leave by Ctrl-D; the terminal is as it was."""
    until_prompt(run)
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


# Completion


def complete(run: Any, typed: str, completed: str) -> None:
    """Type, press Tab, and wait: a key that is typed meanwhile would cancel the completion."""
    run.type(f"{typed}\t")
    run.until(f"> {completed}")


def test_tab_completes_tools_arguments_and_values(
    terminal: Start, server: list[str], state: dict[str, str]
) -> None:
    run = terminal("shell", *server, **state)
    until_prompt(run)
    run.type("fore\t")
    run.until("demo> forecast")
    run.type("d\t")
    run.until("detail=  full | short")
    assert "days=    integer" in run.text
    run.type("e\t")
    run.until("demo> forecast detail=")
    run.type("s\t")
    run.until("detail=short")
    run.type("ci\t")
    run.until("detail=short city=")
    run.type("Oslo pl\t")
    run.until("place.lat=")
    run.type(".la\t")
    run.until("city=Oslo place.lat=")
    run.type("1.5\r")
    run.until('"detail": "short"')
    run.until('"place": [')
    leave(run)


def test_tab_completes_commands_and_their_words(
    terminal: Start, server: list[str], state: dict[str, str]
) -> None:
    run = terminal("shell", *server, **state)
    until_prompt(run)
    complete(run, "revi", "revision")
    complete(run, "2024", "revision 2024-11-05")
    enter(run, "", "MCP 2024-11-05 (chosen)")
    complete(run, "list tem", "list templates")
    enter(run, "", "demo://city/{name}")
    complete(run, "read demo://n", "read demo://notes")
    enter(run, "", "two\\x1b[2J")
    complete(run, "call look --s", "call look --save")
    drop(run)
    run.type("exit\r")
    assert run.wait() == 0


def test_tab_completes_what_the_server_suggests(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    complete(run, "prompt rep", "prompt report")
    complete(run, "ci", "prompt report city=")
    complete(run, "Ne", "prompt report city='New York'")
    asked = scripted.received("completion/complete")[-1]["params"]
    assert asked["ref"]["name"] == "report"
    assert asked["argument"] == {"name": "city", "value": "Ne"}
    drop(run)
    complete(run, "read city://Os", "read city://Oslo")
    asked = scripted.received("completion/complete")[-1]["params"]
    assert asked["ref"]["uri"] == "city://{name}/map"
    drop(run)
    leave(run)


def test_names_of_the_server_cannot_act_on_the_terminal(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("scripted\\x1b[31m>")
    run.type("call e\t")
    run.until("echo-louder")
    assert "first\\x1b[2J line\\u202e" in run.text
    drop(run)
    run.type("prompt report city=\t")
    run.until("New York")
    drop(run)
    run.type("list\r")
    run.until("evil\\x1b[31m")
    leave(run)
    # Neither the name of a tool nor a suggested value is offered that is not printable.
    assert b"\x1b[31m" not in run.raw
    assert b"\x1b[2J" not in run.raw
    assert "\u202e".encode() not in run.raw
    run.assert_usable()


def test_a_server_that_does_not_answer_does_not_stop_typing(
    terminal: Start, silent: Any, tmp_path: Path, state: dict[str, str]
) -> None:
    environment = {"PIDFILE": str(tmp_path / "pid"), **state}
    run = terminal("shell", *silent("tools/list"), **environment)
    until_prompt(run)
    run.type("call w\t")
    run.until_there(tmp_path / "pid.silent")
    run.type("atch")
    run.until("call watch")
    drop(run)
    run.type("watch\r")
    run.until("watch: on")
    leave(run)


# Ctrl-C


def test_ctrl_c_cancels_the_call_and_not_the_shell(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    run.type("wait\r")
    run.until_there(scripted.folder / "waiting")
    run.type("\x03")
    run.until("cancelled\n")
    enter(run, "echo text=again", "said again")
    call, _ = scripted.received("tools/call")
    (cancelled,) = scripted.received("notifications/cancelled")
    assert cancelled["params"]["requestId"] == call["id"]
    leave(run)


def test_ctrl_c_at_the_prompt_drops_the_line(
    terminal: Start, server: list[str], state: dict[str, str]
) -> None:
    run = terminal("shell", *server, **state)
    until_prompt(run)
    run.type("add a=1 b=2")
    run.until("b=2")
    drop(run)
    enter(run, "add a=3 b=4", "\n7\n")
    run.type("exit\r")
    assert run.wait() == 0
    assert "\n3\n" not in run.text
    run.assert_usable()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_ctrl_c_cancels_a_question_and_its_call(
    terminal: Start, server: list[str], state: dict[str, str], revision: str
) -> None:
    run = terminal("shell", "--revision", revision, *server, **state)
    until_prompt(run)
    run.type("order\r")
    run.until("Your name:")
    drop(run)
    assert "Your name: ^C\ncancelled\ndemo>" in run.text
    enter(run, "add a=3 b=4", "\n7\n")
    # Another question can be asked after it.
    run.type("unlock\r")
    run.until("password:")
    run.type("\x04")
    run.until("declined\ndecline\n")
    leave(run)


@pytest.mark.parametrize(("number", "status"), SIGNALS)
@pytest.mark.parametrize("typed", ["add a=", "wait\r", "edit echo\r"])
def test_a_signal_ends_the_shell_and_restores_the_terminal(
    terminal: Start,
    scripted: Scripted,
    state: dict[str, str],
    tmp_path: Path,
    typed: str,
    number: int,
    status: int,
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\ntouch {scripted.folder / 'waiting'}\nexec sleep 60\n")
    editor.chmod(0o755)
    run = terminal("shell", *scripted.words, EDITOR=str(editor), **state)
    until_prompt(run)
    run.type(typed)
    if typed.endswith("\r"):
        run.until_there(scripted.folder / "waiting")
    else:
        run.until("add a=")
    run.send(number)
    assert run.wait() == status
    assert not scripted.is_running
    run.assert_usable()


# Notifications and questions while typing


def test_notifications_are_shown_above_the_line_being_typed(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    run.type("echo text=hal")
    run.until("echo text=hal")
    scripted.send(
        notification("tools/list_changed"),
        notification("message", level="error", data="on \x1b[31mfire"),
        notification("resources/updated", uri="note://one"),
        notification("strange/thing", x="\x1b[2J"),
    )
    run.until("strange/thing")
    assert "the tools of the server have changed" in run.text
    assert "error: on \\x1b[31mfire" in run.text
    assert "changed: note://one" in run.text
    run.read_until(lambda: run.text.endswith("> echo text=hal"))
    enter(run, "f", "said half")
    enter(run, "watch off", "watch: off")
    ping = {"jsonrpc": "2.0", "id": 77, "method": "ping"}
    scripted.send(notification("message", level="error", data="unseen"), ping)
    # The answer shows that the notification arrived before the next command ran.
    run.read_until(lambda: scripted.answer(77) is not None)
    enter(run, "echo text=there", "said there")
    leave(run)
    assert "unseen" not in run.text
    assert b"\x1b[31m" not in run.raw


def test_a_flood_of_notifications_leaves_a_prompt_that_can_be_used(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    run.type("echo te")
    run.until("echo te")
    scripted.send(*[notification("message", level="error", data=f"n{at}") for at in range(3000)])
    run.until("n25")
    enter(run, "xt=through", "said through")
    leave(run)


def test_a_question_that_comes_while_typing_keeps_the_line(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    run.type("echo text=ke")
    run.until("echo text=ke")
    scripted.send(question(901, colour={"type": "string"}))
    run.until("colour:")
    scripted.send(notification("message", level="error", data="later"))
    run.type("blue\r")
    run.until("echo text=ke")
    enter(run, "pt", "said kept")
    assert scripted.answer(901)["result"] == {"action": "accept", "content": {"colour": "blue"}}
    # What was reported meanwhile did not get into the question.
    assert run.text.index("colour: blue") < run.text.index("error: later")
    leave(run)


def test_ctrl_c_cancels_a_question_that_came_while_typing(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    run.type("echo text=ke")
    run.until("echo text=ke")
    scripted.send(question(902, password={"type": "string"}))
    run.until("password:")
    run.type("canary-17")
    run.type("\x03")
    run.read_until(lambda: scripted.answer(902) is not None)
    assert scripted.answer(902)["result"]["action"] == "cancel"
    run.until("echo text=ke")
    enter(run, "pt", "said kept")
    leave(run)
    assert b"canary" not in run.raw
    run.assert_usable()


# The connection


def test_lost_connection_is_shown_at_once_and_the_next_command_reconnects(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    enter(run, "subscribe note://one", "changes of note://one are shown")
    run.type("echo text=on")
    run.until("echo text=on")
    scripted.send("exit")
    run.until("the connection is lost")
    run.until("the last line on stderr")
    run.until("(not connected)> echo text=on")
    enter(run, "ce", "said once")
    assert "connecting again" in run.text
    assert len(scripted.received("resources/subscribe")) == 2
    leave(run)


def test_a_connection_that_is_lost_in_a_call_ends_the_call_alone(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    run.type("wait\r")
    run.until_there(scripted.folder / "waiting")
    scripted.send("exit")
    run.until("(not connected)>")
    enter(run, "reconnect", "connected to scripted")
    leave(run)


def test_a_revision_that_the_server_lacks_is_an_error_and_the_earlier_one_stays(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    until_prompt(run)
    enter(run, "revision 2026-07-28", "the server does not speak MCP 2026-07-28")
    enter(run, "revision", "MCP 2025-11-25 (negotiated)")
    leave(run)


# Editing arguments


def fake_editor(folder: Path, script: str) -> str:
    editor = folder / "editor"
    editor.write_text(f"#!{sys.executable}\nimport json, sys\npath = sys.argv[1]\n{script}\n")
    editor.chmod(0o755)
    return str(editor)


def test_edit_calls_a_tool_with_what_was_saved(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    script = f"""
import os
text = open(path).read()
mode = oct(os.stat(os.path.dirname(path)).st_mode & 0o777)
open({str(seen)!r}, "w").write(mode + " " + path + " " + text)
made = json.loads(text)
made["city"] = "Oslo"
open(path, "w").write(json.dumps(made))
"""
    run = terminal("shell", *server, EDITOR=fake_editor(tmp_path, script), **state)
    until_prompt(run)
    run.type("edit forecast\r")
    run.until('"city": "Oslo"')
    leave(run)
    mode, path, text = seen.read_text().split(" ", 2)
    assert mode == "0o700"
    assert not Path(path).exists()
    # What is required, and what has a default.
    assert json.loads(text) == {"city": "", "days": 1, "detail": "short", "is_dry": False}
    run.assert_usable()


def test_edit_opens_a_faulty_text_again(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    script = """
text = open(path).read()
open(path, "w").write('{"a": 40, "b": 2}' if text == "{oops" else "{oops")
"""
    run = terminal("shell", *server, VISUAL=fake_editor(tmp_path, script), **state)
    until_prompt(run)
    enter(run, "edit add", "what was saved is not JSON")
    enter(run, "edit add", "\n42\n")
    leave(run)


def test_an_editor_that_fails_or_saves_nothing_calls_nothing(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    script = "open(path, 'w'); sys.exit(int(open(__file__ + '.status').read()))"
    editor = fake_editor(tmp_path, script)
    Path(f"{editor}.status").write_text("3")
    run = terminal("shell", *server, VISUAL=editor, **state)
    until_prompt(run)
    enter(run, "edit add", "the editor ended with status 3")
    Path(f"{editor}.status").write_text("0")
    enter(run, "edit add", "nothing was saved")
    leave(run)


# History


def test_lines_are_recalled_in_the_next_session_except_those_with_secrets(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    run = terminal("shell", *server, **state)
    until_prompt(run)
    enter(run, "add a=20 b=3", "\n23\n")
    enter(run, "login user=ada password=4711", "\nada\n")
    leave(run)
    file = tmp_path / "state" / "trunkline" / "shell-history"
    assert file.read_text() == "add a=20 b=3\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    run = terminal("shell", *server, **state)
    until_prompt(run)
    run.type("\x1b[A")
    run.until("demo> add a=20 b=3")
    enter(run, "0", "\n50\n")
    leave(run)


def test_no_history_reads_and_writes_none(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    run = terminal("shell", "--no-history", *server, **state)
    until_prompt(run)
    enter(run, "add a=20 b=3", "\n23\n")
    leave(run)
    assert not (tmp_path / "state").exists()


# The plain reader


@pytest.mark.parametrize("how", ["--plain", "TERM=dumb", "no prompt_toolkit"])
def test_a_terminal_without_editing_has_the_same_commands(
    terminal: Start, scripted: Scripted, state: dict[str, str], how: str
) -> None:
    words = ["shell", *(["--plain"] if how == "--plain" else []), *scripted.words]
    environment = {**state, **({"TERM": "dumb"} if how == "TERM=dumb" else {})}
    program = [sys.executable, "-c", WITHOUT_EDITOR] if how == "no prompt_toolkit" else None
    run = terminal(*words, program=program, **environment)
    until_prompt(run)
    assert ('pip install "trunkline[cli]"' in run.text) == (how != "--plain")
    run.type("echo text=first\n")
    run.until("said first")
    run.type("wait\n")
    run.until_there(scripted.folder / "waiting")
    run.type("\x03")
    run.until("cancelled")
    scripted.send(notification("message", level="error", data="told"))
    run.until("error: told")
    scripted.send(question(903, colour={"type": "string"}))
    run.until("colour:")
    run.type("red\n")
    run.read_until(lambda: scripted.answer(903) is not None)
    run.type("dropped\x03")
    run.type("echo text=second\n")
    run.until("said second")
    leave(run)
    assert b"prompt_toolkit" not in run.raw
    assert b"dropped; " not in run.raw
    run.assert_usable()
