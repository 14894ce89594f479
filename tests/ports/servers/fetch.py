"""Web pages as text, from hosts that are allowed; a small site on loopback is there to be read."""

from __future__ import annotations

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from trunkline import Context, Server, ToolError, ToolOutput
from trunkline.server import ResultCache

SITE = {
    "/": (200, "text/html", "<h1>Fjords</h1><p>There are <b>many</b>.</p><script>1</script>"),
    "/long": (200, "text/plain", "0123456789" * 30),
    "/robots.txt": (200, "text/plain", "User-agent: *\nDisallow: /private\n"),
    "/private": (200, "text/plain", "for people"),
}


class Site(BaseHTTPRequestHandler):
    """Serves the pages of `SITE`."""

    def do_GET(self) -> None:
        """Send a page."""
        status, kind, text = SITE.get(self.path, (404, "text/plain", "nothing here"))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@asynccontextmanager
async def lifespan(app: Server) -> AsyncGenerator[str, None]:
    """Run the site, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        # It looks this often whether it is to stop.
        thread = Thread(target=site.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()
        thread.join()


def get(url: str) -> tuple[str, str]:
    """Return a page and its media type."""
    try:
        with urllib.request.urlopen(url, timeout=10) as page:
            return page.read().decode("utf-8", "replace"), page.headers.get_content_type()
    except urllib.error.HTTPError as error:
        error.close()
        raise ToolError(f"{urlsplit(url).path} answered with status {error.code}.") from None
    except OSError as error:
        raise ToolError(f"{urlsplit(url).netloc} cannot be reached.") from error


def readable(html: str) -> str:
    """Return the words of a page."""
    without = re.sub(r"<(script|style).*?</\1>", "", html, flags=re.DOTALL)
    titled = re.sub(r"<h1>(.*?)</h1>", r"# \1\n", without)
    return re.sub(r"<[^>]+>", "", titled).strip()


def make(folder: Path) -> Server:
    """Return a server that reads pages; it keeps nothing in a folder."""
    app = Server("fetch", version="1.0.0", lifespan=lifespan)
    app.middleware(ResultCache(60, tools=["fetch"]))

    @app.tool(timeout=20)
    async def fetch(
        ctx: Context[str],
        url: Annotated[str, Meta(description="a path of the site, or a whole URL")],
        max_length: Annotated[int, Meta(gt=0, le=100_000)] = 200,
        start: Annotated[int, Meta(ge=0)] = 0,
        raw: bool = False,
    ) -> ToolOutput[str]:
        """Read a page as plain text; a long one in pieces, from `start` on."""
        target = url if "://" in url else ctx.state + url
        if not target.startswith(f"{ctx.state}/"):
            raise ToolError(f"{urlsplit(target).netloc} is not an allowed host.")
        rules, _ = await asyncio.to_thread(get, f"{ctx.state}/robots.txt")
        forbidden = re.findall(r"^Disallow: (\S+)", rules, re.MULTILINE)
        if any(urlsplit(target).path.startswith(each) for each in forbidden):
            raise ToolError("The site does not want programs to read that page.")
        await ctx.debug(f"reading {urlsplit(target).path}")
        page, kind = await asyncio.to_thread(get, target)
        text = page if raw or kind != "text/html" else readable(page)
        piece = text[start : start + max_length]
        if start + max_length < len(text):
            piece += f"\n[more from {start + max_length} of {len(text)}]"
        return ToolOutput(piece, meta={"example.com/type": kind})

    @app.prompt(title="Read a page")
    async def page(ctx: Context[str], path: str) -> str:
        """Put a page into the conversation."""
        text, _ = await asyncio.to_thread(get, ctx.state + path)
        return f"This is the page {path}:\n{readable(text)}"

    return app


if __name__ == "__main__":
    make(Path()).run()
