"""What a type checker knows of asking: read by it, and never run."""

from __future__ import annotations

from typing import Any, Literal, assert_type

from msgspec import Struct

from trunkline import Context, Server
from trunkline.mcp import CreateMessageResult, Root
from trunkline.server import AcceptedElicitation, ClientRequest, DeclinedElicitation

app = Server("typed")


class Day(Struct):
    """What is asked for."""

    name: str


class Ticket(Struct):
    """What is made once."""

    number: int


def make_ticket() -> Ticket:
    """Make a ticket."""
    return Ticket(7)


@app.tool
async def book(context: Context) -> str:
    """Ask all there is to ask."""
    answer = await context.elicit("Which day?", Day, key="day")
    assert_type(answer, AcceptedElicitation[Day] | DeclinedElicitation)
    if answer.action != "accept":
        assert_type(answer, DeclinedElicitation)
        return answer.action
    assert_type(answer.content, Day)

    assert_type(
        await context.elicit("How many?", int), AcceptedElicitation[int] | DeclinedElicitation
    )
    assert_type(
        await context.elicit("Sure?", None), AcceptedElicitation[None] | DeclinedElicitation
    )
    raw = await context.elicit("Anything?", {"type": "object", "properties": {}})
    assert_type(raw, AcceptedElicitation[dict[str, Any]] | DeclinedElicitation)
    chosen = await context.elicit("Which?", Literal["a", "b"])
    assert_type(chosen, AcceptedElicitation[Any] | DeclinedElicitation)

    page = await context.elicit_url("Pay", "https://pay.example/")
    assert_type(page, AcceptedElicitation[None] | DeclinedElicitation)
    assert_type(await context.sample("Hm?", max_tokens=9), CreateMessageResult)
    assert_type(await context.sample("Hm?"), CreateMessageResult)
    assert_type(await context.roots(), list[Root])

    assert_type(await context.once("ticket", make_ticket, type=Ticket), Ticket)
    assert_type(await context.once("any", make_ticket), Any)
    assert_type(await context.become_task(), bool)
    return answer.content.name


@app.tool
def book_on_a_thread(context: Context) -> str:
    """Ask, and wait."""
    ask = context.elicit("Which day?", Day)
    assert_type(ask, ClientRequest[AcceptedElicitation[Day] | DeclinedElicitation])
    answer = ask.wait()
    return answer.content.name if answer.action == "accept" else answer.action
