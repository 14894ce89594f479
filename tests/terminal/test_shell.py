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


# Completion


def test_tab_completes_tools_arguments_and_values(
    terminal: Start, server: list[str], state: dict[str, str]
) -> None:
    run = terminal("shell", *server, **state)
    run.until("demo>")
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
    run.until("place.lat=")
    run.type("1.5\r")
    run.until('"detail": "short"')
    run.until('"place": [')
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


def test_tab_completes_commands_and_their_words(
    terminal: Start, server: list[str], state: dict[str, str]
) -> None:
    run = terminal("shell", *server, **state)
    run.until("demo>")
    run.type("revi\t2024\t\r")
    run.until("MCP 2024-11-05 (chosen)")
    run.type("list tem\t\r")
    run.until("demo://city/{name}")
    run.type("read demo://n\t\r")
    run.until("two\\x1b[2J")
    run.type("call look --s\t")
    run.until("call look --save")
    run.type("\x03exit\r")
    assert run.wait() == 0


def test_tab_completes_what_the_server_suggests(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("prompt rep\tci\tNe\t")
    run.until("prompt report city='New York'")
    asked = scripted.received("completion/complete")[-1]["params"]
    assert asked["ref"]["name"] == "report"
    assert asked["argument"] == {"name": "city", "value": "Ne"}
    run.type("\x03read city://Os\t")
    run.until("read city://Oslo")
    asked = scripted.received("completion/complete")[-1]["params"]
    assert asked["ref"]["uri"] == "city://{name}/map"
    run.type("\x03\x04")
    assert run.wait() == 0


def test_names_of_the_server_cannot_act_on_the_terminal(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("scripted\\x1b[31m> ")
    run.type("call e\t")
    run.until("echo-louder")
    assert "first\\x1b[2J line\\u202e" in run.text
    run.type("\x03prompt report city=\t")
    run.until("New York")
    run.type("\x03list\r")
    run.until("evil\\x1b[31m")
    run.type("\x04")
    assert run.wait() == 0
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
    run.until("silent>")
    run.type("call w\t")
    run.until_there(tmp_path / "pid.silent")
    run.type("atch")
    run.until("call watch")
    run.type("\x03watch\r")
    run.until("watch: on")
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


# Ctrl-C


def test_ctrl_c_cancels_the_call_and_not_the_shell(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("wait\r")
    run.until_there(scripted.folder / "waiting")
    run.type("\x03")
    run.until("cancelled\n")
    run.type("echo text=again\r")
    run.until("said again")
    call, _ = scripted.received("tools/call")
    (cancelled,) = scripted.received("notifications/cancelled")
    assert cancelled["params"]["requestId"] == call["id"]
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


def test_ctrl_c_at_the_prompt_drops_the_line(
    terminal: Start, server: list[str], state: dict[str, str]
) -> None:
    run = terminal("shell", *server, **state)
    run.until("demo>")
    run.type("add a=1 b=2\x03add a=3 b=4\r")
    run.until("\n7\n")
    run.type("exit\r")
    assert run.wait() == 0
    assert "\n3\n" not in run.text
    run.assert_usable()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_ctrl_c_cancels_a_question_and_its_call(
    terminal: Start, server: list[str], state: dict[str, str], revision: str
) -> None:
    run = terminal("shell", "--revision", revision, *server, **state)
    run.until("demo>")
    run.type("order\r")
    run.until("Your name:")
    run.type("\x03")
    run.until("cancelled")
    run.type("add a=3 b=4\r")
    run.until("\n7\n")
    run.type("order\r")
    run.until("Your name:")
    run.type("\x04")
    run.until("decline")
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


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
    run.until("> ")
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


def test_what_the_server_reports_is_shown_above_the_line_that_is_typed(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
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
    assert run.text.splitlines()[-1].endswith("> echo text=hal")
    run.type("f\r")
    run.until("said half")
    run.type("watch off\r")
    run.until("watch: off")
    scripted.send(notification("message", level="error", data="unseen"))
    run.type("echo text=there\r")
    run.until("said there")
    run.type("\x04")
    assert run.wait() == 0
    assert "unseen" not in run.text
    assert b"\x1b[31m" not in run.raw


def test_a_flood_of_notifications_leaves_a_prompt_that_can_be_used(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("echo te")
    run.until("echo te")
    scripted.send(*[notification("message", level="error", data=f"n{at}") for at in range(3000)])
    run.until("n25")
    run.type("xt=through\r")
    run.until("said through")
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


def test_a_question_that_comes_while_typing_keeps_the_line(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("echo text=ke")
    run.until("echo text=ke")
    scripted.send(question(901, colour={"type": "string"}))
    run.until("colour:")
    scripted.send(notification("message", level="error", data="later"))
    run.type("blue\r")
    run.until("echo text=ke")
    run.type("pt\r")
    run.until("said kept")
    assert scripted.answer(901)["result"] == {"action": "accept", "content": {"colour": "blue"}}
    # What was reported meanwhile did not get into the question.
    assert run.text.index("colour: blue") < run.text.index("error: later")
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


def test_ctrl_c_cancels_a_question_that_came_while_typing(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("echo text=ke")
    run.until("echo text=ke")
    scripted.send(question(902, password={"type": "string"}))
    run.until("password:")
    run.type("canary-17")
    run.type("\x03")
    run.read_until(lambda: scripted.answer(902) is not None)
    assert scripted.answer(902)["result"]["action"] == "cancel"
    run.until("echo text=ke")
    run.type("pt\r")
    run.until("said kept")
    run.type("\x04")
    assert run.wait() == 0
    assert b"canary" not in run.raw
    run.assert_usable()


# The connection


def test_a_lost_connection_is_told_at_once_and_the_next_command_connects_again(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("subscribe note://one\r")
    run.until("changes of note://one are shown")
    run.type("echo text=on")
    run.until("echo text=on")
    scripted.send("exit")
    run.until("the connection is lost")
    run.until("the last line on stderr")
    run.until("(not connected)> echo text=on")
    run.type("ce\r")
    run.until("said once")
    assert "connecting again" in run.text
    assert len(scripted.received("resources/subscribe")) == 2
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


def test_a_connection_that_is_lost_in_a_call_ends_the_call_alone(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("wait\r")
    run.until_there(scripted.folder / "waiting")
    scripted.send("exit")
    run.until("(not connected)>")
    run.type("reconnect\r")
    run.until("connected to scripted")
    run.type("\x04")
    assert run.wait() == 0
    run.assert_usable()


def test_a_revision_that_the_server_lacks_is_an_error_and_the_earlier_one_stays(
    terminal: Start, scripted: Scripted, state: dict[str, str]
) -> None:
    run = terminal("shell", *scripted.words, **state)
    run.until("> ")
    run.type("revision 2026-07-28\r")
    run.until("the server does not speak MCP 2026-07-28")
    run.type("revision\r")
    run.until("MCP 2025-11-25 (negotiated)")
    run.type("\x04")
    assert run.wait() == 0


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
    run.until("demo>")
    run.type("edit forecast\r")
    run.until('"city": "Oslo"')
    run.type("\x04")
    assert run.wait() == 0
    mode, path, text = seen.read_text().split(" ", 2)
    assert mode == "0o700"
    assert not Path(path).exists()
    assert json.loads(text) == {
        **{"city": "", "days": 1, "detail": "short", "tags": None, "place": None},
        "is_dry": False,
    }
    run.assert_usable()


def test_edit_opens_a_faulty_text_again(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    script = """
text = open(path).read()
open(path, "w").write('{"a": 40, "b": 2}' if text == "{oops" else "{oops")
"""
    run = terminal("shell", *server, VISUAL=fake_editor(tmp_path, script), **state)
    run.until("demo>")
    run.type("edit add\r")
    run.until("what was saved is not JSON")
    run.type("edit add\r")
    run.until("\n42\n")
    run.type("\x04")
    assert run.wait() == 0


def test_an_editor_that_fails_or_saves_nothing_calls_nothing(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    script = "open(path, 'w'); sys.exit(int(open(__file__ + '.status').read()))"
    editor = fake_editor(tmp_path, script)
    Path(f"{editor}.status").write_text("3")
    run = terminal("shell", *server, VISUAL=editor, **state)
    run.until("demo>")
    run.type("edit add\r")
    run.until("the editor ended with status 3")
    Path(f"{editor}.status").write_text("0")
    run.type("edit add\r")
    run.until("nothing was saved")
    run.type("\x04")
    assert run.wait() == 0


# History


def test_lines_are_recalled_in_the_next_session_except_those_with_secrets(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    run = terminal("shell", *server, **state)
    run.until("demo>")
    run.type("add a=20 b=3\r")
    run.until("\n23\n")
    run.type("login user=ada password=4711\r")
    run.until("\nada\n")
    run.type("\x04")
    assert run.wait() == 0
    file = tmp_path / "state" / "trunkline" / "shell-history"
    assert file.read_text() == "add a=20 b=3\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    run = terminal("shell", *server, **state)
    run.until("demo>")
    run.type("\x1b[A")
    run.until("demo> add a=20 b=3")
    run.type("0\r")
    run.until("\n50\n")
    run.type("\x04")
    assert run.wait() == 0


def test_no_history_reads_and_writes_none(
    terminal: Start, server: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    run = terminal("shell", "--no-history", *server, **state)
    run.until("demo>")
    run.type("add a=20 b=3\r")
    run.until("\n23\n")
    run.type("\x04")
    assert run.wait() == 0
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
    run.until("> ")
    assert ("pip install trunkline[cli]" in run.text) == (how != "--plain")
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
    run.type("\x04")
    assert run.wait() == 0
    assert b"prompt_toolkit" not in run.raw
    assert b"dropped; " not in run.raw
    run.assert_usable()
