"""Logins of the command: where they are kept, and how a verb uses one.

The rules that live here, and only here:

* A verb uses a login that `trunkline login` kept, and starts none: a script does not wait for a
  browser. If the login has ended, the error says how to log in again.
* Nothing of a login is shown but what names it: server, issuer, client, scopes, times.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ...auth.client.storage.file_tokens import FileTokens
from ...auth.client.storage.token_store import StoredLogin, server_key
from ...errors import visible
from ...extras import install_command
from ..command import UsageError
from ..output.terminal import columns

if TYPE_CHECKING:
    from ...transports.addresses import Http, Ws

__all__ = [
    "check_auth",
    "find_login",
    "kept_login",
    "login_facts",
    "login_text",
    "server_url",
]

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def check_auth() -> None:
    """Reject logins if their library is not installed.

    Raises:
        UsageError: it is not; the text says how to install it.
    """
    from importlib.util import find_spec

    if find_spec("joserfc") is None:
        raise UsageError(f"logins need joserfc: {install_command('auth')}")


def server_url(address: Http | Ws) -> str:
    """Return the URL of a server; that of a WebSocket is the one of its handshake."""
    text = str(address)
    return f"http{text[2:]}" if text.startswith("ws") else text


def find_login(url: str) -> StoredLogin | None:
    """Return the login that is kept for a server.

    Raises:
        AuthorizationFailed: its file cannot be trusted.
    """
    found = StoredLogin.decode(FileTokens().load(server_key(url)))
    return found if found is not None and (found.access_token or found.refresh_token) else None


def kept_login(address: Http | Ws) -> Any:
    """Return the `auth=` of a client for a server, or None if there is no login.

    Raises:
        UsageError: there is one, and its library is not installed.
        AuthorizationFailed: its file cannot be trusted.
    """
    url = server_url(address)
    if find_login(url) is None:
        return None
    check_auth()
    from ...auth.client.oauth import OAuth
    from ...transports.addresses import Tls

    # The authorization server may have a certificate of the same authority. That of the client,
    # if it has one, is not for it.
    ca = getattr(address.tls, "ca", None)
    tls = None if ca is None else Tls(ca=ca)
    return OAuth(storage=FileTokens(), interactive=False, tls=tls)


def login_facts(login: StoredLogin) -> dict[str, Any]:
    """Return what is shown of a login."""
    from datetime import UTC, datetime

    end = None
    if login.expires_at is not None:
        end = datetime.fromtimestamp(login.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "server": login.server,
        "issuer": login.issuer,
        "client_id": login.client_id,
        "scopes": login.scopes if login.granted is None else login.granted,
        "requested_scopes": login.scopes,
        "expires_at": end,
        "is_expired": login.expires_at is not None and login.expires_at <= time.time(),
        "is_refreshable": login.refresh_token is not None,
        "is_bound_to_key": login.dpop_key is not None,
    }


def login_text(login: StoredLogin) -> str:
    """Return what is shown of a login, for people."""
    facts = login_facts(login)
    refused = [each for each in login.scopes if login.granted and each not in login.granted]

    def shown(name: str) -> str:
        return visible(str(facts[name]), kept="")

    return columns(
        [
            ("server", shown("server")),
            ("issuer", shown("issuer")),
            ("client", shown("client_id")),
            ("scopes", visible(" ".join(facts["scopes"]), kept="") or "those of the server"),
            ("not granted", visible(" ".join(refused), kept="")),
            ("access ends", _end(facts)),
            ("refreshable", "yes" if facts["is_refreshable"] else "no: log in again after that"),
            ("bound to key", "yes" if facts["is_bound_to_key"] else ""),
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
