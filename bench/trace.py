"""Time and memory of judging a recording of 10 000 lines.

python -m bench.trace
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator

from trunkline.judge.conversation.conversation import Conversation
from trunkline.judge.trace.reader import read_trace

_P = "io.modelcontextprotocol/"
_META = {
    f"{_P}protocolVersion": "2026-07-28",
    f"{_P}clientCapabilities": {},
    f"{_P}clientInfo": {"name": "c", "version": "1"},
}
_RESULT = {
    "resultType": "complete",
    "content": [{"type": "text", "text": "x" * 100}],
    "_meta": {f"{_P}serverInfo": {"name": "s", "version": "1"}},
}


def lines(count: int) -> Iterator[str]:
    """Yield a recording of calls and their replies."""
    yield '{"trunkline-trace":1}'
    for id in range(count // 2):
        params = {"name": "a", "arguments": {"q": id}, "_meta": _META}
        call = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        yield json.dumps({"from": "client", "transport": "stdio", "message": call})
        reply = {"jsonrpc": "2.0", "id": id, "result": _RESULT}
        yield json.dumps({"from": "server", "transport": "stdio", "message": reply})


def run(count: int) -> int:
    """Judge a recording; return how much was found."""
    talk = Conversation()
    return sum(len(talk.feed(entry)) for entry in read_trace(lines(count))) + len(talk.end())


def main() -> None:
    """Print the time, then the peak of memory for two lengths."""
    run(100)
    began = time.perf_counter()
    found = run(10_000)
    print(f"10 000 lines: {time.perf_counter() - began:.2f} s, {found} findings")
    # Ids are kept up to a bound, which the first of these has passed.
    for count in (40_000, 80_000):
        tracemalloc.start()
        run(count)
        print(f"{count} lines: peak {tracemalloc.get_traced_memory()[1] / 1e6:.2f} MB")
        tracemalloc.stop()


if __name__ == "__main__":
    main()
