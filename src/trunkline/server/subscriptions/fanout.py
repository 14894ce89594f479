"""Fan-out of change notifications to many subscribers: encoded once, sent in slices, in order.

A `Fanout` belongs to one event loop. `notify` accepts a change from any thread, and sends it to
every `FanoutListener` of its `Topic`. `registry.py` owns the table of listeners, which may change
while a fan-out is in progress.

The rules that live here, and only here:

* A notification is encoded once. Sessions of the handshake get the same bytes; a listen stream
  gets them with the id of its request inserted.
                                            [MCP 2026-07-28, basic/patterns/subscriptions]
* One turn of the event loop sends to at most `SLICE_LISTENERS`, so that a large fan-out does not
  delay other work.
* A topic is finished before the next one begins, so notifications arrive in the order of changes.
  A topic that is queued is not queued a second time.
* Changes of a list within `COALESCE_INTERVAL_S` become one notification.
* A listener that leaves during a fan-out gets nothing more; one that joins gets the next change.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET
from msgspec.json import encode
from msgspec.structs import replace

from ...jsonrpc.messages import Notification, shown_tuple
from ...mcp.meta import SUBSCRIPTION_ID
from ...mcp.names import spoken
from ...redaction import show
from ..dispatch.connection import MAX_BACKLOG_BYTES
from ..errors import as_redacted

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...jsonrpc.codec.codec import Codec
    from ...jsonrpc.peer.incoming import IncomingRequest
    from ..dispatch.connection import Connection
    from ..dispatch.revision import ServerRevision

__all__ = ["Fanout", "FanoutListener", "Notice", "Topic", "notice_of"]

_log: Final = logging.getLogger("trunkline.server")

# Per turn of the event loop. A transport that writes at once takes a system call of about 10 us
# for each: a turn then takes about 1 ms.
SLICE_LISTENERS: Final = 100
# Delay before a list change is sent, so that adding a hundred tools makes one notification.
COALESCE_INTERVAL_S: Final = 0.02

_KEY: Final = encode(SUBSCRIPTION_ID) + b":"


class Topic(NamedTuple):
    """What can change: a notification method, and a URI or task id; "" for a list."""

    method: str
    about: str = ""

    def __repr__(self) -> str:
        return shown_tuple(self)


class FanoutListener:
    """A subscriber: the session of a connection, or one `subscriptions/listen` request."""

    __slots__ = ("asked", "connection", "id", "principal", "rev", "route", "topics", "transport")

    def __init__(
        self,
        connection: Connection,
        asked: IncomingRequest | None = None,
        rev: ServerRevision | None = None,
    ) -> None:
        self.connection = connection
        self.transport = connection.transport
        # Of a listen request; a session has none.
        self.asked = asked
        self.rev = rev
        self.route = None if asked is None else asked.route
        # As JSON: 7 stays a number, "7" a string.
        self.id = None if asked is None else encode(asked.id)
        self.topics: dict[Topic, None] = {}
        # That of the last request that subscribed.
        self.principal: Principal | None = None


Listeners = Mapping[Topic, Mapping[FanoutListener, None]]
ReaderCheck = Callable[[Topic], Callable[[FanoutListener], bool] | None]


class Notice(NamedTuple):
    """An encoded notification: whole for sessions, in two parts for listen streams."""

    whole: bytes
    # Before and after the id of a listen request.
    head: bytes
    tail: bytes

    def __repr__(self) -> str:
        return shown_tuple(self)


def notice_of(topic: Topic, params: Any, codec: Codec) -> Notice:
    """Encode a notification; `params` is a wire Struct, or None.

    Raises:
        LocalProtocolError: the params cannot be encoded.
    """
    meta: dict[str, Any] = {}
    absent = (None, UNSET)  # by the kind of params
    if params is not None and params.meta not in absent:
        meta, params = params.meta, replace(params, meta=UNSET)
    whole = codec.encode(Notification(spoken(topic.method, codec.policy), params))
    # Params are the last member of a message, and `_meta` becomes the last of them.
    head = whole[:-1] + b',"params":{' if params is None else whole[:-2]
    head += b'"_meta":' if head.endswith(b"{") else b',"_meta":'
    head += encode(meta)[:-1] + b"," if meta else b"{"
    return Notice(whole, head + _KEY, b"}}}")


class Fanout:
    """The queue of changes to send on one event loop."""

    __slots__ = (
        "_coalescing",
        "_codec",
        "_current",
        "_handed_in",
        "_is_busy",
        "_listeners",
        "_lock",
        "_members",
        "_notice",
        "_on_slow",
        "_permits",
        "_reader_check",
        "_rest",
        "_thread",
        "_waiting",
        "loop",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        codec: Codec,
        listeners: Listeners,
        on_slow: Callable[[FanoutListener, Topic], object],
        reader_check: ReaderCheck = lambda topic: None,
    ) -> None:
        self.loop = loop
        self._thread = threading.get_ident()
        self._codec = codec
        self._listeners = listeners
        # Called with a listener whose transport has too much unread data, and what it would get.
        self._on_slow = on_slow
        # Called with a topic; returns what decides on each listener, or None if all may get it.
        self._reader_check = reader_check
        # At most as long as the table of listeners: a topic without listeners is ignored.
        self._waiting: OrderedDict[Topic, Any] = OrderedDict()
        self._coalescing: dict[Topic, None] = {}
        self._is_busy = False
        # The change being sent, and the listeners it has not been sent to.
        self._current: tuple[Topic, Any] | None = None
        self._notice: Notice | None = None
        self._permits: Callable[[FanoutListener], bool] | None = None
        self._members: Mapping[FanoutListener, None] = {}
        self._rest: Iterator[FanoutListener] = iter(())
        # From other threads, not seen by the loop yet.
        self._handed_in: dict[Topic, Any] = {}
        self._lock = threading.Lock()

    # -- queueing ----------------------------------------------------------------------------

    def notify(self, topic: Topic, params: Any = None) -> None:
        """Queue a change for the listeners of a topic. May be called from any thread.

        A topic that is still queued is sent once, with the latest params.
        """
        if topic not in self._listeners:
            return
        try:
            if threading.get_ident() == self._thread:
                self._take(topic, params)
            else:
                self._hand_in(topic, params)
        except RuntimeError:
            pass  # the loop is closed, and its connections with it

    def _hand_in(self, topic: Topic, params: Any) -> None:
        with self._lock:
            is_first = not self._handed_in
            self._handed_in[topic] = params
        # One callback for all of them: a busy thread cannot fill the queue of the loop.
        if is_first:
            self.loop.call_soon_threadsafe(self._take_handed_in)

    def _take_handed_in(self) -> None:
        with self._lock:
            handed_in, self._handed_in = self._handed_in, {}
        for topic, params in handed_in.items():
            self._take(topic, params)

    def _take(self, topic: Topic, params: Any) -> None:
        if params is not None:
            self._queue(topic, params)
        elif topic not in self._coalescing:
            self.loop.call_later(COALESCE_INTERVAL_S, self._coalesced, topic)
            self._coalescing[topic] = None

    def _coalesced(self, topic: Topic) -> None:
        del self._coalescing[topic]
        self._queue(topic, None)

    def _queue(self, topic: Topic, params: Any) -> None:
        if not self._is_busy:
            self.loop.call_soon(self._turn)
            self._is_busy = True
        self._waiting[topic] = params

    # -- sending -----------------------------------------------------------------------------

    def _turn(self) -> None:
        left = SLICE_LISTENERS
        while left > 0:
            listeners = list(islice(self._rest, left))
            if listeners and self._notice is not None and self._current is not None:
                if self._permits is not None:
                    allowed = filter(self._permits, listeners)
                    self._send(allowed, self._members, self._notice, self._current[0])
                else:
                    self._send(listeners, self._members, self._notice, self._current[0])
                left -= len(listeners)
            elif self._begin():
                left -= 1  # encoding takes as long as sending to one listener
            else:
                self._is_busy = False
                return
        self.loop.call_soon(self._turn)

    def _begin(self) -> bool:
        """Begin the change that has waited longest; return False if the queue is empty."""
        self._current = None
        if not self._waiting:
            self._members, self._rest, self._notice = {}, iter(()), None
            return False
        topic, params = self._waiting.popitem(last=False)
        self._members = self._listeners.get(topic, {})
        self._rest = iter(())
        if self._members and (notice := self._written(topic, params)) is not None:
            self._current, self._notice = (topic, params), notice
            self._permits = self._reader_check(topic)
            # A copy: listeners join and leave between slices.
            self._rest = iter(tuple(self._members))
        return True

    def _written(self, topic: Topic, params: Any) -> Notice | None:
        try:
            return notice_of(topic, params, self._codec)
        except Exception as error:  # noqa: BLE001  # the rest of the queue must go out
            trace = as_redacted(error)
            _log.error("%s of %s not sent\n%s", topic.method, show(topic.about), trace)
            return None

    def _send(
        self,
        listeners: Iterable[FanoutListener],
        members: Container[FanoutListener],
        notice: Notice,
        topic: Topic,
    ) -> None:
        whole, head, tail = notice
        for listener in listeners:
            if listener not in members:
                continue  # it left between slices
            transport, id = listener.transport, listener.id
            try:
                if transport.backlog > MAX_BACKLOG_BYTES:
                    self._on_slow(listener, topic)
                elif id is None:
                    transport.send(whole)
                else:
                    transport.send(head + id + tail, listener.route)
            except Exception as error:  # noqa: BLE001  # one transport's fault; others go on
                _log.error("change notification not sent\n%s", as_redacted(error))

    def catch_up(self, listener: FanoutListener) -> None:
        """Send a listener that is about to leave the changes that are still queued."""
        owed = [] if self._current is None else [self._current]
        owed += [*self._waiting.items(), *((topic, None) for topic in self._coalescing)]
        for topic, params in owed:
            self.send_to(listener, topic, params)

    def send_to(self, listener: FanoutListener, topic: Topic, params: Any) -> None:
        """Send a change to one listener, if it still listens to the topic."""
        permits = self._reader_check(topic)
        if permits is not None and not permits(listener):
            return
        if topic in listener.topics and (notice := self._written(topic, params)) is not None:
            self._send((listener,), (listener,), notice, topic)
