"""Pagination: the registered items of one kind, and their encoded pages.

A `PagedList` is a dict with cached pages. A page is encoded on first use, once per revision, and
kept until an item is added or removed; a later request for it is one dict lookup. The `row`
function makes the wire form of an item.

The rules that live here, and only here:

* Items are listed in the order in which they were added.       [MCP 2026-07-28, server/tools]
* A cursor is valid for one state of the list. Position, list and names are signed, so a client
  can neither forge a cursor nor use it after a change. Two processes with the same key and equal
  lists accept each other's cursors.
* Pages of a list that differs between callers are made for one of them, and not kept. A cursor
  names the caller it was issued to, and is invalid for others.
* The last page has no cursor, and an empty cursor is invalid.         [MCP, pagination]
* A page holds so many items or, where it is bounded in bytes, as many as fit, and at least one.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final, Generic, TypeVar

from msgspec import Raw, Struct
from msgspec.json import encode

from ...mcp.shaping import narrow

__all__ = ["InvalidCursor", "PagedList"]

Item = TypeVar("Item")

# Bytes of the position and of the signature, and characters of both in Base64. All cursors have
# this length, so a longer one is rejected before it is decoded.
_POSITION: Final = 8
_SIGNATURE: Final = 16
_CURSOR: Final = 32

# Encoded pages to keep; the oldest is dropped first. 10 000 tools in pages of 50, in all five
# revisions, fit.
MAX_PAGES_KEPT: Final = 1024


class InvalidCursor(ValueError):
    """A cursor that this list did not issue, or issued before it changed."""

    def __init__(self) -> None:
        super().__init__("the cursor was not issued by this list, or the list has changed")


class _Snapshot(Generic[Item]):
    """One state of a list, with the pages that were encoded of it.

    It is replaced as a whole, so a reader sees one state, also while another thread adds items.
    """

    __slots__ = ("_digest", "_names", "caller", "items", "pages")

    def __init__(self, items: dict[str, Item]) -> None:
        self.items = tuple(items.values())
        self._names = tuple(items)
        self._digest: bytes | None = None
        self.pages: dict[tuple[str, str | None, bytes], Raw] = {}
        # Whom the items are shown to; empty if all callers are shown the same.
        self.caller = b""

    @property
    def digest(self) -> bytes:
        """A digest of the names, in order."""
        if self._digest is None:
            self._digest = _digest(self._names)
        return self._digest


class PagedList(Generic[Item]):
    """Items of one kind in the order they were added, and their pages."""

    __slots__ = (
        "_is_fixed",
        "_items",
        "_key",
        "_lock",
        "_member",
        "_row",
        "_size",
        "_snapshot",
        "get",
        "on_change",
    )

    # Returns the item called so, or None; that of the dict, because each call of a tool needs it.
    get: Callable[[str], Item | None]

    def __init__(
        self,
        member: str,
        row: Callable[[Item, str], Struct],
        *,
        page_size: int,
        key: bytes,
        is_fixed: bool = False,
    ) -> None:
        """Make an empty list.

        `member` is the field of the result that holds the items: `tools`. `row` returns the wire
        form of an item; fields that a revision does not have are removed here. `key` signs
        cursors. A size that is fixed holds for pages that could be bounded in bytes too.
        """
        if page_size < 1:
            raise ValueError(f"a page holds at least one item, not {page_size}")
        if not key:
            raise ValueError("cursors cannot be signed with an empty key")
        self._member = member
        self._row = row
        self._size = page_size
        self._is_fixed = is_fixed
        self._key = key
        self._items: dict[str, Item] = {}
        self.get = self._items.get
        self.on_change: Callable[[], object] = lambda: None
        # Handlers on threads add and remove items too.
        self._lock = Lock()
        # Made on first use, and dropped with each change.
        self._snapshot: _Snapshot[Item] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._current().items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def add(self, name: str, item: Item) -> None:
        """Put `item` at the end.

        Raises:
            ValueError: the name is taken; nothing changes.
        """
        with self._lock:
            if name in self._items:
                raise ValueError(f"{self._member}: {name!r} exists already")
            self._items[name] = item
            self._snapshot = None
        self.on_change()

    def remove(self, name: str) -> Item:
        """Remove the item called `name` and return it.

        Raises:
            KeyError: no item has that name; nothing changes.
        """
        with self._lock:
            item = self._items.pop(name)
            self._snapshot = None
        self.on_change()
        return item

    def page(
        self,
        revision: str,
        cursor: str | None,
        *,
        tail: bytes = b"",
        max_bytes: int | None = None,
    ) -> Raw:
        """Return the page at `cursor`, or the first, as the JSON of a result.

        `tail` is JSON to insert behind the items: `,"ttlMs":0`. `max_bytes` bounds the page in
        place of the number of items; it is the same for all pages of a revision.

        Raises:
            InvalidCursor: `cursor` is not valid for this state of the list.
            UnknownRevision: no such revision was released; the text lists the released ones.
        """
        if cursor is not None and len(cursor) != _CURSOR:
            raise InvalidCursor
        now = self._current()
        # The keys hold valid cursors only.
        found = now.pages.get((revision, cursor, tail))
        if found is None:
            return self._encoded(now, revision, cursor, tail, max_bytes)
        return found

    def page_for(
        self,
        caller: bytes,
        shows: Callable[[Item], bool],
        revision: str,
        cursor: str | None,
        *,
        tail: bytes = b"",
        max_bytes: int | None = None,
    ) -> Raw:
        """Return a page of the items that a caller is shown; `caller` tells it from others.

        Raises:
            InvalidCursor: `cursor` is not valid for this caller and this state of its list.
        """
        if cursor is not None and len(cursor) != _CURSOR:
            raise InvalidCursor
        with self._lock:
            items = dict(self._items)
        shown = _Snapshot({name: item for name, item in items.items() if shows(item)})
        shown.caller = caller
        return self._encoded(shown, revision, cursor, tail, max_bytes)

    def _current(self) -> _Snapshot[Item]:
        found = self._snapshot
        if found is None:
            with self._lock:
                found = self._snapshot = _Snapshot(self._items)
        return found

    def _encoded(
        self,
        now: _Snapshot[Item],
        revision: str,
        cursor: str | None,
        tail: bytes,
        max_bytes: int | None,
    ) -> Raw:
        start = 0 if cursor is None else self._position(now, cursor)
        if self._is_fixed:
            max_bytes = None
        last = None if max_bytes is not None else start + self._size
        rows: list[bytes] = []
        size = 0
        for item in now.items[start:last]:
            row = encode(narrow(self._row(item, revision), revision))
            size += len(row) + 1  # the comma
            if max_bytes is not None and rows and size > max_bytes:
                break
            rows.append(row)
        end = start + len(rows)
        more = b',"nextCursor":"%b"' % self._cursor(now, end) if end < len(now.items) else b""
        member = encode(self._member)
        page = Raw(b"{%b:[%b]%b%b}" % (member, b",".join(rows), more, tail))
        if len(now.pages) >= MAX_PAGES_KEPT:
            now.pages.pop(next(iter(now.pages)), None)
        now.pages[revision, cursor, tail] = page
        return page

    # Cursors

    def _position(self, now: _Snapshot[Item], cursor: str) -> int:
        try:
            text = cursor.encode("ascii")
            position = int.from_bytes(urlsafe_b64decode(text)[:_POSITION], "big")
        except ValueError:
            raise InvalidCursor from None
        from hmac import compare_digest

        # Compared as a whole: Base64 has several spellings of the same bytes.
        if not compare_digest(text, self._cursor(now, position)):
            raise InvalidCursor
        return position

    def _cursor(self, now: _Snapshot[Item], position: int) -> bytes:
        # Imported here: most lists have one page and no cursor.
        from hmac import digest

        place = position.to_bytes(_POSITION, "big")
        signed = b"%b\0%b%b%b" % (self._member.encode(), now.digest, place, now.caller)
        signature = digest(self._key, signed, "sha256")[:_SIGNATURE]
        return urlsafe_b64encode(place + signature)


def _digest(names: tuple[str, ...]) -> bytes:
    from hashlib import sha256  # as above

    digest = sha256()
    for name in names:
        text = name.encode("utf-8", "surrogatepass")
        # The length keeps ["ab", "c"] from looking like ["a", "bc"].
        digest.update(b"%d:%b" % (len(text), text))
    return digest.digest()
