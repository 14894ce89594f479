"""The verb `hosts`: which MCP hosts are here, what servers they have, and which fail to start."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import AuthorizationFailed, TrunklineError, visible
from ...redaction import HIDDEN, conceal, conceal_command, redact
from ..command import declare_options
from ..connect.options import add_output, parse_seconds
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.progress import is_interactive
from ..output.terminal import bold, dim, paint, print_json, row_width, tell, wrap, writing

if TYPE_CHECKING:
    from ...hosts.entries import ServerEntry
    from ...hosts.files import HostFile
    from ...hosts.table import Host

__all__ = ["EXAMPLES", "configure", "run"]

EXAMPLES: Final = """\
trunkline hosts
trunkline hosts cursor --check
trunkline hosts -o json
"""

_CHECK_TIMEOUT_S: Final = 30.0
# Each check is a process of its own, often a package manager that loads the network and a core.
_MAX_CHECKS: Final = 4
# Shorter values are words such as `1` or `true`, which a message may have for another reason.
_MIN_SECRET: Final = 6
_OPTION_TABLE: Final = f"""\
--check            start or reach every server of the user, and end it again; default: look at the
                   files alone
--project          with --check: also the servers that files in the current folder name
--timeout SECONDS  seconds that a server has to answer with --check; default: {_CHECK_TIMEOUT_S:g}
"""

# Of a server that is in a file of the current folder, which may be a stranger's.
_NOT_STARTED: Final = "not started: this folder names it; add --project to start it"


class CheckOutcome(NamedTuple):
    """What came of one entry: what the server calls itself, or why it cannot be used."""

    server: str = ""
    problem: str = ""
    # Why it was not checked.
    note: str = ""

    def __repr__(self) -> str:
        shown = ", ".join(repr(redact(each)) for each in self)
        return f"CheckOutcome({shown})"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from ..connect.host_change import add_host

    add_host(parser, "host", nargs="?")
    declare_options(
        parser, _OPTION_TABLE, timeout={"type": parse_seconds, "default": _CHECK_TIMEOUT_S}
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Print the hosts and return the exit status: 1 if a check found a problem."""
    from ...hosts.files import load_files
    from ...hosts.table import HOSTS

    hosts = [host for host in HOSTS if options.host in (None, host.id)]
    files = {host.id: load_files(host) for host in hosts}
    entries = [each for found in files.values() for file in found for each in file.entries]
    outcomes = dict(zip(map(id, entries), _outcomes(entries, options), strict=True))
    if options.output == "json":
        print_json(
            {
                "format": "trunkline.hosts/1",
                "hosts": [_host_document(host, files[host.id], outcomes) for host in hosts],
            }
        )
    else:
        with writing():
            _print_hosts(hosts, files, outcomes, is_named=options.host is not None)
    has_problem = any(each.problem for each in outcomes.values()) or any(
        file.error or file.problems for found in files.values() for file in found
    )
    return PROBLEMS_FOUND if options.check and has_problem else SUCCESS


def _is_here(files: Iterable[HostFile]) -> bool:
    """Return True if a file of the host is there, or the folder that its user's file is in."""
    home = os.path.expanduser("~")
    for file in files:
        folder = os.path.dirname(file.path)
        if file.is_there or (
            file.location.scope == "user" and folder != home and os.path.isdir(folder)
        ):
            return True
    return False


# Checks


def _outcomes(entries: list[ServerEntry], options: argparse.Namespace) -> list[CheckOutcome]:
    """Return what came of each entry."""
    from ...hosts.errors import HostConfigError
    from ...hosts.expand import expand_entry

    found: list[CheckOutcome | ServerEntry] = []
    for entry in entries:
        if entry.disabled:
            found.append(CheckOutcome())
            continue
        try:
            full = expand_entry(entry)
        except HostConfigError as error:
            key = f"{error.key}: " if error.key else ""
            found.append(CheckOutcome(problem=f"{key}{error.problem}"))
            continue
        problem = _missing_program(full)
        if not problem and entry.scope == "project" and options.check and not options.project:
            found.append(CheckOutcome(note=_NOT_STARTED))
        else:
            found.append(CheckOutcome(problem=problem) if problem else full)
    if options.check:
        return _check_all(found, options.timeout)
    return [each if isinstance(each, CheckOutcome) else CheckOutcome() for each in found]


def _missing_program(entry: ServerEntry) -> str:
    """Return why the command of an entry cannot be started at all; "" if it may be."""
    from shutil import which

    if not entry.command:
        return ""
    if entry.cwd and not os.path.isdir(entry.cwd):
        return f"there is no folder {entry.cwd}"
    path = entry.env.get("PATH", os.environ.get("PATH"))
    program = os.path.join(entry.cwd, entry.command) if os.sep in entry.command else entry.command
    if which(program, path=path):
        return ""
    return f"no such program: {''.join(conceal_command([entry.command]))}"


def _check_all(found: list[CheckOutcome | ServerEntry], timeout: float) -> list[CheckOutcome]:
    # Imported here: a list without --check starts nothing.
    import asyncio
    import logging

    from ..event_loop import run_interruptible
    from ..signals import clean_termination

    async def check_all() -> list[CheckOutcome]:
        places = asyncio.Semaphore(_MAX_CHECKS)

        async def check(each: CheckOutcome | ServerEntry) -> CheckOutcome:
            if isinstance(each, CheckOutcome):
                return each
            async with places:
                return await _check(each, timeout)

        return list(await asyncio.gather(*map(check, found)))

    count = sum(not isinstance(each, CheckOutcome) for each in found)
    if is_interactive() and count:
        tell(
            f"checking {count} {'server' if count == 1 else 'servers'}, {timeout:g} s each at most"
        )
    # What a server does wrong is in its outcome; the log would have it without its name.
    logger = logging.getLogger("trunkline")
    propagates, logger.propagate = logger.propagate, False
    nowhere = logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        with clean_termination():
            return run_interruptible(check_all())
    finally:
        logger.removeHandler(nowhere)
        logger.propagate = propagates


async def _check(entry: ServerEntry, timeout: float) -> CheckOutcome:
    """Start or reach a server, ask for its name, and end it."""
    import asyncio

    from ...client.client import Client
    from ...transports.addresses import parse_address
    from ...transports.stdio.client import Stdio

    try:
        address: Any
        auth = None
        headers = dict(entry.headers)
        if entry.command:
            address = Stdio(
                [entry.command, *entry.args],
                env=entry.env,
                cwd=entry.cwd or None,
                grace=1.0,
            )
        else:
            address = parse_address(entry.url)
            if not any(name.lower() == "authorization" for name in headers):
                auth = _kept_login(address)
        async with asyncio.timeout(timeout):
            async with Client(
                address,
                connect_timeout=timeout,
                timeout=timeout,
                headers=headers or None,
                auth=auth,
            ) as client:
                info = client.server_info
                # A server chooses its name, of any length.
                name = "" if info is None else str(redact(f"{info.name} {info.version}".strip()))
                return CheckOutcome(server=f"{name}, MCP {client.revision}".removeprefix(", "))
    except TimeoutError:
        return CheckOutcome(problem=f"no answer within {timeout:g} s")
    except AuthorizationFailed as error:
        return CheckOutcome(problem=_refusal(error, entry))
    except (TrunklineError, ValueError, OSError) as error:
        return CheckOutcome(problem=_reason(error, entry))


def _kept_login(address: Any) -> Any:
    """Return the login that is kept for a server over HTTP, as every other verb uses it."""
    from ...transports.addresses import Http
    from ..connect.login import kept_login

    return kept_login(address) if isinstance(address, Http) else None


def _refusal(error: AuthorizationFailed, entry: ServerEntry) -> str:
    """Return why a server refused the check; a host has a login of its own."""
    from ..output.login_advice import is_about_login, login_advice

    if entry.headers or not is_about_login(error):
        return _reason(error, entry)
    advice = login_advice(error, str(conceal(entry.url)))
    return f"asks for a login, which the host has of its own; for this check: {advice}"


def _reason(error: Exception, entry: ServerEntry) -> str:
    """Return an error as one line, without the secrets of the entry."""
    first, *rest = [line.strip() for line in str(error).splitlines() if line.strip()] or ["failed"]
    text = first.removesuffix("; last lines on stderr:")
    if rest:
        text = f"{text}: {rest[-1]}"
    words = [entry.command, *entry.args]
    hidden = dict(zip(words, conceal_command(words), strict=True))
    hidden |= dict.fromkeys((*entry.env.values(), *entry.headers.values()), HIDDEN)
    for secret, shown in hidden.items():
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, shown)
    return str(redact(_hide(text)))


# Output


def _host_document(
    host: Host, files: list[HostFile], outcomes: dict[int, CheckOutcome]
) -> dict[str, Any]:
    return {
        "id": host.id,
        "title": host.title,
        "isHere": _is_here(files),
        "source": list(host.source),
        "files": [
            {
                "scope": file.location.scope,
                "path": file.path,
                "isThere": file.is_there,
                **({"problem": file.error} if file.error else {}),
                "entries": [
                    *(_entry_document(each, outcomes[id(each)]) for each in file.entries),
                    *({"name": each.name, "problem": each.problem} for each in file.problems),
                ],
            }
            for file in files
        ],
    }


def _hide(text: str) -> str:
    """Return a URL, or a text with URLs, without secrets and without values of queries."""
    # Imported here: help does not need it.
    from ...hosts.mask import hide_queries

    return hide_queries(str(conceal(text)))


def _entry_document(entry: ServerEntry, outcome: CheckOutcome) -> dict[str, Any]:
    document: dict[str, Any] = {"name": entry.name, "transport": entry.transport}
    if entry.command:
        document["command"] = conceal_command([entry.command, *entry.args])
        document["env"] = list(entry.env)
    else:
        document["url"] = _hide(entry.url)
        document["headers"] = [*entry.headers, *(name for name, _, _ in entry.env_headers)]
    document["isDisabled"] = entry.disabled
    if outcome.server:
        document["server"] = outcome.server
    if outcome.problem:
        document["problem"] = outcome.problem
    if outcome.note:
        document["note"] = outcome.note
    return document


def _print_hosts(
    hosts: list[Host],
    files: dict[str, list[HostFile]],
    outcomes: dict[int, CheckOutcome],
    *,
    is_named: bool,
) -> None:
    absent = []
    is_first = True
    for host in hosts:
        if not is_named and not _is_here(files[host.id]):
            absent.append(host.id)
            continue
        if not is_first:
            print()
        is_first = False
        print(f"{bold(host.title)} ({host.id})")
        for file in files[host.id]:
            # Of several names of a file, the usual one is enough to say that it is missing.
            if file.is_there or not file.location.is_alternative:
                _print_file(file, outcomes)
    if absent:
        if not is_first:
            print()
        _print(dim(f"not here: {', '.join(absent)}"), "")


def _print_file(file: HostFile, outcomes: dict[int, CheckOutcome]) -> None:
    state = "" if file.is_there else dim(" (missing)")
    _print(f"{file.location.scope}: {_tilde(visible(file.path, kept=''))}{state}", "  ")
    if file.error:
        _print(f"{paint('cannot be read:', 'red')} {visible(file.error, kept='')}", "    ")
    for entry in file.entries:
        name = f"{visible(entry.name, kept='')}{dim(' (disabled)') if entry.disabled else ''}"
        _print(name, "    ")
        for line in _entry_lines(entry):
            _print(visible(line, kept=""), "      ")
        outcome = outcomes[id(entry)]
        if outcome.problem:
            _print(f"{paint('fails:', 'red')} {visible(outcome.problem, kept='')}", "      ")
        elif outcome.server:
            _print(f"answers: {visible(outcome.server, kept='')}", "      ")
        elif outcome.note:
            _print(outcome.note, "      ")
    for problem in file.problems:
        _print(visible(problem.name, kept=""), "    ")
        _print(f"{paint('wrong:', 'red')} {visible(problem.problem, kept='')}", "      ")


def _print(text: str, indent: str) -> None:
    """Print a line; on a terminal it is broken at spaces."""
    print("\n".join(wrap(text, row_width(), indent=indent, hanging=f"{indent}  ")))


def _entry_lines(entry: ServerEntry) -> Iterator[str]:
    import shlex

    if entry.command:
        yield shlex.join(conceal_command([entry.command, *entry.args]))
        if entry.env:
            yield f"env: {', '.join(entry.env)}"
    else:
        kind = "" if entry.transport == "http" else f" ({entry.transport})"
        yield f"{_hide(entry.url)}{kind}"
        names = [*entry.headers, *(name for name, _, _ in entry.env_headers)]
        if names:
            yield f"headers: {', '.join(names)}"


def _tilde(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path
