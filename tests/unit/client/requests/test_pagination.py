"""Lists that come in pages: where they end, and when to stop."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.scripted import run
from trunkline.client.requests.pagination import ListLimits, Page, read_all
from trunkline.errors import PeerError, RemoteProtocolError, RequestTimeout


class Server:
    """Pages without end, each of which takes its time by a clock of its own."""

    def __init__(
        self, takes: float = 0.0, items: int = 1, size: int = 1, last: int = 10**6
    ) -> None:
        self.now = 0.0
        self.asked: list[tuple[str | None, float]] = []
        self.restarts = 0
        self._takes, self._items, self._size, self._last = takes, items, size, last

    async def get(self, cursor: str | None, left: float) -> Page:
        self.asked.append((cursor, left))
        if self._takes > left:
            self.now += left
            raise RequestTimeout("a page took too long")
        self.now += self._takes
        number = int(cursor or 0) + 1
        poller: Any = None if number == self._last else str(number)
        return Page(["x"] * self._items, poller, self._size)

    def restart(self) -> None:
        self.restarts += 1

    def read(self, seconds: float = 100.0, **limits: int) -> list[Any]:
        work = read_all(
            "l", self.get, self.restart, seconds, lambda: self.now, ListLimits(**limits)
        )
        return run(work)


def test_all_pages_share_one_time() -> None:
    server = Server(takes=3.0)
    with pytest.raises(RequestTimeout, match="the list did not end within 10 s"):
        server.read(seconds=10.0)
    assert [left for _, left in server.asked] == [10.0, 7.0, 4.0, 1.0]
    assert len(Server(takes=3.0, last=3).read(seconds=10.0)) == 3


def test_a_page_that_alone_took_too_long_says_so() -> None:
    class Slow(Server):
        async def get(self, cursor: str | None, left: float) -> Page:
            raise RequestTimeout("no answer within 1 s")

    with pytest.raises(RequestTimeout, match="no answer within 1 s"):
        Slow().read()


@pytest.mark.parametrize("limits", [{"pages": 5}, {"items": 10}, {"size": 50}])
def test_a_list_has_bounds(limits: dict[str, int]) -> None:
    server = Server(items=2, size=10)
    with pytest.raises(RemoteProtocolError, match=r"mcp\.pagination\.end") as caught:
        server.read(**limits)
    assert str(next(iter(limits.values()))) in caught.value.expected
    assert len(server.asked) <= 6
    # What lies just within is a list.
    assert len(Server(items=2, size=10, last=5).read(**limits)) == 10


def test_a_list_that_goes_on_changing_is_given_up() -> None:
    class Changing(Server):
        async def get(self, cursor: str | None, left: float) -> Page:
            if cursor is not None:
                raise PeerError(-32602, "Invalid cursor", kind="INVALID_PARAMS")
            return await super().get(cursor, left)

    server = Changing()
    with pytest.raises(PeerError):
        server.read()
    assert server.restarts == 1
    assert len(server.asked) == 2
