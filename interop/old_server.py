"""A server of 2024-11-05 that never heard of anything newer, as found in the wild.

    python -m interop.old_server MANNER

MANNER says what becomes of `server/discover`, which such a server does not know:

* a number: it is answered with an error of that code
* silent: it is not answered at all
* empty: it is answered with `{}`
* nameless: it is answered with an error whose id is null
* late: it is answered with an error, but only after `initialize` was
* noisy: as -32601, among lines of a log on standard output
"""

from __future__ import annotations

import json
import sys
from typing import Any


def _send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def _error(request_id: Any, code: int) -> None:
    _send(id=request_id, error={"code": code, "message": "what is that?"})


def _unknown(request: dict[str, Any], manner: str, owed: list[Any]) -> None:
    if manner == "empty":
        _send(id=request["id"], result={})
    elif manner == "nameless":
        _error(None, -32600)
    elif manner == "late":
        owed.append(request["id"])
    elif manner == "noisy":
        print("WARNING: unknown method", flush=True)
        _error(request["id"], -32601)
    elif manner != "silent":
        _error(request["id"], int(manner))


def _initialize(request: dict[str, Any], owed: list[Any]) -> None:
    result = {
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "old", "version": "0.1"},
    }
    _send(id=request["id"], result=result)
    for request_id in owed:
        _error(request_id, -32601)


def main() -> None:
    """Answer one line after the other."""
    manner = sys.argv[1]
    owed: list[Any] = []
    if manner == "noisy":
        print("Server is starting ...", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if "id" not in request:
            continue
        if method == "initialize":
            _initialize(request, owed)
        elif method == "tools/list":
            schema = {"type": "object"}
            _send(id=request["id"], result={"tools": [{"name": "hi", "inputSchema": schema}]})
        elif method == "tools/call":
            _send(id=request["id"], result={"content": [{"type": "text", "text": "hi"}]})
        else:
            _unknown(request, manner, owed)


if __name__ == "__main__":
    main()
