"""One target of the soak test: its server, its clients, the phases of a run, and its report.

    python -m tools.soak.load KIND --seconds 60 --warm-up 15

KIND is pipe, unix, tcp, tls, http, https or asgi. The report is one JSON object on standard output.

The rules that live here, and only here:

* Memory is measured while all sessions pause, after a garbage collection, when the server has
  nothing open but the connection that asks: once a tenth of the run is over, and at its end.
* Before that the same load runs for a while, so that caches, thread pools and lazy imports are
  not taken for a leak.
* No time is asserted: waits end with a condition, and bounds are for what hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any, Final

from msgspec.json import encode

from tools.soak.limits import HTTP_CLIENTS
from tools.soak.measure import descriptors, resident_kib, timers, trim
from tools.soak.sessions import SESSIONS, STEPS, Scene, Session, client_of, work_with
from tools.soak.verdict import Holding, Report
from tools.soak.wire import Tally, Target
from trunkline.spec.revisions import LATEST
from trunkline.transports.addresses import Tls, Ws, parse_address, parse_socket_address

KINDS: Final = ("pipe", "unix", "tcp", "tls", *HTTP_CLIENTS)
# For a session that hangs; far beyond what any needs on a busy machine.
_SESSION_TIMEOUT_S: Final = 400.0
# For what is going away to be gone.
SETTLE_S: Final = 60.0
# On pipes each session starts a process: the sessions of so many workers are drawn at random.
_PIPE_WORKERS: Final = 3


class Load:
    """A run against one server."""

    # Of a worker between two sessions, in seconds.
    max_pause = 0.02

    def __init__(
        self,
        kind: str,
        folder: Path,
        *,
        seconds: float,
        warm_up: float,
        seed: int = 0,
        settle: float = SETTLE_S,
    ) -> None:
        self._kind = kind
        self._settle = settle
        self._seconds = seconds
        self._warm_up = warm_up
        self._folder = folder
        self._rng = random.Random(seed)
        self._tally = Tally()
        self._target = Target(kind)
        self._process: asyncio.subprocess.Process | None = None
        self._is_over = False
        self._go = asyncio.Event()
        self._parked = 0
        self._all_parked = asyncio.Event()
        self._stopping = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    async def run(self) -> Report:
        """Run all phases; return what was found."""
        own_before = self._own_holding()
        await self._start_server()
        scene = Scene(self._target, self._tally, random.Random(self._rng.random()))
        async with self._monitor(scene) as monitor:
            # What the first use of a feature starts for good is not left behind.
            await self._first_steps(scene, monitor)
            before = await self._server_holding(monitor, None)
            self._start_workers(scene, monitor)
            await self._work(self._warm_up + self._seconds / 10)
            first = await self._pause(monitor, before, own_before)
            await self._work(self._seconds * 9 / 10)
            last = await self._pause(monitor, before, own_before)
            self._is_over = True
            self._go.set()
            await asyncio.gather(*self._workers)
            await self._last_steps(monitor)
        status, log = await self._stop_server()
        own = await self._own_settled(own_before)
        return Report(
            kind=self._kind,
            tally=self._tally,
            server_before=before,
            server_first=first[0],
            server_last=last[0],
            client_before=own_before,
            client_first=first[1],
            client_last=last[1],
            client_after=own,
            exit_status=status,
            log=log,
        )

    # -- the server

    async def _start_server(self) -> None:
        if self._kind == "pipe":
            return  # clients start their own; that of the monitor is the one that is measured
        addresses = {
            "unix": f"unix:{self._folder}/soak.sock",
            "tcp": "tcp://127.0.0.1:0",
            "tls": "tls://127.0.0.1:0",
            "http": "http://127.0.0.1:0/mcp",
            "https": "https://127.0.0.1:0/mcp",
            "asgi": "asgi://127.0.0.1:0/mcp",
        }
        environment = {**os.environ, "SOAK_CLIENTS": str(HTTP_CLIENTS.get(self._kind, 0))}
        if self._kind in ("tls", "https"):
            # Imported here: only these need certificates.
            from tests.certificates import Authority

            authority = Authority(self._folder)
            files = authority.certificate("server", "127.0.0.1")
            environment["SOAK_CERT"] = os.pathsep.join(map(str, files))
            self._target.ca = str(authority.ca)
        with (self._folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._target.command(addresses[self._kind]),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        if self._process.stdout is None:
            raise RuntimeError("the server has no output")
        where = (await self._process.stdout.readline()).decode().strip()
        tls = Tls(ca=self._target.ca) if self._kind == "tls" else None
        address = parse_socket_address(where, tls=tls) if tls else parse_address(where)
        if not isinstance(address, Ws):  # never: no server listens on one
            self._target.address = address

    async def _stop_server(self) -> tuple[int, str]:
        if self._process is None:
            return 0, ""
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SETTLE_S):
            await self._process.communicate()
        log = (self._folder / "log").read_text(errors="replace")

        return self._process.returncode or 0, log

    # -- the load

    def _monitor(self, scene: Scene) -> Any:
        """Return the client that asks the server what it holds."""
        return client_of(scene, LATEST)

    async def _first_steps(self, scene: Scene, monitor: Any) -> None:
        for step in dict.fromkeys(STEPS):
            await step(scene, monitor)

    async def _last_steps(self, monitor: Any) -> None:
        """Count what is known when all sessions have ended."""

    def _plan(self, scene: Scene, monitor: Any) -> list[tuple[str, Any, Any]]:
        """Return the name, the session and the scene of each worker."""
        plan: list[tuple[str, Session]] = []
        if self._kind == "pipe":
            plan = [("", _any_session)] * _PIPE_WORKERS
        else:
            for name, (session, count) in SESSIONS.items():
                plan += [(name, session)] * count

        async def long_lived(_: Scene) -> None:
            await work_with(scene, monitor, 10)

        plan += [("long-lived client", long_lived)] * 2
        return [
            (name, session, Scene(self._target, self._tally, random.Random(self._rng.random())))
            for name, session in plan
        ]

    def _start_workers(self, scene: Scene, monitor: Any) -> None:
        for each in self._plan(scene, monitor):
            self._workers.append(asyncio.create_task(self._worker(*each)))

    async def _worker(self, name: str, session: Any, scene: Any) -> None:
        while True:
            if not self._go.is_set():
                self._parked += 1
                if self._parked == len(self._workers):
                    self._all_parked.set()
                await self._go.wait()
                self._parked -= 1
            if self._is_over:
                return
            chosen, work = name, session
            if not name:
                chosen = scene.rng.choice(list(SESSIONS))
                work = SESSIONS[chosen][0]
            self._tally.begin(chosen)
            await self._converse(chosen, work, scene)
            await self._wait(scene.rng.uniform(0, self.max_pause))

    async def _converse(self, name: str, work: Any, scene: Any) -> None:
        """Have one session; what goes wrong in it is a failure of the run."""
        try:
            async with asyncio.timeout(_SESSION_TIMEOUT_S):
                await work(scene)
        except Exception as error:  # noqa: BLE001  # whatever an answer leads to that is wrong
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            self._tally.fail(f"{name}: {error!r} at {place}")

    async def _wait(self, seconds: float) -> None:
        """Wait between two sessions, unless all are to end."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _work(self, seconds: float) -> None:
        self._all_parked.clear()
        self._stopping.clear()
        self._go.set()
        await asyncio.sleep(seconds)

    async def _pause(
        self, monitor: Any, before: Holding, own_before: Holding
    ) -> tuple[Holding, Holding]:
        """Let all sessions end, and measure."""
        self._go.clear()
        self._stopping.set()
        await self._all_parked.wait()
        return await self._server_holding(monitor, before), self._own_holding()

    # -- measuring

    async def _server_holding(self, monitor: Any, before: Holding | None) -> Holding:
        """Return what the server holds, once it has nothing more than `before`."""
        until = asyncio.get_running_loop().time() + self._settle
        while True:
            holding = Holding(**(await monitor.call_tool("census")).value)
            is_quiet = before is None or not holding.more_than(before)
            if is_quiet or asyncio.get_running_loop().time() > until:
                return holding
            await asyncio.sleep(0.1)

    def _own_holding(self) -> Holding:
        gc.collect()
        trim()
        here = asyncio.current_task()
        tasks = [each for each in asyncio.all_tasks() if each is not here]
        return Holding(
            rss_kib=resident_kib(),
            tasks=[getattr(each.get_coro(), "__qualname__", "?") for each in tasks],
            timers=timers(asyncio.get_running_loop()),
            threads=[thread.name for thread in threading.enumerate()],
            descriptors=len(descriptors()),
        )

    async def _own_settled(self, before: Holding) -> Holding:
        until = asyncio.get_running_loop().time() + self._settle
        while True:
            holding = self._own_holding()
            if not holding.more_than(before) or asyncio.get_running_loop().time() > until:
                return holding
            await asyncio.sleep(0.1)


async def _any_session(scene: Scene) -> None:
    raise NotImplementedError  # the worker draws one


def main() -> int:
    """Run one target; print its report."""
    parser = argparse.ArgumentParser(description="one target of the soak test")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settle", type=float, default=SETTLE_S)
    options = parser.parse_args()

    async def run(folder: Path) -> Report:
        kind: type[Load] = Load
        if options.kind in HTTP_CLIENTS:
            # Imported here: it imports this module.
            from tools.soak.http_load import HttpLoad

            kind = HttpLoad
        # Made inside the loop: it holds events.
        load = kind(
            options.kind,
            folder,
            seconds=options.seconds,
            warm_up=options.warm_up,
            seed=options.seed,
            settle=options.settle,
        )
        return await load.run()

    # The loop logs each write to a connection that is gone.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(run(Path(folder)))
    sys.stdout.buffer.write(encode(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
