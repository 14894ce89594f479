"""The menu, as a user of the official SDK would write it with `MCPServer`."""

from __future__ import annotations

import asyncio
import warnings
from typing import Annotated, Any, Literal

import mcp_types as types
from mcp.server.mcpserver import (
    AcceptedElicitation,
    AssistantMessage,
    Audio,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Message,
    Resolve,
    Sample,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import Prompt
from mcp.server.mcpserver.resources import FunctionResource
from mcp.shared.exceptions import MCPDeprecationWarning, UrlElicitationRequiredError
from pydantic import BaseModel

from . import official_questions as questions
from .menu import HELLO, INSTRUCTIONS, LINK, PAGE, PIXEL, SOUND, STYLES
from .official_tasks import TaskServing

# Logging, sampling and roots still have to work for those who use them.
warnings.simplefilter("ignore", MCPDeprecationWarning)

given_up_calls = 0
tickets = 0


def _give_up() -> None:
    global given_up_calls
    given_up_calls += 1


app = MCPServer(
    "theirs",
    version="1.0.0",
    title="The menu",
    instructions=INSTRUCTIONS,
    extensions=[TaskServing(_give_up)],
)


class Forecast(BaseModel):
    """What the weather will be."""

    city: str
    days: list[str]


class City(BaseModel):
    """Where to."""

    city: str


class Trip(BaseModel):
    """A form with a field of each kind that every revision has."""

    day: Literal["Friday", "Sunday"]
    persons: int
    price: float
    breakfast: bool = True
    city: str = "Bergen"


class Room(BaseModel):
    """A form of which several things can be chosen."""

    extras: list[Literal["sauna", "dog", "view"]]


class Sure(BaseModel):
    """Whether the user means it."""

    sure: bool


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
    await ctx.report_progress(0)
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        _give_up()
        raise
    return "at last"


@app.tool()
def given_up() -> int:
    """Tell how many slow calls were given up."""
    return given_up_calls


@app.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Add a tool, a prompt and a resource, and say so in the way of either era."""
    app.add_tool(add, name="grown")
    app.add_prompt(Prompt.from_function(plain, name="grown"))
    app.add_resource(FunctionResource.from_function(more, uri="note://grown", name="grown"))
    await ctx.session.send_tool_list_changed()
    await ctx.session.send_prompt_list_changed()
    await ctx.session.send_resource_list_changed()
    await ctx.notify_tools_changed()
    await ctx.notify_prompts_changed()
    await ctx.notify_resources_changed()
    return "grown"


@app.tool()
async def touch(ctx: Context[Any, Any]) -> str:
    """Say that a note has changed, in the way of either era."""
    await ctx.session.send_resource_updated("note://hello")
    await ctx.notify_resource_updated("note://hello")
    return "touched"


# -- asking ----------------------------------------------------------------------------------

# The SDK asks in both eras by what it calls resolvers, which give the questions, one after the
# other or together. For what they do not have the two eras are written apart.


def _asks_city() -> Elicit[City]:
    return Elicit("Which city?", City)


def _asks_user(message: str) -> Elicit[City]:
    return Elicit(message, City)


def _asks_trip() -> Elicit[Trip]:
    return Elicit("Which trip?", Trip)


def _asks_room() -> Elicit[Room]:
    return Elicit("Which extras?", Room)


def _asks_way() -> Sample:
    return Sample([_message("Which way?")], max_tokens=10)


def _asks_weather() -> Sample:
    return Sample([_message("Is it raining?")], max_tokens=10, tools=[questions.WEATHER])


def _asks_roots() -> ListRoots:
    return ListRoots()


def _asks_about(city: Annotated[City, Resolve(_asks_city)]) -> Sample:
    return Sample([_message(f"What is {city.city}?")], max_tokens=10)


def _asks_if_sure(said: Annotated[Any, Resolve(_asks_about)]) -> Elicit[Sure]:
    return Elicit("Are you sure?", Sure)


def _message(text: str) -> types.SamplingMessage:
    return types.SamplingMessage(role="user", content=types.TextContent(text=text))


@app.tool()
async def ask_model(answer: Annotated[types.CreateMessageResult, Resolve(_asks_way)]) -> str:
    """Ask the model of the client."""
    return f"{answer.model} said {answer.content.text}"


@app.tool()
async def ask_user(
    answer: Annotated[ElicitationResult[City], Resolve(_asks_user)], message: str = "Which city?"
) -> str:
    """Ask the user of the client."""
    found = answer.data.city if isinstance(answer, AcceptedElicitation) else None
    return f"{answer.action} {found}"


@app.tool()
async def ask_roots(answer: Annotated[types.ListRootsResult, Resolve(_asks_roots)]) -> str:
    """Ask where the client works."""
    return " ".join(str(root.uri) for root in answer.roots)


@app.tool()
async def ask_page(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Send the user to a page."""
    if ctx.protocol_version != "2026-07-28":
        answer = await ctx.elicit_url("Pay here.", PAGE, "page-1")
        await ctx.session.send_elicit_complete("page-1")
        return answer.action
    if not ctx.input_responses:
        return types.InputRequiredResult(input_requests={"page": questions.page(None)})
    return str(getattr(ctx.input_responses["page"], "action", None))


@app.tool()
async def ask_form(trip: Annotated[Trip, Resolve(_asks_trip)]) -> str:
    """Have the user fill in a form with a field of each kind."""
    return f"{trip.day} {trip.persons} {trip.price} {trip.breakfast} {trip.city}"


@app.tool()
async def ask_choices(room: Annotated[Room, Resolve(_asks_room)]) -> str:
    """Have the user choose several."""
    return " ".join(room.extras)


@app.tool()
async def ask_often(
    city: Annotated[City, Resolve(_asks_city)],
    said: Annotated[types.CreateMessageResult, Resolve(_asks_about)],
    sure: Annotated[ElicitationResult[Sure], Resolve(_asks_if_sure)],
) -> str:
    """Ask one thing after the other, and sell one ticket."""
    global tickets
    tickets += 1
    return f"{city.city}: {said.content.text} {sure.action}, {tickets} sold"


@app.tool()
async def ask_together(
    city: Annotated[City, Resolve(_asks_city)],
    said: Annotated[types.CreateMessageResult, Resolve(_asks_way)],
    roots: Annotated[types.ListRootsResult, Resolve(_asks_roots)],
) -> str:
    """Ask three things at once."""
    return f"{city.city} {said.content.text} {roots.roots[0].uri}"


@app.tool()
async def ask_tool(
    said: Annotated[types.CreateMessageResultWithTools, Resolve(_asks_weather)],
) -> str:
    """Have the model of the client use a tool."""
    blocks = said.content if isinstance(said.content, list) else [said.content]
    (use,) = (block for block in blocks if isinstance(block, types.ToolUseContent))
    return f"{said.stop_reason} {use.name} {use.input['city']}"


@app.tool()
def pay_first() -> str:
    """Refuse, until the user has been to a page."""
    page = questions.page("page-1").params
    assert isinstance(page, types.ElicitRequestURLParams)
    raise UrlElicitationRequiredError([page])


# -- long work -------------------------------------------------------------------------------

# Where these become tasks, `TaskServing` has taken them over.


@app.tool()
async def brew(cups: int) -> str:
    """Take a moment."""
    return f"{cups} cups"


@app.tool()
async def brew_asking(
    city: Annotated[City, Resolve(_asks_city)],
    said: Annotated[types.CreateMessageResult, Resolve(_asks_way)],
) -> str:
    """Ask in the middle."""
    return f"{city.city} {said.content.text}"


@app.tool()
async def brew_failing() -> str:
    """Fail in the end."""
    raise ToolError("no beans")


@app.tool()
async def brew_slow() -> str:
    """Take half a minute, if nobody minds."""
    await asyncio.sleep(30)
    return "at last"


# -- the rest --------------------------------------------------------------------------------


@app.tool()
def who(ctx: Context[Any, Any]) -> str:
    """Tell who is asking, in which revision."""
    params = ctx.session.client_params
    return f"{params.client_info.name if params else ''} {ctx.protocol_version}"


@app.tool()
def come_back(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Have the client come back, without a question."""
    if ctx.request_state is None and ctx.protocol_version == "2026-07-28":
        return types.InputRequiredResult(request_state="come back")
    return f"back with {ctx.request_state}"


@app.tool()
def ask_forever(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Ask again and again."""
    if ctx.protocol_version != "2026-07-28":
        return "not here"
    asked = questions.form("Which city?", questions.CITY)
    return types.InputRequiredResult(input_requests={"city": asked}, request_state="again")


@app.tool()
async def ask_anyway(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Ask the user, whatever the client declared."""
    if ctx.protocol_version != "2026-07-28":
        return (await ctx.elicit("Which city?", City)).action
    asked = questions.form("Which city?", questions.CITY)
    return types.InputRequiredResult(input_requests={"city": asked})


@app.tool()
def hush() -> str:
    """End every stream, if there were a way to."""
    raise ToolError("MCPServer keeps its streams to itself")


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


@app.resource("safe://{name}")
async def safe(name: str, ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Give what is in a safe, if the user agrees."""
    if ctx.protocol_version != "2026-07-28":
        return f"{name}: {(await ctx.elicit(f'Open {name}?', Sure)).action}"
    if not ctx.input_responses:
        asked = questions.form(f"Open {name}?", questions.SURE)
        return types.InputRequiredResult(input_requests={"open": asked})
    return f"{name}: {getattr(ctx.input_responses['open'], 'action', None)}"


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


@app.prompt()
async def guide(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Ask for a guide to a city that the user names."""
    if ctx.protocol_version != "2026-07-28":
        answer = await ctx.elicit("Which city?", City)
        return f"Guide me through {getattr(answer, 'data', City(city='')).city}."
    if not ctx.input_responses:
        asked = questions.form("Which city?", questions.CITY)
        return types.InputRequiredResult(input_requests={"city": asked})
    content = getattr(ctx.input_responses["city"], "content", None) or {}
    return f"Guide me through {content.get('city')}."


@app.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion | None:
    """Complete a style, or the name of a city."""
    choices = STYLES if isinstance(ref, types.PromptReference) else ("Oslo", "Ottawa", "Rome")
    return types.Completion(values=[each for each in choices if each.startswith(argument.value)])


if __name__ == "__main__":
    app.run()
