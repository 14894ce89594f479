"""`python -m trunkline.testing.authorization_server`: run the development authorization server."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from .consent_page import SERVER_NAME
from .server import AuthorizationServer

__all__ = ["main"]

_DEFAULT_PORT = 9000


def main() -> int:
    """Run until interrupted, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m trunkline.testing.authorization_server", description=SERVER_NAME
    )
    add = parser.add_argument
    add("--port", type=int, default=_DEFAULT_PORT, help="port on 127.0.0.1 (default: %(default)s)")
    add("--path", default="", help="path of the issuer, such as /tenant1 (default: none)")
    add("--scope", action="append", default=[], help="scope that clients may ask for; repeatable")
    add("--resource", action="append", help="URL that tokens are issued for; repeatable")
    add("--user", default="user", help="user that logs in (default: %(default)s)")
    add("--approve", action="store_true", help="consent at once, without showing a page")
    add("--client-id", help="id of a public client that need not register")
    add("--redirect-uri", action="append", default=[], help="redirect URI of that client")
    add("--verbose", action="store_true", help="log each request, without its secrets")
    given = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if given.verbose else logging.WARNING)
    try:
        server = AuthorizationServer(
            port=given.port,
            path=given.path,
            scopes=given.scope,
            resources=given.resource,
            user=given.user,
            approve=True if given.approve else None,
        )
        if given.client_id is not None:
            server.client(given.client_id, redirect_uris=given.redirect_uri)
        asyncio.run(_run(server))
    except KeyboardInterrupt:
        return 0
    except (OSError, ValueError) as error:
        print(f"authorization server: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(server: AuthorizationServer) -> None:
    async with server:
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
