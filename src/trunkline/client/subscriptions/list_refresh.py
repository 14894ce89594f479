"""Fetches a list of the server again when it has changed, for `on_list_refreshed`.

The rules that live here, and only here:

* All changes that are known when a list is fetched are covered by it: a server that sends many
  notifications causes one fetch at a time, and one more for those that came meanwhile.
* A change of the resources may be one of their templates: both are fetched. A server without
  templates has no list of them.
* A list that cannot be fetched is logged, and fetched after the next change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from ...errors import PeerError
from ...spec.error_kinds import ErrorKind

__all__ = ["FetchList", "ListRefresh"]

FetchList: TypeAlias = Callable[[], Awaitable[list[Any]]]


class ListRefresh:
    """The callback of `list_changed` notifications that fetches lists, and passes them on."""

    __slots__ = ("_callback", "_changes", "_covered", "_lists")

    def __init__(
        self,
        lists: Mapping[str, Mapping[str, FetchList]],
        callback: Callable[[str, list[Any]], object],
    ) -> None:
        # By the name of a notification: what to fetch, by the name that the callback gets.
        self._lists = lists
        self._callback = callback
        # By the name of a notification: how many came, and how many of them were covered.
        self._changes = dict.fromkeys(lists, 0)
        self._covered = dict.fromkeys(lists, 0)

    def __call__(self, kind: str) -> Awaitable[None]:
        """Return what fetches a list, to be awaited when the callbacks before it have ended."""
        self._changes[kind] += 1
        return self._refresh(kind, self._changes[kind])

    async def _refresh(self, kind: str, change: int) -> None:
        if change <= self._covered[kind]:
            return
        self._covered[kind] = self._changes[kind]
        for name, fetch in self._lists[kind].items():
            try:
                entries = await fetch()
            except PeerError as error:
                if error.kind == ErrorKind.METHOD_NOT_FOUND:
                    continue
                raise
            given = self._callback(name, entries)
            if isawaitable(given):
                await given
