"""The verb `ping`: whether a server answers, and how fast.

The question is `ping`, or `server/discover` in the revision that has no ping. Connecting is
not counted.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ...errors import RequestTimeout, visible
from ..command import UsageError
from ..connect.target import add_target, talk, wants_json, words_of
from ..exit_codes import SUCCESS, UNREACHABLE
from ..output.reports import emit

if TYPE_CHECKING:
    from ...client.client import Client
    from ..output.progress import Console

__all__ = ["FORMAT", "TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True
FORMAT: Final = "trunkline.ping/1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    parser.add_argument(
        "-c", "--count", type=_count, default=1, metavar="N", help="ask so often; default: 1"
    )
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="S", help="seconds between; default: 1"
    )


def _count(text: str) -> int:
    # Python takes more for an integer than people do.
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on, not {text!r}")
    return int(text)


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds, not {text!r}")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Ask the server whether it is there and return the exit status."""
    if words_of(options):
        raise UsageError("ping takes nothing but a server")

    async def work(client: Client, console: Console) -> int:
        method = "server/discover" if client.era == "per_request" else "ping"
        if not wants_json(options):
            emit(f"{_server(client)} answers {method} in MCP {client.revision}")
        times = await _times(client, options)
        if wants_json(options):
            from ..output.content import json_text

            emit(json_text(_document(client, method, times)))
        elif options.count > 1:
            emit(_summary(times))
        return SUCCESS if any(each is not None for each in times) else UNREACHABLE

    return talk(options, work)


async def _times(client: Client, options: argparse.Namespace) -> list[float | None]:
    """Return how many milliseconds each answer took, or None where none came in time."""
    import asyncio

    times: list[float | None] = []
    for number in range(1, options.count + 1):
        if times:
            await asyncio.sleep(options.interval)
        try:
            times.append(1000 * await _asked(client))
            said = f"answer {number}: {times[-1]:.2f} ms"
        except RequestTimeout:
            times.append(None)
            said = f"answer {number}: none in time"
        if not wants_json(options):
            emit(said)
    return times


async def _asked(client: Client) -> float:
    if client.era != "per_request":
        return await client.ping()
    import asyncio

    now = asyncio.get_running_loop().time
    before = now()
    await client.discover(fresh=True)
    return now() - before


def _server(client: Client) -> str:
    info = client.server_info
    return "a server" if info is None else visible(f"{info.name} {info.version}", kept="")


def _summary(times: list[float | None]) -> str:
    came = [each for each in times if each is not None]
    counts = f"{len(times)} asked, {len(came)} answered"
    if not came:
        return counts
    middle = sum(came) / len(came)
    return f"{counts}; least {min(came):.2f}, mean {middle:.2f}, most {max(came):.2f} ms"


def _document(client: Client, method: str, times: list[float | None]) -> dict[str, Any]:
    info = client.server_info
    return {
        "format": FORMAT,
        "server": {} if info is None else info,
        "revision": client.revision,
        "method": method,
        # Milliseconds; null where no answer came in time.
        "times": times,
    }
