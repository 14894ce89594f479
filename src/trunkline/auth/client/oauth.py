"""OAuth for clients that act for a user: the configuration of a login.

    async with Client("https://files.example.org/mcp", auth=OAuth()) as client: ...

The rules that live here, and only here:

* Credentials are for `https`, or for this machine.                          [SEC-21]
* A redirect URI is `https`, or at this machine. One that is not at this machine needs
  `on_authorize`, because nothing here can listen for it.                    [SEC-21]
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...migration_hints import OAUTH_OPTIONS, with_hints
from ...redaction import show
from ...transports.http.client.fetch import is_loopback_host
from .flow.client_authentication import ClientIdentity
from .flow.discovery import MetadataDiscovery
from .flow.registration import is_metadata_url
from .flow.secret_source import SecretFunction
from .flow.server_url import check_secure
from .login.authorization_code import OnAuthorize, RedirectReceiver
from .login.login_source import LoginSettings, LoginSource
from .login.redirect import is_redirect_uri
from .session.renewal_limit import RenewalLimit
from .session.token_session import TokenSession
from .storage.token_store import KeyLocks, MemoryTokens, TokenStorage

if TYPE_CHECKING:
    from ...transports.addresses import Tls
    from ..jose import SigningKey

__all__ = ["OAuth"]


class OAuth:
    """A login of a user, by the authorization server that the server names.

        Client(URL, auth=OAuth())
        Client(URL, auth=OAuth(client_id="desktop", issuer="https://login.example.org"))

    The browser of the user is opened, and the response comes to a listener on 127.0.0.1. A
    warning is logged while it waits. Where there is no browser, `on_authorize(url)` shows the URL,
    and returns the URL that the user was redirected to; `open_url(url)` opens a browser in another
    way.

    The client is the one that `client_id` names, which was registered at `issuer`, with
    `client_secret` or `private_key` if it has one; or the one that the document at
    `client_metadata_url` describes; or a new one, registered as `client_name`. `redirect_uri` is
    the one that was registered; by default it is at a free port of 127.0.0.1.

    `scopes` are asked for in place of those that the server names. `storage` keeps logins; by
    default they end with the process. `dpop` binds tokens to a key: True, a `SigningKey`, or None
    if the server decides. Without `interactive` a login of the storage is used and refreshed, and
    the user is never asked. `timeout` is how many seconds the user has for a login. `tls` has the
    authorities to trust for other hosts than the server itself.

    Raises:
        ValueError: an argument does not go with another; the text says which.
    """

    @with_hints(OAUTH_OPTIONS)
    def __init__(
        self,
        *,
        scopes: Collection[str] = (),
        client_id: str | None = None,
        client_secret: str | SecretFunction | None = None,
        private_key: str | bytes | SigningKey | None = None,
        issuer: str | None = None,
        client_metadata_url: str | None = None,
        client_name: str = "trunkline",
        redirect_uri: str | None = None,
        on_authorize: OnAuthorize | None = None,
        open_url: Callable[[str], object] | None = None,
        storage: TokenStorage | None = None,
        dpop: bool | SigningKey | None = None,
        interactive: bool = True,
        timeout: float = 300.0,
        tls: Tls | ssl.SSLContext | None = None,
    ) -> None:
        if isinstance(scopes, str):
            raise ValueError("OAuth: scopes is a list of texts")
        has_proof = client_secret is not None or private_key is not None
        if client_id is None and (client_secret is not None or issuer is not None):
            raise ValueError("OAuth: client_secret and issuer belong to a client_id")
        if client_metadata_url is None and client_id is None and has_proof:
            raise ValueError("OAuth: private_key belongs to a client_id or client_metadata_url")
        if client_metadata_url is not None and not is_metadata_url(client_metadata_url):
            raise ValueError("OAuth: client_metadata_url is an https URL with a path")
        if redirect_uri is not None:
            _check_redirect(redirect_uri, has_hook=on_authorize is not None)
        if not timeout > 0:
            raise ValueError(f"OAuth: timeout is a number of seconds above 0, not {show(timeout)}")
        client = document = None
        if client_id is not None:
            client = ClientIdentity(client_id, client_secret=client_secret, private_key=private_key)
        if client_metadata_url is not None:
            key = private_key if client_id is None else None
            document = ClientIdentity(client_metadata_url, private_key=key)
        self._settings = LoginSettings(
            scopes=frozenset(scopes),
            client=client,
            issuer=issuer,
            document=document,
            client_name=client_name,
            receiver=lambda server: RedirectReceiver(
                server,
                timeout=timeout,
                on_authorize=on_authorize,
                open_url=open_url,
                redirect_uri=redirect_uri,
            ),
            storage=MemoryTokens() if storage is None else storage,
            dpop=dpop,
            is_interactive=interactive,
            timeout=timeout,
            logins=KeyLocks(),
            issuers={},
            limits={},
        )
        self._tls = tls

    def __repr__(self) -> str:
        client = self._settings.client or self._settings.document
        return f"<OAuth{'' if client is None else f' of {show(client.client_id)}'}>"

    def for_server(
        self,
        url: str,
        *,
        context: ssl.SSLContext | None = None,
        is_private: Callable[[], bool] = bool,
    ) -> TokenSession:
        """Return the credentials for one server.

        Raises:
            ValueError: the connection to it is neither encrypted nor to this machine, or it is a
                Unix socket, which no authorization server knows.
        """
        check_secure(url)
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("OAuth is for addresses such as https://example.org/mcp")
        other = self._tls
        if other is not None and not isinstance(other, ssl.SSLContext):
            from ...transports.sockets.tls import client_context

            other = client_context(other)
        discovery = MetadataDiscovery(
            url, context=context, other_context=other, is_private=is_private
        )
        source = LoginSource(url, self._settings, discovery)
        limit = self._settings.limits.setdefault(source.server, RenewalLimit())
        return TokenSession(source, storage=self._settings.storage, limit=limit)


def _check_redirect(uri: str, *, has_hook: bool) -> None:
    if not is_redirect_uri(uri):
        raise ValueError("OAuth: redirect_uri is https, or http://127.0.0.1:PORT/PATH")
    parts = urlsplit(uri)
    is_local = parts.scheme == "http" and is_loopback_host(parts.hostname or "")
    if not is_local and not has_hook:
        raise ValueError("OAuth: nothing listens at redirect_uri; give on_authorize too")
