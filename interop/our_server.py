"""The menu, as a user of Trunkline would write it.

python -m interop.our_server [REVISION ...]
"""

from __future__ import annotations

import asyncio
import sys

from msgspec import Struct

from trunkline import Context, Server, ToolError
from trunkline.mcp.types import (
    CreateMessageRequestParams,
    EmbeddedResource,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    SamplingMessage,
    TextContent,
)
from trunkline.spec.revisions import REVISIONS

from .menu import HELLO, INSTRUCTIONS, LINK, PIXEL, SOUND, STYLES

app = Server(
    "ours",
    version="1.0.0",
    title="The menu",
    instructions=INSTRUCTIONS,
    revisions=sys.argv[1:] or REVISIONS,
    page_size=2,
)
given_up_calls = 0


class Forecast(Struct):
    """What the weather will be."""

    city: str
    days: list[str]


@app.tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@app.tool(inline=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
async def forecast(city: str, days: int = 2) -> Forecast:
    """Say what the weather will be."""
    return Forecast(city, ["sun"] * days)


@app.tool
def picture() -> bytes:
    """Show a pixel."""
    return PIXEL


@app.tool
def sound() -> bytes:
    """Play nothing."""
    return SOUND


@app.tool
def link() -> ResourceLink:
    """Point at an atlas."""
    return ResourceLink("atlas", LINK, title="An atlas")


@app.tool
def embedded() -> EmbeddedResource:
    """Hand over a note."""
    return EmbeddedResource(ResourceContents("note://hello", text=HELLO, mime_type="text/plain"))


@app.tool
def fails() -> str:
    """Fail, and say why."""
    raise ToolError("no luck today")


@app.tool
async def steps(ctx: Context, count: int) -> str:
    """Report each step."""
    for step in range(count):
        await ctx.progress(step + 1, count, f"step {step + 1}")
    return f"{count} steps"


@app.tool
async def chatter(ctx: Context) -> str:
    """Log a line on each of four levels."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, f"this is {level}", "chatter")
    return "said"


@app.tool
async def slow(ctx: Context) -> str:
    """Take half a minute, and say when that begins."""
    global given_up_calls
    await ctx.progress(0)
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        given_up_calls += 1
        raise
    return "at last"


@app.tool
def given_up() -> int:
    """Tell how many slow calls were given up."""
    return given_up_calls


@app.tool
async def grow() -> str:
    """Add a tool."""
    app.add_tool("grown", add)
    return "grown"


@app.tool
async def touch() -> str:
    """Say that a note has changed."""
    app.notify_resource_updated("note://hello")
    return "touched"


@app.tool
async def ask_model(ctx: Context) -> str:
    """Ask the model of the client."""
    asked = CreateMessageRequestParams(10, [SamplingMessage(TextContent("Which way?"), "user")])
    answer = await ctx.request("sampling/createMessage", asked, timeout=5)
    return f"{answer.model} said {answer.content.text}"


@app.tool
async def ask_user(ctx: Context) -> str:
    """Ask the user of the client."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    params = {"message": "Which city?", "requestedSchema": schema}
    answer = await ctx.request("elicitation/create", params, timeout=5)
    return f"{answer.action} {answer.content}"


@app.tool
async def ask_roots(ctx: Context) -> str:
    """Ask where the client works."""
    answer = await ctx.request("roots/list", timeout=5)
    return " ".join(root.uri for root in answer.roots)


@app.tool
def who(ctx: Context) -> str:
    """Tell who is asking, in which revision."""
    return f"{ctx.client.name} {ctx.revision}"


@app.resource("note://hello", mime_type="text/plain")
def hello() -> str:
    """Greet."""
    return HELLO


@app.resource("note://pixel", mime_type="image/png")
def pixel() -> bytes:
    """Show a pixel."""
    return PIXEL


@app.resource("note://more")
def more() -> list[ResourceContents]:
    """Give two things at once."""
    return [
        ResourceContents("note://more/1", text="one"),
        ResourceContents("note://more/2", blob="Mg=="),
    ]


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


@app.prompt
def review(code: str, style: str = "short") -> str:
    """Ask for a review."""
    return f"Review this in {style} form: {code}"


@app.prompt
def greet(name: str) -> list[PromptMessage]:
    """Greet, and be greeted."""
    return [
        PromptMessage(TextContent(f"I am {name}."), "user"),
        PromptMessage(TextContent(HELLO), "assistant"),
    ]


@app.prompt
def plain() -> str:
    """Ask nothing in particular."""
    return "Go on."


@app.complete(prompt="review", argument="style")
def styles(typed: str) -> list[str]:
    """Complete a style."""
    return [each for each in STYLES if each.startswith(typed)]


@app.complete(resource="city://{name}", argument="name")
def cities(typed: str) -> list[str]:
    """Complete the name of a city."""
    return [each for each in ("Oslo", "Ottawa", "Rome") if each.startswith(typed)]


if __name__ == "__main__":
    app.run()
