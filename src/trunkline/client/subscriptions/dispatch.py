"""Routes notifications of changes to the subscriptions of one session.

In 2026-07-28 a subscription is an open `subscriptions/listen`, and its notifications carry the id
of that request. Earlier revisions send all notifications to all clients, and every listener takes
the topics it wants.

The rules that live here, and only here:

* A notification belongs to the subscription whose id it carries; 7 and "7" are two ids. One for
  an unknown subscription is ignored.   [MCP 2026-07-28, basic/patterns/subscriptions]
* A subscription begins with its acknowledgement, which has a timeout; then it has none.
* A server ends a subscription with the result of its request, or with `notifications/cancelled`
  for it: two pages of the specification differ. Either is accepted, and both in any order.
                    [MCP 2026-07-28, basic/patterns/subscriptions and /cancellation]
* The callbacks receive changes of the resources subscribed for them. Changes of a resource that
  only `listen` requested go to that subscription, in every revision.
* A notification without an id goes to the callbacks: some servers omit the id.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import encode

from ...errors import (
    Cancelled,
    ConnectionLost,
    RemoteProtocolError,
    RequestAborted,
    RequestTimeout,
    TrunklineError,
)
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.messages import RequestId, Shown
from ...jsonrpc.peer.outgoing import Pending
from ...mcp.meta import SUBSCRIPTION_ID
from ...mcp.types import (
    CancelledNotificationParams,
    ResourceUpdatedNotificationParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    TaskStatusNotificationParams,
)
from ...redaction import show
from ...spec import lookup
from ..session.decode import decoder
from ..session.diagnostics import RateLimitedLog
from .budget import weigh
from .notifications import NotificationCallbacks

if TYPE_CHECKING:
    from ..session.session import Session
    from .callback_stream import CallbackSubscription

__all__ = [
    "ChangeListener",
    "ListenStream",
    "ServerChange",
    "SubscribeTurn",
    "SubscriptionRouter",
    "SubscriptionTopics",
]

LISTEN: Final = "subscriptions/listen"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_CANCELLED: Final = "notifications/cancelled"
_UPDATED: Final = "notifications/resources/updated"

# How many ids of closed subscriptions are remembered: their notifications may still arrive, and
# are not reported as unknown.
_MAX_CLOSED_IDS: Final = 64

ChangeKind: TypeAlias = Literal["tools", "prompts", "resources", "resource", "task"]
OnStreamEnd: TypeAlias = Callable[[TrunklineError | None], object]

# By notification, the kind of change it reports.
_KINDS: Final[dict[str, ChangeKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    _UPDATED: "resource",
    "notifications/tasks": "task",
    "notifications/tasks/status": "task",
}


class ServerChange(Struct, frozen=True):
    """A change on the server.

    `kind` is what changed: a list ("tools", "prompts", "resources"), one "resource", with its
    `uri`, or one "task", with its state.
    """

    kind: ChangeKind
    uri: str | None = None
    task: TaskStatusNotificationParams | None = None

    def __repr__(self) -> str:
        what = "" if self.uri is None else f" {show(self.uri)}"
        if self.task is not None:
            what = f", {self.task.status}"
        return f"<ServerChange of {self.kind}{what}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [
            ("", repr(self))
        ]  # the Struct's own would show a task id, which is a bearer capability


class SubscriptionTopics(NamedTuple):
    """What a subscription is about: as requested, or as acknowledged by the server."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no topic."""
        return not any(self)

    def __repr__(self) -> str:
        shown = [name for name in ("tools", "prompts", "resources") if getattr(self, name)]
        shown += [show(uri) for uri in self.uris]
        if self.task_ids:
            # Only their number: task ids are bearer capabilities.
            shown.append(f"{len(self.task_ids)} task{'s' if len(self.task_ids) > 1 else ''}")
        return f"<SubscriptionTopics, {', '.join(shown) or 'nothing'}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # the tuple's own would show all of it

    def takes(self, change: ServerChange) -> bool:
        """Return True if a change is of a requested kind."""
        if change.task is not None:
            return change.task.task_id in self.task_ids
        if change.kind == "resource":
            # Any URI: it may be a part of a requested one.
            return bool(self.uris)
        return bool(getattr(self, change.kind))

    def names(self, uri: str) -> bool:
        """Return True if a resource was requested, or lies below one that was."""
        return _names(self.uris, uri)

    def on_the_wire(self) -> SubscriptionFilter:
        """Return the wire form, without the topics that were not requested."""
        return SubscriptionFilter(
            prompts_list_changed=self.prompts or UNSET,
            resource_subscriptions=list(self.uris) or UNSET,
            resources_list_changed=self.resources or UNSET,
            task_ids=list(self.task_ids) or UNSET,
            tools_list_changed=self.tools or UNSET,
        )

    def honoured_by(self, said: SubscriptionFilter) -> SubscriptionTopics:
        """Return the topics that were both requested and acknowledged."""
        uris = set(said.resource_subscriptions or ())
        tasks = set(said.task_ids or ())
        return SubscriptionTopics(
            self.tools and said.tools_list_changed is True,
            self.prompts and said.prompts_list_changed is True,
            self.resources and said.resources_list_changed is True,
            tuple(each for each in self.uris if each in uris),
            tuple(each for each in self.task_ids if each in tasks),
        )


class ChangeListener(Protocol):
    """Receives the changes of a subscription."""

    def on_change(self, change: ServerChange, weight: int) -> None:
        """Receive a change; `weight` is what its params count in the budget."""

    def on_end(self, error: TrunklineError | None, reason: str | None) -> None:
        """Receive the end: with an error, or with the reason of the server."""


class ListenStream:
    """One `subscriptions/listen` that is open, or being opened.

    Without a listener it belongs to the client, and its notifications go to the callbacks.
    """

    __slots__ = (
        "acknowledged",
        "early_end",
        "error",
        "has_ended",
        "honoured",
        "listener",
        "on_end",
        "pending",
        "wanted",
    )

    def __init__(
        self, wanted: SubscriptionTopics, acknowledged: asyncio.Future[SubscriptionFilter]
    ) -> None:
        self.wanted = wanted
        self.honoured = SubscriptionTopics()
        self.acknowledged = acknowledged
        self.listener: ChangeListener | None = None
        self.on_end: OnStreamEnd | None = None
        self.pending: Pending | None = None
        # Set if the server cancelled it while the request was being sent.
        self.early_end: CancelledNotificationParams | None = None
        # Whether the server has ended it, and with which error. That may arrive together with the
        # acknowledgement, before `open` returns.
        self.has_ended = False
        self.error: TrunklineError | None = None


class SubscribeTurn:
    """The lock of a resource: one (un)subscribe request at a time."""

    __slots__ = ("holders", "is_released", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        # How many tasks hold or await the lock.
        self.holders = 0
        # Whether the last subscription to the resource has ended meanwhile.
        self.is_released = False


class _SubscriptionMeta(Shown, Struct):
    subscription_id: RequestId | UnsetType = field(default=UNSET, name=SUBSCRIPTION_ID)


class _SubscriptionParams(Shown, Struct):
    meta: _SubscriptionMeta | UnsetType = field(default=UNSET, name="_meta")


@lru_cache
def _on_streams(revision: str) -> frozenset[str]:
    """Return the notifications that belong to a subscription in `revision`."""
    return frozenset(row.name for row in lookup.methods(revision) if row.stream == LISTEN)


class SubscriptionRouter:
    """The subscriptions of one session."""

    __slots__ = (
        "_callbacks",
        "_closed_ids",
        "_open",
        "_server_log",
        "_session",
        "_shared",
        "_starting",
        "callback_subscription",
        "callback_uris",
        "subscribed",
        "turns",
    )

    def __init__(
        self, session: Session, callbacks: NotificationCallbacks, server_log: RateLimitedLog
    ) -> None:
        self._session = session
        self._callbacks = callbacks
        self._server_log = server_log
        # By the id of their request.
        self._open: dict[RequestId, ListenStream] = {}
        # Ids of closed subscriptions; created with the first.
        self._closed_ids: deque[RequestId] | None = None
        # Its request is being sent: the acknowledgement may arrive before `send` returns.
        self._starting: ListenStream | None = None
        # Handshake revisions: all listeners, with their topics.
        self._shared: dict[ChangeListener, SubscriptionTopics] = {}
        # Handshake revisions: how many listeners use a subscribed resource.
        self.subscribed: dict[str, int] = {}
        # Handshake revisions: the resources subscribed for the callbacks, which are told of their
        # changes even if a listener is.
        self.callback_uris: Collection[str] = ()
        # Handshake revisions: the resources with an (un)subscribe request in flight.
        self.turns: dict[str, SubscribeTurn] = {}
        # The subscription of the callbacks, if there is one.
        self.callback_subscription: CallbackSubscription | None = None

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return not self._session.is_open

    @property
    def on_event(self) -> Callable[[str, str], object]:
        """The callback for what was done about a lost stream."""
        return self._session.on_event

    # -- handshake revisions -----------------------------------------------------------------

    def report_gap(self) -> None:
        """Report a change of each list that may change, and of each subscribed resource.

        The stream of the session was lost, and the server did not keep what it missed.
        """
        # Imported here: most streams are resumed.
        from .stream import declared_topics

        lists = declared_topics(self._session, SubscriptionTopics(True, True, True))
        missed: list[tuple[str, Any]] = [
            (method, UNSET)
            for method, kind in _KINDS.items()
            if kind in ("tools", "prompts", "resources") and getattr(lists, kind)
        ]
        for uri in dict.fromkeys((*self.subscribed, *self.callback_uris)):
            missed.append((_UPDATED, Raw(encode({"uri": uri}))))
        for method, params in missed:
            if not self.take(method, params):
                self._callbacks.take(method, params)

    # -- since 2026-07-28 --------------------------------------------------------------------

    def report_missed(self, topics: SubscriptionTopics) -> None:
        """Call the callbacks of topics of which changes may have been missed."""
        for method, kind in _KINDS.items():
            if kind in ("tools", "prompts", "resources") and getattr(topics, kind):
                self._callbacks.take(method, UNSET)
        for uri in topics.uris:
            self._callbacks.take(_UPDATED, Raw(encode({"uri": uri})))

    async def open(
        self,
        wanted: SubscriptionTopics,
        seconds: float,
        listener: ChangeListener | None = None,
        on_end: OnStreamEnd | None = None,
    ) -> ListenStream:
        """Open a subscription and wait for its acknowledgement; it may have ended again by then.

        `on_end` is called, with an error or None, when a subscription without a listener ends.

        Raises:
            PeerError: the server rejected it.
            RequestAborted: it was not acknowledged within `seconds`, or the connection is lost.
            RemoteProtocolError: the server ended it before the acknowledgement.
            IdsExhausted: the session has no request ids left.
        """
        session = self._session
        loop = asyncio.get_running_loop()
        stream = self._starting = ListenStream(wanted, loop.create_future())
        stream.listener, stream.on_end = listener, on_end
        params = SubscriptionsListenRequestParams(session.meta, wanted.on_the_wire())
        try:
            pending = session.send(LISTEN, params, inf)
        finally:
            self._starting = None
        stream.pending = pending
        if not pending.waiter.done():
            self._open[pending.id] = stream
        pending.waiter.add_done_callback(partial(self._replied, stream))
        if stream.early_end is not None:
            self._end_by_server(stream, stream.early_end)
        try:
            async with asyncio.timeout(seconds):
                said = await stream.acknowledged
        except TimeoutError:
            reason = f"no acknowledgement within {seconds:g} s"
            self.close(stream, reason)
            raise RequestTimeout(reason, method=LISTEN) from None
        except BaseException:  # cancellation too: it would stay open
            self.close(stream)
            raise
        stream.honoured = wanted.honoured_by(said)
        return stream

    def close(self, stream: ListenStream, reason: str = "the subscription was closed") -> None:
        """Close a subscription, and notify the server, unless it has ended."""
        if self._forget(stream) and stream.pending is not None:
            self._session.abandon(stream.pending, reason)

    def _forget(self, stream: ListenStream) -> bool:
        """Remove a subscription; return False if it was not open."""
        pending = stream.pending
        if pending is None or self._open.get(pending.id) is not stream:
            return False
        del self._open[pending.id]
        if self._closed_ids is None:
            self._closed_ids = deque(maxlen=_MAX_CLOSED_IDS)
        self._closed_ids.append(pending.id)
        return True

    def _replied(self, stream: ListenStream, waiter: asyncio.Future[Any]) -> None:
        error = None if waiter.cancelled() else waiter.exception()
        was_open = self._forget(stream)
        if error is not None and not isinstance(error, TrunklineError):
            error = RequestAborted("its reply could not be read", method=LISTEN)
        if not stream.acknowledged.done():
            rule = "mcp.subscriptions.acknowledged-first"
            expected = f"{_ACKNOWLEDGED} before the result of {LISTEN}"
            stream.acknowledged.set_exception(
                RemoteProtocolError(rule, expected=expected) if error is None else error
            )
            stream.acknowledged.exception()  # retrieved: `open` may have been cancelled
        elif was_open:
            self._notify_end(stream, error, None)

    def _notify_end(
        self, stream: ListenStream, error: TrunklineError | None, reason: str | None
    ) -> None:
        stream.has_ended, stream.error = True, error
        if stream.listener is not None:
            stream.listener.on_end(error, reason)
        elif stream.on_end is not None:
            stream.on_end(error)

    # -- handshake revisions -----------------------------------------------------------------

    def join(self, listener: ChangeListener, wanted: SubscriptionTopics) -> None:
        """Add a listener for `wanted`."""
        self._shared[listener] = wanted

    def leave(self, listener: ChangeListener) -> bool:
        """Remove a listener; return False if it was not there."""
        return self._shared.pop(listener, None) is not None

    def move_to(self, other: SubscriptionRouter) -> None:
        """Move all listeners to the router of another session."""
        other._shared.update(self._shared)
        for uri, count in self.subscribed.items():
            other.subscribed[uri] = other.subscribed.get(uri, 0) + count
        self._shared.clear()
        self.subscribed.clear()

    def end(self, error: ConnectionLost) -> None:
        """End all listeners with an error; open `subscriptions/listen` end by their replies."""
        if self.callback_subscription is not None:
            self.callback_subscription.stop()
        listeners, self._shared = self._shared, {}
        for listener in listeners:
            listener.on_end(error, None)

    # -- coming in ---------------------------------------------------------------------------

    def take(self, method: str, params: Any) -> bool:
        """Deliver a notification; return False if it is for the callbacks."""
        if not self._session.is_per_request:
            if self._shared and method in _KINDS:
                return self._deliver_shared(method, params)
            return False
        if method == _CANCELLED:
            return self._cancelled(params)
        if method not in _on_streams(self._session.revision):
            return False
        id = self._id_of(params)
        if id is None:
            if method == _ACKNOWLEDGED:
                self._server_log.warning("%s without a subscription id: ignored", _ACKNOWLEDGED)
            return method == _ACKNOWLEDGED
        stream = self._find(id)
        if stream is None:
            if self._closed_ids is None or id not in self._closed_ids:
                text = "%s for the unknown subscription %s: ignored"
                self._server_log.warning(text, show(method), show(id))
            return True
        if method == _ACKNOWLEDGED:
            self._acknowledge(stream, params)
            return True
        return stream.listener is not None and self._deliver(
            stream, stream.listener, method, params
        )

    def _find(self, id: RequestId) -> ListenStream | None:
        stream = self._open.get(id)
        if stream is not None or self._starting is None:
            return stream
        # A reply during `send`: the id of the request being sent is not known yet.
        known = self._closed_ids is not None and id in self._closed_ids
        return None if known else self._starting

    def _id_of(self, params: Any) -> RequestId | None:
        """Return the subscription id of a notification, or None."""
        try:
            marked: _SubscriptionParams = decoder(_SubscriptionParams)(
                b"{}" if params is UNSET else params
            )
        except UNREADABLE:
            return None
        if marked.meta is UNSET or marked.meta.subscription_id is UNSET:
            return None
        return marked.meta.subscription_id

    def _acknowledge(self, stream: ListenStream, params: Any) -> None:
        said = self._callbacks.read(
            _ACKNOWLEDGED, params, SubscriptionsAcknowledgedNotificationParams
        )
        if said is not None and not stream.acknowledged.done():
            stream.acknowledged.set_result(said.notifications)

    def _cancelled(self, params: Any) -> bool:
        note = self._callbacks.read(_CANCELLED, params, CancelledNotificationParams)
        if note is None or note.request_id is UNSET:
            return False
        stream = self._find(note.request_id)
        if stream is None:
            return self._closed_ids is not None and note.request_id in self._closed_ids
        if stream.pending is None:
            stream.early_end = note
        else:
            self._end_by_server(stream, note)
        return True

    def _end_by_server(self, stream: ListenStream, note: CancelledNotificationParams) -> None:
        reason = None if note.reason is UNSET else note.reason
        if self._forget(stream) and stream.pending is not None:
            self._session.forget(stream.pending)
        if stream.acknowledged.done():
            self._notify_end(stream, None, reason)
        else:
            why = "the server ended the subscription" + (
                "" if reason is None else f": {show(reason)}"
            )
            stream.acknowledged.set_exception(Cancelled(why, method=LISTEN))

    def _deliver(
        self, stream: ListenStream, listener: ChangeListener, method: str, params: Any
    ) -> bool:
        change = self._read(method, params)
        if change is not None:
            # The callbacks have their own subscription; the cache is shared.
            self._callbacks.drop_cached(method, change.uri)
            if stream.wanted.takes(change):
                listener.on_change(change, weigh(params))
            else:
                self._server_log.warning(
                    "%s was not requested by this subscription: ignored", show(method)
                )
        return True

    def _deliver_shared(self, method: str, params: Any) -> bool:
        """Deliver a notification to all listeners; return False if it is for the callbacks too."""
        change = self._read(method, params)
        if change is None:
            return False
        is_wanted = False
        for listener, wanted in list(self._shared.items()):
            if wanted.takes(change) and (change.uri is None or wanted.names(change.uri)):
                is_wanted = True
                listener.on_change(change, weigh(params))
        if not is_wanted or change.uri is None or _names(self.callback_uris, change.uri):
            return False
        # Requested by `listen` only, so the callbacks do not receive it, as since 2026-07-28.
        self._callbacks.drop_cached(method, change.uri)
        return True

    def _read(self, method: str, params: Any) -> ServerChange | None:
        kind = _KINDS.get(method)
        if kind == "resource":
            note = self._callbacks.read(method, params, ResourceUpdatedNotificationParams)
            return None if note is None else ServerChange(kind, uri=note.uri)
        if kind == "task":
            task = self._callbacks.read(method, params, TaskStatusNotificationParams)
            return None if task is None else ServerChange(kind, task=task)
        return None if kind is None else ServerChange(kind)


def _names(uris: Collection[str], uri: str) -> bool:
    return any(uri == each or uri.startswith(each.rstrip("/") + "/") for each in uris)
