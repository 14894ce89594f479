"""Subscriptions to changes on a server: as an async iterator, or by callbacks.

    async with client.listen(tools=True, uris=["file:///notes"]) as changes:
        async for change in changes:
            ...

Both work in every revision. In 2026-07-28 a subscription is a `subscriptions/listen` request that
stays open; earlier it consists of the notifications that a server sends to all of its clients,
and of `resources/subscribe`.

The rules that live here, and only here:

* A subscription ends normally when the server ends it, and with an error when the connection is
  lost or its buffer is full. Buffered changes are returned first; none is dropped silently.
* In the handshake revisions a resource is unsubscribed when the last subscription to it ends,
  unless another is about to begin: one request per resource is in flight at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from ...errors import (
    Cancelled,
    LocalProtocolError,
    PeerError,
    RequestAborted,
    TrunklineError,
)
from ...mcp.capabilities import declares
from ...mcp.types import SubscribeRequestParams, UnsubscribeRequestParams
from ...redaction import show
from ...spec import lookup
from ..requests.sender import RequestSender
from ..session.diagnostics import log
from ..session.options import check_seconds
from ..session.request import OutgoingRequest
from ..session.session import NOT_SENT, Session
from .budget import NotificationBudget
from .dispatch import LISTEN, ListenStream, ServerChange, SubscribeTurn, SubscriptionTopics

if TYPE_CHECKING:
    from .callback_stream import CallbackSubscription

__all__ = ["ClientSubscriptions", "Subscription", "was_entered"]

_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"
_NOT_ENTERED: Final = "enter the subscription first: `async with client.listen(...)`"

# Bound of the buffer of a subscription, since the server decides how many changes it sends. Their
# bytes count in the budget of the client: a task may carry its result.
MAX_BUFFERED_CHANGES: Final = 1000


class _ChangeBuffer:
    """The changes of a subscription that were not read yet, and how the subscription ended."""

    __slots__ = ("_budget", "_changed", "changes", "error", "has_ended", "leave", "reason")

    def __init__(self, budget: NotificationBudget) -> None:
        self.changes: deque[tuple[ServerChange, int]] = deque()
        self.has_ended = False
        self.error: TrunklineError | None = None
        self.reason: str | None = None
        # Ends the subscription on the server, with a reason.
        self.leave: Callable[[str], object] | None = None
        self._budget = budget
        self._changed = asyncio.Event()

    def opened(self, leave: Callable[[str], object]) -> None:
        """Use `leave` to end the subscription; at once if the buffer was full before this."""
        self.leave = leave
        if self.error is not None:
            self.stop(str(self.error))

    def on_change(self, change: ServerChange, weight: int) -> None:
        """Buffer a change, or end the subscription if the buffer is full."""
        if self.has_ended:
            return
        if not self._admit(weight):
            reason = f"the buffer is full: {len(self.changes)} changes were not read"
            self.stop(reason)
            self.on_end(Cancelled(reason, method=LISTEN), None)
            return
        self.changes.append((change, weight))
        self._changed.set()

    def _admit(self, weight: int) -> bool:
        if len(self.changes) >= MAX_BUFFERED_CHANGES:
            self._budget.drop()
            return False
        return self._budget.take(weight, is_empty=not self.changes)

    def on_end(self, error: TrunklineError | None, reason: str | None) -> None:
        """End the iteration once the buffer is empty."""
        if not self.has_ended:
            self.has_ended, self.error, self.reason = True, error, reason
            self._changed.set()

    def close(self) -> None:
        """Drop all changes, and end the subscription."""
        while self.changes:
            self._budget.release(self.changes.popleft()[1])
        self.on_end(None, None)
        self.stop("the subscription was closed")

    def stop(self, reason: str) -> None:
        """End the subscription on the server, once."""
        leave, self.leave = self.leave, None
        if leave is not None:
            leave(reason)

    async def get(self) -> ServerChange:
        """Return the next change; raise StopAsyncIteration at the end."""
        while not self.changes:
            if self.error is not None:
                raise self.error
            if self.has_ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        change, weight = self.changes.popleft()
        self._budget.release(weight)
        return change


class Subscription:
    """Changes as they arrive: enter it, then iterate.

    `honoured` is what the server will report. The iteration stops when the server ends the
    subscription; `reason` is then its explanation, if it gave one.

    Raises, from the iteration:
        ConnectionLost: the connection is lost.
        PeerError: the server ended the subscription with an error.
        Cancelled: 1000 changes were buffered and not read, or the client's budget of bytes for
            notifications was used up; buffered changes are returned first.
    """

    def __init__(
        self,
        subscriptions: ClientSubscriptions,
        wanted: SubscriptionTopics,
        timeout: float | None,
    ) -> None:
        self.wanted = wanted
        self._subscriptions = subscriptions
        self._timeout = timeout
        self._honoured: SubscriptionTopics | None = None
        self._buffer = _ChangeBuffer(subscriptions.budget)
        self._is_entered = False

    @property
    def honoured(self) -> SubscriptionTopics:
        """What the server acknowledged, of what was requested."""
        if self._honoured is None:
            raise TrunklineError(_NOT_ENTERED)
        return self._honoured

    @property
    def reason(self) -> str | None:
        """Why the server ended the subscription, in its words; None if it gave no reason."""
        return self._buffer.reason

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise TrunklineError("a subscription is entered once: call `listen` again")
        self._is_entered = True
        opened = await self._subscriptions._open(self.wanted, self._buffer, self._timeout)
        self._honoured, leave = opened
        self._buffer.opened(leave)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._buffer.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerChange:
        if self._honoured is None:
            raise TrunklineError(_NOT_ENTERED)
        return await self._buffer.get()

    def __repr__(self) -> str:
        has_ended = self._buffer.has_ended
        is_open = self._honoured is not None and not has_ended
        state = "open" if is_open else "ended" if has_ended else "not entered"
        return f"<Subscription, {state}, {len(self._buffer.changes)} buffered>"


def was_entered(subscription: Subscription) -> bool:
    """Return True once the server has acknowledged a subscription."""
    return subscription._honoured is not None


class ClientSubscriptions:
    """The subscriptions of a client, for `listen` and for the callbacks."""

    def __init__(self, sender: RequestSender) -> None:
        # The resources subscribed for the callbacks, in that order.
        self.uris: dict[str, None] = {}
        self._sender = sender
        self._connection = sender.connection
        self.budget = sender.connection.budget
        self._strict = sender.connection.options.strict

    def listen(self, wanted: SubscriptionTopics, timeout: float | None) -> Subscription:
        """Return a subscription, not yet open; see `Client.listen`."""
        if wanted.is_empty:
            raise ValueError("name what to listen for: tools, prompts, resources, uris or task_ids")
        if timeout is not None:
            check_seconds("timeout", timeout)
        return Subscription(self, wanted, timeout)

    async def subscribe(self, uri: str, timeout: float | None) -> None:
        """Subscribe the callbacks to a resource; see `Client.subscribe`."""
        session = self._connection.current()
        if LISTEN not in session.methods:
            async with self._turn(session, uri):
                fields = {"uri": uri}
                await self._sender.do(_SUBSCRIBE, SubscribeRequestParams, fields, timeout)
                self.uris[uri] = None
            return
        seconds = self._sender.seconds(timeout)
        if self._strict:
            _check_declared(session, SubscriptionTopics(uris=(uri,)))
        try:
            await self._callback_subscription(session).add(uri, seconds)
        except NOT_SENT:
            session = await self._connection.renew(session)
            await self._callback_subscription(session).add(uri, seconds)
        self.uris[uri] = None

    async def unsubscribe(self, uri: str, timeout: float | None) -> None:
        """Unsubscribe the callbacks from a resource."""
        session = self._connection.current()
        if LISTEN not in session.methods:
            async with self._turn(session, uri):
                if uri not in session.streams.subscribed:
                    fields = {"uri": uri}
                    await self._sender.do(_UNSUBSCRIBE, UnsubscribeRequestParams, fields, timeout)
                self.uris.pop(uri, None)
            return
        seconds = self._sender.seconds(timeout)
        try:
            await self._callback_subscription(session).remove(uri, seconds)
        except NOT_SENT:
            session = await self._connection.renew(session)
            await self._callback_subscription(session).remove(uri, seconds)
        self.uris.pop(uri, None)

    # -- `listen` ----------------------------------------------------------------------------

    async def _open(
        self, wanted: SubscriptionTopics, buffer: _ChangeBuffer, timeout: float | None
    ) -> tuple[SubscriptionTopics, Callable[[str], object]]:
        """Open a subscription; return what is honoured, and a function that ends it."""
        session = self._connection.current()
        seconds = self._sender.seconds(timeout)
        if self._strict:
            _check_declared(session, wanted)
        if LISTEN not in session.methods:
            return await self._join(session, wanted, buffer, seconds)
        try:
            stream = await session.streams.open(wanted, seconds, buffer)
        except NOT_SENT:
            session = await self._connection.renew(session)
            stream = await session.streams.open(wanted, seconds, buffer)
        return stream.honoured, partial(_close, session, stream)

    async def _join(
        self, session: Session, wanted: SubscriptionTopics, buffer: _ChangeBuffer, seconds: float
    ) -> tuple[SubscriptionTopics, Callable[[str], object]]:
        """Listen where a server sends its notifications to all clients."""
        wanted = declared_topics(session, wanted)
        subscribed: list[str] = []

        def leave(_: str) -> None:
            # The session may have been renewed in the meantime.
            for each in {session, self._connection.session or session}:
                if each.streams.leave(buffer):
                    for uri in subscribed:
                        self._release_uri(each, uri)

        # Before the requests: a notification may arrive together with a reply.
        session.streams.join(buffer, wanted)
        try:
            for uri in wanted.uris:
                if await self._retain_uri(uri, seconds):
                    subscribed.append(uri)
        except BaseException:  # cancellation too: the subscription would never be left
            leave("")
            raise
        return wanted._replace(uris=tuple(subscribed)), leave

    async def _retain_uri(self, uri: str, seconds: float) -> bool:
        """Subscribe to a resource, unless that was done; return False if the server refuses."""
        session = self._connection.current()
        async with self._turn(session, uri):
            if uri not in session.streams.subscribed and uri not in self.uris:
                request = OutgoingRequest(_SUBSCRIBE, SubscribeRequestParams, {"uri": uri}, seconds)
                try:
                    _, session = await self._sender.ask(request)
                except PeerError as error:
                    log.debug("subscribing to %s failed: %s", show(uri), show(str(error)))
                    return False
            counts = session.streams.subscribed
            counts[uri] = counts.get(uri, 0) + 1
            return True

    def _release_uri(self, session: Session, uri: str) -> None:
        counts = session.streams.subscribed
        counts[uri] -= 1
        if counts[uri]:
            return
        del counts[uri]
        turn = session.streams.turns.get(uri)
        if turn is None:
            self._unsubscribe_unawaited(session, uri)
        else:
            turn.is_released = True  # the holder of the turn unsubscribes, if it is the last

    def _unsubscribe_unawaited(self, session: Session, uri: str) -> None:
        if uri not in self.uris and uri not in session.streams.subscribed:
            from ..tasks.cleanup import send_unawaited

            send_unawaited(session, _UNSUBSCRIBE, UnsubscribeRequestParams, uri=uri)

    @asynccontextmanager
    async def _turn(self, session: Session, uri: str) -> AsyncIterator[None]:
        """Hold the lock of a resource: one (un)subscribe request is in flight at a time."""
        turns = session.streams.turns
        turn = turns.setdefault(uri, SubscribeTurn())
        turn.holders += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.holders -= 1
            if not turn.holders:
                del turns[uri]
                if turn.is_released:
                    self._unsubscribe_unawaited(session, uri)

    # -- the callbacks -----------------------------------------------------------------------

    def _callback_subscription(self, session: Session) -> CallbackSubscription:
        streams = session.streams
        if streams.callback_subscription is None:
            # Imported here, as above: most clients subscribe to nothing.
            from .callback_stream import CallbackSubscription

            seconds = self._sender.seconds(None)
            streams.callback_subscription = CallbackSubscription(streams, seconds)
        return streams.callback_subscription

    async def begin(self, session: Session) -> None:
        """Subscribe the callbacks on a new session."""
        session.streams.callback_uris = self.uris
        if LISTEN not in session.methods:
            if _SUBSCRIBE in session.methods:
                await self._subscribe_again(session)
            return
        has_lists = self._connection.listeners.wants_lists
        lists = SubscriptionTopics(has_lists, has_lists, has_lists)
        wanted = declared_topics(session, lists)._replace(uris=tuple(self.uris))
        if wanted.is_empty:
            return
        seconds = self._connection.hello.probe_timeout
        try:
            honoured = await self._callback_subscription(session).begin(wanted, seconds)
        except (*NOT_SENT, PeerError) as error:
            log.warning("no notifications of changes: %s", show(str(error)))
            return
        for uri in wanted.uris:
            if uri not in honoured.uris:
                # The resource is gone, which is not a reason to fail the connection.
                log.warning("the new connection is not subscribed to %s: refused", show(uri))
                self.uris.pop(uri, None)

    async def _subscribe_again(self, session: Session) -> None:
        for uri in list(self.uris):
            try:
                await session.ask(OutgoingRequest(_SUBSCRIBE, None, {"uri": uri}))
            except PeerError as error:
                # The resource is gone, which is not a reason to fail the connection.
                log.warning(
                    "the new connection is not subscribed to %s: %s", show(uri), show(str(error))
                )
                self.uris.pop(uri, None)

    async def move(self, old: Session, new: Session) -> None:
        """Move all subscriptions of an old session to the one that replaces it."""
        if old.streams.callback_subscription is not None:
            old.streams.callback_subscription.stop()
        uris = [uri for uri in old.streams.subscribed if uri not in self.uris]
        old.streams.move_to(new.streams)
        for uri in uris:
            try:
                await new.ask(OutgoingRequest(_SUBSCRIBE, SubscribeRequestParams, {"uri": uri}))
            except (PeerError, RequestAborted) as error:
                log.warning(
                    "the new connection is not subscribed to %s: %s", show(uri), show(str(error))
                )


def topics(
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Iterable[str],
    task_ids: Iterable[str],
) -> SubscriptionTopics:
    """Return the topics of `Client.listen`, each URI and task id once."""
    if isinstance(uris, str) or isinstance(task_ids, str):
        raise ValueError("uris and task_ids are lists of strings, not one string")
    return SubscriptionTopics(
        tools, prompts, resources, tuple(dict.fromkeys(uris)), tuple(dict.fromkeys(task_ids))
    )


def _close(session: Session, stream: ListenStream, reason: str) -> None:
    session.streams.close(stream, reason)


# By topic, the notifications that report it.
_NOTIFICATIONS: Final = {
    "tools": ("notifications/tools/list_changed",),
    "prompts": ("notifications/prompts/list_changed",),
    "resources": ("notifications/resources/list_changed",),
    "uris": ("notifications/resources/updated",),
    "task_ids": ("notifications/tasks/status", "notifications/tasks"),
}


def declared_topics(session: Session, wanted: SubscriptionTopics) -> SubscriptionTopics:
    """Drop the topics for which the server declared no capability."""
    capabilities = None if session.negotiated is None else session.negotiated.capabilities
    nothing = SubscriptionTopics()
    for name, methods in _NOTIFICATIONS.items():
        rows = [lookup.method(method, session.revision) for method in methods]
        needed = [row.capability for row in rows if row is not None]
        if not any(capabilities is not None and declares(capabilities, each) for each in needed):
            wanted = wanted._replace(**{name: getattr(nothing, name)})
    return wanted


def _check_declared(session: Session, wanted: SubscriptionTopics) -> None:
    """Reject topics for which the server declared no capability."""
    declared = declared_topics(session, wanted)
    lacking = [name for name in _NOTIFICATIONS if getattr(wanted, name) != getattr(declared, name)]
    if lacking:
        raise LocalProtocolError(
            "mcp.capability.negotiated-only",
            where="/params/notifications",
            got=lacking,
            expected="a server that declares these notifications",
        )
