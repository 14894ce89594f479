"""The tables of the migration page: every code span of the column of Trunkline is executed.

A span is run as what it is: a decorator on a function, a `raise` in a handler, a keyword that a
call takes, an attribute of the value before it, a path template of a URI, or an expression. A
server that an expression makes is asked for its tools, a client is connected, and what a tool may
return is returned by one. `app.run` and `app.serve` are run by a process of their own. "the same"
stands for the cell to its left. `…` in a span is replaced by something that fits.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from socket import socket
from typing import Annotated, Any, NamedTuple, get_origin

import msgspec
import pydantic
import pytest

import trunkline
from trunkline import Client, Context, Http, HttpOptions, Server, Stdio, Tcp, Unix
from trunkline.errors import PeerError
from trunkline.mcp.types import CreateMessageResult, TextContent
from trunkline.transports import StdioServer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial" / "5-migration.md"
SPAN = re.compile(r"`([^`]+)`")
SECONDS = 30
PNG = b"\x89PNG\r\n\x1a\n"

# What `…` stands for, where it is not a text.
ELLIPSES = {
    "https://…": "{url}",
    'origins=["…"]': 'origins=["https://x.example"]',
    '"mcpServers": {…}': '"mcpServers": {"x": {"command": "python", "args": ["x.py"]}}',
    "{…}": "{}",
    "data=…": "data=PNG",
    "(…)": "(1)",
    "=…": "=None",
    "…": "x",
}


# Spans that are words of Python.
WORDS = {"await", "bytes"}


class Row(NamedTuple):
    """A row of a table: the name it begins with, and the code of the last column."""

    section: str
    label: str
    spans: tuple[str, ...]


def rows() -> Iterator[Row]:
    """Yield the rows of all tables with a column for Trunkline."""
    section, is_table = "", False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if not line.startswith("|"):
            is_table = False
            continue
        cells = [each.strip() for each in line.strip("|").split("|")]
        if cells[-1] == "Trunkline":
            is_table = True
        elif is_table and not set(line) <= set("|- "):
            same = [each for each in cells if not each.startswith("the same")]
            cell = cells[-1].replace("the same", same[-1], 1) if len(same) > 1 else cells[-1]
            # A link is described by its text, which may have code in it.
            yield Row(section, cells[0], tuple(SPAN.findall(re.sub(r"\]\([^)]*\)", "]", cell))))


ROWS = list(rows())


def test_the_tables_are_found() -> None:
    assert {row.section for row in ROWS} == {"Servers", "The context", "Clients"}
    assert sum(len(row.spans) for row in ROWS) > 80


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}-{row.label}")
def test_the_code_of_a_row_runs(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.py").write_text("from trunkline import Server\n\nServer('x').run()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")

    async def scenario() -> None:
        async with asyncio.timeout(SECONDS):
            await Runner(tmp_path).run(row)

    asyncio.run(scenario())


def function(id: str = "") -> str:
    """A handler for anything."""
    return id


async def around(ctx: Context, proceed: Callable[[], Awaitable[Any]]) -> Any:
    return await proceed()


def handler(arguments: dict[str, Any]) -> str:
    return "x"


class T(msgspec.Struct):
    """The result of `x/y`."""

    id: str = ""


class Runner:
    """Runs the spans of one row, one after another, with the names that the page uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.app = Server("x", lifespan=None)
        self.app.add_prompt(lambda y: y, "x", description="A prompt.")
        self.app.add_tool(function, "tool")
        self.last: Any = None
        self.names: dict[str, Any] = {
            **{name: getattr(trunkline, name) for name in trunkline.__all__},
            **{"Annotated": Annotated, "Meta": msgspec.Meta, "PNG": PNG, "T": T},
            **{"StdioServer": StdioServer, "HttpOptions": HttpOptions, "type": int},
            **{"function": function, "handler": handler, "value": {"a": 1}},
            **{"app": self.app, "other": Server("other"), "url": "https://x.example/", "data": "x"},
            **{"uri": "x://y", "transport": None, "Field": pydantic.Field},
        }

    async def run(self, row: Row) -> None:
        if row.section == "Clients":
            self.app.method("x/y")(function)
        run = {
            "Servers": self.of_server,
            "The context": self.of_context,
            "Clients": self.of_client,
        }[row.section]
        for span in row.spans:
            try:
                if span.startswith("from "):
                    exec(span, self.names)
                elif span not in WORDS:
                    await run(span)
            except (AssertionError, asyncio.CancelledError):
                raise
            except BaseException as error:
                raise AssertionError(f"`{span}`: {type(error).__name__}: {error}") from error

    def filled(self, span: str, url: str = "https://x.example/mcp") -> str:
        for written, meant in ELLIPSES.items():
            span = span.replace(written, meant.replace("{url}", url))
        return span

    def is_keyword(self, span: str, *callables: Callable[..., Any]) -> bool:
        """Return True for `name=` and `name=value`, after a look whether a call takes it."""
        found = re.match(r"(\w+)=(?!=)(.*)", span)
        if found is None:
            return False
        known = {name for each in callables for name in inspect.signature(each).parameters}
        assert found[1] in known, f"`{span}` is not an option of {callables}"
        if found[2]:
            eval(f"dict({self.filled(span)})", self.names)
        return True

    async def value_of(self, span: str, url: str = "https://x.example/mcp") -> Any:
        if span.startswith("."):
            return getattr(self.last, span[1:])
        code = compile(self.filled(span, url), span, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        self.last = eval(code, self.names)
        if inspect.iscoroutine(self.last):
            self.last = await self.last
        return self.last

    # ---- servers

    async def of_server(self, span: str) -> None:
        if span.startswith("@"):
            wrapped = around if "middleware" in span else function
            (await self.value_of(span[1:]))(wrapped)
            if span.startswith("@app.tool"):
                await self.lists_tools(self.app)
        elif span.startswith("raise "):
            await self.raises(self.filled(span))
        elif span.startswith("{"):
            self.app.resource(f"x://{span}")(lambda path: path)
            async with Client(self.app) as client:
                (read,) = (await client.read_resource("x://a/b")).contents
                assert read.text == "a/b"
        elif re.match(r"(await )?app\.(run|serve)\(", span):
            await self.serves(span)
        elif span.startswith("ctx."):
            await self.of_context(span)
        elif not self.is_keyword(span, Server, Server.tool, Server.asgi, Server.resource):
            await self.accepts(await self.value_of(span))

    async def accepts(self, value: Any) -> None:
        """Use a value for what it is for."""
        if isinstance(value, Server):
            await self.lists_tools(value)
        elif get_origin(value) is Annotated:

            def described(id: Any) -> str:
                return str(id)

            described.__annotations__["id"] = value
            self.app.add_tool(described, f"described_{id(value)}")
        elif isinstance(value, (trunkline.ToolOutput, trunkline.Image)):
            self.app.add_tool(lambda: value, "returning", description="Returns it.")
            async with Client(self.app) as client:
                result = await client.call_tool("returning")
                assert not result.is_error
                assert result.content

    async def raises(self, statement: str) -> None:
        def failing(id: str) -> str:
            exec(statement, self.names)
            raise AssertionError("it did not raise")

        self.app.add_tool(failing, "failing", description="Fails.")
        self.app.resource("failing://{id}")(failing)
        async with Client(self.app) as client:
            if "ToolError" in statement:
                result = await client.call_tool("failing", {"id": "1"})
                assert (result.is_error, result.text) == (True, "x")
            else:
                with pytest.raises(PeerError, match="not found"):
                    await client.read_resource("failing://1")

    async def lists_tools(self, app: Server) -> None:
        async with Client(app) as client:
            await client.list_tools()

    async def serves(self, span: str) -> None:
        """Run it in a process, and connect to where it listens."""
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        call = re.sub(r":(8000|9000)\b", f":{port}", span)
        if call.startswith("await "):
            call = f"import asyncio\nasync def main(): {call}\nasyncio.run(main())"
        names = "from trunkline import Server\nfrom trunkline.transports import StdioServer\n"
        program = [sys.executable, "-c", f"{names}app = Server('x')\n{call}"]
        if "://" not in span and "unix:" not in span:
            async with Client(Stdio(*(program[0], program[1:]), cwd=str(self.folder))) as client:
                await client.list_tools()
            return
        address: Any = Tcp("127.0.0.1", port)
        if "http" in span:
            address = Http("127.0.0.1", port)
        elif "unix" in span:
            address = Unix(str(self.folder / "notes.sock"))
        process = await asyncio.create_subprocess_exec(*program, cwd=self.folder)
        try:
            while True:
                try:
                    async with Client(address, timeout=SECONDS) as client:
                        await client.list_tools()
                    return
                except trunkline.TransportError:
                    assert process.returncode is None, f"`{span}` has ended"
                    await asyncio.sleep(0.05)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    # ---- the context

    async def of_context(self, span: str) -> None:
        if not re.search(r"\bctx\.|\bapp\.|^\.", span):
            raise AssertionError(f"`{span}` is not an expression with ctx or app")
        outcome: list[BaseException | None] = []

        async def tool(ctx: Context) -> str:
            self.names["ctx"] = ctx
            try:
                await self.value_of(span)
                outcome.append(None)
            except Exception as error:  # noqa: BLE001 - whatever a span raises is the outcome
                outcome.append(error)
            return "done"

        def sampled(request: Any) -> CreateMessageResult:
            return CreateMessageResult(role="assistant", content=TextContent("x"), model="m")

        app = Server("x", lifespan=None)
        app.add_tool(tool, "tool", description="A tool.")
        app.resource("x://y")(lambda: "x")
        self.names["app"] = app
        async with Client(
            app,
            revision="2025-11-25",
            on_elicit=lambda question: (
                {"value": 1} if hasattr(question, "requested_schema") else {}
            ),
            on_elicit_url=lambda question: True,
            on_sample=sampled,
            roots=["file:///x"],
        ) as client:
            assert (await client.call_tool("tool")).text == "done"
        assert outcome, f"`{span}` did not end"
        if outcome[-1] is not None:
            raise outcome[-1]

    # ---- clients

    async def of_client(self, span: str) -> None:
        callables = (Client, Client.call_tool, Client.request)
        if self.is_keyword(span, *callables):
            return
        async with (
            self.app.listen("http://127.0.0.1:0/mcp") as listening,
            Client(self.app) as client,
        ):
            near, far = trunkline.memory_pair()
            self.names |= {"client": client, "transport": near}
            self.names["result"] = await client.call_tool("tool")
            with pytest.raises(PeerError) as rejected:
                await client.call_tool("no such tool")
            self.names["error"] = rejected.value
            serving = asyncio.ensure_future(self.app.serve(far))
            value = await self.value_of(span, str(listening.address))
            try:
                if isinstance(value, Client):
                    async with value:
                        await value.list_tools()
                elif inspect.isawaitable(value):
                    await value
                elif hasattr(type(value), "__aenter__"):
                    async with value:
                        pass
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
