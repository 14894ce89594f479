"""The verb `auth`: shows the logins that are kept, without anything secret."""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from ...errors import AuthorizationFailed, visible
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.reports import emit
from ..output.terminal import columns, print_json, tell

__all__ = ["EXAMPLES", "FORMAT", "configure", "run"]

FORMAT: Final = "trunkline.auth-status/1"
EXAMPLES: Final = """\
trunkline auth status
trunkline auth status https://mcp.example.org/mcp --json
"""
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    words = parser.add_subparsers(dest="about", required=True, metavar="WHAT", title="what")
    status = words.add_parser(
        "status",
        help="the logins that are kept: server, issuer, client, scopes, end",
        description="Show the logins that are kept. Tokens and secrets are not shown.",
        formatter_class=parser.formatter_class,
    )
    status.add_argument("url", nargs="?", metavar="URL", help="a server; default: all")
    status.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> int:
    """Show the logins and return the exit status: 1 without any, or if a file is refused."""
    # Imported here: help needs none of it.
    from ...auth.client.file_tokens import FileTokens
    from ...auth.client.token_store import StoredLogin, server_key

    tokens = FileTokens()
    wanted = None if options.url is None else server_key(_server(options.url))
    logins: list[dict[str, Any]] = []
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
                logins.append(_facts(login))
    except AuthorizationFailed as error:
        problems.append(str(error))
    logins.sort(key=lambda each: str(each["server"]))
    if options.json:
        print_json({"format": FORMAT, "folder": tokens.path, "logins": logins})
    else:
        emit("\n\n".join(_text(each) for each in logins) if logins else "no logins are kept")
    for problem in problems:
        tell(f"trunkline auth: {problem}")
    return SUCCESS if logins and not problems else PROBLEMS_FOUND


def _server(url: str) -> str:
    from ..connect.login import server_url
    from ..connect.target import parse_http_address

    return server_url(parse_http_address(url))


def _facts(login: Any) -> dict[str, Any]:
    """Return what is shown of a login."""
    from datetime import UTC, datetime

    end = None
    if login.expires_at is not None:
        end = datetime.fromtimestamp(login.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "server": login.server,
        "issuer": login.issuer,
        "client_id": login.client_id,
        "scopes": login.scopes,
        "expires_at": end,
        "is_expired": login.expires_at is not None and login.expires_at <= time.time(),
        "is_refreshable": login.refresh_token is not None,
        "is_bound_to_key": login.dpop_key is not None,
    }


def _text(login: dict[str, Any]) -> str:
    def shown(name: str) -> str:
        return visible(str(login[name]), kept="")

    return columns(
        [
            ("server", shown("server")),
            ("issuer", shown("issuer")),
            ("client", shown("client_id")),
            ("scopes", visible(" ".join(login["scopes"]), kept="") or "none"),
            ("access ends", _end(login)),
            ("refreshable", "yes" if login["is_refreshable"] else "no: log in again after that"),
            ("bound to key", "yes" if login["is_bound_to_key"] else ""),
        ]
    )


def _end(login: dict[str, Any]) -> str:
    if login["expires_at"] is None:
        return "unknown"
    from datetime import UTC, datetime

    end = datetime.strptime(login["expires_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    seconds = int(abs(end.timestamp() - time.time()))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    span = f"{seconds // size} {unit}"
    return f"{login['expires_at']}, {span} ago" if login["is_expired"] else f"in {span}"
