"""A server of 2026-07-28, written by hand, that has its own ideas of a stream of changes.

It acknowledges what is listened for and then does what its first argument names.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ID = "io.modelcontextprotocol/subscriptionId"
mode, *args = sys.argv[1:]


def write(*messages: Any) -> None:
    data = b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in messages)
    while data:
        data = data[os.write(1, data) :]


def notification(what: str, id: Any, **params: Any) -> dict[str, Any]:
    return {"method": f"notifications/{what}", "params": {**params, "_meta": {ID: id}}}


def result(id: Any, **members: Any) -> dict[str, Any]:
    return {"id": id, "result": {"resultType": "complete", **members}}


DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "1"}},
}

for line in sys.stdin.buffer:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        write(result(id, **DISCOVERED))
    elif method == "tools/call":
        write(result(id, content=[{"type": "text", "text": "on"}]))
    elif method == "subscriptions/listen":
        write(notification("subscriptions/acknowledged", id, **message["params"]))
        if mode == "floods":
            count, owner = int(args[0]), {"ours": id, "nobody's": "nobody"}[args[1]]
            for n in range(0, count, 1000):
                write(
                    *(
                        notification("resources/updated", owner, uri=f"x:{n + k}")
                        for k in range(1000)
                    )
                )
            print("flooded", file=sys.stderr, flush=True)
    elif method == "notifications/cancelled":
        print("cancelled", file=sys.stderr, flush=True)
