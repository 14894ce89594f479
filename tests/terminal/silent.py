"""A server that stops answering: `silent.py METHOD`, or `close` for one that will not leave.

It speaks 2025-11-25 by hand, so that it can misbehave, and writes its process id to PIDFILE.
With PROGRESS set, it reports some before it falls silent.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

Path(os.environ["PIDFILE"]).write_text(str(os.getpid()))
SILENT = sys.argv[1]
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "silent", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "waited"}]},
    "ping": {},
}


def say(message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)  # type: ignore[dict-item]


if SILENT == "close":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == SILENT:
        token = asked.get("params", {}).get("_meta", {}).get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": 1, "total": 4, "message": "begun"}
            say({"method": "notifications/progress", "params": params})
        Path(os.environ["PIDFILE"] + ".silent").touch()
        time.sleep(60)
    elif "id" in asked and method in RESULTS:
        say({"id": asked["id"], "result": RESULTS[method]})
    elif "id" in asked:
        say({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
if SILENT == "close":
    Path(os.environ["PIDFILE"] + ".silent").touch()
    time.sleep(60)
