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


class Listening:
    """A run that judges, and what it said."""

    def __init__(self, number: int | None = None, **options: Any) -> None:
        self.said: list[str] = []
        self.run = ProxyObserver(self.said.append, judges=True, **options)
        self.connection: ConnectionObserver = self.run.connection(number, "unix", "stdio")


def test_a_finding_is_said_with_rule_level_place_message_and_sender() -> None:
    heard = Listening()
    heard.connection.receive("client", frame(id=1, method="ping"))
    assert heard.said == []
    heard.connection.receive("client", frame(id=None, method="ping"))
    assert len(heard.said) == 1
    first, second = heard.said[0].splitlines()
    assert first.startswith("error mcp.")
    assert "at /id" in first
    assert second.startswith("  message 2, ping, client → server, ")


def test_a_connection_is_named_where_there_are_several() -> None:
    heard = Listening(7)
    heard.connection.receive("server", b"no message")
    assert "  connection 7, message 1, server → client, " in heard.said[0]


def test_the_end_shows_what_was_not_answered() -> None:
    heard = Listening()
    heard.connection.receive("client", frame(id=1, method="ping"))
    heard.connection.end()
    assert [each.split(":")[0] for each in heard.said] == ["remark trace.unanswered"]


def test_the_same_rule_is_told_a_few_times_and_then_counted() -> None:
    heard = Listening()
    for _ in range(50):
        heard.connection.receive("client", b"no message")
    assert len(heard.said) == 3
    assert heard.said[-1].endswith("; further ones are only counted")
    assert heard.run.summary() == "50 messages: 50 errors"


def test_a_run_without_messages_has_a_summary_too() -> None:
    heard = Listening()
    assert heard.run.summary() == "no messages passed"
    heard.connection.receive("client", frame(id=1, method="ping"))
    assert heard.run.summary() == "1 message: nothing found"


def test_neither_secrets_nor_escapes_are_said() -> None:
    heard = Listening()
    heard.connection.receive(
        "client", frame(id=1, method=f"\x1b[2Jtoken={CANARY}", params={"token": 1})
    )
    heard.connection.receive("client", frame(id={"password": CANARY}, method="ping"))
    text = "\n".join(heard.said)
    assert text
    assert CANARY not in text
    assert "\x1b" not in text


def test_a_judge_that_fails_is_said_once_and_asked_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def fail(*given: object) -> None:
        calls.append(given)
        raise ValueError(CANARY)

    monkeypatch.setattr(Conversation, "feed", fail)
    heard = Listening(3)
    for _ in range(3):
        heard.connection.receive("client", b"{}")
    heard.connection.end()
    assert len(calls) == 1
    assert heard.said == ["judging of connection 3 stopped, the judge failed: ValueError"]
    assert heard.run.messages == 3


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
    heard = Listening(2, record=disk)
    spoilt = Oversize(b"{", None, 1)
    heard.connection.receive("client", b"1")
    heard.connection.receive("server", b"2")
    heard.connection.receive("server", spoilt)
    assert [
        (each.sender, each.message, each.transport, each.connection) for each in disk.entries
    ] == [
        ("client", 1, "unix", 2),
        ("server", 2, "stdio", 2),
        ("server", NOTHING, "stdio", 2),
    ]
    assert disk.entries[2].unread == UnreadFrame(length=1)
    assert [fault.rule for fault in disk.entries[2].faults] == ["jsonrpc.limit.message-size"]


def test_a_recording_that_fails_is_said_once_and_the_judge_goes_on() -> None:
    disk = Disk(1)
    heard = Listening(record=disk)
    for _ in range(3):
        heard.connection.receive("client", b"no message")
    assert len(disk.entries) == 1
    told = [each for each in heard.said if "recording" in each]
    assert told == ["recording stopped: No space left on device"]
    assert heard.run.counts["error"] == 3


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
    heard = Listening(record=record)
    large = b'"%s"' % (b"x" * 100_000)
    heard.connection.receive("client", b"1")
    heard.connection.receive("client", large)
    heard.connection.receive("server", b"2")
    # They have not been waited for.
    assert record.entries == [(1, True)]
    heard.connection.end()
    record.go_on.set()
    assert heard.run.jobs.wait(60)
    assert [(message == 1, is_here) for message, is_here in record.entries] == [
        (True, True),
        (False, False),
        (False, False),
    ]
    assert record.entries[2] == (2, False)
    heard.connection.receive("server", b"3")
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


def test_a_frame_that_cannot_be_recorded_is_said_and_the_next_one_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk(9)
    heard = Listening(record=disk)

    def fail(*given: object) -> None:
        raise RecursionError(CANARY)

    with monkeypatch.context() as patched:
        patched.setattr(ConnectionObserver, "_entry", fail)
        heard.connection.receive("client", b"{}")
    heard.connection.receive("client", b"1")
    assert heard.said[0] == "a message was not recorded: RecursionError"
    assert len(disk.entries) == 1
