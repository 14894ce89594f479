"""The rows of the matrix: clients, the environment of each, and what it can be told."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final, Literal, NamedTuple

from conformance.install import node, packages
from trunkline import __version__

from ..http.node import SCRIPTS as TYPESCRIPT_2
from .pins import ROOT, npm_version, pypi_version
from .servers import TYPESCRIPT_1

__all__ = ["CLIENTS", "Client"]

DRIVERS: Final = Path(__file__).resolve().parent / "drivers"
INSPECTOR: Final = ROOT / "interop" / "matrix" / "inspector"
INSPECTOR_PROGRAM: Final = (
    "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)

# Virtual environments; those of the frameworks are made by `make interop-full`.
MAIN: Final = ".venv-interop"
MCP1: Final = ".venv-interop-mcp1"
MCP2: Final = ".venv-interop-mcp2"
REQUIREMENTS: Final = {
    MAIN: "interop.txt",
    MCP1: "interop-mcp1.txt",
    MCP2: "interop-mcp2.txt",
}


class Client(NamedTuple):
    """One row."""

    name: str
    version: str
    # A module of `drivers`, or a script for Node.
    driver: str
    environment: str = MAIN
    # The eras that it has. With "newest" it speaks 2026-07-28 wherever the server does.
    eras: Literal["both", "handshake", "newest"] = "handshake"
    # Whether it reads the first page of a list only.
    reads_one_page: bool = False
    # Whether it connects for each step.
    reconnects: bool = False

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"

    @property
    def library(self) -> str:
        """The version of `mcp` below it, if there is one."""
        if self.environment == MAIN:
            return ""
        return f"mcp {pypi_version('mcp', REQUIREMENTS[self.environment])}"

    def command(self) -> list[str]:
        """Return the command of the driver, without the server and the era."""
        if self.driver == "typescript.mjs":
            pins = TYPESCRIPT_1 if self.version.startswith("1.") else TYPESCRIPT_2
            folder = packages(pins)
            # Beside the packages, where Node looks for what it imports.
            shutil.copy(DRIVERS / self.driver, folder / self.driver)
            return [node(), str(folder / self.driver)]
        python = str(ROOT / self.environment / "bin" / "python")
        command = [python, "-m", f"interop.matrix.drivers.{self.driver}"]
        if self.driver == "inspector":
            command += [node(), str(packages(INSPECTOR) / INSPECTOR_PROGRAM)]
        return command


def _framework(
    package: str,
    driver: str,
    environment: str,
    eras: Literal["both", "handshake", "newest"] = "handshake",
    *,
    reads_one_page: bool = False,
    reconnects: bool = False,
) -> Client:
    version = pypi_version(package, REQUIREMENTS[environment])
    return Client(package, version, driver, environment, eras, reads_one_page, reconnects)


CLIENTS: Final = (
    Client("Trunkline", __version__, "ours", eras="both"),
    Client("mcp", pypi_version("mcp", "interop-mcp1.txt"), "mcp1", MCP1),
    Client("mcp", pypi_version("mcp", "interop.txt"), "mcp2", eras="both"),
    Client(
        "TypeScript SDK",
        npm_version("@modelcontextprotocol/sdk", TYPESCRIPT_1),
        "typescript.mjs",
    ),
    Client(
        "TypeScript SDK",
        npm_version("@modelcontextprotocol/client", TYPESCRIPT_2),
        "typescript.mjs",
        eras="both",
    ),
    Client("FastMCP", pypi_version("fastmcp", "interop-mcp1.txt"), "fastmcp_any", MCP1),
    Client("FastMCP", pypi_version("fastmcp", "interop-fastmcp.txt"), "fastmcp_any", eras="both"),
    Client(
        "MCP Inspector --cli",
        npm_version("@modelcontextprotocol/inspector", INSPECTOR),
        "inspector",
        eras="both",
        reconnects=True,
    ),
    _framework("langchain-mcp-adapters", "langchain_adapters", MCP1),
    _framework("google-adk", "google_adk", MCP1, reads_one_page=True),
    _framework("smolagents", "smolagents_mcp", MCP1, reads_one_page=True),
    _framework("mcp-use", "mcp_use_client", MCP1, reads_one_page=True),
    _framework("mcp-haystack", "haystack_mcp", MCP1, reads_one_page=True),
    _framework("autogen-ext", "autogen_mcp", MCP1, reads_one_page=True),
    _framework("semantic-kernel", "semantic_kernel_mcp", MCP1, reads_one_page=True),
    _framework("openai-agents", "openai_agents", MCP2, "newest"),
    _framework("pydantic-ai-slim", "pydantic_ai_mcp", MCP2, "newest"),
    _framework("strands-agents", "strands_mcp", MCP2, "newest"),
    _framework("agent-framework-core", "agent_framework_mcp", MCP2, "newest"),
    _framework("agno", "agno_mcp", MCP2, "both"),
    _framework(
        "llama-index-tools-mcp",
        "llama_index_mcp",
        MCP2,
        reads_one_page=True,
        reconnects=True,
    ),
)
