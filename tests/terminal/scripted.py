"""A server that sends what a test tells it to, at any time: `scripted.py FOLDER`.

It speaks 2025-11-25 by hand. A file in FOLDER whose name ends in `.send` holds messages, one for
each line, which are written as they are; `exit` in place of one ends the server. What it receives
is appended to FOLDER/received. The tool `wait` is never answered.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
LOCK = threading.Lock()
TOOLS = [
    {"name": "wait", "inputSchema": {"type": "object"}},
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "evil\x1b[31m", "description": "a name that paints", "inputSchema": {}},
    {
        "name": "echo-louder",
        "description": "first\x1b[2J line\u202e",
        "inputSchema": {"type": "object"},
    },
]
CITIES = ["Oslo", "Oxford", "New York", "bad\x1b[31m"]


def result_of(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {},
                "resources": {"subscribe": True},
                "completions": {},
                "logging": {},
            },
            "serverInfo": {"name": "scripted\x1b[31m", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "prompts/list":
        arguments = [{"name": "city", "required": True}, {"name": "tone"}]
        return {"prompts": [{"name": "report", "arguments": arguments}]}
    if method == "resources/list":
        return {"resources": [{"uri": "note://one", "name": "one"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "city://{name}/map", "name": "map"}]}
    if method == "completion/complete":
        typed = params["argument"]["value"]
        return {"completion": {"values": [each for each in CITIES if each.startswith(typed)]}}
    if method == "tools/call":
        text = params.get("arguments", {}).get("text", "")
        return {"content": [{"type": "text", "text": f"said {text}"}]}
    return {}


def write(line: str) -> None:
    with LOCK:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def follow() -> None:
    while True:
        for path in sorted(FOLDER.glob("*.send")):
            lines = path.read_text().splitlines()
            path.unlink()
            for line in lines:
                if line == "exit":
                    print("the last line on stderr", file=sys.stderr, flush=True)
                    os._exit(7)
                write(line)
        time.sleep(0.01)


(FOLDER / "pid").write_text(str(os.getpid()))
threading.Thread(target=follow, daemon=True).start()
for line in sys.stdin:
    with (FOLDER / "received").open("a") as file:
        file.write(line)
    asked = json.loads(line)
    method = asked.get("method")
    if "id" not in asked or method is None:
        continue
    if method == "tools/call" and asked["params"]["name"] == "wait":
        (FOLDER / "waiting").touch()
        continue
    if method == "server/discover":
        error = {"code": -32601, "message": "no such method"}
        write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}))
        continue
    result = result_of(method, asked.get("params", {}))
    write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
