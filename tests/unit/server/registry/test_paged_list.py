"""Pages of what a server offers: in order, encoded once, and reached only by our own cursors."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Raw

from trunkline.mcp.types import Prompt, Tool
from trunkline.server.registry import paged_list
from trunkline.server.registry.paged_list import InvalidCursor, PagedList
from trunkline.spec.revisions import LATEST, REVISIONS, V2024_11_05
from trunkline.spec.types import UnknownRevision

KEY = b"a key of the tests"


def tool_of(name: str, revision: str) -> Tool:
    return Tool({"type": "object"}, name, title=name.upper())


def listed(
    count: int = 0, *, member: str = "tools", page_size: int = 2, key: bytes = KEY, first: int = 0
) -> PagedList[str]:
    made = PagedList(member, tool_of, page_size=page_size, key=key)
    for number in range(first, first + count):
        made.add(f"t{number}", f"t{number}")
    return made


def read(page: Raw) -> Any:
    return json.loads(bytes(page))


def walk(made: PagedList[str], revision: str = LATEST) -> Iterator[Any]:
    cursor = None
    while True:
        page = read(made.page(revision, cursor))
        yield page
        if "nextCursor" not in page:
            return
        cursor = page["nextCursor"]


# Items


def test_paged_list_keeps_items_in_order_of_addition() -> None:
    made = listed(3)
    assert len(made) == 3
    assert list(made) == ["t0", "t1", "t2"]
    assert "t1" in made
    assert made.get("t1") == "t1"
    assert "t9" not in made
    assert made.get("t9") is None


def test_a_name_is_taken_once() -> None:
    made = listed(1)
    with pytest.raises(ValueError, match="tools: 't0' exists already"):
        made.add("t0", "another")
    assert made.get("t0") == "t0"
    assert len(made) == 1


def test_remove_returns_the_item_and_deletes_it() -> None:
    made = listed(2)
    assert made.remove("t0") == "t0"
    assert list(made) == ["t1"]
    with pytest.raises(KeyError):
        made.remove("t0")


def test_on_change_is_called_after_each_change() -> None:
    made = listed()
    seen: list[int] = []
    made.on_change = lambda: seen.append(len(made))
    made.add("a", "a")
    made.add("b", "b")
    made.remove("a")
    with pytest.raises(ValueError, match="already"):
        made.add("b", "b")
    with pytest.raises(KeyError):
        made.remove("a")
    made.page(LATEST, None)
    assert seen == [1, 2, 1]


@pytest.mark.parametrize("page_size", [0, -1])
def test_a_page_holds_at_least_one_item(page_size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        listed(page_size=page_size)


def test_a_key_is_needed() -> None:
    with pytest.raises(ValueError, match="empty key"):
        listed(key=b"")


# Pages


def test_an_empty_list_is_one_empty_page() -> None:
    assert bytes(listed().page(LATEST, None)) == b'{"tools":[]}'


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 11])
def test_the_pages_hold_every_item_once(count: int) -> None:
    made = listed(count)
    pages = list(walk(made))
    assert len(pages) == -(-count // 2)
    assert [tool["name"] for page in pages for tool in page["tools"]] == list(made)


def test_an_item_is_written_as_the_revision_has_it() -> None:
    made = listed(1)
    old, new = (read(made.page(each, None))["tools"][0] for each in (V2024_11_05, LATEST))
    assert new == {"inputSchema": {"type": "object"}, "name": "t0", "title": "T0"}
    assert old == {"inputSchema": {"type": "object"}, "name": "t0"}


def test_row_function_receives_the_revision() -> None:
    asked: list[str] = []

    def row(item: str, revision: str) -> Prompt:
        asked.append(revision)
        return Prompt(item)

    made = PagedList("prompts", row, page_size=5, key=KEY)
    made.add("a", "a")
    for revision in REVISIONS:
        assert read(made.page(revision, None)) == {"prompts": [{"name": "a"}]}
    assert asked == list(REVISIONS)


def test_tail_of_the_result_follows_the_items() -> None:
    made = listed(3)
    found = read(made.page(LATEST, None, tail=b',"ttlMs":0,"_meta":{"a":1}'))
    assert list(found) == ["tools", "nextCursor", "ttlMs", "_meta"]
    assert "ttlMs" not in read(made.page(LATEST, None))


def test_a_page_is_encoded_once_until_something_changes() -> None:
    rows = 0

    def row(item: str, revision: str) -> Tool:
        nonlocal rows
        rows += 1
        return tool_of(item, revision)

    made = PagedList("tools", row, page_size=2, key=KEY)
    for name in "abc":
        made.add(name, name)
    first = made.page(LATEST, None)
    cursor = read(first)["nextCursor"]
    second = made.page(LATEST, cursor)
    assert made.page(LATEST, None) is first
    assert made.page(LATEST, cursor) is second
    assert rows == 3
    made.add("d", "d")
    assert made.page(LATEST, None) is not first
    assert rows == 5


def test_pages_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_list, "MAX_PAGES_KEPT", 3)
    made = listed(1)
    pages = [made.page(LATEST, None, tail=b',"n":%d' % n) for n in range(5)]
    assert made.page(LATEST, None, tail=b',"n":4') is pages[4]
    assert made.page(LATEST, None, tail=b',"n":0') is not pages[0]
    assert bytes(made.page(LATEST, None, tail=b',"n":0')) == bytes(pages[0])


def test_a_row_that_fails_leaves_nothing_behind() -> None:
    def row(item: str, revision: str) -> Tool:
        if item == "bad":
            raise RuntimeError(item)
        return tool_of(item, revision)

    made = PagedList("tools", row, page_size=2, key=KEY)
    made.add("bad", "bad")
    with pytest.raises(RuntimeError):
        made.page(LATEST, None)
    made.remove("bad")
    made.add("good", "good")
    assert [tool["name"] for tool in read(made.page(LATEST, None))["tools"]] == ["good"]


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(UnknownRevision):
        listed(1).page("2020-01-01", None)


def test_ten_thousand_items_are_added_without_making_a_page() -> None:
    asked = 0

    def row(item: int, revision: str) -> Tool:
        nonlocal asked
        asked += 1
        return tool_of(str(item), revision)

    made = PagedList("tools", row, page_size=50, key=KEY)
    for number in range(10_000):
        made.add(str(number), number)
    assert asked == 0
    made.page(LATEST, None)
    # A page costs what is on it, not what is in the list.
    assert asked == 50


# Cursors


def next_cursor(made: PagedList[str]) -> str:
    cursor = read(made.page(LATEST, None))["nextCursor"]
    assert isinstance(cursor, str)
    return cursor


def test_a_cursor_is_plain_text_and_always_the_same() -> None:
    cursor = next_cursor(listed(3))
    assert cursor == next_cursor(listed(3))
    assert cursor.replace("-", "a").replace("_", "a").isalnum()


def test_equal_lists_with_one_key_take_each_others_cursors() -> None:
    assert read(listed(3).page(LATEST, next_cursor(listed(3))))["tools"][0]["name"] == "t2"
    # However many items the other puts on a page.
    other = listed(3, page_size=1)
    assert read(listed(3).page(LATEST, next_cursor(other)))["tools"][0]["name"] == "t1"


def test_a_cursor_serves_every_revision() -> None:
    made = listed(3)
    cursor = next_cursor(made)
    for revision in REVISIONS:
        assert read(made.page(revision, cursor))["tools"][0]["name"] == "t2"


@pytest.mark.parametrize(
    "other",
    [
        listed(3, member="prompts"),
        listed(3, key=b"another key"),
        listed(3, first=1),
        listed(4),
    ],
    ids=["another list", "another key", "other names", "more names"],
)
def test_a_cursor_of_another_list_is_refused(other: PagedList[str]) -> None:
    with pytest.raises(InvalidCursor):
        listed(3).page(LATEST, next_cursor(other))


def test_cursor_distinguishes_lists_whose_joined_names_are_equal() -> None:
    one, two = listed(), listed()
    for made, names in ((one, ("ab", "c", "d")), (two, ("a", "bc", "d"))):
        for name in names:
            made.add(name, name)
    with pytest.raises(InvalidCursor):
        one.page(LATEST, next_cursor(two))


def test_a_cursor_from_before_a_change_is_refused() -> None:
    made = listed(3)
    cursor = next_cursor(made)
    made.page(LATEST, cursor)
    made.add("new", "new")
    with pytest.raises(InvalidCursor):
        made.page(LATEST, cursor)
    made.remove("new")
    # The list is again what it was.
    assert read(made.page(LATEST, cursor))["tools"][0]["name"] == "t2"


def test_one_changed_character_is_refused() -> None:
    made = listed(5)
    cursor = next_cursor(made)
    made.page(LATEST, cursor)
    for at, old in enumerate(cursor):
        new = "A" if old != "A" else "B"
        with pytest.raises(InvalidCursor):
            made.page(LATEST, cursor[:at] + new + cursor[at + 1 :])


@pytest.mark.parametrize("position", [0, 1, 3, 4, 2**40])
def test_a_position_is_not_exchanged_under_a_signature(position: int) -> None:
    made = listed(5)
    told = base64.urlsafe_b64decode(next_cursor(made))
    forged = base64.urlsafe_b64encode(position.to_bytes(8, "big") + told[8:]).decode()
    with pytest.raises(InvalidCursor):
        made.page(LATEST, forged)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "0",
        " ",
        "A" * 32,
        "=" * 32,
        "é" * 32,
        "\ud800" * 32,
        "\0" * 32,
        "+/" * 16,
        "A" * 31,
        "A" * 33,
        "x" * 10_000_000,
    ],
    ids=lambda text: f"{text[:4]!a}x{len(text)}",
)
def test_malformed_cursor_is_refused(cursor: str) -> None:
    made = listed(5)
    with pytest.raises(InvalidCursor, match="not issued by this list"):
        made.page(LATEST, cursor)
    # And is not remembered.
    with pytest.raises(InvalidCursor):
        made.page(LATEST, cursor)


def test_space_around_a_cursor_is_refused() -> None:
    made = listed(5)
    cursor = next_cursor(made)
    for other in (f"{cursor}\n", f" {cursor}", cursor[:-1] + "\n", cursor.swapcase()):
        with pytest.raises(InvalidCursor):
            made.page(LATEST, other)


def test_names_may_be_any_text() -> None:
    made = listed()
    for name in ("ü", "\ud800", "", '"', "\n"):
        made.add(name, "x")
    assert len(list(walk(made))) == 3


# -- pages in bytes --------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 150, 1000, 10**6])
def test_a_page_in_bytes_has_as_many_items_as_fit_and_at_least_one(most: int) -> None:
    made = listed(40)
    found, cursor, pages = [], None, []
    while True:
        raw = made.page(V2024_11_05, cursor, max_bytes=most)
        page = read(raw)
        pages.append(raw)
        found += [tool["name"] for tool in page["tools"]]
        if (cursor := page.get("nextCursor")) is None:
            break
        assert len(page["tools"]) == 1 or len(bytes(raw)) <= most + 100
    assert found == [tool["name"] for tool in all_tools(made)]
    assert len(pages) == {1: 40, 10**6: 1}.get(most, len(pages))
    assert made.page(V2024_11_05, None, max_bytes=most) is pages[0]


def all_tools(made: PagedList[Any]) -> list[Any]:
    return read(made.page(LATEST, None, max_bytes=10**9))["tools"]  # type: ignore[no-any-return]  # of a test
