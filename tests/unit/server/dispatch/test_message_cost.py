"""Messages of 1 MiB that are made to be expensive: how much is examined and answered of each.

The CPU time of each is printed, and depends on the machine: about 50 ms at most are meant.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.cpu_time import cpu_s
from tests.unit.server.dispatch.test_connection import PING, attached
from trunkline.jsonrpc.codec import tokenizer

MIB = 1024 * 1024
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 300 + b"]" * 300 + b"}"
SURROGATES = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"\\ud800" * 150 + b'"}}'


def batch_of(element: bytes, count: int | None = None, end: bytes = b"]") -> bytes:
    """Return a batch of so many elements, or as many as fit in 1 MiB."""
    return b"[" + b",".join([element] * (count or MIB // (len(element) + 1))) + end


MESSAGES = {
    "batch of 1": batch_of(b"1"),
    "batch of {}": batch_of(b"{}"),
    "batch of pings": batch_of(PING),
    "batch of 1000 {}": batch_of(b"{}", 1000),
    "batch of 1000 wrong methods": batch_of(b'{"jsonrpc":"2.0","id":1,"method":5}', 1000),
    "batch of 1000 deep": batch_of(DEEP, 1000),
    "batch of 1000 with surrogates": batch_of(SURROGATES, 1000),
    "batch of 1000 with many ids": batch_of(b"{" + b",".join([b'"id":1'] * 140) + b"}", 1000),
    "batch that is cut": batch_of(b"{}", end=b""),
    "batch of replies that is cut": batch_of(b'{"id":1,"result":1}', end=b""),
    "nested arrays": b"[" * MIB,
    "nested objects": b'{"a":' * (MIB // 5),
    "names": b"{" + b'"":1,' * (MIB // 5),
    "objects in a row": b"{}" * (MIB // 2),
    "surrogates": b'{"jsonrpc":"2.0","id":1,"method":"' + b"\\ud800" * (MIB // 6) + b'"}',
    "digits": b'{"jsonrpc":"2.0","id":' + b"1" * MIB + b',"method":"ping"}',
}


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of texts that were searched for message heads, which is the most expensive part."""
    sizes: list[int] = []
    search = tokenizer.message_heads

    def counted(text: bytes, *args: Any, **options: Any) -> Any:
        sizes.append(len(text))
        return search(text, *args, **options)

    monkeypatch.setattr(tokenizer, "message_heads", counted)
    return sizes


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
@pytest.mark.parametrize("name", MESSAGES)
def test_little_of_an_expensive_message_is_examined(
    name: str, revision: str, scanned: list[int]
) -> None:
    async def main() -> None:
        transport, _ = attached("tcp", revision)
        del transport.sent[:]
        seconds = cpu_s(lambda: transport.receive(MESSAGES[name]))
        print(f"{name}, {revision}: {seconds * 1000:.1f} ms of CPU")
        answers = [each for frame in transport.sent for each in frame if isinstance(frame, list)]
        assert len(transport.sent) <= 1
        assert len(answers) <= 1000
        assert sum(scanned) <= 2 * 64 * 1024
        assert json.dumps(transport.sent)  # an answer, and not an exception

    asyncio.run(main())
