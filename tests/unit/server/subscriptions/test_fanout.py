"""Telling many the same: how often it is written, in which order, and in which slices."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.server_connection import WAIT
from trunkline.jsonrpc import Codec, IncomingRequest
from trunkline.mcp.types import NotificationParams, ResourceUpdatedNotificationParams
from trunkline.server.dispatch.connection import MAX_BACKLOG_BYTES
from trunkline.server.subscriptions import fanout as module
from trunkline.server.subscriptions.fanout import (
    SLICE_LISTENERS,
    Fanout,
    FanoutListener,
    Topic,
    notice_of,
)

KEY = "io.modelcontextprotocol/subscriptionId"
TOOLS = Topic("notifications/tools/list_changed")


def about(uri: str) -> tuple[Topic, Any]:
    return Topic("notifications/resources/updated", uri), ResourceUpdatedNotificationParams(uri)


class Place:
    """A connection and its transport in one, of which only what is sent is looked at."""

    def __init__(self, on_send: Callable[[], object] = lambda: None) -> None:
        self.transport = self
        self.backlog = 0
        self.frames: list[bytes] = []
        self.routes: list[Any] = []
        self._on_send = on_send

    def send(self, frame: bytes, route: Any = None) -> None:
        self.frames.append(frame)
        self.routes.append(route)
        self._on_send()

    @property
    def uris(self) -> list[str]:
        return [json.loads(frame)["params"]["uri"] for frame in self.frames]


class Bench:
    """A fan-out on the running loop, and who listens."""

    def __init__(self) -> None:
        self.table: dict[Topic, dict[FanoutListener, None]] = {}
        self.slow: list[tuple[FanoutListener, Topic]] = []
        loop = asyncio.get_running_loop()
        self.fanout = Fanout(loop, Codec(expect="calls"), self.table, self._on_slow)

    def join(self, *topics: Topic, place: Any = None, asked: IncomingRequest | None = None) -> Any:
        place = Place() if place is None else place
        listener = FanoutListener(place, asked)
        for topic in topics:
            listener.topics[topic] = None
            self.table.setdefault(topic, {})[listener] = None
        place.listener = listener
        return place

    def _on_slow(self, listener: FanoutListener, topic: Topic) -> None:
        self.slow.append((listener, topic))

    def part(self, place: Any, topic: Topic) -> None:
        del self.table[topic][place.listener]

    async def quiet(self) -> int:
        """Wait until nothing is left to be told; return how many turns of the loop it took."""
        turns = 0
        async with asyncio.timeout(WAIT):
            while self.fanout._is_busy:
                await asyncio.sleep(0)
                turns += 1
        return turns


def run(script: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        await script(Bench())

    asyncio.run(main())


@pytest.mark.parametrize("id", [7, "7", 'a"b\\c', "é"])
def test_a_listen_stream_gets_what_a_session_gets_with_its_id_in_meta(id: Any) -> None:
    codec = Codec(expect="calls")
    for topic, params in [about('x:"}}]'), (TOOLS, None), (TOOLS, NotificationParams())]:
        whole, head, tail = notice_of(topic, params, codec)
        place: Any = Place()
        listener = FanoutListener(place, IncomingRequest(id, "subscriptions/listen"))
        assert listener.id is not None
        session, stream = json.loads(whole), json.loads(head + listener.id + tail)
        assert stream["params"].pop("_meta") == {KEY: id}
        assert stream == {**session, "params": session.get("params", {})}
        assert codec.envelope(head + listener.id + tail)


def test_meta_of_the_params_stays_beside_the_id() -> None:
    params = ResourceUpdatedNotificationParams("x:y", meta={"acme/why": 1})
    _, head, tail = notice_of(about("x:y")[0], params, Codec(expect="calls"))
    sent = json.loads(head + b"3" + tail)
    assert sent["params"] == {"uri": "x:y", "_meta": {"acme/why": 1, KEY: 3}}


def test_notification_is_encoded_once_for_all_listeners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[Topic] = []

    def counted(topic: Topic, params: Any, codec: Codec) -> Any:
        encoded.append(topic)
        return notice_of(topic, params, codec)

    monkeypatch.setattr(module, "notice_of", counted)

    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        sessions = [bench.join(topic) for _ in range(250)]
        streams = [
            bench.join(topic, asked=IncomingRequest(n, "m", route=f"r{n}")) for n in range(250)
        ]
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert encoded == [topic]
        assert len({id(place.frames[0]) for place in sessions}) == 1
        for number, place in enumerate(streams):
            assert json.loads(place.frames[0])["params"]["_meta"] == {KEY: number}
            assert place.routes == [f"r{number}"]

    run(script)


def test_one_loop_turn_notifies_at_most_one_slice_of_listeners() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        told: list[int] = []
        for _ in range(SLICE_LISTENERS * 7):
            bench.join(topic, place=Place(lambda: told.append(1)))
        bench.fanout.notify(topic, params)
        seen = [0]
        while seen[-1] < SLICE_LISTENERS * 7:
            await asyncio.sleep(0)
            seen.append(len(told))
        steps = [after - before for before, after in pairwise(seen)]
        assert max(steps) <= SLICE_LISTENERS
        assert len(steps) <= 8 + 1

    run(script)


def test_many_small_topics_share_a_turn() -> None:
    async def script(bench: Bench) -> None:
        topics = [about(f"x:{n}") for n in range(SLICE_LISTENERS)]
        places = [bench.join(topic) for topic, _ in topics]
        for topic, params in topics:
            bench.fanout.notify(topic, params)
        # Each takes a place for the encoding and one for who is told.
        assert await bench.quiet() == 3
        assert all(len(place.frames) == 1 for place in places)

    run(script)


def test_notifications_keep_their_order_for_each_listener() -> None:
    async def script(bench: Bench) -> None:
        wanted = [f"x:{n}" for n in range(5)]
        places = [
            bench.join(*(about(uri)[0] for uri in wanted)) for _ in range(SLICE_LISTENERS + 30)
        ]
        for uri in wanted:
            bench.fanout.notify(*about(uri))
            await asyncio.sleep(0)
        await bench.quiet()
        assert all(place.uris == wanted for place in places)

    run(script)


def test_topic_already_waiting_is_not_queued_again() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        place = bench.join(topic, about("x:2")[0])
        for _ in range(1000):
            bench.fanout.notify(topic, params)
            bench.fanout.notify(*about("x:2"))
        await bench.quiet()
        assert place.uris == ["x:1", "x:2"]
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert place.uris == ["x:1", "x:2", "x:1"]

    run(script)


def test_change_during_delivery_of_the_same_topic_is_delivered_too() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        places = [bench.join(topic) for _ in range(SLICE_LISTENERS * 3)]
        bench.fanout.notify(topic, params)
        await asyncio.sleep(0)
        assert 0 < sum(len(place.frames) for place in places) < len(places)
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert {len(place.frames) for place in places} == {2}

    run(script)


def test_coalesced_topic_is_sent_with_the_last_params() -> None:
    async def script(bench: Bench) -> None:
        topic = Topic("notifications/tasks", "t")
        place = bench.join(topic, asked=IncomingRequest(1, "m"))
        for meta in ({"n": 1}, {"n": 2}):
            bench.fanout.notify(topic, NotificationParams(meta=meta))
        await bench.quiet()
        assert [json.loads(frame)["params"]["_meta"]["n"] for frame in place.frames] == [2]

    run(script)


def test_topic_without_listeners_is_not_queued() -> None:
    async def script(bench: Bench) -> None:
        for number in range(1000):
            bench.fanout.notify(*about(f"x:{number}"))
        bench.fanout.notify(TOOLS)
        assert not bench.fanout._waiting
        assert not bench.fanout._coalescing
        assert not bench.fanout._is_busy

    run(script)


def test_listener_that_leaves_or_joins_during_delivery_gets_no_notification() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        places = [bench.join(topic) for _ in range(SLICE_LISTENERS * 2)]
        bench.fanout.notify(topic, params)
        await asyncio.sleep(0)
        gone, late = places[-1], bench.join(topic)
        bench.part(gone, topic)
        await bench.quiet()
        assert gone.frames == []
        assert late.frames == []
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert gone.frames == []
        assert len(late.frames) == 1

    run(script)


def test_listener_that_leaves_on_delivery_does_not_affect_the_others() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        one = bench.join(topic, place=Place(lambda: bench.part(one, topic)))
        others = [bench.join(topic) for _ in range(3)]
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert len(one.frames) == 1
        assert [len(place.frames) for place in others] == [1, 1, 1]

    run(script)


def test_changes_of_a_list_are_coalescing() -> None:
    async def script(bench: Bench) -> None:
        place = bench.join(TOOLS)
        loop: Any = asyncio.get_running_loop()
        later, timers = loop.call_later, []
        loop.call_later = lambda *facts: timers.append(facts) or later(*facts)
        for _ in range(100):
            bench.fanout.notify(TOOLS)
        await asyncio.sleep(0)
        del loop.call_later
        assert [seconds for seconds, *_ in timers] == [0.02]
        assert place.frames == []
        await until_async(lambda: place.frames)
        await asyncio.sleep(0.05)
        assert len(place.frames) == 1

    run(script)


def test_notify_from_a_thread_posts_to_the_loop_once() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        place = bench.join(topic, TOOLS)
        posted: list[object] = []
        loop: Any = asyncio.get_running_loop()
        hop = loop.call_soon_threadsafe

        def count(*facts: Any) -> Any:
            posted.append(facts)
            return hop(*facts)

        loop.call_soon_threadsafe = count

        def work() -> None:
            for _ in range(500):
                bench.fanout.notify(topic, params)
                bench.fanout.notify(TOOLS)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()  # the loop stands still meanwhile
        assert len(posted) == 1
        await until_async(lambda: len(place.frames) >= 2)
        sent = [json.loads(frame) for frame in place.frames]
        assert [each["method"] for each in sent] == [topic.method, TOOLS.method]

    run(script)


def test_notify_after_the_loop_was_closed_is_ignored() -> None:
    kept: list[Bench] = []

    async def script(bench: Bench) -> None:
        bench.join(about("x:1")[0], TOOLS)
        kept.append(bench)

    run(script)
    for _ in range(2):
        kept[0].fanout.notify(*about("x:1"))
        kept[0].fanout.notify(TOOLS)
    thread = threading.Thread(target=kept[0].fanout.notify, args=about("x:1"))
    thread.start()
    thread.join()
    assert not kept[0].fanout._waiting


def test_listener_with_too_large_a_backlog_is_reported_and_skipped() -> None:
    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        slow, quick = bench.join(topic), bench.join(topic)
        slow.backlog = MAX_BACKLOG_BYTES + 1
        quick.backlog = MAX_BACKLOG_BYTES
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert bench.slow == [(slow.listener, topic)]
        assert slow.frames == []
        assert len(quick.frames) == 1

    run(script)


def test_transport_that_raises_does_not_stop_delivery_to_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise OSError("no")

    async def script(bench: Bench) -> None:
        topic, params = about("x:1")
        bench.join(topic, place=Place(fail))
        good = bench.join(topic)
        bench.fanout.notify(topic, params)
        await bench.quiet()
        assert len(good.frames) == 1

    run(script)
    assert "change notification not sent" in caplog.text


def test_notification_that_cannot_be_encoded_is_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(bench: Bench) -> None:
        faulty = Topic("notifications/tasks", "t")
        place = bench.join(about("x:\ud800")[0], faulty, about("x:2")[0])
        bench.fanout.notify(*about("x:\ud800"))
        bench.fanout.notify(faulty, object())  # no params of the wire
        bench.fanout.notify(*about("x:2"))
        await bench.quiet()
        assert place.uris == ["x:2"]

    run(script)
    assert "not sent" in caplog.text


def test_catch_up_sends_waiting_notifications_to_one_listener() -> None:
    async def script(bench: Bench) -> None:
        first, second = about("x:1"), about("x:2")
        others = [bench.join(first[0]) for _ in range(SLICE_LISTENERS)]
        place = bench.join(first[0], second[0], TOOLS, asked=IncomingRequest("s", "m"))
        bench.fanout.notify(*first)
        bench.fanout.notify(*second)
        bench.fanout.notify(TOOLS)
        await asyncio.sleep(0)
        assert place.frames == []
        bench.fanout.catch_up(place.listener)
        sent = [json.loads(frame) for frame in place.frames]
        assert [each["params"].get("uri", "list") for each in sent] == ["x:1", "x:2", "list"]
        assert {each["params"]["_meta"][KEY] for each in sent} == {"s"}
        assert len(others) == SLICE_LISTENERS

    run(script)
