"""The verb `ping`: measures how fast a server answers.

The request is `ping`, or `server/discover` in revisions without ping. The time to connect is not
counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import RequestTimeout, visible
from ..command import UsageError
from ..connect.options import add_target, take_words, wants_json
from ..connect.talk import talk
from ..exit_codes import SUCCESS, UNREACHABLE
from ..output.reports import emit

if TYPE_CHECKING:
    from ...client.client import Client
    from ..connect.talk import Work
    from ..output.progress import Console

__all__ = ["EXAMPLES", "FORMAT", "TAKES_COMMAND", "add_options", "configure", "run", "work_of"]

TAKES_COMMAND: Final = True
FORMAT: Final = "trunkline.ping/1"
EXAMPLES: Final = """\
trunkline ping notes.py
trunkline ping https://mcp.example.org/mcp --timeout 5
trunkline ping -c 10 --interval 0.2 -- npx some-server
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, takes_roots=False, takes_answers=False)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are not about the connection."""
    parser.add_argument(
        "-c", "--count", type=_count, default=1, metavar="N", help="number of requests; default: 1"
    )
    parser.add_argument(
        "--interval",
        type=_interval,
        default=1.0,
        metavar="SECONDS",
        help="seconds between requests; default: 1",
    )


def _count(text: str) -> int:
    # `int` also takes "1_0" and " 1".
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of at least 1, not {text!r}")
    return int(text)


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds from 0 on, not {text!r}")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Send the pings and return the exit status."""
    return talk(options, work_of(options, take_words(options)))


def work_of(options: argparse.Namespace, words: Sequence[str]) -> Work:
    """Return what sends the pings.

    Raises:
        UsageError: there are words.
    """
    if words:
        raise UsageError("ping takes one target, or a command after --")

    async def work(client: Client, console: Console) -> int:
        # Imported here, after the command was started.
        import asyncio

        method = "server/discover" if client.era == "per_request" else "ping"
        if not wants_json(options):
            emit(f"{_server(client)} answers {method} in MCP {client.revision}")
        times: list[float | None] = []
        try:
            await _measure(client, console, options, times)
        except asyncio.CancelledError:  # Ctrl-C
            if times and not wants_json(options):
                emit(_summary(times))
            raise
        if wants_json(options):
            from ..output.content import document_shown

            emit(document_shown(_document(client, method, times)))
        elif options.count > 1:
            emit(_summary(times))
        return SUCCESS if any(each is not None for each in times) else UNREACHABLE

    return work


async def _measure(
    client: Client, console: Console, options: argparse.Namespace, times: list[float | None]
) -> None:
    """Append the milliseconds that each answer took, or None after a timeout."""
    import asyncio

    for number in range(1, options.count + 1):
        if times:
            await asyncio.sleep(options.interval)
        try:
            with console.waiting(f"waiting for answer {number}"):
                times.append(1000 * await _round_trip_s(client))
            said = f"answer {number}: {times[-1]:.2f} ms"
        except RequestTimeout:
            times.append(None)
            said = f"answer {number}: timed out"
        if not wants_json(options):
            emit(said)


async def _round_trip_s(client: Client) -> float:
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
    counts = f"{len(times)} sent, {len(came)} answered"
    if not came:
        return counts
    average = sum(came) / len(came)
    return f"{counts}; min {min(came):.2f}, avg {average:.2f}, max {max(came):.2f} ms"


def _document(client: Client, method: str, times: list[float | None]) -> dict[str, Any]:
    info = client.server_info
    return {
        "format": FORMAT,
        "server": {} if info is None else info,
        "revision": client.revision,
        "method": method,
        # In milliseconds; null after a timeout.
        "times": times,
    }
