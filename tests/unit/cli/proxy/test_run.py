"""The log of a proxy that listens: one number per connection."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.leaks import nothing_left
from trunkline.cli.command import parser_of
from trunkline.cli.proxy.run import _ProxyRun
from trunkline.transports.addresses import Unix

WAIT = 30.0


def test_connections_are_numbered_from_one_in_the_order_in_which_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = Unix(str(tmp_path / "source")), Unix(str(tmp_path / "nothing"))
    options = parser_of("proxy").parse_args([str(source), str(target)])
    said: list[str] = []
    monkeypatch.setattr(_ProxyRun, "say", lambda _, text: said.append(text))

    async def script() -> None:
        running = asyncio.create_task(_ProxyRun(options, source, target, None).run())
        await until_async(lambda: said == [f"listening on {source}"])
        for count in (2, 3, 4):
            reader, writer = await asyncio.open_unix_connection(source.path)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            await until_async(partial(has_said, count))
        signal.raise_signal(signal.SIGTERM)
        assert await running == 0

    def has_said(count: int) -> bool:
        return len(said) == count

    with nothing_left():
        asyncio.run(asyncio.wait_for(script(), WAIT))
    assert [text.partition(": ")[0] for text in said[1:]] == [
        "connection 1",
        "connection 2",
        "connection 3",
    ]
