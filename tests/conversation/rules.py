"""Which rule a script is about, and in which revisions it is therefore played.

    @rule("BP-038", "K-70")
    async def test_ping_is_answered(rig: Rig) -> None: ...

An id is that of a numbered statement (BP-038), of a requirement (mcp.progress.grows), of a
rule of the message layer (jsonrpc.batch.empty) or of a row of docs/parity.toml (K-61). A
misspelt one fails when the script is collected. A script is played in every revision in
which one of its statements holds, and one without statements in all; `since` and `until`
narrow that, as a `Window` does.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from trunkline.spec.jsonrpc import RULES
from trunkline.spec.requirements import Requirement, requirement, requirements
from trunkline.spec.revisions import REVISIONS, V2024_11_05, Window

ROOT: Final = Path(__file__).resolve().parents[2]

# Transports whose connection is the session, from its first byte on. Over Streamable HTTP there is
# none before `initialize`, and no message before it can be part of one.
CONNECTED: Final = ("memory", "stdio", "tcp", "unix", "old-sse", "websocket")
STREAMABLE: Final = ("http", "asgi")
# Transports over which several clients of a script talk to one server.
SHARED: Final = ("memory", "http", "asgi", "old-sse", "websocket")

F = TypeVar("F", bound=Callable[..., Any])


class Ruled(NamedTuple):
    """What a script was marked with."""

    ids: tuple[str, ...]
    revisions: tuple[str, ...]
    # Whether it wants a connection of its own: where that is costly, it is played in the
    # newest of its revisions alone.
    is_fresh: bool
    # The transports that it is about, by name; all of them if it names none.
    over: tuple[str, ...]
    # The findings of the judge that it provokes, and those that it may provoke: a judge that
    # sees only the wire cannot know what a faulty message was meant to be.
    provokes: frozenset[str]
    may_provoke: frozenset[str]


def rule(
    *ids: str,
    since: str = V2024_11_05,
    until: str | None = None,
    fresh: bool = False,
    over: tuple[str, ...] = (),
    provokes: tuple[str, ...] = (),
    may_provoke: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Mark a script with the rules that it is about."""
    if not ids:
        raise LookupError("a script is about a rule: name it")
    windows = [window for each in ids for window in windows_of(each)] or [Window(V2024_11_05)]
    own = Window(since, until)
    played = tuple(
        revision
        for revision in REVISIONS
        if own.holds(revision) and any(window.holds(revision) for window in windows)
    )
    if not played:
        raise LookupError(f"no revision has {', '.join(ids)} between {since} and {until}")

    def mark(script: F) -> F:
        ruled = Ruled(ids, played, fresh, over, frozenset(provokes), frozenset(may_provoke))
        script.ruled = ruled  # type: ignore[attr-defined]
        return script

    return mark


def windows_of(id: str) -> list[Window]:
    """Return when a rule holds; nothing for one that does not say.

    Raises:
        LookupError: there is no such rule.
    """
    if id.startswith("jsonrpc."):
        if id not in RULES:
            raise LookupError(f"no rule {id!r} of the message layer")
        return []
    if id.startswith("mcp."):
        return [requirement(id).when]
    if id.startswith(("BP-", "SEC-")):
        return [row.when for row in statements(id)]
    if id not in parity_ids():
        raise LookupError(f"no row {id!r} in docs/parity.toml")
    return []


def statements(ref: str) -> tuple[Requirement, ...]:
    return requirements(ref=ref)


@cache
def parity_ids() -> frozenset[str]:
    document = tomllib.loads((ROOT / "docs" / "parity.toml").read_text(encoding="utf-8"))
    return frozenset(row["id"] for row in document["rows"])
