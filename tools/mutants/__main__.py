"""The command: draw mutants, try them, print what survived."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tools.mutants.baseline import digest_of
from tools.mutants.draw import StaleEntry, Tree, UnknownPackage, draw, equivalents_of, is_equivalent
from tools.mutants.hunt import Hunt
from tools.mutants.report import report
from tools.mutants.slots import Slots
from tools.source_files import ROOT

SAMPLE: Final = 100
SEED: Final = 20261115
MAX_WORKERS: Final = 2


def main(arguments: list[str] | None = None) -> int:
    """Print the kill rate of a sample; return 2 if the list of equivalent mutants is stale.

    So it does for a package that does not exist.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description="Put small faults into copies of the source and see whether tests fail.",
    )
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="default: 100")
    parser.add_argument("--seed", type=int, default=SEED, metavar="S", help=f"default: {SEED}")
    parser.add_argument(
        "--package",
        action="append",
        default=[],
        metavar="P",
        help="only this one, such as `server` or `auth/server`; repeatable",
    )
    parser.add_argument("--list", action="store_true", help="print the sample and run nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree; default: this one")
    cache = Path(sys.prefix) / "mutants"
    parser.add_argument("--cache", type=Path, default=cache, help=f"baselines; default: {cache}")
    options = parser.parse_args(arguments)
    tree = Tree(options.root.resolve())
    try:
        known = equivalents_of(tree)
        drawn = draw(tree, options.sample, options.seed, options.package)
    except (StaleEntry, UnknownPackage) as error:
        print(error, file=sys.stderr)
        return 2
    if options.list:
        for mutant in drawn:
            print(f"{mutant.file}:{mutant.line}  {mutant.edit.operator}")
            print(*(f"    {line}" for line in mutant.difference()), sep="\n")
        return 0
    equivalent = [mutant for mutant in drawn if is_equivalent(mutant, known)]
    alive = [mutant for mutant in drawn if mutant not in equivalent]
    kept = _cache_of(tree, options.cache)
    begun = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} s  {text}", file=sys.stderr, flush=True)

    # Resolved: measured files are named by their real path.
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        slots = Slots(tree.root, Path(folder).resolve(), MAX_WORKERS)
        try:
            verdicts = Hunt(tree, slots, MAX_WORKERS, kept).run(alive, tell)
        finally:
            slots.close()
    print(f"sample {options.sample}, seed {options.seed}", *report(verdicts, equivalent), sep="\n")
    return 0


def _cache_of(tree: Tree, cache: Path) -> Path:
    """Return the folder of baselines for this source; those of other sources are removed."""
    kept = cache / digest_of(tree)
    if cache.is_dir():
        for other in cache.iterdir():
            if other != kept:
                shutil.rmtree(other)
    return kept


def run() -> int:
    """Run the command; SIGINT and SIGTERM end it after its processes and folders are gone."""
    # A shell has what it runs in the background ignore SIGINT.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run())
