"""Telling many clients the same: written once, sent in slices, in order.

A `Fanout` belongs to one event loop. It is told what has changed, from any thread, and sends
it to each `FanoutListener` of that `Topic`. Who listens to what is for `streams.py` to say, which
hands in the table and keeps it up to date while a fan-out is under way.

The rules that live here, and only here:

* A notification is encoded once. Sessions of the handshake get the same bytes; a listen
  stream gets them with the id of its request put in.
                                            [MCP 2026-07-28, basic/patterns/subscriptions]
* So many are told in one turn of the loop, and the rest in the next: however many listen,
  nobody else waits for long.
* One topic is done with before the next is begun, so what is told in order arrives in order.
  A topic that still waits for its turn is not queued again.
* Changes of a list are gathered for a moment, and told as one.
* Who leaves meanwhile gets nothing; who joins after a topic was begun gets the next one.
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

from ...jsonrpc.messages import Notification
from ...mcp.meta import SUBSCRIPTION_ID
from ...mcp.names import spoken
from ...redaction import show
from ..dispatch.connection import MAX_BACKLOG_BYTES
from ..errors import as_redacted

if TYPE_CHECKING:
    from ...jsonrpc.codec import Codec
    from ...jsonrpc.incoming import IncomingRequest
    from ..dispatch.connection import Connection
    from ..dispatch.revision import Surface

__all__ = ["Fanout", "FanoutListener", "Notice", "Topic", "notice_of"]

_log: Final = logging.getLogger("trunkline.server")

# How many are told in one turn of the loop. Where a transport writes at once each takes a
# system call, some 10 us: a turn then takes a millisecond, which nobody notices.
SLICE_LISTENERS: Final = 100
# How long changes of a list are gathered before clients are told, in seconds: whoever adds a
# hundred tools makes one notification, and nobody notices the wait.
COALESCE_INTERVAL_S: Final = 0.02

_KEY: Final = encode(SUBSCRIPTION_ID) + b":"


class Topic(NamedTuple):
    """What can change: the notification that says so, and what it is about; "" for a list."""

    method: str
    about: str = ""


class FanoutListener:
    """Somebody who is told: the session of a connection, or one listen request."""

    __slots__ = ("asked", "connection", "id", "route", "surface", "topics", "transport")

    def __init__(
        self,
        connection: Connection,
        asked: IncomingRequest | None = None,
        surface: Surface | None = None,
    ) -> None:
        self.connection = connection
        self.transport = connection.transport
        # Of a listen request; a session has none.
        self.asked = asked
        self.surface = surface
        self.route = None if asked is None else asked.route
        # As JSON, because that is how it is put in: 7 stays a number, "7" a string.
        self.id = None if asked is None else encode(asked.id)
        self.topics: dict[Topic, None] = {}


Listeners = Mapping[Topic, Mapping[FanoutListener, None]]


class Notice(NamedTuple):
    """A notification as bytes: whole for sessions, in two parts for listen streams."""

    whole: bytes
    # What goes before and after the id of a listen request.
    head: bytes
    tail: bytes


def notice_of(topic: Topic, params: Any, codec: Codec) -> Notice:
    """Return a notification as bytes; `params` is a wire Struct, or None.

    Raises:
        LocalProtocolError: it cannot be written.
    """
    meta: dict[str, Any] = {}
    if params is not None and params.meta is not UNSET:
        meta, params = params.meta, replace(params, meta=UNSET)
    whole = codec.encode(Notification(spoken(topic.method, codec.policy), params))
    # Params are the last member of a message, and `_meta` becomes the last of them.
    head = whole[:-1] + b',"params":{' if params is None else whole[:-2]
    head += b'"_meta":' if head.endswith(b"{") else b',"_meta":'
    head += encode(meta)[:-1] + b"," if meta else b"{"
    return Notice(whole, head + _KEY, b"}}}")


class Fanout:
    """What is still to be told on one event loop."""

    __slots__ = (
        "_codec",
        "_current",
        "_gathered",
        "_handed_in",
        "_is_busy",
        "_listeners",
        "_lock",
        "_members",
        "_notice",
        "_on_slow",
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
        on_slow: Callable[[FanoutListener], object],
    ) -> None:
        self.loop = loop
        self._thread = threading.get_ident()
        self._codec = codec
        self._listeners = listeners
        # Called with who has too much unread; it is to stop listening.
        self._on_slow = on_slow
        # No longer than the table of listeners: what nobody listens to is not taken in.
        self._waiting: OrderedDict[Topic, Any] = OrderedDict()
        self._gathered: dict[Topic, None] = {}
        self._is_busy = False
        # What is being told, and to whom it still has to be.
        self._current: tuple[Topic, Any] | None = None
        self._notice: Notice | None = None
        self._members: Mapping[FanoutListener, None] = {}
        self._rest: Iterator[FanoutListener] = iter(())
        # What other threads have told of, and the loop has not taken in yet.
        self._handed_in: dict[Topic, Any] = {}
        self._lock = threading.Lock()

    # -- taking in ---------------------------------------------------------------------------

    def tell(self, topic: Topic, params: Any = None) -> None:
        """Tell whoever listens to a topic, soon. May be called from any thread.

        Said again while it waits, it is told once, with the params that came last.
        """
        if topic not in self._listeners:
            return
        try:
            if threading.get_ident() == self._thread:
                self._take(topic, params)
            else:
                self._hand_in(topic, params)
        except RuntimeError:
            pass  # the loop was closed, and nobody listens any more

    def _hand_in(self, topic: Topic, params: Any) -> None:
        with self._lock:
            is_first = not self._handed_in
            self._handed_in[topic] = params
        # One call of the loop for all: a thread in a hurry fills no queue.
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
        elif topic not in self._gathered:
            self.loop.call_later(COALESCE_INTERVAL_S, self._gather, topic)
            self._gathered[topic] = None

    def _gather(self, topic: Topic) -> None:
        del self._gathered[topic]
        self._queue(topic, None)

    def _queue(self, topic: Topic, params: Any) -> None:
        if not self._is_busy:
            self.loop.call_soon(self._turn)
            self._is_busy = True
        self._waiting[topic] = params

    # -- sending -----------------------------------------------------------------------------

    def _turn(self) -> None:
        """Send one slice, and come back for the next."""
        left = SLICE_LISTENERS
        while left > 0:
            listeners = list(islice(self._rest, left))
            if listeners and self._notice is not None:
                self._send(listeners, self._members, self._notice)
                left -= len(listeners)
            elif self._begin():
                left -= 1  # encoding takes as long as telling somebody
            else:
                self._is_busy = False
                return
        self.loop.call_soon(self._turn)

    def _begin(self) -> bool:
        """Begin to tell of what has waited longest; say whether there was something."""
        self._current = None
        if not self._waiting:
            self._members, self._rest, self._notice = {}, iter(()), None
            return False
        topic, params = self._waiting.popitem(last=False)
        self._members = self._listeners.get(topic, {})
        self._rest = iter(())
        if self._members and (notice := self._written(topic, params)) is not None:
            self._current, self._notice = (topic, params), notice
            # Those of now: others come and go while the slices are sent.
            self._rest = iter(tuple(self._members))
        return True

    def _written(self, topic: Topic, params: Any) -> Notice | None:
        try:
            return notice_of(topic, params, self._codec)
        except Exception as error:  # noqa: BLE001  # what comes after it is still to be told
            trace = as_redacted(error)
            _log.error("%s of %s cannot be written\n%s", topic.method, show(topic.about), trace)
            return None

    def _send(
        self,
        listeners: Iterable[FanoutListener],
        members: Container[FanoutListener],
        notice: Notice,
    ) -> None:
        whole, head, tail = notice
        for listener in listeners:
            if listener not in members:
                continue  # it has left meanwhile
            transport, id = listener.transport, listener.id
            try:
                if transport.backlog > MAX_BACKLOG_BYTES:
                    self._on_slow(listener)
                elif id is None:
                    transport.send(whole)
                else:
                    transport.send(head + id + tail, listener.route)
            except Exception as error:  # noqa: BLE001  # one transport's fault; others go on
                _log.error("a client could not be told\n%s", as_redacted(error))

    def catch_up(self, listener: FanoutListener) -> None:
        """Tell one who is about to leave what still waits for its turn."""
        owed = [] if self._current is None else [self._current]
        owed += [*self._waiting.items(), *((topic, None) for topic in self._gathered)]
        for topic, params in owed:
            if topic in listener.topics and (notice := self._written(topic, params)) is not None:
                self._send((listener,), (listener,), notice)
