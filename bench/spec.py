"""What it costs to ask for requirements: the whole of a revision, single lookups, memory.

    python -m bench.spec
    python -m bench.spec --revision 2026-07-28
    python -m bench.spec --quick             # a second, for a first look

Times are printed and never judged: they are for a reader who wants to know whether a lookup
may stand on a hot path. The figures beside them are what erlmcp's guide states for itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from timeit import Timer
from typing import Final

from trunkline.compat.erlmcp import SpecParser, SpecViolation
from trunkline.spec.revisions import REVISIONS, V2025_11_25

from .harness import command, duration

REPEATS: Final = 7
QUICK_RUNS: Final = 20


def best(run: Callable[[], object], *, quick: bool) -> tuple[float, float]:
    """The least and the median nanoseconds of one run, over some repeats of many."""
    timer = Timer(run)
    number = QUICK_RUNS if quick else timer.autorange()[0]
    times = sorted(time / number * 1e9 for time in timer.repeat(REPEATS, number))
    return times[0], times[REPEATS // 2]


def loaded_bytes(revision: str) -> int:
    """The bytes of a first specification with the rows and types it loads, in a new process."""
    measure = (
        "import tracemalloc; from trunkline.compat.erlmcp import SpecParser; "
        f"tracemalloc.start(); parser = SpecParser({revision!r}); parser.cache_parsed_spec(); "
        "print(tracemalloc.get_traced_memory()[0])"
    )
    done = subprocess.run([sys.executable, "-c", measure], capture_output=True, check=True)
    return int(done.stdout)


def record_bytes(revision: str) -> int:
    """The bytes that one more record of a revision takes, beside the rows it is made from."""
    parser = SpecParser(revision)
    tracemalloc.start()
    parser.cache_parsed_spec()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


def cases(parser: SpecParser) -> list[tuple[str, str, Callable[[], object]]]:
    """What is timed: its name, what the guide states, and a callable."""
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "resources/read",
        "params": {"uri": "file:///a/b.txt"},
    }
    return [
        ("parse the specification anew", "< 1 ms", parser.cache_parsed_spec),
        ("parse it, from the cache", "< 1 ms", parser.parse_specification),
        ("look up a method", "< 0.1 ms", lambda: parser.get_method_requirements("tools/call")),
        ("look up an error", "< 0.1 ms", lambda: parser.get_error_requirements(-32602)),
        ("look up a transport", "< 0.1 ms", lambda: parser.get_transport_requirements("stdio")),
        ("look up a capability", "< 0.1 ms", lambda: parser.get_capability_requirements("tools")),
        ("judge a message", "", lambda: judged(parser, call)),
    ]


def judged(parser: SpecParser, message: dict[str, object]) -> object:
    """What the parser says of a message, whichever way it says it."""
    try:
        return parser.validate_message(message)
    except SpecViolation as error:
        return error


def main(words: Sequence[str] | None = None) -> int:
    """Print the times and sizes of one revision."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--revision", choices=REVISIONS, default=V2025_11_25)
    arguments.add_argument("--quick", action="store_true")
    options = arguments.parse_args(words)
    revision: str = options.revision
    # Before anything else: it loads the rows.
    first = Timer(lambda: SpecParser(revision).parse_specification()).timeit(1) * 1e9
    print(f"{command()}\nMCP {revision}, Python {sys.version.split()[0]}\n")
    print(f"  {'':32} {'least':>10} {'median':>10}   stated by erlmcp")
    for name, stated, run in cases(SpecParser(revision)):
        least, median = best(run, quick=options.quick)
        print(f"  {name:32} {duration(least):>10} {duration(median):>10}   {stated}".rstrip())
    print(f"  {'first use, which loads the rows':32} {duration(first):>10}\n")
    loaded, record = loaded_bytes(revision), record_bytes(revision)
    print(f"  {'memory with rows and types':32} {loaded / 1024:6.0f} KiB {'':12} ~100 KB")
    print(f"  {'memory of the record alone':32} {record / 1024:6.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
