"""Turns the target of a command line into an address, with its headers and its login.

`client.connect.resolve` reads the text; this module puts the result into the options.

The rules that live here, and only here:

* A word that is not a target gets advice on what was probably meant: the address of another
  word, or a command without `--`.

* Headers of HTTP can be secrets: no error quotes one, and `--header-env` keeps them out of the
  process list.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from ...client.connect.resolve import (
    IN_SHELL,
    ResolvedTarget,
    TargetError,
    is_address,
    is_configuration,
    is_target,
    resolve,
)
from ...errors import visible
from ...extras import install_command
from ...redaction import redact, show
from ..command import UsageError
from .options import is_http, stdio_of, tls_of

if TYPE_CHECKING:
    from ...transports.base import Address

__all__ = [
    "check_http",
    "check_websocket",
    "config_names",
    "parse_http_address",
    "parse_server_address",
    "parse_target",
    "resolve_target",
    "take_target",
    "use_target",
]


def resolve_target(text: str) -> ResolvedTarget:
    """Return the server that a word names.

    Raises:
        UsageError: it names none; the text says how it was read, and what to type instead.
    """
    try:
        return resolve(text, IN_SHELL)
    except TargetError as error:
        raise UsageError(str(error)) from None


def take_target(options: argparse.Namespace, words: list[str]) -> list[str]:
    """Resolve the first word, or the name after `--config`; return the other words.

    Raises:
        UsageError: it names no server; the text says how it was read, and what to type instead.
    """
    first, *rest = words
    config = options.config
    try:
        if config is not None:
            from ...client.connect.configured import config_entry

            found = config_entry(config, first, IN_SHELL)
        else:
            found = resolve(first, IN_SHELL)
    except TargetError as error:
        if config is None:
            _check_order(words, options.prog)
        raise UsageError(str(error)) from None
    use_target(options, found)
    return rest


def config_names(path: str) -> str:
    """Return the names of the servers in the file of `--config`, as advice.

    Raises:
        UsageError: the file cannot be read.
    """
    # Imported here: it reads files of other programs.
    from ...client.connect.configured import config_advice

    try:
        return config_advice(path, path)
    except TargetError as error:
        raise UsageError(str(error)) from None


def use_target(options: argparse.Namespace, found: ResolvedTarget) -> None:
    """Set the options of a resolved target: an address, or a command."""
    options.typed = found.text
    options.target = found.address or None
    options.entry_headers = found.headers
    if not found.address:
        options.command = list(found.command)
        options.entry_env, options.cwd = found.env, found.cwd


def _check_order(words: list[str], prog: str) -> None:
    """Reject a first word that is not a target, with advice on what was probably meant."""
    first, *rest = words
    # Imported here: it is slow to load.
    from shutil import which

    target = next((each for each in rest if is_target(each)), None)
    is_argument = any("=" in each for each in rest)
    is_command = rest and not is_argument and os.sep not in first and which(first)
    if is_command and (target is None or not is_address(target)):
        raise UsageError(f"put the command after --: {prog} {_shown('--', *words)}")
    if target is not None:
        others = [each for each in words if each is not target]
        what = "address" if is_address(target) else "target"
        raise UsageError(f"the {what} comes first: {prog} {_shown(target, *others)}")


def _shown(*words: str) -> str:
    # Imported here: it is rare.
    from shlex import quote

    shown = (visible(str(redact(each)), kept="") for each in words)
    return " ".join(map(quote, shown))


def check_websocket() -> None:
    """Reject WebSocket if its library is not installed.

    Raises:
        UsageError: it is not; the text says how to install it.
    """
    from importlib.util import find_spec

    if find_spec("websockets") is None:
        raise UsageError(f"WebSocket needs websockets: {install_command('ws')}")


def check_http() -> None:
    """Reject HTTP if its library is not installed.

    Raises:
        UsageError: it is not; the text says how to install it.
    """
    from importlib.util import find_spec

    if find_spec("httptools") is None:
        raise UsageError(f"HTTP needs httptools: {install_command('http')}")


def parse_target(options: argparse.Namespace) -> Address:
    """Return the address in `options.target`, or the command in `options.command`.

    Raises:
        UsageError: it is not an address, or the command is empty.
    """
    if options.target is not None:
        return parse_server_address(options.target, options)
    return stdio_of(options)


def parse_server_address(text: str, options: argparse.Namespace) -> Address:
    """Return the address that a text names, with the TLS options and the headers.

    Raises:
        UsageError: it is not an address; the text says how one is written.
    """
    # Imported here: most verbs of this command connect to nothing.
    from ...transports.addresses import Tls, parse_address

    if getattr(options, "env", None):
        raise UsageError("--env needs a server that is started: a file, or a command after --")
    if text.startswith(("ws://", "wss://")):
        check_websocket()
    elif is_http(text):
        check_http()
    given = tls_of(options)
    try:
        address = parse_address(text, tls=Tls(**given) if given else None)
        return _with_headers(address, options) if is_http(text) else address
    except ValueError as error:
        if getattr(options, "typed", text) != text:
            # Of an entry: the URL may hold a secret.
            raise UsageError(
                f"{show(options.typed)}: the URL of the entry is not the address of a server"
            ) from None
        scheme, sign, host = text.partition("://")
        if sign and host and ":" not in host and not is_http(text):
            raise UsageError(
                f"{show(text)} needs a port, as in {scheme}://{_shown(host)}:9000"
            ) from None
        raise UsageError(f"{error}; or put a command after --") from None


def parse_http_address(text: str, options: argparse.Namespace | None = None) -> Any:
    """Return the address of an HTTP server, without headers and without a login.

    `text` may be the name of an entry that has a URL, such as `cursor:github`; options of its login
    become `options.entry_auth`.

    Raises:
        UsageError: it is not the URL of one.
    """
    from ...transports.addresses import Tls, parse_address

    if is_configuration(text) or (not is_address(text) and is_target(text)):
        found = resolve_target(text)
        text = found.address or text
        if options is not None:
            options.entry_auth = found.auth or {}
    if not text.startswith(("http://", "https://", "ws://", "wss://")):
        raise UsageError(f"{show(text)} is not the URL of a server, such as https://HOST/PATH")
    check_http()
    ca = getattr(options, "tls_ca", None)
    try:
        return parse_address(text, tls=Tls(ca=ca) if ca is not None else None)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _has_logins() -> bool:
    """Return True if there is a folder of logins.

    As `default_folder` of the files of `auth`, which are not loaded for users without one.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.isdir(os.path.join(state, "trunkline", "tokens"))


def _login_for(address: Any, headers: dict[str, str]) -> Any:
    """Return the login that is kept for a server; None if a header has a credential already."""
    if "authorization" in map(str.lower, headers) or not _has_logins():
        return None
    from .login import kept_login

    return kept_login(address)


def _with_headers(address: Any, options: argparse.Namespace) -> Any:
    """Return an address whose requests have the headers in the options, or a login."""
    headers = _headers_of(options)
    given = set(map(str.lower, headers))
    entry = getattr(options, "entry_headers", {})
    headers |= {name: value for name, value in entry.items() if name.lower() not in given}
    auth = _login_for(address, headers)
    if not headers and auth is None:
        return address
    from dataclasses import replace

    from ...transports.http.client.settings import HttpOptions

    try:
        return replace(address, options=HttpOptions(headers=headers, auth=auth))
    except ValueError as error:
        raise UsageError(str(error).replace("HttpOptions.headers", "--header")) from None


def _headers_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the headers in the options. No error quotes a word: it may be a secret."""
    # Imported here: most targets have no headers.
    from ...mcp.header_values import is_token

    headers: dict[str, str] = {}
    for option in ("header", "header_env"):
        form = "NAME=VALUE" if option == "header" else "NAME=VARIABLE"
        for word in getattr(options, option, ()):
            name, sign, value = word.partition("=")
            if not sign or not is_token(name):
                raise UsageError(f"--{option.replace('_', '-')} takes {form}")
            if option == "header_env":
                found = os.environ.get(value)
                if found is None:
                    raise UsageError(f"--header-env {name}: there is no such environment variable")
                value = found
            if name.lower() in map(str.lower, headers):
                raise UsageError(f"the header {name} is given twice")
            headers[name] = value
    return headers
