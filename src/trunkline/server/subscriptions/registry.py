"""Who listens to what, on all connections of a server, in both eras.

`SubscriptionRegistry` is the one place that knows it: sessions, with the resources they
subscribed to and the lists they were told of, and the open requests `subscriptions/listen`.
What may be listened to is decided in `listening.py` and `serving.py`, how a change reaches
many is in `fanout.py`; here is who joins, who leaves, and how a stream ends.

Who listens to one thing is found without a look at anybody else.

The rules that live here, and only here:

* A stream ends in one of four ways. The client cancels it: nothing more is sent. The connection
  ends. The server ends: the request is answered, with an empty result. The client reads too
  slowly: it is told so by `notifications/cancelled`.
                     [MCP 2026-07-28, basic/patterns/subscriptions, basic/patterns/cancellation]
* A session has no stream that could be ended, and a change that it is not told of would stay
  unknown to it. One that reads too slowly loses its connection, as who sends and does not read.
* A listen request is no handler: it takes no place among those at work, and has no task.

All of it belongs to the event loop, but for `list_changed`, `resource_updated` and
`task_changed`: those may be called from any thread, and before anybody is served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET

from ...errors import TransportError
from ...jsonrpc.messages import RequestId
from ...mcp.meta import SUBSCRIPTION_ID, Caller
from ...mcp.types import (
    CancelledNotificationParams,
    ResourceUpdatedNotificationParams,
    SubscriptionsListenResult,
)
from ...redaction import show
from ..dispatch.connection import Connection
from .fanout import Fanout, FanoutListener, Topic

if TYPE_CHECKING:
    from ...jsonrpc.incoming import IncomingRequest
    from ..core import ServerCore
    from ..dispatch.revision import Surface

__all__ = ["LISTS", "SubscriptionRegistry", "list_topic", "resource_topic", "task_topic"]

_log: Final = logging.getLogger("trunkline.server")

# The lists whose changes are told.
LISTS: Final = ("tools", "prompts", "resources")

# Given who asks and the ids of tasks, those of them that it may be told of. It may refuse the
# whole request by raising `RequestError`.
HonouredTaskIds: TypeAlias = Callable[[Connection, Caller | None, list[str]], list[str]]

_TOO_SLOW: Final = "The client reads too slowly: too much of what it was sent is unread."


def list_topic(what: str) -> Topic:
    """Return what says that a list has changed."""
    return Topic(f"notifications/{what}/list_changed")


def resource_topic(uri: str) -> Topic:
    """Return what says that a resource has changed."""
    return Topic("notifications/resources/updated", uri)


def task_topic(task_id: str) -> Topic:
    """Return what says how a task stands."""
    return Topic("notifications/tasks", task_id)


class _ConnectionSubscriptions:
    """What one connection listens with."""

    __slots__ = ("named", "session", "streams")

    def __init__(self) -> None:
        self.session: FanoutListener | None = None
        self.streams: dict[IncomingRequest, FanoutListener] = {}
        # How many topics are about one thing each: only those can a client invent.
        self.named = 0


class SubscriptionRegistry:
    """Who is told of what by one server."""

    def __init__(self, app: ServerCore) -> None:
        self._app = app
        self._listeners: dict[Topic, dict[FanoutListener, None]] = {}
        self._ears: dict[Connection, _ConnectionSubscriptions] = {}
        # Made for the loop that the first listener is on; a server is on one at a time.
        self._fanout: Fanout | None = None
        # Of the servers that this one is mounted in: they offer its resources as well.
        self.followers: list[SubscriptionRegistry] = []
        # Without it nobody may be told of tasks.
        self.honoured_task_ids: HonouredTaskIds | None = None

    def __repr__(self) -> str:
        return f"<Streams of {self._app.name!r}: {len(self._listeners)} topics>"

    # -- what has changed --------------------------------------------------------------------

    def list_changed(self, what: str) -> None:
        """Tell that "tools", "prompts" or "resources" have changed, soon and once for many."""
        self._tell(list_topic(what))

    def resource_updated(self, uri: str) -> None:
        """Tell who listens to a resource that it has changed, here or where we are mounted."""
        self._tell(resource_topic(uri), ResourceUpdatedNotificationParams(uri))
        for follower in self.followers:
            follower.resource_updated(uri)

    def task_changed(self, task_id: str, params: Any) -> None:
        """Tell who listens to a task how it stands; `params` are the wire's, for 2026-07-28."""
        self._tell(task_topic(task_id), params)
        for follower in self.followers:
            follower.task_changed(task_id, params)

    def _tell(self, topic: Topic, params: Any = None) -> None:
        fanout = self._fanout
        if fanout is not None:
            fanout.tell(topic, params)

    # -- sessions ----------------------------------------------------------------------------

    def ready(self, connection: Connection) -> None:
        """Begin to tell a session of changes of the lists that it was told of."""
        session = connection.session
        told = [] if session is None else [each for each in LISTS if session.was_told_of(each)]
        if told:
            listener = self._session(connection)
            for what in told:
                self._join(listener, list_topic(what))

    def subscribe(self, connection: Connection, uri: str) -> bool:
        """Let a session hear of a resource; say no if it has too many of them."""
        listener, topic = self._session(connection), resource_topic(uri)
        if topic not in listener.topics:
            if self.no_room(connection, 1) is not None:
                return False
            self._join(listener, topic)
        return True

    def unsubscribe(self, connection: Connection, uri: str) -> None:
        """Let a session hear no more of a resource; one that it does not hear of is ignored."""
        ears = self._ears.get(connection)
        if ears is not None and ears.session is not None:
            self._part(ears.session, resource_topic(uri))

    def _session(self, connection: Connection) -> FanoutListener:
        ears = self._ears_of(connection)
        if ears.session is None:
            ears.session = FanoutListener(connection)
        return ears.session

    # -- listen requests ---------------------------------------------------------------------

    def no_room(self, connection: Connection, named: int, *, is_stream: bool = False) -> str | None:
        """Return why a connection may not listen to `named` things more, or None if it may."""
        ears, limits = self._ears.get(connection), self._app.limits
        if is_stream and ears is not None and len(ears.streams) >= limits.streams:
            return f"No more than {limits.streams} streams at once"
        if (0 if ears is None else ears.named) + named > limits.subscriptions:
            return f"No more than {limits.subscriptions} subscriptions"
        return None

    def open(
        self,
        connection: Connection,
        asked: IncomingRequest,
        surface: Surface,
        topics: Iterable[Topic],
    ) -> None:
        """Take in a listen request: it hears of these topics until it ends."""
        listener = FanoutListener(connection, asked, surface)
        self._ears_of(connection).streams[asked] = listener
        for topic in topics:
            self._join(listener, topic)

    def cancel(self, connection: Connection, id: RequestId) -> None:
        """Send nothing more to the listen request of that id, if there is one."""
        ears, asked = self._ears.get(connection), connection.peer.incoming.find(id)
        if ears is not None and asked is not None and asked in ears.streams:
            self._close(ears.streams[asked])

    def _close(self, listener: FanoutListener) -> None:
        """Take a listen request out of everything, without a word to its client."""
        for topic in tuple(listener.topics):
            self._part(listener, topic)
        if listener.asked is not None:
            self._ears[listener.connection].streams.pop(listener.asked, None)

    def _on_slow(self, listener: FanoutListener) -> None:
        """Stop telling somebody who has too much unread."""
        connection, asked = listener.connection, listener.asked
        if asked is None:
            connection.end(TransportError("the client does not read what it is told"))
            return
        self._close(listener)
        _log.warning("stream %s was dropped: %s", show(asked.id), _TOO_SLOW)
        params = CancelledNotificationParams(
            request_id=UNSET if asked.id is None else asked.id,
            reason=_TOO_SLOW,
            meta={SUBSCRIPTION_ID: asked.id},
        )
        connection.notify("notifications/cancelled", params, asked.route)
        connection.peer.drop(asked)

    # -- the end of a connection -------------------------------------------------------------

    def finish(self, connection: Connection) -> None:
        """Tell a client what it has not been told yet, and answer its listen requests."""
        ears, fanout = self._ears.get(connection), self._fanout
        if ears is None or fanout is None:
            return
        if ears.session is not None:
            fanout.catch_up(ears.session)
        for listener in tuple(ears.streams.values()):
            fanout.catch_up(listener)
            self._close(listener)
            asked, surface = listener.asked, listener.surface
            if asked is not None and surface is not None:
                ended = SubscriptionsListenResult(meta={SUBSCRIPTION_ID: asked.id})
                connection.answer(asked, surface.result(ended), surface.policy)

    def leave(self, connection: Connection) -> None:
        """Forget a connection, which has ended."""
        ears = self._ears.get(connection)
        if ears is None:
            return
        for listener in (*ears.streams.values(), ears.session):
            if listener is not None:
                self._close(listener)
        del self._ears[connection]

    # -- the table ---------------------------------------------------------------------------

    def _ears_of(self, connection: Connection) -> _ConnectionSubscriptions:
        found = self._ears.get(connection)
        if found is None:
            self._be_on(connection)
            found = self._ears[connection] = _ConnectionSubscriptions()
        return found

    def _be_on(self, connection: Connection) -> None:
        """Make sure that what is told is told on the loop of this connection."""
        if self._fanout is None or self._fanout.loop is not connection.loop:
            # Whoever was on another loop is gone with it.
            self._listeners.clear()
            self._ears.clear()
            codec = self._app.newest.codec("default")
            self._fanout = Fanout(connection.loop, codec, self._listeners, self._on_slow)

    def _join(self, listener: FanoutListener, topic: Topic) -> None:
        if topic not in listener.topics:
            listener.topics[topic] = None
            self._listeners.setdefault(topic, {})[listener] = None
            self._ears[listener.connection].named += bool(topic.about)

    def _part(self, listener: FanoutListener, topic: Topic) -> None:
        if topic in listener.topics:
            del listener.topics[topic]
            self._ears[listener.connection].named -= bool(topic.about)
            members = self._listeners[topic]
            del members[listener]
            if not members:
                del self._listeners[topic]
