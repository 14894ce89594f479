"""The server's end of a WebSocket by plain calls; see tests/faults/http for real sockets."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace

import pytest

from tests.rigs.http_endpoint import alone, request
from trunkline.errors import TransportError
from trunkline.transports.websocket.server import AcceptedWebSocket, WebSocketRoute


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


def test_headers_of_a_handshake_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    route = WebSocketRoute(SimpleNamespace(), SimpleNamespace(), None, memoryview(b""), print)  # type: ignore[arg-type]  # not used
    headers = {
        "host": "localhost",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "authorization": "Bearer CANARY",
    }
    assert route._response(request("GET", extra=headers)).startswith(b"HTTP/1.1 101")
    assert caplog.records == []
