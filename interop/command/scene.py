"""One row at work: the server, a folder of its own, and the command in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple

from trunkline.hosts.table import HOSTS

from ..checks import Unexpected
from ..http import node
from ..http.process import ended, free_port, served
from ..matrix.pins import ROOT
from .servers import SERVERS, Server

__all__ = ["Done", "Scene", "opened"]

# Seconds: a server of half a thousand modules starts, on a machine that is busy.
COMMAND_TIMEOUT_S: Final = 60.0
BROWSER: Final = Path(__file__).parent / "browser.py"
OIDC_PROVIDER: Final = ROOT / "interop" / "oauth" / "oidc-provider"
COMMAND: Final = (sys.executable, "-m", "trunkline")
# Variables that would reach the command from the terminal of the developer.
_DROPPED: Final = ("FORCE_COLOR", "COLUMNS", "XDG_STATE_HOME", "XDG_CONFIG_HOME")


class Done(NamedTuple):
    """How a run of the command ended."""

    words: Sequence[str]
    status: int
    out: str
    err: str

    def expect(self, status: int, *, out: str = "", err: str | None = None) -> Done:
        """Check the exit status, and patterns of both outputs; without `err` there must be none.

        Raises:
            Unexpected: something differs.
        """
        if self.status != status:
            raise Unexpected(f"{self._shown()}: status {self.status}, expected {status}")
        if re.search(out, self.out, re.MULTILINE if "\n" not in out else 0) is None:
            raise Unexpected(f"{self._shown()}: {out!r} is not in standard output")
        if err is None and self.err:
            raise Unexpected(f"{self._shown()}: something is in standard error")
        if err is not None and re.search(err, self.err) is None:
            raise Unexpected(f"{self._shown()}: {err!r} is not in standard error")
        return self

    def _shown(self) -> str:
        words = " ".join(self.words[:4])
        return f"trunkline {words} [{self.out[-300:]!r}, {self.err[-300:]!r}]"


class Scene:
    """A row at work."""

    def __init__(self, server: Server, folder: Path, values: dict[str, str]) -> None:
        self.server = server
        self.folder = folder
        self._values = values
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in _DROPPED},
            **{name: self.fill(value) for name, value in server.environment.items()},
            "HOME": str(folder / "home"),
            "BROWSER": f"{sys.executable} {BROWSER} %s",
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
        }
        self.command = [self.fill(word) for word in server.start()]

    @property
    def host(self) -> str:
        """The host that the server is installed into: another one for each row."""
        return HOSTS[SERVERS.index(self.server) % len(HOSTS)].id

    @property
    def url(self) -> str:
        """The address of a server over HTTP; an empty text for one on standard streams."""
        return f"http://127.0.0.1:{self._values['port']}/mcp" if self._is_http else ""

    @property
    def _is_http(self) -> bool:
        return self.server.transport == "HTTP"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the server and of the command."""
        return self._environment

    def fill(self, text: str) -> str:
        """Return a text with the values of this row."""
        for name, value in self._values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    async def run(
        self, verb: str, *words: str, first: Sequence[str] = (), stdin: bytes = b""
    ) -> Done:
        """Run a verb with the server of the row; `first` are words before its address."""
        if self._is_http:
            return await self.run_plain(verb, *first, self.url, *words, stdin=stdin)
        return await self.run_plain(verb, *first, *words, "--", *self.command, stdin=stdin)

    async def run_plain(self, *words: str, stdin: bytes = b"") -> Done:
        """Run the command with these words.

        Raises:
            Unexpected: it does not end in time.
        """
        filled = [self.fill(word) for word in words]
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *filled,
            cwd=self.folder,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                out, err = await process.communicate(stdin or None)
        except TimeoutError:
            process.kill()
            await process.wait()
            shown = " ".join(filled)
            raise Unexpected(f"{shown}: no end after {COMMAND_TIMEOUT_S:g} s") from None
        assert process.returncode is not None
        return Done(filled, process.returncode, out.decode(), err.decode())


class _Page(SimpleHTTPRequestHandler):
    """A web site of one page."""

    def do_GET(self) -> None:
        """Answer with the page, or with 404."""
        is_there = self.path == "/page"
        self.send_response(200 if is_there else 404)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        if is_there:
            self.wfile.write(b"hello from a page\n")

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@asynccontextmanager
async def opened(server: Server, folder: Path) -> AsyncIterator[Scene]:
    """Prepare the folder of a row, and start what runs beside the command.

    Raises:
        Unexpected: a server does not start, or does not stop at SIGTERM.
    """
    (folder / "home").mkdir(parents=True)
    site = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    Thread(target=site.serve_forever, daemon=True).start()
    issuer = free_port()
    values = {
        "folder": str(folder),
        "page": f"http://127.0.0.1:{site.server_port}/page",
        "port": str(free_port()),
        "issuer": f"http://127.0.0.1:{issuer}",
    }
    async with AsyncExitStack() as stack:
        stack.callback(site.shutdown)
        server.prepare(folder)
        scene = Scene(server, folder, values)
        if server.is_protected:
            command = node.command("server.mjs", str(issuer), scripts=OIDC_PROVIDER)
            await stack.enter_async_context(served(command, issuer, folder / "issuer.log"))
        if not scene.url:
            yield scene
            return
        log = folder / "server.log"
        process = await stack.enter_async_context(
            served(scene.command, int(values["port"]), log, scene.environment)
        )
        yield scene
        await ended(process, log, is_quiet=False)
