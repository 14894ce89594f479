"""Subscription registry: which client gets which change notification, on all connections.

`SubscriptionRegistry` holds the sessions of the handshake revisions, with the resources they
subscribed to and the lists whose `listChanged` they were offered, and the open
`subscriptions/listen` requests of 2026-07-28. `listen.py` and `dispatch/methods.py` decide what a
client may subscribe to; `fanout.py` sends a change to its subscribers. Lookup by topic costs the
same however many other subscriptions exist.

The rules that live here, and only here:

* A listen stream ends in one of four ways. The client cancels it: nothing more is sent. The
  connection ends. The server ends: the request is answered with an empty result. The client reads
  too slowly: the server sends `notifications/cancelled`.
                     [MCP 2026-07-28, basic/patterns/subscriptions, basic/patterns/cancellation]
* A session has no stream to end, and a dropped notification would leave it outdated without a
  sign. A session that reads too slowly therefore gets its changes later, each once, when it has
  read what it was sent before.
* Subscriptions use at most half of the budget of their connection, so that requests have room,
  and are not accepted beyond the budget of a client with several connections.
* A change of a resource is sent to subscribers whose scopes suffice to read it, also if it was
  registered or guarded after they subscribed.
* A listen request has no handler and no asyncio task, and does not count as a running request.

Everything here belongs to the event loop, except `list_changed`, `resource_updated` and
`task_changed`, which may be called from any thread, and before the first connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET

from ...jsonrpc.messages import RequestId
from ...mcp.meta import SUBSCRIPTION_ID
from ...mcp.types import (
    CancelledNotificationParams,
    ResourceUpdatedNotificationParams,
    SubscriptionsListenResult,
)
from ...redaction import show
from ..dispatch.connection import Connection
from ..dispatch.request import ServerRequest
from .fanout import Fanout, FanoutListener, Topic

if TYPE_CHECKING:
    import asyncio

    from ...auth.principal import Principal
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ..api.core import ServerCore
    from ..dispatch.revision import ServerRevision

__all__ = ["LISTS", "SubscriptionRegistry", "list_topic", "resource_topic", "task_topic"]

_log: Final = logging.getLogger("trunkline.server")

# The lists that have `list_changed` notifications.
LISTS: Final = ("tools", "prompts", "resources")

# Returns the task ids a caller may subscribe to; may reject the request with `RequestError`.
HonouredTaskIds: TypeAlias = Callable[[ServerRequest, list[str]], list[str]]

_UPDATED: Final = "notifications/resources/updated"
_TOO_SLOW: Final = "The client reads too slowly: too much sent data is unread."


def list_topic(what: str) -> Topic:
    """Return the topic of a list: "tools", "prompts" or "resources"."""
    return Topic(f"notifications/{what}/list_changed")


def resource_topic(uri: str) -> Topic:
    """Return the topic of a resource."""
    return Topic(_UPDATED, uri)


def task_topic(task_id: str) -> Topic:
    """Return the topic of a task."""
    return Topic("notifications/tasks", task_id)


# What a subscription takes beside the text of its URI or task id, measured: a topic, and its
# places in two tables.
_SUBSCRIPTION_BYTES: Final = 512


class _ConnectionSubscriptions:
    """The subscriptions of one connection."""

    __slots__ = ("bytes", "deferred", "named", "session", "streams")

    def __init__(self) -> None:
        self.session: FanoutListener | None = None
        self.streams: dict[IncomingRequest, FanoutListener] = {}
        # Topics with a URI or task id: only these are chosen by the client, and limited.
        self.named = 0
        # What these weigh.
        self.bytes = 0
        # Changes that the session gets when it has read what it was sent; at most its topics.
        self.deferred: dict[Topic, None] = {}


class SubscriptionRegistry:
    """The subscriptions of all connections of one server."""

    def __init__(self, app: ServerCore) -> None:
        self._app = app
        self._listeners: dict[Topic, dict[FanoutListener, None]] = {}
        # Those that have subscriptions.
        self.connections: dict[Connection, _ConnectionSubscriptions] = {}
        # Created for the loop of the first listener; a server runs on one loop at a time.
        self._fanout: Fanout | None = None
        # Of the servers this one is mounted in, which offer its resources too, with a function
        # that returns the URI that a resource has there.
        self.followers: list[tuple[SubscriptionRegistry, Callable[[str], str]]] = []
        # Listen requests on their way, while functions of the author decide on them.
        self.opening: dict[asyncio.Task[None], Connection] = {}
        # Without it the server accepts no subscriptions to tasks.
        self.honoured_task_ids: HonouredTaskIds | None = None

    def __repr__(self) -> str:
        return f"<SubscriptionRegistry of {self._app.name!r}: {len(self._listeners)} topics>"

    @property
    def open_streams(self) -> int:
        """The number of open `subscriptions/listen` requests."""
        return sum(len(each.streams) for each in list(self.connections.values()))

    # -- changes -----------------------------------------------------------------------------

    def list_changed(self, what: str) -> None:
        """Notify of a changed list ("tools", "prompts" or "resources"); repeats are coalesced."""
        self._notify(list_topic(what))

    def resource_updated(self, uri: str) -> None:
        """Notify subscribers of a resource, here and in servers that mount this one."""
        self._notify(resource_topic(uri), ResourceUpdatedNotificationParams(uri))
        for follower, mounted_uri in self.followers:
            follower.resource_updated(mounted_uri(uri))

    def task_changed(self, task_id: str, params: Any) -> None:
        """Notify subscribers of a task; `params` are the wire params of 2026-07-28."""
        self._notify(task_topic(task_id), params)
        for follower, _ in self.followers:
            follower.task_changed(task_id, params)

    def _notify(self, topic: Topic, params: Any = None) -> None:
        fanout = self._fanout
        if fanout is not None:
            fanout.notify(topic, params)

    # -- sessions ----------------------------------------------------------------------------

    def ready(self, connection: Connection) -> None:
        """Subscribe a session to the lists whose `listChanged` capability it was offered."""
        session = connection.session
        for what in LISTS:
            if session is not None and session.was_declared(what):
                self._join(self._session(connection), list_topic(what))

    def subscribe(
        self, connection: Connection, uri: str, principal: Principal | None = None
    ) -> str | None:
        """Subscribe a session to a resource; return which limit that exceeds, or None."""
        listener, topic = self._session(connection), resource_topic(uri)
        listener.principal = principal
        if topic not in listener.topics:
            exceeded = self.no_room(connection, (uri,))
            if exceeded is not None:
                return exceeded
            self._join(listener, topic)
        return None

    def unsubscribe(self, connection: Connection, uri: str) -> None:
        """Unsubscribe a session from a resource; without a subscription this does nothing."""
        entry = self.connections.get(connection)
        if entry is not None and entry.session is not None:
            self._part(entry.session, resource_topic(uri))

    def _session(self, connection: Connection) -> FanoutListener:
        entry = self._entry(connection)
        if entry.session is None:
            entry.session = FanoutListener(connection)
        return entry.session

    # -- listen requests ---------------------------------------------------------------------

    def no_room(
        self, connection: Connection, named: Collection[str], *, is_stream: bool = False
    ) -> str | None:
        """Return which limit subscriptions to these URIs and tasks exceed, or None if they fit."""
        entry, limits = self.connections.get(connection), self._app.limits
        count, weighs = (0, 0) if entry is None else (entry.named, entry.bytes)
        size = sum(map(_weight, named))
        if is_stream and entry is not None and len(entry.streams) >= limits.streams:
            limit, text = "streams", f"No more than {limits.streams} streams at once"
        elif count + len(named) > limits.subscriptions:
            limit, text = "subscriptions", f"No more than {limits.subscriptions} subscriptions"
        elif weighs + size > connection.budget.limit // 2:
            limit, text = "connection_bytes", "No room for the URIs of so many subscriptions"
        elif not connection.budget.has_shared_room(size):
            limit, text = "client_bytes", "No room for the URIs of so many subscriptions"
        else:
            return None
        self._app.runtime.counters.refuse(limit)
        return text

    def open(
        self,
        connection: Connection,
        asked: IncomingRequest,
        rev: ServerRevision,
        topics: Iterable[Topic],
    ) -> None:
        """Subscribe a listen request to these topics until it ends."""
        listener = FanoutListener(connection, asked, rev)
        listener.principal = connection.principal_of(asked)
        self._entry(connection).streams[asked] = listener
        for topic in topics:
            self._join(listener, topic)

    def cancel(self, connection: Connection, id: RequestId) -> None:
        """End the listen request of that id, if there is one; its client has cancelled it."""
        entry, asked = self.connections.get(connection), connection.peer.incoming.find(id)
        if entry is not None and asked is not None and asked in entry.streams:
            self._close(entry.streams[asked])

    def _close(self, listener: FanoutListener) -> None:
        for topic in tuple(listener.topics):
            self._part(listener, topic)
        if listener.asked is not None:
            self.connections[listener.connection].streams.pop(listener.asked, None)

    def _on_slow(self, listener: FanoutListener, topic: Topic) -> None:
        connection, asked = listener.connection, listener.asked
        connection.runner.unread.weigh()
        if asked is None:
            self._app.runtime.counters.deferred_changes += 1
            self.connections[connection].deferred[topic] = None
            return
        self._app.runtime.counters.dropped_streams += 1
        self._close(listener)
        text = "subscription stream %s dropped: %s"
        connection.log_limit.warning(text, show(asked.id), _TOO_SLOW)
        params = CancelledNotificationParams(
            request_id=UNSET if asked.id is None else asked.id,
            reason=_TOO_SLOW,
            meta={SUBSCRIPTION_ID: asked.id},
        )
        connection.notify("notifications/cancelled", params, asked.route)
        connection.peer.drop(asked)

    def drained(self, connection: Connection) -> None:
        """Send a session the changes that it was not sent while it did not read."""
        entry, fanout = self.connections.get(connection), self._fanout
        if entry is None or entry.session is None or fanout is None or not entry.deferred:
            return
        deferred, entry.deferred = entry.deferred, {}
        for topic in deferred:
            about = topic.about
            params = ResourceUpdatedNotificationParams(about) if about else None
            fanout.send_to(entry.session, topic, params)

    # -- the end of a connection -------------------------------------------------------------

    def finish(self, connection: Connection) -> None:
        """Send the queued changes of a closing connection, and answer its listen requests."""
        entry, fanout = self.connections.get(connection), self._fanout
        if entry is None or fanout is None:
            return
        if entry.session is not None:
            self.drained(connection)
            fanout.catch_up(entry.session)
        for listener in tuple(entry.streams.values()):
            fanout.catch_up(listener)
            self._close(listener)
            asked, rev = listener.asked, listener.rev
            if asked is not None and rev is not None:
                ended = SubscriptionsListenResult(meta={SUBSCRIPTION_ID: asked.id})
                connection.answer(asked, rev.result(ended), rev.policy)

    def leave(self, connection: Connection) -> None:
        """Remove the subscriptions of a closed connection."""
        entry = self.connections.get(connection)
        if entry is None:
            return
        for listener in (*entry.streams.values(), entry.session):
            if listener is not None:
                self._close(listener)
        del self.connections[connection]

    # -- the table ---------------------------------------------------------------------------

    def _entry(self, connection: Connection) -> _ConnectionSubscriptions:
        found = self.connections.get(connection)
        if found is None:
            self._use_loop_of(connection)
            found = self.connections[connection] = _ConnectionSubscriptions()
        return found

    def _use_loop_of(self, connection: Connection) -> None:
        if self._fanout is None or self._fanout.loop is not connection.loop:
            # Connections of another loop ended with it.
            self._listeners.clear()
            self.connections.clear()
            codec = self._app.newest_revision.codec("default")
            self._fanout = Fanout(
                connection.loop, codec, self._listeners, self._on_slow, self._reader_check
            )

    def _reader_check(self, topic: Topic) -> Callable[[FanoutListener], bool] | None:
        """Return what decides which subscribers get a change; None if all do."""
        if topic.method != _UPDATED or not (
            needed := self._app.catalog.scopes_of_resource(topic.about)
        ):
            return None
        missing = self._app.catalog.implied_scopes.missing

        def may_read(listener: FanoutListener) -> bool:
            principal = listener.principal
            return principal is not None and not missing(needed, principal.scopes)

        return may_read

    def _join(self, listener: FanoutListener, topic: Topic) -> None:
        if topic not in listener.topics:
            listener.topics[topic] = None
            self._listeners.setdefault(topic, {})[listener] = None
            self._count(listener.connection, topic.about, 1)

    def _part(self, listener: FanoutListener, topic: Topic) -> None:
        if topic in listener.topics:
            del listener.topics[topic]
            self._count(listener.connection, topic.about, -1)
            members = self._listeners[topic]
            del members[listener]
            if not members:
                del self._listeners[topic]

    def _count(self, connection: Connection, about: str, by: int) -> None:
        """Count a subscription that the client has chosen, or one less."""
        if about:
            entry, size = self.connections[connection], by * _weight(about)
            entry.named += by
            entry.bytes += size
            connection.budget.charge(size)


def _weight(about: str) -> int:
    return _SUBSCRIPTION_BYTES + len(about.encode("utf-8", "surrogatepass"))
