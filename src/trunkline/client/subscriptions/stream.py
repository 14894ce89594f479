"""Being told what changes on a server: by a stream of one's own, or by the callbacks.

    async with client.listen(tools=True, uris=["file:///notes"]) as changes:
        async for change in changes:
            ...

Both work in every revision. In 2026-07-28 a stream is a request that stays open; before it is
made of the notifications that a server sends anyway, and of `resources/subscribe`.

The rules that live here, and only here:

* A stream ends in order when the server ends it, and with an error when the connection is gone
  or nobody reads. What came before is read first, and nothing is dropped without a word.
* In the handshake a resource is unsubscribed from when the last who wanted it has left, and by
  nobody while another is about to want it: of one resource one request is under way at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ...errors import (
    Cancelled,
    LocalProtocolError,
    PeerError,
    RequestAborted,
    TrunklineError,
)
from ...mcp.types import SubscribeRequestParams, UnsubscribeRequestParams
from ...redaction import show
from ...spec import lookup
from ..diagnostics import log
from ..options import check_seconds
from ..requests.method_checks import declares
from ..requests.methods import Verbs
from ..session import NOT_SENT, OutgoingRequest, Session
from .dispatch import LISTEN, ListenStream, ServerChange, SubscribeTurn, SubscriptionTopics
from .notifications import NotificationListeners

if TYPE_CHECKING:
    from .callback_stream import CallbackSubscription

__all__ = ["ChangeVerbs", "Subscription"]

_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"

# A server decides how much it tells. A reader who is so many changes behind does not read, and
# so many bytes are what a program does not miss: a task brings its result along.
MOST_WAITING: Final = 1000
MOST_BYTES: Final = 16 * 1024 * 1024


class Subscription:
    """Changes as they come: enter it, then iterate.

    `honoured` is what the server will tell of. The iteration stops when the server ends the
    stream, and `reason` is then what it said, if anything.

    Raises, from the iteration:
        ConnectionLost: the server is gone.
        PeerError: it ended the stream with an error.
        Cancelled: 1000 changes waited, and nobody read them; those are given first.
    """

    def __init__(
        self, verbs: ChangeVerbs, wanted: SubscriptionTopics, timeout: float | None
    ) -> None:
        self.wanted = wanted
        self._verbs = verbs
        self._timeout = timeout
        self._honoured: SubscriptionTopics | None = None
        self._waiting: deque[tuple[ServerChange, int]] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._is_entered = False
        self._has_ended = False
        self._error: TrunklineError | None = None
        self._reason: str | None = None
        # What leaves the stream, telling the server why.
        self._leave: Callable[[str], object] | None = None

    @property
    def honoured(self) -> SubscriptionTopics:
        """What the server acknowledged, of what was asked for."""
        if self._honoured is None:
            raise TrunklineError(_NOT_ENTERED)
        return self._honoured

    @property
    def reason(self) -> str | None:
        """Why the server ended the stream, in its words; None where it did not say, or did not."""
        return self._reason

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise TrunklineError("a stream of changes is entered once: listen again for another")
        self._is_entered = True
        self._honoured, self._leave = await self._verbs._enter(self, self._timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._has_ended = True
        self._waiting.clear()
        self._stop("nobody listens any more")
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerChange:
        if self._honoured is None:
            raise TrunklineError(_NOT_ENTERED)
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        change, size = self._waiting.popleft()
        self._bytes -= size
        return change

    def __repr__(self) -> str:
        is_open = self._honoured is not None and not self._has_ended
        state = "open" if is_open else "ended" if self._has_ended else "not entered"
        return f"<Subscription, {state}, {len(self._waiting)} waiting>"

    # -- as a listener -----------------------------------------------------------------------

    def told(self, change: ServerChange, size: int) -> None:
        """Take a change, for whoever iterates."""
        if self._has_ended:
            return
        is_full = len(self._waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES
        if is_full and self._waiting:
            reason = f"{len(self._waiting)} changes wait, and nobody reads them"
            self._stop(reason)
            self.ended(Cancelled(reason, method=LISTEN), None)
            return
        self._waiting.append((change, size))
        self._bytes += size
        self._news.set()

    def ended(self, error: TrunklineError | None, reason: str | None) -> None:
        """Learn that no more will come."""
        if not self._has_ended:
            self._has_ended, self._error, self._reason = True, error, reason
            self._news.set()

    def _stop(self, reason: str) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave(reason)


_NOT_ENTERED: Final = "a stream of changes is entered first: `async with client.listen(...)`"


class ChangeVerbs(Verbs):
    """How a client is told of changes."""

    _listeners: NotificationListeners

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
        task_ids: Iterable[str] = (),
        timeout: float | None = None,
    ) -> Subscription:
        """Return a stream of changes: `async with client.listen(tools=True) as changes`.

        `tools`, `prompts` and `resources` are the lists of those, `uris` single resources and
        `task_ids` tasks. `timeout` is how long the server may take to agree, in seconds; once
        it has, the stream is open for as long as you like.

        Raises:
            ValueError: nothing is listened for, or the timeout is none.

        To enter it raises:
            PeerError: the server refused.
            RequestAborted: it did not answer in time, or is gone.
        """
        if isinstance(uris, str) or isinstance(task_ids, str):
            raise ValueError("uris and task_ids are lists of texts, not one text")
        wanted = SubscriptionTopics(
            tools,
            prompts,
            resources,
            tuple(dict.fromkeys(uris)),
            tuple(dict.fromkeys(task_ids)),
        )
        if wanted.is_empty:
            raise ValueError("name what to listen for: tools, prompts, resources, uris or task_ids")
        if timeout is not None:
            check_seconds("timeout", timeout)
        return Subscription(self, wanted, timeout)

    async def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Ask to be told when a resource changes, by `on_resource_updated`.

        Raises:
            PeerError: the server refused.
            LocalProtocolError: in 2026-07-28, the server does not tell of this resource.
        """
        session = self._connected()
        if LISTEN not in session.methods:
            async with self._turn(session, uri):
                await self._do(_SUBSCRIBE, SubscribeRequestParams, {"uri": uri}, timeout)
                self._subscribed[uri] = None
        else:
            seconds = self._seconds(timeout)
            if self._strict:
                _check_declared(session, SubscriptionTopics(uris=(uri,)))
            try:
                await self._callback_subscription(session).add(uri, seconds)
            except NOT_SENT:
                await self._callback_subscription(await self._renew(session)).add(uri, seconds)
            self._subscribed[uri] = None

    async def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Ask not to be told any more."""
        session = self._connected()
        if LISTEN in session.methods:
            seconds = self._seconds(timeout)
            try:
                await self._callback_subscription(session).remove(uri, seconds)
            except NOT_SENT:
                await self._callback_subscription(await self._renew(session)).remove(uri, seconds)
            self._subscribed.pop(uri, None)
        else:
            async with self._turn(session, uri):
                if uri not in session.streams.subscribed:
                    await self._do(_UNSUBSCRIBE, UnsubscribeRequestParams, {"uri": uri}, timeout)
                self._subscribed.pop(uri, None)

    def _seconds(self, timeout: float | None) -> float:
        """Return how long one request may take."""
        if timeout is None:
            return min(self._timeout, self._max_timeout)
        check_seconds("timeout", timeout)
        return min(timeout, self._max_timeout)

    # -- a stream of one's own ---------------------------------------------------------------

    async def _enter(
        self, changes: Subscription, timeout: float | None
    ) -> tuple[SubscriptionTopics, Callable[[str], object]]:
        """Open a stream; return what is honoured, and what leaves it."""
        session = self._connected()
        seconds = self._seconds(timeout)
        if self._strict:
            _check_declared(session, changes.wanted)
        if LISTEN not in session.methods:
            return await self._join(session, changes, seconds)
        try:
            return await self._open_stream(session, changes, seconds)
        except NOT_SENT:
            session = await self._renew(session)
        return await self._open_stream(session, changes, seconds)

    async def _open_stream(
        self, session: Session, changes: Subscription, seconds: float
    ) -> tuple[SubscriptionTopics, Callable[[str], object]]:
        stream: ListenStream = await session.streams.open(changes.wanted, seconds, changes)
        return stream.honoured, partial(session.streams.close, stream)

    async def _join(
        self, session: Session, changes: Subscription, seconds: float
    ) -> tuple[SubscriptionTopics, Callable[[str], object]]:
        """Listen where a server tells of its own accord."""
        wanted = _declared(session, changes.wanted)
        subscribed: list[str] = []

        def leave(_: str) -> None:
            # By now another connection may have taken over.
            for each in {session, self._session or session}:
                if each.streams.leave(changes):
                    for uri in subscribed:
                        self._unwant(each, uri)

        # First, or what is told together with the answer would be missed.
        session.streams.join(changes, wanted, self._subscribed)
        try:
            for uri in wanted.uris:
                if await self._want(uri, seconds):
                    subscribed.append(uri)
        except BaseException:  # a cancelled task too: nobody would leave this stream
            leave("")
            raise
        return wanted._replace(uris=tuple(subscribed)), leave

    async def _want(self, uri: str, seconds: float) -> bool:
        """Subscribe to a resource, unless somebody has; say whether the server tells of it."""
        session = self._connected()
        async with self._turn(session, uri):
            if uri not in session.streams.subscribed and uri not in self._subscribed:
                request = OutgoingRequest(_SUBSCRIBE, SubscribeRequestParams, {"uri": uri}, seconds)
                try:
                    _, session = await self._ask(request)  # by whichever has ids left
                except PeerError as error:
                    log.debug("the server does not tell of %s: %s", show(uri), show(str(error)))
                    return False
            wanted = session.streams.subscribed
            wanted[uri] = wanted.get(uri, 0) + 1
            return True

    def _unwant(self, session: Session, uri: str) -> None:
        wanted = session.streams.subscribed
        wanted[uri] -= 1
        if wanted[uri]:
            return
        del wanted[uri]
        turn = session.streams.turns.get(uri)
        if turn is None:
            self._unsubscribe_aside(session, uri)
        else:
            turn.is_left = True  # and whoever has it sees whether he is the last

    def _unsubscribe_aside(self, session: Session, uri: str) -> None:
        if uri not in self._subscribed and uri not in session.streams.subscribed:
            from ..tasks.cleanup import send_unawaited

            send_unawaited(session, _UNSUBSCRIBE, UnsubscribeRequestParams, uri=uri)

    @asynccontextmanager
    async def _turn(self, session: Session, uri: str) -> AsyncIterator[None]:
        """Be the one who asks for a resource, or to be told no more of it."""
        turns = session.streams.turns
        turn = turns.setdefault(uri, SubscribeTurn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del turns[uri]
                if turn.is_left:
                    self._unsubscribe_aside(session, uri)

    # -- for the callbacks -------------------------------------------------------------------

    def _callback_subscription(self, session: Session) -> CallbackSubscription:
        streams = session.streams
        if streams.callback_subscription is None:
            # Imported here, as above: most clients listen to nothing.
            from .callback_stream import CallbackSubscription

            streams.callback_subscription = CallbackSubscription(
                streams, min(self._timeout, self._max_timeout)
            )
        return streams.callback_subscription

    async def _begin_listening(self, session: Session, seconds: float) -> None:
        """Have the callbacks told on a new connection, where somebody has to listen for that."""
        if LISTEN not in session.methods:
            return
        has_lists = self._listeners.on_list_changed is not None
        lists = SubscriptionTopics(has_lists, has_lists, has_lists)
        wanted = _declared(session, lists)._replace(uris=tuple(self._subscribed))
        if wanted.is_empty:
            return
        try:
            honoured = await self._callback_subscription(session).begin(wanted, seconds)
        except (*NOT_SENT, PeerError) as error:
            log.warning("the server tells of no changes: %s", show(str(error)))
            return
        for uri in wanted.uris:
            if uri not in honoured.uris:
                # It is there no more, and no reason to have no connection.
                log.warning("a new connection is not told of %s", show(uri))
                self._subscribed.pop(uri, None)

    async def _hand_over(self, old: Session, new: Session) -> None:
        """Have everybody listen to a new connection who listened to an old one."""
        if old.streams.callback_subscription is not None:
            old.streams.callback_subscription.stop()
        uris = [uri for uri in old.streams.subscribed if uri not in self._subscribed]
        old.streams.move_to(new.streams)
        for uri in uris:
            try:
                await new.ask(OutgoingRequest(_SUBSCRIBE, SubscribeRequestParams, {"uri": uri}))
            except (PeerError, RequestAborted) as error:
                log.warning("a new connection could not subscribe to %s: %s", show(uri), error)


# By what a filter asks for, the notification that tells of it.
_TOLD_BY: Final = {
    "tools": ("notifications/tools/list_changed",),
    "prompts": ("notifications/prompts/list_changed",),
    "resources": ("notifications/resources/list_changed",),
    "uris": ("notifications/resources/updated",),
    "task_ids": ("notifications/tasks/status", "notifications/tasks"),
}


def _declared(session: Session, wanted: SubscriptionTopics) -> SubscriptionTopics:
    """Return of what is wanted what the server has declared that it tells."""
    capabilities = None if session.negotiated is None else session.negotiated.capabilities
    nothing = SubscriptionTopics()
    for name, methods in _TOLD_BY.items():
        rows = [lookup.method(method, session.revision) for method in methods]
        needed = [row.capability for row in rows if row is not None]
        if not any(capabilities is not None and declares(capabilities, each) for each in needed):
            wanted = wanted._replace(**{name: getattr(nothing, name)})
    return wanted


def _check_declared(session: Session, wanted: SubscriptionTopics) -> None:
    """Refuse to listen for what the server has not declared that it tells."""
    declared = _declared(session, wanted)
    lacking = [name for name in _TOLD_BY if getattr(wanted, name) != getattr(declared, name)]
    if lacking:
        raise LocalProtocolError(
            "mcp.capability.negotiated-only",
            where="/params/notifications",
            got=lacking,
            expected="a server that declares that it tells of them",
        )
