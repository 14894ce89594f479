"""The verb `login`: logs a user in at a server, and keeps the login for all other verbs.

The new login is kept in memory until it has succeeded, and then replaces the stored one.
Secrets come from a variable or a prompt, never from the command line.
The `auth` of an entry has the options that are not given; with `--client-id`, or a document, those
of its client are not used.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from ....errors import AuthorizationFailed, TrunklineError, visible
from ....redaction import show
from ...command import UsageError, declare_options
from ...exit_codes import PROBLEMS_FOUND, SUCCESS, UNREACHABLE
from ...output.login_advice import logout_command
from ...output.reports import emit
from ...output.terminal import is_terminal, tell

if TYPE_CHECKING:
    from ....auth.client.storage.token_store import StoredLogin
    from ....transports.addresses import Http, Ws

__all__ = ["EXAMPLES", "configure", "run"]

EXAMPLES: Final = """\
trunkline login https://mcp.example.org/mcp
trunkline login mcp.json:files
trunkline login https://mcp.example.org/mcp --scope files:read --no-browser
trunkline login https://mcp.example.org/mcp --client-id cli --issuer URL
"""
_PROG: Final = "trunkline login"
TIMEOUT_S: Final = 300.0
_OPTION_TABLE: Final = f"""\
--scope SCOPE                 scope to ask for; default: those that the server names; repeatable
--client-id ID                a client that is registered; default: a new one
--client-secret-env VARIABLE  environment variable with the secret of --client-id
--client-secret-prompt        ask for the secret of --client-id
--issuer URL                  the authorization server that --client-id belongs to
--client-metadata-url URL     the document that describes the client, for servers that support it
--redirect-uri URI            redirect URI that is registered for --client-id;
                              default: a free port of 127.0.0.1
--no-browser                  print the address to visit, and read the one that the browser was
                              sent to
--dpop                        bind the tokens to a key of this machine
--timeout SECONDS             seconds for the whole login; default: {TIMEOUT_S:g}
--tls-ca FILE                 CA certificates to trust; default: the system's
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "url",
        metavar="URL",
        help="the server: http://HOST:PORT/PATH or https://HOST/PATH, or an entry such as "
        "mcp.json:NAME or cursor:NAME",
    )
    declare_options(parser, _OPTION_TABLE, timeout={"type": float, "default": TIMEOUT_S})


def run(options: argparse.Namespace) -> int:
    """Log in and return the exit status."""
    # Imported here: help needs none of it.
    from ...connect.login import check_auth, login_text
    from ...connect.target import parse_http_address
    from ...event_loop import run_interruptible
    from ...signals import clean_termination

    check_auth()
    if not 0 < options.timeout < float("inf"):
        raise UsageError("--timeout takes a number of seconds above 0")
    address = parse_http_address(options.url, options)
    secret = _secret(options)
    if secret is None:
        secret = _take_entry(options)
    try:
        with clean_termination():
            login = run_interruptible(_log_in(address, options, secret))
    except AuthorizationFailed as error:
        tell(f"{_PROG}: {error}")
        return PROBLEMS_FOUND
    except TrunklineError as error:
        tell(f"{_PROG}: {error}")
        return UNREACHABLE
    emit(f"logged in\n{login_text(login)}")
    return SUCCESS


def _secret(options: argparse.Namespace) -> str | None:
    """Return the secret of the client, if it has one. No error quotes it."""
    name = options.client_secret_env
    if name is None and not options.client_secret_prompt:
        return None
    if options.client_id is None:
        raise UsageError("the secret of a client needs --client-id")
    if name is not None and options.client_secret_prompt:
        raise UsageError("give --client-secret-env or --client-secret-prompt, not both")
    if name is not None:
        found = os.environ.get(name)
        if not found:
            raise UsageError("--client-secret-env: there is no such environment variable")
        return found
    if not is_terminal(sys.stdin):
        raise UsageError("--client-secret-prompt needs a terminal; use --client-secret-env")
    from getpass import getpass

    found = getpass("client secret: ").strip()
    if not found:
        raise UsageError("the client secret is empty")
    return found


def _take_entry(options: argparse.Namespace) -> str | None:
    """Use the options of an entry that are not given; return the secret of its client."""
    entry = dict(getattr(options, "entry_auth", {}))
    options.scope = options.scope or list(entry.get("scopes", ()))
    if options.client_id is not None or options.client_metadata_url is not None:
        return None
    for name in ("client_id", "issuer", "client_metadata_url", "redirect_uri"):
        if getattr(options, name) is None:
            setattr(options, name, entry.get(name))
    secret: str | None = entry.get("client_secret")
    return secret


async def _log_in(
    address: Http | Ws, options: argparse.Namespace, secret: str | None
) -> StoredLogin:
    from ....auth.client.storage.file_tokens import FileTokens
    from ....auth.client.storage.token_store import MemoryTokens, StoredLogin, server_key
    from ...connect.login import server_url

    url = server_url(address)
    key, files, memory = server_key(url), FileTokens(), MemoryTokens()
    before, registered = StoredLogin.decode(files.load(key)), ""
    if before is not None and options.client_id in (None, before.client_id):
        # The client stays registered.
        memory.store(key, before.without_tokens().encode())
        registered = before.client_id if options.client_id is None else ""
    prompt = _LoginPrompt(options.url, options.timeout, registered)
    await _authorize(address, url, _oauth(options, secret, memory, prompt), memory, key)
    login = StoredLogin.decode(memory.load(key))
    assert login is not None
    if secret is not None:
        login.client_secret = secret  # for refreshes
    async with files.lock(key):
        files.store(key, login.encode())
    return login


def _oauth(
    options: argparse.Namespace, secret: str | None, storage: Any, prompt: _LoginPrompt
) -> Any:
    from ....auth.client.oauth import OAuth

    given: dict[str, Any] = {}
    if options.tls_ca is not None:
        from ....transports.addresses import Tls

        given["tls"] = Tls(ca=options.tls_ca)
    try:
        return OAuth(
            scopes=options.scope,
            client_id=options.client_id,
            client_secret=secret,
            issuer=options.issuer,
            client_metadata_url=options.client_metadata_url,
            redirect_uri=options.redirect_uri,
            on_authorize=prompt.paste if options.no_browser else None,
            open_url=prompt.open_browser,
            storage=storage,
            dpop=True if options.dpop else None,
            timeout=options.timeout,
            **given,
        )
    except ValueError as error:
        raise UsageError(str(error).replace("_", "-").replace("OAuth: ", "--")) from None


async def _authorize(address: Http | Ws, url: str, auth: Any, memory: Any, key: str) -> None:
    """Connect, which logs in if the server asks for it; otherwise ask for a login."""
    from dataclasses import replace

    from ....auth.client.flow.discovery import MetadataDiscovery
    from ....auth.client.flow.server_url import has_public_address
    from ....auth.client.storage.token_store import StoredLogin
    from ....client.client import Client
    from ....transports.http.client.settings import HttpOptions

    client = Client(replace(address, options=HttpOptions(auth=auth)))
    try:
        await client.connect()
    except ValueError as error:
        raise UsageError(str(error)) from None
    finally:
        await client.close()
    login = StoredLogin.decode(memory.load(key))
    if login is not None and login.access_token:
        return
    # The server lets strangers connect, and may ask for a login later.
    is_private = not await has_public_address(url)
    context = None
    if address.tls:
        from ....transports.sockets.tls import client_context

        context = client_context(address.tls)
    session = auth.for_server(url, context=context, is_private=lambda: is_private)
    await session.prepare(url)
    try:
        await session.refused("POST", url, 401, [], b"")
    except AuthorizationFailed as error:
        discovery = MetadataDiscovery(url, context=context, is_private=lambda: is_private)
        # Without metadata the endpoints at its origin were a guess.
        if error.step != "registration" or not (await discovery.server(None)).is_legacy:
            raise
        raise AuthorizationFailed(
            f"{show(url)} asked for no login: it answered without one", step="authorization request"
        ) from None


class _LoginPrompt:
    """Shows the address of a login, and how long it waits for the user."""

    def __init__(self, target: str, timeout: float, registered: str) -> None:
        """`registered` is the id of a client that an earlier login has registered, if any."""
        self._target = target
        self._timeout = timeout
        self._registered = registered

    def open_browser(self, url: str) -> bool:
        """Open the browser; the address is shown too, for one that does not open."""
        import webbrowser

        wait = f"within {self._timeout:g} s (Ctrl-C ends the wait)"
        self._show(f"log in in the browser {wait}, at", url)
        webbrowser.open(url)
        return True

    async def paste(self, url: str) -> str:
        """Show the address, and return the one that the user was sent to."""
        from ...connect.elicitation import read_line

        self._show(
            f"visit this address within {self._timeout:g} s, log in, and paste the address that "
            "the browser shows then:",
            url,
        )
        if is_terminal(sys.stdin) and sys.stderr is not None:
            sys.stderr.write("> ")
            sys.stderr.flush()
        text = None if sys.stdin is None else await read_line(sys.stdin.fileno())
        if not text:
            raise AuthorizationFailed("nothing was pasted", step="authorization request")
        return text

    def _show(self, request: str, url: str) -> None:
        from urllib.parse import parse_qs, urlsplit

        tell(f"{_PROG}: {request}\n{visible(url, kept='')}")
        if self._registered and self._registered in parse_qs(urlsplit(url).query)["client_id"]:
            # An authorization server that has forgotten it says so in the browser alone.
            tell(
                "  if the browser shows that the client is unknown, press Ctrl-C, forget its "
                f"registration by `{logout_command(self._target)}`, and log in again"
            )
