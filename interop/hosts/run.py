"""Run real hosts with a server of Trunkline, over stdio and HTTP, and print one table.

    python -m interop.hosts.run [--only TEXT] [--write] [--keep FOLDER]

Exits with 0 if every host that could be installed connected, called the tools if its model can be
replaced, and the judge found no error of Trunkline; and if one ran at all.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from conformance.install import NotInstalled, node, packages

from ..matrix.pins import ROOT
from ..recordings import summed_up
from .facts import NOT_ASKED, Facts, facts_of, judged_host, rules_of
from .model import SCRIPT
from .page import PAGE, QUESTION, Outcome, Row, columns, write
from .rows import HOSTS, NODE, PINS, Host
from .scene import PROJECT, WAYS, Run, run_host, transport_of

# Runs at a time: a host, a server and a model, of which two wait.
AT_ONCE: Final = 2
# Seconds for all of it, without the installation, and for that: the packages have 2 GB.
LIMIT_S: Final = 1200.0
NPM_TIMEOUT_S: Final = 1200.0


def problems(host: Host, run: Run, facts: Facts, errors: list[str]) -> list[str]:
    """Return what is not as it has to be in a run."""
    found = [f"judge: {each}" for each in errors]
    if not facts.revision:
        found.append("did not connect")
    elif not host.without_model:
        found += [f"did not call {step.tool}" for step in SCRIPT if step.tool not in facts.calls]
        # What a host makes of an error of the protocol differs; a result has to reach the model.
        expected = [step for step in SCRIPT if step.tool != QUESTION or facts.asked != NOT_ASKED]
        texts = "\n".join(run.results)
        found += [
            f"its model was not given {step.answer!r}"
            for step in expected
            if step.answer not in texts
        ]
    if run.failure and found:
        found.append(run.failure)
    return found


def ways_of(host: Host) -> list[str]:
    """Return the ways in which a host comes to the server."""
    return [way for way in WAYS if way != PROJECT or host.project]


async def run_one(host: Host, way: str, folder: Path, installed: Path, program: str) -> Outcome:
    """Run a host one way, and print how it went."""
    began = time.monotonic()
    run = await run_host(host, way, folder, installed, program)
    facts, judged = facts_of(run.recordings), judged_host(run.recordings, transport_of(way))
    failure = "; ".join(problems(host, run, facts, summed_up(judged.errors())))
    took = f"{time.monotonic() - began:4.1f} s"
    print(f"{'FAIL' if failure else 'pass'}  {took}  {host.name}, {way}", flush=True)
    for each in [failure[:2000], *summed_up(judged.theirs)]:
        if each:
            print(f"        {each}", flush=True)
    return Outcome(facts, rules_of(judged.theirs), host.without_model, failure)


async def run_all(
    chosen: list[Host], folder: Path, installed: Path, program: str
) -> dict[tuple[Host, str], Outcome]:
    """Run hosts each way, a few at a time; one that fails runs once more, alone."""
    turns = asyncio.Semaphore(AT_ONCE)
    outcomes: dict[tuple[Host, str], Outcome] = {}

    async def one(host: Host, way: str, suffix: str = "") -> None:
        place = folder / f"{host.package.replace('/', '-')}-{way}{suffix}"
        async with turns:
            outcomes[host, way] = await run_one(host, way, place, installed, program)

    try:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(*(one(host, way) for host in chosen for way in ways_of(host)))
            for host, way in [key for key, outcome in outcomes.items() if outcome.failure]:
                print(f"once more, alone: {host.name}, {way}", flush=True)
                await one(host, way, "-again")
    except TimeoutError:
        print(f"FAIL  no end after {LIMIT_S:g} s; the rest was not run", flush=True)
    return outcomes


def installation() -> tuple[Path, str, str]:
    """Return the folder of the packages, Node, and why they are not there."""
    try:
        program = node()
        return packages(PINS, timeout_s=NPM_TIMEOUT_S, node=program), program, ""
    except NotInstalled as error:
        return PINS, "", str(error)


def missing_program(host: Host, installed: Path) -> str:
    """Return why a host cannot run, or an empty text."""
    paths = [installed / "node_modules" / word for word in host.program if word != NODE]
    if all(path.exists() for path in paths):
        return ""
    return f"not run: npm did not install {host.package} on this system"


def main() -> int:
    """Run the hosts that were asked for."""
    parser = argparse.ArgumentParser(
        prog="interop.hosts.run", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help='part of the name of a host, such as "Codex"')
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--keep", type=Path, help="where to leave recordings, homes and logs")
    args = parser.parse_args()
    if args.write and args.only:
        parser.error("--write needs every host")
    if args.keep and args.keep.exists() and any(args.keep.iterdir()):
        parser.error(f"--keep needs an empty folder: {args.keep}")
    logging.basicConfig(level=logging.CRITICAL)
    os.chdir(ROOT)
    installed, program, why = installation()
    chosen = [host for host in HOSTS if args.only.lower() in f"{host.name} {host.id}".lower()]
    missing = {host: why or missing_program(host, installed) for host in chosen}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = (args.keep or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        able = [host for host in chosen if not missing[host]]
        outcomes = asyncio.run(run_all(able, folder, installed, program))
    rows = [
        Row(
            host.title,
            host.version,
            {way: outcomes[host, way] for way in WAYS if (host, way) in outcomes},
            host.project,
            missing[host],
        )
        for host in chosen
    ]
    passed = sum(not outcome.failure for outcome in outcomes.values())
    runs = sum(len(ways_of(host)) for host in able)
    is_good = passed == runs > 0
    print(f"\n{columns(rows)}\n")
    print(
        f"hosts: {passed} of {runs} runs passed, with {len(able)} of {len(chosen)} hosts, "
        f"in {time.monotonic() - began:.0f} s"
    )
    if args.write and is_good:
        write(rows)
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
