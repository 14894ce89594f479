"""To which stream of changes a notification belongs, on one connection.

In 2026-07-28 a stream is a `subscriptions/listen` that is open, and what it brings carries the
id of that request. In the revisions before there is one stream of everything: whoever listens
is told all of it, and takes what he asked for. What a listener then does is his own affair.

The rules that live here, and only here:

* A notification is for the stream whose id it carries; 7 and "7" are two ids. One of a stream
  that is not ours is ignored.         [MCP 2026-07-28, basic/patterns/subscriptions]
* A stream begins with its acknowledgement, for which there is a time; once it is open there is
  none.
* A server ends a stream with the result of its request, or with `notifications/cancelled` that
  names it: one page says so, and another the other. Either will do, and both in any order.
                    [MCP 2026-07-28, basic/patterns/subscriptions and /cancellation]
* The callbacks are told of the resources that were subscribed to for them. What only a stream has
  asked for is told by that stream, in every revision.
* One without an id is for the callbacks, as it always was: some servers forget to write it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import UNSET, Struct, UnsetType, field

from ...errors import (
    Cancelled,
    ConnectionLost,
    RemoteProtocolError,
    RequestAborted,
    RequestTimeout,
    TrunklineError,
)
from ...jsonrpc.decode_errors import UNREADABLE
from ...jsonrpc.messages import RequestId
from ...jsonrpc.outgoing import Pending
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
from ..diagnostics import RateLimitedLog
from ..requests.decode import decoder
from .notifications import NotificationCallbacks

if TYPE_CHECKING:
    from ..session import Session
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

# Of streams that we have left, what was on its way still comes; so many are told from streams
# that never were. Nobody opens more in the time a message travels.
_LEFT_KEPT: Final = 64

ChangeKind: TypeAlias = Literal["tools", "prompts", "resources", "resource", "task"]
OnStreamEnd: TypeAlias = Callable[[TrunklineError | None], object]

# Which notification tells of what.
_KINDS: Final[dict[str, ChangeKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    _UPDATED: "resource",
    "notifications/tasks": "task",
    "notifications/tasks/status": "task",
}


class ServerChange(Struct, frozen=True):
    """Something on the server is not what it was.

    `kind` says what: a list ("tools", "prompts", "resources"), one "resource", whose `uri` is
    given, or one "task", which is given as it stands.
    """

    kind: ChangeKind
    uri: str | None = None
    task: TaskStatusNotificationParams | None = None

    def __repr__(self) -> str:
        what = "" if self.uri is None else f" {show(self.uri)}"
        if self.task is not None:
            what = f", {self.task.status}"
        return f"<Change of {self.kind}{what}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # a Struct's own would show the id of a task, which is a right


class SubscriptionTopics(NamedTuple):
    """What is listened for; of what a server acknowledged, what will be told."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it is nothing at all."""
        return not any(self)

    def __repr__(self) -> str:
        shown = [name for name in ("tools", "prompts", "resources") if getattr(self, name)]
        shown += [show(uri) for uri in self.uris]
        if self.task_ids:
            # How many, and not which: the id of a task is a right.
            shown.append(f"{len(self.task_ids)} task{'s' if len(self.task_ids) > 1 else ''}")
        return f"<SubscriptionTopics, {', '.join(shown) or 'nothing'}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # that of a tuple would show all of it

    def takes(self, change: ServerChange) -> bool:
        """Say whether a change is of a kind that this asked for."""
        if change.task is not None:
            return change.task.task_id in self.task_ids
        if change.kind == "resource":
            # Which one is for the server to say: it may be a part of the one asked for.
            return bool(self.uris)
        return bool(getattr(self, change.kind))

    def names(self, uri: str) -> bool:
        """Say whether a resource is one of those asked for, or lies below one."""
        return _names(self.uris, uri)

    def on_the_wire(self) -> SubscriptionFilter:
        """Return it as it is sent: what is not wanted is left out."""
        return SubscriptionFilter(
            prompts_list_changed=self.prompts or UNSET,
            resource_subscriptions=list(self.uris) or UNSET,
            resources_list_changed=self.resources or UNSET,
            task_ids=list(self.task_ids) or UNSET,
            tools_list_changed=self.tools or UNSET,
        )

    def honoured_by(self, said: SubscriptionFilter) -> SubscriptionTopics:
        """Return what is left of it; what a server adds was not asked for."""
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
    """Whoever is told of changes."""

    def on_change(self, change: ServerChange, size: int) -> None:
        """Take a change, whose notification had so many bytes."""

    def on_end(self, error: TrunklineError | None, reason: str | None) -> None:
        """Learn that no more will come: by an error, or because the server ended it."""


class ListenStream:
    """One `subscriptions/listen` that is open, or about to be.

    One without a listener is the client's own: what it brings goes to the callbacks.
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
        # Where the server ended it before we had sent the request, as it were.
        self.early_end: CancelledNotificationParams | None = None
        # Whether the server has ended it, and by which error. It may have done so together with
        # its acknowledgement, before whoever opened it could know that it was open.
        self.has_ended = False
        self.error: TrunklineError | None = None


class SubscribeTurn:
    """Who asks for a resource, one after the other, where subscribing is a request."""

    __slots__ = ("holders", "is_released", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        # How many want their turn, or have it.
        self.holders = 0
        # Whether meanwhile the last has left who wanted the resource before.
        self.is_released = False


class _Marks(Struct):
    """Of the `_meta` of a notification, what says whose it is."""

    subscription_id: RequestId | UnsetType = field(default=UNSET, name=SUBSCRIPTION_ID)


class _Marked(Struct):
    meta: _Marks | UnsetType = field(default=UNSET, name="_meta")


@lru_cache
def _on_streams(revision: str) -> frozenset[str]:
    """Return the notifications that travel on a stream of `revision`, and nowhere else."""
    return frozenset(row.name for row in lookup.methods(revision) if row.stream == LISTEN)


class SubscriptionRouter:
    """Who listens on one connection."""

    __slots__ = (
        "_callbacks",
        "_everyone",
        "_left",
        "_open",
        "_own",
        "_server_log",
        "_session",
        "_starting",
        "callback_subscription",
        "subscribed",
        "turns",
    )

    def __init__(
        self, session: Session, callbacks: NotificationCallbacks, server_log: RateLimitedLog
    ) -> None:
        self._session = session
        self._callbacks = callbacks
        self._server_log = server_log
        # Streams by the id of their request.
        self._open: dict[RequestId, ListenStream] = {}
        # Ids of streams that are no more; made when the first ends.
        self._left: deque[RequestId] | None = None
        # The stream whose request is being sent: its acknowledgement may come before that ends.
        self._starting: ListenStream | None = None
        # Who listens where there is one stream of everything, and to what; in order.
        self._everyone: dict[ChangeListener, SubscriptionTopics] = {}
        # There, how many of them want a resource that was subscribed to.
        self.subscribed: dict[str, int] = {}
        # And what was subscribed to for the callbacks.
        self._own: Collection[str] = ()
        # Which resources are being subscribed to, or unsubscribed from: one asks at a time.
        self.turns: dict[str, SubscribeTurn] = {}
        # The stream that the client keeps for its callbacks, if it has any.
        self.callback_subscription: CallbackSubscription | None = None

    # -- streams of their own ----------------------------------------------------------------

    async def open(
        self,
        wanted: SubscriptionTopics,
        seconds: float,
        listener: ChangeListener | None = None,
        on_end: OnStreamEnd | None = None,
    ) -> ListenStream:
        """Return a new stream, which the server has acknowledged, and may have ended again.

        `on_end` is called, with an error or None, when one without a listener has ended.

        Raises:
            PeerError: the server refused.
            RequestAborted: it said nothing within `seconds`, ended the stream, or is gone.
            RemoteProtocolError: it ended a stream that it had not begun.
            IdsExhausted: the connection has no id left.
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
        except BaseException:  # a cancelled task too: nobody would leave this stream
            self.close(stream)
            raise
        stream.honoured = wanted.honoured_by(said)
        return stream

    def close(self, stream: ListenStream, reason: str = "nobody listens any more") -> None:
        """Leave a stream, and tell the server; one that has ended is left as it is."""
        if self._forget(stream) and stream.pending is not None:
            self._session.abandon(stream.pending, reason)

    def _forget(self, stream: ListenStream) -> bool:
        """Take a stream out; say whether it was open."""
        pending = stream.pending
        if pending is None or self._open.get(pending.id) is not stream:
            return False
        del self._open[pending.id]
        if self._left is None:
            self._left = deque(maxlen=_LEFT_KEPT)
        self._left.append(pending.id)
        return True

    def _replied(self, stream: ListenStream, waiter: asyncio.Future[Any]) -> None:
        error = None if waiter.cancelled() else waiter.exception()
        was_open = self._forget(stream)
        if error is not None and not isinstance(error, TrunklineError):
            error = RequestAborted("its answer could not be read", method=LISTEN)
        if not stream.acknowledged.done():
            rule = "mcp.subscriptions.acknowledged-first"
            expected = f"{_ACKNOWLEDGED} before the result of {LISTEN}"
            stream.acknowledged.set_exception(
                RemoteProtocolError(rule, expected=expected) if error is None else error
            )
            stream.acknowledged.exception()  # whoever waited for it may have gone
        elif was_open:
            self._tell_end(stream, error, None)

    def _tell_end(
        self, stream: ListenStream, error: TrunklineError | None, reason: str | None
    ) -> None:
        stream.has_ended, stream.error = True, error
        if stream.listener is not None:
            stream.listener.on_end(error, reason)
        elif stream.on_end is not None:
            stream.on_end(error)

    # -- one stream of everything ------------------------------------------------------------

    def join(
        self,
        listener: ChangeListener,
        wanted: SubscriptionTopics,
        own: Collection[str] | None = None,
    ) -> None:
        """Tell a listener of what he wants, where there is one stream of everything.

        `own` are the resources of which the callbacks are told as well.
        """
        self._everyone[listener] = wanted
        if own is not None:
            self._own = own

    def leave(self, listener: ChangeListener) -> bool:
        """Tell him no more; say whether he was told until now."""
        return self._everyone.pop(listener, None) is not None

    def move_to(self, other: SubscriptionRouter) -> None:
        """Have everyone listen there from now on."""
        other._everyone.update(self._everyone)
        other._own = self._own
        for uri, count in self.subscribed.items():
            other.subscribed[uri] = other.subscribed.get(uri, 0) + count
        self._everyone.clear()
        self.subscribed.clear()

    def end(self, error: ConnectionLost) -> None:
        """Tell everyone that the connection is gone; streams of their own learn it by their id."""
        if self.callback_subscription is not None:
            self.callback_subscription.stop()
        everyone, self._everyone = self._everyone, {}
        for listener in everyone:
            listener.on_end(error, None)

    # -- coming in ---------------------------------------------------------------------------

    def take(self, method: str, params: Any) -> bool:
        """Bring a notification to whom it belongs; say whether nobody else is to be told."""
        if not self._session.is_per_request:
            if self._everyone and method in _KINDS:
                return self._tell_everyone(method, params)
            return False
        if method == _CANCELLED:
            return self._cancelled(params)
        if method not in _on_streams(self._session.revision):
            return False
        id = self._id_of(params)
        if id is None:
            if method == _ACKNOWLEDGED:
                self._server_log.warning("%s came and does not say which one", _ACKNOWLEDGED)
            return method == _ACKNOWLEDGED
        stream = self._find(id)
        if stream is None:
            if self._left is None or id not in self._left:
                text = "%s came for the subscription %s, which this client has not"
                self._server_log.warning(text, show(method), show(id))
            return True
        if method == _ACKNOWLEDGED:
            self._acknowledge(stream, params)
            return True
        return stream.listener is not None and self._tell(stream, stream.listener, method, params)

    def _find(self, id: RequestId) -> ListenStream | None:
        stream = self._open.get(id)
        if stream is not None or self._starting is None:
            return stream
        # It answers while we still write: the only request whose id we cannot know is this.
        known = self._left is not None and id in self._left
        return None if known else self._starting

    def _id_of(self, params: Any) -> RequestId | None:
        """Return whose a notification says it is, or None where it does not."""
        try:
            marked: _Marked = decoder(_Marked)(b"{}" if params is UNSET else params)
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
            return self._left is not None and note.request_id in self._left
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
            self._tell_end(stream, None, reason)
        else:
            why = "the server ended it" + ("" if reason is None else f": {show(reason)}")
            stream.acknowledged.set_exception(Cancelled(why, method=LISTEN))

    def _tell(
        self, stream: ListenStream, listener: ChangeListener, method: str, params: Any
    ) -> bool:
        change = self._read(method, params)
        if change is not None:
            # The callbacks have a stream of their own; what was kept is stale for everybody.
            self._callbacks.drop_kept(method, change.uri)
            if stream.wanted.takes(change):
                listener.on_change(change, _size(params))
            else:
                self._server_log.warning("%s came and was not asked for", show(method))
        return True

    def _tell_everyone(self, method: str, params: Any) -> bool:
        """Tell who wants to know; say whether it is the affair of nobody else."""
        change = self._read(method, params)
        if change is None:
            return False
        is_wanted = False
        for listener, wanted in list(self._everyone.items()):
            if wanted.takes(change) and (change.uri is None or wanted.names(change.uri)):
                is_wanted = True
                listener.on_change(change, _size(params))
        if not is_wanted or change.uri is None or _names(self._own, change.uri):
            return False
        # What only a stream has asked for is told by that, as where streams are of their own.
        self._callbacks.drop_kept(method, change.uri)
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


def _size(params: Any) -> int:
    return 0 if params is UNSET else memoryview(params).nbytes
