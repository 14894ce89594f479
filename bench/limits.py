"""Costs that can be limited without a clock: Python calls, modules and bytes.

    python -m bench.limits

Times differ from machine to machine; these do not. `tests/limits` holds each to
the limit given here, so a change that makes the hot path longer is noticed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from trunkline.jsonrpc import Asked, Batch, Codec, Ledger, Peer, Pending, Request, Success

REQUEST: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
NOTICE: Final = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
RESULT: Final = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
BATCH: Final = b"[" + b",".join([REQUEST] * 10) + b"]"


class Limit(NamedTuple):
    """One cost: what it is, how it is counted, and the most it may be."""

    name: str
    count: Callable[[], int]
    most: int
    unit: str


def calls(run: Callable[[], object]) -> int:
    """Return how many Python and C calls one run makes, after a first run that warms up."""
    run()
    counted = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    # `run` itself, and the call that ends the counting.
    return counted - 2


def modules(*arguments: str) -> int:
    """Return how many modules a fresh interpreter loads for `arguments` beyond its own."""
    return len(_loaded(*arguments) - _loaded("-c", "pass"))


def _loaded(*arguments: str) -> set[str]:
    # -S: what site-packages hook into every start is not ours.
    command = [sys.executable, "-S", "-X", "importtime", *arguments]
    paths = [path for path in sys.path if path]
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(paths)}
    )
    lines = [line for line in run.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines[1:]}


def bytes_per_pending(count: int = 10_000) -> int:
    """Return what one open request costs in the ledger."""
    import tracemalloc

    ledger = Ledger()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for id in range(1_000_000, 1_000_000 + count):
        ledger.open(Pending(id, "tools/call"))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used // count


def _round_trip() -> Callable[[], object]:
    """Return a request from one peer to another and its answer back."""
    client_codec, server_codec = Codec(expect="replies"), Codec(expect="calls")

    def answer(asked: Asked) -> None:
        server.answer(asked, {"content": []})

    client = Peer(
        client_codec, write=lambda data, _route: server.feed(data), on_request=lambda _asked: None
    )
    server = Peer(server_codec, write=lambda data, _route: client.feed(data), on_request=answer)
    return lambda: client.send_request("tools/call", {"name": "echo"})


def limits() -> list[Limit]:
    """Return every limited cost."""
    calling, replying, either = Codec(expect="calls"), Codec(expect="replies"), Codec()
    request = Request("tools/call", {"name": "echo"}, id=1)
    batch = Batch([request] * 10)
    round_trip = _round_trip()
    return [
        _calls("encode a request", lambda: either.encode(request), 4),
        _calls("encode a result", lambda: either.encode(Success(1, {"content": []})), 4),
        _calls("encode a batch of 10", lambda: either.encode(batch), 9),
        _calls("envelope of a request", lambda: calling.envelope(REQUEST), 4),
        _calls("envelope of a result", lambda: replying.envelope(RESULT), 4),
        _calls("envelope of a batch of 10", lambda: calling.envelope(BATCH), 4),
        _calls("decode a request", lambda: calling.decode(REQUEST), 6),
        _calls("decode anything", lambda: either.decode(NOTICE), 10),
        _calls("request and answer between two peers", round_trip, 60),
        _modules("import trunkline", ("-c", "import trunkline"), 2),
        _modules("trunkline --version", ("-m", "trunkline", "--version"), 32),
        Limit("an open request in the ledger", bytes_per_pending, 200, "bytes"),
    ]


def _calls(name: str, run: Callable[[], object], most: int) -> Limit:
    return Limit(name, lambda: calls(run), most, "calls")


def _modules(name: str, arguments: tuple[str, ...], most: int) -> Limit:
    return Limit(name, lambda: modules(*arguments), most, "modules")


def main() -> int:
    """Print each cost beside its limit; return 1 if one is passed."""
    worst = 0
    for limit in limits():
        counted = limit.count()
        verdict = "ok" if counted <= limit.most else "TOO MUCH"
        worst |= counted > limit.most
        print(f"  {limit.name:40} {counted:6} {limit.unit:8} at most {limit.most:4}  {verdict}")
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
