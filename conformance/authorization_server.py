"""Run the official suite against `trunkline.testing.AuthorizationServer`.

    python -m conformance.authorization_server

The suite asks for its metadata, and has a user open a URL for an authorization code; here a request
does it. Exits with 0 if every scenario passed, with 1 if not, and with 2 if the suite could not be
run. The output of the suite and `summary.json` are in `.conformance/results/authorization`.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from trunkline.errors import TransportError
from trunkline.testing import AuthorizationServer
from trunkline.transports.http.client.fetch import fetch

from . import install
from .evidence import judge, read, scenarios_of_log
from .server import free_port

__all__ = ["FOLDER", "NAME", "SCENARIOS", "SUITE", "run", "visit"]

SUITE: Final = "alpha"
NAME: Final = "authorization alpha"
SCENARIOS: Final = 2
FOLDER: Final = install.INSTALLED / "results" / "authorization"
TIMEOUT_S: Final = 60.0
RESOURCE: Final = "https://files.example.org/mcp"
_authorization_url: Final = re.compile(r"http://\S+/authorize\?\S+").search


async def run(folder: Path = FOLDER) -> int:
    """Run the suite, and return the exit status."""
    port = free_port()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    async with AuthorizationServer() as server:
        server.client("conformance", redirect_uris=[f"http://127.0.0.1:{port}/callback"])
        process = await asyncio.create_subprocess_exec(
            *(install.node(), str(install.suite(SUITE)), "authorization"),
            *("--url", server.issuer, "--client-id", "conformance"),
            *("--resource", RESOURCE, "--port", str(port)),
            *("--output-dir", str(folder / "checks")),
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
    log = "\n".join(lines)
    (folder / "suite.log").write_text(log, encoding="utf-8")
    scenarios = judge(scenarios_of_log(log), read(folder / "checks", "authorization"))
    passed = sum(each.verdict == "pass" for each in scenarios)
    is_good = status == 0 and passed == len(scenarios) == SCENARIOS
    checks = sum(each.succeeded for each in scenarios)
    title = f"{NAME} ({install.version(SUITE)})"
    print(f"{title:<50} scenarios passed {passed}/{SCENARIOS}, checks passed {checks}")
    summary = {
        "passed": is_good,
        "problem": "" if is_good else f"{passed} of {SCENARIOS} scenarios passed",
        "runs": [
            {
                "name": NAME,
                "version": install.version(SUITE),
                "revision": None,
                "expected": SCENARIOS,
                "retried": [],
                "scenarios": [each._asdict() for each in scenarios],
            }
        ],
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    if not is_good:
        print(log, file=sys.stderr)
    return 0 if is_good else 1


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
