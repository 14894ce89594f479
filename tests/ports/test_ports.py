"""Servers in the shape that real ones have, with our client: in memory and as processes.

`make interop` has the same conversations with the official client.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.ports.conversations import CONVERSATIONS, SERVERS, groups
from tests.ports.our_caller import OurCaller
from tests.ports.servers.chatbot import SCRIPT, Chatbot, scripted
from tests.ports.steps import (
    Call,
    Complete,
    Conversation,
    Failure,
    GetPrompt,
    ListNames,
    ReadResource,
    Watch,
    play,
)
from trunkline import Client, Stdio
from trunkline.spec.revisions import V2025_06_18, V2025_11_25, V2026_07_28

ROOT = Path(__file__).resolve().parents[2]
GROUPS = groups()
NAMES = ["-".join([server, *without]) for server, without in GROUPS]
SERVED = {path.stem for path in Path(__file__).with_name("servers").glob("*.py")}


def process(server: str) -> Stdio:
    """Return the address of a server that is a child process."""
    return Stdio(sys.executable, ["-m", f"tests.ports.servers.{server}"], cwd=str(ROOT))


async def hold(
    target: Any, revision: str, without: frozenset[str], conversations: Sequence[Conversation]
) -> int:
    """Hold the conversations that a revision has, on one connection; return how many they are."""
    held = [each for each in conversations if revision >= each.since]
    async with OurCaller(target, revision, without) as caller:
        assert caller.client.revision == revision
        for conversation in held:
            await play(conversation, caller)
    return len(held)


@pytest.mark.parametrize("revision", [V2025_06_18, V2025_11_25, V2026_07_28])
@pytest.mark.parametrize("group", GROUPS, ids=NAMES)
def test_a_server_keeps_its_conversations_in_memory(
    group: tuple[str, frozenset[str]], revision: str, tmp_path: Path
) -> None:
    server, without = group
    app = import_module(f"tests.ports.servers.{server}").make(tmp_path)
    assert asyncio.run(hold(app, revision, without, GROUPS[group])) > 0


@pytest.mark.parametrize("revision", [V2025_11_25, V2026_07_28])
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_keeps_its_conversations_as_a_process(server: str, revision: str) -> None:
    conversations = GROUPS[server, frozenset()]
    assert asyncio.run(hold(process(server), revision, frozenset(), conversations)) > 0


@pytest.mark.parametrize("revision", [V2025_11_25, V2026_07_28])
def test_the_chatbot_has_the_tools_of_several_processes(revision: str) -> None:
    targets = {name: process(name) for name in ("files", "database", "notes")}
    targets["weather"] = Stdio(sys.executable, ["-c", "import sys; sys.exit('no licence')"])

    async def main() -> None:
        async with Chatbot(targets, scripted(SCRIPT), revision=revision) as chatbot:
            assert {client.revision for client in chatbot.clients.values()} == {revision}
            assert await chatbot.ask("Note the price of skis.") == "Noted: skis 300."
            assert await chatbot.ask("What is the weather?") == "There is no tool weather.now."
            assert list(chatbot.failed) == ["weather"]
            assert "no licence" in chatbot.failed["weather"]

    asyncio.run(main())


def test_every_server_has_conversations_and_every_tool_is_called(tmp_path: Path) -> None:
    assert set(SERVERS) == SERVED
    assert len(SERVERS) >= 8
    assert len({(each.server, each.title) for each in CONVERSATIONS}) == len(CONVERSATIONS)

    async def offered(server: str) -> set[str]:
        async with Client(import_module(f"tests.ports.servers.{server}").make(tmp_path)) as client:
            return {tool.name for tool in await client.list_tools()}

    for server in SERVERS:
        steps = [step for each in CONVERSATIONS if each.server == server for step in each.steps]
        steps += [inner for step in steps if isinstance(step, Watch) for inner in step.steps]
        called = {step.tool for step in steps if isinstance(step, Call)}
        assert asyncio.run(offered(server)) <= called


def call_of_echo(**expected: Any) -> Conversation:
    return Conversation("everything", "one", [Call("echo", {"message": "a"}, **expected)])


@pytest.mark.parametrize(
    "wrong",
    [
        call_of_echo(text="Echo: b"),
        call_of_echo(value="Echo: a"),
        call_of_echo(fails="Echo"),
        call_of_echo(faulty="message"),
        call_of_echo(refused=(-32602, "")),
        call_of_echo(blocks=["image"]),
        call_of_echo(asked=["Why?"]),
        call_of_echo(meta={"a": 1}),
        Conversation("everything", "one", [ReadResource("demo://text")]),
        Conversation("everything", "one", [ReadResource("demo://text", "plain", "text/html")]),
        Conversation("everything", "one", [ReadResource("demo://none", "plain")]),
        Conversation("everything", "one", [GetPrompt("plain")]),
        Conversation("everything", "one", [GetPrompt("none", {}, [("user", "a")])]),
        Conversation("everything", "one", [ListNames("prompts", ["plain"])]),
        Conversation("everything", "one", [Complete("prompt", "travel", "city", "O", [])]),
        Conversation("everything", "one", [Watch([], ["tools"], ["tools"])]),
    ],
    ids=lambda each: str(each.steps[0])[:60],
)
def test_an_expectation_that_is_wrong_is_noticed(
    wrong: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.ports.steps.TIMEOUT_S", 0.05)
    app = import_module("tests.ports.servers.everything").make(tmp_path)
    with pytest.raises((AssertionError, Failure)):
        asyncio.run(hold(app, V2026_07_28, frozenset(), [wrong]))
