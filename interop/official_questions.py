"""What servers of the official SDK ask, as its types have it; the same in every revision."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types

from .menu import PAGE

__all__ = ["CITY", "ROOM", "SURE", "TRIP", "WEATHER", "form", "model", "page", "roots", "tool_user"]

TEXT: Final = {"type": "string"}
CITY: Final[dict[str, Any]] = {"type": "object", "properties": {"city": TEXT}, "required": ["city"]}
SURE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}},
    "required": ["sure"],
}
# A field of each kind that every revision has.
TRIP: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "enum": ["Friday", "Sunday"]},
        "persons": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number"},
        "breakfast": {"type": "boolean", "default": True},
        "city": {"type": "string", "minLength": 1},
    },
    "required": ["day", "persons", "price"],
}
# Several of a list can be chosen since 2025-11-25.
ROOM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "extras": {"type": "array", "items": {"type": "string", "enum": ["sauna", "dog", "view"]}}
    },
    "required": ["extras"],
}
WEATHER: Final = types.Tool(name="forecast", input_schema=CITY)


def form(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    """Ask the user to fill in a form."""
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def page(elicitation_id: str | None) -> types.ElicitRequest:
    """Ask the user to visit a page; one revision has an id for that."""
    params = types.ElicitRequestURLParams(
        message="Pay here.", url=PAGE, elicitation_id=elicitation_id
    )
    return types.ElicitRequest(params=params)


def model(text: str, tools: list[types.Tool] | None = None) -> types.CreateMessageRequest:
    """Ask the model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=10, tools=tools)
    return types.CreateMessageRequest(params=params)


def tool_user() -> types.CreateMessageRequest:
    """Ask the model something that it needs a tool for."""
    return model("Is it raining?", [WEATHER])


def roots() -> types.ListRootsRequest:
    """Ask where the client works."""
    return types.ListRootsRequest()
