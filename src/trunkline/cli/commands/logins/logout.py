"""The verb `logout`: revokes the tokens of a login, and deletes them."""

from __future__ import annotations

import argparse
from typing import Final

from ....errors import AuthorizationFailed, visible
from ....redaction import show
from ...command import UsageError, declare_options
from ...exit_codes import SUCCESS, UNREACHABLE
from ...output.terminal import tell

__all__ = ["EXAMPLES", "configure", "run"]

EXAMPLES: Final = """\
trunkline logout https://mcp.example.org/mcp
trunkline logout https://mcp.example.org/mcp --local
"""
_PROG: Final = "trunkline logout"
_OPTION_TABLE: Final = """\
--local        delete the login here alone; do not ask the authorization server to revoke it
--tls-ca FILE  CA certificates to trust; default: the system's
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "url",
        metavar="URL",
        help="the server: http://HOST:PORT/PATH or https://HOST/PATH, or an entry such as "
        "mcp.json:NAME or cursor:NAME",
    )
    declare_options(parser, _OPTION_TABLE)


def run(options: argparse.Namespace) -> int:
    """Log out and return the exit status: 3 if the tokens could not be revoked."""
    # Imported here: help needs none of it.
    from ....auth.client.storage.file_tokens import FileTokens
    from ....auth.client.storage.token_store import StoredLogin, server_key
    from ...connect.login import check_auth, server_url
    from ...connect.target import parse_http_address
    from ...event_loop import run_interruptible

    url = server_url(parse_http_address(options.url, options))
    tokens, key = FileTokens(), server_key(url)

    async def work() -> int:
        async with tokens.lock(key):
            found = tokens.load(key)
            if found is None:
                raise UsageError(f"there is no login for {show(url)}")
            login = StoredLogin.decode(found)
            status, note = SUCCESS, "logged out"
            if login is None:
                status = UNREACHABLE
                note = "the login cannot be read and is deleted here; its tokens are not revoked"
            elif options.local:
                note = "the login is deleted here; its tokens are not revoked"
            else:
                check_auth()
                try:
                    if not await _revoked(login, options.tls_ca):
                        note = (
                            "logged out; the authorization server has no revocation, "
                            "and its tokens end by themselves"
                        )
                except AuthorizationFailed as error:
                    status = UNREACHABLE
                    note = f"the login is deleted here, but its tokens are not revoked: {error}"
            tokens.delete(key)
        tell(f"{_PROG}: {visible(note, kept='')}")
        return status

    try:
        return run_interruptible(work())
    except AuthorizationFailed as error:
        raise UsageError(str(error)) from None


async def _revoked(login: object, ca: str | None) -> bool:
    from ....auth.client.login.revocation import revoke
    from ....auth.client.storage.token_store import StoredLogin

    assert isinstance(login, StoredLogin)
    context = None
    if ca is not None:
        from ....transports.addresses import Tls
        from ....transports.sockets.tls import client_context

        context = client_context(Tls(ca=ca))
    return await revoke(login, context=context)
