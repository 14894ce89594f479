"""What a type checker makes of registration: options are known, and functions keep their types.

Read by one, never run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

from trunkline import Server
from trunkline.mcp import PromptArgument

app = Server("typed", version="1", page_size=10)


@app.tool
def plain(city: str) -> int:
    return len(city)


@app.tool("named", title="Named", task="optional", timeout=5)
async def named(city: str) -> int:
    return len(city)


@app.resource("city://{name}", mime_type="text/plain", cache=None)
def resource(name: str) -> str:
    return name


@app.prompt
def prompt(one: str) -> str:
    return one


@app.prompt(title="Titled")
def titled(one: str) -> str:
    return one


assert_type(plain("x"), int)
assert_type(resource("x"), str)
assert_type(prompt("x"), str)
assert_type(titled("x"), str)
kept: Callable[[str], int] = app.tool(plain)
assert_type(app.add_tool(plain, "again", annotations={"readOnlyHint": True}), None)
assert_type(app.add_resource(resource, "town://{name}", size=None, unsafe=True), None)
assert_type(app.add_prompt(prompt, "again", scopes=["a"]), None)
assert_type(app.mount(Server("other"), prefix="x"), None)

assert_type(app.mount(Server("other"), "y"), None)


def of_dict(arguments: dict[str, str]) -> str:
    return arguments["one"]


app.add_prompt(of_dict, "data", arguments=["one", PromptArgument("two"), {"name": "three"}])
app.add_tool(plain, "lenient", coerce_arguments=True, task=True)
Server("x", page_size={"tools": 5}, coerce_arguments=True)

app.tool(colour="red")  # type: ignore[call-overload]  # no such option
app.tool(task="sometimes")  # type: ignore[call-overload]  # not a choice
app.add_tool(plain, inline="yes")  # type: ignore[arg-type]  # not a bool
Server("x", page_size="5")  # type: ignore[arg-type]  # not a number
