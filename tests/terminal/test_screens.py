"""Every screen of the verbs that use a server or look something up, as a user sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Terminal

    Start = Callable[..., Terminal]


def test_the_list_of_a_server(on_screen: Start, address: str) -> None:
    run = on_screen("list", address)
    assert run.wait() == 0
    run.assert_usable()
    run.assert_screen("list")
