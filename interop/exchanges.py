"""Who talks to whom, in which revision, and what is checked of it: a table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TextIO

from tests.ports.conversations import groups
from trunkline.spec.revisions import (
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)

from . import (
    fastmcp_client,
    official_caller,
    official_client,
    official_client_asked,
    official_client_tasks,
    official_client_told,
    our_chatbot,
    our_client,
    our_client_asked,
    our_client_short,
    our_client_tasks,
    our_client_told,
    typescript_client,
)
from .checks import Checks, Place

__all__ = ["PARTS", "Exchange", "exchanges"]

PARTS: Final = {
    "A": "the official client, and our server",
    "B": "our client, and the official MCPServer",
    "C": "our client, and the official low-level Server",
    "D": "our client, and servers of 2024-11-05 that answer server/discover in odd ways",
    "E": "the official client, and our server or the official one behind a proxy of ours",
    "F": "our client, and the official MCPServer behind two proxies with a socket between them",
    "G": "over HTTP: the official client, and our server",
    "H": "over HTTP: our client, and the official MCPServer",
    "I": "over HTTP: our client, and the official low-level Server",
    "J": "over HTTP: our client, and the TypeScript SDK",
    "K": "over HTTP: the client of the TypeScript SDK, and our server",
    "L": "over HTTP: our client, and FastMCP",
    "M": "over HTTP: the client of FastMCP, and our server",
    "N": "over HTTP+SSE of 2024-11-05: our client and the official MCPServer, and the other way",
    "O": "the official client, and our servers in the shape that real ones have",
}
# Revisions with sessions over HTTP.
SESSIONS: Final = (V2025_03_26, V2025_06_18, V2025_11_25)
OLD: Final = ("-32601", "-32602", "-32600", "silent", "empty", "nameless", "late", "noisy")
OFFICIAL: Final = (
    ("B", "MCPServer", "interop.official_server"),
    ("C", "low-level", "interop.official_low_server"),
)
# Long enough for a server that imports half a thousand modules on a busy machine.
PROBE: Final = 8.0
# So short that every server is asked in both ways.
HURRY: Final = 0.05
# How long the old servers may say nothing: they are quick to start.
OLD_PROBE: Final = 1.0

THEIR_CHECKS: Final = Checks(
    [
        *official_client.CHECKS,
        *official_client_asked.CHECKS,
        *official_client_tasks.CHECKS,
        *official_client_told.CHECKS,
    ]
)
THEIR_SESSION_CHECKS: Final = Checks([*official_client_tasks.CORE_CHECKS, *THEIR_CHECKS])
THEIR_BUSY_CHECKS: Final = Checks([*official_client.BUSY_CHECKS, *official_client_told.BUSY_CHECKS])
# What an official server answers as ours does.
THEIR_OWN_CHECKS: Final = Checks(
    [
        check
        for check in official_client.CHECKS
        if check.name
        in {
            "a text comes back as it went",
            "many calls at once are told apart",
            "an image is an image",
            "a sound is a sound",
            "an embedded resource is one",
        }
    ]
)
THEIR_MUTE_CHECKS: Final = official_client_asked.MUTE_CHECKS
OUR_CHECKS: Final = Checks(
    [
        *our_client.CHECKS,
        *our_client_asked.CHECKS,
        *our_client_tasks.CHECKS,
        *our_client_told.CHECKS,
    ]
)
OUR_BUSY_CHECKS: Final = Checks([*our_client_told.BUSY_CHECKS, *our_client.BUSY_CHECKS])

Open = Callable[[Place, TextIO], AbstractAsyncContextManager[Any]]


class Exchange(NamedTuple):
    """One client and one server, and what is checked of them."""

    part: str
    title: str
    # Whose differences are to be expected.
    peer: str
    # Which side is ours, if one is.
    ours: Literal["client", "server", ""]
    server: tuple[str, ...]
    open: Open
    checks: Checks
    # What is spoken in the end.
    revision: str
    # Which way leads through a proxy, if one does: see `proxied`.
    way: Literal["", "stdio", "unix"] = ""
    # What starts the server, if it listens on a port: see `http.serve`.
    listener: Literal["", "python", "node"] = ""
    # The column of the printed table, if several exchanges share one.
    shared_column: str = ""

    @property
    def is_old_sse(self) -> bool:
        """Whether it is over HTTP+SSE of 2024-11-05."""
        return "sse" in self.server

    @property
    def column(self) -> str:
        """The column of the printed table."""
        return self.shared_column or self.title

    @property
    def name(self) -> str:
        """What it is called in what is printed."""
        return f"{self.part} {self.title}"


def exchanges() -> list[Exchange]:
    """Return all there are."""
    found = [
        _theirs(each, each, each, checks=THEIR_SESSION_CHECKS)
        for each in sorted(REVISIONS)
        if each != V2026_07_28
    ]
    found += [
        _theirs("legacy", "legacy", V2025_11_25),
        _theirs("auto", "auto", V2026_07_28),
        _theirs("no probe", V2026_07_28, V2026_07_28),
        # A server of one revision, and a client that begins with another.
        _theirs("legacy>2024", "legacy", V2024_11_05, V2024_11_05),
        _theirs("auto>2025", "auto", V2025_06_18, V2025_06_18),
        _theirs("auto>2026", "auto", V2026_07_28, V2026_07_28),
        _refused("legacy>2026", V2026_07_28),
        _theirs("busy", "legacy", V2025_11_25, checks=THEIR_BUSY_CHECKS),
        _theirs("busy auto", "auto", V2026_07_28, checks=THEIR_BUSY_CHECKS),
        _theirs("ending", "auto", V2026_07_28, checks=official_client_told.ENDING_CHECKS),
        _theirs("mute", "legacy", V2025_11_25, checks=THEIR_MUTE_CHECKS, answers=False),
        _theirs("mute auto", "auto", V2026_07_28, checks=THEIR_MUTE_CHECKS, answers=False),
    ]
    for part, peer, server in OFFICIAL:
        ours = partial(_ours, part, peer, (server,))
        busy, mute = OUR_BUSY_CHECKS, our_client_asked.MUTE_CHECKS
        found.append(ours("auto", None, V2026_07_28))
        found.append(ours("hurried", None, V2026_07_28, probe=HURRY))
        found += [ours(each, each, each) for each in sorted(REVISIONS)]
        found.append(ours("busy", V2025_11_25, V2025_11_25, checks=busy))
        found.append(ours("busy auto", None, V2026_07_28, checks=busy))
        found.append(ours("mute", V2025_11_25, V2025_11_25, checks=mute, answers=False))
        found.append(ours("mute auto", None, V2026_07_28, checks=mute, answers=False))
        found += [_chatbot(part, peer, server, pinned) for pinned in (V2025_11_25, None)]
    for manner in OLD:
        old = partial(_ours, "D", "old", ("interop.old_server", manner))
        checks = our_client.OLD_CHECKS
        found.append(old(manner, None, V2024_11_05, probe=OLD_PROBE, checks=checks))
    for title, revision in (("legacy", V2025_11_25), ("auto", V2026_07_28)):
        found.append(_theirs(title, title, revision)._replace(part="E", way="stdio"))
        alone = _theirs(f"{title} own", title, revision, checks=THEIR_OWN_CHECKS)
        theirs = ("interop.official_server",)
        found.append(alone._replace(part="E", way="stdio", ours="", server=theirs))
    for pinned in (V2025_11_25, V2026_07_28):
        behind = _ours("F", "MCPServer", ("interop.official_server",), pinned, pinned, pinned)
        found.append(behind._replace(way="unix"))
    return [*found, *_over_http(), *_ports()]


def _over_http() -> list[Exchange]:
    found = [_theirs(each, each, each, checks=THEIR_SESSION_CHECKS) for each in SESSIONS[:2]]
    found += [
        _theirs("legacy", "legacy", V2025_11_25),
        _theirs("auto", "auto", V2026_07_28),
        _theirs("auto>2025", "auto", V2025_06_18, V2025_06_18),
        _theirs("busy", "legacy", V2025_11_25, checks=THEIR_BUSY_CHECKS),
        _theirs("busy auto", "auto", V2026_07_28, checks=THEIR_BUSY_CHECKS),
        _theirs("mute auto", "auto", V2026_07_28, checks=THEIR_MUTE_CHECKS, answers=False),
    ]
    found = [each._replace(part="G") for each in found]
    ours = partial(_ours, "H", "MCPServer", ("interop.official_server",))
    busy, mute = OUR_BUSY_CHECKS, our_client_asked.MUTE_CHECKS
    found.append(ours("auto", None, V2026_07_28))
    found += [ours(each, each, each) for each in SESSIONS]
    found.append(ours("busy", V2025_11_25, V2025_11_25, checks=busy))
    found.append(ours("busy auto", None, V2026_07_28, checks=busy))
    found.append(ours("mute auto", None, V2026_07_28, checks=mute, answers=False))
    for way in ("json", "stateless"):
        exchange = ours(way, V2025_11_25, V2025_11_25, checks=our_client_short.PLAIN_CHECKS)
        found.append(exchange._replace(server=("interop.official_server", way)))
    ours = partial(_ours, "I", "low-level HTTP", ("interop.official_low_server",))
    found.append(ours("auto", None, V2026_07_28))
    found.append(ours(V2025_11_25, V2025_11_25, V2025_11_25))
    found = [each._replace(listener="python") for each in found]
    ours = partial(_ours, "J", "typescript", ("server.mjs",))
    checks = Checks([*our_client_short.CHECKS, *our_client_short.RESUMED_CHECKS])
    for title, pinned in (("auto", None), *((each, each) for each in SESSIONS)):
        exchange = ours(title, pinned, pinned or V2026_07_28, checks=checks)
        found.append(exchange._replace(listener="node"))
    plain = our_client_short.PLAIN_CHECKS
    alone = ours("stateless", V2025_11_25, V2025_11_25, checks=plain)
    found.append(alone._replace(server=("server.mjs", "stateless"), listener="node"))
    found += [
        _typescript("legacy", "legacy", V2025_11_25),
        _typescript("auto", "auto", V2026_07_28),
        _typescript("pinned", V2026_07_28, V2026_07_28),
        _typescript("auto>2025", "auto", V2025_06_18, V2025_06_18),
    ]
    ours = partial(_ours, "L", "fastmcp", ("interop.fastmcp_server",), checks=checks)
    for title, pinned in (("auto", None), (V2025_11_25, V2025_11_25)):
        exchange = ours(title, pinned, pinned or V2026_07_28)
        found.append(exchange._replace(listener="python"))
    old = _ours("N", "MCPServer", ("interop.official_server", "sse"), "ours", None, V2025_11_25)
    found.append(old._replace(listener="python"))
    old = _theirs("theirs", "legacy", V2025_11_25, "sse")
    found.append(old._replace(part="N", listener="python"))
    return [*found, _fastmcp("legacy", V2025_11_25), _fastmcp("auto", V2026_07_28)]


def _ports() -> list[Exchange]:
    """Return the conversations of `tests/ports`, in both eras."""
    found = []
    for (server, without), conversations in groups().items():
        checks = official_caller.checks_of(conversations)
        for mode, revision in (("legacy", V2025_11_25), ("auto", V2026_07_28)):

            def opened(
                place: Place, log: TextIO, mode: str = mode, lacks: frozenset[str] = without
            ) -> AbstractAsyncContextManager[Any]:
                return official_caller.opened(place, mode, log, lacks)

            title = " ".join([server, *(f"no {each}" for each in without), mode])
            module = (f"tests.ports.servers.{server}",)
            port = Exchange("O", title, "client", "server", module, opened, checks, revision)
            found.append(port._replace(shared_column=mode))
    return found


def _chatbot(part: str, peer: str, server: str, pinned: str | None) -> Exchange:
    def opened(place: Place, _: TextIO) -> AbstractAsyncContextManager[Any]:
        return our_chatbot.opened(place, pinned, PROBE)

    title = "chatbot" if pinned else "chatbot auto"
    checks, revision = our_chatbot.CHECKS, pinned or V2026_07_28
    return Exchange(part, title, peer, "client", (server,), opened, checks, revision)


def _fastmcp(mode: str, revision: str) -> Exchange:
    def opened(place: Place, _: TextIO) -> AbstractAsyncContextManager[Any]:
        return fastmcp_client.opened(place, mode)

    server, checks = ("interop.our_server",), fastmcp_client.CHECKS
    exchange = Exchange("M", mode, "fastmcp client", "server", server, opened, checks, revision)
    return exchange._replace(listener="python")


def _typescript(title: str, mode: str, revision: str, *offered: str) -> Exchange:
    def opened(place: Place, log: TextIO) -> AbstractAsyncContextManager[Any]:
        return typescript_client.opened(place, mode, log)

    server, checks = ("interop.our_server", *offered), typescript_client.CHECKS
    exchange = Exchange("K", title, "typescript client", "server", server, opened, checks, revision)
    return exchange._replace(listener="python")


def _theirs(
    title: str,
    mode: str,
    revision: str,
    *offered: str,
    checks: Checks = THEIR_CHECKS,
    answers: bool = True,
) -> Exchange:
    def opened(place: Place, log: TextIO) -> AbstractAsyncContextManager[Any]:
        return official_client.opened(place, mode, log, answers=answers)

    server = ("interop.our_server", *offered)
    return Exchange("A", title, "client", "server", server, opened, checks, revision)


def _refused(title: str, offered: str) -> Exchange:
    server = ("interop.our_server", offered)
    checks = official_client.REFUSED_CHECKS
    return Exchange("A", title, "client", "server", server, official_client.refused, checks, "")


def _ours(
    part: str,
    peer: str,
    server: tuple[str, ...],
    title: str,
    pinned: str | None,
    revision: str,
    *,
    probe: float = PROBE,
    checks: Checks = OUR_CHECKS,
    answers: bool = True,
) -> Exchange:
    def opened(place: Place, _: TextIO) -> AbstractAsyncContextManager[Any]:
        return our_client.opened(place, pinned, probe, answers=answers)

    return Exchange(part, title, peer, "client", server, opened, checks, revision)
