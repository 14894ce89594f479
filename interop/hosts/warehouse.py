"""The server that hosts are given: a plain tool, a question, progress, and a tool that fails."""

from __future__ import annotations

from trunkline import Context, Server, ToolError

app = Server("warehouse", version="1.0.0")


@app.tool
def stock_level(item: str) -> str:
    """Return how many of an item are in stock."""
    return f"12 {item} in stock"


@app.tool
async def order_item(ctx: Context, item: str) -> str:
    """Order an item; the buyer is asked how many."""
    amount = await ctx.elicit(f"How many {item}?", int)
    return f"{amount.content} {item} ordered" if amount else f"not ordered: {amount.action}"


@app.tool
async def count_shelves(ctx: Context) -> str:
    """Count what is on the three shelves."""
    for shelf in range(1, 4):
        await ctx.progress(shelf, 3, f"shelf {shelf}")
    return "36 items on 3 shelves"


@app.tool
def audit_books() -> str:
    """Audit the books."""
    raise ToolError("the books are locked")
