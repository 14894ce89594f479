"""The server's end of a WebSocket by plain calls; see tests/faults/http for real sockets."""

from __future__ import annotations

import asyncio

import pytest

from tests.rigs.http_endpoint import alone, request
from trunkline.errors import TransportError
from trunkline.transports.websocket.server import AcceptedWebSocket


def accepted(client: str = "192.0.2.1") -> AcceptedWebSocket:
    buffer = memoryview(bytearray(1024))
    made = request("GET", client=client)
    return AcceptedWebSocket(None, made, None, buffer, account=alone())  # type: ignore[arg-type]  # no server


def test_repr_names_the_client_and_the_state() -> None:
    assert repr(accepted()) == "<AcceptedWebSocket from 192.0.2.1, closed>"
    assert repr(accepted("")) == "<AcceptedWebSocket from a client, closed>"


def test_accepted_connection_cannot_be_connected_again() -> None:
    with pytest.raises(TransportError, match="a transport connects once"):
        asyncio.run(accepted().connect())
