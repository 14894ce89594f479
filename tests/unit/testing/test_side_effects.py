"""What a handler leaves behind, found and counted."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from tests.unit.testing.scenes import differs
from trunkline import Context, Server
from trunkline.testing import (
    run_in_both_eras_sync,
)


def test_effects_inside_once_pass() -> None:
    app = Server("tests")
    orders: list[str] = []
    bank = Mock()

    @app.tool
    async def order(context: Context) -> str:
        await context.once("order", lambda: orders.append("new") or len(orders))
        answer = await context.elicit("Pay?", bool)
        await context.once("pay", lambda: bank.charge(5) and None)
        more = await context.elicit("Receipt?", bool)
        return f"{answer.content} {more.content}"

    both = run_in_both_eras_sync(app, "order", None, [True, False], effects=bank)
    assert both.result.text == "True False"
    assert orders == ["new"] * 2
    assert bank.charge.call_count == 2


TOTAL = 0
GLOBALS: list[str] = []


def remember(what: str) -> None:
    GLOBALS.append(what)


class Shop:
    """Handlers that are methods, and state that is a member."""

    sales = 0

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.stock = {"shoes": 9}

    def note(self) -> None:
        remember("x")

    async def buy(self, context: Context) -> str:
        self.orders.append("shoes")
        self.stock["shoes"] -= 1
        return (await context.elicit("Sure?", bool)).action


def test_repeated_append_is_reported_with_counts_and_advice() -> None:
    app = Server("tests")
    orders: list[str] = []

    @app.tool
    async def order(context: Context) -> str:
        orders.append("new order")
        return (await context.elicit("Sure?", bool)).action

    report_text = differs(app, "order", None, [True])
    assert report_text == (
        "'order' behaves differently in the two eras.\n"
        "\n"
        "It did more in 2026-07-28 than in 2025-11-25:\n"
        "  orders: 2 items in 2026-07-28, 1 in 2025-11-25: 'new order', 'new order'\n"
        "Code before a question runs again with the answers. Put what must happen once into\n"
        "`await context.once(key, ...)`."
    )


@pytest.mark.parametrize(
    "effect",
    [
        "append",
        "both sides of the ask",
        "nonlocal",
        "global",
        "through a function",
        "dict",
        "member of a dict",
        "counter",
        "set",
        "mock",
        "async mock",
        "count",
        "class",
        "object",
        "float",
        "queue",
        "file",
        "list in a dict",
        "through a method",
    ],
)
def test_every_sort_of_effect_is_found(effect: str) -> None:
    import io

    app = Server("tests")
    log: list[str] = []
    table: dict[Any, Any] = {"n": 5}
    tables: dict[str, list[str]] = {"orders": []}
    counter: Counter[str] = Counter()
    known: set[float] = set()
    mock, waited = Mock(), AsyncMock()
    numbers = itertools.count()
    shop, queue, file = Shop(), asyncio.Queue[int](), io.StringIO()
    calls = 0
    spent = 0.0

    async def act() -> None:
        nonlocal calls, spent
        global TOTAL  # what this test is about
        match effect:
            case "append" | "both sides of the ask":
                log.append("x")
            case "nonlocal":
                calls += 1
            case "global":
                TOTAL += 1
            case "through a function":
                remember("x")
            case "dict":
                table[object()] = "order"
            case "member of a dict":
                table["n"] -= 1
            case "counter":
                counter["x"] += 1
            case "set":
                known.add(next(numbers))
            case "mock":
                mock.charge(5)
            case "async mock":
                await waited(5)
            case "count":
                next(numbers)
            case "class":
                Shop.sales += 1
            case "object":
                shop.orders.append("x")
            case "float":
                spent += 9.99
            case "queue":
                queue.put_nowait(1)
            case "file":
                file.write("line\n")
            case "list in a dict":
                tables["orders"].append("x")
            case "through a method":
                shop.note()

    @app.tool
    async def tool(context: Context) -> str:
        await act()
        action = (await context.elicit("Sure?", bool)).action
        if effect == "both sides of the ask":
            await act()
        return action

    report_text = differs(app, "tool", None, [True])
    assert "It did more in 2026-07-28" in report_text
    assert "once(key, ...)" in report_text

    @app.tool
    async def careful(context: Context) -> str:
        await context.once("act", act)
        return (await context.elicit("Sure?", bool)).action

    assert run_in_both_eras_sync(app, "careful", None, [True]).result.text == "accept"


def test_the_object_of_a_method_is_looked_at() -> None:
    app = Server("tests")
    shop = Shop()
    app.tool("buy")(shop.buy)
    report_text = differs(app, "buy", None, [True])
    assert "self.orders: 2 items" in report_text
    assert "self.stock['shoes']: 2" in report_text


def test_effect_hidden_from_inspection_is_found_through_the_effects_option() -> None:
    app = Server("tests")
    rows: list[str] = []

    class Database:
        """Whose state no look reaches."""

        __slots__ = ()

        def insert(self) -> None:
            hidden["tables"]["rows"].append("x")

        def count(self) -> int:
            return len(hidden["tables"]["rows"])

    hidden = {"tables": {"rows": rows}}
    database = Database()

    @app.tool
    async def insert(context: Context) -> str:
        database.insert()
        return (await context.elicit("Sure?", bool)).action

    run_in_both_eras_sync(app, "insert", None, [True])
    for effects in (rows, database.count, (Mock(), rows), (lambda: list(rows),)):
        report_text = differs(app, "insert", None, [True], effects=effects)
        assert "2026-07-28" in report_text
        assert "effects[" in report_text


def test_several_effects_in_a_list_are_refused_because_a_list_is_one() -> None:
    app = Server("tests")
    app.add_tool(lambda: "", "nothing")
    with pytest.raises(TypeError, match="a tuple"):
        run_in_both_eras_sync(app, "nothing", effects=[Mock(), Mock()])
    with pytest.raises(TypeError, match="is not a number, container or mock"):
        run_in_both_eras_sync(app, "nothing", effects=lambda: object())


def test_ignored_effect_may_be_repeated() -> None:
    app = Server("tests")
    looked_up: list[str] = []

    @app.tool
    async def look(context: Context) -> str:
        looked_up.append("x")
        return (await context.elicit("Sure?", bool)).action

    assert run_in_both_eras_sync(app, "look", None, [True], ignore=["looked_up"]).rounds == 2


def test_cache_entries_and_clock_values_are_not_repeated_effects() -> None:
    import time

    app = Server("tests")
    cache: dict[str, str] = {}
    last = time.time()

    @app.tool
    async def cached(context: Context) -> str:
        nonlocal last
        last = time.time()
        cache["key"] = "value"
        return (await context.elicit("Sure?", bool)).action

    assert run_in_both_eras_sync(app, "cached", None, [True]).result.text == "accept"


def test_the_state_of_the_server_is_looked_at() -> None:
    @asynccontextmanager
    async def lifespan(app: Server) -> Any:
        yield {"orders": [], "bank": Mock()}

    for made in (lambda: Server("tests", lifespan=lifespan), None):
        app = Server("tests", lifespan=lifespan)

        def make(app: Server = app, made: Any = made) -> Server:
            found = made() if made is not None else app

            async def order(context: Context) -> str:
                context.state["orders"].append("shoes")
                context.state["bank"].charge(5)
                return (await context.elicit("Sure?", bool)).action

            found.add_tool(order, "order")
            return found

        report_text = differs(make() if made is None else make, "order", None, [True])
        assert "context.state['orders']: 2 items" in report_text
        assert "context.state['bank']: 2 calls" in report_text
