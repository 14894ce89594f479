"""What `proxy` hears: findings as they come, and faults that are said once."""

from __future__ import annotations

import errno
import json
import os
from threading import Event, get_ident
from typing import Any

import pytest

from trunkline.cli.proxy.job_thread import MAX_BACKLOG_BYTES
from trunkline.cli.proxy.observer import ConnectionObserver, ProxyObserver
from trunkline.errors import NOTHING
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.judge.conversation.conversation import Conversation
from trunkline.judge.trace.reader import TraceEntry, UnreadFrame

CANARY = "canary-20f7aa61"


def frame(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


class ObservedRun:
    """A proxy run that judges, and its reports."""

    def __init__(self, number: int | None = None, **options: Any) -> None:
        self.said: list[str] = []
        self.run = ProxyObserver(self.said.append, judges=True, **options)
        self.connection: ConnectionObserver = self.run.connection(number, "unix", "stdio")


def test_finding_is_reported_with_rule_level_place_message_and_sender() -> None:
    observed = ObservedRun()
    observed.connection.receive("client", frame(id=1, method="ping"))
    assert observed.said == []
    observed.connection.receive("client", frame(id=None, method="ping"))
    assert len(observed.said) == 1
    first, second = observed.said[0].splitlines()
    assert first.startswith("error mcp.")
    assert "at /id" in first
    assert second.startswith("  message 2, ping, client → server, ")


def test_a_connection_is_named_where_there_are_several() -> None:
    observed = ObservedRun(7)
    observed.connection.receive("server", b"no message")
    assert "  connection 7, message 1, server → client, " in observed.said[0]


def test_the_end_shows_what_was_not_answered() -> None:
    observed = ObservedRun()
    observed.connection.receive("client", frame(id=1, method="ping"))
    observed.connection.end()
    assert [each.split(":")[0] for each in observed.said] == ["remark trace.unanswered"]


def test_repeated_rule_is_reported_three_times_and_then_counted() -> None:
    observed = ObservedRun()
    for _ in range(50):
        observed.connection.receive("client", b"no message")
    assert len(observed.said) == 3
    assert observed.said[-1].endswith("; further ones are only counted")
    assert observed.run.summary() == "50 messages: 50 errors"


def test_a_run_without_messages_has_a_summary_too() -> None:
    observed = ObservedRun()
    assert observed.run.summary() == "no messages passed"
    observed.connection.receive("client", frame(id=1, method="ping"))
    assert observed.run.summary() == "1 message: nothing found"


def test_reports_contain_no_secrets_and_no_escapes() -> None:
    observed = ObservedRun()
    observed.connection.receive(
        "client", frame(id=1, method=f"\x1b[2Jtoken={CANARY}", params={"token": 1})
    )
    observed.connection.receive("client", frame(id={"password": CANARY}, method="ping"))
    text = "\n".join(observed.said)
    assert text
    assert CANARY not in text
    assert "\x1b" not in text


def test_failing_judge_is_reported_once_and_not_called_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def fail(*given: object) -> None:
        calls.append(given)
        raise ValueError(CANARY)

    monkeypatch.setattr(Conversation, "feed", fail)
    observed = ObservedRun(3)
    for _ in range(3):
        observed.connection.receive("client", b"{}")
    observed.connection.end()
    assert len(calls) == 1
    assert observed.said == ["judging of connection 3 stopped, the judge failed: ValueError"]
    assert observed.run.messages == 3


class Disk:
    """A recording on a disk that is full after so many entries."""

    def __init__(self, room: int) -> None:
        self.entries: list[TraceEntry] = []
        self._room = room

    def write(self, entry: TraceEntry) -> None:
        if len(self.entries) == self._room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.entries.append(entry)


def test_each_frame_is_recorded_by_the_way_it_came() -> None:
    disk = Disk(9)
    observed = ObservedRun(2, record=disk)
    spoilt = Oversize(b"{", None, 1)
    observed.connection.receive("client", b"1")
    observed.connection.receive("server", b"2")
    observed.connection.receive("server", spoilt)
    assert [
        (each.sender, each.message, each.transport, each.connection) for each in disk.entries
    ] == [
        ("client", 1, "unix", 2),
        ("server", 2, "stdio", 2),
        ("server", NOTHING, "stdio", 2),
    ]
    assert disk.entries[2].unread == UnreadFrame(length=1)
    assert [fault.rule for fault in disk.entries[2].faults] == ["jsonrpc.limit.message-size"]


def test_failing_recording_is_reported_once_and_judging_continues() -> None:
    disk = Disk(1)
    observed = ObservedRun(record=disk)
    for _ in range(3):
        observed.connection.receive("client", b"no message")
    assert len(disk.entries) == 1
    told = [each for each in observed.said if "recording" in each]
    assert told == ["recording stopped: No space left on device"]
    assert observed.run.counts["error"] == 3


class Pausable:
    """A transport that may be paused."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.resumed = Event()

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")
        self.resumed.set()


class Slow:
    """A recording that waits for a sign, and notes where it was called."""

    def __init__(self) -> None:
        self.go_on = Event()
        self.entries: list[tuple[Any, bool]] = []
        self._thread = get_ident()

    def write(self, entry: TraceEntry) -> None:
        is_here = get_ident() == self._thread
        if not is_here:
            assert self.go_on.wait(60)
        self.entries.append((entry.message, is_here))


def test_a_large_frame_is_handled_on_a_thread_and_those_after_it_too() -> None:
    record = Slow()
    observed = ObservedRun(record=record)
    large = b'"%s"' % (b"x" * 100_000)
    observed.connection.receive("client", b"1")
    observed.connection.receive("client", large)
    observed.connection.receive("server", b"2")
    # They have not been waited for.
    assert record.entries == [(1, True)]
    observed.connection.end()
    record.go_on.set()
    assert observed.run.jobs.wait(60)
    assert [(message == 1, is_here) for message, is_here in record.entries] == [
        (True, True),
        (False, False),
        (False, False),
    ]
    assert record.entries[2] == (2, False)
    observed.connection.receive("server", b"3")
    assert record.entries[3] == (3, True)


def test_a_sender_is_paused_while_too_much_waits() -> None:
    record = Slow()
    run = ProxyObserver(lambda text: None, record=record)
    client, server = Pausable(), Pausable()
    connection = run.connection(1, "unix", "stdio", {"client": client, "server": server})
    large = b'"%s"' % (b"x" * MAX_BACKLOG_BYTES)
    connection.receive("client", large)
    connection.receive("client", b"1")
    connection.receive("server", b"2")
    assert client.calls == ["pause", "pause"]
    assert server.calls == ["pause"]
    record.go_on.set()
    assert client.resumed.wait(60)
    assert server.resumed.wait(60)
    assert run.jobs.wait(60)
    assert len(record.entries) == 3


def test_unrecordable_frame_is_reported_and_the_next_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk(9)
    observed = ObservedRun(record=disk)

    def fail(*given: object) -> None:
        raise RecursionError(CANARY)

    with monkeypatch.context() as patched:
        patched.setattr(ConnectionObserver, "_entry", fail)
        observed.connection.receive("client", b"{}")
    observed.connection.receive("client", b"1")
    assert observed.said[0] == "a message was not recorded: RecursionError"
    assert len(disk.entries) == 1
