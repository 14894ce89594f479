"""The verb `auth`: shows the logins that are kept, without anything secret."""

from __future__ import annotations

import argparse
from typing import Final

from ....errors import AuthorizationFailed
from ...exit_codes import PROBLEMS_FOUND, SUCCESS
from ...output.reports import emit
from ...output.terminal import print_json, tell

__all__ = ["EXAMPLES", "FORMAT", "configure", "run"]

FORMAT: Final = "trunkline.auth-status/1"
EXAMPLES: Final = """\
trunkline auth
trunkline auth status https://mcp.example.org/mcp --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(url=None, json=False)  # without a word it is `status`
    words = parser.add_subparsers(dest="about", metavar="WHAT", title="what")
    status = words.add_parser(
        "status",
        help="the logins that are kept: server, issuer, client, scopes, end; the default",
        description="Show the logins that are kept. Tokens and secrets are not shown.",
        formatter_class=parser.formatter_class,
    )
    status.add_argument("url", nargs="?", metavar="URL", help="a server; default: all")
    status.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    """Show the logins and return the exit status: 1 without any, or if a file is refused."""
    # Imported here: help needs none of it.
    from ....auth.client.storage.file_tokens import FileTokens
    from ....auth.client.storage.token_store import StoredLogin, server_key
    from ...connect.login import login_facts, login_text

    tokens = FileTokens()
    wanted = None if options.url is None else server_key(_server(options.url))
    logins: list[StoredLogin] = []
    problems: list[str] = []
    try:
        for found in tokens.records():
            if isinstance(found, AuthorizationFailed):
                problems.append(str(found))
                continue
            login = StoredLogin.decode(found)
            if login is None or not (login.access_token or login.refresh_token):
                continue
            if wanted in (None, server_key(login.server)):
                logins.append(login)
    except AuthorizationFailed as error:
        problems.append(str(error))
    logins.sort(key=lambda each: each.server)
    if options.json:
        shown = [login_facts(each) for each in logins]
        print_json({"format": FORMAT, "folder": tokens.path, "logins": shown})
    else:
        emit("\n\n".join(map(login_text, logins)) if logins else "no logins are kept")
    for problem in problems:
        tell(f"trunkline auth: {problem}")
    return SUCCESS if logins and not problems else PROBLEMS_FOUND


def _server(url: str) -> str:
    from ...connect.login import server_url
    from ...connect.target import parse_http_address

    return server_url(parse_http_address(url))
