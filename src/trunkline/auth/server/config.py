"""`auth=` of a server from a TOML file, for `trunkline serve --auth FILE`.

    scopes = ["files:read"]

    [[jwt]]
    issuer = "https://login.example.org"
    audience = "https://mcp.example.org/mcp"

    [[introspection]]
    endpoint = "https://login.example.org/introspect"
    client_id = "files"
    client_secret_env = "FILES_SECRET"
    audience = "https://mcp.example.org/mcp"

The rules that live here, and only here:

* A secret is in an environment variable or in a file of its own: a text in this file, which is
  shared and kept with the code, is refused.
* What the file has and this module does not know is an error that names the line: an option with a
  spelling mistake would leave a server less protected than it seems.
* Files are named relative to the folder of the TOML file.
* Verifiers are asked in the order of their tables.
* An audience is stated, or that every audience is accepted: a table that does not mention it does
  not accept the tokens of other servers.                                           [SEC-11]
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from ...redaction import show
from ..principal import Principal
from .settings import AuthSettings

__all__ = ["AuthConfigError", "load_auth_file"]

# Of a file with settings, and of a file with a secret or keys.
_MAX_BYTES: Final = 1024 * 1024

_TEXT: Final = "a text"
_TEXTS: Final = "a list of texts"
_FLAG: Final = "true or false"
_NUMBER: Final = "a number"
_COUNT: Final = "an integer"
_TABLE: Final = "a table"
_TABLES: Final = "a list of tables"

_TOP: Final = {
    "required": _FLAG,
    "scopes": _TEXTS,
    "scopes_supported": _TEXTS,
    "resource": _TEXT,
    "resource_name": _TEXT,
    "documentation": _TEXT,
    "authorization_servers": _TEXTS,
    "audit_file": _TEXT,
}
_CLAIMS: Final = {
    "leeway": _NUMBER,
    "tenant_claim": _TEXT,
    "tenant_required": _FLAG,
    "client_claims": _TEXTS,
    "scopes_supported": _TEXTS,
    "max_age": _NUMBER,
    "allow_private": _FLAG,
}
_JWT: Final = {
    "issuer": _TEXT,
    "audience": "a text or a list of texts",
    "algorithms": _TEXTS,
    "types": _TEXTS,
    "jwks_uri": _TEXT,
    "keys_file": _TEXT,
    **_CLAIMS,
}
_INTROSPECTION: Final = {
    "client_id": _TEXT,
    "client_secret_env": _TEXT,
    "client_secret_file": _TEXT,
    "audience": "a text or a list of texts",
    "any_audience": _FLAG,
    "issuer": _TEXT,
    "endpoint": _TEXT,
    "method": _TEXT,
    "prefix": _TEXT,
    "timeout": _NUMBER,
    **_CLAIMS,
}
_KEY: Final = {
    "sha256": _TEXT,
    "subject": _TEXT,
    "client_id": _TEXT,
    "scopes": _TEXTS,
    "tenant": _TEXT,
    "expires_at": _NUMBER,
}
_API_KEYS: Final = {
    "keys": _TABLES,
    "prefix": _TEXT,
    "issuer": _TEXT,
    "scopes_supported": _TEXTS,
}
_DPOP: Final = {
    "required": _FLAG,
    "algorithms": _TEXTS,
    "nonces": _FLAG,
    "nonce_secret_env": _TEXT,
    "nonce_secret_file": _TEXT,
    "max_age": _NUMBER,
    "leeway": _NUMBER,
}
_LIMITS: Final = {
    "in_flight": _COUNT,
    "bytes": _COUNT,
    "rate": _NUMBER,
    "burst": _COUNT,
    "tasks": _COUNT,
    "sessions": _COUNT,
}
_TENANTS: Final = {
    "claim": _TEXT,
    "header": _TEXT,
    "certificate": _TEXT,
    "path": _TEXT,
    "members": _TEXT,
    "required": _FLAG,
    "known": _TEXTS,
    "limits": _TABLE,
    "limits_of": _TABLE,
    "tools": _TABLE,
    "default_tools": _TEXTS,
    "named_in_metrics": _COUNT,
}
_FIXED: Final = {
    "issuer": _TEXT,
    "subject": _TEXT,
    "client_id": _TEXT,
    "scopes": _TEXTS,
    "tenant": _TEXT,
}
_PEER_UID: Final = {"users": "a table of subjects by number, or a list of numbers"}
_PEER_CERTIFICATE: Final = {"name": _TEXT, "names": "a table of subjects by name, or a list"}

_TABLES_OF: Final[dict[str, Mapping[str, str]]] = {
    "jwt": _JWT,
    "introspection": _INTROSPECTION,
    "api_keys": _API_KEYS,
    "dpop": _DPOP,
    "tenants": _TENANTS,
    "fixed": _FIXED,
    "peer_uid": _PEER_UID,
    "peer_certificate": _PEER_CERTIFICATE,
}
# Tables of verifiers of access tokens, which may be bound to a key; API keys and peers are not.
_TOKENS: Final = frozenset(("jwt", "introspection"))
# Tables of which a file may have several.
_SEVERAL: Final = frozenset(("jwt", "introspection"))
_SECRETS: Final = frozenset(("client_secret", "nonce_secret", "key", "token", "password", "secret"))

_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    _TEXT: lambda value: isinstance(value, str),
    _TEXTS: lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    _FLAG: lambda value: isinstance(value, bool),
    _NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    _COUNT: lambda value: isinstance(value, int) and not isinstance(value, bool),
    _TABLE: lambda value: isinstance(value, dict),
    _TABLES: lambda value: (
        isinstance(value, list) and all(isinstance(each, dict) for each in value)
    ),
}


class AuthConfigError(ValueError):
    """A file with settings of authentication that cannot be used; the text names the place."""


def load_auth_file(
    path: str | os.PathLike[str], environment: Mapping[str, str] | None = None
) -> AuthSettings:
    """Return the settings in a file; secrets are read from `environment` and from files.

    Raises:
        AuthConfigError: the file cannot be read or used; the text names the line.
        ImportError: it needs the extra `auth`.
    """
    return _Reader(Path(path), os.environ if environment is None else environment).settings()


class _Reader:
    """One file, and where each of its options is."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._environment = environment
        self._text = _read(path).decode("utf-8", "replace")

    def settings(self) -> AuthSettings:
        """Return what the file says."""
        try:
            found = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            # The text of the error may quote the file, but for where it is.
            where = re.search(r"at line (\d+)", str(error))
            line = f":{where[1]}" if where else ""
            raise AuthConfigError(f"{self._path}{line}: not TOML") from None
        options = {name: value for name, value in found.items() if name not in _TABLES_OF}
        self._check(None, options, _TOP)
        verifiers: list[Any] = []
        for name, value in found.items():
            if name in _TABLES_OF:
                made = self._verifiers(name, value)
                if "dpop" in found and name in _TOKENS:
                    made = [self._with_dpop(found["dpop"], each) for each in made]
                verifiers += made
        if not verifiers:
            raise AuthConfigError(f"{self._path}: no table says how callers are recognised")
        if "tenants" in found:
            options["tenants"] = self._made("tenants", self._tenants, found["tenants"])
        if "audit_file" in options:
            from .audit import JsonLinesAudit

            place = self._path.parent / options.pop("audit_file")
            options["audit"] = self._made(None, lambda: JsonLinesAudit(place))
        settings: AuthSettings
        settings = self._made(None, lambda: AuthSettings(verifiers=verifiers, **options))
        return settings

    # -- checks ------------------------------------------------------------------------------

    def _check(self, table: str | None, given: Any, known: Mapping[str, str]) -> None:
        if not isinstance(given, dict):
            raise self._error(table, None, f"{table} is a table")
        for name, value in given.items():
            if name in _SECRETS and name not in known:
                raise self._error(
                    table,
                    name,
                    f"{name} does not belong in this file: name an environment variable with "
                    f"{name}_env, or a file with {name}_file",
                )
            if name not in known:
                others = () if table is not None else _TABLES_OF
                hint = get_close_matches(name, (*known, *others), 1)
                meant = f", did you mean {hint[0]}?" if hint else ""
                raise self._error(table, name, f"unknown option {show(name)}{meant}")
            check = _CHECKS.get(known[name])
            if check is not None and not check(value):
                raise self._error(table, name, f"{name} is {known[name]}")

    def _error(self, table: str | None, name: str | None, text: str) -> AuthConfigError:
        line = _line_of(self._text, table, name)
        where = f"{self._path}:{line}" if line else str(self._path)
        shown = "" if table is None else f"[{table}]: "
        return AuthConfigError(f"{where}: {shown}{text}")

    def _made(self, table: str | None, make: Callable[..., Any], *given: Any) -> Any:
        """Return what a constructor makes; its errors name the table."""
        try:
            return make(*given)
        except AuthConfigError:
            raise
        except (TypeError, ValueError) as error:
            raise self._error(table, None, str(error)) from None
        except OSError as error:
            raise self._error(table, None, error.strerror or type(error).__name__) from None

    # -- tables ------------------------------------------------------------------------------

    def _verifiers(self, name: str, value: Any) -> list[Any]:
        """Return what a table, or several of one name, recognises callers with."""
        if isinstance(value, list) and name in _SEVERAL:
            return [found for each in value for found in self._verifiers(name, each)]
        self._check(name, value, _TABLES_OF[name])
        make = {
            "jwt": self._jwt,
            "introspection": self._introspection,
            "api_keys": self._api_keys,
            "fixed": self._fixed,
            "peer_uid": _peer_uid,
            "peer_certificate": _peer_certificate,
        }.get(name)
        return [] if make is None else [self._made(name, make, dict(value))]

    def _jwt(self, given: dict[str, Any]) -> Any:
        from .verifiers.jwt_bearer import JwtBearer

        self._need("jwt", given, "issuer", "audience")
        if "keys_file" in given:
            given["keys"] = self._file("jwt", given.pop("keys_file")).decode("utf-8", "replace")
        return JwtBearer(**given)

    def _introspection(self, given: dict[str, Any]) -> Any:
        from .verifiers.introspection import Introspection

        self._need("introspection", given, "client_id")
        secret = self._secret("introspection", given, "client_secret")
        if secret is None:
            raise self._error(
                "introspection", None, "client_secret_env or client_secret_file is missing"
            )
        accepts_all = given.pop("any_audience", False)
        if accepts_all == ("audience" in given):
            raise self._error(
                "introspection",
                None,
                "audience is this server as tokens name it; any_audience = true in its place "
                "accepts the tokens of other servers too",
            )
        given.setdefault("audience", None)
        return Introspection(client_secret=secret, **given)

    def _api_keys(self, given: dict[str, Any]) -> Any:
        from .verifiers.api_keys import ApiKey, ApiKeys

        self._need("api_keys", given, "keys")
        keys = []
        for each in given.pop("keys"):
            self._check("api_keys.keys", each, _KEY)
            self._need("api_keys.keys", each, "sha256", "subject")
            keys.append(ApiKey(**{**each, "scopes": tuple(each.get("scopes", ()))}))
        return ApiKeys(keys, **given)

    def _fixed(self, given: dict[str, Any]) -> Any:
        from .peers import Fixed

        self._need("fixed", given, "subject")
        return Fixed(Principal(**{**given, "scopes": frozenset(given.get("scopes", ()))}))

    def _with_dpop(self, value: dict[str, Any], verifier: Any) -> Any:
        """Return a verifier of tokens with proofs."""
        from .verifiers.dpop import Dpop

        given = dict(value)
        secret = self._secret("dpop", given, "nonce_secret")
        if secret is not None:
            given["nonce_secret"] = secret.encode()
        return self._made("dpop", lambda: Dpop(verifier, **given))

    def _tenants(self, value: dict[str, Any]) -> Any:
        from .tenants import TenantLimits, Tenants

        given = dict(value)
        if "limits" in given:
            self._check("tenants.limits", given["limits"], _LIMITS)
            given["limits"] = TenantLimits(**given["limits"])
        for name, limits in given.get("limits_of", {}).items():
            self._check(f"tenants.limits_of.{name}", limits, _LIMITS)
        if "limits_of" in given:
            given["limits_of"] = {
                name: TenantLimits(**limits) for name, limits in given["limits_of"].items()
            }
        return Tenants(**given)

    # -- values ------------------------------------------------------------------------------

    def _need(self, table: str, given: Mapping[str, Any], *names: str) -> None:
        for name in names:
            if name not in given:
                raise self._error(table, None, f"{name} is missing")

    def _secret(self, table: str, given: dict[str, Any], name: str) -> str | None:
        """Return a secret that an option names, without the end of its line."""
        variable, file = given.pop(f"{name}_env", None), given.pop(f"{name}_file", None)
        if variable is not None and file is not None:
            raise self._error(table, f"{name}_env", f"{name}_env and {name}_file are two sources")
        if variable is not None:
            found = self._environment.get(variable)
            if not found:
                text = f"the environment variable {show(variable)} is not set"
                raise self._error(table, f"{name}_env", text)
            return found
        if file is None:
            return None
        found = self._file(table, file, f"{name}_file").decode("utf-8", "replace").strip("\r\n")
        if not found:
            raise self._error(table, f"{name}_file", f"the file {show(file)} is empty")
        return found

    def _file(self, table: str, name: str, option: str | None = None) -> bytes:
        try:
            return _read(self._path.parent / name)
        except AuthConfigError as error:
            raise self._error(table, option, str(error)) from None


def _peer_uid(given: dict[str, Any]) -> Any:
    from .peers import PeerUid

    users = given.get("users")
    if isinstance(users, dict):
        users = {int(uid) if uid.isdecimal() else uid: each for uid, each in users.items()}
    return PeerUid(users)


def _peer_certificate(given: dict[str, Any]) -> Any:
    from .peers import PeerCertificate

    return PeerCertificate(**given)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise AuthConfigError(f"{path}: {error.strerror}") from None
    if len(found) > _MAX_BYTES:
        raise AuthConfigError(f"{path}: more than {_MAX_BYTES} bytes")
    return found


def _line_of(text: str, table: str | None, name: str | None) -> int:
    """Return the line of an option in a table, or that of the table; 0 if neither is found."""
    is_inside, place = table is None, 0
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$", line)
        if header is not None:
            is_inside = header[1] == table
            is_meant = header[1] == (name if table is None else table)
            place = number if is_meant and not place else place
        elif is_inside and name is not None:
            key = re.match(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*[.=]""", line)
            if key is not None and key[1] == name:
                return number
    return place
