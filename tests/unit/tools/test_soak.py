"""`tools/soak`: what counts as answered, what counts as left behind, and what is a miss."""

from __future__ import annotations

from typing import Any

import pytest

from tools.soak.flood import refusals
from tools.soak.http_wire import Register
from tools.soak.limits import HTTP_CLIENTS, capacity_for
from tools.soak.server import MAX_MESSAGE_BYTES
from tools.soak.verdict import Holding, Report, misses, table
from tools.soak.wire import MAX_FAILURES, Ledger, Tally


def answer(id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {}}


def report(**given: Any) -> Report:
    holding = {"rss_kib": 100, "descriptors": 5, "threads": ["MainThread"]}
    names = ("before", "first", "last")
    holdings = {
        f"{side}_{name}": Holding(**holding)
        for side in ("server", "client")
        for name in (*names, *(["after"] if side == "client" else []))
    }
    tally = Tally(accepted=10, answered=10, calls=5)
    return Report(**{"kind": "unix", "tally": tally, **holdings, **given})


# Ledger


def closed(ledger: Ledger, **options: bool) -> Tally:
    tally = Tally()
    ledger.close(tally, **options)
    return tally


def test_each_request_is_to_be_answered_once() -> None:
    ledger = Ledger()
    for id in (1, "1", 2):
        ledger.send(id)
    ledger.take(answer(1))
    ledger.take([answer("1"), {"method": "notifications/message"}])
    assert not ledger.is_settled
    ledger.take(answer(2))
    assert ledger.is_settled
    tally = closed(ledger)
    assert (tally.accepted, tally.answered, tally.twice, tally.unanswered) == (3, 3, 0, 0)


def test_an_answer_too_many_and_one_too_few_are_seen() -> None:
    ledger = Ledger()
    for id in (1, 2):
        ledger.send(id)
    ledger.take(answer(1))
    ledger.take(answer(1))
    tally = closed(ledger)
    assert (tally.answered, tally.twice, tally.unanswered) == (1, 1, 1)


def test_answers_to_nonsense_are_not_counted() -> None:
    ledger = Ledger()
    ledger.send(1)
    ledger.take({"jsonrpc": "2.0", "id": None, "error": {}})
    ledger.take(answer(99))
    tally = closed(ledger)
    assert (tally.answered, tally.twice, tally.unanswered) == (0, 0, 1)


def test_cancelled_and_abandoned_requests_are_counted_apart() -> None:
    ledger = Ledger()
    for id in (1, 2, 3):
        ledger.send(id)
    for id in (1, 2):
        ledger.cancel(id)
    ledger.take(answer(1))  # it crossed the cancellation
    assert not ledger.is_settled
    tally = closed(ledger, abandons=True)
    assert (tally.answered, tally.cancelled, tally.abandoned) == (1, 1, 1)
    assert tally.unanswered == 0


def registered(register: Register, ran: bytes) -> Tally:
    tally = Tally()
    register.close(tally, ran)
    return tally


def test_a_request_over_http_is_answered_once_and_runs_once() -> None:
    register = Register()
    called, plain, abandoned = register.new(), register.new(runs=False), register.new()
    assert [called, plain, abandoned] == [0, 1, 2]
    assert register.answer(called)
    assert register.answer(plain)
    register.abandon(abandoned)
    tally = registered(register, b"\1\0\1")
    assert (tally.accepted, tally.answered, tally.abandoned) == (3, 2, 1)
    assert (tally.unanswered, tally.twice, tally.failures) == (0, 0, [])


def test_an_answer_to_an_abandoned_request_is_counted() -> None:
    register = Register()
    number = register.new()
    register.abandon(number)
    assert not register.is_answered(number)
    register.answer(number)
    assert register.is_answered(number)
    tally = registered(register, b"\1")
    assert (tally.answered, tally.abandoned) == (1, 0)
    register.answer(number)
    assert registered(register, b"\1").twice == 1


@pytest.mark.parametrize(
    ("answers", "runs", "ran", "too_often", "not_at_all"),
    [
        (1, True, b"\1", 0, 0),
        (0, True, b"\0", 0, 0),
        (1, False, b"\0", 0, 0),
        (1, True, b"\2", 1, 0),
        (0, True, b"\2", 1, 0),
        (1, False, b"\1", 1, 0),
        (1, True, b"\0", 0, 1),
        (1, True, b"", 0, 1),
    ],
)
def test_a_request_over_http_that_runs_too_often_or_not_at_all_is_seen(
    answers: int, runs: bool, ran: bytes, too_often: int, not_at_all: int
) -> None:
    register = Register()
    number = register.new(runs=runs)
    for _ in range(answers):
        register.answer(number)
    tally = registered(register, ran)
    assert (tally.ran_too_often, tally.did_not_run) == (too_often, not_at_all)


def test_an_answer_over_http_too_many_or_too_few_is_seen() -> None:
    register = Register()
    numbers = [register.new() for _ in range(2)]
    for _ in range(3):
        register.answer(numbers[0])
    tally = registered(register, b"\1\1")
    assert (tally.answered, tally.twice, tally.unanswered) == (1, 1, 1)
    assert not register.answer(99)
    assert not register.answer(None)


def test_failures_are_bounded() -> None:
    tally = Tally()
    for n in range(MAX_FAILURES * 2):
        tally.fail(f"{n}" * 1000)
    assert len(tally.failures) == MAX_FAILURES
    assert all(len(each) <= 500 for each in tally.failures)


# What is left


def test_holding_no_more_than_before_reports_nothing() -> None:
    before = Holding(descriptors=5, tasks=["a", "b"], threads=["MainThread"])
    assert Holding(descriptors=4, tasks=["a"], threads=["MainThread"]).more_than(before) == []


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"descriptors": 6}, "1 descriptors"),
        ({"connections": 2}, "2 connections"),
        ({"in_flight": 1}, "1 in_flight"),
        ({"sessions": 1}, "1 sessions"),
        ({"exchanges": 3}, "3 exchanges"),
        ({"event_logs": 1}, "1 event_logs"),
        ({"accounts": 1}, "1 accounts"),
        ({"held_bytes": 1000}, "1000 held_bytes"),
        ({"tasks": ["a", "b", "b"]}, "1 task b"),
        ({"timers": ["KeepAlive._check"]}, "1 timer KeepAlive._check"),
        ({"threads": ["MainThread", "x"]}, "1 thread x"),
    ],
)
def test_holding_more_than_before_is_named(given: dict[str, Any], left: str) -> None:
    before = Holding(descriptors=5, tasks=["a", "b"], threads=["MainThread"])
    values = {"descriptors": 5, "tasks": ["a", "b"], "threads": ["MainThread"], **given}
    assert Holding(**values).more_than(before) == [left]


def test_idle_threads_of_the_pool_the_report_of_warnings_and_timers_of_uvicorn_stay() -> None:
    timers = ["LogLimit._report", "HttpToolsProtocol.timeout_keep_alive_handler"]
    after = Holding(threads=["trunkline-handler-1"], timers=timers)
    assert after.more_than(Holding()) == []


# The verdict


def test_a_good_run_misses_nothing() -> None:
    assert misses(report()) == []
    assert misses(report(server_last=Holding(rss_kib=110))) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"server_last": Holding(rss_kib=111)}, "server: RSS has grown from 100 to 111 KiB"),
        ({"client_last": Holding(rss_kib=111)}, "clients: RSS has grown from 100 to 111 KiB"),
        (
            {"server_last": Holding(rss_kib=100, tasks=["x"])},
            "server: left behind: 1 task x",
        ),
        ({"client_after": Holding(descriptors=6)}, "clients: left behind: 1 descriptors"),
        ({"exit_status": 3}, "the server has exited with 3"),
        ({"log": "ERROR\nTraceback (most"}, "the log of the server has a traceback: Traceback"),
        (
            {"tally": Tally(accepted=1, answered=1, calls=1, twice=2)},
            "2 requests were answered twice",
        ),
        (
            {"tally": Tally(accepted=1, calls=1, unanswered=1)},
            "1 requests were not answered",
        ),
        (
            {"tally": Tally(accepted=1, calls=1, ran_too_often=1)},
            "1 requests ran more than once",
        ),
        (
            {"tally": Tally(accepted=1, calls=1, did_not_run=1)},
            "1 requests were answered and did not run",
        ),
        ({"tally": Tally(accepted=1, calls=1, failures=["x: y"])}, "x: y"),
        ({"tally": Tally()}, "there was no load"),
        (
            {"tally": Tally(accepted=1, calls=1, refused={"calls": 0, "bodies": 1, "threads": 0})},
            "the flood was not refused: calls, threads",
        ),
    ],
)
def test_each_miss_is_said(given: dict[str, Any], said: str) -> None:
    (found,) = misses(report(**given))
    assert found.startswith(said)


def test_a_run_whose_flood_was_refused_everything_misses_nothing() -> None:
    tally = Tally(accepted=1, calls=1, refused=dict.fromkeys(refusals("http"), 1))
    assert misses(report(tally=tally)) == []


@pytest.mark.parametrize("kind", HTTP_CLIENTS)
def test_a_flood_is_to_be_refused_something_of_everything(kind: str) -> None:
    found = refusals(kind)
    assert set(found.values()) == {0}
    assert ("connections" in found) == (kind != "asgi")


@pytest.mark.parametrize("clients", HTTP_CLIENTS.values())
def test_half_of_what_a_server_has_is_enough_for_its_clients(clients: int) -> None:
    capacity = capacity_for(clients)
    for most in (capacity.connections, capacity.sessions, capacity.calls):
        assert most // 2 > clients
    # One client may be sending an eighth of all bytes.
    assert capacity.server_bytes // 8 > MAX_MESSAGE_BYTES
    assert capacity.server_bytes // 2 > capacity.connection_bytes


def test_the_table_has_a_row_for_each_target() -> None:
    lines = table([report(), report(kind="tls", exit_status=1)]).splitlines()
    assert lines[0].split()[:2] == ["sessions", "requests"]
    assert lines[1].startswith("unix")
    assert lines[1].endswith("ok")
    assert lines[2].startswith("tls")
    assert lines[2].endswith("FAILED")
