"""The menu, as a user of the official SDK would write it with `MCPServer`."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import (
    AssistantMessage,
    Audio,
    Context,
    Image,
    MCPServer,
    Message,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel

from .menu import HELLO, INSTRUCTIONS, LINK, PIXEL, SOUND, STYLES

# Logging, sampling and roots still have to work for those who use them.
warnings.simplefilter("ignore", MCPDeprecationWarning)

app = MCPServer("theirs", version="1.0.0", title="The menu", instructions=INSTRUCTIONS)
given_up_calls = 0


class Forecast(BaseModel):
    """What the weather will be."""

    city: str
    days: list[str]


class Answer(BaseModel):
    """What a user is asked for."""

    city: str


@app.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@app.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
async def forecast(city: str, days: int = 2) -> Forecast:
    """Say what the weather will be."""
    return Forecast(city=city, days=["sun"] * days)


@app.tool()
def picture() -> Image:
    """Show a pixel."""
    return Image(data=PIXEL, format="png")


@app.tool()
def sound() -> Audio:
    """Play nothing."""
    return Audio(data=SOUND, format="wav")


@app.tool()
def link() -> types.ResourceLink:
    """Point at an atlas."""
    return types.ResourceLink(name="atlas", uri=LINK, title="An atlas")


@app.tool()
def embedded() -> types.EmbeddedResource:
    """Hand over a note."""
    note = types.TextResourceContents(uri="note://hello", text=HELLO, mime_type="text/plain")
    return types.EmbeddedResource(resource=note)


@app.tool()
def fails() -> str:
    """Fail, and say why."""
    raise ToolError("no luck today")


@app.tool()
async def steps(ctx: Context[Any, Any], count: int) -> str:
    """Report each step."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
    return f"{count} steps"


@app.tool()
async def chatter(ctx: Context[Any, Any]) -> str:
    """Log a line on each of four levels."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, f"this is {level}", logger_name="chatter")
    return "said"


@app.tool()
async def slow(ctx: Context[Any, Any]) -> str:
    """Take half a minute, and say when that begins."""
    global given_up_calls
    await ctx.report_progress(0)
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        given_up_calls += 1
        raise
    return "at last"


@app.tool()
def given_up() -> int:
    """Tell how many slow calls were given up."""
    return given_up_calls


@app.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Add a tool."""
    app.add_tool(add, name="grown")
    await ctx.session.send_tool_list_changed()
    return "grown"


@app.tool()
async def touch(ctx: Context[Any, Any]) -> str:
    """Say that a note has changed."""
    await ctx.session.send_resource_updated("note://hello")
    return "touched"


@app.tool()
async def ask_model(ctx: Context[Any, Any]) -> str:
    """Ask the model of the client."""
    asked = types.SamplingMessage(role="user", content=types.TextContent(text="Which way?"))
    answer = await ctx.session.create_message([asked], max_tokens=10)
    return f"{answer.model} said {answer.content.text}"


@app.tool()
async def ask_user(ctx: Context[Any, Any]) -> str:
    """Ask the user of the client."""
    answer = await ctx.elicit("Which city?", Answer)
    return f"{answer.action} {answer.data.model_dump() if answer.action == 'accept' else None}"


@app.tool()
async def ask_roots(ctx: Context[Any, Any]) -> str:
    """Ask where the client works."""
    answer = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in answer.roots)


@app.tool()
def who(ctx: Context[Any, Any]) -> str:
    """Tell who is asking, in which revision."""
    params = ctx.session.client_params
    return f"{params.client_info.name if params else ''} {ctx.protocol_version}"


@app.resource("note://hello", mime_type="text/plain")
def hello() -> str:
    """Greet."""
    return HELLO


@app.resource("note://pixel", mime_type="image/png")
def pixel() -> bytes:
    """Show a pixel."""
    return PIXEL


@app.resource("note://more")
def more() -> str:
    """Give more."""
    return "more"


@app.resource("city://{name}")
def city(name: str) -> str:
    """Tell of a city."""
    return f"{name} is a city."


@app.resource("street://{city}/{street}")
def street(city: str, street: str) -> str:
    """Tell of a street."""
    return f"{street} is in {city}."


@app.resource("year://{year}")
def year(year: int) -> str:
    """Tell of a year."""
    return f"{year} was long."


@app.prompt()
def review(code: str, style: str = "short") -> str:
    """Ask for a review."""
    return f"Review this in {style} form: {code}"


@app.prompt()
def greet(name: str) -> list[Message]:
    """Greet, and be greeted."""
    return [UserMessage(f"I am {name}."), AssistantMessage(HELLO)]


@app.prompt()
def plain() -> str:
    """Ask nothing in particular."""
    return "Go on."


@app.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion | None:
    """Complete a style, or the name of a city."""
    choices = STYLES if isinstance(ref, types.PromptReference) else ("Oslo", "Ottawa", "Rome")
    return types.Completion(values=[each for each in choices if each.startswith(argument.value)])


if __name__ == "__main__":
    app.run()
