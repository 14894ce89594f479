"""A chatbot: a client of several servers whose model decides which tools to call.

The model is a function: what it returns is a call of a tool, or an answer for the user. The one
here follows a script. `make` offers the chatbot as a server itself, with the tool `chat`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.ports.servers import database, files, notes
from trunkline import Client, Context, PeerError, Server, TransportError
from trunkline.mcp import Tool


class UseTool(NamedTuple):
    """What a model returns to have a tool called; `server.tool` is its name."""

    name: str
    arguments: dict[str, Any]


class Message(NamedTuple):
    """A line of the conversation."""

    role: str
    text: str


Model = Callable[[list[Message], Mapping[str, Tool]], UseTool | str]


class Chatbot:
    """A conversation with a model that has the tools of all servers."""

    def __init__(self, servers: Mapping[str, Any], model: Model, **options: Any) -> None:
        self.servers, self.model, self.options = servers, model, options
        self.clients: dict[str, Client] = {}
        self.tools: dict[str, Tool] = {}
        self.failed: dict[str, str] = {}
        self.messages: list[Message] = []

    async def __aenter__(self) -> Chatbot:
        async with AsyncExitStack() as stack:
            for name, target in self.servers.items():
                try:
                    client = await stack.enter_async_context(Client(target, **self.options))
                except TransportError as error:
                    self.failed[name] = str(error)  # the others are of use without it
                    continue
                self.clients[name] = client
                self.tools |= {f"{name}.{tool.name}": tool for tool in await client.list_tools()}
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def ask(self, question: str, most_calls: int = 8) -> str:
        """Return what the model answers after it has called the tools that it wants."""
        self.messages.append(Message("user", question))
        for _ in range(most_calls):
            step = self.model(self.messages, self.tools)
            if isinstance(step, str):
                self.messages.append(Message("assistant", step))
                return step
            self.messages.append(Message("tool", await self._use(step)))
        return "I could not find out."

    async def _use(self, step: UseTool) -> str:
        server, _, tool = step.name.partition(".")
        if step.name not in self.tools:
            return f"There is no tool {step.name}."
        try:
            result = await self.clients[server].call_tool(tool, step.arguments)
        except PeerError as error:
            return f"refused: {error.message}"
        return f"failed: {result.text}" if result.is_error else result.text


def scripted(script: Mapping[str, list[UseTool | str]]) -> Model:
    """Return a model with a script for each question; `{}` in an answer is the last result."""

    def model(messages: list[Message], tools: Mapping[str, Tool]) -> UseTool | str:
        asked = max(at for at, message in enumerate(messages) if message.role == "user")
        step = script[messages[asked].text][len(messages) - asked - 1]
        return step.format(messages[-1].text) if isinstance(step, str) else step

    return model


SCRIPT: dict[str, list[UseTool | str]] = {
    "Note the price of skis.": [
        UseTool("database.insert_goods", {"goods": {"skis": 300}}),
        UseTool("database.query", {"sql": "SELECT price FROM goods WHERE name = 'skis'"}),
        UseTool("files.write_file", {"path": "prices.txt", "text": "skis 300"}),
        UseTool("notes.add_note", {"text": "skis 300"}),
        UseTool("files.read_file", {"path": "prices.txt"}),
        "Noted: {}.",
    ],
    "What is outside?": [UseTool("files.read_file", {"path": "../../x"}), "I cannot see: {}"],
    "What is the weather?": [UseTool("weather.now", {}), "{}"],
    "Count to ten.": [UseTool("database.query", {"sql": "DROP TABLE goods", "x": 1})] * 10,
}


def make(folder: Path) -> Server:
    """Return a server whose tool `chat` asks a chatbot, which has three servers of its own."""

    @asynccontextmanager
    async def lifespan(app: Server) -> AsyncGenerator[Chatbot, None]:
        servers = {each.__name__.rpartition(".")[2]: each for each in (files, database, notes)}
        targets = {name: module.make(folder) for name, module in servers.items()}
        async with Chatbot(targets, scripted(SCRIPT)) as chatbot:
            yield chatbot

    app = Server("chatbot", version="1.0.0", lifespan=lifespan)

    @app.tool
    async def chat(ctx: Context[Chatbot], question: str) -> str:
        """Ask the chatbot."""
        return await ctx.state.ask(question)

    @app.resource("chat://transcript")
    async def transcript(ctx: Context[Chatbot]) -> str:
        """Everything that was said so far."""
        return "\n".join(f"{each.role}: {each.text}" for each in ctx.state.messages)

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        make(Path(here)).run()
