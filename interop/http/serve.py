"""Serve one of the menus over HTTP, on a port of the loopback interface.

    python -m interop.http.serve PORT MODULE [ARGUMENT ...]

Each app is served as its library has it: with its own HTTP server, or under uvicorn. The official
server can be "stateless", without sessions, or answer with "json" and no streams. With "sse" it is
HTTP+SSE of 2024-11-05, at /sse.
"""

from __future__ import annotations

import sys
from importlib import import_module

HOST = "127.0.0.1"


def main() -> None:
    """Serve until a signal ends it."""
    port, name, *rest = sys.argv[1:]
    # The modules read their own arguments.
    sys.argv = [name, *(each for each in rest if each != "sse")]
    module = import_module(name)
    if name == "interop.our_server":
        from trunkline import HttpSettings

        settings = HttpSettings(old_sse="sse" in rest)
        module.app.run(f"http://{HOST}:{port}/mcp", http=settings)
    elif "sse" in rest:
        module.app.run("sse", host=HOST, port=int(port))
    elif name == "interop.official_server":
        options = {"json_response": "json" in rest, "stateless_http": "stateless" in rest}
        module.app.run("streamable-http", host=HOST, port=int(port), **options)
    else:
        import uvicorn

        uvicorn.run(module.http_app(), host=HOST, port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
