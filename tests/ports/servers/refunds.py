"""A refund desk: orders are looked up, the user is asked why, a model sums up, a user confirms."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from msgspec import Meta, Struct

from trunkline import Context, Server, ToolError
from trunkline.mcp import TextContent
from trunkline.server import ChoiceTitles, MissingCapability

ORDERS = {"A-1": 40, "A-2": 250}

Reason = Annotated[
    Literal["broken", "late", "other"],
    ChoiceTitles(broken="It arrived broken", late="It arrived late", other="Something else"),
]


class Claim(Struct):
    """What a customer fills in."""

    reason: Reason
    amount: Annotated[int, Meta(ge=1, description="whole euros")]
    comment: str = ""


class Refund(Struct):
    """A refund that was paid."""

    case: int
    order: str
    amount: int
    summary: str


class Desk:
    """Refunds that were paid, in a file with one line for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cases = count(1)
        path.touch()

    def pay(self, order: str, amount: int) -> None:
        """Pay an amount."""
        with self.path.open("a") as ledger:
            ledger.write(json.dumps([order, amount]) + "\n")

    def paid(self) -> list[tuple[str, int]]:
        """Return all payments."""
        return [tuple(json.loads(line)) for line in self.path.read_text().splitlines()]


def make(folder: Path) -> Server:
    """Return a desk that keeps its payments in `folder`."""
    app = Server("refunds", version="1.0.0")
    desk = Desk(folder / "payments.jsonl")

    @app.tool
    async def refund(ctx: Context, order: str) -> Refund:
        """Refund an order, as far as its customer and a supervisor agree."""
        if order not in ORDERS:
            raise ToolError(f"There is no order {order!r}.")
        left = ORDERS[order] - sum(amount for each, amount in desk.paid() if each == order)
        if left == 0:
            raise ToolError(f"{order} is refunded already.")
        # Code before a question runs again in 2026-07-28: a case has its number once.
        case = await ctx.once("case", lambda: next(desk.cases), type=int)
        claim = await ctx.elicit(f"Why do you return {order}?", Claim, key="claim")
        if not claim:
            raise ToolError("The customer did not fill in the claim.")
        amount = min(claim.content.amount, left)
        try:
            reply = await ctx.sample(
                f"Sum up: {claim.content.reason}, {claim.content.comment or 'no comment'}",
                max_tokens=50,
                system="Answer in at most five words.",
            )
            summary = reply.content.text if isinstance(reply.content, TextContent) else ""
        except MissingCapability:
            summary = claim.content.reason
        if amount > 100:
            sure = await ctx.elicit(f"Pay {amount} euros for {order}?", None, key="confirm")
            if not sure:
                raise ToolError("The supervisor did not confirm.")
        desk.pay(order, amount)
        return Refund(case, order, amount, summary)

    @app.tool
    def payments() -> list[tuple[str, int]]:
        """List what was paid."""
        return desk.paid()

    @app.tool
    async def pay_online(ctx: Context, order: str) -> str:
        """Send the user to the page of the bank."""
        answer = await ctx.elicit_url(f"Pay for {order}", f"https://bank.example/{order}")
        return "Thank you." if answer else "Not paid."

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        make(Path(here)).run()
