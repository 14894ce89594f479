"""A small server: a tool, a slow tool, one that asks, resources and a prompt.

    python examples/weather.py

A host starts it like that and speaks to it on its standard streams; so does `demo.py`.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta, Struct

from trunkline import CacheHint, Context, Server, ToolError

app = Server("weather", version="1.0.0", instructions="Ask for one city at a time.")

CITIES = {"Oslo": "rain", "Rome": "sun", "Nuuk": "snow"}


class Forecast(Struct):
    """What the weather will be."""

    city: str
    days: list[str]


@app.tool
async def forecast(
    ctx: Context, city: str, days: Annotated[int, Meta(ge=1, le=14)] = 3
) -> Forecast:
    """Say what the weather will be in a city.

    Args:
        city: where to look.
        days: how far ahead.
    """
    if city not in CITIES:
        raise ToolError(f"No forecast for {city}; there is one for {', '.join(CITIES)}.")
    found: list[str] = []
    for day in range(days):
        await ctx.progress(day + 1, days, f"day {day + 1}")
        found.append(CITIES[city] if day % 2 == 0 else "clouds")
    return Forecast(city, found)


class Trip(Struct):
    """What the user is asked before packing."""

    days: Annotated[int, Meta(ge=1, le=14, description="How long you will be away")] = 3
    luggage: Literal["bag", "suitcase"] = "bag"


@app.tool
async def pack(ctx: Context, city: str) -> str:
    """Say what to pack, after asking the user for how long."""
    answer = await ctx.elicit(f"You are going to {city}.", Trip, key="trip")
    if answer.content is None:
        return "Then stay at home."
    coat = "a coat" if CITIES.get(city) != "sun" else "a hat"
    return f"{coat} for {answer.content.days} days, in a {answer.content.luggage}"


@app.tool
async def wait_for_spring(ctx: Context) -> str:
    """Wait until the snow is gone, which is longer than anybody waits."""
    try:
        await asyncio.sleep(3600)
    finally:
        ctx.log("notice", "nobody waits any more")
    return "It is spring."


@app.resource("weather://cities", mime_type="application/json", cache=CacheHint(3600, "public"))
def cities() -> list[str]:
    """List the cities that there is a forecast for."""
    return list(CITIES)


@app.resource("weather://now/{city}", mime_type="text/plain")
def now(city: str) -> str:
    """Say what the weather is."""
    return CITIES.get(city, "unknown")


@app.prompt
def report(city: str, tone: Literal["dry", "warm"] = "dry") -> str:
    """Ask for a weather report.

    Args:
        city: what it is about.
        tone: how it is to sound.
    """
    return f"Write a {tone} weather report for {city}."


@app.completion(prompt="report", argument="city")
def cities_that_begin(typed: str) -> list[str]:
    """Suggest cities."""
    return [city for city in CITIES if city.startswith(typed)]


if __name__ == "__main__":
    app.run()
