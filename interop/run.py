"""Have Trunkline, the official SDKs and FastMCP talk to each other, and say how it went.

    python -m interop.run [--only TEXT] [--keep FOLDER]

Every exchange is with a real process, over standard input and output or over HTTP, and recorded on
the way; the recording is then judged. Exits 0 if every check passed, or differs as `differences`
says.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import logging
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TextIO

from .checks import Check, Place, describe
from .differences import DIFFERENCES, difference
from .exchanges import PARTS, Exchange, exchanges
from .http import node
from .http.process import ended, free_port, served
from .http.relay import Relay
from .recordings import (
    PROVOKED,
    all_ended,
    all_the_same,
    behind,
    connections,
    disagreements,
    judged,
    missing_sides,
    processes,
    summed_up,
)

# What one check, one exchange and all of it may take, in seconds.
CHECK_LIMIT: Final = 12.0
EXCHANGE_LIMIT: Final = 40.0
LIMIT: Final = 240.0
AT_ONCE: Final = 3

ROOT: Final = Path(__file__).resolve().parent.parent
SAME: Final = "what comes out of the proxy is what went in"
AGREE: Final = "the judge finds the same live and recorded"
MARKS: Final = {"pass": "ok", "FAIL": "FAIL", "differs": "differs", "none": "-"}


class Outcome(NamedTuple):
    """What became of one check in one exchange."""

    exchange: Exchange
    check: str
    verdict: Literal["pass", "FAIL", "differs", "none"]
    note: str = ""


# -- one exchange ----------------------------------------------------------------------------


async def hold(exchange: Exchange, folder: Path) -> tuple[list[Outcome], list[str], list[str]]:
    """Hold one exchange; return what became of it, and the judge's word on ours and theirs."""
    name = "".join(c if c.isalnum() else "-" for c in exchange.name)
    path = folder / f"{name}.jsonl"
    outcomes: list[Outcome] = []
    try:
        with (folder / f"{name}.tee.log").open("w") as log:
            async with asyncio.timeout(EXCHANGE_LIMIT):
                if exchange.listener:
                    await _talk_by_http(exchange, path, log, outcomes)
                else:
                    await _talk_by_stdio(exchange, path, log, outcomes)
    except Exception as error:  # noqa: BLE001  # whatever it is, the next exchange has its turn
        step = "it closes" if outcomes else "it connects"
        outcomes.append(Outcome(exchange, step, "FAIL", describe(error)))
    finally:
        if not exchange.listener:
            outcomes.append(await _after(exchange, "the server ends by itself", all_ended(path)))
        if exchange.way:
            outcomes.append(await _after(exchange, SAME, all_the_same(path)))
        _kill(path)
    found = judged(path, exchange.ours) if path.exists() else None
    if found is None:
        return outcomes, [], []
    errors = [*missing_sides(path), *summed_up(found.errors())]
    verdict: Literal["pass", "FAIL"] = "FAIL" if errors else "pass"
    outcomes.append(Outcome(exchange, "what we sent is in order", verdict, " | ".join(errors)))
    if not exchange.listener:
        differing = disagreements(path)
        verdict = "FAIL" if differing else "pass"
        outcomes.append(Outcome(exchange, AGREE, verdict, " | ".join(differing[:5])))
    return outcomes, summed_up(found.ours), summed_up(found.theirs)


async def _talk_by_stdio(
    exchange: Exchange, path: Path, log: TextIO, outcomes: list[Outcome]
) -> None:
    command = [sys.executable, "-m", "interop.tee", str(path), sys.executable, "-m"]
    if exchange.way:
        command += ["interop.proxied", exchange.way]
    await _talk(exchange, Place(path, [*command, *exchange.server]), log, outcomes)


async def _talk_by_http(
    exchange: Exchange, path: Path, log: TextIO, outcomes: list[Outcome]
) -> None:
    port, printed = free_port(), path.with_suffix(".server.log")
    if exchange.listener == "node":
        script, *rest = exchange.server
        command, environment = node.command(script, str(port), *rest), node.environment()
    else:
        command = [sys.executable, "-m", "interop.http.serve", str(port), *exchange.server]
        environment = None
    async with served(command, port, printed, environment) as process:
        async with Relay(port, path, is_old_sse=exchange.is_old_sse) as relay:
            url = f"{relay.url}{'/sse' if exchange.is_old_sse else '/mcp'}"
            place = Place(path, url=url, begin_recording=relay.begin_recording)
            await _talk(exchange, place, log, outcomes)
        # Ours logs no traceback; theirs log what a check provokes.
        stopped = ended(process, printed, is_quiet=exchange.ours == "server")
        outcomes.append(await _after(exchange, "the server stops", stopped))


async def _talk(exchange: Exchange, place: Place, log: TextIO, outcomes: list[Outcome]) -> None:
    async with exchange.open(place, log) as talk:
        spoken = talk.revision
        is_right = spoken == exchange.revision
        note = "" if is_right else f"in {spoken}, not {exchange.revision}"
        verdict: Literal["pass", "FAIL"] = "pass" if is_right else "FAIL"
        outcomes.append(Outcome(exchange, "it connects", verdict, note))
        for check in exchange.checks:
            outcomes.append(await _run(exchange, check, talk, spoken))


async def _run(exchange: Exchange, check: Check, talk: Any, spoken: str) -> Outcome:
    if not check.when.holds(spoken):
        return Outcome(exchange, check.name, "none", f"{spoken} has no such thing")
    known = difference(exchange.peer, check.name, spoken)
    try:
        async with asyncio.timeout(CHECK_LIMIT):
            await check.run(talk)
    except Exception as error:  # noqa: BLE001  # what a check raises is what it found
        if known is not None:
            return Outcome(exchange, check.name, "differs", f"{known.why} [{describe(error)}]")
        return Outcome(exchange, check.name, "FAIL", describe(error))
    if known is not None:
        return Outcome(exchange, check.name, "FAIL", "differs no longer: take the row out")
    return Outcome(exchange, check.name, "pass")


async def _after(exchange: Exchange, name: str, work: Any) -> Outcome:
    try:
        await work
    except Exception as error:  # noqa: BLE001  # as above
        return Outcome(exchange, name, "FAIL", describe(error))
    return Outcome(exchange, name, "pass")


def _kill(path: Path) -> None:
    """Leave none of the processes that this exchange started."""
    for each in (*connections(path), *map(behind, connections(path))):
        end = processes(each)
        for pid in () if "status" in end else end["pids"]:
            try:
                # Looked at first: the number of one that is gone may be somebody else's by now.
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                if b"interop." in command or b"tests.ports." in command:
                    os.kill(pid, signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass  # as it should be


# -- all of them -----------------------------------------------------------------------------


async def hold_all(chosen: list[Exchange], folder: Path) -> list[Any]:
    """Hold the exchanges, a few at a time; print each when it is over."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(exchange: Exchange) -> Any:
        async with turns:
            result = await hold(exchange, folder)
        for outcome in result[0]:
            if outcome.verdict != "none":
                note = f"  ({outcome.note})" if outcome.note else ""
                print(f"{outcome.verdict:<8}{exchange.name:<15}{outcome.check}{note}", flush=True)
        return result

    return await asyncio.gather(*map(one, chosen))


def tables(outcomes: list[Outcome]) -> None:
    """Print what became of each check in each exchange."""
    for part, title in PARTS.items():
        rows = [each for each in outcomes if each.exchange.part == part]
        columns = list(dict.fromkeys(each.exchange.column for each in rows))
        if not rows:
            continue
        names = list(dict.fromkeys(each.check for each in rows))
        # In a column that exchanges share, a failure is not hidden by what passed.
        last = sorted(rows, key=lambda each: each.verdict == "FAIL")
        cells = {(each.check, each.exchange.column): MARKS[each.verdict] for each in last}
        width = max(map(len, names))
        print(f"\n{part}: {title}\n")
        print(" " * width, *(f"{column:>11}" for column in columns))
        for name in names:
            marks = (cells.get((name, column), "") for column in columns)
            print(f"{name:<{width}}", *(f"{mark:>11}" for mark in marks))


def judgements(results: list[Any]) -> None:
    """Print what the judge says, of the two sides, each thing once."""
    for heading, index in (("What the judge says of us", 1), ("... and of them", 2)):
        said: dict[str, str] = {}
        for result in results:
            exchange = result[0][0].exchange
            for line in result[index]:
                rule = " ".join(line.split()[:2])
                said.setdefault(rule, f"{line}   [{exchange.name}]")
        print(f"\n{heading}: {len(said) or 'nothing'}")
        for line in sorted(said.values()):
            print(f"  {line}")


def main() -> int:
    """Hold the exchanges that were asked for."""
    parser = argparse.ArgumentParser(prog="interop.run", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help='part of a name, such as "B auto"')
    parser.add_argument("--keep", type=Path, help="where to leave the recordings")
    args = parser.parse_args()
    # Whatever hangs, this ends; the servers then end with their input.
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    logging.basicConfig(level=logging.CRITICAL)
    os.chdir(ROOT)
    # Installed before the clock starts.
    node.command("server.mjs")
    began = time.monotonic()
    chosen = [each for each in exchanges() if args.only in each.name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = asyncio.run(hold_all(chosen, folder.resolve()))
    outcomes = [outcome for result in results for outcome in result[0]]
    tables(outcomes)
    judgements(results)
    print("\nKnown differences of the official SDKs and FastMCP")
    for row in DIFFERENCES:
        print(f"  {row.peer}: {row.check}: {row.why}")
    print("\nWhat we do wrong on purpose")
    for rule, got, why in PROVOKED:
        print(f"  {rule}: {got}: {why}")
    failed = [each for each in outcomes if each.verdict == "FAIL"]
    counts = {mark: sum(each.verdict == mark for each in outcomes) for mark in MARKS}
    print(
        f"\n{counts['pass']} checks passed, {counts['differs']} differ as is known, "
        f"{len(failed)} failed, in {len(chosen)} exchanges and {time.monotonic() - began:.0f} s"
    )
    for each in failed:
        print(f"FAIL    {each.exchange.name}: {each.check}: {each.note}")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
