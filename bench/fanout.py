"""What it costs to tell 10 000 clients of one change, and how long others wait meanwhile.

    python -m bench.fanout

All clients are connections in memory to one server in this process, each with an end that only
counts. They subscribe to one resource with `resources/subscribe`, or listen to it with
`subscriptions/listen`. A case is one `app.notify_resource_updated`, until each of them was sent
its notification; afterwards all counts are checked. The time per subscriber is the server's
alone, with what it takes to hand a frame to a transport in memory.

How long the loop was held up is the longest turn of the event loop while all are told, over
several changes. Whatever the machine does in between is in it, so the median over the changes
is given too.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from bench import harness
from bench.harness import Case, Effort, check
from bench.section import Section
from bench.servers.driver import HANDSHAKE, PER_REQUEST
from trunkline import Server, memory_pair

DISTRIBUTIONS: Final = ("trunkline", "msgspec")

FULL: Final = Effort(30, 60_000_000, 60_000_000, fewest_singles=20, most_singles=50)
QUICK: Final = Effort(10, 20_000_000, 20_000_000, fewest_singles=10, most_singles=20)

GROUP: Final = "a change, per subscriber"
URI: Final = "note://one"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_OPENING: Final = {
    HANDSHAKE: (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": HANDSHAKE,
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "resources/subscribe", "params": {"uri": URI}},
    ),
    PER_REQUEST: (
        {
            "id": 1,
            "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": [URI]}, "_meta": _META},
        },
    ),
}


Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Crowd:
    """One server, and so many clients that are told when its resource changes."""

    def __init__(self, revision: str, count: int) -> None:
        self.revision = revision
        self.count = count
        self.received = 0
        self.last = b""
        self.app = Server("bench")
        self.app.add_resource(lambda: "hello", URI)
        self._kept: list[Any] = []

    async def gather(self) -> None:
        """Connect all clients, and let them subscribe."""
        messages = [
            json.dumps({"jsonrpc": "2.0", **message}).encode()
            for message in _OPENING[self.revision]
        ]
        for _ in range(self.count):
            near, far = memory_pair()
            near.on_message = self._receive
            self._kept.append((near, asyncio.ensure_future(self.app.serve(far))))
            await near.connect()
            await asyncio.sleep(0)
            for message in messages:
                near.send(message)
        await asyncio.sleep(0.1)

    async def leave(self) -> None:
        """Disconnect all clients."""
        for near, serving in self._kept:
            await near.close()
            await serving

    def _receive(self, frame: Any, _route: Any) -> None:
        self.received += 1
        self.last = frame

    async def tell(self) -> None:
        """Tell all clients of one change, and check that each was told."""
        self.received = 0
        self.app.notify_resource_updated(URI)
        for _ in range(self.count):
            if self.received >= self.count:
                break
            await asyncio.sleep(0)
        check(self.received, self.count)
        check(json.loads(self.last)["params"]["uri"], URI)

    async def longest_turn(self) -> float:
        """Return the longest turn of the loop while all are told, in ms."""
        loop: Any = asyncio.get_running_loop()
        turn, longest = loop._run_once, 0

        def timed() -> None:
            nonlocal longest
            began = time.perf_counter_ns()
            turn()
            longest = max(longest, time.perf_counter_ns() - began)

        await asyncio.sleep(0.01)
        loop._run_once = timed
        try:
            await self.tell()
        finally:
            del loop._run_once
        return longest / 1_000_000


def print_turns(run: Run, crowds: list[Crowd], times: int) -> float:
    """Print how long the loop was held up; return the worst median, in ms."""
    print("\nlongest turn of the event loop while all are told:")
    medians = []
    for crowd in crowds:
        gc.collect()
        turns = [run(crowd.longest_turn()) for _ in range(times)]
        medians.append(statistics.median(turns))
        line = f"median {medians[-1]:6.2f} ms, worst {max(turns):6.2f} ms, of {times} changes"
        print(f"  {crowd.revision:<34}{line}")
    return max(medians)


def main() -> int:
    """Run the benchmark; the exit code says whether it holds."""
    about = "A notification sent to 10 000 clients in one process."
    section = Section("fanout", about, DISTRIBUTIONS)
    count = 2_000 if section.is_quick else 10_000
    bench = section.bench(FULL, QUICK)
    run = asyncio.new_event_loop().run_until_complete
    crowds = [Crowd(revision, count) for revision in (HANDSHAKE, PER_REQUEST)]
    print(f"\n{count} subscribers in each revision")
    for crowd in crowds:
        run(crowd.gather())
        run(crowd.tell())
        bench.add(Case(GROUP, crowd.revision, _teller(run, crowd), operations=count))
    gc.freeze()  # as a server does once it is up: what is open is not looked through again
    bench.control(GROUP, HANDSHAKE)
    turn = print_turns(run, crowds, 5 if section.is_quick else 20)
    section.value("longest iteration of the event loop", "median", turn, "ms")
    bench.run(harness.show_progress)
    harness.print_group(bench, GROUP)
    harness.print_overhead(bench)
    harness.print_controls(bench)
    return section.conclude()


def _teller(run: Run, crowd: Crowd) -> Any:
    return lambda _: run(crowd.tell())


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # The clients are still connected; ending them in order is not what is measured.
    os._exit(code)
