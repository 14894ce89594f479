"""Variables in the values of an entry, replaced as its host replaces them.

The rules that live here, and only here:

* A host replaces the forms that its row lists; any other text is literal, `$` included.
* A variable without a value is an error that names file, entry, member and variable. No host
  that documents it starts a server with such a hole in its command, except that `{env:NAME}` is
  empty then.
* `${input:id}` is a question of the host to its user. There is nothing to put in its place. A
  file or a command whose content a host would insert (`{file:PATH}`, `$(COMMAND)`) is not read
  or run: the entry may be a stranger's.
* A file of variables (`envFile`) is read line by line: NAME=VALUE, `#` comments, quotes around a
  value. Variables of `env` are stronger.
* Values are replaced once: what a variable holds is not looked at again.
* The secret of a client is not in a file: there it is a variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from .entries import ServerEntry
from .errors import HostConfigError
from .files import read_file

__all__ = ["expand_entry", "parse_env_file"]

_BRACES: Final = re.compile(r"\$\{([^{}]*)\}")
_BARE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_PLAIN_BRACES: Final = re.compile(r"\{(env|file):([^{}]+)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_ENV_FILE_BYTES: Final = 1 << 20


def expand_entry(
    entry: ServerEntry,
    *,
    environ: Mapping[str, str] | None = None,
    workspace: str | None = None,
    home: str | None = None,
) -> ServerEntry:
    """Return the entry with its variables replaced, its file of variables read and its headers.

    `environ` is the environment of this process by default, `workspace` the current folder and
    `home` the home folder.

    Raises:
        HostConfigError: a variable has no value, or the file of variables cannot be read.
    """
    values = _VariableValues(
        entry,
        os.environ if environ is None else environ,
        os.getcwd() if workspace is None else workspace,
        os.path.expanduser("~") if home is None else home,
    )
    cwd = values.text(entry.cwd, "cwd")
    env_file = values.text(entry.env_file, "envFile")
    env = dict(values.map(entry.env, "env"))
    if env_file:
        env = {**_read_env_file(entry, env_file, workspace or os.getcwd()), **env}
    headers = dict(values.map(entry.headers, "headers"))
    for name, before, variable in entry.env_headers:
        headers[name] = before + values.variable(variable, f"the header {name}")
    return msgspec.structs.replace(
        entry,
        command=values.text(entry.command, "command"),
        args=tuple(values.text(each, "args") for each in entry.args),
        env=MappingProxyType(env),
        cwd=os.path.join(workspace or os.getcwd(), cwd) if cwd else "",
        env_file="",
        url=values.text(entry.url, "url"),
        headers=MappingProxyType(headers),
        env_headers=(),
        auth=None if entry.auth is None else values.auth(entry.auth),
        variables=(),
    )


class _VariableValues:
    """The variables that one entry can name."""

    def __init__(
        self, entry: ServerEntry, environ: Mapping[str, str], workspace: str, home: str
    ) -> None:
        self._entry = entry
        self._environ = environ
        self._forms = frozenset(entry.variables)
        folder = os.path.basename(workspace.rstrip(os.sep)) or workspace
        self._fixed: dict[str, str] = {
            "${userHome}": home,
            "${workspaceFolder}": workspace,
            "${workspaceFolderBasename}": folder,
            "${pathSeparator}": os.sep,
            "${/}": os.sep,
        }

    def text(self, text: str, key: str) -> str:
        """Return a text with its variables replaced."""
        if "{env:NAME}" in self._forms:
            return _PLAIN_BRACES.sub(lambda found: self._plain(found, key), text)
        if "$" not in text or not self._forms:
            return text
        if "${{" in text and "${{ secrets.NAME }}" in self._forms:
            raise self._error("${{ ... }} is a value that the host alone has", key)
        if "$(" in text and "$(COMMAND)" in self._forms:
            raise self._error("$(...) is a command that the host runs; put its output there", key)
        if "$NAME" not in self._forms:
            return _BRACES.sub(lambda found: self._braces(found, key), text)
        # One pass over both forms: what a variable holds is not looked at again.
        both = re.compile(f"{_BRACES.pattern}|{_BARE.pattern}")

        def replaced(found: re.Match[str]) -> str:
            if found[2] is not None:
                return self.variable(found[2], key)
            return self._braces(found, key)

        return both.sub(replaced, text)

    def map(self, found: Mapping[str, str], key: str) -> Mapping[str, str]:
        """Return names and values with the variables of the values replaced."""
        return {name: self.text(value, f"{key}.{name}") for name, value in found.items()}

    def variable(self, name: str, key: str) -> str:
        """Return the value of an environment variable."""
        value = self._environ.get(name)
        if value is None:
            raise self._error(f"the environment variable {name} is not set", key)
        return value

    def auth(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of a login with their variables replaced."""
        made: dict[str, Any] = {}
        for name, value in options.items():
            key = f"auth.{name}"
            made[name] = (
                self.text(value, key)
                if isinstance(value, str)
                else tuple(self.text(each, key) for each in value)
            )
            if name == "client_secret" and self._entry.file and made[name] == value:
                raise self._error(
                    "a secret is not written into a file: put it into an environment variable, "
                    "and write ${NAME}",
                    key,
                )
        return MappingProxyType(made)

    def _error(self, problem: str, key: str) -> HostConfigError:
        return HostConfigError(problem, file=self._entry.file, entry=self._entry.name, key=key)

    def _plain(self, found: re.Match[str], key: str) -> str:
        """Return the value of `{env:NAME}`."""
        if found[1] == "file":
            raise self._error(
                f"{found[0]} is a file that the host reads; put the value into an environment "
                "variable and write {env:NAME} instead",
                key,
            )
        return self._environ.get(found[2], "")

    def _braces(self, found: re.Match[str], key: str) -> str:
        whole, inner = found[0], found[1]
        if whole in self._fixed and whole in self._forms:
            return self._fixed[whole]
        kind, colon, rest = inner.partition(":")
        if colon and kind == "env" and "${env:NAME}" in self._forms:
            return self.variable(rest, key)
        if colon and kind == "input" and "${input:id}" in self._forms:
            raise self._error(
                f"{whole} is a question that the host asks its user; put the value into an "
                "environment variable and write ${env:NAME} instead",
                key,
            )
        if rest.startswith("-") and _NAME.fullmatch(kind) and "${NAME:-default}" in self._forms:
            # As in a shell: an empty variable has its default too.
            return self._environ.get(kind) or rest[1:]
        if not colon and _NAME.fullmatch(inner) and "${NAME}" in self._forms:
            return self.variable(inner, key)
        return whole


def _read_env_file(entry: ServerEntry, path: str, workspace: str) -> dict[str, str]:
    full = os.path.join(workspace, os.path.expanduser(path))

    def error(problem: str) -> HostConfigError:
        return HostConfigError(problem, file=entry.file, entry=entry.name, key="envFile")

    try:
        # A pipe: password managers write the variables into one.
        data = read_file(full, most=_MAX_ENV_FILE_BYTES, takes_pipes=True)
    except HostConfigError as problem:
        raise error(f"{full}: {problem.problem}") from None
    if data is None:
        raise error(f"{full}: No such file or directory")
    return parse_env_file(data, lambda problem: error(f"{full}: {problem}"))


def parse_env_file(data: bytes, error: Callable[[str], Exception]) -> dict[str, str]:
    """Return the variables of a file with NAME=VALUE lines; `error` makes what is raised.

    The text of an error has the number of the line, never the line.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error("not UTF-8") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip().removeprefix("export ").strip()
        if not plain or plain.startswith("#"):
            continue
        name, sign, value = plain.partition("=")
        name, value = name.strip(), value.strip()
        if not sign or not _NAME.fullmatch(name):
            raise error(f"line {number} is not NAME=VALUE")
        if value[:1] in ("'", '"'):
            end = value.find(value[0], 1)
            if end < 0:
                raise error(f"line {number}: the quote is not closed")
            value = value[1:end]
        else:
            value = value.split(" #")[0].rstrip()
        found[name] = value
    return found
