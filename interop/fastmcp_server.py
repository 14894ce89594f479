"""The short menu, as a user of FastMCP would write it."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.server.event_store import EventStore
from fastmcp.utilities.types import Image
from mcp.shared.exceptions import MCPDeprecationWarning

from . import official_questions as questions
from .menu import HELLO, INSTRUCTIONS, PIXEL, STYLES

# Sampling and roots still have to work for those who use them.
warnings.simplefilter("ignore", MCPDeprecationWarning)

app = FastMCP("theirs, fast", instructions=INSTRUCTIONS, version="1.0.0")
given_up_calls = 0


@dataclass
class Forecast:
    """What the weather will be."""

    city: str
    days: list[str]


@dataclass
class City:
    """Where to."""

    city: str


@dataclass
class Trip:
    """A form with a field of each kind that every revision has."""

    day: Literal["Friday", "Sunday"]
    persons: int
    price: float
    breakfast: bool
    city: str = "Bergen"


@app.tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def forecast(city: str) -> Forecast:
    """Say what the weather will be."""
    return Forecast(city, ["sun", "sun"])


@app.tool
def picture() -> Image:
    """Show a pixel."""
    return Image(data=PIXEL, format="png")


@app.tool
def fails() -> str:
    """Fail, and say why."""
    raise ToolError("no luck today")


@app.tool
async def steps(ctx: Context, count: int) -> str:
    """Report each step."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
    return f"{count} steps"


@app.tool
async def chatter(ctx: Context) -> str:
    """Log a line on each of four levels."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(f"this is {level}", level, "chatter")
    return "said"


@app.tool
async def slow(ctx: Context) -> str:
    """Take half a minute, and say when that begins."""
    global given_up_calls
    await ctx.report_progress(0)
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
async def cut(ctx: Context) -> str:
    """End the stream before the result, which the client has to come back for."""
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return "whole"


# FastMCP asks the user by `ctx.elicit` with a handshake only: the two eras are written apart.


@app.tool
async def ask_model(ctx: Context) -> Any:
    """Ask the model of the client."""
    asked = questions.model("Which way?")
    if _is_handshake(ctx):
        answer = await ctx.session.create_message(asked.params.messages, max_tokens=10)
    elif not ctx.input_responses:
        return types.InputRequiredResult(input_requests={"model": asked})
    else:
        answer = ctx.input_responses["model"]
    return f"{answer.model} said {answer.content.text}"


@app.tool
async def ask_user(ctx: Context, message: str) -> Any:
    """Ask the user of the client."""
    if _is_handshake(ctx):
        answer = await ctx.elicit(message, City)
        found = answer.data.city if isinstance(answer, AcceptedElicitation) else None
        return f"{answer.action} {found}"
    if not ctx.input_responses:
        asked = questions.form(message, questions.CITY)
        return types.InputRequiredResult(input_requests={"city": asked})
    given = ctx.input_responses["city"]
    return f"{given.action} {given.content['city'] if given.content else None}"


@app.tool
async def ask_form(ctx: Context) -> Any:
    """Have the user fill in a form with a field of each kind."""
    if _is_handshake(ctx):
        trip = (await ctx.elicit("Which trip?", Trip)).data
    elif not ctx.input_responses:
        asked = questions.form("Which trip?", questions.TRIP)
        return types.InputRequiredResult(input_requests={"trip": asked})
    else:
        trip = Trip(**ctx.input_responses["trip"].content)
    return f"{trip.day} {trip.persons} {trip.price} {trip.breakfast} {trip.city}"


@app.tool
async def ask_roots(ctx: Context) -> Any:
    """Ask where the client works."""
    if _is_handshake(ctx):
        answer = await ctx.session.list_roots()
    elif not ctx.input_responses:
        return types.InputRequiredResult(input_requests={"roots": questions.roots()})
    else:
        answer = ctx.input_responses["roots"]
    return " ".join(str(root.uri) for root in answer.roots)


@app.tool
def who(ctx: Context) -> str:
    """Tell who is asking, in which revision."""
    params = ctx.session.client_params
    return f"{params.client_info.name if params else ''} {ctx.request_context.protocol_version}"


def _is_handshake(ctx: Context) -> bool:
    return bool(ctx.request_context.protocol_version != "2026-07-28")


@app.resource("note://hello", mime_type="text/plain")
def hello() -> str:
    """Greet."""
    return HELLO


@app.resource("note://pixel", mime_type="image/png")
def pixel() -> bytes:
    """Show a pixel."""
    return PIXEL


@app.resource("city://{name}")
def city(name: str) -> str:
    """Tell of a city."""
    return f"{name} is a city."


@app.prompt
def review(code: str, style: str = "short") -> str:
    """Ask for a review."""
    return f"Review this in {style} form: {code}"


@app.prompt
def greet(name: str) -> list[Message]:
    """Greet, and be greeted."""
    return [Message(f"I am {name}."), Message(HELLO, role="assistant")]


@app.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str]:
    """Complete a style, or the name of a city."""
    choices = STYLES if isinstance(ref, types.PromptReference) else ("Oslo", "Ottawa", "Rome")
    return [each for each in choices if each.startswith(argument.value)]


def http_app() -> Any:
    """Return an application that serves HTTP, with streams that can be resumed."""
    return app.http_app(event_store=EventStore(), retry_interval=50)
