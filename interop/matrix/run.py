"""Hold the conversations of the matrix, print them as tables, and write the page.

    python -m interop.matrix.run [--diagonal | --only TEXT] [--write] [--keep FOLDER]

Exits with 0 if every step passed, or differs as `differences` says.
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

from .cell import Cell, Result, cells, converse, reason
from .page import PAGE, text, write
from .pins import ROOT

# A conversation is a client process, a relay and a server process.
AT_ONCE: Final = 3
# Steps that a conversation has at least, with connecting and closing.
LEAST: Final = 10
CONNECT: Final = "connect"
# Every client and server whose environment `make interop` has, each transport, each era.
DIAGONAL: Final = (
    ("Trunkline", "Trunkline stdio per-request"),
    ("Trunkline", "server-everything HTTP handshake"),
    ("Trunkline", "server-everything stdio handshake"),
    ("Trunkline", "TypeScript SDK stdio per-request"),
    ("mcp 2", "TypeScript SDK HTTP per-request"),
    ("TypeScript SDK 1", "Trunkline HTTP handshake"),
    ("TypeScript SDK 1", "Trunkline stdio handshake"),
    ("TypeScript SDK 2", "mcp stdio per-request"),
    ("TypeScript SDK 2", "Trunkline stdio per-request"),
    ("FastMCP 4", "Trunkline stdio per-request"),
    ("FastMCP 4", "TypeScript SDK HTTP handshake"),
)


def is_diagonal(cell: Cell) -> bool:
    """Whether a cell is one of the few that `make interop` runs."""
    client, _, rest = cell.name.partition(" > ")
    return any(client.startswith(row) and rest == column for row, column in DIAGONAL)


def is_good(result: Result) -> bool:
    """Whether nothing failed, and enough passed; or it is known that they cannot connect."""
    return not result.failed and (len(result.passed) >= LEAST or CONNECT in result.differ)


async def converse_all(chosen: list[Cell], folder: Path) -> list[Result]:
    """Hold conversations, a few at a time; those that fail are held once more, one at a time."""
    results = await _converse(chosen, folder / "first", AT_ONCE)
    failed = [result.cell for result in results if not is_good(result)]
    if failed:
        print(f"\n{len(failed)} conversations again, one at a time:", flush=True)
        again = {each.cell: each for each in await _converse(failed, folder / "again", 1)}
        results = [again.get(result.cell, result) for result in results]
    return results


async def _converse(chosen: list[Cell], folder: Path, at_once: int) -> list[Result]:
    """Hold conversations, and print each when it is over."""
    folder.mkdir()
    turns = asyncio.Semaphore(at_once)

    async def one(cell: Cell) -> Result:
        async with turns:
            result = await converse(cell, folder)
        mark = "FAIL" if not is_good(result) else "none" if CONNECT in result.differ else "pass"
        steps = len(result.passed) + len(result.failed) + len(result.differ)
        print(f"{mark}  {len(result.passed):>2} of {steps:>2}  {cell.name}", flush=True)
        for step, why in result.failed.items():
            print(f"        FAIL {step}: {why[:400]}", flush=True)
        return result

    return list(await asyncio.gather(*map(one, chosen)))


def main() -> int:
    """Hold the conversations that were asked for."""
    parser = argparse.ArgumentParser(
        prog="interop.matrix.run", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--diagonal", action="store_true", help="a few cells, for make interop")
    parser.add_argument("--only", default="", help='part of a name, such as "agno"')
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--keep", type=Path, help="where to leave the recordings")
    args = parser.parse_args()
    if args.write and (args.only or args.diagonal):
        parser.error("--write needs every cell")
    logging.basicConfig(level=logging.CRITICAL)
    os.chdir(ROOT)
    chosen = [each for each in cells() if args.only in each.name and not reason(each)]
    if args.diagonal:
        chosen = [each for each in chosen if is_diagonal(each)]
        assert len(chosen) == len(DIAGONAL), "a cell of the diagonal has another name"
    # Packages are installed before the clock starts.
    for cell in chosen:
        cell.client.command()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = asyncio.run(converse_all(chosen, folder.resolve()))
    if not args.diagonal:
        print(f"\n{text(results, chosen)}")
    good = sum(map(is_good, results))
    steps = sum(len(result.passed) for result in results)
    unconnected = sum(CONNECT in result.differ for result in results)
    print(
        f"\nmatrix: {good - unconnected} of {len(results)} conversations passed, {unconnected} do "
        f"not connect as is known, {steps} steps, in {time.monotonic() - began:.0f} s"
    )
    if args.write and good == len(results):
        write(results)
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 0 if results and good == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
