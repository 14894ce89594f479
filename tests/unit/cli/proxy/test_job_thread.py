"""The thread of the observer: order, backlog, and waiting for the end."""

from __future__ import annotations

from threading import Event, get_ident

import pytest

from trunkline.cli.proxy.job_thread import MAX_BACKLOG_BYTES, JobThread


def test_jobs_run_in_order_on_another_thread() -> None:
    jobs = JobThread(lambda: None)
    assert jobs.is_idle
    ran: list[tuple[int, bool]] = []
    here = get_ident()
    for number in range(100):
        jobs.submit(1, lambda number=number: ran.append((number, get_ident() == here)))
    assert jobs.wait(60)
    assert [number for number, _ in ran] == list(range(100))
    assert not any(is_here for _, is_here in ran)
    assert jobs.is_idle


def test_job_thread_is_full_until_half_of_the_backlog_is_done() -> None:
    drained, go_on = Event(), Event()
    jobs = JobThread(drained.set)
    jobs.submit(1, lambda: go_on.wait(60))
    jobs.submit(MAX_BACKLOG_BYTES, lambda: None)
    assert jobs.is_full
    assert not drained.is_set()
    assert not jobs.wait(0)
    go_on.set()
    assert drained.wait(60)
    assert jobs.wait(60)
    assert not jobs.is_full


def test_a_job_that_fails_is_logged_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    jobs = JobThread(lambda: None)
    ran = Event()
    jobs.submit(1, lambda: 1 / 0)
    jobs.submit(1, ran.set)
    assert jobs.wait(60)
    assert ran.is_set()
    assert "ZeroDivisionError" in caplog.text
