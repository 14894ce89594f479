"""Run the official suite against `trunkline.testing.AuthorizationServer`.

    python -m conformance.authorization_server

The suite asks for its metadata, and has a user open a URL for an authorization code; here a request
does it. Exits with 0 if every check passed, with 1 if not, and with 2 if the suite could not be
run.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Final

from trunkline.errors import TransportError
from trunkline.testing import AuthorizationServer
from trunkline.transports.http.client.fetch import fetch

from . import install
from .server import free_port

SUITE: Final = "alpha"
# Of its two scenarios.
CHECKS: Final = 3
TIMEOUT_S: Final = 60.0
RESOURCE: Final = "https://files.example.org/mcp"
_total: Final = re.compile(r"Total: (\d+) passed, (\d+) failed").search
_authorization_url: Final = re.compile(r"http://\S+/authorize\?\S+").search


async def run() -> int:
    """Run the suite, and return the exit status."""
    port = free_port()
    async with AuthorizationServer() as server:
        server.client("conformance", redirect_uris=[f"http://127.0.0.1:{port}/callback"])
        process = await asyncio.create_subprocess_exec(
            *(install.node(), str(install.suite(SUITE)), "authorization"),
            *("--url", server.issuer, "--client-id", "conformance"),
            *("--resource", RESOURCE, "--port", str(port)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        lines = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                async for data in process.stdout:
                    lines.append(line := data.decode("utf-8", "replace").rstrip())
                    if (found := _authorization_url(line)) is not None:
                        await visit(found[0])
                status = await process.wait()
        except TimeoutError:
            process.kill()
            status = await process.wait()
    total = _total("\n".join(lines))
    passed, failed = (0, 0) if total is None else map(int, total.groups())
    print(f"authorization server, {install.version(SUITE)}: {passed} passed, {failed} failed")
    if status == 0 and (passed, failed) == (CHECKS, 0):
        return 0
    print("\n".join(lines), file=sys.stderr)
    return 1


async def visit(url: str) -> None:
    """Open a URL as a browser does, and follow the redirect to the suite."""
    # HEAD is not redirected by `fetch`, which follows redirects within an origin alone.
    response = await fetch(url, method="HEAD", allow_private=True)
    location = response.header(b"location")
    if location is not None:
        await _call_back(location.decode())


async def _call_back(url: str) -> None:
    # The suite listens once it has printed the URL.
    for _ in range(100):
        try:
            await fetch(url, allow_private=True)
        except TransportError:
            await asyncio.sleep(0.05)
        else:
            return


def main() -> int:
    """Run the suite."""
    try:
        return asyncio.run(run())
    except install.NotInstalled as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
