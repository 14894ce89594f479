"""Several processes on one port: what is refused, what is bound, and which are replaced."""

from __future__ import annotations

import argparse
import os
import signal
import socket
from collections.abc import Iterator
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
        self.slept: list[float] = []
        self.killed: list[tuple[int, int]] = []
        self.places: list[int] = []
        monkeypatch.setattr(workers.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(workers.time, "sleep", self.slept.append)
        monkeypatch.setattr(workers.os, "kill", lambda *each: self.killed.append(each))
        for place in range(count):
            self._start(place)

    def _start(self, place: int) -> None:
        self.places.append(place)
        self._running[len(self.places)] = place, self.now


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Return two workers."""
    made = Processes(2, monkeypatch)
    yield made
    _close(made._sockets)


def test_a_worker_that_exits_is_replaced_after_a_growing_delay(
    own: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    own._ended(1, 1)
    own._ended(3, -9)
    assert own.places == [0, 1, 0, 0]
    assert len(own.slept) == 2
    assert all(0 < each <= 5 for each in own.slept)
    assert capsys.readouterr().err == (
        "trunkline serve: worker exited with 1, replaced\n"
        "trunkline serve: worker exited with -9, replaced\n"
    )
    # A child of another kind is not a worker.
    own._ended(99, 0)
    assert len(own.places) == 4


def test_workers_that_exit_again_and_again_end_all_of_them(
    own: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    own._ended(1, 1)
    for pid in range(3, 8):
        assert own._status == SUCCESS
        own._ended(pid, 1)
    assert own._status == USAGE_ERROR
    assert own.killed == [(2, signal.SIGTERM)]
    assert capsys.readouterr().err.endswith("workers exit again and again: stopping\n")
    # The last one ends, and is not replaced.
    own._ended(2, 0)
    assert len(own.places) == 7


def test_a_worker_that_ran_for_long_was_not_a_failed_start(own: Processes) -> None:
    for pid in (1, *range(3, 20)):
        own.now += workers._STEADY_S
        own._ended(pid, 1)
    assert own._status == SUCCESS
    assert own.killed == []


def test_a_signal_ends_each_worker_and_the_port_and_a_second_one_is_passed_on(
    own: Processes,
) -> None:
    own._on_signal(signal.SIGINT, None)
    assert own.killed == [(1, signal.SIGTERM), (2, signal.SIGTERM)]
    assert all(sock.fileno() == -1 for each in own._sockets for sock in each)
    own._ended(1, 0)
    own._on_signal(signal.SIGINT, None)
    assert own.killed[2:] == [(2, signal.SIGTERM)]
    assert own.places == [0, 1]


def test_a_signal_while_a_worker_is_about_to_be_replaced_ends_that(
    own: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.time, "sleep", lambda _: own._on_signal(signal.SIGTERM, None))
    own._ended(1, 1)
    assert own.places == [0, 1]
    assert [*own._running] == [2]
