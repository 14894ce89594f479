"""Commands that log in at a server which has refused a request, and that delete a login.

The rules that live here, and only here:

* A refusal is about a login unless its status is 403 without missing scopes: a server may refuse
  for other reasons. So is every failure of a login that is kept, except of its files.
* The command can be pasted into a shell. A server chooses the names of its scopes, and each word
  that a shell would read otherwise is quoted.
"""

from __future__ import annotations

from collections.abc import Collection
from shlex import quote
from typing import Final

from ...errors import AuthorizationFailed, visible

__all__ = ["is_about_login", "login_advice", "login_command", "logout_command"]

# Of a command that a user reads. A login without --scope asks for those that the server names.
_MAX_SCOPES: Final = 20
_MAX_CHARS: Final = 1000


def is_about_login(error: AuthorizationFailed) -> bool:
    """Return True if a login may help."""
    if error.step == "storage":
        return False  # the text says what to do with the files
    return error.status != 403 or error.error == "insufficient_scope"


def login_advice(error: AuthorizationFailed, target: str) -> str:
    """Return the command for a login that repairs a refusal.

    It names scopes only if they are missing: any other login asks for those of the server.
    """
    is_scope = error.error == "insufficient_scope"
    return login_command(target, error.scopes if is_scope else ())


def login_command(target: str, scopes: Collection[str] = ()) -> str:
    """Return the command for a login with scopes."""
    words = ["trunkline login", quote(target)]
    if len(scopes) <= _MAX_SCOPES and sum(map(len, scopes)) <= _MAX_CHARS:
        words += [_option(each) for each in sorted(scopes)]
    return visible(" ".join(words), kept="")


def logout_command(target: str) -> str:
    """Return the command that deletes a login."""
    return visible(f"trunkline logout {quote(target)}", kept="")


def _option(scope: str) -> str:
    """Return the option for a scope, which is a value even if it looks like an option."""
    is_plain = scope == quote(scope) and not scope.startswith("-")
    return f"--scope {scope}" if is_plain else quote(f"--scope={scope}")
