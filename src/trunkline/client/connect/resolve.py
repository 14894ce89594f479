"""Resolves what people type into a server: an address, a command, or an entry of a host.

    https://mcp.example.org/mcp    tcp://127.0.0.1:9000    unix:/run/weather.sock
    server.py    server.py:app    package.module:app
    claude:github    cursor:github    vscode:github    mcp.json:github

`Client(...)` and every verb of the command line take the same texts, and this is the function
that reads them. Nothing is opened or started here, and only the standard library is loaded: the
command line starts a server before it loads the rest.

The rules that live here, and only here:

* The form of a text decides what it is, and not what happens to exist. The forms are tried in
  this order: the scheme of an address; a path with a drive letter; the name of a host before the
  first colon; a path, which ends in `.py` or has a slash; `module:object`.
  So `./unix:x.py` and `claude.py:app` are files. After a configuration file, which ends in
  `.json` or `.toml`, comes the name of an entry in it.
* A text is never a command. A command is a list of words: after `--`, or in Python a list.
* A file or a module is served by a process of its own, with the interpreter of this one:
  `python -m trunkline serve FILE`.
* An error quotes the text, says how it was read, and says what to write instead. Values of an
  entry (variables, headers, the query of a URL) are never quoted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...redaction import redact, show

__all__ = [
    "ADDRESSES",
    "IN_CODE",
    "IN_SHELL",
    "ResolvedTarget",
    "TargetAdvice",
    "TargetError",
    "check_not_client",
    "is_address",
    "is_configuration",
    "is_target",
    "names_shown",
    "resolve",
    "serve_command",
]

# How the text of an address begins. Repeated here because the module that owns the schemes is
# slow to load.
ADDRESSES: Final = (
    *("tcp://", "tls://", "unix:"),
    *("http://", "https://", "http+unix:", "ws://", "wss://"),
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_HOST_AND_PORT: Final = re.compile(r"([\w.-]+):([0-9]{1,5})(/.*)?")
_INTERPRETERS: Final = {
    **{".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "npx tsx"},
    **{".rb": "ruby", ".sh": "sh", ".jar": "java -jar", ".php": "php"},
}
# How the path of a configuration file ends.
_CONFIGURATIONS: Final = (".json", ".toml")
_MAX_NAMES_SHOWN: Final = 20


class TargetError(ValueError):
    """A text that names no server; it says how the text was read, and what to write instead."""


class TargetAdvice(NamedTuple):
    """How an error advises to give a command: on the command line, or in Python."""

    command: str
    before: str
    between: str
    after: str

    def run(self, words: Sequence[str]) -> str:
        """Return the advice to run a command; in a shell, words that need quotes have them."""
        if not self.after:
            # Imported here: most targets are found.
            from shlex import quote

            words = [quote(each) for each in words]
        return f"{self.before}{self.between.join(words)}{self.after}"


IN_CODE: Final = TargetAdvice(
    'pass a command as a list, such as ["python", "server.py"]',
    'pass its command as a list: ["',
    '", "',
    '"]',
)
IN_SHELL: Final = TargetAdvice("put a command after --", "put its command after --: -- ", " ", "")


class ResolvedTarget(NamedTuple):
    """A server: the text of an address, or a command to start."""

    # As it was typed.
    text: str
    # Empty if the server is started by `command`.
    address: str = ""
    command: tuple[str, ...] = ()
    # Added to the inherited environment of the command.
    env: Mapping[str, str] = {}
    # Working directory of the command; None is the current one.
    cwd: str | None = None
    # Of every request to an address of HTTP.
    headers: Mapping[str, str] = {}
    # Its login: options of `OAuth` by name, or in Python an object; None without one.
    auth: Any = None

    def __repr__(self) -> str:
        # Of an entry, arguments, variables, headers and the query of a URL can be secrets.
        kind = "an address" if self.address else "a command"
        return f"<ResolvedTarget {show(self.text)}, {kind}>"


def is_address(text: str) -> bool:
    """Return True if a text has the form of an address."""
    return text.startswith(ADDRESSES)


def is_configuration(given: object) -> bool:
    """Return True if the target of a client is a configuration: a dict, or the path of a file."""
    if isinstance(given, Mapping):
        return True
    if not isinstance(given, str | os.PathLike):
        return False
    path = os.fspath(given)
    is_file = isinstance(path, str) and path.endswith(_CONFIGURATIONS)
    return is_file and not (is_address(path) or _SCHEME.match(path))


def check_not_client(given: object, name: str = "the target") -> None:
    """Raise TypeError for a client, of this library or another: nothing connects to one."""
    if callable(getattr(given, "call_tool", None)):
        raise TypeError(
            f"{name} is a {type(given).__name__}, and a client makes its own connection: give it "
            'what that one connects to, in a configuration as {"url": "...", "auth": OAuth()}'
        )


def is_target(text: str) -> bool:
    """Return True if a text has the form of a target, and is not a bare word."""
    if is_address(text):
        return True
    place, name = _split(text)
    if place.endswith(".py") or (name is not None and _is_dotted(place) and _is_dotted(name)):
        return True
    if name and place.endswith(_CONFIGURATIONS):
        return True
    return ":" in text and _host(text.partition(":")[0]) is not None


def serve_command(target: str) -> tuple[str, ...]:
    """Return the command that serves `FILE[:object]` or `module:object` on stdio."""
    # -P: the current folder must not hide modules of the library. `serve` adds the folder of the
    # file. A dash in front would make the file an option.
    place = os.path.join(os.curdir, target) if target.startswith("-") else target
    return (sys.executable, "-P", "-m", "trunkline", "serve", place)


def resolve(text: str, wording: TargetAdvice = IN_CODE) -> ResolvedTarget:
    """Return the server that a text names.

    Raises:
        TargetError: it names none; the text says how it was read, and what to write instead.
    """
    if not text.strip():
        raise TargetError(f"the target is empty; {wording.command}, or {_FORMS}")
    if is_address(text):
        return ResolvedTarget(text, address=text)
    if _SCHEME.match(text):
        scheme = text.partition("://")[0]
        raise TargetError(
            f"{show(text)} was read as an address, and {scheme}:// is not the scheme of a server; "
            f"name the server by {', '.join(ADDRESSES[:-1])} or {ADDRESSES[-1]}, or "
            f"{wording.command}"
        )
    place, name = _split(text)
    if (match := _HOST_AND_PORT.fullmatch(text)) and not place.endswith(".py"):
        raise TargetError(
            f"{show(text)} was read as a host and a port without a scheme; "
            f"write http://{match[1]}:{match[2]}{match[3] or '/mcp'} or tcp://{match[1]}:{match[2]}"
        )
    if not _DRIVE.match(text):
        host, colon, entry = text.partition(":")
        found = _host(host) if colon else None
        if found is not None:
            # Imported here: it reads files of other programs.
            from .configured import host_entry

            return host_entry(found, entry, text, wording)
    if _is_path(place) or (name is None and os.path.exists(place)):
        return _file(text, place, name, wording)
    if name is not None:
        return _object(text, place, name, wording)
    raise _bare(text, wording)


_FORMS: Final = (
    "write an address (https://HOST/PATH, tcp://HOST:PORT, unix:PATH), a file (server.py), "
    "package.module:app, or an entry of a host (claude:NAME)"
)


def _split(text: str) -> tuple[str, str | None]:
    """Return the place of a server and the object in it, None if there is no colon."""
    start = 2 if _DRIVE.match(text) else 0
    place, colon, name = text[start:].rpartition(":")
    # A slash after the colon belongs to a path, such as a folder called `a:b`.
    if not colon or "/" in name or os.path.isfile(text):
        return text, None
    return text[:start] + place, name


def _host(name: str) -> str | None:
    """Return the id of the host with this name or alias."""
    # Imported here: most targets have no colon but that of a scheme.
    from ...hosts.errors import UnknownHost
    from ...hosts.table import find_host

    try:
        return find_host(name).id
    except UnknownHost:
        return None


# Files


def _is_path(place: str) -> bool:
    is_drive = _DRIVE.match(place) is not None
    has_slash = "/" in place or (os.sep != "/" and os.sep in place)
    endings = (".py", *_CONFIGURATIONS, *_INTERPRETERS)
    return is_drive or has_slash or place.endswith(endings)


def _file(text: str, place: str, name: str | None, wording: TargetAdvice) -> ResolvedTarget:
    if os.path.isdir(place):
        raise TargetError(
            f"{show(text)} was read as a file, and {show(place)} is a folder; "
            f"name a Python file in it, or a module as package.module:app"
        )
    if name and place.endswith(_CONFIGURATIONS):
        # Imported here: it reads files of other programs.
        from .configured import config_entry

        return config_entry(place, name, wording, text)
    if name is not None and not _is_dotted(name) and not place.endswith(_CONFIGURATIONS):
        raise TargetError(
            f"{show(text)} was read as a file and an object in it, and {show(name)} is not the "
            f"name of one; write FILE:app"
        )
    if not os.path.isfile(place):
        # A path can have a space too.
        if len(text.split()) > 1 and not os.path.isdir(os.path.dirname(place)):
            raise _command_line(text, wording)
        raise TargetError(
            f"{show(text)} was read as a file, and there is no file {show(place)}"
            f"{_near_file(place)}"
        )
    if place.endswith(_CONFIGURATIONS):
        raise TargetError(_about_configuration(text, place, wording))
    if not place.endswith(".py"):
        run = _INTERPRETERS.get(os.path.splitext(place)[1], "").split()
        if not run and not os.access(place, os.X_OK):
            raise TargetError(
                f"{show(text)} was read as a file, and only Python files (.py) are served; "
                f"{wording.command}"
            )
        shown = place if run or os.path.dirname(place) else os.path.join(os.curdir, place)
        raise TargetError(
            f"{show(text)} was read as a file, and only Python files (.py) are served; "
            f"{wording.run([*run, shown])}"
        )
    return ResolvedTarget(text, command=serve_command(text))


def _about_configuration(text: str, place: str, wording: TargetAdvice) -> str:
    # Imported here: it reads files of other programs.
    from .configured import config_advice

    names = config_advice(place, text)
    read = f"{show(text)} was read as a configuration file"
    if wording is IN_CODE:
        return f"{read} without a name: give {show(place)}, or {show(f'{place}:NAME')}; {names}"
    from shlex import quote

    return f"{read}; name a server in it, as {quote(place)}:NAME; {names}"


def _near_file(place: str) -> str:
    """Return advice with the Python file that has the nearest name."""
    from difflib import get_close_matches

    folder, base = os.path.split(place)
    try:
        names = [each for each in os.listdir(folder or os.curdir) if each.endswith(".py")]
    except OSError:
        return f"; the folder {show(folder)} does not exist"
    near = get_close_matches(base, names[:1000], n=1)
    return f"; did you mean {show(os.path.join(folder, near[0]))}?" if near else ""


# Modules


def _object(text: str, place: str, name: str, wording: TargetAdvice) -> ResolvedTarget:
    if not _is_dotted(place) or not _is_dotted(name):
        raise _bare(text, wording)
    top = place.partition(".")[0]
    if not _has_module(top):
        raise TargetError(
            f"{show(text)} was read as the object {name} in the module {place}, and there is no "
            f"module {top}, neither in the current folder nor installed{_near_host(text)}"
        )
    return ResolvedTarget(text, command=serve_command(text))


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _has_module(name: str) -> bool:
    """Return True if a module of this name can be imported; nothing is imported."""
    if os.path.isfile(f"{name}.py") or os.path.isdir(name):
        return True
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ValueError:  # a module without a specification, such as __main__
        return False


def _near_host(text: str) -> str:
    from ...hosts.table import HOSTS, near_host

    host, _, name = text.partition(":")
    near = near_host(host)
    if near:
        return f"; did you mean {show(f'{near}:{name}')}?"
    ids = ", ".join(row.id for row in HOSTS)
    return f"; of a host, write HOST:NAME with one of {ids}"


# Bare words


def _bare(text: str, wording: TargetAdvice) -> TargetError:
    if len(text.split()) > 1 and not _known_as(text):
        return _command_line(text, wording)
    looks = re.fullmatch(r"[\w-]+(\.[\w-]+)+", text)
    if looks and _is_dotted(text):
        return TargetError(
            f"{show(text)} was read as a module or a host name, and neither is complete; write "
            f"{text}:app for an object in a module, or https://{text}/mcp for an address"
        )
    if looks:
        return TargetError(
            f"{show(text)} was read as a host name without a scheme; write https://{text}/mcp"
        )
    read = f"{show(text)} was read as a bare name, which is not a server"
    known = _known_as(text)
    if known:
        return TargetError(f"{read}; did you mean {' or '.join(map(show, known))}?")
    return TargetError(f"{read}; {wording.command}, or {_FORMS}")


def _known_as(name: str) -> list[str]:
    """Return targets that a bare name may stand for: a file, and entries of hosts."""
    # Imported here: it reads files of other programs.
    from .configured import hosts_with

    return [*([f"{name}.py"] if os.path.isfile(f"{name}.py") else ()), *hosts_with(name)]


def _command_line(text: str, wording: TargetAdvice) -> TargetError:
    advice = str(redact(wording.run(text.split())))
    return TargetError(
        f"{show(text)} was read as a command line, and a text is never run; {advice}"
    )


def names_shown(names: Sequence[str]) -> str:
    """Return a list of names for an error, cut after the first 20."""
    shown = ", ".join(show(each) for each in names[:_MAX_NAMES_SHOWN])
    return f"{shown}{', …' if len(names) > _MAX_NAMES_SHOWN else ''}"
