"""Chains of verifiers: the first that recognises a credential decides."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.event_loop import on_a_loop
from tests.unit.auth.tokens import bearer
from trunkline.auth import (
    Chain,
    Credential,
    InvalidCredential,
    Principal,
    VerifierUnavailable,
)

ANN = Principal(subject="ann")
REFUSED = InvalidCredential("refused")
UNAVAILABLE = VerifierUnavailable("down")


class Fake:
    """A verifier with one answer, with or without an awaitable."""

    scopes_supported = ("a", "b")
    dpop_algorithms = ("ES256",)

    def __init__(self, answer: Any, *, waits: bool, scheme: str = "bearer") -> None:
        self.answer = answer
        self.waits = waits
        self.asked = 0
        self.schemes = (scheme,)
        self.authorization_servers = (f"https://{scheme}",)

    def verify(self, credential: Credential) -> Principal | Awaitable[Principal | None] | None:
        self.asked += 1
        return self._later() if self.waits else self._now()

    def _now(self) -> Principal | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]  # a principal or None

    async def _later(self) -> Principal | None:
        return self._now()


@for_each(
    ("answers", "outcome", "asked"),
    [
        ([ANN], ANN, 1),
        ([None, ANN], ANN, 2),
        ([ANN, REFUSED], ANN, 1),
        ([None, None], None, 2),
        ([REFUSED, ANN], REFUSED, 1),
        ([None, REFUSED, ANN], REFUSED, 2),
        ([UNAVAILABLE, ANN], UNAVAILABLE, 1),
    ],
)
@on_a_loop
async def test_the_first_that_recognises_decides(
    answers: list[Any], outcome: Any, asked: int
) -> None:
    # Each verifier with and without an awaitable, in all combinations.
    for mask in range(2 ** len(answers)):
        fakes = [Fake(each, waits=bool(mask >> at & 1)) for at, each in enumerate(answers)]
        found: Any
        try:
            found = Chain(fakes).verify(bearer("x"))
            if found is not None and not isinstance(found, Principal):
                found = await found
        except (InvalidCredential, VerifierUnavailable) as error:
            found = error
        assert found is outcome
        assert sum(each.asked for each in fakes) == asked


def test_a_result_at_hand_is_returned_without_an_awaitable() -> None:
    chain = Chain([Fake(None, waits=False), Fake(ANN, waits=False), Fake(None, waits=True)])
    assert chain.verify(bearer("x")) is ANN


def test_a_chain_says_what_all_its_verifiers_say() -> None:
    chain = Chain([Fake(None, waits=False), Fake(None, waits=False, scheme="dpop")])
    assert chain.schemes == ("bearer", "dpop")
    assert chain.authorization_servers == ("https://bearer", "https://dpop")
    assert chain.scopes_supported == ("a", "b")
    assert chain.dpop_algorithms == ("ES256",)


def test_an_empty_chain_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Chain([])
