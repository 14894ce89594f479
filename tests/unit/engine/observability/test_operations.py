"""Requests of any protocol, observed from receipt to answer."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

import pytest

from tests.unit.engine.observability.observed_peer import Skill, Wire, make_runtime
from trunkline.auth import Principal
from trunkline.auth.server.tenants import Tenants
from trunkline.engine.access.tenancy import Tenancy
from trunkline.engine.observability.operations import (
    CANCELLED,
    OTHER,
    Observer,
    Operation,
    add_observer,
)
from trunkline.jsonrpc.messages import ErrorObject
from trunkline.jsonrpc.peer.incoming import IncomingRequest


class Seen(Observer[Skill]):
    """Keeps the operations that have begun, and those that have ended."""

    def __init__(self) -> None:
        self.begun: list[Skill] = []
        self.ended: list[Skill] = []

    def begin(self, operation: Skill) -> None:
        self.begun.append(operation)

    def end(self, operation: Skill) -> None:
        self.ended.append(operation)


def observed(principal: Principal | None = None) -> tuple[Wire, Seen]:
    runtime, seen = make_runtime(), Seen()
    add_observer(runtime, seen)
    return Wire(runtime, principal), seen


@pytest.mark.parametrize(
    ("end", "error_type"),
    [
        (lambda peer, asked: peer.answer(asked, {"state": "done"}), None),
        (lambda peer, asked: peer.answer(asked, {"state": "failed"}), "failed"),
        (lambda peer, asked: peer.fail(asked, ErrorObject(-32603, "Internal error")), "-32603"),
        (lambda peer, asked: peer.fail(asked, ErrorObject(31415, "mine")), OTHER),
        (lambda peer, asked: peer.drop(asked), CANCELLED),
        (lambda peer, _: peer.close(), CANCELLED),
    ],
    ids=["result", "failed result", "error", "other code", "dropped", "connection ended"],
)
def test_an_operation_ends_with_its_request_once(
    end: Callable[..., object], error_type: str | None
) -> None:
    wire, seen = observed()
    asked = wire.ask(1)
    assert [each.asked for each in seen.begun] == [asked]
    assert seen.ended == []
    end(wire.peer, asked)
    wire.peer.answer(asked, {})
    wire.peer.close()
    assert seen.ended == seen.begun
    (operation,) = seen.ended
    assert operation.error_type == error_type
    assert operation.seconds > 0


def test_an_operation_has_the_facts_that_every_protocol_has() -> None:
    wire, seen = observed(Principal(subject="ann", tenant="acme"))
    wire.ask(1)
    (operation,) = seen.begun
    assert (operation.method, operation.kind, operation.name) == (
        "message/send",
        "skill",
        "translate",
    )
    assert (operation.network_transport, operation.network_protocol) == ("tcp", "websocket")
    assert (operation.tenant, operation.tenant_label, operation.address) == ("acme", "", "")
    wire.runtime.tenancy = Tenancy(wire.runtime, Tenants(named_in_metrics=1))
    assert operation.tenant_label == "acme"
    # Found in the message, after it was received.
    operation.asked.owner = Principal(subject="bob", tenant="bell")
    assert operation.principal is operation.asked.owner
    assert operation.tenant_label == "other"


def test_an_error_that_names_scopes_is_a_refusal() -> None:
    wire, seen = observed()
    wire.peer.fail(wire.ask(1), ErrorObject(-32603, "no", {"requiredScopes": ["read"]}))
    wire.peer.fail(wire.ask(2), ErrorObject(-32603, "no", {"other": 1}))
    wire.peer.answer(wire.ask(3), {"requiredScopes": ["read"]})
    assert [each.is_refused for each in seen.ended] == [True, False, False]


_current: ContextVar[int | None] = ContextVar("current", default=None)


class InContext(Observer[Operation]):
    """Sets a context variable to the id of the request."""

    def enter(self, operation: Operation) -> Callable[[], object]:
        id = operation.asked.id
        token = _current.set(id if isinstance(id, int) else None)
        return lambda: _current.reset(token)


def test_a_request_is_served_in_its_own_context_also_after_it_has_waited() -> None:
    runtime = make_runtime()
    add_observer(runtime, InContext())
    found: list[tuple[object, int | None]] = []

    class Noting(Wire):
        def serve(self, asked: IncomingRequest) -> None:
            found.append((asked.id, _current.get()))

    wire = Noting(runtime)
    first, second = wire.ask(1), wire.ask(2)
    wire.recorder.serve(second)
    wire.recorder.serve(first)
    assert found == [(2, 2), (1, 1)]
    assert _current.get() is None


def test_a_request_whose_operation_cannot_be_made_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Wire):
        def begin(self, asked: IncomingRequest) -> Skill:
            raise ValueError("no operation")

    runtime, seen = make_runtime(), Seen()
    add_observer(runtime, seen)
    wire = Failing(runtime)
    asked = wire.ask(1)
    wire.recorder.serve(asked)
    assert wire.received == wire.served == [asked]
    assert wire.peer.answer(asked, {})
    assert seen.ended == []
    assert caplog.messages == ["a request is not observed: ValueError: no operation"]


def test_an_observer_is_called_about_connections_that_are_opened_after_it_was_added() -> None:
    runtime, seen = make_runtime(), Seen()
    before = Wire(runtime)
    add_observer(runtime, seen)
    before.ask(1)
    assert seen.begun == []
    Wire(runtime).ask(1)
    assert len(seen.begun) == 1
