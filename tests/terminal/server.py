"""A server with something of everything that the command line shows.

It writes its process id to the file that PIDFILE names, so that a test can see that it is gone.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from trunkline import Context, Server, ToolError
from trunkline.mcp import ResourceLink, TextContent

if "PIDFILE" in os.environ:
    Path(os.environ["PIDFILE"]).write_text(str(os.getpid()))

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)

app = Server("demo", version="1.0", instructions="Use it well.\n\nThere is more to say.")


class Place(Struct):
    """Where something is."""

    lat: float
    lon: float = 0.0


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def forecast(
    city: Annotated[str, Meta(description="the city to look at")],
    days: int = 1,
    detail: Literal["short", "full"] = "short",
    tags: list[str] | None = None,
    place: Place | None = None,
    is_dry: bool = False,
) -> dict[str, Any]:
    """Say how the weather will be, in a city of which this is a rather long description."""
    at = None if place is None else [place.lat, place.lon]
    return {
        "city": city,
        "days": days,
        "detail": detail,
        "tags": tags,
        "place": at,
        "is_dry": is_dry,
    }


@app.tool(deprecated="use add.")
def plus(a: int, b: int) -> int:
    """Add two numbers, as before."""
    return a + b


@app.tool
def login(user: str, password: int) -> str:
    """Take a secret."""
    return user


@app.tool
def draw() -> bytes:
    """Draw a picture."""
    return PNG


@app.tool
def point() -> ResourceLink:
    """Point to a resource."""
    return ResourceLink("notes", "demo://notes")


@app.tool
def shout() -> TextContent:
    """Try to paint the terminal red."""
    return TextContent("\x1b[31mred\x07\r\nnext")


@app.tool
def fail() -> str:
    """Fail."""
    raise ToolError("the sky is \x1b[1mfalling")


@app.tool
def look(name: str) -> str:
    """Return what the environment has under a name."""
    return os.environ.get(name, "nothing")


@app.tool
async def warn(ctx: Context) -> str:
    """Write to the log."""
    ctx.log("info", "all is well")
    ctx.log("warning", "rain is coming")
    print("a line on stderr", file=sys.stderr, flush=True)
    return "told"


@app.tool
async def count(
    ctx: Context, steps: int, wait: float = 0.1, has_total: bool = True, word: str = "step"
) -> str:
    """Count, and say how far it has come."""
    for step in range(1, steps + 1):
        await ctx.progress(step, steps if has_total else None, f"{word} {step}")
        await asyncio.sleep(wait)
    return "counted"


@app.tool
async def pause() -> str:
    """Wait without a word."""
    await asyncio.sleep(60)
    return "waited"


class Order(Struct):
    """What to order."""

    name: Annotated[str, Meta(title="Your name", description="as on the door")]
    size: Literal["small", "large"]
    number: Annotated[int, Meta(ge=1, le=9)] = 2
    gift: bool = False


@app.tool
async def order(ctx: Context) -> str:
    """Ask what to order."""
    answer = await ctx.elicit("What may it \x1b[1mbe?", Order)
    if answer.action != "accept":
        return answer.action
    given = answer.content
    return f"{given.name} {given.size} {given.number} {given.gift}"


class Pin(Struct):
    """A secret."""

    password: str


@app.tool
async def unlock(ctx: Context) -> str:
    """Ask for a secret."""
    answer = await ctx.elicit("The word?", Pin)
    return "open" if answer.action == "accept" else answer.action


@app.tool
async def pay(ctx: Context) -> str:
    """Send the user to a page."""
    return (await ctx.elicit_url("Pay here", "https://pay.example/7?to=demo")).action


@app.tool
async def folders(ctx: Context) -> list[str]:
    """Return the roots."""
    return [each.uri for each in await ctx.roots()]


@app.resource("demo://notes")
def notes() -> str:
    """Return some notes."""
    return "one\ntwo\x1b[2J"


@app.resource("demo://picture.png", mime_type="image/png")
def picture() -> bytes:
    """Return a picture."""
    return PNG


@app.resource("demo://city/{name}")
def city(name: str) -> str:
    """Return what is known of a city."""
    return f"{name} is a city"


@app.prompt
def report(city: str, style: str = "dry") -> str:
    """Ask for a report."""
    return f"Write a {style} report about {city}"


if __name__ == "__main__":
    app.run(*sys.argv[1:])
