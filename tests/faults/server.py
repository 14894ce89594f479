"""A server with handlers of every kind of bad manners; started by the tests beside it.

`server.py '{"grace": 0.5}'` sets limits; a second argument sets the largest message. In the
environment `SLOW_START` names a file that the lifespan waits for, and `STATE_KEY` is what seals
the answers that a client carries.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trunkline import Context, Server, ServerLimits, TaskSettings
from trunkline.jsonrpc import Limits, Policy


class Stubborn(BaseException):
    """An exception of an author who did not read the manual."""


@asynccontextmanager
async def lifespan(app: Server) -> AsyncIterator[None]:
    print("starting", file=sys.stderr, flush=True)
    slow = os.environ.get("SLOW_START")
    while slow and not Path(slow).exists():
        await asyncio.sleep(0.01)
    print("started", file=sys.stderr, flush=True)
    yield
    try:
        print("lifespan left", file=sys.stderr, flush=True)
    except OSError:
        pass  # whoever started us is gone, and nobody reads our log


given = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
size = int(sys.argv[2]) if len(sys.argv) > 2 else None
policy = Policy() if size is None else Policy().replace(limits=Limits(stdio=size))
logging.basicConfig(level=os.environ.get("LEVEL", "WARNING"), format="%(levelname)s %(message)s")

keys = [os.environ["STATE_KEY"].encode()] if "STATE_KEY" in os.environ else []
app = Server(
    "faults",
    limits=ServerLimits(**given),
    policy=policy,
    lifespan=lifespan,
    state_keys=keys,
    tasks=TaskSettings(poll_interval=0.05),
)

kept: list[Any] = []


@app.tool
async def echo(text: str) -> str:
    return text


@app.tool(inline=True)
def quick(number: int) -> int:
    return number


@app.tool
def on_a_thread(text: str) -> str:
    return text


@app.tool
async def length(text: str) -> int:
    return len(text)


@app.tool
async def large(size: int) -> str:
    return "x" * size


@app.tool
async def announce(path: str, cleanup: str = "") -> str:
    """Say that it has begun, then wait for ever; say so, too, when it is stopped."""
    Path(path).write_text("begun")
    try:
        await asyncio.Event().wait()
    finally:
        Path(path).write_text(f"cleaned up{cleanup}")
    return "never"


@app.tool
async def forever() -> str:
    await asyncio.Event().wait()
    return "never"


@app.tool
async def until_file(path: str) -> str:
    while not Path(path).exists():
        await asyncio.sleep(0.005)
    return path


@app.tool
def blocked(path: str) -> str:
    """Block a thread until a file is there, or for ever."""
    Path(path + ".begun").touch()
    while not Path(path).exists():
        time.sleep(0.005)
    return path


@app.tool
def touch(path: str) -> str:
    Path(path).touch()
    return path


@app.tool
async def stall(seconds: float) -> str:
    time.sleep(seconds)  # this is the fault
    return "late"


@app.tool
async def raises(what: str) -> str:
    raise _exception(what)


@app.tool
def raises_on_a_thread(what: str) -> str:
    raise _exception(what)


@app.tool(inline=True)
def raises_inline(what: str) -> str:
    raise _exception(what)


@app.resource("raises://{what}")
async def raising(what: str) -> str:
    raise _exception(what)


@app.prompt
async def raising_prompt(what: str) -> str:
    raise _exception(what)


def _exception(what: str) -> BaseException:
    kinds: dict[str, BaseException] = {
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "GeneratorExit": GeneratorExit(),
        "CancelledError": asyncio.CancelledError(),
        "StopIteration": StopIteration(1),
        "StopAsyncIteration": StopAsyncIteration(),
        "TimeoutError": TimeoutError(),
        "MemoryError": MemoryError(),
        "ExceptionGroup": ExceptionGroup("several", [ValueError(), KeyError()]),
        "Stubborn": Stubborn("stubborn"),
        "ValueError": ValueError("an ordinary fault"),
    }
    return kinds[what]


@app.tool
async def cancels_itself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "not reached"


@app.tool
async def cancels_itself_and_returns() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "returned"


@app.tool
async def swallows(path: str, then: str) -> str:
    """Take no notice of being cancelled."""
    Path(path + ".begun").touch()
    while not Path(path).exists():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            Path(path + ".swallowed").touch()
    Path(path + ".done").touch()
    return then


@app.tool
async def returns(what: str) -> Any:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return {
        "an object": object(),
        "a function": print,
        "not a number": math.nan,
        "infinity": [math.inf],
        "a cyclic list": cyclic,
        "a cyclic dict": loop,
        "a deep list": deep,
        "a lone surrogate": "\ud800",
        "bytes in a dict": {"a": object()},
        "a generator": (n for n in range(3)),
        "an exception": ValueError("returned"),
        "keys of two types": {1: 1, "1": 2},
    }[what]


@app.tool
async def promises_a_number() -> int:
    return "three"  # type: ignore[return-value]  # this is the fault


@app.tool
async def recurses() -> str:
    def deeper(n: int) -> int:
        return deeper(n + 1) + 1

    return str(deeper(0))


@app.tool
async def floods(ctx: Context, times: int, size: int, path: str = "") -> str:
    """Report progress and log without awaiting either."""
    for n in range(times):
        ctx.progress(n + 1, times, "x" * size)
        ctx.log("error", "x" * size)
        if n % 100 == 99:
            await asyncio.sleep(0)
    if path:
        Path(path).touch()
    return "flooded"


@app.tool
def floods_from_a_thread(ctx: Context, times: int, size: int, path: str = "") -> str:
    for n in range(times):
        ctx.progress(n + 1, times, "x" * size)
    if path:
        Path(path).touch()
    return "flooded"


@app.tool
async def floods_and_awaits(ctx: Context, times: int, size: int, path: str = "") -> str:
    for n in range(times):
        await ctx.progress(n + 1, times, "x" * size)
    if path:
        Path(path).touch()
    return "flooded"


@app.tool
async def leaves_a_task(path: str) -> str:
    """Begin something that goes on after the answer."""

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            Path(path).write_text("cancelled")

    kept.append(asyncio.create_task(background()))
    await asyncio.sleep(0)
    return "begun"


@app.tool
async def leaves_a_stubborn_task() -> str:
    async def background() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    kept.append(asyncio.create_task(background()))
    await asyncio.sleep(0)
    return "begun"


@app.tool
async def keeps_its_context(ctx: Context) -> str:
    kept.append(ctx)
    return "kept"


@app.tool
async def uses_the_kept_context() -> str:
    """Use a context whose request was answered."""
    ctx: Context = kept.pop()
    ctx.progress(1)
    await ctx.progress(2, 3, "late")
    await ctx.log("error", "late")
    return repr(ctx)


@app.tool
async def uses_its_context_in_a_thread_that_stays(ctx: Context, path: str) -> str:
    """Leave a thread that reports on, after the end of the server too."""

    def report() -> None:
        n = 0
        try:
            while not Path(path).exists():
                n += 1
                ctx.progress(n)
                Path(path + ".reports").write_text(str(n))
                time.sleep(0.005)
        except BaseException as error:
            Path(path + ".raised").write_text(repr(error))
            raise

    threading.Thread(target=report, daemon=False).start()
    return "begun"


@app.tool
async def prints(how: str) -> str:
    if how == "print":
        print("not a message")
    elif how == "stdout":
        sys.stdout.write("not a message\n")
        sys.stdout.flush()
    elif how == "original stdout":
        assert sys.__stdout__ is not None
        sys.__stdout__.write("not a message\n")
        sys.__stdout__.flush()
    elif how == "descriptor":
        os.write(1, b"not a message\n")
    elif how == "child":
        await (await asyncio.create_subprocess_exec("echo", "not a message")).wait()
    elif how == "close":
        sys.stdout.close()
    elif how == "close descriptor":
        os.close(1)
    elif how == "read":
        sys.stdin.read()
    return how


@app.tool
async def asks(ctx: Context, timeout: float = 3600) -> str:
    """Ask the client something, and say how that went."""
    try:
        await ctx.request("ping", timeout=timeout)
    except BaseException as error:
        print(f"asking ended: {type(error).__name__}", file=sys.stderr, flush=True)
        raise
    return "answered"


@app.tool
async def asks_for_roots(ctx: Context) -> str:
    return str(len((await ctx.request("roots/list")).roots))


def _says_how_asking_ended(error: BaseException) -> None:
    print(f"asking ended: {type(error).__name__}", file=sys.stderr, flush=True)


@app.tool
async def asks_the_user(ctx: Context) -> str:
    try:
        answer = await ctx.elicit("What is your name?", str, key="name")
    except BaseException as error:
        _says_how_asking_ended(error)
        raise
    return f"Hello, {answer.content}!"


@app.tool
def asks_the_user_from_a_thread(ctx: Context) -> str:
    try:
        answer = ctx.elicit("What is your name?", str, key="name").wait()
    except BaseException as error:
        _says_how_asking_ended(error)
        raise
    return f"Hello, {answer.content}!"


@app.tool(task="optional")
async def long_work(path: str) -> str:
    """Go on until a file is there; tell, beside it, how this began and ended."""
    Path(path + ".begun").touch()
    try:
        while not Path(path).exists():
            await asyncio.sleep(0.005)
    except BaseException as error:
        Path(path + ".ended").write_text(type(error).__name__)
        raise
    return "done at last"


@app.tool
async def changes(uri: str, times: int = 1, size: int = 0, rounds: int = 1, done: str = "") -> str:
    """Say that a resource has changed, and others like it, again and again."""
    for _ in range(rounds):
        for n in range(times):
            app.notify_resource_updated(uri + (f"{n:0{size}}" if size else ""))
        await asyncio.sleep(0.01)
    if done:
        Path(done).touch()
    return "told"


if __name__ == "__main__":
    app.run()
