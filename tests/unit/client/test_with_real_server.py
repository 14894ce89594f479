"""A client and a real server: in one process, and as a child."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.unit.client.scripted import run
from trunkline import Client, Context, Server, SyncClient, ToolError
from trunkline.client.connect.targets import target_of
from trunkline.errors import ConnectionLost, PeerError, RequestTimeout, ToolFailed, TransportError
from trunkline.judge import Conversation
from trunkline.mcp import CreateMessageResult, TextContent
from trunkline.spec.revisions import LATEST, REVISIONS
from trunkline.transports import Tapped

# What one call may cost on the client's side, its transport left out, in calls of Python
# functions: there were 32 when this was written.
CALLS_ALLOWED = 40

SERVER = """
import sys
from trunkline import Server
app = Server("child", version="2.0.0")

@app.tool
async def shout(text: str) -> str:
    return text.upper()

@app.tool
async def crash() -> str:
    print("going down", file=sys.stderr, flush=True)
    import os
    os._exit(3)

app.run()
"""


class Sum(Struct):
    total: int


def server() -> Server:
    app = Server("adder", version="1.2.3", instructions="add things")

    @app.tool
    async def add(a: int, b: int) -> Sum:
        return Sum(a + b)

    @app.tool
    async def several(n: int) -> list[int]:
        return list(range(n))

    @app.tool
    async def fail() -> str:
        raise ToolError("as told")

    @app.tool
    async def climb(ctx: Context) -> str:
        for step in (1, 2):
            await ctx.progress(step, 2)
        return "there"

    @app.resource("memo://one")
    async def memo() -> str:
        return "remember"

    @app.prompt
    async def greet(name: str) -> str:
        return f"Greet {name}."

    return app


@pytest.mark.parametrize("revision", REVISIONS)
def test_everything_works_in_every_revision(revision: str) -> None:
    async def main() -> None:
        async with Client(server(), revision=revision, validate="raise") as client:
            assert client.revision == revision
            assert client.server_info is not None
            assert client.server_info.name == "adder"
            assert client.instructions == "add things"
            names = [tool.name for tool in await client.list_tools()]
            assert names == ["add", "several", "fail", "climb"]
            result = await client.call_tool("add", {"a": 2, "b": 3}, result_type=Sum)
            assert result.value == Sum(5)
            numbers = await client.call_tool("several", {"n": 3}, result_type=list[int])
            assert numbers.value == [0, 1, 2]
            failed = await client.call_tool("fail")
            with pytest.raises(ToolFailed, match="as told"):
                _ = failed.value
            with pytest.raises(PeerError):
                await client.call_tool("nowhere")
            seen: list[float] = []
            await client.call_tool("climb", on_progress=lambda n, *rest: seen.append(n))
            assert seen == [1, 2]
            assert (await client.read_resource("memo://one")).contents[0].text == "remember"
            prompt = await client.get_prompt("greet", {"name": "Ada"})
            assert prompt.messages[0].content.text == "Greet Ada."

    run(main())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("upstream", ["2025-11-25", LATEST])
def test_tool_may_return_what_a_client_received(revision: str, upstream: str) -> None:
    async def main() -> None:
        remote, front = server(), Server("front")
        async with Client(remote, revision=upstream) as client:

            @front.tool
            async def forward(name: str, arguments: dict[str, int]) -> Any:
                return await client.call_tool(name, arguments)

            @front.tool
            async def count(n: int) -> list[int]:
                found = await client.call_tool("several", {"n": n})
                return found  # type: ignore[return-value]  # checked against the annotation

            @front.middleware
            async def unknown(context: Any, proceed: Any) -> Any:
                if context.name == "elsewhere":
                    return await client.call_tool("add", {"a": 1, "b": 1})
                return await proceed()

            async with Client(front, revision=revision, validate="raise") as user:
                given = {"name": "add", "arguments": {"a": 2, "b": 3}}
                result = await user.call_tool("forward", given, result_type=Sum)
                assert (result.text, result.value) == ('{"total":5}', Sum(5))
                failed = await user.call_tool("forward", {"name": "fail", "arguments": {}})
                assert (failed.is_error, failed.text) == (True, "as told")
                counted = await user.call_tool("count", {"n": 2}, result_type=list[int])
                assert counted.value == [0, 1]
                elsewhere = await user.call_tool("elsewhere", result_type=Sum)
                assert elsewhere.value == Sum(2)
                info = result.meta.get("io.modelcontextprotocol/serverInfo", {"name": "front"})
                assert info["name"] == "front"

    run(main())


@pytest.mark.parametrize("revision", REVISIONS)
def test_sampling_needs_no_options_and_no_types(revision: str) -> None:
    app, asked = Server("asker"), []

    @app.tool
    async def describe(ctx: Context) -> str:
        reply = await ctx.sample("Describe Oslo.")
        assert isinstance(reply.content, TextContent)
        return f"{reply.role} {reply.model}: {reply.content.text}"

    def model(params: Any) -> str:
        asked.append(params.max_tokens)
        return "Fjord."

    async def main() -> None:
        async with Client(app, revision=revision, on_sample=model, name="acme") as client:
            assert (await client.call_tool("describe")).text == "assistant acme: Fjord."

    run(main())
    with SyncClient(app, revision=revision, on_sample=model, name="acme") as client:
        assert client.call_tool("describe").text == "assistant acme: Fjord."
    assert asked == [1024, 1024]


class Day(Struct):
    day: str
    persons: int = 2


def asking_server() -> Server:
    app = Server("asker", version="1.0.0")

    @app.tool
    async def book(ctx: Context) -> list[str]:
        first = await ctx.elicit("When?", Day, key="when")
        page = await ctx.elicit_url("Pay", "https://pay.example/1", key="pay")
        reply = await ctx.sample("Say yes.", max_tokens=5, key="yes")
        roots = await ctx.roots()
        assert first.content is not None
        assert isinstance(reply.content, TextContent)
        return [
            f"{first.content.day} {first.content.persons}",
            page.action,
            reply.content.text,
            roots[0].uri,
        ]

    return app


@pytest.mark.parametrize("revision", ["2025-11-25", LATEST])
def test_server_requests_are_answered_in_both_eras(revision: str) -> None:
    judge = Conversation()
    found: list[Any] = []

    async def elicit(params: Any) -> dict[str, str]:
        return {"day": "Friday"}

    def sample(params: Any) -> CreateMessageResult:
        return CreateMessageResult(TextContent("yes"), "model", "assistant")

    async def main() -> None:
        address = Tapped(
            target_of(asking_server()).address,
            lambda sender, frame: found.extend(judge.feed(frame, sender)),
        )
        options: dict[str, Any] = {
            "on_elicit": elicit,
            "on_elicit_url": lambda params: True,
            "on_sample": sample,
            "roots": ["file:///home"],
            "validate": "raise",
        }
        async with Client(address, revision=revision, **options) as client:
            result = await client.call_tool("book", result_type=list[str])
            assert result.value == ["Friday 2", "accept", "yes", "file:///home"]
            call = client.submit_tool("book", result_type=list[str])
            assert (await call).value[0] == "Friday 2"

    run(main())
    assert not [finding for finding in found if finding.level == "error"]
    outcomes = judge.outcomes()
    rules = [id for id in outcomes if id.startswith(("mcp.rounds.", "mcp.elicitation."))]
    assert not [id for id in rules if outcomes[id].verdict in ("fail", "warn")]
    if revision == LATEST:
        for rule in ("all-answered", "state-echoed", "new-id", "state-not-shared"):
            assert outcomes[f"mcp.rounds.{rule}"].verdict == "pass"


@pytest.mark.parametrize("revision", ["2025-11-25", LATEST])
def test_wait_for_an_elicitation_does_not_count_toward_the_call_timeout(revision: str) -> None:
    app = Server("slow user")

    @app.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Sure?", bool)).action

    @app.tool
    async def sleep() -> str:
        await asyncio.sleep(30)
        return "late"

    async def think(_: Any) -> dict[str, Any]:
        await asyncio.sleep(0.3)
        return {"value": True}

    async def main() -> None:
        async with Client(app, revision=revision, on_elicit=think, timeout=0.15) as client:
            assert (await client.call_tool("ask")).value == "accept"
            assert (await client.call_tool("ask")).value == "accept"
            # Time goes on once it is answered.
            with pytest.raises(RequestTimeout):
                await client.call_tool("sleep")
        async with Client(
            app, revision=revision, on_elicit=never, timeout=0.1, max_timeout=0.2
        ) as c:
            # A user who never answers keeps nobody for good, where the server waits for him.
            if revision != LATEST:
                with pytest.raises(RequestTimeout):
                    await c.call_tool("ask")

    async def never(_: Any) -> None:
        await asyncio.sleep(30)

    run(main())


def test_many_calls_at_once_get_their_own_answers() -> None:
    async def main() -> None:
        async with Client(server()) as client:
            results = await asyncio.gather(
                *(client.call_tool("add", {"a": n, "b": 1}, result_type=Sum) for n in range(200))
            )
            assert [each.value.total for each in results] == list(range(1, 201))

    run(main())


@pytest.mark.parametrize("revision", ["2025-11-25", LATEST])
def test_a_call_costs_few_calls(revision: str) -> None:
    async def main() -> int:
        async with Client(server(), revision=revision) as client:
            for _ in range(3):
                await client.call_tool("add", {"a": 1, "b": 2})
            count = 0

            def profile(frame: Any, event: str, arg: Any) -> None:
                nonlocal count
                path = Path(frame.f_code.co_filename)
                ours = path.parent.name in ("client", "jsonrpc") and "trunkline" in path.parts
                count += event == "call" and ours

            sys.setprofile(profile)
            try:
                await client.call_tool("add", {"a": 1, "b": 2})
            finally:
                sys.setprofile(None)
            return count

    # The server's peer is counted too, and its codec: as many again at the most.
    assert run(main()) <= 2 * CALLS_ALLOWED


def test_a_child_is_started_spoken_to_and_ended(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)

    async def main() -> None:
        async with Client([sys.executable, str(script)]) as client:
            assert (await client.call_tool("shout", {"text": "hi"})).value == "HI"
            with pytest.raises(ConnectionLost) as caught:
                await client.call_tool("crash")
            assert caught.value.exit_status == 3
            assert "going down" in "\n".join(caught.value.stderr)
            assert not client.is_connected
            await client.connect()
            assert (await client.call_tool("shout", {"text": "again"})).value == "AGAIN"

    run(main())


def test_a_command_that_is_not_there_is_a_transport_error() -> None:
    async def main() -> None:
        with pytest.raises(TransportError):
            async with Client(["/nonexistent/command"]):
                pass

    run(main())


def test_a_command_that_exits_at_once_is_a_transport_error_with_its_last_words() -> None:
    code = "import sys; print('no config', file=sys.stderr); sys.exit(4)"

    async def main() -> None:
        with pytest.raises(TransportError) as caught:
            async with Client([sys.executable, "-c", code]):
                pass
        assert caught.value.exit_status == 4
        assert "no config" in "\n".join(caught.value.stderr)

    run(main())
