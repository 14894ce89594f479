"""Several processes on one port: what is refused, what is bound, and which are replaced."""

from __future__ import annotations

import argparse
import errno
import os
import re
import signal
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from trunkline import HttpSettings, Server
from trunkline.cli import workers
from trunkline.cli.command import UsageError, parser_of
from trunkline.cli.exit_codes import SUCCESS, USAGE_ERROR
from trunkline.cli.workers import _bound, _close, _Workers, run_workers
from trunkline.transports.addresses import Http, Tcp


def options(count: int = 2) -> argparse.Namespace:
    return parser_of("serve").parse_args(["server.py", "--http", "0", "--workers", str(count)])


def alone() -> Server:
    return Server("alone", revisions=["2026-07-28"], list_changed=False, subscribe=False)


def test_a_server_with_something_between_requests_is_refused() -> None:
    with pytest.raises(UsageError, match="keeps nothing between requests: sessions of 2025-11-25"):
        run_workers(Server("sessions"), Http("127.0.0.1", 0), options(), None)


@pytest.mark.parametrize("address", [Http(unix="/run/x"), Tcp("127.0.0.1", 0), None])
def test_an_address_without_a_port_of_http_is_refused(address: Any) -> None:
    with pytest.raises(UsageError, match="--workers needs --http with a port"):
        run_workers(alone(), address, options(), None)


@pytest.mark.parametrize(("module", "name"), [(socket, "SO_REUSEPORT"), (os, "fork")])
def test_a_system_without_fork_or_reuseport_is_refused(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, name)
    with pytest.raises(UsageError, match="needs a system with fork and SO_REUSEPORT"):
        run_workers(alone(), Http("127.0.0.1", 0), options(), None)


def test_an_address_beyond_this_machine_needs_names_before_anything_is_started() -> None:
    with pytest.raises(UsageError, match="--allowed-host"):
        run_workers(alone(), Http("0.0.0.0", 0), options(), None)


def test_an_address_that_cannot_be_used_is_an_error_of_usage() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Http("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(UsageError, match="cannot be listened on: Address already in use"):
            run_workers(alone(), address, options(), None)
    address = Http("no-such-host.invalid", 8000)
    settings = HttpSettings(hosts=["no-such-host.invalid"])
    with pytest.raises(UsageError, match=r"no-such-host\.invalid:8000 cannot be listened on"):
        run_workers(alone(), address, options(), settings)


def test_each_worker_has_a_socket_of_its_own_on_one_port_that_accepts_at_once() -> None:
    found = _bound(Tcp("127.0.0.1", 0), 3, 16)
    try:
        assert [len(each) for each in found] == [1, 1, 1]
        (port,) = {sock.getsockname()[1] for each in found for sock in each}
        assert len({sock.fileno() for each in found for sock in each}) == 3
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
        # A second server is not spread among them.
        with pytest.raises(UsageError, match="Address already in use"):
            _bound(Tcp("127.0.0.1", port), 1, 16)
    finally:
        _close(found)


def test_addresses_of_a_host_that_this_machine_does_not_have_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def both(host: str, port: int, **_: Any) -> list[Any]:
        # The second is for documentation: no machine has it.
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in ("127.0.0.1", "192.0.2.1")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    found = _bound(Tcp("localhost", 0), 2, 16)
    assert [len(each) for each in found] == [1, 1]
    _close(found)


class Processes(_Workers):
    """Workers that are numbers, and exit when a test says so."""

    def __init__(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        sockets = [[socket.socket()] for _ in range(count)]
        super().__init__(alone(), Http("127.0.0.1", 0), options(count), None, sockets)
        self.now = 100.0
        self.killed: list[tuple[int, int]] = []
        self.started: list[int] = []  # the places, in order; the first process is 1
        # What happens in each wait of the supervisor; the timeouts that it asked for.
        self.events: list[Any] = []
        self.timeouts: list[float | None] = []
        self._exits: dict[int, int] = {}
        monkeypatch.setattr(workers.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(workers.os, "kill", lambda *each: self.killed.append(each))
        monkeypatch.setattr(workers.os, "fork", self._fork)
        monkeypatch.setattr(workers.os, "waitpid", self._waitpid)

    def _start(self, place: Any) -> None:
        self.started.append(self._places.index(place))
        super()._start(place)

    def _fork(self) -> int:
        return len(self.started)

    def _waitpid(self, pid: int, flags: int) -> tuple[int, int]:
        assert flags == os.WNOHANG
        return (pid, self._exits.pop(pid)) if pid in self._exits else (0, 0)

    def _wait(self) -> None:
        due = [place.time for place in self._places if place.pid is None]
        self.timeouts.append(min(due) - self.now if due and not self._signals else None)
        if self.events:
            self.events.pop(0)()
        elif self._signals:
            self.exit(*(place.pid for place in self._places if place.pid is not None))
        else:
            self._on_signal(signal.SIGTERM, None)

    def exit(self, *pids: int, number: int = signal.SIGKILL) -> None:
        self._exits |= dict.fromkeys(pids, int(number))

    def listen(self) -> None:
        self._has_listened = True

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def run(self) -> int:
        before = [(each, signal.getsignal(each)) for each in (*workers._SIGNALS, signal.SIGCHLD)]
        try:
            return super().run()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before:
                signal.signal(number, handler)
            for fd in (*self._ready, *self._wake_up, *self._lifeline):
                os.close(fd)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Return two workers."""
    made = Processes(2, monkeypatch)
    yield made
    _close(made._sockets)


def test_exited_worker_is_replaced_after_a_delay_that_grows(
    own: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    own.events = [own.listen]
    for pid in range(1, 12):
        # The first process is that of place 0; the second that of place 1.
        exit_ = partial(own.exit, pid if pid == 1 else pid + 1)
        own.events += [exit_, partial(own.pass_time, workers._MAX_DELAY_S)]
    assert own.run() == SUCCESS
    assert own.started == [0, 1, *[0] * 11]
    delays = [each for each in own.timeouts if each is not None]
    assert len(delays) == 11
    for at, delay in enumerate(delays):
        most = min(workers._MIN_DELAY_S * 2**at, workers._MAX_DELAY_S)
        assert most / 2 - 1e-6 <= delay <= most + 1e-6
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"trunkline serve: worker 1 exited with -9, replaced in 0\.\d s", lines[0])


def test_delay_of_one_worker_does_not_delay_another(own: Processes) -> None:
    short = partial(own.pass_time, workers._MIN_DELAY_S)
    own.events = [own.listen]
    for pid in (1, 3, 4, 5, 6, 7):
        own.events += [partial(own.exit, pid), partial(own.pass_time, workers._MAX_DELAY_S)]
    # Place 0 waits for seconds when the other worker exits, which is replaced before it.
    own.events += [partial(own.exit, 8), partial(own.exit, 2), short]
    own.run()
    assert own.started == [0, 1, 0, 0, 0, 0, 0, 0, 1]


def test_delays_begin_again_after_a_worker_has_run_for_long(own: Processes) -> None:
    own.events = [own.listen]
    for pid in (1, 3, 4, 5):
        own.events += [
            partial(own.pass_time, workers._STEADY_S),
            partial(own.exit, pid),
            partial(own.pass_time, workers._MIN_DELAY_S),
        ]
    own.run()
    assert own.started == [0, 1, 0, 0, 0, 0]


def test_workers_that_never_listen_end_all_of_them(
    own: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    for pid in (1, 3, 4, 5, 6, 7):
        own.events += [
            partial(own.exit, pid, number=1 << 8),
            partial(own.pass_time, workers._MAX_DELAY_S),
        ]
    own.events.pop()
    assert own.run() == USAGE_ERROR
    assert own.started == [0, 1, *[0] * 5]
    assert own.killed == [(2, signal.SIGTERM)]
    assert capsys.readouterr().err.splitlines()[-1] == (
        "trunkline serve: worker 7 exited with 1; no worker has listened after 6 starts, stopping"
    )


def test_worker_that_cannot_be_forked_is_started_later(
    own: Processes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        monkeypatch.setattr(workers.os, "fork", own._fork)
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(workers.os, "fork", fail)
    own.events = [partial(own.pass_time, workers._MIN_DELAY_S)]
    assert own.run() == SUCCESS
    assert own.started == [0, 1, 0]
    assert "worker not started (Resource temporarily unavailable), replaced in" in (
        capsys.readouterr().err
    )


def test_worker_that_the_server_has_waited_for_is_replaced(
    own: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    waitpid = own._waitpid

    def taken(pid: int, flags: int) -> tuple[int, int]:
        if pid == 1:
            raise ChildProcessError
        return waitpid(pid, flags)

    monkeypatch.setattr(workers.os, "waitpid", taken)
    own.events = [own.listen, partial(own.pass_time, workers._MIN_DELAY_S)]
    assert own.run() == SUCCESS
    assert own.started == [0, 1, 0]


def test_signal_ends_workers_and_port_and_a_second_one_is_passed_on(own: Processes) -> None:
    def check() -> None:
        assert own.killed == [(1, signal.SIGTERM), (2, signal.SIGTERM)]
        assert all(sock.fileno() == -1 for each in own._sockets for sock in each)
        own.exit(1, number=0)

    interrupt = partial(signal.raise_signal, signal.SIGINT)
    own.events = [interrupt, check, interrupt]
    assert own.run() == SUCCESS
    assert own.killed[2:] == [(2, signal.SIGTERM)]
    assert own.started == [0, 1]


def test_signal_before_a_worker_is_replaced_ends_that(own: Processes) -> None:
    own.events = [
        own.listen,
        partial(own.exit, 1),
        partial(signal.raise_signal, signal.SIGTERM),
        partial(own.pass_time, workers._MAX_DELAY_S),
    ]
    assert own.run() == SUCCESS
    assert own.started == [0, 1]
    assert own.killed == [(2, signal.SIGTERM)]


def test_worker_without_a_supervisor_stops_in_order_then_at_once_then_exits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[object] = []
    monkeypatch.setattr(workers.os, "kill", lambda pid, number: steps.append(number))
    monkeypatch.setattr(workers.os, "_exit", steps.append)
    monkeypatch.setattr(workers.time, "sleep", steps.append)
    reads, writes = os.pipe()
    os.close(writes)
    workers._end_with_supervisor(reads, 2.0)
    os.close(reads)
    assert steps == [signal.SIGTERM, 7.0, signal.SIGTERM, 5.0, 1]
