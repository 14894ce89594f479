"""Lines that arrive while the user types, or while something else has the terminal."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline.cli.shell.notifications import MAX_LINES_AT_ONCE, MAX_WAITING, ShellConsole


class Above:
    """A prompt, and the lines above it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def __call__(self, text: str) -> None:
        self.texts.append(text)

    async def until(self, text: str) -> None:
        await until_async(lambda: text in "".join(self.texts))


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> ShellConsole:
    monkeypatch.setenv("NO_COLOR", "1")
    return ShellConsole()


def message(data: object) -> Any:
    return SimpleNamespace(level="error", logger=None, data=data)


async def test_lines_go_above_the_prompt_while_there_is_one(
    console: ShellConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    above = Above()
    console.note("before")
    with console.prompting(above):
        console.note("while")
        await above.until("while")
    console.note("after")
    assert above.texts == ["while\n"]
    assert capsys.readouterr().err == "before\nafter\n"


async def test_lines_wait_while_something_else_has_the_terminal(
    console: ShellConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.held():
        console.log(message("one"))
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "error: one\n"
    above = Above()
    with console.prompting(above):
        with console.held():
            console.list_changed("tools")
            await asyncio.sleep(0.01)
            assert above.texts == []
        await above.until("the tools of the server have changed\n")


async def test_a_flood_is_bounded_and_counted(
    console: ShellConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    above = Above()
    with console.prompting(above):
        for at in range(MAX_WAITING + 50):
            console.note(f"line {at}")
        await above.until("line 1\n")
        assert above.texts[0].count("\n") == MAX_LINES_AT_ONCE
    rest = capsys.readouterr().err
    assert f"line {MAX_WAITING - 1}\n" in rest
    assert "(50 more lines were not shown)" in rest


async def test_watch_off_hides_what_comes_while_typing(
    console: ShellConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    forgotten: list[str] = []
    console.on_list_changed = forgotten.append
    console.is_watching = False
    above = Above()
    with console.prompting(above):
        console.log(message("hidden"))
        console.list_changed("tools")
        console.resource_updated("note://one")
        console.notification("x/y", {})
        console.note("the connection is lost")
        await above.until("lost")
    assert above.texts == ["the connection is lost\n"]
    # The list is requested again all the same.
    assert forgotten == ["tools"]
    console.log(message("shown in a command"))
    assert "shown in a command" in capsys.readouterr().err


async def test_notifications_are_escaped_truncated_and_shown_without_secrets(
    console: ShellConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    console.task_name = {"secret-id": "task 3"}.get  # type: ignore[assignment]
    console.notification("a/b\x1b[31m", {"x": "\u202e", "password": "canary-1"})
    console.notification("notifications/tasks/status", {"taskId": "secret-id", "status": "failed"})
    console.resource_updated("note://\x1b[2J")
    with console.held():
        console.note("x" * 5000)
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "canary-1" not in shown
    assert "secret-id" not in shown
    assert "task 3 is failed" in shown
    assert max(map(len, shown.splitlines())) <= 2001
