"""The columns of the matrix: servers, how each is started, and what it offers."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Final, NamedTuple

from conformance.install import node, packages
from trunkline import __version__
from trunkline.spec.revisions import V2025_11_25

from ..http import node as typescript
from .pins import ROOT, npm_version, pypi_version
from .script import EVERYTHING, SHORT, WITHOUT_LOG, Menu

__all__ = ["SERVERS", "TYPESCRIPT_1", "Server", "Start"]

# The TypeScript SDK 1, and server-everything, which is built on it.
TYPESCRIPT_1: Final = ROOT / "interop" / "matrix" / "everything"
PROGRAM: Final = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"


class Start(NamedTuple):
    """What a client needs a server to be started with."""

    # Whether the server has to lack the revision without a handshake.
    is_handshake_only: bool = False
    # Whether lists have to be one page.
    has_whole_lists: bool = False


@dataclass(frozen=True, eq=False)
class Server:
    """One column."""

    name: str
    version: str
    menu: Menu
    # Whether it has the revision without a handshake, and can be started without it.
    has_per_request: bool = True
    can_be_limited: bool = False

    def stdio_command(self, start: Start) -> list[str]:
        """Return the command of a server on standard streams."""
        if self.name == "server-everything":
            return [node(), str(packages(TYPESCRIPT_1) / PROGRAM), "stdio"]
        if self.name == "TypeScript SDK":
            # A client may pass few variables on.
            pixel = f"INTEROP_PIXEL={typescript.environment()['INTEROP_PIXEL']}"
            return ["env", pixel, *typescript.command("server.mjs", "stdio")]
        return [sys.executable, "-m", *self._module(start)]

    def http_command(self, port: int, start: Start) -> tuple[list[str], dict[str, str] | None]:
        """Return the command of a server at /mcp of a port, and its environment."""
        if self.name == "server-everything":
            program = str(packages(TYPESCRIPT_1) / PROGRAM)
            return [node(), program, "streamableHttp"], {**os.environ, "PORT": str(port)}
        if self.name == "TypeScript SDK":
            return typescript.command("server.mjs", str(port)), typescript.environment()
        serve = [sys.executable, "-m", "interop.http.serve", str(port)]
        return [*serve, *self._module(start)], None

    def _module(self, start: Start) -> list[str]:
        if self.name == "mcp":
            return ["interop.official_server"]
        limits = [V2025_11_25] if start.is_handshake_only else []
        return ["interop.our_server", *limits, *(["whole"] if start.has_whole_lists else [])]


SERVERS: Final = (
    Server("Trunkline", __version__, SHORT, can_be_limited=True),
    Server("mcp", pypi_version("mcp", "interop.txt"), WITHOUT_LOG),
    Server(
        "TypeScript SDK", npm_version("@modelcontextprotocol/server", typescript.SCRIPTS), SHORT
    ),
    Server(
        "server-everything",
        npm_version("@modelcontextprotocol/server-everything", TYPESCRIPT_1),
        EVERYTHING,
        has_per_request=False,
    ),
)
