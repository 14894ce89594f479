"""Turns an error of a connection into one sentence and an exit status.

The rules that live here, and only here:

* An error is one sentence, and an exit status that tells wrong usage, a refusal of the server
  and a failed connection apart.
* After it comes what a server wrote to standard error that was started for the verb, if it ended,
  did not answer, or raised an exception. A failure that the author expected is its text alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ...client.connect.resolve import is_target
from ...errors import (
    AuthorizationFailed,
    ConnectionLost,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
    TrunklineError,
    visible,
)
from ...redaction import show, show_json
from ..command import UsageError
from ..exit_codes import PROBLEMS_FOUND, UNREACHABLE, USAGE_ERROR

if TYPE_CHECKING:
    from ..output.progress import Console

__all__ = ["explain", "explain_failure", "sentence", "status", "unknown_name"]

_MAX_NAMES_SHOWN: Final = 20


def explain(error: TrunklineError, options: argparse.Namespace, console: Console) -> None:
    """Print what happened, and what the server wrote before."""
    from ..output.server_log import has_traceback, printed_shown, stderr_shown

    lines = list(console.server_lines)
    if isinstance(error, TransportError | ConnectionLost):
        error.stderr = ()  # shown below
    text = sentence(error, options)
    is_silent = isinstance(error, TransportError | ConnectionLost | RequestTimeout)
    if is_silent and (printed := printed_shown(console.printed)):
        text = f"{text}; {printed}"
    elif isinstance(error, TransportError) and error.exit_status == 0:
        text = f"{text}; is it an MCP server on stdio?"
    console.error(options.prog, text)
    is_unexpected = is_silent or getattr(error, "kind", None) == "INTERNAL_ERROR"
    if not console.is_verbose and (is_unexpected or has_traceback(lines)):
        _show(stderr_shown(lines), console)


def explain_failure(text: str, console: Console) -> None:
    """Print what the server wrote when a tool failed unexpectedly; `text` is that of the result.

    A result tells apart what a tool reports and what it did not expect only by a reference, which
    servers of this library add; for others it is a traceback on standard error.
    """
    from ..output.server_log import has_traceback, reference_in, stderr_shown

    lines = list(console.server_lines)
    reference = reference_in(text)
    if not console.is_verbose and (reference is not None or has_traceback(lines)):
        _show(stderr_shown(lines, reference), console)


def _show(text: str, console: Console) -> None:
    if text:
        console.note(text)


def sentence(error: TrunklineError, options: argparse.Namespace) -> str:
    """Return what happened, what the server added to it, and what to do."""
    if isinstance(error, AuthorizationFailed):
        return _refused_sentence(error, options)
    if isinstance(error, RemoteProtocolError):
        return f"the server broke a rule of the protocol: {error}"
    if not isinstance(error, PeerError):
        return str(error)
    if error.method == "server/discover" and error.kind == "METHOD_NOT_FOUND" and options.revision:
        return (
            f"the server does not speak MCP {options.revision}; leave --revision out to negotiate"
        )
    kind = f", {error.kind}" if error.kind else ""
    text = str(error).removesuffix(")")
    data = "" if error.data is None else f"\n  data: {visible(show_json(error.data), kept='')}"
    advice = ""
    if error.kind == "MISSING_REQUIRED_CLIENT_CAPABILITY":
        advice = "\n  answer questions at a terminal or by --answer; offer roots by --root"
    return f"the server refused {text}{kind}){data}{advice}"


def _refused_sentence(error: AuthorizationFailed, options: argparse.Namespace) -> str:
    """Return why a server refused, and how to log in unless a header had a credential."""
    # As it was typed: the URL of an entry may hold a secret. The name of an entry in a file of
    # `--config` is not a target by itself.
    config = getattr(options, "config", None)
    target = f"{config}:{options.typed}" if config else options.typed
    if config and not is_target(target):
        target = ""
    target = visible(target or (options.target or "").partition("?")[0], kept="")
    words = (*options.header, *options.header_env)
    if any(word.lower().startswith("authorization=") for word in words):
        return f"{target} refused the Authorization header"
    # Imported here: it is rare.
    from ..output.login_advice import is_about_login, login_advice

    if not is_about_login(error):
        return str(error)
    advice = f"\n  log in: {login_advice(error, target)}"
    is_plain = error.step == "request" and error.error is None and error.status == 401
    return f"{target} asks for a login{advice}" if is_plain else f"{error}{advice}"


def status(error: TrunklineError) -> int:
    """Return the exit status of an error, one of `exit_codes`."""
    if isinstance(error, TransportError | RequestTimeout | ConnectionLost):
        return UNREACHABLE
    return USAGE_ERROR if isinstance(error, LocalProtocolError) else PROBLEMS_FOUND


def unknown_name(name: str, names: Iterable[str], what: str) -> UsageError:
    """Return the error for a name the server does not have: the closest one, or a list."""
    from .tool_arguments import closest_name

    known = list(names)
    close = closest_name(name, known)
    if close is not None:
        advice = f"did you mean {show(close)}?"
    elif not known:
        advice = "it has none"
    else:
        shown = ", ".join(visible(each, kept="") for each in known[:_MAX_NAMES_SHOWN])
        advice = f"it has: {shown}{', …' if len(known) > _MAX_NAMES_SHOWN else ''}"
    return UsageError(f"the server has no {what} {show(name)}; {advice}")
