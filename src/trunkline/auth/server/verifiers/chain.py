"""Several verifiers: the first that recognises a credential decides.

The rules that live here, and only here:

* A verifier that refuses a credential ends the chain: no later one can accept it.
* Verifiers are asked in the order that they are given, and those after a decision are not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING

from ...principal import Principal
from .credential import verify_offline

if TYPE_CHECKING:
    from .credential import Credential, Verifier

__all__ = ["Chain"]


class Chain:
    """Asks verifiers in order.

    Raises:
        ValueError: there are none.
    """

    def __init__(self, verifiers: Iterable[Verifier]) -> None:
        self.verifiers = tuple(verifiers)
        if not self.verifiers:
            raise ValueError("a chain of verifiers has at least one")
        self.schemes = _joined(each.schemes for each in self.verifiers)
        self.authorization_servers = _joined(each.authorization_servers for each in self.verifiers)
        self.scopes_supported = _joined(each.scopes_supported for each in self.verifiers)
        self.dpop_algorithms = _joined(each.dpop_algorithms for each in self.verifiers)

    def verify(self, credential: Credential) -> Principal | Awaitable[Principal | None] | None:
        """Return what the first verifier returns that recognises a credential.

        Raises:
            InvalidCredential: that verifier refuses it.
            VerifierUnavailable: a verifier cannot decide, and might have recognised it.
        """
        for place, verifier in enumerate(self.verifiers):
            found = verifier.verify(credential)
            if found is None or isinstance(found, Principal):
                if found is not None:
                    return found
            else:
                return self._go_on(found, place + 1, credential)
        return None

    def verify_offline(self, credential: Credential) -> Principal | None:
        """Return what the first verifier returns that recognises a credential.

        Raises:
            InvalidCredential: that verifier refuses it.
            VerifierUnavailable: a verifier that is asked before needs the network.
        """
        for verifier in self.verifiers:
            found = verify_offline(verifier, credential)
            if found is not None:
                return found
        return None

    async def _go_on(
        self, waiting: Awaitable[Principal | None], place: int, credential: Credential
    ) -> Principal | None:
        found = await waiting
        for verifier in self.verifiers[place:]:
            if found is not None:
                break
            result = verifier.verify(credential)
            found = result if result is None or isinstance(result, Principal) else await result
        return found


def _joined(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for part in parts for each in part))
