"""Accounts of clients: one for all uses, gone after the last, and bytes from the first one on."""

from __future__ import annotations

from trunkline.accounts.account import Accounts
from trunkline.accounts.budget import ByteBudget
from trunkline.accounts.shares import ClientShares

MIB = 1024 * 1024


def accounts(size: int = 64 * MIB, calls: int = 100, **shares: float) -> Accounts:
    return Accounts(calls, size, ClientShares(**shares))


def test_one_account_serves_all_uses_of_a_client() -> None:
    table = accounts()
    first, second, other = table.open("a"), table.open("a"), table.open("b")
    assert first is second
    assert other is not first
    assert len(table) == 2
    first.close()
    assert table.open("a") is first
    first.close()
    second.close()
    assert [each.key for each in table] == ["b"]


def test_account_is_forgotten_once_and_a_client_that_comes_back_has_another() -> None:
    table, forgotten = accounts(), []
    table.on_forget = forgotten.append
    first = table.open("a")
    first.close()
    second = table.open("a")
    assert second is not first
    assert forgotten == [first]
    first.uses += 1
    first.close()  # late: it is not in the table any more
    assert [*table] == [second]


def test_account_lasts_while_it_holds_bytes() -> None:
    table = accounts()
    first = table.open("a")
    first.budget.charge(10)
    first.close()
    assert [*table] == [first]
    assert table.open("a") is first
    first.budget.release(10)
    assert [*table] == [first]
    first.budget.charge(10)
    first.close()
    first.budget.release(10)
    assert len(table) == 0


def test_hundred_thousand_clients_that_came_and_went_leave_nothing() -> None:
    table = accounts()
    for number in range(100_000):
        account = table.open(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
        assert account.receive(1000)
        account.received(1000)
        account.close()
    assert len(table) == 0
    assert table.bytes.used == 0


def test_bytes_being_received_are_an_eighth_of_those_of_the_server_at_most() -> None:
    table = accounts(size=800)
    a = table.open("a")
    assert a.receive(60)
    assert a.receive(40)
    assert not a.receive(1)
    assert (a.receiving, a.budget.used, table.bytes.used) == (100, 0, 100)
    a.received(100)
    assert (a.receiving, a.budget.used, table.bytes.used) == (0, 0, 0)
    assert not a.receive(101)


def test_bytes_being_received_are_refused_when_others_hold_those_of_the_server() -> None:
    table = accounts(size=800)
    others = [table.open(f"other {number}") for number in range(8)]
    for each in others:
        while each.receive(10):
            pass
    assert table.bytes.used <= 800
    newcomer = table.open("newcomer")
    assert newcomer.receive(1)


def test_bytes_of_a_client_count_for_its_tenant_and_the_server() -> None:
    table = accounts(size=800)
    tenant = ByteBudget(50, table.bytes)
    a = table.open("a", tenant)
    assert a.receive(50)
    assert not a.receive(1)
    assert (tenant.used, table.bytes.used) == (50, 50)
    assert not a.budget.has_shared_room(1)


def test_one_message_fits_whatever_its_size_if_a_client_holds_nothing() -> None:
    table = accounts(size=800)
    a, _ = table.open("a"), table.open("b")
    assert a.budget.has_room(700)
    a.budget.charge(10)
    assert a.budget.has_room(390)
    assert not a.budget.has_room(391)


def test_calls_of_a_client_are_its_share() -> None:
    table = accounts(calls=8)
    a = table.open("a")
    while a.admits_call():
        a.calls += 1
        table.calls.used += 1
    assert a.calls == 7
    b = table.open("b")
    assert b.admits_call()
    assert not a.admits_call()
    a.calls, table.calls.used = 3, 3
    assert a.admits_call()
    a.calls, table.calls.used = 4, 4
    assert not a.admits_call()
