"""A connection of no protocol whose requests are observed: a peer, and what dispatches them."""

from __future__ import annotations

import json
from typing import Any

from trunkline import ServerLimits
from trunkline.auth import Principal
from trunkline.engine.observability.operations import Operation, OperationRecorder
from trunkline.engine.runtime import ServerRuntime
from trunkline.jsonrpc import Codec, Policy
from trunkline.jsonrpc.limits import Limits
from trunkline.jsonrpc.peer.incoming import IncomingRequest

__all__ = ["Skill", "Wire", "make_runtime"]


def make_runtime() -> ServerRuntime:
    return ServerRuntime("test", ServerLimits(), Limits(), lambda _: None)


class Skill(Operation):
    """A request about a skill, whose failures are results with the state "failed"."""

    __slots__ = ()

    def failure_of(self, result: Any) -> str | None:
        return "failed" if result == {"state": "failed"} else None


class Wire:
    """A peer of a server with observers; `received` has the requests that dispatch has got."""

    def __init__(self, runtime: ServerRuntime, principal: Principal | None = None) -> None:
        self.runtime = runtime
        self.principal = principal
        self.received: list[IncomingRequest] = []
        self.served: list[IncomingRequest] = []
        self.recorder = OperationRecorder(runtime, self.begin, self.received.append, self.serve)
        self.peer = self.recorder.peer(
            Codec(Policy.jsonrpc()), write=lambda *_: True, on_request=self.recorder.receive
        )

    def begin(self, asked: IncomingRequest) -> Skill:
        found = Skill(
            asked,
            asked.method,
            self.principal,
            runtime=self.runtime,
            transport="websocket",
            policy=Policy.jsonrpc(),
        )
        found.kind, found.name = "skill", "translate"
        return found

    def serve(self, asked: IncomingRequest) -> None:
        self.served.append(asked)

    def ask(self, id: int, method: str = "message/send") -> IncomingRequest:
        """Receive a request; return it as dispatch got it."""
        self.peer.feed(json.dumps({"jsonrpc": "2.0", "id": id, "method": method}).encode())
        return self.received[-1]
