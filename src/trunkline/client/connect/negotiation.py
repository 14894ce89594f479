"""Version negotiation: finds the era and the revision of a server, and opens the session.

A server has one of two eras, or both: the handshake, which begins with `initialize`, or the
per-request era, in which `server/discover` returns its revisions and capabilities.

The rules that live here, and only here:

* The first request is `server/discover`. A result, or an error code that only the per-request era
  has, means that era; any other error means the handshake.
                                    [MCP 2026-07-28, basic/transports/stdio]
* An unsupported version is answered with a version of the error's list, once; without a common
  one in this era, with the handshake.                [MCP 2026-07-28, basic/versioning]
* If there is no reply within `probe_timeout`, `initialize` is sent too, and the first reply
  counts. The same applies in reverse to a server whose remembered era was the handshake. The time
  in which the client obtains a credential does not count.
* A server that requires authorization has told nothing of its era: the attempt ends.
* The version in the result of `initialize` must be one that the client supports.
                                                      [MCP 2025-11-25, basic/lifecycle]
* `initialize` is never cancelled.        [MCP 2025-11-25, basic/utilities/cancellation]
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from msgspec import Raw, ValidationError, convert, field

from ...errors import PeerError, RemoteProtocolError
from ...jsonrpc.messages import shown_tuple
from ...jsonrpc.peer.outgoing import Pending
from ...mcp.meta import SERVER_INFO, request_meta
from ...mcp.shaping import narrow
from ...mcp.types import (
    ClientCapabilities,
    Implementation,
    InitializeRequestParams,
    InitializeResult,
    ServerCapabilities,
    Wire,
)
from ...spec.error_kinds import ErrorKind
from ...spec.profiles import profile
from ...spec.revisions import HANDSHAKE, LATEST, NEWEST_HANDSHAKE, PER_REQUEST, REVISIONS
from ..session.decode import read
from ..session.session import Era, NegotiatedSession, Session

__all__ = ["ClientHello", "negotiate", "per_request_meta"]


class ClientHello(NamedTuple):
    """What a client sends to open a session, and the revisions it accepts."""

    # The only accepted revision, or None for any.
    pinned: str | None
    info: Implementation
    # The capabilities to declare, by revision.
    declared: Callable[[str], ClientCapabilities]
    # Seconds before the request of the other era is sent too.
    probe_timeout: float

    def __repr__(self) -> str:
        return shown_tuple(self)

    @property
    def revisions(self) -> tuple[str, ...]:
        """The accepted revisions."""
        return REVISIONS if self.pinned is None else (self.pinned,)


class _Discovered(Wire, frozen=True):
    """The members of a result of `server/discover` that negotiation uses."""

    supported_versions: list[str]
    capabilities: ServerCapabilities = ServerCapabilities()
    instructions: str | None = None
    result_type: str = "complete"
    meta: dict[str, Any] | None = field(default=None, name="_meta")


async def negotiate(session: Session, hello: ClientHello, remembered: Era | None) -> bytes | None:
    """Negotiate a revision; return the result of `server/discover` in the per-request era.

    Raises:
        RemoteProtocolError: both sides have no revision in common.
        PeerError: the server rejected the request.
        ConnectionLost: the connection was lost.
        AuthorizationFailed: the server requires a credential that the client does not have.
    """
    pinned = hello.pinned
    if pinned is not None and HANDSHAKE.holds(pinned):
        await _shake_hands(session, hello, pinned)
        return None
    if pinned is not None:
        asked = _ask(session, hello, pinned)
        await asyncio.wait([asked.waiter])
        return await _follow(session, hello, asked)
    if remembered == "handshake":
        return await _shake_hands_again(session, hello)
    return await _probe(session, hello)


def per_request_meta(hello: ClientHello, revision: str) -> Mapping[str, Any]:
    """Return the `_meta` of every request of the per-request era, with wire names."""
    return request_meta(revision, hello.info, hello.declared(revision))


# -- the per-request era ---------------------------------------------------------------------


def _ask(session: Session, hello: ClientHello, revision: str) -> Pending:
    params = {"_meta": per_request_meta(hello, revision)}
    return session.probe("server/discover", params)


async def _probe(session: Session, hello: ClientHello) -> bytes | None:
    asked = _ask(session, hello, LATEST)
    if await session.wait_for_reply(asked, hello.probe_timeout):
        return await _follow(session, hello, asked)
    return await _race(session, hello, asked)


async def _shake_hands_again(session: Session, hello: ClientHello) -> bytes | None:
    """Open a session with a server whose remembered era is the handshake."""
    opened = _introduce(session, hello, NEWEST_HANDSHAKE)
    if not await session.wait_for_reply(opened, hello.probe_timeout):
        return await _race(session, hello, _ask(session, hello, LATEST), opened)
    try:
        _conclude(session, hello, opened.waiter.result(), NEWEST_HANDSHAKE)
    except (PeerError, RemoteProtocolError):
        return await _probe(session, hello)  # the server has changed
    return None


async def _race(
    session: Session, hello: ClientHello, asked: Pending, opened: Pending | None = None
) -> bytes | None:
    """Wait for the replies to both requests; the first conclusive one counts."""
    if opened is None:
        opened = _introduce(session, hello, NEWEST_HANDSHAKE)
    waiting: set[asyncio.Future[Any]] = {asked.waiter, opened.waiter}
    refusal: PeerError | None = None
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if asked.waiter in done:
            found = _discovered(asked)
            negotiated = _decided(found, hello)
            if negotiated is not None:
                session.forget(opened)
                return _settle(session, negotiated, asked)
        if opened.waiter in done:
            try:
                raw = opened.waiter.result()
            except PeerError as error:
                refusal = error
            else:
                session.forget(asked)
                _conclude(session, hello, raw, NEWEST_HANDSHAKE)
                return None
    if refusal is None:
        _no_common(hello, ())
    raise refusal


async def _follow(
    session: Session, hello: ClientHello, asked: Pending, *, is_again: bool = False
) -> bytes | None:
    """Continue with the reply to `server/discover`; `is_again` if it was sent twice."""
    found = _discovered(asked)
    negotiated = _decided(found, hello)
    if negotiated is not None:
        return _settle(session, negotiated, asked)
    if isinstance(found, _Discovered):
        await _fall_back(session, hello, found.supported_versions)
    elif _modern_kind(found) == ErrorKind.UNSUPPORTED_PROTOCOL_VERSION:
        supported = _supported(found)
        best = _best(supported, hello)
        if best and not is_again:
            asked = _ask(session, hello, best)
            await asyncio.wait([asked.waiter])
            return await _follow(session, hello, asked, is_again=True)
        await _fall_back(session, hello, supported)
    elif hello.pinned is not None:
        raise found
    else:
        await _shake_hands(session, hello, NEWEST_HANDSHAKE)
    return None


def _discovered(asked: Pending) -> _Discovered | PeerError | RemoteProtocolError:
    """Return the decoded result, or its error; a lost connection raises."""
    try:
        raw: Raw = asked.waiter.result()
    except (PeerError, RemoteProtocolError) as error:
        return error
    try:
        found: _Discovered = read(raw, _Discovered, "server/discover", LATEST)
    except RemoteProtocolError:
        # Some servers return an empty result for any unknown method.
        return RemoteProtocolError(
            "mcp.version.discover-fields", expected="a result of server/discover"
        )
    return found


def _decided(
    found: _Discovered | PeerError | RemoteProtocolError, hello: ClientHello
) -> NegotiatedSession | None:
    """Return the negotiated session of the per-request era, or None if there is none."""
    if isinstance(found, _Discovered):
        revision = _best(found.supported_versions, hello)
        if not revision:
            return None
        return NegotiatedSession(
            revision,
            "per_request",
            _server_info(found.meta),
            found.capabilities,
            found.instructions or None,
            found,
            per_request_meta(hello, revision),
        )
    if _modern_kind(found) in (None, ErrorKind.UNSUPPORTED_PROTOCOL_VERSION):
        return None
    # A server of this era that rejects `server/discover`: capabilities stay unknown.
    revision = hello.pinned or LATEST
    return NegotiatedSession(revision, "per_request", meta=per_request_meta(hello, revision))


def _settle(session: Session, negotiated: NegotiatedSession, asked: Pending) -> bytes | None:
    """Use the negotiated session; return the result of `server/discover`, if there was one."""
    session.use(negotiated)
    return None if negotiated.opening is None else bytes(asked.waiter.result())


def _best(supported: Iterable[str], hello: ClientHello) -> str:
    """Return the newest common revision of the per-request era, or an empty string."""
    common = set(supported).intersection(hello.revisions)
    return max(filter(PER_REQUEST.holds, common), default="")


async def _fall_back(session: Session, hello: ClientHello, supported: Iterable[str]) -> None:
    """Use the newest common handshake revision of a server of both eras."""
    common = set(supported).intersection(hello.revisions)
    best = max(filter(HANDSHAKE.holds, common), default="")
    if not best:
        _no_common(hello, supported)
    await _shake_hands(session, hello, best)


def _no_common(hello: ClientHello, supported: Iterable[str]) -> NoReturn:
    raise RemoteProtocolError(
        "mcp.version.none-reported",
        got=", ".join(sorted(supported)) or "no version at all",
        expected=f"a server that speaks {' or '.join(reversed(hello.revisions))}",
    )


def _modern_kind(error: PeerError | RemoteProtocolError) -> str | None:
    """Return the kind of an error that only the per-request era has, or None."""
    if isinstance(error, RemoteProtocolError):
        return None
    codes = profile("mcp")
    for kind in (
        ErrorKind.UNSUPPORTED_PROTOCOL_VERSION,
        ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY,
        ErrorKind.HEADER_MISMATCH,
    ):
        if codes.number(kind, LATEST) == error.code:
            return kind
    return None


def _supported(error: PeerError | RemoteProtocolError) -> list[str]:
    """Return the supported versions in the data of an error."""
    data = getattr(error, "data", None)
    supported = data.get("supported") if isinstance(data, dict) else None
    return [each for each in supported if type(each) is str] if type(supported) is list else []


def _server_info(meta: Any) -> Implementation | None:
    """Return name and version of the server, for display; None if invalid."""
    try:
        return convert(meta.get(SERVER_INFO), Implementation) if type(meta) is dict else None
    except ValidationError:
        return None


# -- the handshake era -----------------------------------------------------------------------


async def _shake_hands(session: Session, hello: ClientHello, revision: str) -> None:
    opened = _introduce(session, hello, revision)
    await asyncio.wait([opened.waiter])
    _conclude(session, hello, opened.waiter.result(), revision)


def _introduce(session: Session, hello: ClientHello, revision: str) -> Pending:
    info = narrow(hello.info, revision)
    params = InitializeRequestParams(hello.declared(revision), info, revision)
    return session.probe("initialize", params)


def _conclude(session: Session, hello: ClientHello, raw: Raw, asked_for: str) -> None:
    result: InitializeResult = read(raw, InitializeResult, "initialize", asked_for)
    revision = result.protocol_version
    if revision not in hello.revisions or not HANDSHAKE.holds(revision):
        usable = ", ".join(filter(HANDSHAKE.holds, reversed(hello.revisions)))
        expected = f"{asked_for}, which was requested, or another that the client has: {usable}"
        if hello.pinned is not None:
            expected = f"{hello.pinned}, the only revision that the client was told to use"
        raise RemoteProtocolError(
            "mcp.version.disconnects", where="/protocolVersion", got=revision, expected=expected
        )
    session.use(
        NegotiatedSession(
            revision,
            "handshake",
            result.server_info,
            result.capabilities,
            result.instructions or None,
            result,
        )
    )
    session.notify("notifications/initialized")
