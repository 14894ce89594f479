"""Requests to a server and calls of a client, under the names of erlmcp.

`server_state` is one connection to a `Server` in memory: the server decides what is served
before `initialize`, and its policy how it answers. The functions of the client take a connected
`Client` where the original takes a process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from msgspec import UNSET

from ...errors import TrunklineError
from ...jsonrpc import Failure, Notification, Request, Success
from .codec import decode_message, encode_error_response, encode_request, json_rpc_id
from .constants import MCP_METHOD_INITIALIZE

if TYPE_CHECKING:
    import asyncio

    from ...client import Client, ToolResult
    from ...server import Server
    from ...transports import Transport
    from .own_methods import ErlmcpMethods

__all__ = [
    "batch",
    "call_tool",
    "handle_initialize",
    "handle_request",
    "methods",
    "send_error_via_registry",
    "send_notification",
    "server_state",
]


class server_state:
    """One connection to a server in memory: `async with server_state(app) as state`."""

    def __init__(self, app: Server) -> None:
        # Imported here: the codec needs no transport.
        from ...transports import memory_pair

        self._app = app
        self._near, self._far = memory_pair()
        self._waiting: dict[json_rpc_id, asyncio.Future[Success | Failure]] = {}
        self._serving: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<server_state, {len(self._waiting)} requests open>"

    async def __aenter__(self) -> Self:
        import asyncio  # here: the codec needs no event loop, and no socket

        self._near.on_message = self._received
        self._near.on_error = lambda _: None
        self._serving = asyncio.create_task(self._app.serve(self._far))
        await self._near.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._near.close()
        if self._serving is not None:
            await self._serving

    def _received(self, frame: Any, route: Any) -> None:
        message = decode_message(frame)
        if isinstance(message, Success | Failure):
            waiting = None if message.id is UNSET else self._waiting.pop(message.id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)

    async def ask(self, id: int | str, method: str, params: Any = None) -> Success | Failure:
        """Send a request; return its response."""
        import asyncio  # as above

        if id in self._waiting:
            raise TrunklineError(f"the request id {id!r} is open")
        # The reply may come before `send` returns.
        reply: asyncio.Future[Success | Failure] = asyncio.get_running_loop().create_future()
        self._waiting[id] = reply
        self._near.send(encode_request(id, method, params), None)
        return await reply


async def handle_request(
    id: int | str, method: str, params: Any, state: server_state
) -> Success | Failure:
    """Pass a request to the server; return its response.

    Under `Policy.erlmcp()` the response to anything but `initialize` is -32005 until that was
    answered.
    """
    return await state.ask(id, method, params)


async def handle_initialize(id: int | str, params: Any, state: server_state) -> Success | Failure:
    """Pass `initialize` to the server; return its response."""
    return await state.ask(id, MCP_METHOD_INITIALIZE, params)


def send_error_via_registry(
    transport: Transport, id: json_rpc_id, code: int, message: str, data: Any = None
) -> None:
    """Send an error response to a transport, in place of a lookup in the original's registry."""
    transport.send(encode_error_response(id, code, message, data), None)


async def call_tool(
    client: Client, name: str, arguments: dict[str, Any] | None = None
) -> ToolResult[Any]:
    """Call a tool of the server.

    Raises:
        PeerError: the server refused it; under `Policy.erlmcp()` also if the tool failed.
    """
    return await client.call_tool(name, arguments)


def send_notification(client: Client, method: str, params: dict[str, Any] | None = None) -> None:
    """Send a notification, without waiting."""
    client.notify(method, params)


async def batch(
    client: Client, requests: Iterable[Request | Notification]
) -> list[dict[str, Any] | TrunklineError]:
    """Send requests and notifications as one batch; return the results of the requests, in order.

    A request that fails has its exception in place of a result. The ids are the client's.

    Raises:
        LocalProtocolError: the policy or the revision of the client has no batches.
    """
    async with client.batch() as together:
        calls = []
        for each in requests:
            if isinstance(each, Request):
                calls.append(together.submit(each.method, each.params))
            else:
                together.notify(each.method, each.params)
    outcomes: list[dict[str, Any] | TrunklineError] = []
    for call in calls:
        try:
            outcomes.append(await call)
        except TrunklineError as error:
            outcomes.append(error)
    return outcomes


def methods(app: Server) -> ErlmcpMethods:
    """Register the methods of erlmcp that MCP does not have; return what they keep.

    They are `requests/cancel`, `tasks/create`, `tasks/status`, `tasks/progress`, `roots/add`,
    `roots/remove` and `shutdown`. `roots(ctx)` and `tasks(ctx)` of the value that is returned are
    those of the client of a request. They belong to a session: clients of 2026-07-28, which has
    none, can use `requests/cancel` and `shutdown` alone.

    Raises:
        ValueError: the server has one of them already.
    """
    # Imported here: the codec needs no server.
    from .own_methods import ErlmcpMethods

    return ErlmcpMethods(app)
