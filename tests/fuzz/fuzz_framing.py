"""Any bytes, cut anywhere, give the same frames and documented faults, in bounded memory.

Run `python -m tests.fuzz.fuzz_framing -max_total_time=20`; it needs atheris. Without it, `check`
can be called on any input.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.engine import fuzz
from trunkline.jsonrpc.framing.framing import (
    MAX_HEAD_BYTES,
    MAX_HEADER_BYTES,
    BadHeader,
    Fault,
    Framing,
    FramingName,
    Oversize,
    Truncated,
    framing_named,
)

NAMES: tuple[FramingName, ...] = ("newline", "content-length", "length-prefix", "detect")
LIMITS = (None, 0, 1, 7, 64, 1023, 1024, 1025, 5000)


def check(data: bytes) -> None:
    """Hold the invariant for every framing; the first bytes choose the limit and the cuts."""
    limit = LIMITS[data[0] % len(LIMITS)] if data else None
    step = data[1] if len(data) > 1 else 0
    stream = data[2:]
    for name in NAMES:
        whole = framing_named(name, limit)
        found = whole.feed(stream) + whole.end()
        for one in found:
            check_bounds(one, limit)
        for size in {1, step or 1}:
            split = framing_named(name, limit)
            assert list(read(split, stream, size, limit)) == found, (name, limit, size)


def check_bounds(found: bytes | Fault, limit: int | None) -> None:
    """Hold what is documented of one frame or fault."""
    if type(found) is bytes:
        assert limit is None or len(found) <= limit
    elif isinstance(found, Oversize):
        assert limit is not None
        assert found.limit == limit
        assert len(found.head) <= min(MAX_HEAD_BYTES, limit)
        assert found.size is None or found.size > limit
    elif isinstance(found, BadHeader):
        assert found.got
    else:
        assert isinstance(found, Truncated)
        assert found.expected is None or found.got < found.expected


def read(reader: Framing, stream: bytes, size: int, limit: int | None) -> Iterator[bytes | Fault]:
    """Feed `stream` in pieces of `size` bytes, watching what the reader keeps."""
    for at in range(0, len(stream), size):
        yield from reader.feed(memoryview(stream)[at : at + size])
        if limit is not None:
            assert kept(reader) <= limit + size + MAX_HEADER_BYTES
    yield from reader.end()


def kept(reader: object) -> int:
    """Return how many bytes a reader holds."""
    held = sum(len(getattr(reader, name, b"")) for name in ("_line", "_prefix", "_start"))
    for name in ("_partial", "_kept"):
        held += getattr(getattr(reader, name, None), "size", 0)
    chosen = getattr(reader, "_chosen", None)
    return held if chosen is None else held + kept(chosen)


if __name__ == "__main__":
    fuzz(check)
