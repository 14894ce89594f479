"""What a server offers of one kind, in order, and the pages in which a client reads it.

A `PagedList` is a dict that keeps its pages. A page is encoded when it is first asked for,
once per revision, and kept until something is added or removed; after that asking is a dict
hit. What an item looks like on the wire is the business of the `row` that is handed in.

The rules that live here, and only here:

* Items are listed in the order in which they were added.       [MCP 2026-07-28, server/tools]
* A cursor is good for the list that gave it out, as it was. It is signed: its position, the
  list and the names in it, so a client can neither make one nor use one after a change, and
  equal lists in two processes with one key take each other's.
* The last page has no cursor, and no page answers to an empty one.    [MCP, pagination]
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

# Eight bytes of position and sixteen of signature, which nobody guesses, in Base64. All
# cursors are as long as this, so a longer one is refused before it is looked at.
_POSITION: Final = 8
_SIGNATURE: Final = 16
_CURSOR: Final = 32

# How many encoded pages are kept. Clients read pages one after the other, so what they ask for
# next is rarely the oldest; 10 000 tools in pages of 50, in all five revisions, fit.
MAX_PAGES_KEPT: Final = 1024


class InvalidCursor(ValueError):
    """A cursor that this list did not give out, or gave out before it changed."""

    def __init__(self) -> None:
        super().__init__("the cursor is not one that this list gave out, or the list has changed")


def _nobody() -> None:
    """Hear of a change, and do nothing."""


class _Snapshot(Generic[Item]):
    """A list as it is between two changes: in order, with the pages that were asked for.

    It is replaced as a whole, so whoever reads one reads one list, also while another thread
    adds to it.
    """

    __slots__ = ("_digest", "_names", "items", "pages")

    def __init__(self, items: dict[str, Item]) -> None:
        self.items = tuple(items.values())
        self._names = tuple(items)
        self._digest: bytes | None = None
        self.pages: dict[tuple[str, str | None, bytes], Raw] = {}

    @property
    def digest(self) -> bytes:
        """What is the same for equal lists alone."""
        if self._digest is None:
            self._digest = _digest(self._names)
        return self._digest


class PagedList(Generic[Item]):
    """Things of one kind in the order they were registered, and their pages."""

    __slots__ = ("_items", "_key", "_lock", "_member", "_row", "_size", "_snapshot", "on_change")

    def __init__(
        self, member: str, row: Callable[[Item, str], Struct], *, page_size: int, key: bytes
    ) -> None:
        """Make an empty one.

        `member` is where the result of a list has its items: `tools`. `row` gives the wire form
        of an item in a revision; it is narrowed here. `key` signs cursors.
        """
        if page_size < 1:
            raise ValueError(f"a page holds at least one item, not {page_size}")
        if not key:
            raise ValueError("cursors cannot be signed with an empty key")
        self._member = member
        self._row = row
        self._size = page_size
        self._key = key
        self._items: dict[str, Item] = {}
        self.on_change: Callable[[], object] = _nobody
        # Handlers on threads add and remove, too.
        self._lock = Lock()
        # Made when it is asked for, and dropped with every change.
        self._snapshot: _Snapshot[Item] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._current().items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def get(self, name: str) -> Item | None:
        """Return the item called `name`, or None."""
        return self._items.get(name)

    def add(self, name: str, item: Item) -> None:
        """Put `item` at the end.

        Raises:
            ValueError: there is one of this name already; nothing changes.
        """
        with self._lock:
            if name in self._items:
                raise ValueError(f"{self._member}: there already is one called {name!r}")
            self._items[name] = item
            self._snapshot = None
        self.on_change()

    def remove(self, name: str) -> Item:
        """Take the item called `name` out and return it.

        Raises:
            KeyError: there is none; nothing changes.
        """
        with self._lock:
            item = self._items.pop(name)
            self._snapshot = None
        self.on_change()
        return item

    def page(self, revision: str, cursor: str | None, *, tail: bytes = b"") -> Raw:
        """Return the page at `cursor`, or the first, as the JSON of a result.

        `tail` is put into the object behind the items: `,"ttlMs":0`.

        Raises:
            InvalidCursor: `cursor` is not of this list as it is now.
            UnknownRevision: no such revision was released; the text lists those there are.
        """
        if cursor is not None and len(cursor) != _CURSOR:
            raise InvalidCursor
        now = self._current()
        # Only cursors that were found good are in there.
        found = now.pages.get((revision, cursor, tail))
        return self._encoded(now, revision, cursor, tail) if found is None else found

    def _current(self) -> _Snapshot[Item]:
        found = self._snapshot
        if found is None:
            with self._lock:
                found = self._snapshot = _Snapshot(self._items)
        return found

    def _encoded(self, now: _Snapshot[Item], revision: str, cursor: str | None, tail: bytes) -> Raw:
        start = 0 if cursor is None else self._position(now, cursor)
        end = start + self._size
        rows = [
            encode(narrow(self._row(item, revision), revision)) for item in now.items[start:end]
        ]
        more = b',"nextCursor":"%b"' % self._cursor(now, end) if end < len(now.items) else b""
        member = encode(self._member)
        page = Raw(b"{%b:[%b]%b%b}" % (member, b",".join(rows), more, tail))
        if len(now.pages) >= MAX_PAGES_KEPT:
            now.pages.pop(next(iter(now.pages)), None)
        now.pages[revision, cursor, tail] = page
        return page

    # Cursors

    def _position(self, now: _Snapshot[Item], cursor: str) -> int:
        """Return where the page at `cursor` begins.

        Raises:
            InvalidCursor: we did not give it out for the list as it is now.
        """
        try:
            told = cursor.encode("ascii")
            position = int.from_bytes(urlsafe_b64decode(told)[:_POSITION], "big")
        except ValueError:
            raise InvalidCursor from None
        from hmac import compare_digest

        # Compared as a whole, since Base64 can be written in more ways than one.
        if not compare_digest(told, self._cursor(now, position)):
            raise InvalidCursor
        return position

    def _cursor(self, now: _Snapshot[Item], position: int) -> bytes:
        # Imported here: most lists have one page, and no cursor.
        from hmac import digest

        place = position.to_bytes(_POSITION, "big")
        signed = b"%b\0%b%b" % (self._member.encode(), now.digest, place)
        signature = digest(self._key, signed, "sha256")[:_SIGNATURE]
        return urlsafe_b64encode(place + signature)


def _digest(names: tuple[str, ...]) -> bytes:
    """Return what is the same for equal names in equal order, and for no others."""
    from hashlib import sha256  # as above

    digest = sha256()
    for name in names:
        told = name.encode("utf-8", "surrogatepass")
        # The length keeps ["ab", "c"] from looking like ["a", "bc"].
        digest.update(b"%d:%b" % (len(told), told))
    return digest.digest()
