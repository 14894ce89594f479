"""The servers of connections in this process: one that scripts are done with serves another.

Registering all that the example has takes longer than most scripts do. A server is used again
only if no script has changed what it lists, and after `_AT_REST` others: what a handler of the
last script still does is over by then.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tests.conversation.app import VARIANTS
from tests.conversation.journal import JOURNALS
from trunkline import Server

__all__ = ["for_all_scripts", "forget", "give_back", "server"]

_AT_REST: Final = 4

_unused: defaultdict[str, deque[Server]] = defaultdict(deque)
# What the script that runs has opened connections to, by variant.
_used: list[tuple[str, Server]] = []
_is_for_all: ContextVar[bool] = ContextVar("is_for_all", default=False)


def server(variant: str) -> Server:
    """Return a server that no open connection has."""
    unused = _unused[variant]
    found = unused.popleft() if len(unused) >= _AT_REST else VARIANTS[variant]()
    if found in JOURNALS:
        JOURNALS[found].clear()
        if not _is_for_all.get():
            _used.append((variant, found))
    return found


@contextmanager
def for_all_scripts() -> Iterator[None]:
    """Open connections that outlive the script: their servers are not given back."""
    token = _is_for_all.set(True)
    try:
        yield
    finally:
        _is_for_all.reset(token)


def forget() -> None:
    """Let the servers go whose script did not get as far as closing its connections."""
    _used.clear()


def give_back() -> None:
    """Keep the servers of a script, whose connections are closed, for others."""
    for variant, each in _used:
        if each in JOURNALS:
            _unused[variant].append(each)
    _used.clear()
