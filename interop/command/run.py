"""Drive every verb of the command against servers written elsewhere, and print one table.

    python -m interop.command.run [--only TEXT] [--write] [--keep FOLDER]

Exits with 0 if every cell is "ok", or "n/a" for its reason.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from ..checks import describe
from ..matrix.pins import ROOT
from .page import PAGE, columns, write
from .project import run_project
from .scene import opened
from .servers import SERVERS, Server
from .verbs import VERBS

# Rows at a time: a command and a server, of which one waits for the other.
AT_ONCE: Final = 3
# Seconds for all of it.
LIMIT_S: Final = 600.0


async def run_all(chosen: list[Server], folder: Path) -> dict[tuple[Server, str], str]:
    """Run the rows, a few at a time; return what failed, or an empty text, for each cell."""
    turns = asyncio.Semaphore(AT_ONCE)
    results: dict[tuple[Server, str], str] = {}

    async def one(number: int, server: Server) -> None:
        async with turns:
            began = time.monotonic()
            found = await run_row(server, folder / str(number))
        results.update({(server, name): failure for name, failure in found.items()})
        failures = {name: failure for name, failure in found.items() if failure}
        took = f"{time.monotonic() - began:4.1f} s"
        print(
            f"{'FAIL' if failures else 'pass'}  {took}  {server.name}, {server.transport}",
            flush=True,
        )
        for name, failure in failures.items():
            print(f"        FAIL {name}: {failure[:1000]}", flush=True)

    await asyncio.gather(*(one(number, server) for number, server in enumerate(chosen)))
    return results


async def run_row(server: Server, folder: Path) -> dict[str, str]:
    """Run every verb with a server; return what failed, or an empty text, by verb."""
    found: dict[str, str] = {}
    try:
        async with opened(server, folder) as scene:
            for verb in VERBS:
                if verb.is_only_offered and verb.reason(server):
                    continue
                try:
                    await verb.check(scene)
                except Exception as error:  # noqa: BLE001  # what a check raises is what it found
                    found[verb.name] = describe(error)
                else:
                    found[verb.name] = ""
    except Exception as error:  # noqa: BLE001  # the server did not start or stop
        found["list"] = describe(error)
    return found


def main() -> int:
    """Run the rows that were asked for."""
    parser = argparse.ArgumentParser(
        prog="interop.command.run", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help='part of the name of a server, such as "git"')
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--keep", type=Path, help="where to leave recordings and listings")
    args = parser.parse_args()
    if args.write and args.only:
        parser.error("--write needs every server")
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    logging.basicConfig(level=logging.CRITICAL)
    os.chdir(ROOT)
    chosen = [server for server in SERVERS if args.only in server.name]
    # Packages are installed before the clock starts.
    for server in chosen:
        server.start()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = asyncio.run(run_all(chosen, folder.resolve()))
        project = asyncio.run(run_project(folder.resolve() / "project"))
    for (client, era), failure in project.items():
        print(f"{'FAIL' if failure else 'pass'}  init and serve, {client}, {era}  {failure[:1000]}")
    failed = sum(map(bool, results.values())) + sum(map(bool, project.values()))
    print(f"\n{columns(results)}\n")
    print(
        f"command: {len(results) + len(project) - failed} of {len(results) + len(project)} cells "
        f"passed, with {len(chosen)} servers, in {time.monotonic() - began:.0f} s"
    )
    if args.write and not failed:
        write(results, project)
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 0 if results and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
