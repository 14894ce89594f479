"""The rows: servers written elsewhere, how each is started, and what the verbs must show of it.

In words, `{folder}` is a folder of the row, `{page}` the URL of a page that says hello, `{port}`
the port of a server over HTTP and `{issuer}` the authorization server.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from conformance.install import node, packages
from trunkline.spec.revisions import V2024_11_05, V2025_11_25, V2026_07_28

from ..http import node as typescript
from ..matrix.pins import ROOT, npm_version, pypi_version
from ..matrix.servers import PROGRAM, TYPESCRIPT_1
from ..menu import HELLO

__all__ = ["SERVERS", "Counts", "Server", "Use"]

NPM: Final = ROOT / "interop" / "command" / "npm_servers"
MCP2: Final = "interop-servers.txt"
MCP1: Final = "interop-servers-mcp1.txt"
# Where the programs of both lists are.
PROGRAMS: Final = Path(sys.executable).parent
MCP1_PROGRAMS: Final = ROOT / ".venv-interop-servers-mcp1" / "bin"
NO_RESOURCES: Final = "the server has no resources"
NO_PROMPTS: Final = "the server has no prompts"

Start = Callable[[], list[str]]


class Use(NamedTuple):
    """Words after a verb, and a pattern of what the command prints then."""

    words: tuple[str, ...]
    shows: str


NOWHERE: Final = Use(("no://where",), "")


class Counts(NamedTuple):
    """How many entries the lists of a server have."""

    tools: int
    resources: int = 0
    templates: int = 0
    prompts: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Server:
    """One row. A verb that cannot be used has a reason in place of its `Use`."""

    package: str
    version: str
    registry: str
    # What it is built on, and the revision that is negotiated.
    library: str
    revision: str
    # Installs the server if needed, and returns its command.
    start: Start
    # Name and version of the server as it introduces itself.
    shown: str
    counts: Counts
    call: Use | str
    # A call that the server answers with an error, and what is printed then.
    failing: Use
    read: Use | str = NO_RESOURCES
    # A URI that does not exist, and what is printed then.
    missing: Use = NOWHERE
    prompt: Use | str = NO_PROMPTS
    transport: str = "stdio"
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda folder: None
    # Whether a login is needed, at `oidc-provider`.
    is_protected: bool = False

    @property
    def name(self) -> str:
        """The package and its version, as the table shows them."""
        return f"{self.package} {self.version}"


def _npm(package: str, *words: str) -> Start:
    program = Path("node_modules") / package / "dist" / "index.js"
    return lambda: [node(), str(packages(NPM) / program), *words]


def _program(folder: Path, name: str, *words: str) -> Start:
    return lambda: [str(folder / name), *words]


def _module(*words: str) -> Start:
    return lambda: [sys.executable, "-m", *words]


def _write_file(folder: Path) -> None:
    (folder / "note.txt").write_text("hello from a file\n")


def _write_graph(folder: Path) -> None:
    line = '{"type":"entity","name":"Ada","entityType":"person","observations":["writes programs"]}'
    (folder / "memory.jsonl").write_text(line)


def _make_repository(folder: Path) -> None:
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "Begin"]):
        subprocess.run([*git, *words], cwd=folder, check=True)


def _server_everything(transport: str, word: str) -> Server:
    package = "@modelcontextprotocol/server-everything"
    return Server(
        package=package,
        version=npm_version(package, TYPESCRIPT_1),
        registry="npm",
        library="TypeScript SDK 1",
        revision=V2025_11_25,
        transport=transport,
        start=lambda: [node(), str(packages(TYPESCRIPT_1) / PROGRAM), word],
        environment={"PORT": "{port}"},
        shown="mcp-servers/everything 2.0.0",
        counts=Counts(13, 7, 2, 4),
        call=Use(("get-sum", "a=2", "b=3"), r"^The sum of 2 and 3 is 5\.\n$"),
        failing=Use(("echo", "--json", '{"message": 7}'), "Input validation error"),
        read=Use(("demo://resource/static/document/features.md",), "^# Everything Server"),
        missing=Use(("demo://nowhere",), "demo://nowhere not found"),
        prompt=Use(("args-prompt", "city=Oslo"), r"user:\nWhat's weather in Oslo\?\n$"),
    )


def _short_menu(
    package: str,
    version: str,
    registry: str,
    start: Start,
    shown: str,
    environment: Mapping[str, str],
) -> Server:
    """Return a server of this repository, written with a library from elsewhere, over HTTP."""
    return Server(
        package=package,
        version=version,
        registry=registry,
        library="itself",
        revision=V2026_07_28,
        transport="HTTP",
        start=start,
        environment=environment,
        shown=shown,
        counts=Counts(15, 2, 1, 2),
        call=Use(("add", "a=2", "b=3"), r"^5\n$"),
        failing=Use(("fails",), r"^no luck today\n$"),
        read=Use(("note://hello",), f"^{HELLO}\n$"),
        missing=Use(("note://nowhere",), "Resource not found"),
        prompt=Use(("greet", "name=Ada"), r"user:\nI am Ada\.\n\nassistant:\n"),
    )


SERVERS: Final = (
    _server_everything("stdio", "stdio"),
    _server_everything("HTTP", "streamableHttp"),
    Server(
        package="@modelcontextprotocol/server-filesystem",
        version=npm_version("@modelcontextprotocol/server-filesystem", NPM),
        registry="npm",
        library="TypeScript SDK 1",
        revision=V2025_11_25,
        start=_npm("@modelcontextprotocol/server-filesystem", "{folder}"),
        prepare=_write_file,
        shown="secure-filesystem-server 0.2.0",
        counts=Counts(14),
        call=Use(("read_text_file", "path={folder}/note.txt"), "^hello from a file\n+$"),
        failing=Use(("read_text_file", "path=/etc/hosts"), "^Access denied"),
    ),
    Server(
        package="@modelcontextprotocol/server-memory",
        version=npm_version("@modelcontextprotocol/server-memory", NPM),
        registry="npm",
        library="TypeScript SDK 1",
        revision=V2025_11_25,
        start=_npm("@modelcontextprotocol/server-memory"),
        environment={"MEMORY_FILE_PATH": "{folder}/memory.jsonl"},
        prepare=_write_graph,
        shown="memory-server 0.6.3",
        counts=Counts(9, 1),
        call=Use(("search_nodes", "query=Ada"), '"observations": \\[\n *"writes programs"'),
        failing=Use(("search_nodes", "--json", "{}"), "Input validation error"),
        read=Use(("memory://knowledge-graph",), '"name": "Ada"'),
        missing=Use(("memory://nowhere",), "memory://nowhere not found"),
    ),
    Server(
        package="@modelcontextprotocol/server-sequential-thinking",
        version=npm_version("@modelcontextprotocol/server-sequential-thinking", NPM),
        registry="npm",
        library="TypeScript SDK 1",
        revision=V2025_11_25,
        start=_npm("@modelcontextprotocol/server-sequential-thinking"),
        shown="sequential-thinking-server 2026.8.31",
        counts=Counts(1),
        call=Use(
            (
                *("sequentialthinking", "thought=One", "nextThoughtNeeded=no"),
                *("thoughtNumber=1", "totalThoughts=1"),
            ),
            '"nextThoughtNeeded": false',
        ),
        failing=Use(
            (
                *("sequentialthinking", "thought=One", "nextThoughtNeeded=no"),
                *("thoughtNumber=0", "totalThoughts=1"),
            ),
            "expected number to be >=1 at thoughtNumber",
        ),
    ),
    Server(
        package="@modelcontextprotocol/server-github",
        version=npm_version("@modelcontextprotocol/server-github", NPM),
        registry="npm",
        library="TypeScript SDK 0.6",
        revision=V2024_11_05,
        start=_npm("@modelcontextprotocol/server-github"),
        shown="github-mcp-server 0.6.2",
        counts=Counts(26),
        call="its tools need api.github.com",
        failing=Use(("search_repositories", "--json", "{}"), "Invalid input"),
    ),
    Server(
        package="mcp-server-time",
        version=pypi_version("mcp-server-time", MCP2),
        registry="PyPI",
        library="mcp 2",
        revision=V2026_07_28,
        start=_program(PROGRAMS, "mcp-server-time"),
        shown="mcp-time 2026.10.19",
        counts=Counts(2),
        call=Use(
            (
                *("convert_time", "source_timezone=Asia/Tokyo", "time=12:00"),
                "target_timezone=Asia/Kathmandu",
            ),
            '"time_difference": "-3.25h"',
        ),
        failing=Use(("get_current_time", "timezone=Mars"), "Invalid timezone"),
    ),
    Server(
        package="mcp-server-git",
        version=pypi_version("mcp-server-git", MCP2),
        registry="PyPI",
        library="mcp 2",
        revision=V2026_07_28,
        start=_program(PROGRAMS, "mcp-server-git", "--repository", "{folder}"),
        prepare=_make_repository,
        shown="mcp-git 2026.10.19",
        counts=Counts(12),
        call=Use(("git_log", "repo_path={folder}"), "\nMessage: Begin\n"),
        failing=Use(("git_log", "repo_path=/"), "outside the allowed repository"),
    ),
    Server(
        package="mcp-server-fetch",
        version=pypi_version("mcp-server-fetch", MCP2),
        registry="PyPI",
        library="mcp 2",
        revision=V2026_07_28,
        start=_program(PROGRAMS, "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
        shown="mcp-fetch 2026.10.24",
        counts=Counts(1, prompts=1),
        call=Use(("fetch", "url={page}"), "hello from a page"),
        failing=Use(("fetch", "url={page}/nothing"), "status code 404"),
        prompt=Use(("fetch", "url={page}"), "hello from a page"),
    ),
    Server(
        package="mcp-server-sqlite",
        version=pypi_version("mcp-server-sqlite", MCP1),
        registry="PyPI",
        library="mcp 1",
        revision=V2025_11_25,
        start=_program(MCP1_PROGRAMS, "mcp-server-sqlite", "--db-path", "{folder}/notes.db"),
        shown="sqlite 0.1.0",
        counts=Counts(6, 1, prompts=1),
        call=Use(("read_query", "query=SELECT 1 + 1 AS two"), r"^\[\{'two': 2\}\]\n$"),
        # Its own errors are results without `isError`.
        failing=Use(("read_query", "--json", '{"query": 7}'), "Input validation error"),
        read=Use(("memo://insights",), "^No business insights have been discovered yet"),
        missing=Use(("memo://nowhere",), "Unknown resource path: nowhere"),
        prompt=Use(("mcp-demo", "topic=tea"), "^Demo template for tea\n\nuser:\n"),
    ),
    Server(
        package="mcp-server-calculator",
        version=pypi_version("mcp-server-calculator", MCP1),
        registry="PyPI",
        library="mcp 1",
        revision=V2025_11_25,
        start=_program(MCP1_PROGRAMS, "mcp-server-calculator"),
        shown="calculator 1.30.0",
        counts=Counts(1),
        call=Use(("calculate", "expression=6 * 7"), r"^42\n$"),
        failing=Use(("calculate", "expression=6 *"), "invalid syntax"),
    ),
    _short_menu(
        "@modelcontextprotocol/server",
        npm_version("@modelcontextprotocol/server", typescript.SCRIPTS),
        "npm",
        lambda: typescript.command("server.mjs", "{port}"),
        "theirs, typescript 1.0.0",
        {"INTEROP_PIXEL": typescript.environment()["INTEROP_PIXEL"]},
    ),
    _short_menu(
        "fastmcp",
        pypi_version("fastmcp", "interop-fastmcp.txt"),
        "PyPI",
        _module("interop.http.serve", "{port}", "interop.fastmcp_server"),
        "theirs, fast 1.0.0",
        {},
    ),
    Server(
        package="mcp, with oidc-provider",
        version=pypi_version("mcp", "interop.txt"),
        registry="PyPI",
        library="itself",
        revision=V2026_07_28,
        transport="HTTP",
        start=_module("interop.oauth.official_server", "{port}", "{issuer}"),
        is_protected=True,
        shown="protected",
        counts=Counts(1),
        call=Use(("whoami",), r'"scopes": \["files:read"\]'),
        failing=Use(("nothing", "--json", "{}"), "Unknown tool: nothing"),
    ),
)
