from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from trunkline import Http
from trunkline.jsonrpc import Policy
from trunkline.testing.transport_contract import Observed
from trunkline.transports import Tapped, TappedTransport, Transport, memory_pair


def test_tap_sees_each_frame_before_it_is_delivered() -> None:
    heard: list[tuple[str, Any]] = []

    async def script() -> None:
        inner, far = memory_pair()
        near, other = Observed(TappedTransport(inner, lambda *it: heard.append(it))), Observed(far)
        await near.transport.connect()
        await far.connect()
        near.transport.send(b"1")
        far.send(b"2")
        assert heard == [("client", b"1"), ("server", b"2")]
        assert (near.frames, other.frames) == ([b"2"], [b"1"])
        await near.transport.close()
        assert near.ends == other.ends == [None]

    asyncio.run(script())


def test_a_listener_that_raises_changes_nothing_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Any] = []

    def hear(sender: str, frame: Any) -> None:
        heard.append(frame)
        raise ValueError("deaf")

    async def script() -> None:
        inner, far = memory_pair()
        near, other = Observed(TappedTransport(inner, hear, our_side="server")), Observed(far)
        await near.transport.connect()
        await far.connect()
        for n in range(3):
            near.transport.send(b"there %d" % n)
            far.send(b"back %d" % n)
        assert other.frames == [b"there 0", b"there 1", b"there 2"]
        assert near.frames == [b"back 0", b"back 1", b"back 2"]
        assert len(heard) == 6
        await near.transport.close()

    with caplog.at_level(logging.ERROR, "trunkline.transports"):
        asyncio.run(script())
    assert caplog.text.count("hear raised") == 1
    assert "on_message raised" not in caplog.text
    assert "ValueError: deaf" in caplog.text


def test_hooks_of_http_reach_the_observed_transport_and_others_have_none() -> None:
    def lost(*_: object) -> None: ...

    async def script() -> None:
        inner = Http("127.0.0.1", 1).transport(Policy())
        tapped = TappedTransport(inner, lambda *_: None)
        for name in ("is_idempotent", "on_event", "on_request_lost", "param_headers"):
            setattr(tapped, name, lost)
            assert getattr(inner, name) is getattr(tapped, name) is lost
        other = TappedTransport(memory_pair()[0], lambda *_: None)
        assert not hasattr(other, "on_request_lost")
        assert not hasattr(other, "anything_else")

    asyncio.run(script())


def test_each_connection_of_an_address_is_listened_to() -> None:
    class Here:
        def transport(self, policy: Policy) -> Transport:
            return memory_pair()[0]

        def __repr__(self) -> str:
            return "Here()"

    address = Tapped(Here(), print)
    assert repr(address) == "Tapped(Here())"
    assert isinstance(address.transport(Policy()), Transport)
    assert address.transport(Policy()) is not address.transport(Policy())


def test_the_end_of_a_connection_is_reported_after_the_client_knows_of_it() -> None:
    ended: list[str] = []

    class Here:
        def transport(self, policy: Policy) -> Transport:
            return ours

    ours, theirs = memory_pair()
    address = Tapped(Here(), lambda *_: None, lambda error: ended.append(f"on_end {error}"))

    async def script() -> None:
        tapped = address.transport(Policy())
        tapped.on_error = lambda error: ended.append(f"on_error {error}")
        await asyncio.gather(tapped.connect(), theirs.connect())
        await theirs.close()
        await asyncio.sleep(0)
        await tapped.close()

    asyncio.run(script())
    assert ended == ["on_error None", "on_end None"]
