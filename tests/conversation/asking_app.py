"""A server whose handlers ask the client: its user, its model, and where its folders are.

Each tool asks in one way and says what came of it, so that a script can be played in either
era. Tools that go on as tasks are in `task_app.py`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Literal

from msgspec import Struct

from tests.conversation.journal import Journal, add_waiting_tools
from trunkline import Context, Server, ServerLimits
from trunkline.errors import PeerError
from trunkline.mcp import (
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)
from trunkline.server import MissingCapability

# So few that a script reaches the bound.
ROUNDS: Final = 3
PAGE_TO_VISIT: Final = "https://example.com/pay?for=1"

_TITLED: Final = [
    {"const": f"value{number}", "title": f"{name} Option"}
    for number, name in enumerate(("First", "Second", "Third"), 1)
]
_UNTITLED: Final = ["option1", "option2", "option3"]
# Every way to choose that a form has, written by hand.
CHOICES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _UNTITLED},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _UNTITLED}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
    "required": [],
}


class User(Struct):
    name: str


@dataclass
class Profile:
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def asking(**settings: Any) -> Server:
    """Return a server that asks."""
    app = Server("asking", **{"limits": ServerLimits(rounds=ROUNDS), **settings})
    journal = Journal()
    add_waiting_tools(app, journal)
    add_questions(app)
    add_samples(app)
    add_rounds(app, journal)
    add_others(app)
    return app


def add_questions(app: Server) -> None:
    @app.tool
    async def hello(ctx: Context, greeting: str = "Hello") -> str:
        """Ask for a name, under a key."""
        answer = await ctx.elicit("What is your name?", User, key="user_name")
        return f"{greeting}, {answer.content.name}!" if answer.content else answer.action

    @app.tool
    def hello_from_a_thread(ctx: Context) -> str:
        """Ask for a name, and wait for it on a thread."""
        answer = ctx.elicit("What is your name?", User).wait()
        return f"Hello, {answer.content.name}!" if answer.content else answer.action

    @app.tool
    async def profile(ctx: Context) -> dict[str, Any]:
        """Ask with a default for everything."""
        answer = await ctx.elicit("Who are you?", Profile)
        return {"action": answer.action, "content": answer.content}

    @app.tool
    async def choose(ctx: Context) -> dict[str, Any]:
        """Ask with every way to choose."""
        answer = await ctx.elicit("Which?", CHOICES)
        return {"action": answer.action, "content": answer.content}

    @app.tool
    async def visit(ctx: Context) -> str:
        """Send the user to a page."""
        return (await ctx.elicit_url("Pay here", PAGE_TO_VISIT, key="pay")).action

    @app.tool
    async def hello_if_possible(ctx: Context) -> str:
        """Ask, and do without if that is not possible."""
        try:
            answer = await ctx.elicit("What is your name?", User)
        except MissingCapability as error:
            return f"without {', '.join(error.capabilities)}"
        return answer.action


def add_samples(app: Server) -> None:
    @app.tool
    async def capital(ctx: Context) -> str:
        """Ask the model."""
        try:
            reply = await ctx.sample(
                "What is the capital of France?", max_tokens=100, key="capital_question"
            )
        except PeerError as error:
            return f"{error.code} {error.message} {error.kind}"
        assert isinstance(reply.content, TextContent)
        return f"{reply.model} says {reply.content.text}"

    @app.tool
    async def with_tools(ctx: Context) -> str:
        """Ask the model, which may use tools, and has used one."""
        messages = [
            SamplingMessage(TextContent("How warm is it?"), "user"),
            SamplingMessage(ToolUseContent("use-1", {"city": "Oslo"}, "weather"), "assistant"),
            SamplingMessage(ToolResultContent([TextContent("warm")], "use-1"), "user"),
        ]
        tools = [Tool({"type": "object"}, "weather")]
        reply = await ctx.sample(messages, max_tokens=10, tools=tools, tool_choice="auto")
        return str(reply.stop_reason)

    @app.tool
    async def folders(ctx: Context) -> list[str]:
        """Ask for the folders."""
        return [root.uri for root in await ctx.roots(key="client_roots")]


def add_rounds(app: Server, journal: Journal) -> None:
    @app.tool
    async def three(ctx: Context) -> list[str]:
        """Ask three things of three kinds at once."""
        user, reply, roots = await asyncio.gather(
            ctx.elicit("What is your name?", User, key="user_name"),
            ctx.sample("Greet them.", max_tokens=20, key="greeting"),
            ctx.roots(key="client_roots"),
        )
        assert isinstance(reply.content, TextContent)
        return [user.content.name if user.content else "", reply.content.text, roots[0].uri]

    @app.tool
    async def stepwise(ctx: Context, key: str) -> str:
        """Ask one thing after the other, and do something once in between."""
        journal.write(key, "ran")
        await ctx.progress(1, 2, "asking")
        user = await ctx.elicit("What is your name?", User, key="step1")

        def draw() -> str:
            journal.write(key, "drawn")
            return "ticket-1"

        ticket = await ctx.once("ticket", draw, type=str)
        colour = await ctx.elicit(f"{ticket}: which colour?", str, key="step2")
        await ctx.progress(2, 2, "answered")
        name = user.content.name if user.content else ""
        return f"{name} likes {colour.content} ({ticket})"

    @app.tool
    async def on_and_on(ctx: Context, times: int) -> str:
        """Ask so many times."""
        for number in range(times):
            await ctx.elicit(f"Number {number}?", bool)
        return "enough"

    @app.tool
    async def as_able(ctx: Context) -> list[str]:
        """Ask all that the client can be asked."""
        asked = []
        if ctx.client.supports("elicitation"):
            asked.append(ctx.elicit("What is your name?", User))
        if ctx.client.supports("sampling"):
            asked.append(ctx.sample("Greet them.", max_tokens=20))
        await asyncio.gather(*asked)
        return ["asked"]


def add_others(app: Server) -> None:
    @app.prompt
    async def briefing(ctx: Context) -> str:
        """Ask what it is about."""
        answer = await ctx.elicit("What is it about?", str, key="user_context")
        return f"Say something about {answer.content}."

    @app.resource("note://asked")
    async def asked(ctx: Context) -> str:
        """Ask for a password that is none."""
        answer = await ctx.elicit("Who goes there?", User, key="who")
        return f"for {answer.content.name}" if answer.content else "for nobody"

    @app.completion(prompt="briefing", argument="topic")
    async def topics(typed: str) -> list[str]:
        return [typed]
