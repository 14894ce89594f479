"""A server of few manners, written by hand, that follows the script its arguments name.

It speaks 2025-11-25 with `initialize`, answers `echo`, and does what it is told to do wrong.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def write(message: Any) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def reply(id: Any, **members: Any) -> None:
    write({"jsonrpc": "2.0", "id": id, **members})


def echo(message: Any) -> dict[str, Any]:
    text = message["params"].get("arguments", {}).get("text", "")
    return {"content": [{"type": "text", "text": text}]}


def messages() -> Any:
    for line in sys.stdin.buffer:
        yield json.loads(line)


def note(what: Any) -> None:
    """Tell the test what came in, by the log."""
    print(json.dumps(what), file=sys.stderr, flush=True)


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "peer", "version": "1"},
}
FAULTY: dict[str, dict[str, Any]] = {
    "both": {"result": {}, "error": {"code": 1, "message": "both"}},
    "neither": {},
    "number": {"result": 1},
    "bad error": {"error": "not an object"},
    "text for an id": {"result": {"content": []}},
}

mode, *args = sys.argv[1:]
late: list[Any] = []

if mode == "silent":
    time.sleep(600)
if mode == "deaf":
    # Takes everything in, and never says a word.
    for message in messages():
        note(message.get("method"))
    sys.exit(0)
if mode == "exits":
    print("last words", file=sys.stderr, flush=True)
    sys.exit(int(args[0]))
if mode == "exits after a line":
    sys.stdin.readline()
    print("last words", file=sys.stderr, flush=True)
    sys.exit(int(args[0]))
if mode == "closes its output":
    sys.stdin.readline()
    os.close(1)
    time.sleep(600)
if mode == "garbage forever":
    while True:
        write_all(b"this is no message\n" * 100)

for message in messages():
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        reply(id, error={"code": -32601, "message": "Method not found"})
        continue
    if method == "initialize":
        if mode == "no answer to initialize":
            continue
        if mode == "garbage first":
            write_all(bytes(range(256)) + b"\nhello\n\n{}\n[]\nnull\n" + b"x" * 100_000 + b"\n")
        reply(id, result=HELLO)
        if mode == "floods":
            count, size = map(int, args)
            text = "x" * size
            write_all(
                b"".join(
                    json.dumps({"jsonrpc": "2.0", "method": each, "params": params}).encode()
                    + b"\n"
                    for each, params in (
                        ("notifications/message", {"level": "info", "data": text}),
                        ("notifications/progress", {"progressToken": 99, "progress": 1}),
                        ("notifications/cancelled", {"requestId": 99, "reason": text}),
                        ("notifications/nonsense", {"text": text}),
                        ("notifications/tools/list_changed", {}),
                    )
                )
                * (count // 5)
            )
        if mode == "pings":
            count, size = map(int, args)
            for n in range(count):
                padded = str(n).rjust(size, "0")
                write_all(b'{"jsonrpc":"2.0","id":"' + padded.encode() + b'","method":"ping"}\n')
            note("pinged")
            time.sleep(600)  # and reads nothing of what it is answered
        continue
    if method is None:
        note(message)
        continue
    if id is None:
        note(message)
        if mode == "samples":
            reply("sample", method="sampling/createMessage", params=json.loads(args[0]))
        continue
    name = message.get("params", {}).get("name")
    if mode == "strays":
        for stray in json.loads(args[0]):
            write(stray)
    if mode == "late":
        if not late:
            late.append(id)
            continue
        reply(late[0], result={"content": [{"type": "text", "text": "too late"}]})
    if mode == "twice":
        reply(id, result=echo(message))
    if name == "faulty":
        reply(str(id) if args[0] == "text for an id" else id, **FAULTY[args[0]])
        continue
    if name == "raw":
        # The bytes of a reply, one character for each.
        write_all(args[0].encode("latin-1").replace(b"ID", str(id).encode()) + b"\n")
        continue
    if name == "wait" or mode == "never answers":
        note({"waits": id})
        continue
    if name == "exit":
        print("last words", file=sys.stderr, flush=True)
        sys.exit(int(message["params"]["arguments"]["status"]))
    if name == "garbage":
        write_all(
            b"Traceback (most recent call last):\n" * 10 + b"\xff\xfe\0{]\n" + b"[" * 9999 + b"\n"
        )
    if name == "large":
        size = message["params"]["arguments"]["size"]
        reply(id, result={"content": [{"type": "text", "text": "x" * size}]})
        continue
    if name == "notifies":
        write(
            {
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": {"level": "info", "data": "now"},
            }
        )
        note({"waits": id})
        continue
    if name == "logs":
        params = {"level": "info", "data": "x" * message["params"]["arguments"]["size"]}
        log = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        for _ in range(message["params"]["arguments"]["messages"]):
            write_all(json.dumps(log).encode() + b"\n")
        reply(id, result={"content": [{"type": "text", "text": "logged"}]})
        continue
    if name == "pid":
        reply(id, result={"content": [{"type": "text", "text": str(os.getpid())}]})
        continue
    reply(id, result=echo(message))
