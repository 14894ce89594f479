"""The messages every codec benchmark reads and writes, as Python values and as bytes.

Small messages come as a ring of variants with different ids, tool names and arguments: feeding
one message again and again would flatter whoever caches strings. Large ones come once.

The megabyte comes in three kinds, since the price of a long string is set by what is in it: plain
prose, text with a non-ASCII letter in most words, and JSON inside a string, where every quote is
escaped. Which side wins, and by how much, differs between the three.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["request", "notification", "result", "error", "batch"]

HANDSHAKE_VERSION: Final = "2025-11-25"
PER_REQUEST_VERSION: Final = "2026-07-28"

_VARIANTS: Final = 50
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Message:
    """A kind of message: its variants as values and as compact JSON.

    `method` of a result or an error is the method of the request it answers.
    """

    name: str
    kind: Kind
    method: str
    version: str
    values: tuple[Any, ...]
    wire: tuple[bytes, ...]


def to_bytes(value: Any) -> bytes:
    """Compact JSON, as a peer would send it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _message(
    name: str, kind: Kind, method: str, values: Sequence[Any], version: str = HANDSHAKE_VERSION
) -> Message:
    return Message(name, kind, method, version, tuple(values), tuple(map(to_bytes, values)))


def _request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _reply(number: int, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _tool_call(number: int) -> dict[str, Any]:
    arguments = {"text": f"hello world {number}", "count": number % 7}
    return {"name": f"tool_{number % _VARIANTS:02}", "arguments": arguments}


def _small(number: int) -> dict[str, Any]:
    return _request(number, "tools/call", _tool_call(number))


def _per_request(number: int) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": PER_REQUEST_VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    return _request(number, "tools/call", {"_meta": meta, **_tool_call(number)})


def _initialize(number: int) -> dict[str, Any]:
    params = {
        "protocolVersion": HANDSHAKE_VERSION,
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
        "clientInfo": {"name": "bench", "title": "Bench client", "version": f"1.0.{number}"},
    }
    return _request(number, "initialize", params)


def _text_result(number: int, text: str) -> dict[str, Any]:
    return _reply(number, {"content": [{"type": "text", "text": text}], "isError": False})


def _tool_result(number: int) -> dict[str, Any]:
    text = f"hello world {number}"
    content = [{"type": "text", "text": text}]
    return _reply(
        number, {"content": content, "structuredContent": {"result": text}, "isError": False}
    )


def _error(number: int) -> dict[str, Any]:
    error = {
        "code": -32602,
        "message": f"Unknown tool: tool_{number}",
        "data": {"name": f"tool_{number}"},
    }
    return {"jsonrpc": "2.0", "id": number, "error": error}


def _progress(number: int) -> dict[str, Any]:
    params = {
        "progressToken": number,
        "progress": number + 0.5,
        "total": 100.0,
        "message": f"step {number}",
    }
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _tool(number: int) -> dict[str, Any]:
    properties = {
        "path": {"type": "string", "description": "Path of the file, relative to the root"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "recursive": {"type": "boolean"},
    }
    schema = {"type": "object", "properties": properties, "required": ["path"]}
    return {
        "name": f"tool_{number:02}",
        "title": f"Tool number {number}",
        "description": "Reads something from somewhere and returns the part that was asked for.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": True},
    }


def _filled(piece: str) -> str:
    size = len(to_bytes(piece)) - 2
    return piece * (_MEGABYTE // size)


PROSE: Final = _filled("The quick brown fox jumps over the lazy dog, and then it does so again.\n")
ACCENTED: Final = _filled("Voilà un café à côté de la forêt, où l'été dure déjà près de l'âtre.\n")
NESTED_JSON: Final = _filled('{"id": 7, "name": "item", "tags": ["a", "b"], "price": 12.5}, ')

_NUMBERS: Final = range(1, _VARIANTS + 1)
_BATCH: Final = [[_small(start + number) for number in range(10)] for start in range(1, 41, 10)]
_TOOLS: Final = _reply(2, {"tools": [_tool(number) for number in range(50)]})

MESSAGES: Final = (
    _message("small request", "request", "tools/call", [_small(n) for n in _NUMBERS]),
    _message(
        "2026 request",
        "request",
        "tools/call",
        [_per_request(n) for n in _NUMBERS],
        PER_REQUEST_VERSION,
    ),
    _message("initialize", "request", "initialize", [_initialize(n) for n in _NUMBERS]),
    _message("result", "result", "tools/call", [_tool_result(n) for n in _NUMBERS]),
    _message("error", "error", "tools/call", [_error(n) for n in _NUMBERS]),
    _message(
        "notification",
        "notification",
        "notifications/progress",
        [_progress(n) for n in _NUMBERS],
    ),
    _message("tools/list 50", "result", "tools/list", [_TOOLS]),
    _message("1 MB prose", "result", "tools/call", [_text_result(3, PROSE)]),
    _message("1 MB accented", "result", "tools/call", [_text_result(3, ACCENTED)]),
    _message("1 MB nested JSON", "result", "tools/call", [_text_result(3, NESTED_JSON)]),
    _message("batch of 10", "batch", "tools/call", _BATCH),
)

REFUSED: Final = {
    "no version": b'{"id":1,"method":"a"}',
    "version 1.0": b'{"jsonrpc":"1.0","id":1,"method":"a"}',
    "method is a number": b'{"jsonrpc":"2.0","id":1,"method":1}',
    "id is true": b'{"jsonrpc":"2.0","id":true,"method":"a"}',
    "id is a fraction": b'{"jsonrpc":"2.0","id":1.5,"method":"a"}',
    "id is null": b'{"jsonrpc":"2.0","id":null,"method":"a"}',
    "id is an object": b'{"jsonrpc":"2.0","id":{},"method":"a"}',
    "params are text": b'{"jsonrpc":"2.0","id":1,"method":"a","params":"b"}',
    "params are null": b'{"jsonrpc":"2.0","id":1,"method":"a","params":null}',
    "method and result": b'{"jsonrpc":"2.0","id":1,"method":"a","result":{}}',
    "result and error": b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
    "neither": b'{"jsonrpc":"2.0","id":1}',
    "error without code": b'{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}',
    "error code is true": b'{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"m"}}',
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}',
    "cut short": b'{"jsonrpc":"2.0","id":1,"method":"a"',
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
}
"""Inputs that a correct decoder refuses, by what is wrong with them."""
