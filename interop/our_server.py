"""The menu, as a user of Trunkline would write it.

python -m interop.our_server [REVISION ...] [whole]

Lists have pages of two, or, with "whole", one page.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Literal

from msgspec import Struct

from trunkline import Context, ErrorKind, RequestError, Server, TaskSettings, ToolError
from trunkline.mcp.types import (
    CreateMessageResult,
    EmbeddedResource,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolUseContent,
)
from trunkline.spec.revisions import REVISIONS

from .menu import HELLO, INSTRUCTIONS, LINK, PAGE, PIXEL, SOUND, STYLES

WHOLE = "whole"
app = Server(
    "ours",
    version="1.0.0",
    title="The menu",
    instructions=INSTRUCTIONS,
    revisions=[each for each in sys.argv[1:] if each != WHOLE] or REVISIONS,
    page_size=100 if WHOLE in sys.argv else 2,
    # So short that the checks need not wait long.
    tasks=TaskSettings(poll_interval=0.1),
)
given_up_calls = 0
tickets = 0


class Forecast(Struct):
    """What the weather will be."""

    city: str
    days: list[str]


class City(Struct):
    """Where to."""

    city: str


class Trip(Struct):
    """A form with a field of each kind that every revision has."""

    day: Literal["Friday", "Sunday"]
    persons: int
    price: float
    breakfast: bool
    city: str = "Bergen"


class Room(Struct):
    """A form of which several things can be chosen."""

    extras: list[Literal["sauna", "dog", "view"]]


class Sure(Struct):
    """Whether the user means it."""

    sure: bool


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
    """Add a tool, a prompt and a resource."""
    app.add_tool(add, "grown")
    app.add_prompt(plain, "grown")
    app.add_resource(more, "note://grown")
    return "grown"


@app.tool
async def touch() -> str:
    """Say that a note has changed."""
    app.notify_resource_updated("note://hello")
    return "touched"


# -- asking ----------------------------------------------------------------------------------


@app.tool
async def ask_model(ctx: Context) -> str:
    """Ask the model of the client."""
    answer = await ctx.sample("Which way?", max_tokens=10)
    return f"{answer.model} said {_text(answer)}"


@app.tool
async def ask_user(ctx: Context, message: str = "Which city?") -> str:
    """Ask the user of the client."""
    answer = await ctx.elicit(message, City)
    return f"{answer.action} {answer.content and answer.content.city}"


@app.tool
async def ask_roots(ctx: Context) -> str:
    """Ask where the client works."""
    return " ".join(root.uri for root in await ctx.roots())


@app.tool
def ask_page(ctx: Context) -> str:
    """Send the user to a page, from a thread."""
    return ctx.elicit_url("Pay here.", PAGE).wait().action


@app.tool
async def ask_form(ctx: Context) -> str:
    """Have the user fill in a form with a field of each kind."""
    trip = (await ctx.elicit("Which trip?", Trip)).content
    assert trip is not None
    return f"{trip.day} {trip.persons} {trip.price} {trip.breakfast} {trip.city}"


@app.tool
async def ask_choices(ctx: Context) -> str:
    """Have the user choose several."""
    room = (await ctx.elicit("Which extras?", Room)).content
    assert room is not None
    return " ".join(room.extras)


@app.tool
async def ask_often(ctx: Context) -> str:
    """Ask one thing after the other, and sell one ticket."""
    city = (await ctx.elicit("Which city?", City)).content
    assert city is not None
    ticket = await ctx.once("ticket", _sold, type=int)
    said = await ctx.sample(f"What is {city.city}?", max_tokens=10)
    sure = await ctx.elicit("Are you sure?", Sure)
    return f"{city.city}: {_text(said)} {sure.action}, {ticket} sold"


@app.tool
async def ask_together(ctx: Context) -> str:
    """Ask three things at once."""
    asked = (
        ctx.elicit("Which city?", City),
        ctx.sample("Which way?", max_tokens=10),
        ctx.roots(),
    )
    city, said, roots = await asyncio.gather(*asked)
    return f"{city.content.city} {_text(said)} {roots[0].uri}"


@app.tool
async def ask_tool(ctx: Context) -> str:
    """Have the model of the client use a tool."""
    said = await ctx.sample("Is it raining?", max_tokens=10, tools=[forecast])
    blocks = said.content if isinstance(said.content, list) else [said.content]
    (use,) = (block for block in blocks if isinstance(block, ToolUseContent))
    return f"{said.stop_reason} {use.name} {use.input['city']}"


def _text(answer: CreateMessageResult) -> str:
    assert isinstance(answer.content, TextContent)
    return answer.content.text


def _sold() -> int:
    global tickets
    tickets += 1
    return tickets


@app.tool
def pay_first() -> str:
    """Refuse, until the user has been to a page."""
    page = {"mode": "url", "message": "Pay here.", "url": PAGE, "elicitationId": "page-1"}
    raise RequestError(
        ErrorKind.URL_ELICITATION_REQUIRED, "There is a price.", data={"elicitations": [page]}
    )


# -- long work -------------------------------------------------------------------------------


@app.tool(task="optional")
async def brew(cups: int) -> str:
    """Take longer than a moment, so that it is a task."""
    await asyncio.sleep(0.2)
    return f"{cups} cups"


@app.tool(task="optional")
async def brew_asking(ctx: Context) -> str:
    """Ask in the middle."""
    city = (await ctx.elicit("Which city?", City)).content
    said = await ctx.sample("Which way?", max_tokens=10)
    return f"{city and city.city} {_text(said)}"


@app.tool(task="optional")
async def brew_failing() -> str:
    """Fail in the end, and not at once."""
    await asyncio.sleep(0.2)
    raise ToolError("no beans")


@app.tool(task="optional")
async def brew_slow() -> str:
    """Take half a minute, if nobody minds."""
    global given_up_calls
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        given_up_calls += 1
        raise
    return "at last"


# -- the rest ----------------------------------------------------------------------------------


@app.tool
def who(ctx: Context) -> str:
    """Tell who is asking, in which revision."""
    return f"{ctx.client.name} {ctx.revision}"


# -- ours alone -------------------------------------------------------------------------------


@app.tool
async def ask_steps(ctx: Context) -> str:
    """Report each step, with a question after each."""
    for step in (1, 2, 3):
        await ctx.progress(step, 3, f"step {step}")
        await ctx.log("warning", f"this is {step}", "steps")
        await ctx.elicit(f"Step {step}?", Sure)
    return "3 steps"


@app.tool(task="optional", task_start="handler")
async def brew_later(ctx: Context) -> str:
    """Ask, become a task, and ask again."""
    city = await ctx.elicit("Which city?", City)
    is_task = await ctx.become_task()
    sure = await ctx.elicit("Are you sure?", Sure)
    return f"{city.content and city.content.city} {is_task} {sure.action}"


@app.tool(task="required")
async def brew_only() -> str:
    """Be a task, or nothing."""
    return "brewed"


@app.tool
def leave() -> str:
    """End the server."""
    app.stop()
    return "left"


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


@app.resource("safe://{name}")
async def safe(ctx: Context, name: str) -> str:
    """Give what is in a safe, if the user agrees."""
    answer = await ctx.elicit(f"Open {name}?", Sure)
    return f"{name}: {answer.action}"


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


@app.prompt
async def guide(ctx: Context) -> str:
    """Ask for a guide to a city that the user names."""
    answer = await ctx.elicit("Which city?", City)
    return f"Guide me through {answer.content and answer.content.city}."


@app.completion(prompt="review", argument="style")
def styles(typed: str) -> list[str]:
    """Complete a style."""
    return [each for each in STYLES if each.startswith(typed)]


@app.completion(resource="city://{name}", argument="name")
def cities(typed: str) -> list[str]:
    """Complete the name of a city."""
    return [each for each in ("Oslo", "Ottawa", "Rome") if each.startswith(typed)]


if __name__ == "__main__":
    app.run()
