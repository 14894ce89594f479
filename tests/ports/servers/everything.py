"""Something of everything: content of each kind, progress, logs, completions, prompts, tasks."""

from __future__ import annotations

import asyncio
import enum
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

import trunkline as tl
from trunkline import Context, Server, mcp

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "

app = Server(
    "everything",
    version="1.0.0",
    title="Everything",
    instructions="Call anything.",
    cache=tl.CacheHint(60),
    page_size=5,
    tasks=tl.TaskSettings(poll_interval=0.1),
)


class Unit(enum.Enum):
    """What a temperature is measured in."""

    CELSIUS, KELVIN = "celsius", "kelvin"


class Weather(Struct):
    """How it is somewhere."""

    city: str
    degrees: float
    unit: Unit
    day: date


@app.tool(title="Echo")
def echo(message: str) -> str:
    """Return the message."""
    return f"Echo: {message}"


@app.tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@app.tool
def weather(
    city: str,
    day: date = date(2026, 7, 28),
    unit: Annotated[Unit, "celsius or kelvin"] = Unit.CELSIUS,
) -> tl.ToolOutput[Weather]:
    """Return a structured value, and a sentence for models."""
    degrees = 21.5 if unit is Unit.CELSIUS else 294.65
    return tl.ToolOutput(Weather(city, degrees, unit, day), text=f"{degrees} degrees in {city}")


@app.tool
def contents() -> list[mcp.ContentBlock | tl.Image | tl.Audio | tl.File]:
    """Return content of each kind."""
    return [
        mcp.TextContent("a text"),
        tl.Image(data=PNG),
        tl.Audio(data=WAV),
        tl.File(data=b"a,b\n1,2\n", name="table.csv"),
        mcp.EmbeddedResource(
            mcp.ResourceContents("demo://text", text="inside", mime_type="text/plain")
        ),
        mcp.ResourceLink(name="text", uri="demo://text"),
    ]


@app.tool
async def long_operation(ctx: Context, steps: Annotated[int, Meta(ge=1, le=20)] = 3) -> str:
    """Report progress, and log each step."""
    for step in range(1, steps + 1):
        await ctx.progress(step, steps, f"step {step}")
        await ctx.log("info", {"step": step}, logger="work")
    return f"{steps} steps"


@app.tool(task="optional")
async def research(ctx: Context, topic: str) -> str:
    """Take long enough to become a task, and ask which way to go."""
    answer = await ctx.elicit(f"Which side of {topic}?", str, key="side")
    await asyncio.sleep(0.1)
    return f"{topic}: {answer.content if answer else 'all sides'}"


@app.tool
async def who_is_there(ctx: Context) -> dict[str, Any]:
    """Return what the server knows of its client."""
    folders = [root.uri for root in await ctx.roots()] if ctx.client.supports("roots") else None
    return {"revision": ctx.revision, "roots": folders}


@app.tool
def fail(how: str) -> str:
    """Fail in one of three ways."""
    if how == "tool":
        raise tl.ToolError("It did not work.")
    if how == "request":
        raise tl.RequestError("INVALID_PARAMS", "Not like this", data={"how": how})
    raise RuntimeError("a secret of the server")


@app.resource("demo://text", title="A text")
def text() -> str:
    return "plain"


@app.resource("demo://picture", mime_type="image/png")
def picture() -> bytes:
    return PNG


@app.resource("demo://numbers/{number}{?digits}", mime_type="application/json")
def number(number: int, digits: int = 0) -> dict[str, Any]:
    return {"number": round(number + 0.5, digits) if digits else number}


@app.prompt
def plain() -> str:
    """Say one thing."""
    return "Hello."


@app.prompt(title="Travel")
def travel(city: str, days: int = 2) -> list[tl.UserMessage | tl.AssistantMessage]:
    """Say several things, a picture among them."""
    return [
        tl.UserMessage(f"{days} days in {city}?"),
        tl.AssistantMessage("Look at this."),
        tl.UserMessage(tl.Image(data=PNG)),
    ]


@app.completion(prompt="travel", argument="city")
def cities(typed: str) -> list[str]:
    return [city for city in ("Oslo", "Odda", "Bergen") if city.startswith(typed)]


@app.completion(prompt="travel", argument="days")
def days(typed: str, known: dict[str, str]) -> list[str]:
    return ["1", "2"] if known.get("city") == "Odda" else ["7"]


def make(folder: Path) -> Server:
    """Return the server, which keeps nothing."""
    return app


if __name__ == "__main__":
    app.run()
