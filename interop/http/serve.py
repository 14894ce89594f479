"""Serve one of the menus over HTTP, on a port of the loopback interface.

    python -m interop.http.serve PORT MODULE [ARGUMENT ...]

Each app is served as its library has it: with its own HTTP server, or under uvicorn.
"""

from __future__ import annotations

import sys
from importlib import import_module

HOST = "127.0.0.1"


def main() -> None:
    """Serve until a signal ends it."""
    port, name, *rest = sys.argv[1:]
    # The modules read their own arguments.
    sys.argv = [name, *rest]
    module = import_module(name)
    if name == "interop.our_server":
        module.app.run(f"http://{HOST}:{port}/mcp")
    elif name == "interop.official_server":
        module.app.run("streamable-http", host=HOST, port=int(port))
    else:
        import uvicorn

        uvicorn.run(module.http_app(), host=HOST, port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
