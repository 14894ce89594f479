"""Keys of an authorization server: key sets, and their cache.

The rules that live here, and only here:

* A token names its key by `kid` and its algorithm by `alg`; the key has both, or it is not the
  key. A key without `kid` serves every `kid`.        [RFC 7517, section 4.5; RFC 8725, section 3.1]
* A key set is bounded in bytes and keys; keys that are not public keys for signatures are left
  out.
* One fetch runs at a time, and every caller waits for that one.
* An unknown `kid` asks for the keys again, a bounded number of times: tokens with `kid`s of a
  stranger's choice do not make the server send requests.
* When a fetch fails, the keys from before stay in use, up to a bound, and the next attempt waits.
* Metadata counts only if its `issuer` is the one that it was asked for.  [RFC 8414, section 3.3]
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from ....concurrency.backoff import backoff
from ....errors import TransportError
from ...jose import ALGORITHMS, InvalidKey, PublicKey, parse_object
from .credential import VerifierUnavailable

if TYPE_CHECKING:
    import ssl

__all__ = ["InvalidKeySet", "KeySet", "KeySource", "RemoteKeys", "StaticKeys"]

_log: Final = logging.getLogger("trunkline.auth")

# Of a key set: those of large providers have ten keys, and 20 KiB with their certificates.
MAX_KEY_SET_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 100
# Keys that are tried for one token, if several have its `kid`, or it has none.
MAX_CANDIDATES: Final = 4
# Of a `kid`, in characters.
_MAX_KEY_ID: Final = 256

# Keys are fetched again after MAX_AGE_S, and used for MAX_STALE_S if that fails: an outage of the
# authorization server does not refuse the tokens it has issued.
MAX_AGE_S: Final = 600.0
MAX_STALE_S: Final = 24 * 3600.0
TIMEOUT_S: Final = 5.0
# Fetches for unknown `kid`s: so many at once, then one per interval.
UNKNOWN_KEY_BURST: Final = 4
UNKNOWN_KEY_INTERVAL_S: Final = 30.0
# Between failed fetches.
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 30.0


class InvalidKeySet(ValueError):
    """A key set that cannot be used; the text says why, and shows nothing of it."""


class KeySet:
    """Public keys, found by `kid` and algorithm."""

    __slots__ = ("_by_algorithm", "_by_key_id", "_nameless", "size")

    def __init__(self, keys: Iterable[PublicKey], algorithms: Iterable[str] = ALGORITHMS) -> None:
        allowed = frozenset(algorithms)
        by_key_id: dict[tuple[str, str], list[PublicKey]] = {}
        by_algorithm: dict[str, list[PublicKey]] = {}
        nameless: dict[str, list[PublicKey]] = {}
        self.size = 0
        for key in keys:
            self.size += 1
            for algorithm in allowed.intersection(key.algorithms):
                by_algorithm.setdefault(algorithm, []).append(key)
                if key.key_id is None:
                    nameless.setdefault(algorithm, []).append(key)
                else:
                    by_key_id.setdefault((key.key_id, algorithm), []).append(key)
        self._by_key_id = {name: _bounded(found) for name, found in by_key_id.items()}
        self._nameless = {name: _bounded(found) for name, found in nameless.items()}
        # Without a `kid` all keys are candidates. More of them than are tried is an ambiguity
        # that is not resolved by trying some.
        self._by_algorithm = {
            name: tuple(found) if len(found) <= MAX_CANDIDATES else ()
            for name, found in by_algorithm.items()
        }

    def __repr__(self) -> str:
        return f"<KeySet of {self.size} keys>"

    @classmethod
    def parse(cls, document: bytes, algorithms: Iterable[str] = ALGORITHMS) -> KeySet:
        """Read a JSON document with a member `keys`.

        Raises:
            InvalidKeySet: it is something else, is too large, or has no key that can be used.
        """
        if len(document) > MAX_KEY_SET_BYTES:
            raise InvalidKeySet(f"the key set has more than {MAX_KEY_SET_BYTES} bytes")
        try:
            found = parse_object(document)
        except ValueError:
            raise InvalidKeySet("the key set is not a JSON object") from None
        return cls.of_jwks(found, algorithms)

    @classmethod
    def of_jwks(cls, document: Mapping[str, Any], algorithms: Iterable[str] = ALGORITHMS) -> KeySet:
        """Take a decoded key set; raises as `parse` does."""
        members = document.get("keys")
        if not isinstance(members, list):
            raise InvalidKeySet("the key set has no list of keys")
        if len(members) > MAX_KEYS:
            raise InvalidKeySet(f"the key set has more than {MAX_KEYS} keys")
        keys = [key for each in members if (key := _usable(each)) is not None]
        if not keys:
            raise InvalidKeySet("the key set has no public key that can be used")
        return cls(keys, algorithms)

    def find(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        """Return the keys that a token may have been signed with, most often one."""
        if key_id is None:
            return self._by_algorithm.get(algorithm, ())
        found = self._by_key_id.get((key_id, algorithm))
        return found if found is not None else self._nameless.get(algorithm, ())


def _usable(member: object) -> PublicKey | None:
    if not isinstance(member, dict):
        return None
    if member.get("kty") != "oct" and "d" in member:
        _log.warning("a key set publishes a private key; tokens signed with it are refused")
        return None
    key_id = member.get("kid")
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > _MAX_KEY_ID):
        return None
    try:
        return PublicKey(member)
    except InvalidKey:
        return None  # of another use or type


def _bounded(keys: list[PublicKey]) -> tuple[PublicKey, ...]:
    return tuple(keys[:MAX_CANDIDATES])


class KeySource(Protocol):
    """Where a verifier has its keys from."""

    def find(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...] | None:
        """Return the keys for a token, or None if `fetch` has to be awaited first."""

    def fetch(self, key_id: str | None, algorithm: str) -> Awaitable[tuple[PublicKey, ...]]:
        """Return the keys for a token after the keys were fetched, if that is permitted now.

        Raises:
            VerifierUnavailable: there are no keys, and none can be fetched.
        """


class StaticKeys:
    """Keys of the configuration, which are never fetched."""

    __slots__ = ("_set",)

    def __init__(self, keys: KeySet) -> None:
        self._set = keys

    def find(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        """Return the keys for a token."""
        return self._set.find(key_id, algorithm)

    async def fetch(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        """Return the keys for a token."""
        return self._set.find(key_id, algorithm)


class RemoteKeys:
    """The keys that an authorization server publishes, with a cache.

    `jwks_uri` is read from the metadata of the issuer unless it is given. `clock` returns the
    seconds of a monotonic clock.
    """

    def __init__(
        self,
        issuer: str,
        *,
        jwks_uri: str | None = None,
        algorithms: Iterable[str] = ALGORITHMS,
        max_age: float = MAX_AGE_S,
        max_stale: float = MAX_STALE_S,
        allow_private: bool = True,
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._given_uri = jwks_uri
        self._uri = jwks_uri
        self._algorithms = tuple(algorithms)
        self._max_age = max_age
        self._max_stale = max(max_stale, max_age)
        self._allow_private = allow_private
        self._tls = tls
        self._timeout = timeout
        self._clock = clock
        self._set = KeySet(())
        # Until when the keys are used without a fetch, and used at all.
        self._fresh_until = self._usable_until = float("-inf")
        # After a failure, when the next fetch may begin, and the delay after that.
        self._retry_at = float("-inf")
        self._delays = backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        # The bucket of fetches for unknown keys: when it will be full again.
        self._full_at = float("-inf")
        self._running: asyncio.Task[None] | None = None
        self._failure = "the keys were not fetched yet"

    def __repr__(self) -> str:
        return f"<RemoteKeys, {self._set.size} keys>"

    def find(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...] | None:
        """Return the keys for a token, or None if `fetch` has to be awaited first."""
        now = self._clock()
        if now >= self._fresh_until:
            return None
        found = self._set.find(key_id, algorithm)
        if found or algorithm not in self._algorithms or not self._may_ask_for_unknown(now):
            return found
        return None

    async def fetch(self, key_id: str | None, algorithm: str) -> tuple[PublicKey, ...]:
        """Return the keys for a token, after the keys were fetched if that is permitted now.

        Raises:
            VerifierUnavailable: there are no keys, and none can be fetched.
        """
        if self.find(key_id, algorithm) is None:
            await self._refresh()
        now = self._clock()
        if now >= self._usable_until:
            wait = max(self._retry_at - now, _FIRST_RETRY_S)
            raise VerifierUnavailable(self._failure, retry_after=wait)
        return self._set.find(key_id, algorithm)

    def _may_ask_for_unknown(self, now: float) -> bool:
        tolerance = (UNKNOWN_KEY_BURST - 1) * UNKNOWN_KEY_INTERVAL_S
        return self._full_at - now <= tolerance and now >= self._retry_at

    async def _refresh(self) -> None:
        running = self._running
        # A fetch of an event loop that has ended will never be done.
        if running is None or running.get_loop() is not asyncio.get_running_loop():
            now = self._clock()
            if now < self._retry_at:
                return
            if now < self._fresh_until:  # for an unknown key
                self._full_at = max(self._full_at, now) + UNKNOWN_KEY_INTERVAL_S
            running = self._running = asyncio.create_task(self._fetch_keys())
        # A caller that is cancelled leaves the fetch to the others.
        await asyncio.shield(running)

    async def _fetch_keys(self) -> None:
        try:
            found = await self._download()
        except (TransportError, InvalidKeySet) as error:
            self._fail(str(error))
        else:
            now = self._clock()
            self._set = found
            self._fresh_until = now + self._max_age
            self._usable_until = now + self._max_stale
            self._delays = backoff(_FIRST_RETRY_S, _LONGEST_RETRY_S)
        finally:
            if self._running is asyncio.current_task():
                self._running = None

    def _fail(self, reason: str) -> None:
        # What the metadata said may have changed.
        self._uri = self._given_uri
        now = self._clock()
        self._retry_at = now + next(self._delays)
        self._failure = f"keys of {self.issuer} cannot be fetched: {reason}"
        left = self._usable_until - now
        if left > 0:
            self._fresh_until = min(max(self._fresh_until, self._retry_at), self._usable_until)
            _log.warning("%s; those from before are used for %d s at most", self._failure, left)
        else:
            _log.error("%s; tokens cannot be verified", self._failure)

    async def _download(self) -> KeySet:
        from .issuer import get_json, read_metadata

        if self._uri is None:
            found = await read_metadata(
                self.issuer, allow_private=self._allow_private, tls=self._tls, timeout=self._timeout
            )
            if found.jwks_uri is None:
                raise InvalidKeySet("the metadata names no keys")
            self._uri = found.jwks_uri
        document = await get_json(
            self._uri,
            allow_private=self._allow_private,
            tls=self._tls,
            timeout=self._timeout,
            max_bytes=MAX_KEY_SET_BYTES,
        )
        return KeySet.parse(document, self._algorithms)
