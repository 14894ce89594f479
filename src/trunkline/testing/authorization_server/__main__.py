"""`python -m trunkline.testing.authorization_server`: run the development authorization server.

The rules that live here, and only here:

* Client-id metadata documents are off unless they are asked for: a host that knows them sends the
  URL of a document on the internet, which a machine for development may not reach. Without them it
  registers.                                          [MCP 2026-07-28, client registration]
* The value of a claim is JSON where it can be read as JSON, and a text otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

from .consent_page import SERVER_NAME
from .server import AuthorizationServer

__all__ = ["main", "parse", "server_of"]

_DEFAULT_PORT = 9000


def main() -> int:
    """Run until interrupted, and return the exit status."""
    given = parse(sys.argv[1:])
    logging.basicConfig(level=logging.DEBUG if given.verbose else logging.WARNING)
    try:
        asyncio.run(_run(server_of(given)))
    except KeyboardInterrupt:
        return 0
    except (OSError, ValueError) as error:
        print(f"authorization server: {error}", file=sys.stderr)
        return 1
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line.

    Raises:
        SystemExit: an option is wrong; a message was printed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m trunkline.testing.authorization_server", description=SERVER_NAME
    )
    add = parser.add_argument
    add("--port", type=int, default=_DEFAULT_PORT, help="port on 127.0.0.1 (default: %(default)s)")
    add("--path", default="", help="path of the issuer, such as /tenant1 (default: none)")
    add("--scope", action="append", default=[], help="scope that clients may ask for; repeatable")
    add("--resource", action="append", help="URL that tokens are issued for; repeatable")
    add("--user", default="user", help="user that logs in (default: %(default)s)")
    add(
        "--claim",
        type=_claim,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="claim of every access token, such as tenant=acme; the value is JSON where it can be "
        "read as JSON, null leaves a claim out; repeatable",
    )
    add("--approve", action="store_true", help="consent at once, without showing a page")
    add("--client-id", help="id of a public client that need not register")
    add("--redirect-uri", action="append", default=[], help="redirect URI of that client")
    add(
        "--client-id-documents",
        action="store_true",
        help="take client ids that are URLs of metadata documents, and fetch these; without it "
        "every client registers",
    )
    add("--verbose", action="store_true", help="log each request, without its secrets")
    return parser.parse_args(arguments)


def server_of(given: argparse.Namespace) -> AuthorizationServer:
    """Return the server that options describe.

    Raises:
        ValueError: a value cannot be used.
    """
    server = AuthorizationServer(
        port=given.port,
        path=given.path,
        scopes=given.scope,
        resources=given.resource,
        user=given.user,
        claims=dict(given.claim),
        approve=True if given.approve else None,
        metadata_documents=given.client_id_documents,
    )
    if given.client_id is not None:
        server.client(given.client_id, redirect_uris=given.redirect_uri)
    return server


def _claim(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as tenant=acme")
    try:
        return name, decode(value)
    except DecodeError:
        return name, value


async def _run(server: AuthorizationServer) -> None:
    async with server:
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
