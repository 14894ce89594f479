"""The server that every script talks to: one of each thing that a server can have.

It can be made in this process, or run as one: `python -m tests.conversation.app example`.
How a script reaches inside is in `journal.py`. Tools that ask the client are in
`asking_app.py`, those that go on as tasks in `task_app.py`.

`VARIANTS` are the servers there are: the example under other policies and with other
settings, and some that are small enough to have a list to themselves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Struct

from tests.conversation.asking_app import asking
from tests.conversation.journal import HANGS, JOURNALS, Journal, add_waiting_tools
from tests.conversation.task_app import tasks
from trunkline import (
    CacheHint,
    Context,
    Extension,
    ParamHeader,
    RequestError,
    Server,
    ToolError,
    ToolOutput,
)
from trunkline.errors import LocalProtocolError, PeerError, RequestAborted
from trunkline.jsonrpc import Policy
from trunkline.mcp import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from trunkline.server import CapabilitySwitches
from trunkline.skills import Skills
from trunkline.spec.revisions import HANDSHAKE, PER_REQUEST, REVISIONS

# What no peer may ever be shown: it is in exceptions that were not meant for one.
CANARY: Final = "canary-5d2f"
PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(range(16))
WAV: Final = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(16)
ODD: Final = bytes(range(250, 256)) + b"\x00\x01"
# Kept exactly as it is: keywords, their order, and what nobody knows.
VERBATIM: Final[dict[str, Any]] = {
    "type": "object",
    "x-own": {"kept": [1, 2.5, None]},
    "properties": {"size": {"type": "integer", "minimum": 1}, "name": {"type": "string"}},
    "required": ["size"],
    "description": "as written",
}
SKILLS: Final = Path(__file__).with_name("skills")
INSTRUCTIONS: Final = "Say what you need, and no more."
PAGE: Final = 7
CITIES: Final = [f"{country}-{number:03}" for country in ("no", "se") for number in range(125)]

Block: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class Forecast(Struct):
    city: str
    days: list[str]


@dataclass
class Point:
    x: int
    y: int


def example(name: str = "example", **settings: Any) -> Server:
    """Return a server with one of each thing."""

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[dict[str, str]]:
        yield {"database": "connected"}

    chosen = {
        "version": "1.2.3",
        "title": "An example",
        "instructions": INSTRUCTIONS,
        "page_size": PAGE,
        "lifespan": lifespan,
        "cache": CacheHint(30),
        "experimental": {"example/feature": {"on": True}},
        **settings,
    }
    app = Server(name, **chosen)
    journal = JOURNALS[app] = Journal()
    add_plain_tools(app)
    add_blocks(app)
    add_failing_tools(app)
    add_waiting_tools(app, journal)
    add_talking_tools(app, journal)
    add_changing_tools(app)
    add_resources(app)
    add_prompts(app)
    add_own_methods(app, journal)
    app.mount(arithmetic(), prefix="math")
    return app


# -- tools -----------------------------------------------------------------------------------


def add_plain_tools(app: Server) -> None:
    @app.tool(title="Echo", annotations={"readOnlyHint": True}, icons=["https://x.test/i.png"])
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @app.tool(inline=True)
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @app.tool(meta={"example/kind": "weather"})
    async def forecast(
        city: Annotated[str, "where to look"],
        days: Annotated[int, Meta(ge=1, le=14)] = 3,
        region: Annotated[str, ParamHeader("Region")] = "north",
    ) -> Forecast:
        """Say what the weather will be."""
        return Forecast(city, ["rain" if day % 2 else "sun" for day in range(days)])

    @app.tool
    def names(count: int = 2) -> list[str]:
        """A list, from a thread."""
        return [f"name-{number}" for number in range(count)]

    @app.tool
    async def move(by: Point) -> Point:
        """A dataclass in and out."""
        return Point(by.x + 1, by.y + 1)

    @app.tool
    async def nothing() -> None:
        """Give nothing."""

    @app.tool
    async def in_short() -> ToolOutput[Forecast]:
        """A value, and a text for readers."""
        return ToolOutput(Forecast("Oslo", ["sun"]), text="Sun in Oslo", meta={"example/a": 1})

    async def verbatim(arguments: dict[str, Any]) -> str:
        return f"size {arguments['size']}"

    app.add_tool(verbatim, "verbatim", input_schema=VERBATIM, description="A schema of one's own")

    @app.tool(deprecated="use echo.")
    async def parrot(text: str) -> str:
        """Say it again, as before."""
        return text

    @app.tool
    async def who(ctx: Context) -> dict[str, Any]:
        """Say what a handler is told."""
        return {
            "revision": ctx.revision,
            "client": ctx.client.name,
            "declared": sorted(_declared(ctx)),
            "meta": ctx.meta,
            "id": ctx.request_id,
            "headers": ctx.headers,
            "state": ctx.state,
            "what": ctx.name,
            "method": ctx.method,
        }


def _declared(ctx: Context) -> list[str]:
    capabilities = ctx.client.capabilities
    return [
        name
        for name in capabilities.__struct_fields__
        if isinstance(getattr(capabilities, name), Struct | dict)
    ]


def add_blocks(app: Server) -> None:
    @app.tool
    async def picture() -> bytes:
        """An image."""
        return PNG

    @app.tool
    async def sound() -> bytes:
        """Audio."""
        return WAV

    @app.tool
    async def blob() -> bytes:
        """Bytes that are nothing in particular."""
        return ODD

    @app.tool
    async def link() -> ResourceLink:
        """A link to a resource."""
        return ResourceLink("config", "config://app", title="The settings")

    @app.tool
    async def blocks() -> list[Block]:
        """One block of each kind."""
        return [
            TextContent("one"),
            ImageContent("aW1hZ2U=", "image/x-own"),
            AudioContent("c291bmQ=", "audio/x-own"),
            ResourceLink("config", "config://app"),
            EmbeddedResource(ResourceContents("note://inside", text="inside")),
        ]


def add_failing_tools(app: Server) -> None:
    @app.tool
    async def fails() -> str:
        """Run, and fail."""
        raise ToolError("The well is dry.")

    @app.tool
    async def refuses(kind: str, message: str | None = None) -> str:
        """Refuse by a symbol."""
        raise RequestError(kind, message, data={"why": "asked to"})

    @app.tool
    async def explodes() -> str:
        """Raise what nobody expected."""
        raise RuntimeError(f"the password is {CANARY}")

    @app.tool
    def explodes_on_a_thread() -> str:
        """Raise it elsewhere."""
        raise SystemExit(f"the password is {CANARY}")

    @app.tool
    async def lies() -> Forecast:
        """Return what was not promised."""
        return {"city": 5, "secret": CANARY}  # type: ignore[return-value]  # that is the point

    @app.tool
    async def unwritable() -> Any:
        """Return what JSON does not have."""
        return float("nan")

    @app.tool(timeout=0.05)
    async def overruns() -> str:
        """Take longer than it may."""
        await asyncio.sleep(HANGS)
        return "late"


def add_talking_tools(app: Server, journal: Journal) -> None:
    @app.tool
    async def report(ctx: Context, values: list[float], total: float | None = None) -> str:
        """Report progress."""
        for value in values:
            await ctx.progress(value, total, f"at {value:g}")
        return "reported"

    @app.tool
    def report_from_a_thread(ctx: Context, steps: int) -> str:
        """Report progress from a thread."""
        for step in range(steps):
            ctx.progress(step + 1, steps)
        return "reported"

    @app.tool
    async def two_steps(ctx: Context, key: str, closes: bool = False) -> str:
        """Report progress, wait, and report again; close the stream in between, if possible."""
        ctx.progress(1)
        journal.write(key, f"closed {closes and ctx.close_stream()}")
        async with asyncio.timeout(HANGS):
            await journal.gates[key].wait()
        ctx.progress(2)
        return "done"

    @app.tool
    async def report_late(ctx: Context, key: str) -> str:
        """Answer, and report afterwards."""

        async def later() -> None:
            await journal.gates[key].wait()
            ctx.progress(99)
            ctx.log("emergency", "too late")
            journal.write(key, "reported")

        ctx.progress(1)
        tasks.add(asyncio.get_running_loop().create_task(later()))
        return "answered"

    tasks: set[asyncio.Task[None]] = set()

    @app.tool
    async def speak(ctx: Context, levels: list[str], logger: str | None = None) -> str:
        """Log a line at each level."""
        for level in levels:
            await ctx.log(level, {"said": level}, logger)
        return "spoken"

    @app.tool
    async def ask(
        ctx: Context, method: str, params: dict[str, Any] | None = None, timeout: float = HANGS
    ) -> dict[str, Any]:
        """Ask the client something, and give what it said."""
        try:
            answer = await ctx.request(method, params, timeout=timeout)
        except PeerError as error:
            return {"error": error.code, "message": error.message, "data": error.data}
        except LocalProtocolError as error:
            return {"unsent": error.rule}
        except RequestAborted as error:
            return {"ended": type(error).__name__}
        return {"answer": answer}


def add_changing_tools(app: Server) -> None:
    @app.tool
    async def grow(kind: str, names: list[str]) -> str:
        """Register things."""
        JOURNALS.pop(app, None)

        async def extra() -> str:
            return "extra"

        add: dict[str, Callable[[str], None]] = {
            "tool": lambda name: app.add_tool(extra, name),
            "prompt": lambda name: app.add_prompt(extra, name),
            "resource": lambda name: app.add_resource(extra, f"extra://{name}", name=name),
        }
        for name in names:
            add[kind](name)
        return "grown"

    @app.tool
    async def shrink(kind: str, names: list[str]) -> str:
        """Take things away."""
        JOURNALS.pop(app, None)
        remove: dict[str, Callable[[str], None]] = {
            "tool": app.remove_tool,
            "prompt": app.remove_prompt,
            "resource": lambda name: app.remove_resource(f"extra://{name}"),
        }
        for name in names:
            remove[kind](name)
        return "shrunk"

    @app.tool
    async def touch(uris: list[str]) -> str:
        """Say that resources have changed."""
        for uri in uris:
            app.notify_resource_updated(uri)
        return "touched"


# -- resources, prompts, completions ---------------------------------------------------------


def add_resources(app: Server) -> None:
    @app.resource("note://text", title="A note", annotations={"priority": 0.5})
    def text() -> str:
        """A text."""
        return "héllo\nworld"

    @app.resource("note://markdown", mime_type="text/markdown", size=7)
    async def markdown() -> str:
        return "# title"

    @app.resource("note://blob", mime_type="application/pdf")
    async def blob() -> bytes:
        return ODD

    @app.resource("config://app", mime_type="application/json", cache=CacheHint(5, "public"))
    async def config() -> dict[str, Any]:
        return {"units": "metric"}

    @app.resource("note://many")
    async def many() -> list[Any]:
        return [
            ResourceContents("note://many/1", text="first"),
            ResourceContents("note://many/2", text="second", mime_type="text/x-own"),
        ]

    @app.resource("note://broken")
    async def broken() -> str:
        raise RuntimeError(f"the password is {CANARY}")

    @app.resource("note://unwritable")
    async def unwritable() -> dict[str, float]:
        return {CANARY: float("nan")}

    @app.resource("note://gone")
    async def gone() -> str:
        raise RequestError("RESOURCE_NOT_FOUND", data={"uri": "note://gone"})

    @app.resource("note://caller")
    async def caller(ctx: Context) -> dict[str, Any]:
        return {"revision": ctx.revision, "what": ctx.name}

    for number in range(3):
        app.add_resource(text, f"filler://{number}", name=f"filler-{number}")

    @app.resource("city://{country}/{name}", mime_type="text/plain")
    async def city(country: str, name: str) -> str:
        return f"{name} is in {country}."

    @app.resource("number://{value}")
    async def number(value: int) -> dict[str, int]:
        return {"value": value}

    @app.completion(resource="city://{country}/{name}", argument="name")
    async def cities(typed: str, others: dict[str, str]) -> list[str]:
        country = others.get("country", "")
        return [each for each in CITIES if each.startswith(country) and typed in each]


def add_prompts(app: Server) -> None:
    @app.prompt(title="Review", icons=["https://x.test/p.png"])
    def review(code: Annotated[str, "what to read"], style: str = "short") -> str:
        """Ask for a review."""
        return f"Review this in {style} form:\n{code}"

    @app.prompt
    async def pictured() -> list[Any]:
        """Messages with more than text in them."""
        return [
            PromptMessage(TextContent("Look:"), "user"),
            PromptMessage(ImageContent("aW1hZ2U=", "image/png"), "user"),
            PromptMessage(AudioContent("c291bmQ=", "audio/wav"), "assistant"),
        ]

    @app.prompt
    async def counted(times: int) -> str:
        """An argument that is more than a text."""
        return "again " * times

    @app.prompt
    async def broken() -> str:
        """Raise what nobody expected."""
        raise RuntimeError(f"the password is {CANARY}")

    @app.completion(prompt="review", argument="style")
    def styles(typed: str) -> list[str]:
        return [each for each in ("short", "shorter", "long") if each.startswith(typed)]


def add_own_methods(app: Server, journal: Journal) -> None:
    @app.method("example/double")
    async def double(value: int) -> dict[str, int]:
        return {"doubled": 2 * value}

    @app.notification("example/noted")
    def noted(params: dict[str, Any]) -> None:
        journal.write(params["key"], "heard")


# -- others ----------------------------------------------------------------------------------


def arithmetic() -> Server:
    """Return a small server, to be mounted; it has a state and a middleware of its own."""

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[str]:
        yield "arithmetic is open"

    app = Server("arithmetic", lifespan=lifespan)

    @app.tool
    async def times(a: int, b: int) -> int:
        """Multiply."""
        return a * b

    @app.tool
    async def state(ctx: Context) -> str:
        """Give what the lifespan of this server gave."""
        return f"{ctx.state} as {ctx.name}"

    @app.prompt
    async def sum_up() -> str:
        """Ask for a sum."""
        return "Sum it up."

    @app.middleware
    async def doubled(ctx: Context, proceed: Any) -> Any:
        value = await proceed()
        return value * 2 if ctx.name.endswith("times") else value

    return app


def wrapped() -> Server:
    """Return a server with functions around its handlers."""
    app = Server("wrapped")
    order: list[str] = []

    @app.middleware
    async def outer(ctx: Context, proceed: Any) -> Any:
        order.append(f"outer {ctx.name}")
        if ctx.name == "closed":
            raise RequestError("INVALID_REQUEST", "Closed today")
        value = await proceed()
        order.append("outer again")
        return value

    @app.middleware
    async def inner(ctx: Context, proceed: Any) -> Any:
        order.append("inner")
        value = await proceed()
        return value.upper() if isinstance(value, str) else value

    @app.tool
    async def shout(text: str) -> str:
        return text

    @app.tool(inline=True)
    def seen() -> list[str]:
        return list(order)

    @app.tool
    async def closed() -> str:
        return "open"

    @app.resource("note://quiet")
    async def quiet() -> str:
        return "quiet"

    @app.prompt
    async def soft() -> str:
        return "soft"

    return app


def only_tools() -> Server:
    """Return a server that has tools and nothing else."""
    off: CapabilitySwitches = {"resources": False, "prompts": False, "logging": False}
    app = Server("only-tools", capabilities=off)

    @app.tool
    async def one(ctx: Context) -> str:
        await ctx.log("emergency", "one")
        return "one"

    @app.prompt
    def review(style: str) -> str:
        return style

    @app.resource("note://text")
    def text() -> str:
        return "text"

    return app


def crashing() -> Server:
    """Return the example, which may end as no server should where it is a process."""
    app = example()

    @app.tool
    async def crash() -> str:
        """End at once."""
        if __name__ == "__main__":
            os._exit(3)
        raise RuntimeError("scripts run in this process")

    return app


def extended() -> Server:
    """Return a server with an extension of its own."""
    stars = Extension("com.example/stars", settings={"most": 5}, result_types=("starred",))
    app = Server("extended", extensions=[stars])

    @stars.method("stars/list")
    async def list_stars(limit: int = 2) -> dict[str, list[int]]:
        return {"stars": list(range(limit))}

    @stars.method("stars/count", always=True)
    async def count_stars() -> dict[str, int]:
        return {"count": 5}

    @app.tool
    async def star(ctx: Context) -> str:
        """Answer with a result of the extension, to who can have one."""
        settings = ctx.extension("com.example/stars")
        if settings is None or not stars.accepts_results(ctx):
            return "plain"
        answer: str = stars.result("starred", {"colour": settings.get("colour")})
        return answer

    return app


def skilled() -> Server:
    """Return a server that publishes skills, one to a page."""
    skills = Skills(SKILLS, directory_read=True)
    return Server("skilled", page_size=1, extensions=[skills])


_HANDSHAKES: Final = list(filter(HANDSHAKE.holds, REVISIONS))
_PER_REQUEST: Final = list(filter(PER_REQUEST.holds, REVISIONS))


def new() -> Server:
    """Return an example that no other script has talked to."""
    app = example()
    del JOURNALS[app]
    return app


VARIANTS: Final[dict[str, Callable[[], Server]]] = {
    "example": example,
    "new": new,
    "wrapped": wrapped,
    "only-tools": only_tools,
    "extended": extended,
    "skilled": skilled,
    "crashing": crashing,
    "asking": asking,
    "asking-erlmcp": lambda: asking(policy=Policy.erlmcp()),
    "tasks": tasks,
    "tasks-erlmcp": lambda: tasks(policy=Policy.erlmcp()),
    "empty": lambda: Server("empty"),
    "unsubscribable": lambda: example(subscribe=False, list_changed=False),
    "handshake-only": lambda: example(revisions=_HANDSHAKES),
    "per-request-only": lambda: example(revisions=_PER_REQUEST),
    "middle": lambda: example(revisions=["2025-03-26", "2025-06-18"]),
    "rejecting": lambda: example(policy=Policy().replace(version_policy="reject")),
    "falling-back": lambda: example(policy=Policy().replace(version_policy="fallback")),
    "in-order": lambda: example(policy=Policy().replace(batch_order="sequential")),
    "understanding": lambda: example(policy=Policy().replace(method_names="accept-bare")),
    "lenient": lambda: example(policy=Policy().replace(strictness="lenient")),
    "erlmcp": lambda: example(policy=Policy.erlmcp()),
    "pierre": lambda: example(policy=Policy.pierre()),
    "mcpp": lambda: example(policy=Policy.mcpp()),
}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    VARIANTS[sys.argv[1]]().run()
