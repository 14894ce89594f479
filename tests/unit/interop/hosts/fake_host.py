"""A host for tests: it reads a file of Claude Code, and does what the model says.

python fake_host.py MODEL_URL FILE

FILE is in the home folder, or absolute.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from trunkline import SyncClient

TIMEOUT_S = 30.0


def main() -> None:
    """Connect, and call what the model calls, until it calls nothing."""
    url, file = sys.argv[1:]
    entry = json.loads((Path.home() / file).read_bytes())["mcpServers"]["warehouse"]
    servers = {"mcpServers": {"warehouse": entry}}
    with SyncClient(servers, on_elicit=lambda question: "decline") as client:
        tools = [tool.name for tool in client.list_tools()]
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        messages: list[dict[str, Any]] = []
        while True:
            reply = ask(f"{url}/v1/chat/completions", {"messages": messages, "tools": offered})
            message = reply["choices"][0]["message"]
            if "tool_calls" not in message:
                print(message["content"])
                return
            (called,) = message["tool_calls"]
            function = called["function"]
            result = client.call_tool(function["name"], json.loads(function["arguments"]))
            messages += [message, {"role": "tool", "content": result.text}]


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the reply of the model."""
    opener = build_opener(ProxyHandler({}))
    with opener.open(Request(url, json.dumps(body).encode()), timeout=TIMEOUT_S) as response:
        answer: dict[str, Any] = json.loads(response.read())
        return answer


if __name__ == "__main__":
    main()
