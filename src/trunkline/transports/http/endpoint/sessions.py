"""Sessions of Streamable HTTP: a `Transport` whose routes are exchanges, and the table of them.

An `HttpSession` carries the messages of one client that has sent `initialize`, however many
connections they come on. The server sees a transport as any other; what it sends about a request
goes to that POST's exchange, and the rest to the stream that the client opened by GET.

The rules that live here, and only here:

* A session id has 256 random bits and does not authenticate: a session belongs to the principal
  that opened it, and does not exist for others.    [MCP 2025-11-25, basic/transports]
* A message is sent on one stream, never on two.         [MCP 2025-11-25, basic/transports]
* A session ends by DELETE, when it was idle for `session_idle` seconds, after `session_lifetime`
  seconds, or when too many are open and it is the idlest of the client that has most. One with a
  client that waits for a response is not idle, and ends for a new one only if that client has more
  sessions than the one that opens it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from ....accounts.shares import Holdings
from ....spec.mcp.http_status import MCP
from ....spec.mcp.transports import POLLED, RESUMED_STREAMS
from ...base import LOW_WATER, ignore
from ..response import Refusal
from .exchange import ExchangeTransport, event_of

if TYPE_CHECKING:
    from ....accounts.account import Account
    from ....accounts.shares import ClientShares
    from ....errors import InvalidMessage
    from ....jsonrpc.messages import ErrorObject
    from ..gate.authentication import Owner
    from ..settings import HttpLimits
    from .event_log import EventLog
    from .exchange import Exchange

__all__ = ["SESSION_UNKNOWN", "CountedSession", "HttpSession", "SessionTable"]

SESSION_UNKNOWN: Final = Refusal(MCP["session-unknown"], "Session not found")
# Random bytes of a session id.
_ID_BYTES: Final = 32
# Characters of the name of a session in logs.
_SHOWN: Final = 8


class HttpSession(ExchangeTransport):
    """One session; it implements the transport contract."""

    # For a server: routes are exchanges.
    has_exchanges = True

    __slots__ = (
        "_listening",
        "_next_stream",
        "_slow",
        "account",
        "began",
        "binding",
        "dropped",
        "exchanges",
        "id",
        "is_resumable",
        "log",
        "make_log",
        "on_end",
        "owner",
        "owner_key",
        "retry_ms",
        "used",
    )

    def __init__(
        self, id: str, owner: Owner | None, now: float, retry_ms: int, account: Account
    ) -> None:
        super().__init__("http")
        # That of the client.
        self.account = account
        # Called when the client, or the table, ends the session.
        self.on_end: Callable[[], object] = ignore
        self.id = id
        self.owner = owner
        self.owner_key = None if owner is None else owner.key
        # Decides on callers of a session whose messages carry the credentials; None is any.
        self.binding: Callable[[Owner | None], bool] | None = None
        self.began = now
        self.used = now
        self.retry_ms = retry_ms
        # Set with the revision, as `primes` is: whether streams have ids.
        self.is_resumable = False
        # Made for the first stream.
        self.log: EventLog | None = None
        self.make_log: Callable[[HttpSession], EventLog] | None = None
        # Messages for which there was no stream.
        self.dropped = 0
        self.exchanges: dict[Exchange, None] = {}
        # The stream for what belongs to no request.
        self._listening: Exchange | None = None
        self._next_stream = 1
        # Exchanges whose client reads slowly. Most have none.
        self._slow: set[Exchange] | None = None

    def use_revision(self, revision: str) -> None:
        """Resume streams as a revision says."""
        self.is_resumable = RESUMED_STREAMS.holds(revision)
        self.primes = POLLED.holds(revision)

    def __repr__(self) -> str:
        return f"<HttpSession {self.shown_id}, {len(self.exchanges)} exchanges>"

    @property
    def shown_id(self) -> str:
        """A name for logs, from which the id cannot be found."""
        return hashlib.sha256(self.id.encode()).hexdigest()[:_SHOWN]

    # -- the transport contract --------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """The number of bytes that clients have not taken; less than 64 KiB each is not counted."""
        return sum(each.unread for each in self._slow) if self._slow else 0

    def send(self, frame: bytes, route: Exchange | None = None) -> None:
        """Send a message about a request on its stream, and any other on the one opened by GET.

        The latter gets what follows the end of a request too: that a question of a cancelled
        handler is withdrawn, for example.
        """
        target = self._listening if route is None or route.is_done else route
        if target is None or target.is_done:
            self.dropped += 1
            return
        target.send(frame)
        self._sent += len(frame)

    def answer(
        self, frame: bytes, route: Exchange, error: ErrorObject | InvalidMessage | None
    ) -> None:
        """Send the answer to a POST."""
        self._sent += len(frame)
        route.answer(frame, error)
        if error is not None and route.opening_headers:
            self.on_end()  # `initialize` has failed: the client has no session

    def settled(self, route: Exchange) -> None:
        """End a POST that is not answered, or was."""
        if not route.is_done:
            route.settle()
            if route.opening_headers:
                self.on_end()  # as above

    async def close(self) -> None:
        """End every exchange."""
        self.is_connected = False
        for each in list(self.exchanges):
            each.close()
        if self.log is not None:
            await self.log.delete()

    # -- exchanges ---------------------------------------------------------------------------

    def open(self, exchange: Exchange, *, listens: bool = False) -> None:
        """Add an exchange; with `listens` it gets what belongs to no request."""
        self.exchanges[exchange] = None
        if listens:
            former, self._listening = self._listening, exchange
            if former is not None and former.responder is None:
                former.close()  # nothing reads it, and nothing will be sent on it

    def find(self, stream: int) -> Exchange | None:
        """Return the open stream with this number."""
        return next((each for each in self.exchanges if each.stream == stream), None)

    @property
    def is_busy(self) -> bool:
        """Whether an exchange has a client that waits for it."""
        return any(each.responder is not None for each in self.exchanges)

    def is_slow(self, exchange: Exchange, value: bool) -> None:
        """Note that the client of an exchange reads slowly, or again as it should."""
        if value:
            self._slow = self._slow or set()
            self._slow.add(exchange)
        elif self._slow is not None and exchange in self._slow:
            self._slow.discard(exchange)
            if self.backlog < LOW_WATER:
                self.on_drained()

    def event(self, exchange: Exchange, frame: bytes) -> bytes:
        """Return a message as an event, and keep it for a client that resumes the stream."""
        if not exchange.stream:
            return event_of(frame)
        exchange.last_event += 1
        if self.log is not None:
            self.log.append(exchange.stream, exchange.last_event, frame)
        return event_of(frame, self._event_id(exchange))

    def priming_event(self, exchange: Exchange) -> bytes:
        """Number a stream that can be resumed; return the event that it begins with, if any."""
        if not self.is_resumable or self.make_log is None:
            return b""
        if self.log is None:
            self.log = self.make_log(self)
        exchange.stream, self._next_stream = self._next_stream, self._next_stream + 1
        if not self.primes:
            return b""
        return b"id: %b\nretry: %d\ndata: \n\n" % (self._event_id(exchange), self.retry_ms)

    def _event_id(self, exchange: Exchange) -> bytes:
        return b"%d-%d" % (exchange.stream, exchange.last_event)

    def exchange_ended(self, exchange: Exchange) -> None:
        """Forget an exchange whose response is complete."""
        self.exchanges.pop(exchange, None)
        if not self.exchanges:
            self.exchanges = {}  # one that was used takes 100 bytes more
        if self._slow:
            self.is_slow(exchange, False)
        if self._listening is exchange:
            self._listening = None

    def client_gone(self, exchange: Exchange) -> None:
        """Keep a stream that can be resumed; what it carries goes on in any case."""
        self.is_slow(exchange, False)
        is_kept = exchange is self._listening and exchange.stream
        if exchange.request.method == "GET" and not is_kept:
            exchange.close()  # it cannot be resumed, or another stream was opened in its place

    def undeliverable(self, exchange: Exchange, frame: bytes) -> None:
        """Send what a client does not accept with an answer on the stream opened by GET."""
        self.send(frame)


class CountedSession(Protocol):
    """A session that counts, in this table or in another one."""

    account: Account
    on_end: Callable[[], object]

    @property
    def is_busy(self) -> bool:
        """Whether a client waits for something."""


class SessionTable:
    """The open sessions of one endpoint, of all and of each client the idlest first."""

    def __init__(self, limits: HttpLimits, shares: ClientShares) -> None:
        self._limits = limits
        self._sessions: dict[str, HttpSession] = {}
        # By client, those that are kept elsewhere among them.
        self._held: Holdings[CountedSession] = Holdings(limits.sessions, shares)
        # By cause: sessions that were ended here.
        self.ended: dict[str, int] = {"idle": 0, "lifetime": 0, "evicted": 0}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def count(self) -> int:
        """The number of open sessions, those that are kept elsewhere included."""
        return len(self._held)

    def __iter__(self) -> Any:
        return iter(list(self._sessions.values()))

    def new(self, owner: Owner | None, now: float, account: Account) -> HttpSession | None:
        """Return a new session, perhaps in place of an idle one; None if there is no room."""
        id = secrets.token_urlsafe(_ID_BYTES)
        session = HttpSession(id, owner, now, self._limits.retry_ms, account)
        if not self.add(session):
            return None
        self._sessions[id] = session
        return session

    def add(self, session: CountedSession) -> bool:
        """Count a session, perhaps one that is kept elsewhere; return False without room."""
        account, held = session.account, self._held
        if not held.has_room(account) and not self._make_room(account):
            return False
        held.add(account, session)
        account.uses += 1
        return True

    def get(self, id: str, owner: Owner | None, now: float) -> HttpSession | None:
        """Return the session of a principal, and note its use; None if it has none of that id."""
        session = self._sessions.get(id)
        if session is None or session.owner_key != (None if owner is None else owner.key):
            return None
        session.used = now
        # To the end: those at the start are the idlest. An OrderedDict takes 100 bytes for each.
        del self._sessions[id]
        self._sessions[id] = session
        self._held.touch(session.account, session)
        return session

    def discard(self, session: CountedSession) -> None:
        """Forget a session that has ended."""
        if self._held.discard(session.account, session):
            session.account.close()
        if isinstance(session, HttpSession):
            self._sessions.pop(session.id, None)

    def reap(self, now: float) -> None:
        """End sessions that have expired."""
        idle, lifetime = self._limits.session_idle, self._limits.session_lifetime
        for session in list(self._sessions.values()):
            if now - session.began >= lifetime:
                self._end(session, "lifetime")
            elif session.exchanges and session.is_busy:
                session.used = now  # it is idle from the end of the last one
            elif now - session.used >= idle:
                self._end(session, "idle")

    def _make_room(self, account: Account) -> bool:
        """End a session, so that an account may have one more; return False if none may end."""
        held, largest = self._held, self._held.largest()
        # One client that has most, or many that have as many: then the idlest of all.
        those = held.of(largest[0]) if len(largest) == 1 else iter(self._sessions.values())
        found = self._idlest(account, those) or self._idlest(account, held.of(account))
        if found is None:
            busy = (next(held.of(each)) for each in largest)
            may_take = held.may_take
            found = next(
                (each for each in busy if may_take(account, each.account, is_idle=False)), None
            )
        if found is None:
            return False
        self._end(found, "evicted")
        return True

    def _idlest(
        self, account: Account, sessions: Iterator[CountedSession]
    ) -> CountedSession | None:
        """Return the first that is idle and may end for an account."""
        may_take = self._held.may_take
        for session in sessions:
            if not session.is_busy and may_take(account, session.account, is_idle=True):
                return session
        return None

    def _end(self, session: CountedSession, cause: str) -> None:
        self.ended[cause] += 1
        self.discard(session)
        session.on_end()
