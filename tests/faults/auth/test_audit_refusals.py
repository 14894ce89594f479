"""Audit of refused credentials: who knocks is noted, and a flood of them fills nothing."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.faults.auth.issuing import ANN, FIRST, auth
from tests.faults.http.serving import call, make_app, serving, single_headers
from tests.rigs.messages import META
from trunkline.auth import AuditEvent, JsonLinesAudit
from trunkline.auth.server.audit import RefusalAudit

BODY = call("tools/call", name="whoami", arguments={}, _meta=META)
HEADERS = single_headers("tools/call", "whoami")


def test_a_refused_credential_is_one_line_of_audit_and_a_missing_one_is_none(
    tmp_path: Path,
) -> None:
    app, journal = make_app()
    audit = JsonLinesAudit(tmp_path / "audit.jsonl")
    given = [
        [],
        [("Authorization", f"Bearer {FIRST.token(lifetime=-100)}")],
        [("Authorization", "Bearer CANARY, CANARY")],
        [("Authorization", "Bearer CANARY.CANARY")],
        [("Authorization", "Basic CANARY")],
        ANN.headers(),
    ]
    with serving(app, journal, auth=auth(audit=audit)) as served:
        statuses = []
        for headers in given:
            with served.connect() as wire:
                statuses.append(wire.ask(wire.post(BODY, [*HEADERS, *headers])).status)
    audit.close()
    assert statuses == [401, 401, 400, 401, 401, 200]
    text = audit.path.read_text()
    assert "CANARY" not in text
    found = [json.loads(each) for each in text.splitlines()]
    refused = {"method": "POST", "transport": "http", "address": "127.0.0.1", "seconds": 0.0}
    for each, status in zip(found[:-1], (401, 400, 401, 401), strict=True):
        del each["time"]
        assert each == {**refused, "outcome": "unauthenticated", "code": status}
    assert found[-1]["outcome"] == "ok"


def test_events_of_refusals_are_bounded_and_the_rest_is_counted() -> None:
    now, events = [1000.0], list[AuditEvent]()
    report = RefusalAudit(events.append, lambda: now[0])

    def flood(count: int) -> list[int]:
        events.clear()
        for _ in range(count):
            report(method="POST", code=401, transport="http", address="192.0.2.1")
        return [each.omitted for each in events]

    assert flood(1000) == [0] * 100
    now[0] += 1.0
    assert flood(50) == [900, *([0] * 9)]
    now[0] += 3600
    assert flood(1) == [40]
    assert flood(10_000) == [0] * 99


def test_a_hook_that_fails_is_logged_once_and_the_client_gets_its_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)

    def hook(event: AuditEvent) -> None:
        raise RuntimeError("disk")

    app, journal = make_app()
    with serving(app, journal, auth=auth(audit=hook)) as served:
        for _ in range(3):
            with served.connect() as wire:
                headers = [*HEADERS, ("Authorization", "Bearer a.b")]
                assert wire.ask(wire.post(BODY, headers)).status == 401
    assert caplog.text.count("the audit hook failed") == 1
