"""Any bytes, cut anywhere, give the same events and oversize faults, in bounded memory.

Run `python -m tests.fuzz.fuzz_sse -max_total_time=20`; it needs atheris. Without it, `check` can be
called on any input.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.engine import fuzz
from trunkline.jsonrpc.framing.framing import MAX_HEAD_BYTES, Oversize
from trunkline.jsonrpc.framing.sse import Event, EventReader, encode_event

LIMITS = (None, 0, 1, 7, 64, 1023, 1024, 1025, 5000)
NAME_LIMIT = 4096


def check(data: bytes) -> None:
    """Hold the invariant; the first bytes choose the limit, the cuts and `empty`."""
    limit = LIMITS[data[0] % len(LIMITS)] if data else None
    empty = bool(data and data[0] & 128)
    step = data[1] if len(data) > 1 else 0
    stream = data[2:]
    whole = EventReader(limit, empty=empty)
    found = whole.feed(stream)
    for one in found:
        check_bounds(one, limit)
    for size in {1, step or 1}:
        split = EventReader(limit, empty=empty)
        assert list(read(split, stream, size, limit)) == found, (limit, size)
        assert split.last_event_id == whole.last_event_id
        assert split.retry_ms == whole.retry_ms
    for one in found:
        if isinstance(one, Event):
            check_written(one)


def check_bounds(found: Event | Oversize, limit: int | None) -> None:
    """Hold what is documented of one event or fault."""
    if isinstance(found, Oversize):
        assert found.limit in (limit, NAME_LIMIT)
        assert len(found.head) <= MAX_HEAD_BYTES
        assert found.size is None
    else:
        assert limit is None or len(found.data) <= limit
        assert len(found.event) <= NAME_LIMIT
        assert found.id is None or "\0" not in found.id
        assert not {"\r", "\n"} & set(found.event + (found.id or ""))
        assert "\r" not in found.data


def check_written(event: Event) -> None:
    """What was read can be written, and is read again as the same event."""
    if "\0" in event.event or len(event.event.encode()) > NAME_LIMIT:
        return  # a name may be read that we would not write
    if len((event.id or "").encode()) > NAME_LIMIT:
        return  # replacing a broken byte takes three
    wire = encode_event(event.data, event=event.event, id=event.id, retry=event.retry)
    assert EventReader(empty=True).feed(wire) == [event]


def read(
    reader: EventReader, stream: bytes, size: int, limit: int | None
) -> Iterator[Event | Oversize]:
    """Feed `stream` in pieces of `size` bytes, watching what the reader keeps."""
    for at in range(0, len(stream), size):
        yield from reader.feed(memoryview(stream)[at : at + size])
        held = len(reader._line) + len(reader._event) + len(reader._id or "")
        assert held <= 3 * (NAME_LIMIT + 8) + size
        assert limit is None or reader._data.size <= limit


if __name__ == "__main__":
    fuzz(check)
