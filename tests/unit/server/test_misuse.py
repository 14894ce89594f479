"""Mistakes of authors are reported where they are made, in words that say what to do."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import threading
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from msgspec import Struct

from trunkline import (
    Client,
    Context,
    PeerError,
    RequestError,
    Server,
    ServerLimits,
    SyncClient,
    ToolError,
    TransportError,
)
from trunkline.server.api.run import StallWatch
from trunkline.server.handlers.json_encoding import OutputMismatch

REVISIONS = ("2025-11-25", "2026-07-28")


def call(app: Server, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    async def main() -> Any:
        async with Client(app, **options) as client:
            return await client.call_tool(name, arguments or {})

    return asyncio.run(main())


def mistake(app: Server, name: str = "tool") -> str:
    """Return the text of the exception that a tool failed with."""
    with pytest.raises(Exception) as raised:  # each test looks at the text
        call(app, name, raise_exceptions=True)
    return str(raised.value)


# -- signatures --------------------------------------------------------------------------------


@pytest.mark.parametrize("register", ["tool", "prompt", "resource", "completion", "method"])
@pytest.mark.parametrize("name", ["ctx", "context"])
def test_a_context_without_annotation_is_refused(register: str, name: str) -> None:
    app = Server("x")
    decorators: dict[str, Callable[[Any], Any]] = {
        "tool": app.tool,
        "prompt": app.prompt,
        "resource": app.resource("a://{a}"),
        "completion": app.completion(prompt="p", argument="a"),
        "method": app.method("own/method"),
    }
    scope: dict[str, Any] = {}
    exec(f"def handler({name}, a: int): ...", scope)  # two names of one parameter
    with pytest.raises(TypeError) as refused:
        decorators[register](scope["handler"])
    assert str(refused.value) == (
        f'handler(): parameter "{name}" has no annotation, and would be an argument that clients '
        f"fill: write {name}: Context, or another type if it is an argument"
    )


def test_a_parameter_of_that_name_may_be_an_argument() -> None:
    app = Server("x")

    @app.tool
    def tool(context: str, ctx: int = 3) -> str:
        return f"{context}{ctx}"

    @app.tool
    def other(ctx="a"):  # type: ignore[no-untyped-def]  # it has a default
        return ctx

    assert call(app, "tool", {"context": "a"}).text == "a3"
    assert call(app, "other").text == "a"


def test_a_method_that_is_not_bound_is_refused() -> None:
    app = Server("x")
    with pytest.raises(TypeError) as refused:

        class Tools:
            @app.tool
            def add(self, a: int) -> int:
                return a

    assert str(refused.value) == (
        "Tools.add() is a method, and 'self' would be an argument that clients fill: register it "
        "bound to an object, as in app.tool(thing.add)"
    )


def test_a_bound_method_is_taken() -> None:
    class Tools:
        def add(self, a: int) -> int:
            return a + 1

    app = Server("x")
    app.tool(Tools().add)
    assert call(app, "add", {"a": 1}).text == "2"


# -- results -----------------------------------------------------------------------------------


class Thing:
    pass


@dataclasses.dataclass
class Box:
    inside: Any


class Shelf(Struct):
    boxes: list[Any]


async def fetch() -> dict[str, int]:
    return {"a": 1}


UNSENDABLE: list[tuple[Callable[[], Any], str]] = [
    (Thing, "a Thing cannot be encoded as JSON"),
    (lambda: {"a": [1, {"b": Thing()}]}, 'a Thing at "a[1].b" cannot be encoded as JSON'),
    (lambda: [Thing], 'a type at "[0]" cannot be encoded as JSON'),
    (lambda: Shelf([Box({"a": Thing()})]), 'a Thing at "boxes[0].inside.a" cannot be encoded'),
    (lambda: {"a": {(1, 2): 3}}, 'a tuple as a key at "a" cannot be encoded as JSON'),
    (
        lambda: {"a": (each for each in "ab")},
        'a generator at "a" cannot be encoded as JSON: ',
    ),
    (lambda: {"a": 1j}, 'a complex at "a" cannot be encoded as JSON'),
    (fetch, "it is a coroutine: is an await missing?"),
    (lambda: {"a": [fetch()]}, 'it is a coroutine at "a[0]": is an await missing?'),
    (asyncio.Event, "an Event cannot be encoded as JSON"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("make", "text"), UNSENDABLE, ids=[row[1][:50] for row in UNSENDABLE])
@pytest.mark.parametrize("returned", [dict, Any, None, str])
def test_a_value_that_cannot_be_sent_is_named_with_its_place(
    make: Callable[[], Any], text: str, returned: Any
) -> None:
    app = Server("x")

    async def tool() -> Any:
        return make()

    tool.__annotations__["return"] = returned
    app.tool(tool)
    line = tool.__code__.co_firstlineno
    told = mistake(app)
    assert told.startswith(f"tool() (test_misuse.py:{line}) returned a value that cannot be sent: ")
    assert text in told


def test_of_a_large_value_a_bounded_part_is_searched() -> None:
    app = Server("x")
    circle: list[Any] = [Thing()]
    circle[:0] = [0] * 200_000

    @app.tool
    def tool() -> Any:
        return circle

    assert "it contains a value that cannot be encoded as JSON" in mistake(app)


def test_an_awaitable_that_was_not_awaited_is_named() -> None:
    app = Server("x")

    @app.tool
    async def tool(ctx: Context) -> Any:
        return {"a": ctx.elicit("?", str)}

    assert 'it is a ClientRequest at "a": is an await missing?' in mistake(app)


def test_unsendable_resource_value_is_logged_with_its_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Server("x")

    @app.resource("a://b")
    def read() -> Any:
        return {"a": Thing()}

    async def main() -> None:
        async with Client(app) as client:
            with pytest.raises(PeerError, match="Internal error"):
                await client.read_resource("a://b")

    asyncio.run(main())
    line = read.__code__.co_firstlineno
    assert (
        f"read() (test_misuse.py:{line}) returned a value that cannot be sent: a Thing at "
        '"a" cannot be encoded as JSON'
    ) in caplog.text


def test_middleware_that_returns_nothing_is_named() -> None:
    app = Server("x")

    @app.middleware
    async def forgetful(ctx: Context, proceed: Any) -> Any:
        await proceed()

    @app.tool
    def tool() -> int:
        return 5

    told = mistake(app)
    assert "a middleware returned None for" in told


# -- questions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["accepted", "content", "action"])
def test_an_answer_that_was_not_awaited_is_named(name: str) -> None:
    app = Server("x")

    @app.tool
    async def tool(ctx: Context) -> str:
        return str(getattr(ctx.elicit("name?", str), name))

    assert mistake(app) == (
        f"'ClientRequest' object has no attribute {name!r}: is an `await` missing? The client is "
        "asked when it is awaited"
    )


def test_a_field_that_a_revision_does_not_have_is_named() -> None:
    app = Server("x")

    class Form(Struct):
        days: list[Literal["mon", "tue"]]

    @app.tool
    async def tool(ctx: Context) -> str:
        return str(await ctx.elicit("days?", Form))

    result = call(app, "tool", revision="2025-06-18", on_elicit=lambda _: None)
    assert result.is_error
    assert "2025-06-18 has no other fields" in result.text
    assert 'a text, a number, a boolean or a choice of one text for "days"' in result.text


# -- completions -------------------------------------------------------------------------------


def test_a_completion_of_something_that_does_not_exist_is_logged_when_the_server_starts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Server("x")

    def complete(typed: str) -> list[str]:
        return []

    app.completion(prompt="review", argument="style")(complete)
    app.completion(prompt="review", argument="stlye")(complete)
    app.completion(prompt="reviews", argument="style")(complete)
    app.completion(resource="a://{b}", argument="b")(complete)
    app.completion(resource="a://{b}", argument="c")(complete)
    app.completion(resource="a://{c}", argument="c")(complete)

    @app.prompt
    def review(style: str) -> str:
        return style

    @app.resource("a://{b}")
    def read(b: str) -> str:
        return b

    async def main() -> None:
        async with Client(app), Client(app):
            pass

    assert caplog.messages == []
    asyncio.run(main())
    assert caplog.messages == [
        "completion of argument 'stlye' is never used: the prompt 'review' has no such argument, "
        "only style",
        "completion of argument 'style' is never used: the prompt 'reviews' does not exist",
        "completion of argument 'c' is never used: the resource template 'a://{b}' has no such "
        "argument, only b",
        "completion of argument 'c' is never used: the resource template 'a://{c}' does not exist",
    ]


def test_the_modifier_of_a_template_is_answered_with_what_does_the_same() -> None:
    with pytest.raises(ValueError, match=r"\{\+path\} matches several segments of a path"):
        Server("x").resource("repo://{path*}")(lambda path: path)


# -- lifespan ----------------------------------------------------------------------------------


def failing(error: Exception) -> Callable[[Server], Any]:
    @asynccontextmanager
    async def lifespan(app: Server) -> Any:
        raise error
        yield

    return lifespan


@pytest.mark.parametrize("revision", [None, *REVISIONS])
def test_a_client_in_the_process_sees_why_the_lifespan_failed(revision: str | None) -> None:
    cause = RuntimeError("no database")
    app = Server("x", lifespan=failing(cause))
    with pytest.raises(TransportError) as failed:
        call(app, "tool", revision=revision)
    assert str(failed.value) == "the server failed: RuntimeError: no database"
    assert failed.value.__cause__ is cause
    with pytest.raises(TransportError, match="the server failed: RuntimeError: no database"):
        SyncClient(app, revision=revision).__enter__()


def test_a_lifespan_that_returns_no_context_manager_is_named() -> None:
    app = Server("x", lifespan=lambda app: 5)  # type: ignore[arg-type,return-value]  # the mistake
    with pytest.raises(
        TransportError, match=r"TypeError: .*int' object does not support the async"
    ):
        call(app, "tool")


def test_sync_client_of_the_same_server_inside_a_tool_raises_about_the_loop() -> None:
    app = Server("x")

    @app.tool
    def tool() -> str:
        with SyncClient(app) as client:
            return client.call_tool("other").text

    assert mistake(app) == (
        "the server failed: RuntimeError: <Server 'x'> is being served on another event loop"
    )


# -- exceptions of handlers --------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_for_tests_raises_what_the_handler_raised(revision: str) -> None:
    app = Server("x")
    error = LookupError("no such city")

    def fail() -> Any:
        raise error

    async def fail_later() -> Any:
        await asyncio.sleep(0)
        raise error

    app.add_tool(fail)
    app.add_tool(fail_later)
    app.add_resource(fail, "a://b")
    app.add_prompt(fail)
    app.add_tool(functools.partial(fail), "inline", inline=True)

    @app.tool
    def tells() -> str:
        raise ToolError("meant for the caller")

    @app.resource("b://c")
    def refuses() -> str:
        raise RequestError("RESOURCE_NOT_FOUND")

    @app.tool
    def good() -> str:
        return "good"

    async def main() -> None:
        async with Client(app, revision=revision, raise_exceptions=True) as client:
            requests = [
                functools.partial(client.call_tool, "fail"),
                functools.partial(client.call_tool, "fail_later"),
                functools.partial(client.call_tool, "inline"),
                functools.partial(client.read_resource, "a://b"),
                functools.partial(client.get_prompt, "fail"),
            ]
            for request in requests:
                with pytest.raises(LookupError) as raised:
                    await request()  # type: ignore[operator]  # of several types
                assert raised.value is error
                assert raised.traceback[-1].name in ("fail", "fail_later")
            result = await client.call_tool("tells")
            assert (result.is_error, result.text) == (True, "meant for the caller")
            with pytest.raises(PeerError, match="not found"):
                await client.read_resource("b://c")
            assert (await client.call_tool("good")).text == "good"

    asyncio.run(main())
    with SyncClient(app, raise_exceptions=True) as client, pytest.raises(LookupError):
        client.call_tool("fail")


def test_without_the_option_a_client_gets_a_reference() -> None:
    app = Server("x")

    @app.tool
    def tool() -> int:
        raise LookupError("secret")

    result = call(app, "tool")
    assert result.is_error
    assert "secret" not in result.text


def test_a_wrong_result_is_raised_too() -> None:
    app = Server("x")

    @app.tool
    def tool() -> int:
        return "five"  # type: ignore[return-value]  # the mistake

    with pytest.raises(OutputMismatch, match="expected an integer, got a string"):
        call(app, "tool", raise_exceptions=True)


def test_exceptions_are_raised_only_for_a_server_in_the_process() -> None:
    async def main() -> None:
        client = Client(["true"], raise_exceptions=True)
        with pytest.raises(ValueError, match="raise_exceptions=True is for a server in this proc"):
            await client.connect()

    asyncio.run(main())


def test_a_handler_that_ends_the_process_does_not_end_the_test() -> None:
    app = Server("x")

    @app.tool
    def tool() -> str:
        raise SystemExit(3)

    assert call(app, "tool", raise_exceptions=True).is_error


# -- a blocked event loop ----------------------------------------------------------------------


def test_a_loop_that_is_blocked_for_a_quarter_more_than_the_limit_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The watchdog looks four times in the limit, so a block is seen to begin in time."""
    limit = 0.2
    app = Server("x", limits=ServerLimits(stall=limit))
    app._core.runtime.calls.used = 1
    waits: list[float | None] = []

    class Looks(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return len(waits) > 6 or super().wait(0.001)

    loop = asyncio.new_event_loop()
    watch: Any = StallWatch(app, loop)
    watch._stop = Looks()
    caplog.set_level(logging.WARNING)
    watch.start()
    watch._thread.join(10)
    loop.close()
    # It asks at the first look, and reports at the fifth: four quarters later.
    assert set(waits) == {limit / 4}
    assert len(caplog.messages) == 1
    assert "the event loop was blocked for 0.2 s" in caplog.messages[0]
