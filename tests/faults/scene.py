"""What the tests of faults share: processes on real pipes, and a look at what they leave behind.

No wait is without an end, and no test asks how long something took.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from trunkline import Stdio

T = TypeVar("T")

HERE = Path(__file__).parent
# Seconds after which a test that hangs is ended; far beyond what any needs, on a busy machine too.
WAIT = 120.0
# Seconds that what is going away may take to be gone.
SETTLE = 60.0

MIB = 1024 * 1024
PER_REQUEST = "2026-07-28"
HANDSHAKE = "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}


# What is left


def descriptors() -> dict[str, str]:
    """Return the open descriptors of this process, and what each is."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue  # that of the listing itself
    return found


def children(pid: int | str = "self") -> set[int]:
    """Return the child processes of a process, whichever thread has started them."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text().split()))
        except OSError:
            continue  # a thread that has just ended
    return found


def _held() -> set[tuple[str, object]]:
    threads = {("thread", thread.name) for thread in threading.enumerate()}
    processes = {("child", pid) for pid in children()}
    return threads | processes | {("descriptor", each) for each in descriptors().items()}


@contextmanager
def nothing_left() -> Iterator[None]:
    """See to it that no descriptor, child process or thread is left that was not there before."""
    before = _held()
    yield
    until(lambda: not _new(before), lambda: f"left behind: {_new(before)}")


def _new(before: set[tuple[str, object]]) -> set[tuple[str, object]]:
    return _held() - before


def timers() -> list[asyncio.TimerHandle]:
    """Return what the running loop is still to call later."""
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]  # there is no other way to see them
    return [each for each in scheduled if not each.cancelled()]


# What other tests of this process still hold, by identity; see `census`.
_others: dict[int, object] = {}


@contextmanager
def census() -> Iterator[None]:
    """Have `alive` leave out what is there now, which is other tests' affair."""
    gc.collect()
    found = (each for each in gc.get_objects() if type(each).__module__.startswith("trunkline."))
    _others.update((id(each), each) for each in found)
    try:
        yield
    finally:
        _others.clear()


def alive(*kinds: type) -> list[object]:
    """Return the objects of some classes that anybody still holds."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) in kinds and id(each) not in _others]


async def grown(work: Callable[[int], Awaitable[object]], times: int, first: int = 100) -> int:
    """Do something again and again; return by how many blocks of memory that has grown.

    The first times do not count: whatever is kept for good is kept by then.
    """
    for n in range(first):
        await work(n)
    before = _blocks()
    for n in range(first, first + times):
        await work(n)
    return _blocks() - before


def _blocks() -> int:
    """Return how many blocks of memory are in use, without timers that were cancelled.

    The loop keeps a varying number of those, up to half of all.
    """
    asyncio.get_running_loop()._scheduled[:] = sorted(timers())  # type: ignore[attr-defined]  # there is no other way to drop them
    gc.collect()
    return sys.getallocatedblocks()


def until(
    is_so: Callable[[], object],
    otherwise: str | Callable[[], str] = "it did not happen",
    wait: float = SETTLE,
) -> None:
    """Wait until something is so; fail if it does not come about."""
    deadline = time.monotonic() + wait
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(0.005)


async def until_async(is_so: Callable[[], object], otherwise: str = "it did not happen") -> None:
    """Wait, letting the loop run, until something is so; fail if it does not come about."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SETTLE
    while not is_so():
        assert loop.time() < deadline, otherwise
        await asyncio.sleep(0.005)


def run(script: Callable[[], Awaitable[T]], *, timers_too: bool = False) -> T:
    """Run a script on a loop of its own; when it is done, nothing may be left of it."""

    async def bounded() -> T:
        here = asyncio.current_task()
        async with asyncio.timeout(WAIT):
            value = await script()
        await until_async(
            lambda: asyncio.all_tasks() == {here}, f"tasks are left: {asyncio.all_tasks()}"
        )
        if timers_too:
            await until_async(lambda: not timers(), f"timers are left: {timers()}")
        return value

    with nothing_left():
        return asyncio.run(bounded())


# A server as a process, and we are its client, byte by byte


def command(script: str, *args: str) -> list[str]:
    """Return how a script that lies beside the tests is started."""
    return [sys.executable, "-u", str(HERE / script), *args]


def address(script: str, *args: str, **options: Any) -> Stdio:
    """Return the address of a script that lies beside the tests."""
    return Stdio(command(script, *args), **options)


class Piped:
    """A server in a process of its own, spoken to over pipes; see `piped`."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self._log = log
        self._rest = b""
        self._ids = 0

    # -- saying

    def write(self, data: bytes) -> None:
        """Write bytes, for as long as the server takes them."""
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        deadline = time.monotonic() + WAIT
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            assert left > 0, "the server does not read"
            if select.select([], [fd], [], left)[1]:
                view = view[os.write(fd, view[: select.PIPE_BUF]) :]

    def write_until_full(self, data: bytes, times: int) -> int:
        """Write the same bytes again and again; return how often it went, broken pipe included."""
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        os.set_blocking(fd, False)
        for done in range(times):
            view = memoryview(data)
            while view:
                try:
                    view = view[os.write(fd, view) :]
                except BlockingIOError:
                    if not select.select([], [fd], [], SETTLE)[1]:
                        return done
                except BrokenPipeError:
                    return done
        return times

    def send(self, message: Any) -> None:
        """Send one message."""
        self.write(json.dumps(message).encode() + b"\n")

    def request(self, method: str, id: Any, **params: Any) -> dict[str, Any]:
        """Return a request of the per-request era."""
        params = {**params, "_meta": {**META, **params.get("_meta", {})}}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    def call(self, tool: str, id: Any = None, **arguments: Any) -> Any:
        """Send a call of a tool; return its id."""
        if id is None:
            self._ids += 1
            id = f"call-{self._ids}"
        self.send(self.request("tools/call", id, name=tool, arguments=arguments))
        return id

    def handshake(self, **capabilities: Any) -> None:
        """Open a session of the handshake era."""
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": capabilities,
            "clientInfo": {"name": "tests", "version": "1"},
        }
        self.send({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
        assert self.answer("hello")["result"]["protocolVersion"] == HANDSHAKE
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end_input(self) -> None:
        """Say that nothing more will come."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    # -- hearing

    def line(self) -> bytes:
        """Return the next line; b"" at the end."""
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        deadline = time.monotonic() + WAIT
        parts = []
        while b"\n" not in self._rest:
            parts.append(self._rest)
            left = deadline - time.monotonic()
            assert left > 0, f"the server says nothing; its log: {self.log()[-2000:]}"
            ready, _, _ = select.select([fd], [], [], left)
            self._rest = os.read(fd, MIB) if ready else b""
            if ready and not self._rest:
                return b"".join(parts)
        line, _, self._rest = self._rest.partition(b"\n")
        return b"".join(parts) + line

    def speaks(self) -> bool:
        """Say whether there is something to read."""
        return bool(self._rest or select.select([self.process.stdout], [], [], 0)[0])

    def read(self) -> Any:
        """Return the next message."""
        line = self.line()
        assert line, f"the server has ended; its log: {self.log()[-2000:]}"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, id: Any) -> Any:
        """Return the answer to a request, passing over what else is said."""
        while True:
            message = self.read()
            if "method" not in message and message.get("id") == id:
                return message

    def rest(self) -> list[Any]:
        """Return all messages up to the end of the output."""
        found = []
        while line := self.line():
            found.append(json.loads(line))
        return found

    def serves(self) -> bool:
        """Ask something easy, and say whether it is answered as it should be."""
        self._ids += 1
        id = self.call("echo", f"still-there-{self._ids}", text="hello")
        content = self.answer(id)["result"]["content"]
        return bool(content == [{"type": "text", "text": "hello"}])

    # -- the process

    def log(self) -> str:
        """Return what the server has written to stderr."""
        with open(self._log.name, "rb") as log:
            return log.read().decode("utf-8", "replace")

    def has_logged(self, text: str) -> None:
        """Wait until the log has a text in it."""
        until(lambda: text in self.log(), lambda: f"not logged: {text!r} in {self.log()}")

    def wait(self) -> int:
        """Wait for the exit; return its status."""
        return self.process.wait(WAIT)

    def resident(self, what: str = "VmRSS") -> int:
        """Return the bytes of memory in use; `VmHWM` for the most there ever were."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith(f"{what}:"))
        return int(line.split()[1]) * 1024


@contextmanager
def piped(script: str = "server.py", *args: str, **options: Any) -> Iterator[Piped]:
    """Start a server and end it for certain; nothing of it may be left."""
    with nothing_left(), tempfile.NamedTemporaryFile() as log:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, **options}
        process = subprocess.Popen(command(script, *args), bufsize=0, **options)
        try:
            yield Piped(process, log)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(SETTLE)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
