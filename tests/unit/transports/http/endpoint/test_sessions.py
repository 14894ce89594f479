"""Sessions: whose they are, which stream gets a message, and when they end."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from tests.rigs.http_endpoint import PlainResponder, alone, request
from trunkline import HttpLimits
from trunkline.accounts.account import Account, Accounts
from trunkline.auth import Principal
from trunkline.jsonrpc.messages import ErrorObject
from trunkline.store.memory import MemoryStore
from trunkline.transports.http.endpoint.event_log import EventLog
from trunkline.transports.http.endpoint.exchange import Exchange
from trunkline.transports.http.endpoint.old_sse import OldSseSession
from trunkline.transports.http.endpoint.sessions import HttpSession, SessionTable


class Made:
    """A session with exchanges."""

    def __init__(self, *, is_resumable: bool = True, primes: bool = True) -> None:
        self.session = HttpSession("id", None, 0.0, 1000, alone())
        self.session.is_resumable, self.session.primes = is_resumable, primes
        self.session.make_log = lambda _: EventLog(
            MemoryStore(), "id", HttpLimits(), lambda *_: None
        )

    def post(self, accept: str | None = None) -> tuple[PlainResponder, Exchange]:
        return self._open(request(accept=accept))

    def get(self) -> tuple[PlainResponder, Exchange]:
        client, exchange = self._open(request("GET"), listens=True)
        exchange.start_stream()
        return client, exchange

    def _open(self, asked: Any, *, listens: bool = False) -> tuple[PlainResponder, Exchange]:
        client = PlainResponder()
        exchange = Exchange(asked, client, self.session, lambda _: 400, 0.0)
        client.exchange = exchange
        self.session.open(exchange, listens=listens)
        return client, exchange


# -- which stream ------------------------------------------------------------------------------


def test_a_message_about_a_request_goes_to_its_post_and_any_other_to_the_get_stream() -> None:
    made = Made()
    first, one = made.post()
    second, _ = made.post()
    listening, _ = made.get()
    made.session.send(b'{"n":1}', one)
    made.session.send(b'{"n":2}')
    assert first.messages == [{"n": 1}]
    assert listening.messages == [{"n": 2}]
    assert second.status == 0
    made.session.answer(b'{"id":1}', one, None)
    # What follows the answer.
    made.session.send(b'{"n":3}', one)
    assert first.messages == [{"n": 1}, {"id": 1}]
    assert listening.messages == [{"n": 2}, {"n": 3}]


def test_a_message_without_a_stream_is_dropped_and_counted() -> None:
    made = Made()
    made.session.send(b'{"n":1}')
    _, one = made.post()
    made.session.answer(b"{}", one, None)
    made.session.send(b'{"n":2}', one)
    assert made.session.dropped == 2


def test_a_message_is_sent_on_one_of_two_get_streams_the_newer() -> None:
    made = Made()
    older, _ = made.get()
    newer, _ = made.get()
    made.session.send(b'{"n":1}')
    assert older.messages == []
    assert newer.messages == [{"n": 1}]


def test_a_get_stream_whose_client_has_gone_gives_way_to_a_new_one() -> None:
    made = Made()
    older, first = made.get()
    older.hang_up()
    assert not first.is_done
    _, second = made.get()
    assert first.is_done
    assert [*made.session.exchanges] == [second]


def test_notification_for_a_json_only_post_goes_to_the_get_stream() -> None:
    made = Made()
    posted, one = made.post("application/json")
    listening, _ = made.get()
    made.session.send(b'{"n":1}', one)
    made.session.answer(b'{"id":1}', one, None)
    assert listening.messages == [{"n": 1}]
    assert posted.json == {"id": 1}


# -- events ------------------------------------------------------------------------------------


def test_each_stream_has_a_number_and_its_events_count_up() -> None:
    made = Made()
    first, one = made.post()
    second, two = made.post()
    for n in range(2):
        made.session.send(b'{"n":%d}' % n, one)
        made.session.send(b'{"n":%d}' % n, two)
    assert [id for id, _ in first.events] == ["1-0", "1-1", "1-2"]
    assert [id for id, _ in second.events] == ["2-0", "2-1", "2-2"]
    assert made.session.find(2) is two
    assert made.session.find(3) is None


def test_streams_have_ids_in_revisions_that_resume_and_begin_with_one_in_those_that_poll() -> None:
    made = Made(primes=False)
    client, one = made.post()
    made.session.send(b'{"n":1}', one)
    assert client.events == [("1-1", {"n": 1})]
    assert not one.close_stream()
    made = Made(is_resumable=False, primes=False)
    client, one = made.post()
    made.session.send(b'{"n":1}', one)
    assert client.events == [("", {"n": 1})]
    assert made.session.log is None


def test_a_stream_outlives_its_connection_and_its_events_are_kept() -> None:
    async def work() -> None:
        made = Made()
        client, one = made.post()
        made.session.send(b'{"n":1}', one)
        client.hang_up()
        made.session.send(b'{"n":2}', one)
        made.session.answer(b'{"id":1}', one, None)
        assert made.session.log is not None
        assert await made.session.log.read(1, 1) == [(2, b'{"n":2}'), (3, b'{"id":1}')]
        await made.session.close()
        assert await made.session.log.read(1, 1) is None

    asyncio.run(work())


def test_a_get_stream_that_cannot_be_resumed_ends_with_its_connection() -> None:
    made = Made(is_resumable=False, primes=False)
    client, one = made.get()
    client.hang_up()
    assert one.is_done
    assert not made.session.exchanges


# -- slow clients ------------------------------------------------------------------------------


def test_the_backlog_is_that_of_clients_that_read_slowly() -> None:
    drained: list[int] = []
    made = Made()
    made.session.on_drained = lambda: drained.append(made.session.backlog)
    first, one = made.post()
    second, two = made.post()
    made.session.send(b'{"n":1}', one)
    first.unread = second.unread = 10_000_000
    assert made.session.backlog == 0
    made.session.is_slow(one, True)
    made.session.is_slow(two, True)
    assert made.session.backlog == 20_000_000
    assert made.session.written == 7 - 20_000_000
    made.session.is_slow(one, False)
    assert made.session.backlog == 10_000_000
    assert drained == []
    # The client goes away, and with it what it has not read.
    second.hang_up()
    assert made.session.backlog == 0
    assert drained == [0]


# -- the end -----------------------------------------------------------------------------------


def test_a_session_whose_initialize_failed_ends() -> None:
    ended: list[str] = []
    made = Made()
    made.session.on_end = lambda: ended.append("ended")
    _, one = made.post()
    one.opening_headers = ((b"mcp-session-id", b"id"),)
    made.session.answer(b"{}", one, ErrorObject(-1, "no"))
    assert ended == ["ended"]


def test_closing_a_session_ends_every_exchange() -> None:
    made = Made()
    posted, _ = made.post()
    listening, _ = made.get()
    asyncio.run(made.session.close())
    assert posted.status == 503
    assert listening.is_over
    assert not made.session.exchanges
    assert not made.session.is_connected


def test_an_id_has_256_random_bits_and_is_not_shown() -> None:
    made = Table()
    ids = set()
    for _ in range(100):
        session = made.table.new(None, 0.0, made.account("a"))
        assert session is not None
        assert len(session.id) == 43
        assert session.id[:6] not in repr(session)
        assert session.shown_id in repr(session)
        ids.add(session.id)
    assert len(ids) == 100


def test_a_session_belongs_to_its_owner_and_does_not_exist_for_others() -> None:
    made = Table()
    table = made.table
    ada = Principal(subject="ada", tenant="acme")
    session = table.new(ada, 0.0, made.account("ada"))
    assert session is not None
    # With another token of the same principal, too.
    assert table.get(session.id, replace(ada, scopes={"x"}), 1.0) is session
    others = [replace(ada, **{name: "x"}) for name in ("issuer", "subject", "client_id", "tenant")]
    for other in (*others, ada.with_tenant(None), None):
        assert table.get(session.id, other, 5.0) is None
    # An attempt of another one is not a use.
    assert session.used == 1.0
    assert table.get("x", ada, 1.0) is None
    table.discard(session)
    assert table.get(session.id, ada, 1.0) is None


class Table:
    """A table whose sessions leave it when they end, as a server has it."""

    def __init__(self, **limits: Any) -> None:
        self.accounts = Accounts(100, 1 << 20)
        self.table = SessionTable(HttpLimits(**limits), self.accounts.shares)
        self.ended: list[str] = []

    def account(self, key: str) -> Account:
        return self.accounts.open(key)

    def new(self, name: str, now: float, client: str = "") -> HttpSession | None:
        """Open a session of a principal, which is a client by itself unless one is named."""
        account = self.account(client or name)
        session = self.table.new(Principal(subject=name), now, account)
        account.close()
        if session is not None:
            session.on_end = lambda: self.ended.append(name)
        return session


def busy(session: HttpSession | None) -> tuple[PlainResponder, Exchange]:
    assert session is not None
    client = PlainResponder()
    exchange = Exchange(request(), client, session, lambda _: 400, 0.0)
    client.exchange = exchange
    session.open(exchange)
    return client, exchange


def test_sessions_expire_when_they_are_idle_but_not_while_a_client_waits() -> None:
    made = Table(session_idle=10.0, session_lifetime=100.0)
    idle, used, waits, left = (made.new(name, 0.0) for name in ("idle", "used", "waits", "left"))
    assert idle is not None
    assert used is not None
    client, exchange = busy(waits)
    gone, _ = busy(left)
    gone.hang_up()
    made.table.reap(9.9)
    assert made.ended == []
    made.table.get(used.id, Principal(subject="used"), 5.0)
    made.table.reap(10.0)
    # One that no client waits for is idle, though its request is not answered.
    assert made.ended == ["idle", "left"]
    exchange.answer(b"{}")
    assert client.is_over
    made.table.reap(15.0)
    assert made.ended == ["idle", "left", "used"]
    made.table.reap(20.0)
    assert made.ended == ["idle", "left", "used", "waits"]
    assert made.table.ended == {"idle": 4, "lifetime": 0, "evicted": 0}
    assert len(made.table) == 0


def test_sessions_expire_after_their_lifetime_however_they_are_used() -> None:
    made = Table(session_idle=10.0, session_lifetime=100.0)
    session = made.new("old", 0.0)
    busy(session)
    for now in range(0, 100, 5):
        made.table.reap(float(now))
    assert made.ended == []
    made.table.reap(100.0)
    assert made.ended == ["old"]
    assert made.table.ended["lifetime"] == 1


def test_longest_idle_session_without_a_waiting_client_is_dropped_at_the_limit() -> None:
    made = Table(sessions=3)
    first, second, third = (made.new(name, 0.0) for name in "abc")
    assert first is not None
    busy(second)
    made.table.get(first.id, Principal(subject="a"), 1.0)
    assert made.new("d", 2.0) is not None
    assert made.ended == ["c"]
    assert made.new("e", 2.0) is not None
    assert made.ended == ["c", "a"]
    assert third is not None
    assert made.table.ended["evicted"] == 2
    assert made.table.count == 3


def test_no_session_is_created_at_the_limit_while_all_are_in_use() -> None:
    made = Table(sessions=2)
    clients = [busy(made.new(name, 0.0))[0] for name in "ab"]
    assert made.new("c", 1.0) is None
    assert made.ended == []
    clients[1].hang_up()
    assert made.new("c", 1.0) is not None
    assert made.ended == ["b"]


def test_sessions_in_use_do_not_hide_idle_ones_behind_them() -> None:
    made = Table(sessions=10)
    for n in range(9):
        busy(made.new(f"busy {n}", 0.0))
    made.new("idle", 0.0)
    assert made.new("new", 1.0) is not None
    assert made.ended == ["idle"]


def test_session_of_the_client_that_has_most_is_dropped_for_a_new_one() -> None:
    made = Table(sessions=6)
    quiet = made.new("quiet", 0.0)
    assert quiet is not None
    for n in range(9):
        made.new(f"flood {n}", 1.0, client="flood")
    # It has half of them while there is another client, and gives of its own for more.
    assert made.ended == [f"flood {n}" for n in range(6)]
    made.ended.clear()
    for name in ("b", "c", "d"):
        assert made.new(name, 2.0) is not None
    assert made.ended == ["flood 6"]
    assert made.table.get(quiet.id, Principal(subject="quiet"), 3.0) is quiet


def test_client_alone_has_every_session_and_gives_them_back() -> None:
    made = Table(sessions=4)
    for n in range(4):
        busy(made.new(f"flood {n}", 0.0, client="flood"))
    assert made.ended == []
    # A session in use ends too, for a client that has less.
    assert [made.new(name, 1.0) is not None for name in "abc"] == [True, True, True]
    assert made.ended == ["flood 0", "flood 1", "flood 2"]


def test_session_uses_the_account_of_its_client_until_it_ends() -> None:
    made = Table(sessions=2)
    session = made.new("a", 0.0)
    assert session is not None
    assert [each.key for each in made.accounts] == ["a"]
    made.table.discard(session)
    made.table.discard(session)
    assert len(made.accounts) == 0


def test_sessions_that_are_kept_elsewhere_count_too() -> None:
    made = Table(sessions=2)
    first, second, third = (
        OldSseSession(name, None, b"/", 0.0, made.account(name)) for name in ("x", "y", "z")
    )
    assert made.table.add(first)
    assert made.new("a", 0.0) is not None
    assert made.table.count == 2
    assert made.table.add(second)
    assert made.ended == ["a"]
    assert not made.table.add(third)
    made.table.discard(first)
    assert made.new("b", 0.0) is not None
