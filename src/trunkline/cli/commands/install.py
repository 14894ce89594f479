"""The verb `install`: adds a server to the configuration of a host, such as Claude or Cursor.

The entry works outside of the present shell: its command is an absolute path, and so is every
file in it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...errors import visible
from ...redaction import conceal, conceal_command, show
from ..command import UnreadableInput, UsageError, declare_options
from ..output.terminal import tell, writing

if TYPE_CHECKING:
    from ...hosts.edit import EntryPlace
    from ...hosts.entries import ServerEntry
    from ...hosts.table import Host

__all__ = ["EXAMPLES", "TAKES_COMMAND", "configure", "run"]

TAKES_COMMAND: Final = True
EXAMPLES: Final = """\
trunkline install server.py --to claude-desktop
trunkline install server.py:app --to cursor --name weather --env-file .env
trunkline install https://mcp.example.org/mcp --to vscode --scope project
trunkline install --to codex --name files -- npx -y @modelcontextprotocol/server-filesystem ~
trunkline install server.py --to claude-code --record /tmp/talk.jsonl
trunkline install server.py --to json
"""
_OPTION_TABLE: Final = """\
--name NAME        name of the entry; default: made from the target
--env KEY[=VALUE]  environment variable of the server; without a value it is taken from the present
                   environment; repeatable
--env-file FILE    environment variables of the server, KEY=VALUE a line
--record FILE      record the traffic of the host with the server to a file; a recording that is
                   there is continued
--uv               start a file with `uv run` in its project, and not with this interpreter
--create           make the folder of the host if it is missing
"""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
# Names of files that say nothing about the server; the folder does.
_USUAL_NAMES: Final = frozenset(("__init__", "__main__", "app", "main", "mcp", "run", "server"))
_MAX_ENV_FILE_BYTES: Final = 1 << 20
# Options of `trunkline` for a file that it writes.
_RECORDING_OPTIONS: Final = ("--record", "--trace")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from ..connect.host_change import add_consent, add_host

    prog = parser.prog
    parser.set_defaults(prog=prog)
    parser.usage = (
        f"{prog} TARGET --to HOST [options]\n       {prog} --to HOST [options] -- COMMAND ..."
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="server.py, server.py:app, package.module:app or an address; left out with a command "
        "after --",
    )
    add_host(parser, "--to", takes_json=True)
    declare_options(parser, _OPTION_TABLE)
    add_consent(parser)


def run(options: argparse.Namespace) -> int:
    """Add the entry and return the exit status."""
    from ...hosts.edit import put_entry
    from ...hosts.errors import HostConfigError
    from ...hosts.table import ANY_HOST, find_host
    from ..connect.host_change import apply_change, find_place

    host = find_host(options.host, takes_any=True)
    entry = _entry(options, host)
    if host is ANY_HOST:
        return _print_json(entry, options)
    try:
        place = find_place(host, options.scope, entry.name)
        _check_folder(place, options)
        old = place.raw(place.text(), entry.name)
        with writing():
            _print_entry(entry, place, is_new=old is None)
        return apply_change(
            place,
            entry.name,
            lambda text: put_entry(text, place, entry),
            options,
            done=f"{entry.name!r} is {'added to' if old is None else 'replaced in'} {host.title}",
            is_added=True,
        )
    except HostConfigError as error:
        raise UnreadableInput(str(error)) from None


def _print_json(entry: ServerEntry, options: argparse.Namespace) -> int:
    """Print the entry for a host whose file is not known; nothing is written."""
    from ...hosts.edit import entry_members
    from ...hosts.errors import HostConfigError
    from ...hosts.table import ANY_HOST
    from ..exit_codes import SUCCESS
    from ..output.terminal import print_json

    if options.scope is not None:
        raise UsageError("--scope is for a host whose files are known, and --to json writes none")
    try:
        members = entry_members(entry, ANY_HOST)
    except HostConfigError as error:
        raise UnreadableInput(str(error)) from None
    print_json({"mcpServers": {entry.name: members}})
    return SUCCESS


def _check_folder(place: EntryPlace, options: argparse.Namespace) -> None:
    """Raise if the host is not here; make the folder of a project, or with --create."""
    folder = os.path.dirname(os.path.realpath(place.path))
    if os.path.isdir(folder):
        return
    is_ours = place.location.scope == "project"
    if not is_ours and not options.create:
        raise UsageError(
            f"{place.host.title} does not seem to be installed: there is no folder "
            f"{visible(folder)}; --create makes it"
        )
    if not options.dry_run:
        os.makedirs(folder, exist_ok=True)


def _print_entry(entry: ServerEntry, place: EntryPlace, *, is_new: bool) -> None:
    import shlex

    shown = conceal_command([entry.command, *entry.args]) if entry.command else []
    facts = [
        ("host", f"{place.host.title} ({place.location.scope})"),
        ("file", place.path),
        ("entry", entry.name if is_new else f"{entry.name} (there already: to be replaced)"),
        ("command", shlex.join(shown) if shown else ""),
        ("url", str(conceal(entry.url))),
        ("env", ", ".join(entry.env)),
    ]
    # Whole, however long: this is what the host will run.
    for name, value in facts:
        if value:
            print(f"{name + ':':10}{visible(value, kept='')}")
    print()


# The entry


def _entry(options: argparse.Namespace, host: Host) -> ServerEntry:
    """Return the entry that the command line describes.

    Raises:
        UsageError: a part of it does not exist, or is missing.
    """
    from ...hosts.entries import ServerEntry

    given, command = options.target, options.command
    if (given is None) == (command is None):
        raise UsageError(
            f"name a server, or put its command after --; try {options.prog} --help"
            if given is None
            else f"give the target {show(given)} or a command after --, not both"
        )
    env = _environment(options)
    if command is not None:
        words, default = _command_words(command), _command_name(command)
    elif _is_remote(given):
        return _remote_entry(options, host, given, env)
    else:
        words, extra, default = _served(given, options)
        env = {**extra, **env}
    if options.uv and given is None:
        raise UsageError("--uv is for a file; write the uv command after -- instead")
    if options.record is not None:
        words = [*_python(), "proxy", *_record_words(options), "--", *words]
    return ServerEntry(
        name=_checked_name(options.name, default),
        transport="stdio",
        command=words[0],
        args=tuple(words[1:]),
        env=env,
    )


def _is_remote(text: str) -> bool:
    """Return True if a target is an address; False if it is a file or a module.

    Raises:
        UsageError: it is neither; the text says how it was read.
    """
    from ...client.connect.resolve import (
        IN_SHELL,
        TargetError,
        is_address,
        resolve,
        serve_command,
    )

    try:
        target = resolve(text, IN_SHELL)
    except TargetError as error:
        raise UsageError(str(error)) from None
    if is_address(text):
        return True
    if target.command != serve_command(text):
        # Its values would be written without the variables that keep secrets out of the file.
        raise UsageError(f"{show(text)} is an entry of a host; install the server that it names")
    return False


def _remote_entry(
    options: argparse.Namespace, host: Host, address: str, env: Mapping[str, str]
) -> ServerEntry:
    from urllib.parse import urlsplit

    from ...hosts.entries import ServerEntry

    # Imported here: most servers are files.
    from ...transports.addresses import parse_address

    if options.uv:
        raise UsageError("--uv is for a file")
    try:
        parse_address(address)
    except ValueError as error:
        raise UsageError(str(error)) from None
    name = _checked_name(options.name, (urlsplit(address).hostname or "").split(":")[0])
    is_http = address.startswith(("http://", "https://")) and bool(host.fields.urls)
    if is_http and env:
        raise UsageError("--env and --env-file need a server that is started")
    if is_http and options.record is None:
        return ServerEntry(name=name, transport="http", url=address)
    if not is_http:
        tell(
            f"{options.prog}: {host.title} does not connect to such an address; "
            "the entry starts `trunkline proxy`, which does"
        )
    if address.startswith("unix:"):
        address = f"unix:{os.path.abspath(address.removeprefix('unix:'))}"
    words = [*_python(), "proxy", *_record_words(options), address]
    return ServerEntry(
        name=name, transport="stdio", command=words[0], args=tuple(words[1:]), env=env
    )


def _record_words(options: argparse.Namespace) -> list[str]:
    """Return the words of `trunkline proxy` that record to the file of --record."""
    if options.record is None:
        return []
    from ..recording import check_continuable

    path = os.path.abspath(options.record)
    check_continuable(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise UsageError(f"--record: there is no folder {visible(os.path.dirname(path))}")
    return ["--record", path]


def _python() -> list[str]:
    if not sys.executable:
        raise UsageError("the path of the Python interpreter is not known")
    # -P: modules in the folder where the host starts it must not hide those of the library.
    return [os.path.abspath(sys.executable), "-P", "-m", "trunkline"]


def _served(text: str, options: argparse.Namespace) -> tuple[list[str], dict[str, str], str]:
    """Return the command that serves a file or a module, variables for it, and a name."""
    from ..loader import parse_app_target

    target = parse_app_target(text)
    suffix = f":{target.name}" if target.name else ""
    if target.file is not None:
        stem = os.path.splitext(os.path.basename(target.file))[0]
        folder = os.path.basename(target.folder)
        default = folder if stem in _USUAL_NAMES and folder else stem
        words = _uv(target.folder) if options.uv else _python()
        return [*words, "serve", f"{target.file}{suffix}"], {}, default
    env = {}
    top = target.module.split(".")[0]
    if not _is_installed(top):
        if not _is_in(top, target.folder):
            raise UsageError(f"no module {top}, neither in {target.folder} nor installed")
        # The host starts the server in another folder.
        env["PYTHONPATH"] = target.folder
    words = _uv(target.folder) if options.uv else _python()
    return [*words, "serve", f"{target.module}{suffix}"], env, top.replace("_", "-")


def _is_installed(module: str) -> bool:
    from importlib.machinery import PathFinder

    here = os.path.realpath(os.getcwd())
    others = [each for each in sys.path if each and os.path.realpath(each) != here]
    return PathFinder.find_spec(module, others) is not None


def _is_in(module: str, folder: str) -> bool:
    from importlib.machinery import PathFinder

    return PathFinder.find_spec(module, [folder]) is not None


def _uv(folder: str) -> list[str]:
    from shutil import which

    found = which("uv")
    if found is None:
        raise UsageError("uv is not on PATH; leave --uv out, or install uv")
    words = [os.path.abspath(found), "run"]
    here = folder
    while not os.path.isfile(os.path.join(here, "pyproject.toml")):
        if os.path.dirname(here) == here:
            return [*words, "--no-project", "--with", "trunkline", "trunkline"]
        here = os.path.dirname(here)
    return [*words, "--directory", here, "trunkline"]


def _command_words(command: Sequence[str]) -> list[str]:
    """Return a command whose program and files are absolute paths.

    `trunkline proxy` starts what follows its own `--`, so that is a command too. Other programs
    may look their commands up elsewhere: `uv run -- python` is the python of a project.
    """
    from shutil import which

    if not command or not command[0]:
        raise UsageError("the command after -- is empty")
    program = which(command[0])
    if program is None:
        raise UsageError(f"{show(command[0])}: no such program, neither on PATH nor as a file")
    words = [os.path.abspath(program)]
    is_trunkline = _is_trunkline(command)
    rest = list(command[1:])
    inner: list[str] = []
    if is_trunkline and "--" in rest[:-1]:
        place = rest.index("--")
        rest, inner = rest[:place], ["--", *_command_words(rest[place + 1 :])]
    before = ""
    for word in rest:
        # A recording need not be there yet.
        is_recording = is_trunkline and before in _RECORDING_OPTIONS
        words.append(os.path.abspath(word) if is_recording else _absolute(word, is_trunkline))
        before = word
    return [*words, *inner]


def _is_trunkline(command: Sequence[str]) -> bool:
    """Return True if a command is `trunkline`, or `python -m trunkline`."""
    name = os.path.splitext(os.path.basename(command[0]))[0]
    if name == "trunkline":
        return True
    options = list(command[1:])
    place = options.index("-m") + 1 if "-m" in options else 0
    return bool(place) and name.startswith("python") and options[place : place + 1] == ["trunkline"]


def _absolute(word: str, is_trunkline: bool) -> str:
    """Return a word with an absolute path, if it names a file or a folder here."""
    option, sign, value = word.partition("=")
    if word.startswith("-"):
        is_path = _is_path(value) or (is_trunkline and option in _RECORDING_OPTIONS)
        return f"{option}={os.path.abspath(value)}" if sign and value and is_path else word
    if _is_path(word):
        return os.path.abspath(word)
    path, colon, name = word.rpartition(":")
    if colon and name.isidentifier() and path.endswith(".py") and os.path.isfile(path):
        return f"{os.path.abspath(path)}:{name}"
    return word


def _is_path(text: str) -> bool:
    """Return True if a word is the name of a file here, or of a folder and looks like one."""
    if os.path.isfile(text):
        return True
    looks = text in (os.curdir, os.pardir) or os.sep in text
    return looks and os.path.isdir(text)


def _command_name(command: Sequence[str]) -> str:
    """Return a name made from the first word that is not an option or a launcher."""
    launchers = {"npx", "uvx", "uv", "node", "run", "python", "python3", "bunx", "deno", "docker"}
    for word in command:
        stem = os.path.basename(word).split("@")[0] or os.path.basename(word)
        stem = os.path.splitext(stem)[0]
        if word.startswith("-") or stem in launchers or not _NAME.fullmatch(stem):
            continue
        return stem
    return ""


def _checked_name(given: str | None, default: str) -> str:
    name = given if given is not None else re.sub(r"[^A-Za-z0-9_-]+", "-", default).strip("-_")
    if not name:
        raise UsageError("give the entry a name: --name NAME")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{show(name)} is not a name that all hosts take: up to 64 letters, digits, - and _"
        )
    return name


def _environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the variables of --env-file and --env; the latter are stronger."""
    found: dict[str, str] = {}
    if options.env_file is not None:
        from ...hosts.expand import parse_env_file

        path = options.env_file
        with open(path, "rb") as file:
            data = file.read(_MAX_ENV_FILE_BYTES + 1)
        if len(data) > _MAX_ENV_FILE_BYTES:
            raise UsageError(f"{path}: larger than {_MAX_ENV_FILE_BYTES} bytes")
        found = parse_env_file(data, lambda problem: UnreadableInput(f"{path}: {problem}"))
    for word in options.env:
        key, sign, value = word.partition("=")
        if not key or (sign and "\0" in value):
            raise UsageError("--env takes KEY=VALUE or KEY")
        if not sign:
            if key not in os.environ:
                raise UsageError(f"--env {show(key)}: the variable is not set here")
            value = os.environ[key]
        found[key] = value
    return found
