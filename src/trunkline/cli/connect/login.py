"""Logins of the command: where they are kept, and how a verb uses one.

The rules that live here, and only here:

* A verb uses a login that `trunkline login` kept, and starts none: a script does not wait for a
  browser. If the login has ended, the error says how to log in again.
* Nothing of a login is shown but what names it: server, issuer, client, scopes, times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...auth.client.file_tokens import FileTokens
from ...auth.client.token_store import StoredLogin, server_key
from ...errors import AuthorizationFailed
from ..command import UsageError

if TYPE_CHECKING:
    from ...transports.addresses import Http, Ws

__all__ = ["check_auth", "find_login", "kept_login", "server_url"]


def check_auth() -> None:
    """Reject logins if their library is not installed.

    Raises:
        UsageError: it is not; the text says how to install it.
    """
    from importlib.util import find_spec

    if find_spec("joserfc") is None:
        raise UsageError("logins need joserfc: pip install trunkline[auth]")


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

    def refuse(*_: Any) -> Any:
        raise AuthorizationFailed("the login has ended", step="authorization")

    return OAuth(storage=FileTokens(), on_authorize=refuse)
