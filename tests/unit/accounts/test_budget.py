"""Byte budgets: what is charged to one is charged above."""

from __future__ import annotations

from trunkline.accounts.budget import ByteBudget


def test_charge_to_a_byte_budget_is_charged_to_its_parent() -> None:
    server = ByteBudget(1000)
    one, two = ByteBudget(100, server), ByteBudget(100, server)
    one.charge(70)
    two.charge(50)
    assert (one.used, two.used, server.used) == (70, 50, 120)
    one.release(70)
    assert (one.used, server.used) == (0, 50)
    assert repr(two) == "<ByteBudget 50 of 100 bytes>"
