"""The recording that a shell keeps in memory."""

from __future__ import annotations

from pathlib import Path

from trunkline.cli.shell.trace_buffer import TraceBuffer
from trunkline.judge.trace.reader import TraceEntry, read_trace


def entries(path: Path) -> list[TraceEntry]:
    return [
        each for each in read_trace(path.read_bytes().splitlines()) if isinstance(each, TraceEntry)
    ]


def test_saved_trace_can_be_read_and_saved_again(tmp_path: Path) -> None:
    buffer = TraceBuffer()
    buffer.add("client", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "stdio", 1)
    path = tmp_path / "saved"
    buffer.save(str(path))
    buffer.add("server", b'{"jsonrpc":"2.0","id":1,"result":{"token":"canary"}}', "stdio", 2)
    buffer.save(str(path))
    first, second = entries(path)
    assert (first.sender, first.connection) == ("client", 1)
    assert (second.sender, second.connection) == ("server", 2)
    assert buffer.count == 2
    assert "canary" not in path.read_text()


def test_at_the_limit_the_beginning_is_kept(tmp_path: Path) -> None:
    buffer = TraceBuffer(max_bytes=1000)
    for at in range(50):
        buffer.add("client", b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % at, "stdio", 1)
    assert buffer.size <= 1000
    assert buffer.count + buffer.dropped == 50
    path = tmp_path / "saved"
    buffer.save(str(path))
    assert [each.message["id"] for each in entries(path)] == [*range(buffer.count)]


def test_a_message_above_the_limit_is_not_kept_and_none_after_it() -> None:
    buffer = TraceBuffer(max_bytes=1000)
    buffer.add("client", b'{"jsonrpc":"2.0","method":"%s"}' % (b"x" * 2000), "stdio", 1)
    buffer.add("client", b'{"jsonrpc":"2.0","method":"ping"}', "stdio", 1)
    assert (buffer.count, buffer.dropped) == (0, 2)
