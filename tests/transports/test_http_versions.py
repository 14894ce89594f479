"""The revision and the session of an HTTP request: which header decides, and in which revisions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.http.serving import (
    Response,
    Served,
    Session,
    call,
    serving,
    single,
    single_headers,
    text_of,
)
from tests.rigs.messages import META, PER_REQUEST
from trunkline import Context, Server
from trunkline.spec.revisions import REVISIONS

WITH_HANDSHAKE = [each for each in REVISIONS if each != PER_REQUEST]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    app = Server("versions")

    @app.tool
    async def revision(ctx: Context) -> str:
        return f"{ctx.revision} {ctx.headers.get('mcp-session-id', 'none')}"

    with serving(app) as found:
        yield found


def ask_in(session: Session, *headers: tuple[str, str]) -> Response:
    """Call the tool with the session id, and no other header of MCP than these."""
    message = call("tools/call", 1, name="revision", arguments={})
    with session.served.connect() as wire:
        return wire.ask(wire.post(message, [("Mcp-Session-Id", session.id), *headers]))


@pytest.mark.parametrize("version", WITH_HANDSHAKE)
def test_without_a_version_header_the_revision_of_the_session_counts(
    served: Served, version: str
) -> None:
    session = Session(served, revision=version)
    assert text_of(ask_in(session).json) == f"{version} {session.id}"
    named = ask_in(session, ("MCP-Protocol-Version", version))
    assert text_of(named.json) == f"{version} {session.id}"


def test_a_header_of_another_name_decides_nothing(served: Served) -> None:
    session = Session(served)
    named = ask_in(session, ("X-MCP-Protocol-Version", PER_REQUEST))
    assert text_of(named.json).startswith(session.revision)


@pytest.mark.parametrize("version", ["2025-01-07", "1.0", "", "2025-11-25 ,2025-06-18"])
def test_a_version_header_that_names_no_revision_is_refused(served: Served, version: str) -> None:
    refused = ask_in(Session(served), ("MCP-Protocol-Version", version))
    assert refused.status == 400
    assert refused.json["error"]["code"] == -32022


@pytest.mark.parametrize("version", WITH_HANDSHAKE)
def test_up_to_2025_11_25_a_client_has_a_session(served: Served, version: str) -> None:
    session = Session(served, revision=version)  # this reads Mcp-Session-Id of the response
    with served.connect() as wire:
        without = wire.ask(wire.post(call("tools/list", 7)))
        assert (without.status, without.json["id"]) == (400, 7)
        other = wire.ask(wire.post(call("tools/list", 8), [("Mcp-Session-Id", session.id[:-1])]))
        assert other.status == 404
        assert wire.ask(wire.head("DELETE", "/mcp", session.headers)).status == 204
        assert wire.ask(session.post(wire, call("tools/list", 9))).status == 404


def test_from_2026_07_28_on_session_headers_mean_nothing(served: Served) -> None:
    session = Session(served)
    with served.connect() as wire:
        headers = single_headers("server/discover")
        first = wire.ask(wire.post(call("server/discover", 1, _meta=META), headers))
        assert (first.status, first.header("mcp-session-id")) == (200, None)
        for given in ("no such session", session.id):
            answer = wire.ask(single(wire, "revision", headers=[("Mcp-Session-Id", given)]))
            assert (answer.status, answer.header("mcp-session-id")) == (200, None)
            assert text_of(answer.json) == f"{PER_REQUEST} {given}"
        for method in ("GET", "DELETE"):
            given = [("MCP-Protocol-Version", PER_REQUEST), ("Mcp-Session-Id", session.id)]
            assert wire.ask(wire.head(method, "/mcp", given)).status == 405
    assert text_of(ask_in(session).json).startswith(session.revision)
