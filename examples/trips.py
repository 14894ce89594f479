"""A server that asks its user: the one of the README and of `make demo`."""

from trunkline import Context, Server

app = Server("trips", version="1.0.0")


@app.tool
async def book(ctx: Context, city: str) -> str:
    """Book a trip."""
    days = await ctx.elicit(f"How many days in {city}?", int)
    return f"{city}, {days.content} days" if days else "Nothing was booked."


if __name__ == "__main__":
    app.run()
