"""One audit event for each request of an authenticated caller, whatever its protocol."""

from __future__ import annotations

import pytest

from tests.unit.engine.observability.observed_peer import Wire, make_runtime
from trunkline.auth import Principal
from trunkline.auth.server.audit import AuditEvent
from trunkline.engine.observability.audit import enable_audit
from trunkline.jsonrpc.messages import ErrorObject

ANN = Principal(issuer="https://as.example", subject="ann", client_id="app", tenant="acme")


def test_an_event_says_who_called_what_and_how_it_ended() -> None:
    runtime, events = make_runtime(), list[AuditEvent]()
    enable_audit(runtime, events.append)
    enable_audit(runtime, events.append)  # twice is once
    wire = Wire(runtime, ANN)
    wire.peer.answer(wire.ask(1), {"state": "done"})
    wire.peer.answer(wire.ask(2), {"state": "failed"})
    wire.peer.fail(wire.ask(3), ErrorObject(-32603, "Internal error"))
    wire.peer.fail(wire.ask(4), ErrorObject(-32603, "no", {"requiredScopes": ["read"]}))
    wire.peer.drop(wire.ask(5))
    assert [(each.request_id, each.outcome, each.code) for each in events] == [
        (1, "ok", None),
        (2, "error", None),
        (3, "error", -32603),
        (4, "refused", -32603),
        (5, "cancelled", None),
    ]
    first = events[0]
    assert (first.issuer, first.subject, first.client_id) == ("https://as.example", "ann", "app")
    assert (first.tenant, first.principal_key) == ("acme", ANN.key)
    assert (first.method, first.name, first.transport) == (
        "message/send",
        "translate",
        "websocket",
    )


def test_a_request_without_a_caller_has_no_event() -> None:
    runtime, events = make_runtime(), list[AuditEvent]()
    enable_audit(runtime, events.append)
    wire = Wire(runtime)
    assert wire.peer.answer(wire.ask(1), {})
    assert events == []


def test_a_hook_that_raises_is_logged_once_and_requests_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(event: AuditEvent) -> None:
        raise OSError("disk full")

    runtime = make_runtime()
    enable_audit(runtime, broken)
    wire = Wire(runtime, ANN)
    assert all(wire.peer.answer(wire.ask(id), {}) for id in (1, 2))
    (line,) = caplog.messages
    assert "the audit hook failed, further failures are not logged" in line
