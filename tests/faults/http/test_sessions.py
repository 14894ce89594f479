"""Sessions of Streamable HTTP: ids, owners, streams, resumption, expiry."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.http.serving import (
    BY_HEADER,
    SESSION,
    TICK,
    Response,
    Served,
    Session,
    Wire,
    call,
    make_app,
    notification,
    serving,
    single,
    text_of,
    user,
)
from tests.faults.http.statements import bad, good
from tests.rigs.messages import initialize_params
from trunkline import HttpLimits, HttpSettings, TaskSettings

MISSING = call("tools/call", name="echo", arguments={"text": "not to be served"})


def held(session: Session, wire: Wire, key: str, id: Any = 1, says: int = 2) -> None:
    """Call a tool that reports progress and waits; read as far as that."""
    arguments = {"key": key, "says": says}
    meta = {"progressToken": f"token of {key}"}
    message = call("tools/call", id, name="held", arguments=arguments, _meta=meta)
    wire.send(session.post(wire, message))


def events_of(wire: Wire, count: int) -> list[dict[str, str]]:
    found = []
    for _ in range(count):
        event = wire.event()
        assert event is not None
        found.append(event)
    return found


# -- answers ---------------------------------------------------------------------------------


@good("BP-082")
def test_post_of_notifications_is_202_without_a_body(served: Served) -> None:
    session = Session(served)
    for message in (
        notification("notifications/roots/list_changed"),
        notification("notifications/cancelled", requestId="unknown"),
        notification("notifications/unknown"),
    ):
        answer = session.ask(message)
        assert (answer.status, answer.body) == (202, b"")


@bad("BP-082")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}},
        {"jsonrpc": "2.0", "id": 1, "error": {}},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": "1.0", "method": "notifications/initialized"},
    ],
    ids=range(5),
)
def test_post_of_an_unmatched_reply_or_bad_message_is_400(served: Served, message: Any) -> None:
    answer = Session(served).ask(message)
    assert answer.status == 400
    if answer.body:
        assert "result" not in answer.json


@good("BP-084", "BP-096", "BP-097")
def test_a_stream_has_a_priming_event_then_messages_then_the_answer_and_ends(
    served: Served,
) -> None:
    session, key = Session(served), "a stream in order"
    with served.connect() as wire:
        held(session, wire, key)
        answer = wire.start()
        assert answer.header("content-type") == "text/event-stream"
        first, *messages = events_of(wire, 3)
        assert first["data"] == ""
        assert first["retry"] == "1000"
        ids = [first["id"], *(each["id"] for each in messages)]
        # Each names its stream, and its place in it.
        assert [re.fullmatch(r"(\d+)-(\d+)", each) is not None for each in ids] == [True] * 3
        assert len({each.partition("-")[0] for each in ids}) == 1
        served.open_gate(key)
        last = wire.event()
        assert last is not None
        assert text_of(json.loads(last["data"])) == f"held {key}"
        assert wire.event() is None


@bad("BP-096", "BP-097")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_older_revisions_get_no_event_without_data(served: Served, revision: str) -> None:
    session, key = Session(served, revision=revision), f"no priming in {revision}"
    with served.connect() as wire:
        held(session, wire, key)
        wire.start()
        assert all(each["data"] for each in events_of(wire, 2))
        served.open_gate(key)


@bad("BP-084")
def test_client_gets_the_reply_by_resuming_after_a_disconnect(served: Served) -> None:
    session, key = Session(served), "left and returned"
    with served.connect() as wire:
        held(session, wire, key)
        wire.start()
        last = events_of(wire, 2)[-1]["id"]
    served.until(lambda: not served.http.connections)
    served.open_gate(key)
    served.until(lambda: key in served.journal.done)
    with session.resume(last) as wire:
        assert wire.start().status == 200
        found = [wire.message(), wire.message()]
        assert found[0]["params"]["progress"] == 2
        assert text_of(found[1]) == f"held {key}"
        assert wire.event() is None


@good("BP-085")
def test_a_disconnect_does_not_cancel(served: Served) -> None:
    session, key = Session(served), "not cancelled"
    with served.connect() as wire:
        held(session, wire, key, says=0)
        served.until(lambda: key in served.journal.begun)
    served.until(lambda: not served.http.connections)
    served.open_gate(key)
    served.until(lambda: key in served.journal.done)
    assert served.on_loop(lambda: key not in served.journal.cancelled)


@bad("BP-085")
def test_a_cancellation_cancels(served: Served) -> None:
    session, key = Session(served), "cancelled in a session"
    with served.connect() as wire:
        held(session, wire, key, id="c")
        wire.start()
        events_of(wire, 3)
        assert session.ask(notification("notifications/cancelled", requestId="c")).status == 202
        served.until(lambda: key in served.journal.cancelled)
        assert wire.event() is None


@good("BP-086")
def test_get_opens_a_stream(served: Served) -> None:
    session = Session(served)
    with served.connect() as wire:
        wire.send(session.get(wire))
        answer = wire.start()
        assert (answer.status, answer.header("content-type")) == (200, "text/event-stream")
        assert answer.header("x-accel-buffering") == "no"


@bad("BP-086")
def test_get_without_a_type_that_streams_is_406(served: Served) -> None:
    session = Session(served)
    with served.connect() as wire:
        for accept in ("application/json", "text/html", "text/event-stream;q=0"):
            headers = [*session.headers, ("Accept", accept)]
            assert wire.ask(wire.head("GET", "/mcp", headers)).status == 406


@good("BP-087", "BP-088")
@bad("BP-087", "BP-088")
def test_an_answer_is_on_the_stream_of_its_request_alone(served: Served) -> None:
    session, keys = Session(served), [f"stream of its own {n}" for n in range(3)]
    wires = [served.connect() for _ in keys]
    listening = [served.connect() for _ in range(2)]
    for wire in listening:
        wire.send(session.get(wire))
        wire.start()
        assert (wire.event() or {})["data"] == ""
    for n, (wire, key) in enumerate(zip(wires, keys, strict=True)):
        held(session, wire, key, id=n)
        wire.start()
    for n, key in enumerate(keys):
        served.until(lambda key=key: key in served.journal.begun)
        served.open_gate(key)
        wire = wires[n]
        found = [wire.message() for _ in range(3)]
        assert [each["params"]["message"] for each in found[:2]] == [key, key]
        assert (found[2]["id"], text_of(found[2])) == (n, f"held {key}")
        assert wire.message() is None
        wire.close()
    # The session ends, and with it the streams: nothing was sent on them.
    with served.connect() as wire:
        assert wire.ask(wire.head("DELETE", "/mcp", session.headers)).status == 204
    for wire in listening:
        assert wire.message() is None
        wire.close()


@good("BP-089")
@bad("BP-089")
def test_event_ids_are_unique_in_a_session(served: Served) -> None:
    session, found = Session(served), []
    for n in range(3):
        key = f"unique {n}"
        with served.connect() as wire, served.connect() as other:
            other.send(session.get(other))
            other.start()
            found += [each["id"] for each in events_of(other, 1)]
            held(session, wire, key)
            wire.start()
            served.open_gate(key)
            found += [each["id"] for each in events_of(wire, 4)]
    assert len(set(found)) == len(found) == 15


# -- resumption ------------------------------------------------------------------------------


@pytest.fixture
def resumable() -> Iterator[Served]:
    limits = HttpLimits(replay_events=10)
    app, journal = make_app()
    with serving(app, journal, limits=limits, auth=BY_HEADER) as found:
        yield found


def cut_off(session: Session, key: str, says: int = 3, read: int = 2) -> list[str]:
    """Call a tool, read some events, and break off; return their ids."""
    with session.served.connect() as wire:
        held(session, wire, key, id=key, says=says)
        wire.start()
        found = [each["id"] for each in events_of(wire, read)]
    session.served.until(lambda: not session.served.http.connections)
    return found


@good("BP-090")
def test_each_place_of_a_stream_can_be_resumed(resumable: Served) -> None:
    session = Session(resumable)
    ids = cut_off(session, "places", says=3, read=4)
    for n, id in enumerate(ids):
        with session.resume(id) as wire:
            assert wire.start().status == 200
            numbers = [wire.message()["params"]["progress"] for _ in range(3 - n)]
            assert numbers == [1, 2, 3][n:]
    resumable.open_gate("places")
    with session.resume(ids[-1]) as wire:
        wire.start()
        assert text_of(wire.message()) == "held places"
        assert wire.message() is None
    # Also after its end, as long as it is kept.
    with session.resume(ids[0]) as wire:
        wire.start()
        assert [wire.message() is not None for _ in range(5)] == [True] * 4 + [False]


@bad("BP-090")
def test_a_resumed_stream_has_nothing_of_another(resumable: Served) -> None:
    session = Session(resumable)
    ids = {key: cut_off(session, key)[0] for key in ("one", "two")}
    other = Session(resumable)
    cut_off(other, "three")
    for key, id in ids.items():
        resumable.open_gate(key)
        with session.resume(id) as wire:
            assert wire.start().status == 200
            body = b""
            while (event := wire.event()) is not None:
                body += event["data"].encode()
        assert key.encode() in body
        assert not any(each.encode() in body for each in {"one", "two", "three"} - {key})


def test_a_stream_that_lost_events_is_not_resumed_as_if_it_had_not(resumable: Served) -> None:
    session = Session(resumable)
    ids = cut_off(session, "gap", says=30, read=25)
    resumable.until(lambda: "gap" in resumable.journal.begun)
    with session.resume(ids[0]) as wire:  # ten are kept
        assert wire.response().status == 400
    with session.resume(ids[-1]) as wire:
        assert wire.start().status == 200
        assert wire.message()["params"]["progress"] == 25
    resumable.open_gate("gap")


@pytest.mark.parametrize(
    "id",
    [
        *("1-999", "99-0", "0-0", "-1-0", "1-", "-", "1", "x-y", "1-0-0", "1e0-0", "\uff11-0"),
        *("0x1-0", "../1-0", "", "1-0\t1", " 1-0 x", "9" * 5000 + "-0"),
    ],
)
def test_a_forged_event_id_is_400(resumable: Served, id: str) -> None:
    session = Session(resumable)
    cut_off(session, "forged")
    with served_wire(resumable) as wire:
        data = session.get(wire, [("Last-Event-ID", "%ID%")])
        wire.send(data.replace(b"%ID%", id.encode()))
        answer = wire.response()
        assert answer.status == 400, answer
        assert b"forged" not in answer.body
    resumable.open_gate("forged")


def served_wire(served: Served) -> Wire:
    return served.connect()


def test_streams_of_another_session_or_principal_are_not_resumed(resumable: Served) -> None:
    alice, bob = Session(resumable, user("alice")), Session(resumable, user("bob"))
    ids = cut_off(alice, "of alice", read=3)
    # Bob has no such stream.
    with bob.resume(ids[1]) as wire:
        assert wire.response().status == 400
    # With the session of Alice, that session does not exist for him.
    for headers in (user("bob"), []):
        thief = Session(resumable, headers)
        thief.id = alice.id
        with thief.resume(ids[1]) as wire:
            answer = wire.response()
            assert answer.status == 404
            assert b"alice" not in answer.body
    resumable.open_gate("of alice")


def test_nothing_is_resumed_after_the_end_of_a_session(resumable: Served) -> None:
    session = Session(resumable)
    ids = cut_off(session, "ended")
    with resumable.connect() as wire:
        assert wire.ask(wire.head("DELETE", "/mcp", session.headers)).status == 204
    with session.resume(ids[0]) as wire:
        assert wire.response().status == 404
    resumable.until(lambda: "ended" in resumable.journal.cancelled)


def test_a_stream_that_is_resumed_twice_has_one_reader(resumable: Served) -> None:
    session = Session(resumable)
    ids = cut_off(session, "twice")
    with session.resume(ids[-1]) as first:
        assert first.start().status == 200
        with session.resume(ids[-1]) as second:
            assert second.start().status == 200
            resumable.open_gate("twice")
            found = [second.message() for _ in range(3)]
            assert text_of(found[-1]) == "held twice"
            while first.event() is not None:
                pass  # it ends, and has no answer
            resumable.until(lambda: "twice" in resumable.journal.done)


# -- ids and owners --------------------------------------------------------------------------


@good("SEC-05", "SEC-06")
def test_session_ids_are_long_random_and_visible(served: Served) -> None:
    ids = [Session(served).id for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", each) for each in ids)  # 256 bits
    # No place has the same character in all of them.
    assert all(len({each[n] for each in ids}) > 1 for n in range(43))


@bad("SEC-05", "SEC-06")
@pytest.mark.parametrize("id", ["chosen-by-the-client", "", "x" * 43, "../x", "a b", "\xe9", "0"])
def test_an_id_that_a_client_chooses_is_never_adopted(served: Served, id: str) -> None:
    params = initialize_params(SESSION)
    before = served.on_loop(lambda: len(served.endpoint.sessions))
    with served.connect() as wire:
        headers = [("Mcp-Session-Id", id)]
        answer = wire.ask(wire.post(call("initialize", **params), headers))
        assert answer.status == 404
        assert answer.header("mcp-session-id") is None
        assert wire.ask(wire.post(MISSING, headers)).status == 404
        assert wire.ask(wire.head("DELETE", "/mcp", headers)).status == 404
    assert served.on_loop(lambda: len(served.endpoint.sessions)) == before
    with served.connect() as wire:
        answer = wire.ask(wire.post(call("initialize", **params)))
        assert answer.header("mcp-session-id") not in (None, id)


@good("BP-091", "BP-092", "BP-094")
@bad("BP-092", "BP-094")
def test_a_session_lasts_until_it_is_deleted_and_is_then_404(served: Served) -> None:
    session = Session(served)
    assert session.call("echo", text="x").status == 200
    with served.connect() as wire:
        assert wire.ask(wire.head("DELETE", "/mcp", session.headers)).status == 204
        for data in (
            session.post(wire, MISSING),
            session.get(wire),
            wire.head("DELETE", "/mcp", session.headers),
            session.post(wire, notification("notifications/initialized")),
        ):
            assert wire.ask(data).status == 404
    assert served.on_loop(lambda: "not to be served" not in served.journal.begun)


@good("BP-093")
@bad("BP-091", "BP-093")
def test_request_without_session_id_is_400(served: Served) -> None:
    with served.connect() as wire:
        for data in (
            wire.post(MISSING),
            wire.post(MISSING, [("MCP-Protocol-Version", SESSION)]),
            wire.post(notification("notifications/initialized")),
            wire.head("GET", "/mcp", [("Accept", "text/event-stream")]),
            wire.head("DELETE", "/mcp"),
        ):
            answer = wire.ask(data)
            assert answer.status == 400, data
            assert "session" in answer.json["error"]["message"].lower()
    assert served.on_loop(lambda: "not to be served" not in served.journal.begun)


@good("BP-095")
def test_a_session_without_a_version_header_is_served(served: Served) -> None:
    session = Session(served)
    with served.connect() as wire:
        headers = [("Mcp-Session-Id", session.id)]
        message = call("tools/call", name="echo", arguments={"text": "no version"})
        assert text_of(wire.ask(wire.post(message, headers)).json) == "no version"


@bad("BP-095")
@pytest.mark.parametrize("version", ["1999-01-01", "2025-11-26", "x", "", "2025-11-25, 2025-06-18"])
def test_a_version_header_that_is_not_served_is_400(served: Served, version: str) -> None:
    session, key = Session(served), f"version {version}"
    headers = [("Mcp-Session-Id", session.id), ("MCP-Protocol-Version", version)]
    with served.connect() as wire:
        message = call("tools/call", name="echo", arguments={"text": key})
        assert wire.ask(wire.post(message, headers)).status == 400
        stream = [*headers, ("Accept", "text/event-stream")]
        assert wire.ask(wire.head("GET", "/mcp", stream)).status == 400
        assert wire.ask(wire.head("DELETE", "/mcp", headers)).status == 400
    assert served.on_loop(lambda: key not in served.journal.begun)
    assert session.call("echo", text="still there").status == 200


def test_two_session_headers_are_refused(served: Served) -> None:
    session = Session(served)
    answer = session.ask(MISSING, [("Mcp-Session-Id", session.id)])
    assert answer.status == 400


@pytest.fixture(scope="module")
def owned() -> Iterator[Served]:
    app, journal = make_app(tasks=TaskSettings(quick=0))

    @app.tool(task="required")
    async def job(key: str) -> str:
        """Run as a task."""
        await journal.gate(key).wait()
        return f"job {key}"

    with serving(app, journal, auth=BY_HEADER) as found:
        yield found


@bad("SEC-06", "SEC-10")
def test_session_of_another_principal_is_answered_like_an_unknown_one(owned: Served) -> None:
    alice = Session(owned, user("alice"))
    unknown = "A" * len(alice.id)

    def answers(id: str, who: list[tuple[str, str]]) -> list[bytes]:
        found: list[Response] = []
        with owned.connect() as wire:
            thief = Session(owned, user("mallory"))
            thief.id, thief.extra = id, who
            found.append(wire.ask(thief.post(wire, MISSING)))
            found.append(wire.ask(thief.get(wire)))
            found.append(wire.ask(thief.get(wire, [("Last-Event-ID", "1-0")])))
            found.append(wire.ask(thief.post(wire, notification("notifications/cancelled"))))
            found.append(wire.ask(wire.head("DELETE", "/mcp", thief.headers)))
        assert {each.status for each in found} == {404}
        return [each.timeless for each in found]

    for who in (user("bob"), user("Alice"), user("alice2"), []):
        assert answers(alice.id, who) == answers(unknown, who)
    assert alice.call("echo", text="still there").status == 200
    assert owned.on_loop(lambda: "not to be served" not in owned.journal.begun)


@good("SEC-06", "SEC-10")
def test_each_request_has_the_principal_that_it_names(owned: Served) -> None:
    with owned.connect() as wire:
        for name in ("alice", "bob", "alice"):
            answer = wire.ask(single(wire, "whoami", headers=user(name)))
            assert text_of(answer.json) == name
        assert text_of(wire.ask(single(wire, "whoami")).json) == "None"
        # The same head again and again, then without a right.
        for _ in range(5):
            assert wire.ask(single(wire, "whoami", headers=user("alice"))).status == 200
        assert wire.ask(single(wire, "whoami", headers=user("nobody"))).status == 401


@good("SEC-04")
@bad("SEC-04")
def test_a_request_without_credentials_is_401_on_every_method(owned: Served) -> None:
    alice = Session(owned, user("alice"))
    alice.extra = user("nobody")
    with owned.connect() as wire:
        for data in (
            alice.post(wire, MISSING),
            alice.get(wire),
            wire.head("DELETE", "/mcp", alice.headers),
            single(wire, "echo", headers=user("nobody"), text="not to be served"),
        ):
            assert wire.ask(data).status == 401
    alice.extra = user("alice")
    assert alice.call("echo", text="x").status == 200
    assert owned.on_loop(lambda: "not to be served" not in owned.journal.begun)


def test_task_of_another_principal_is_answered_like_an_unknown_one(owned: Served) -> None:
    alice, bob = Session(owned, user("alice")), Session(owned, user("bob"))
    message = call("tools/call", name="job", arguments={"key": "a job"}, task={"ttl": 60_000})
    made = alice.ask(message).json
    id = made["result"]["task"]["taskId"]
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        foreign = bob.ask(call(method, taskId=id))
        unknown = bob.ask(call(method, taskId="0" * len(id)))
        assert foreign.json["error"]["code"] == -32602, foreign
        assert foreign.timeless == unknown.timeless.replace(b"0" * len(id), id.encode())
    assert id not in bob.ask(call("tasks/list")).body.decode()
    assert alice.ask(call("tasks/get", taskId=id)).json["result"]["status"] == "working"
    owned.open_gate("a job")
    assert text_of(alice.ask(call("tasks/result", taskId=id)).json) == "job a job"


def test_secrets_of_many_principals_stay_apart(owned: Served) -> None:
    """Each sends and receives its own secret, at once; no other byte of it arrives elsewhere."""
    failures: list[str] = []
    names = [f"user-{n:02}" for n in range(12)]

    def talk(name: str) -> None:
        try:
            secret = f"secret-of-{name}"
            session = Session(owned, user(name))
            seen = b""
            with owned.connect() as wire:
                for n in range(6):
                    arguments = {"text": secret}
                    message = call("tools/call", n, name="echo", arguments=arguments)
                    accept = [("Accept", "text/event-stream")] if n % 2 else []
                    seen += wire.ask(session.post(wire, message, accept)).body
                    seen += wire.ask(single(wire, "whoami", headers=user(name))).body
                    key = f"{secret}-{n}"
                    held(session, wire, key, id=f"{secret}-{n}")
                    wire.start()
                    owned.until(lambda key=key: key in owned.journal.begun)
                    owned.open_gate(key)
                    while (event := wire.event()) is not None:
                        seen += event["data"].encode()
            if seen.count(secret.encode()) < 6 or seen.count(name.encode()) < 12:
                failures.append(f"{name} misses something of its own")
            failures.extend(
                f"{name} has something of {other}"
                for other in names
                if other != name and other.encode() in seen
            )
        except Exception as error:  # noqa: BLE001  # shown below
            failures.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=talk, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# -- the life of sessions --------------------------------------------------------------------


def test_session_ids_are_not_in_logs(caplog: pytest.LogCaptureFixture) -> None:
    settings = HttpSettings(access_log=True)
    limits = HttpLimits(sessions=2, session_idle=30)
    with (
        caplog.at_level(logging.DEBUG),
        serving(http=settings, limits=limits, auth=BY_HEADER) as served,
    ):
        sessions = [Session(served, user("canary-user")) for _ in range(4)]
        for session in sessions:
            session.ask(b"{")
            session.ask({"jsonrpc": "2.0", "id": 9, "result": {}})
            session.ask(call("unknown/method"))
            session.call("echo", text="x")
            with served.connect() as wire:
                wire.ask(wire.head("DELETE", f"/mcp?x={session.id}", session.headers))
    assert caplog.records
    for session in sessions:
        assert session.id not in caplog.text
        assert session.id not in repr(session.served.http.connections)


def aged(served: Served, *sessions: Session, began: float = 0.0) -> None:
    """Have sessions used an hour ago, or begun so many seconds ago; then let the server look."""

    def age() -> float:
        ids = {each.id for each in sessions}
        for found in served.endpoint.sessions:
            if found.id in ids:
                found.used -= 3600.0
                found.began -= began
        return served.http.now

    looked(served, served.on_loop(age))


def looked(served: Served, since: float) -> None:
    """Wait until the server has looked at its sessions some times."""
    served.until(lambda: served.http.now > since + 3 * TICK)


def test_idle_sessions_end_and_busy_ones_do_not() -> None:
    with serving() as served:
        idle, busy = Session(served), Session(served)
        with served.connect() as wire:
            wire.send(busy.get(wire))
            wire.start()
            aged(served, idle, busy)
            assert served.on_loop(lambda: len(served.endpoint.sessions)) == 1
            assert idle.ask(MISSING).status == 404
            assert busy.call("echo", text="x").status == 200
            assert wire.event() is not None
        served.until(lambda: not served.http.connections)
        aged(served, busy)
        assert busy.ask(MISSING).status == 404


def test_a_session_is_not_idle_since_before_its_last_stream_ended() -> None:
    """A client that listened for long and lost its connection can return."""
    with serving() as served:
        session = Session(served)
        with served.connect() as wire:
            wire.send(session.get(wire))
            wire.start()
            last = (wire.event() or {})["id"]
            aged(served, session)
        served.until(lambda: not served.http.connections)
        looked(served, served.on_loop(lambda: served.http.now))
        with session.resume(last) as wire:
            assert wire.start().status == 200


def test_a_session_ends_after_its_lifetime_though_it_is_used() -> None:
    with serving() as served:
        session = Session(served)
        with served.connect() as wire:
            wire.send(session.get(wire))
            wire.start()
            aged(served, session, began=86_400.0)
            while wire.event() is not None:
                pass  # the stream ends with the session
        assert session.ask(MISSING).status == 404


def test_longest_idle_session_is_dropped_for_a_new_one() -> None:
    with serving(limits=HttpLimits(sessions=3)) as served:
        first, second, third = (Session(served) for _ in range(3))
        assert first.call("echo", text="used").status == 200
        fourth = Session(served)
        assert second.ask(MISSING).status == 404
        assert all(e.call("echo", text="x").status == 200 for e in (first, third, fourth))


def test_session_with_an_abandoned_stream_is_dropped_too() -> None:
    with serving(limits=HttpLimits(sessions=3)) as served:
        for _ in range(6):
            session = Session(served)
            with served.connect() as wire:
                wire.send(session.get(wire))
                wire.start()
            served.until(lambda: not served.http.connections)
        assert served.on_loop(lambda: len(served.endpoint.sessions)) == 3


def test_many_sessions_that_are_in_use_do_not_keep_others_out() -> None:
    with serving(limits=HttpLimits(sessions=100)) as served:
        wires = []
        for _ in range(70):  # the longest open ones, all in use
            session, wire = Session(served), served.connect()
            wire.send(session.get(wire))
            wire.start()
            wires.append(wire)
        for _ in range(60):
            Session(served)
        for wire in wires:
            wire.close()


def test_replaced_streams_are_forgotten() -> None:
    with serving() as served:
        session = Session(served)
        former = served.connect()
        former.send(session.get(former))
        former.start()
        for _ in range(30):
            wire = served.connect()
            wire.send(session.get(wire))
            wire.start()
            former.close()
            former = wire
        former.close()
        served.until(lambda: not served.http.connections)
        (found,) = served.on_loop(lambda: list(served.endpoint.sessions))
        assert served.on_loop(lambda: len(found.exchanges)) <= 1


def test_a_failed_initialize_leaves_no_session() -> None:
    with serving() as served, served.connect() as wire:
        for params in ({}, {"protocolVersion": 5}, {"protocolVersion": SESSION}):
            answer = wire.ask(wire.post(call("initialize", **params)))
            assert "error" in answer.json
            assert answer.header("mcp-session-id") is None
        served.until(lambda: not len(served.endpoint.sessions), "a session is left")
