"""Shares of clients: half while there are others, a part of what is free, what is taken back."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from trunkline.accounts.account import Account, Accounts
from trunkline.accounts.shares import ClientShares, Holdings, SharedLimit


def filled(limit: SharedLimit, held: int = 0) -> int:
    """Take all that a client can get; return how many it has then."""
    while limit.admits(held):
        held += 1
        limit.used += 1
    return held


def shared(limit: int, clients: int, **shares: float) -> SharedLimit:
    return SharedLimit(limit, ClientShares(**shares), range(clients))


# What cannot be taken back


@pytest.mark.parametrize(
    ("limit", "most"), [(10_000, 8750), (64, 56), (8, 7), (4, 3), (2, 1), (1, 1)]
)
def test_client_alone_has_seven_eighths_of_a_limit(limit: int, most: int) -> None:
    assert filled(shared(limit, clients=1)) == most


@pytest.mark.parametrize(("limit", "most"), [(10_000, 5000), (64, 32), (8, 4), (2, 1), (1, 1)])
def test_client_has_half_of_a_limit_while_there_are_others(limit: int, most: int) -> None:
    assert filled(shared(limit, clients=2)) == most


@pytest.mark.parametrize("before", [0, 8750])
def test_newcomer_finds_room_however_many_clients_take_what_they_can_get(before: int) -> None:
    limit = shared(10_000, clients=9)
    limit.used = before
    taken = [filled(limit) for _ in range(3 if before else 6)]
    assert all(taken)
    assert max(taken) <= 5000
    assert limit.admits(0)


def test_client_with_nothing_is_admitted_until_the_limit_is_reached() -> None:
    limit = shared(3, clients=9)
    for _ in range(3):
        assert limit.admits(0)
        limit.used += 1
    assert not limit.admits(0)


def test_sizes_are_admitted_by_the_same_rule() -> None:
    limit = shared(800, clients=1)
    assert limit.admits(0, 800)
    assert not limit.admits(0, 801)
    assert limit.admits(100, 600)
    limit.used = 100
    assert limit.admits(100, 600)
    assert not limit.admits(100, 601)


def test_shares_are_settings() -> None:
    assert filled(shared(100, clients=1, alone=1.0)) == 100
    assert filled(shared(100, clients=1, alone=0.5)) == 50
    assert filled(shared(100, clients=2, together=0.25)) == 25


@pytest.mark.parametrize("name", ["together", "alone", "receiving"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "half", None, True, float("nan")])
def test_share_that_is_not_a_fraction_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"ClientShares.{name} is a fraction up to 1"):
        ClientShares(**{name: value})  # type: ignore[arg-type]  # what is tested


def test_few_things_need_no_question() -> None:
    assert (shared(10_000, 1).few, shared(640, 1).few, shared(63, 1).few) == (16, 10, 0)


# What can be taken back


class Clients:
    """Accounts, and connections of one limit that they hold."""

    def __init__(self, limit: int) -> None:
        self._accounts = Accounts(100, 1000)
        self.held: Holdings[str] = Holdings(limit, self._accounts.shares)

    def account(self, key: str, *, is_many: bool = False) -> Account:
        return self._accounts.open(key, is_many=is_many)

    def takes(self, account: Account, holder: Account) -> tuple[bool, bool]:
        """Return whether an idle thing, and a busy one, is taken back of a holder."""
        may_take = self.held.may_take
        return may_take(account, holder, is_idle=True), may_take(account, holder, is_idle=False)

    def fill(self, account: Account) -> int:
        """Take all that an account can get without taking anything back."""
        count = 0
        while self.held.has_room(account):
            count += 1
            self.held.add(account, f"{account.key} {count}")
        return count


def test_client_alone_has_all_that_can_be_taken_back() -> None:
    clients = Clients(10)
    assert clients.fill(clients.account("a")) == 10


def test_client_has_half_of_what_can_be_taken_back_while_others_hold_some() -> None:
    clients = Clients(10)
    a, b = map(clients.account, "ab")
    clients.held.add(b, "b 1")
    assert clients.fill(a) == 5
    # It gives of its own for more, and only what is idle.
    assert clients.takes(a, a) == (True, False)
    assert clients.takes(a, b) == (False, False)
    clients.held.discard(b, "b 1")
    assert clients.held.has_room(a)


def test_what_is_taken_back_is_of_the_client_that_has_most() -> None:
    clients = Clients(10)
    a, b, c, d = map(clients.account, "abcd")
    clients.fill(a)
    assert clients.takes(b, a) == (True, True)
    for _ in range(4):
        clients.held.discard(a, next(clients.held.of(a)))
    assert clients.fill(b) == 4
    assert clients.held.largest() == [a]
    assert clients.takes(c, a) == (True, True)
    assert clients.takes(c, b) == (False, False)
    for number in range(3):
        clients.held.discard(a, next(clients.held.of(a)))
        clients.held.add(c, f"c {number}")
    # Three, four and three.
    assert clients.held.largest() == [b]
    assert clients.takes(d, b) == (True, True)
    assert clients.takes(d, a) == (False, False)


def test_idle_one_of_a_client_with_as_many_is_taken_back_and_a_busy_one_is_not() -> None:
    clients = Clients(2)
    a, b, c = map(clients.account, "abc")
    clients.held.add(a, "a 1")
    clients.held.add(b, "b 1")
    assert set(clients.held.largest()) == {a, b}
    assert clients.takes(c, a) == (True, False)
    # One more of its own would be more than the other has.
    assert clients.takes(a, b) == (False, False)
    assert clients.takes(a, a) == (True, False)


def test_of_a_proxy_only_what_is_idle_is_taken_back() -> None:
    clients = Clients(10)
    proxy, a, b = clients.account("proxy", is_many=True), *map(clients.account, "ab")
    clients.held.add(a, "a 1")
    assert clients.fill(proxy) == 9
    assert clients.held.largest() == [a]
    assert clients.takes(b, proxy) == (True, False)
    assert clients.takes(proxy, proxy) == (True, False)
    assert clients.takes(proxy, a) == (False, False)


def test_largest_are_known_whatever_comes_and_goes() -> None:
    clients, chance = Clients(1000), random.Random(1)
    accounts = [clients.account(str(number)) for number in range(5)]
    things: list[tuple[Account, str]] = []
    for number in range(2000):
        if things and chance.random() < 0.5:
            clients.held.discard(*things.pop(chance.randrange(len(things))))
        else:
            things.append((chance.choice(accounts), str(number)))
            clients.held.add(*things[-1])
        counts = Counter(account for account, _ in things)
        most = max(counts.values(), default=0)
        assert set(clients.held.largest()) == {each for each in counts if counts[each] == most}
        assert len(clients.held) == len(things)


def test_what_was_used_last_is_last() -> None:
    clients = Clients(10)
    a = clients.account("a")
    for name in "xyz":
        clients.held.add(a, name)
    clients.held.add(a, "x")
    assert [*clients.held.of(a)] == ["x", "y", "z"]
    clients.held.touch(a, "x")
    assert [*clients.held.of(a)] == ["y", "z", "x"]


def test_account_that_holds_nothing_leaves_nothing() -> None:
    clients = Clients(10)
    a = clients.account("a")
    clients.held.add(a, "x")
    assert clients.held.discard(a, "x")
    assert not clients.held.discard(a, "x")
    assert len(clients.held) == 0
    assert repr(clients.held) == "<Holdings 0 of 10, 0 clients>"
