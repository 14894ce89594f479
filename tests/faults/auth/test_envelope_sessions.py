"""Sessions over HTTP whose messages carry the credentials: the id of a session is not one."""

from __future__ import annotations

from typing import Any

from tests.faults.http.serving import Session, call, make_app, serving, text_of
from trunkline.auth import ApiKeys
from trunkline.jsonrpc import Policy


def test_a_session_belongs_to_the_first_principal_that_uses_it() -> None:
    app, journal = make_app(policy=Policy.pierre())
    (ann, one), (bob, two) = (ApiKeys.generate(subject=name) for name in ("ann", "bob"))

    def asks(session: Session, key: str | None, headers: Any = ()) -> Any:
        message = call("tools/call", name="whoami", arguments={})
        return session.ask(message if key is None else {**message, "auth": key}, headers)

    with serving(app, journal, auth=ApiKeys([one, two])) as served:
        session = Session(served)
        assert text_of(asks(session, ann).json) == "ann"
        assert "error" in asks(session, bob).json
        assert "error" in asks(session, None).json
        for name, target in (("GET", "/mcp"), ("DELETE", "/mcp")):
            for headers in ([], [("Authorization", f"Bearer {bob}")]):
                with served.connect() as wire:
                    accept = ("Accept", "text/event-stream")
                    data = wire.head(name, target, [*session.headers, accept, *headers])
                    assert wire.ask(data).status == 404
        assert text_of(asks(session, f"Bearer {ann}").json) == "ann"
        with served.connect() as wire:
            headers = [*session.headers, ("Authorization", f"Bearer {ann}")]
            wire.send(wire.head("GET", "/mcp", [*headers, ("Accept", "text/event-stream")]))
            assert wire.start().status == 200
        with served.connect() as wire:
            assert wire.ask(wire.head("DELETE", "/mcp", headers)).status == 204
        # Each has sessions of its own.
        assert text_of(asks(Session(served), bob).json) == "bob"
