"""The server of the soak test, as a process: `python -m tools.soak.server [ADDRESS]`.

Without an address it serves standard streams; with asgi://127.0.0.1:0/mcp it is an ASGI application
in uvicorn. It has handlers of every kind, and `census`, which counts what the process holds. In the
environment SOAK_CERT names certificate and key for TLS, SOAK_CLIENTS is the number of HTTP clients
that its limits are for, and SOAK_FAULT names faults to commit on purpose, by which the tests of
this tool see that it finds them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import time
from base64 import b64encode
from dataclasses import replace
from typing import Any, Final

import msgspec

from tools.soak.limits import capacity_for
from tools.soak.measure import descriptors, resident_kib, timers, trim
from trunkline import (
    Context,
    HttpLimits,
    HttpSettings,
    Server,
    ServerLimits,
    SocketLimits,
    TaskSettings,
    Tcp,
    ToolError,
)
from trunkline.jsonrpc import Limits, Policy
from trunkline.server import ClientShares
from trunkline.server.api.run import run_listening
from trunkline.transports.addresses import Http, Tls, Unix, Ws, parse_address, parse_socket_address
from trunkline.transports.http.endpoint.old_sse import OldSseSession

# The largest message: small, so that an oversize one is cheap to send.
MAX_MESSAGE_BYTES: Final = 2 * 1024 * 1024

# Short, so that ended tasks are not what memory is used for.
TASK_TTL_S: Final = 10.0

# Short, so that abandoned sessions have ended when the server is looked at.
SESSION_IDLE_S: Final = 2.0

# How often each numbered request ran. Pages that are not used take no memory.
ran: Final = bytearray(16 * 1024 * 1024)

FAULTS: Final = frozenset(os.environ.get("SOAK_FAULT", "").split(",")) - {""}
# What faults keep.
kept: list[Any] = []

# What the limits of HTTP are for; other targets have no flood, and limits of their own.
CLIENTS: Final = int(os.environ.get("SOAK_CLIENTS", "0"))
CAPACITY: Final = capacity_for(CLIENTS or 200)

# On a busy machine many TLS handshakes are unfinished: none is to give way to another.
SOCKET_LIMITS: Final = SocketLimits(connections=256, tls_handshake=120, idle=20)
# Streams and comments begin soon, so that they are part of the run.
HTTP_LIMITS: Final = HttpLimits(
    connections=CAPACITY.connections,
    requests=CAPACITY.connections,
    sessions=CAPACITY.sessions,
    idle_timeout=20.0,
    stream_after=0.2,
    keep_alive=0.5,
    session_idle=3600.0 if "session" in FAULTS else SESSION_IDLE_S,
    retry_ms=50,
)
HTTP: Final = HttpSettings(old_sse=True)


def _server_limits() -> ServerLimits:
    # A client that is to read does so, however late on a busy machine.
    limits = ServerLimits(linger=0.2, threads=CAPACITY.threads, unread_timeout=120.0)
    if CLIENTS:
        limits = msgspec.structs.replace(
            limits,
            in_flight_overall=CAPACITY.calls,
            waiting_for_thread=CAPACITY.waiting_for_thread,
            connection_bytes=CAPACITY.connection_bytes,
            server_bytes=CAPACITY.server_bytes,
        )
    if "shares" in FAULTS:
        everything = ClientShares(together=1.0, alone=1.0, receiving=1.0)
        limits = msgspec.structs.replace(limits, client_shares=everything)
    return limits


app = Server(
    "soak",
    policy=Policy().replace(
        limits=Limits(
            stdio=MAX_MESSAGE_BYTES,
            tcp=MAX_MESSAGE_BYTES,
            unix=MAX_MESSAGE_BYTES,
            http=MAX_MESSAGE_BYTES,
        )
    ),
    limits=_server_limits(),
    tasks=TaskSettings(ttl=TASK_TTL_S, quick=0.0, poll_interval=0.02),
)


def commit_faults() -> None:
    """Commit the faults that SOAK_FAULT names, but those of HTTP.

    They are memory, task, timer, descriptor, thread and account. With twice each numbered request
    runs twice, with answers some events are sent twice, with session no session expires, and with
    shares one client may have all of every limit.
    """
    loop = asyncio.get_running_loop()
    if "memory" in FAULTS:
        kept.append(b"x" * 100_000)
    if "task" in FAULTS:
        kept.append(loop.create_task(asyncio.Event().wait()))
    if "timer" in FAULTS:
        loop.call_later(3600, print)
    if "account" in FAULTS and len(app._core.runtime.accounts) < 100:
        key = f"kept {len(app._core.runtime.accounts)}"
        app._core.runtime.accounts.open(key).budget.charge(1000)
    if "descriptor" in FAULTS and len(descriptors()) < 100:
        os.open(os.devnull, os.O_RDONLY)
    if "thread" in FAULTS and threading.active_count() < 30:
        threading.Thread(target=time.sleep, args=(3600,), name="kept", daemon=True).start()


@app.tool
async def echo(text: str) -> str:
    """Return the text."""
    if FAULTS:
        commit_faults()
    return text


@app.tool(inline=True)
def inline(number: int) -> int:
    """Return the number, on the event loop."""
    return number


@app.tool
def threaded(text: str) -> str:
    """Return the text, from a thread."""
    return text


@app.tool
async def large(size: int) -> str:
    """Return a text of a size."""
    return "x" * size


@app.tool
async def sleep(seconds: float) -> str:
    """Return after a time."""
    await asyncio.sleep(seconds)
    return "slept"


@app.tool
async def hold(until: float) -> str:
    """Return at a time."""
    await asyncio.sleep(max(0.0, until - time.time()))
    return "held"


@app.tool
def hold_thread(until: float) -> str:
    """Return at a time, from a thread that is used until then."""
    time.sleep(max(0.0, until - time.time()))
    return "held"


def note_run(number: int) -> int:
    """Note that a numbered request runs; return the number."""
    ran[number] = min(255, ran[number] + 1 + ("twice" in FAULTS))
    return number


@app.tool
async def count(number: int) -> int:
    """Count a request."""
    if FAULTS:
        commit_faults()
    return note_run(number)


@app.tool(inline=True)
def count_inline(number: int) -> int:
    """Count a request, on the event loop."""
    return note_run(number)


@app.tool
def count_threaded(number: int) -> int:
    """Count a request, from a thread."""
    return note_run(number)


@app.tool
async def count_slowly(ctx: Context, number: int, times: int = 1, seconds: float = 0.0) -> int:
    """Count a request, and report progress."""
    note_run(number)
    for n in range(times):
        await ctx.progress(n + 1, times, "on the way")
        await asyncio.sleep(seconds)
    return number


@app.tool
async def count_later(ctx: Context, number: int, seconds: float) -> int:
    """Count a request whose client comes back for the answer."""
    note_run(number)
    ctx.close_stream()
    await asyncio.sleep(seconds)
    return number


@app.tool
async def count_asked(ctx: Context, number: int) -> int:
    """Ask the user, then count: a handler that asks may be run again."""
    await ctx.elicit("A word?", str, key="word")
    return note_run(number)


@app.tool
async def executions(start: int, count: int) -> dict[str, str]:
    """Return how often requests ran, one byte for each."""
    return {"result": b64encode(ran[start : start + count]).decode()}


@app.tool
async def fails() -> str:
    """Fail."""
    raise ToolError("as it should")


@app.tool
async def reports(ctx: Context, times: int) -> str:
    """Report progress and log."""
    for n in range(times):
        await ctx.progress(n + 1, times, "on the way")
        await ctx.info("on the way")
    return "there"


@app.tool
async def asks(ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit("A word?", str, key="word")
    return f"{answer.action}"


@app.tool(task="optional")
async def works(seconds: float) -> str:
    """Work for a while, as a task if that is wanted."""
    await asyncio.sleep(seconds)
    return "worked"


@app.tool
async def changes() -> str:
    """Change a resource and the list of tools."""
    if "extra" in app._core.catalog.tools:
        app.remove_tool("extra")
    else:
        app.add_tool(_extra, "extra")
    app.notify_resource_updated("note://1")
    return "changed"


def _extra() -> str:
    return "extra"


@app.resource("note://{number}")
def note(number: str) -> str:
    """A note."""
    return f"note {number}"


@app.prompt
def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


@app.tool
async def census() -> dict[str, Any]:
    """Count what this process holds, without what can be collected."""
    gc.collect()
    trim()
    here = asyncio.current_task()
    return {
        "rss_kib": resident_kib(),
        "in_flight": app._core.runtime.in_flight - 1,
        "connections": len(app._core.runtime.connections),
        "tasks": sorted(_name(task) for task in asyncio.all_tasks() if task is not here),
        "timers": sorted(timers(asyncio.get_running_loop())),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "descriptors": len(descriptors()),
        "accounts": len(app._core.runtime.accounts),
        "held_bytes": app._core.runtime.budget.used,
        **_http_holding(),
    }


def _http_holding() -> dict[str, int]:
    found = {"sessions": 0, "exchanges": 0, "event_logs": 0}
    for listener in app._core.runtime.listeners:
        # Of an ASGI application it belongs to the run.
        endpoint = getattr(getattr(listener, "_run", None), "endpoint", None)
        endpoint = endpoint or getattr(listener, "_endpoint", None)
        if endpoint is not None:
            service, sessions = endpoint.service, list(endpoint.sessions)
            found["sessions"] += max(len(sessions), len(service._sessions))
            found["exchanges"] += sum(map(_exchanges, sessions))
            found["event_logs"] += 0 if service._store is None else len(service._store._records)
    return found


def _exchanges(session: Any) -> int:
    if isinstance(session, OldSseSession):
        return int(session._exchange is not None)
    return len(session.exchanges)


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", "?")


def send_events_twice() -> None:
    """Replace how a session makes events: the client sees each of them twice."""
    # Imported here: only this fault needs it.
    from trunkline.transports.http.endpoint.sessions import HttpSession

    event = HttpSession.event
    HttpSession.event = lambda *given: event(*given) * 2  # type: ignore[method-assign]  # a fault


def address_of(text: str) -> Http | Tcp | Unix:
    """Return the address to listen on, with a certificate for TLS."""
    cert = os.environ.get("SOAK_CERT")
    tls = None
    if cert:
        certificate, key = cert.split(os.pathsep)
        tls = Tls(cert=certificate, key=key)
        if text.startswith("tls:"):
            return parse_socket_address(text, tls=tls)
    address = parse_address(text)
    if isinstance(address, Ws):
        raise ValueError("a WebSocket is served beside HTTP")
    if isinstance(address, Http) and tls is not None:
        return replace(address, tls=tls)
    return address


def main() -> None:
    """Serve until a signal, or the end of input."""
    if "answers" in FAULTS:
        send_events_twice()
    logging.basicConfig(level="WARNING", format="%(levelname)s %(name)s: %(message)s")
    if len(sys.argv) < 2:
        app.run()
        return
    if sys.argv[1].startswith("asgi:"):
        # Imported here: only this needs uvicorn.
        from tools.soak.asgi_server import run_asgi

        run_asgi(app, HTTP_LIMITS, HTTP, lambda url: print(url, flush=True))
        return
    address = address_of(sys.argv[1])
    run_listening(
        app,
        address,
        HTTP_LIMITS if isinstance(address, Http) else SOCKET_LIMITS,
        http=HTTP if isinstance(address, Http) else None,
        on_ready=lambda address: print(address, flush=True),
    )


if __name__ == "__main__":
    main()
