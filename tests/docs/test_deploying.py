"""The proxies of docs/deploying.md, as the page prints them, in front of a protected server.

nginx and Caddy run with the block of the page. What differs is declared here, text by text: the
page has the name and the certificate of a domain, and a test has a port of this machine.
"""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.rigs.conditions import until_async
from tests.unit.auth.client.login.protected_stub import Browser
from tools.proxies import find
from trunkline import Client, HttpSettings, Server
from trunkline.auth import JwtBearer, OAuth
from trunkline.errors import AuthorizationFailed
from trunkline.testing import AuthorizationServer

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "deploying.md").read_text(encoding="utf-8")
SECONDS = 120


class Proxy(NamedTuple):
    """A proxy of the page, and how a test runs it."""

    program: str
    # The language of its block, and what replaces texts of it that occur once each.
    language: str
    changes: dict[str, str]
    # The file around the block, which the page does not print.
    around: str
    arguments: tuple[str, ...]


NGINX = Proxy(
    "nginx",
    "nginx",
    {
        "server 127.0.0.1:8000;": "server 127.0.0.1:{upstream};",
        "listen 443 ssl http2;": "listen 127.0.0.1:{port};",
        "    ssl_certificate /etc/ssl/mcp.example.org.pem;\n": "",
        "    ssl_certificate_key /etc/ssl/mcp.example.org.key;\n": "",
    },
    # One process, of the user of the test, that writes into the folder of the test alone.
    "daemon off; master_process off; pid nginx.pid; events {{ }}\n"
    "http {{ access_log off; client_body_temp_path body; proxy_temp_path proxy;\n"
    "fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n{block}}}\n",
    ("-p", ".", "-e", "stderr", "-c", "FILE"),
)
CADDY = Proxy(
    "caddy",
    "text",
    {
        "mcp.example.org {": "http://127.0.0.1:{port} {",
        " 127.0.0.1:8000 {": " 127.0.0.1:{upstream} {",
    },
    "{{\n    admin off\n    auto_https off\n}}\n\n{block}",
    ("run", "--adapter", "caddyfile", "--config", "FILE"),
)


def block_of(proxy: Proxy) -> str:
    """Return the first block of the section of a proxy, as it is printed."""
    heading = {"nginx": "### nginx\n", "caddy": "### Caddy\n"}[proxy.program]
    section = PAGE.partition(heading)[2]
    found = re.search(rf"^```{proxy.language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def configuration(proxy: Proxy, block: str, *, port: int, upstream: int) -> str:
    """Return the file of a proxy, with the declared changes of its block."""
    for old, new in proxy.changes.items():
        assert block.count(old) == 1, f"the block has {old!r} {block.count(old)} times"
        changed = new.replace("{port}", str(port)).replace("{upstream}", str(upstream))
        block = block.replace(old, changed)
    return proxy.around.format(block=block)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def running(proxy: Proxy, text: str, port: int, folder: Path) -> AsyncIterator[None]:
    """Run a proxy until it is left."""
    program = find(proxy.program)
    assert program is not None
    (folder / "proxy.conf").write_text(text)
    arguments = ["proxy.conf" if each == "FILE" else each for each in proxy.arguments]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, *arguments],
            cwd=folder,
            env={"HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        await until_async(lambda: process.poll() is not None or is_listening(port))
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.kill()
        process.wait(SECONDS)


async def log_in(proxy: Proxy, block: str, folder: Path) -> tuple[str, list[str]]:
    """Log in through a proxy and call a tool; return its text and the URLs the browser opened."""
    app = Server("weather")
    port, browser = free_port(), Browser()
    public = f"http://127.0.0.1:{port}/mcp"

    @app.tool
    def forecast(city: str) -> str:
        return f"rain in {city}"

    async with AuthorizationServer(scopes=["weather"]) as login:
        auth = JwtBearer(issuer=login.issuer, audience=public)
        settings = HttpSettings(public_url=public, trusted_proxies=["127.0.0.1"])
        async with app.listen("http://127.0.0.1:0/mcp", auth=auth, http=settings) as listener:
            text = configuration(proxy, block, port=port, upstream=listener.address.port)
            async with (
                running(proxy, text, port, folder),
                Client(public, auth=OAuth(open_url=browser.open)) as client,
            ):
                result = await client.call_tool("forecast", {"city": "Oslo"})
    return result.text, browser.urls


@pytest.fixture(params=[NGINX, CADDY], ids=lambda proxy: proxy.program)
def proxy(request: pytest.FixtureRequest) -> Proxy:
    found: Proxy = request.param
    if find(found.program) is None:
        pytest.skip(f"{found.program} is not here: make proxies, or install the package of it")
    return found


def test_a_client_logs_in_through_the_proxy_of_the_page(proxy: Proxy, tmp_path: Path) -> None:
    work = log_in(proxy, block_of(proxy), tmp_path)
    text, opened = asyncio.run(asyncio.wait_for(work, SECONDS))
    assert text == "rain in Oslo"
    assert len(opened) == 1


def test_without_the_path_of_the_metadata_the_error_names_it_and_the_proxy(
    proxy: Proxy, tmp_path: Path
) -> None:
    # Another path: the block stays valid, and the metadata is not passed on.
    block = block_of(proxy)
    without = block.replace("/.well-known/oauth-protected-resource", "/another")
    assert without != block
    work = log_in(proxy, without, tmp_path)
    with pytest.raises(AuthorizationFailed) as caught:
        asyncio.run(asyncio.wait_for(work, SECONDS))
    assert "/.well-known/oauth-protected-resource/mcp'" in str(caught.value)
    assert "does the proxy in front of the server pass it on?" in str(caught.value)
