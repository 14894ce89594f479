"""Guards applied to requests of any protocol: what is seen, and what is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from trunkline.auth import Principal
from trunkline.auth.scopes import ImpliedScopes
from trunkline.engine.access.decisions import (
    AccessRefused,
    arguments_of,
    check_allow,
    check_allow_without_arguments,
    check_scopes,
    is_listed,
    is_visible,
)
from trunkline.engine.access.guard import Guard, guard_of

pytestmark = pytest.mark.anyio

READ, WRITE = "read", "write"


class Access:
    """The policy of a server: scopes that grant others, hidden entries, entries of tenants."""

    def __init__(self, *, hide_unscoped: bool = False, lacking: tuple[str, ...] = ()) -> None:
        self.hide_unscoped = hide_unscoped
        self.implied_scopes = ImpliedScopes({"admin": [READ, WRITE]})
        self._lacking = lacking

    def offers_to_tenant(self, entry: Any, tenant: str | None) -> bool:
        return entry.name not in self._lacking or tenant is None


class Request:
    """A request of no protocol, which counts the contexts that are made for it."""

    def __init__(self, principal: Principal | None = None, access: Access | None = None) -> None:
        self.principal = principal
        self.access = access or Access()
        self.context: Any = None
        self.made = 0

    @property
    def tenant(self) -> str | None:
        return None if self.principal is None else self.principal.tenant

    def make_context(self) -> None:
        self.made += 1
        self.context = SimpleNamespace(principal=self.principal)


def entry(guard: Guard | None, *names: str) -> Any:
    return SimpleNamespace(name="thing", guard=guard, arguments=SimpleNamespace(names=names))


def guarded(*scopes: str, allow: Any = None, visible: Any = None, names: Any = ("n",)) -> Any:
    return entry(guard_of(scopes, allow, visible, names), *(names or ()))


def caller(*scopes: str, tenant: str | None = None) -> Principal:
    return Principal(subject="ann", scopes=frozenset(scopes), tenant=tenant)


def test_a_refusal_names_all_scopes_and_those_that_are_missing() -> None:
    guard = Guard(frozenset((READ, WRITE)))
    request: Any = Request(caller(READ))
    with pytest.raises(AccessRefused) as refused:
        check_scopes(guard, request)
    assert refused.value.kind == "INSUFFICIENT_PERMISSIONS"
    assert refused.value.data == {"requiredScopes": [READ, WRITE], "missingScopes": [WRITE]}
    anonymous: Any = Request()
    with pytest.raises(AccessRefused) as refused:
        check_scopes(guard, anonymous)
    assert refused.value.kind == "UNAUTHORIZED"
    assert refused.value.data["missingScopes"] == [READ, WRITE]


def test_a_scope_that_implies_the_needed_ones_suffices() -> None:
    request: Any = Request(caller("admin"))
    check_scopes(Guard(frozenset((READ, WRITE))), request)


@pytest.mark.parametrize("hide_unscoped", [False, True])
def test_an_entry_that_lacks_only_scopes_is_listed_unless_the_policy_hides_it(
    hide_unscoped: bool,
) -> None:
    access, found = Access(hide_unscoped=hide_unscoped), guarded(READ)
    lacking: Any = Request(caller(), access)
    anonymous: Any = Request(None, access)
    holding: Any = Request(caller("admin"), access)
    assert [is_listed(found, each) for each in (lacking, anonymous, holding)] == [
        not hide_unscoped,
        not hide_unscoped,
        True,
    ]
    assert is_visible(found, lacking)


def test_an_entry_that_is_not_offered_to_the_tenant_is_neither_listed_nor_visible() -> None:
    request: Any = Request(caller(tenant="acme"), Access(lacking=("thing",)))
    assert not is_visible(entry(None), request)
    assert not is_listed(entry(None), request)
    without_tenant: Any = Request(caller(), request.access)
    assert is_listed(entry(None), without_tenant)


def test_visible_gets_the_context_of_the_request_which_is_made_once() -> None:
    found = guarded(visible=lambda context: context.principal is not None)
    request: Any = Request(caller())
    assert is_visible(found, request)
    assert is_visible(found, request)
    assert request.made == 1
    anonymous: Any = Request()
    assert not is_visible(found, anonymous)


def test_a_visible_that_raises_hides_the_entry_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(context: Any) -> bool:
        raise LookupError("broken")

    request: Any = Request(caller())
    with caplog.at_level(logging.ERROR, "trunkline.server"):
        assert not is_visible(guarded(visible=broken), request)
    assert "visible= of 'thing' failed, access is refused" in caplog.text


def _raises(error: Exception) -> Callable[[Any], bool]:
    def allow(context: Any) -> bool:
        raise error

    return allow


async def _waits(context: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("allow", "is_logged"),
    [
        (lambda _: False, False),
        (_waits, False),
        (_raises(PermissionError("no")), False),
        (_raises(LookupError("broken")), True),
    ],
    ids=["false", "awaited", "permission error", "broken"],
)
async def test_what_allow_does_not_allow_is_refused(
    allow: Any, is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    request: Any = Request(caller())
    with (
        caplog.at_level(logging.ERROR, "trunkline.server"),
        pytest.raises(AccessRefused),
    ):
        await check_allow(guarded(allow=allow), {"n": 1}, request)
    assert bool(caplog.records) is is_logged


async def test_allow_without_arguments_leaves_out_functions_that_need_them() -> None:
    request: Any = Request(caller())
    found = guarded(allow=lambda _, n: n > 1)
    await check_allow(found, {"n": 2}, request)
    await check_allow_without_arguments(found, request)
    with pytest.raises(AccessRefused):
        await check_allow(found, {"n": 1}, request)
    with pytest.raises(AccessRefused):
        await check_allow_without_arguments(guarded(allow=lambda _: False), request)


def test_arguments_have_the_names_of_the_author() -> None:
    class Values(msgspec.Struct):
        a0: int
        a1: str

    assert arguments_of(entry(None, "class", "n"), Values(1, "x")) == {"class": 1, "n": "x"}
    assert arguments_of(entry(None), {"free": 1}) == {"free": 1}
    assert arguments_of(entry(None), None) == {}
