"""One cell of the matrix: a client, a server, a transport and an era, and their conversation."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from trunkline.judge import TraceEntry, read_trace
from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from ..checks import Unexpected, describe, expect, until
from ..http.process import ended, free_port, served
from ..http.relay import Relay
from ..recordings import by_session, connections, judged, processes, summed_up
from .clients import CLIENTS, Client
from .differences import Difference, difference
from .pins import ROOT
from .script import STEPS, Answer, NotShown, Step
from .servers import SERVERS, Server, Start

__all__ = [
    "ERAS",
    "NO_API",
    "SERVER_LACKS",
    "TRANSPORTS",
    "Cell",
    "Result",
    "cells",
    "converse",
    "reason",
]

TRANSPORTS: Final = ("stdio", "HTTP")
ERAS: Final = ("handshake", "per-request")
NO_LONGER: Final = "differs no longer: remove the row"
# Why a step is left out.
NO_API: Final = "no API"
SERVER_LACKS: Final = "the server has no such thing"
HANDSHAKE: Final = Window(until=V2026_07_28)
# Seconds: for a driver that imports thousands of modules on a busy machine, one step, the end.
CONNECT_S: Final = 60.0
STEP_S: Final = 30.0
CLOSE_S: Final = 20.0
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
# Libraries that send reports home unless told not to.
SILENT: Final = {
    "ANONYMIZED_TELEMETRY": "false",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "AGNO_TELEMETRY": "false",
    "OTEL_SDK_DISABLED": "true",
}


class Cell(NamedTuple):
    """Where a row and a column meet, over one transport, in one era."""

    client: Client
    server: Server
    transport: str
    era: str

    @property
    def name(self) -> str:
        """What it is called in what is printed."""
        return f"{self.client.title} > {self.server.name} {self.transport} {self.era}"


class Result(NamedTuple):
    """How a conversation went."""

    cell: Cell
    passed: list[str]
    # Steps that failed, differ as `differences` says, or do not exist; with the reason.
    failed: dict[str, str]
    differ: dict[str, str]
    lacking: dict[str, str]
    revision: str


def cells() -> list[Cell]:
    """Return every cell, those that cannot exist included."""
    return [
        Cell(client, server, transport, era)
        for client in CLIENTS
        for server in SERVERS
        for transport in TRANSPORTS
        for era in ERAS
    ]


def reason(cell: Cell) -> str:
    """Return why a cell cannot exist, or nothing if it can."""
    if cell.era == "per-request":
        if not cell.server.has_per_request:
            return "the server has no 2026-07-28"
        return "the client has no 2026-07-28" if cell.client.eras == "handshake" else ""
    is_limited = cell.server.can_be_limited or not cell.server.has_per_request
    if cell.client.eras == "newest" and not is_limited:
        return "the client speaks 2026-07-28 where the server has it, and has no setting"
    return ""


async def converse(cell: Cell, folder: Path) -> Result:
    """Hold the conversation of a cell."""
    name = "".join(each if each.isalnum() else "-" for each in cell.name)
    path = folder / f"{name}.jsonl"
    result = Result(cell, [], {}, {}, {}, "")
    try:
        async with _reachable(cell, path, result) as (place, begin_recording):
            result = await _talk(cell, path, place, begin_recording, result)
    except Exception as error:  # noqa: BLE001  # whatever it is, the next cell has its turn
        step = "close" if result.passed else "connect"
        known = _known(cell, step)
        if known is None:
            result.failed.setdefault(step, describe(error))
        else:
            result.differ[step] = known.why
    sides = {"client": cell.client is CLIENTS[0], "server": cell.server is SERVERS[0]}
    if any(sides.values()) and path.exists():
        recording = by_session(path) if cell.client.reconnects else path
        for side in (each for each, is_ours in sides.items() if is_ours):
            errors = summed_up(judged(recording, side).errors())
            if errors:
                result.failed[f"what the {side} of Trunkline sent"] = " | ".join(errors)
    return result


@asynccontextmanager
async def _reachable(
    cell: Cell, path: Path, result: Result
) -> AsyncIterator[tuple[dict[str, Any], Any]]:
    """Have a server that is recorded, for the length of the block."""
    is_limited = cell.era == "handshake" and cell.client.eras == "newest"
    start = Start(is_limited, cell.client.reads_one_page)
    if cell.transport == "stdio":
        tee = [_python(), "-m", "interop.tee", str(path)]
        yield {"command": [*tee, *cell.server.stdio_command(start)]}, lambda: None
        if cell.server is SERVERS[0]:
            await _all_exited(path)
        return
    port, log = free_port(), path.with_suffix(".server.log")
    command, environment = cell.server.http_command(port, start)
    async with served(command, port, log, environment) as process:
        async with Relay(port, path) as relay:
            yield {"url": f"{relay.url}/mcp"}, relay.begin_recording
        await ended(process, log, is_quiet=cell.server is SERVERS[0])


async def _all_exited(path: Path) -> None:
    """See that every process of our server exits with 0; some clients send a signal at once."""
    found = connections(path)
    await until(lambda: all("status" in processes(each) for each in found), "end of the server")
    for each in found:
        expect(processes(each)["status"], 0, "exit status of the server")


def _python() -> str:
    return str(ROOT / ".venv-interop" / "bin" / "python")


async def _talk(
    cell: Cell, path: Path, place: dict[str, Any], begin_recording: Any, result: Result
) -> Result:
    with path.with_suffix(".driver.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *cell.client.command(),
            json.dumps(place),
            cell.era,
            *([cell.client.version[0]] if cell.client.driver.endswith(".mjs") else []),
            cwd=ROOT,
            env={**os.environ, **SILENT},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=1 << 22,
        )
    try:
        async with asyncio.timeout(CONNECT_S):
            verbs = (await _line(process))["verbs"]
        # One that connects for each step has said nothing by now.
        if not cell.client.reconnects:
            result = _connected(cell, path, result)
        for step in STEPS:
            if cell.client.reconnects and result.passed:
                begin_recording()
            await _take(cell, step, process, verbs, result)
            if cell.client.reconnects and not result.revision:
                result = _connected(cell, path, result)
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(CLOSE_S):
            expect(await process.wait(), 0, "exit status of the client")
        result.passed.append("close")
    except Unexpected as error:
        tail = path.with_suffix(".driver.log").read_text(errors="replace").splitlines()[-1:]
        raise Unexpected(f"{error} {' '.join(tail)}".strip()) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return result


def _connected(cell: Cell, path: Path, result: Result) -> Result:
    """See that the era is the one of the cell, by what was recorded."""
    revision = _spoken(connections(path))
    if HANDSHAKE.holds(revision) != (cell.era == "handshake"):
        raise Unexpected(f"speaks {revision}, in the era {cell.era}")
    if _known(cell, "connect") is None:
        result.passed.append("connect")
    else:
        result.failed["connect"] = NO_LONGER
    return result._replace(revision=revision)


def _known(cell: Cell, step: str) -> Difference | None:
    return difference(cell.client.title, cell.server.name, step, cell.transport, cell.era)


def _spoken(paths: Iterable[Path]) -> str:
    """Return the revision of a recording: what `initialize` gave, or each request says."""
    claimed = ""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for entry in read_trace(lines):
                if not isinstance(entry, TraceEntry) or not entry.raw:
                    continue
                message = _object(str(entry.raw))
                agreed = (message.get("result") or {}).get("protocolVersion")
                if agreed:
                    return str(agreed)
                meta = (message.get("params") or {}).get("_meta") or {}
                claimed = meta.get(VERSION_KEY) or claimed
    if not claimed:
        raise Unexpected("no revision was recorded")
    return claimed


def _object(text: str) -> dict[str, Any]:
    """Return a JSON object; what is something else, such as a page of HTTP, has no members."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _take(
    cell: Cell,
    step: Step,
    process: asyncio.subprocess.Process,
    verbs: list[str],
    result: Result,
) -> None:
    """Have the client take one step, and note how it went."""
    revision = V2025_11_25 if cell.era == "handshake" else V2026_07_28
    arguments = step.arguments(cell.server.menu)
    if not step.when.holds(revision):
        return
    if arguments is None:
        result.lacking[step.name] = SERVER_LACKS
        return
    if step.verb not in verbs and step.verb != "at_once":
        result.lacking[step.name] = NO_API
        return
    assert process.stdin is not None
    asked = {"verb": step.verb, "arguments": arguments}
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    known = _known(cell, step.name)
    try:
        async with asyncio.timeout(STEP_S):
            found = await _line(process)
        if "lacks" in found:
            result.lacking[step.name] = found["lacks"]
            return
        answer = Answer(found.get("value"), found.get("failed", ""), found.get("code"))
        step.check(cell.server.menu, answer)
    except NotShown as error:
        result.lacking[step.name] = str(error)
        return
    except (Unexpected, TimeoutError, TypeError, KeyError) as error:
        if process.returncode is not None:
            raise
        if known is None:
            result.failed[step.name] = describe(error)
        else:
            result.differ[step.name] = f"{known.why} [{describe(error)}]"
        if isinstance(error, TimeoutError):
            raise Unexpected(f"no answer to {step.name!r} within {STEP_S:g} s") from None
        return
    if known is None or known.is_race:
        result.passed.append(step.name)
    else:
        result.failed[step.name] = NO_LONGER


async def _line(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        await process.wait()
        raise Unexpected("the driver ended.")
    found: dict[str, Any] = json.loads(line)
    return found
