"""Advisories about servers of other MCP libraries: each attack, against this one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.faults.http.serving import (
    BY_HEADER,
    Served,
    Session,
    call,
    make_app,
    notification,
    serving,
    single,
    single_headers,
    text_of,
    user,
)
from tests.faults.test_hostile_texts import assert_linear
from tests.rigs.messages import META
from trunkline import HttpSettings, Server, TaskSettings

ROUTES = ("/mcp", "/sse", "/messages")


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":[]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1,2]}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":[],"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":""}',
        b'{"jsonrpc":"2.0","id":1,"method":null,"params":{"_meta":5}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":{}}}}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b'{"id":1}',
        b"[" * 100_000,
    ],
    ids=range(14),
)
def test_cve_2025_53366_a_malformed_request_does_not_end_the_server(
    served: Served, body: bytes
) -> None:
    session, single_version = Session(served), [("MCP-Protocol-Version", "2026-07-28")]
    with served.connect() as wire:
        for headers in ([], session.headers, [*single_version, ("Mcp-Method", "tools/call")]):
            answer = wire.ask(wire.post(body, headers))
            assert answer.status in (200, 400, 404, 413), answer
            if answer.status == 200:
                assert "error" in answer.json
    assert session.call("echo", text="alive").status == 200
    assert served.is_healthy


def test_cve_2025_53365_a_disconnect_does_not_end_the_server(served: Served) -> None:
    """Clients leave in the middle of everything; others do not notice."""
    session = Session(served)
    for n in range(10):
        for data in (
            session.get,
            lambda wire, n=n: single(wire, "held", token="t", key=f"gone {n}", says=5),
            lambda wire, n=n: session.post(
                wire, call("tools/call", f"g{n}", name="big", arguments={"size": 10**6})
            ),
            lambda wire: session.post(wire, notification("notifications/initialized")),
        ):
            wire = served.connect(buffer=4096)
            wire.send(data(wire))
            wire.sock.shutdown(1)
            wire.close()
        assert session.call("echo", id=f"e{n}", text="alive").status == 200
    served.until(lambda: not served.http.connections)
    assert served.is_healthy


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
def test_cve_2025_66416_2025_66414_2026_42559_2026_34742_dns_rebinding(
    route: str, method: str
) -> None:
    """Also GHSA-8jxr-pr72-r468. By default, and on the routes of HTTP+SSE too."""
    with serving(http=HttpSettings(old_sse=True)) as served:
        for headers in (
            [("Host", f"rebound.example:{served.port}")],
            [
                ("Host", f"rebound.example:{served.port}"),
                ("Origin", f"http://rebound.example:{served.port}"),
            ],
            [("Origin", "http://rebound.example")],
        ):
            with served.connect() as wire:
                body = call("server/discover", _meta=META)
                if method == "POST":
                    given = [*single_headers("server/discover"), *headers]
                    answer = wire.ask(wire.post(body, given, target=route))
                else:
                    answer = wire.ask(wire.head(method, route, headers))
                assert answer.status in (403, 421)
                assert b"served" not in answer.body


def test_cve_2026_52869_a_session_id_alone_is_not_a_right() -> None:
    with serving(auth=BY_HEADER) as served:
        alice = Session(served, user("alice"))
        for who in (user("mallory"), []):
            alice.extra = who
            with served.connect() as wire:
                message = call("tools/call", name="echo", arguments={"text": "hijacked"})
                assert wire.ask(alice.post(wire, message)).status == 404
                assert wire.ask(alice.get(wire)).status == 404
                assert wire.ask(wire.head("DELETE", "/mcp", alice.headers)).status == 404
        alice.extra = user("alice")
        assert text_of(alice.call("whoami").json) == "alice"
        assert "hijacked" not in served.journal.begun


def test_cve_2026_52870_tasks_belong_to_their_principal() -> None:
    app, journal = make_app(tasks=TaskSettings(quick=0))

    @app.tool(task="required")
    async def job() -> str:
        """Run as a task."""
        await journal.gate("job").wait()
        return "secret of alice"

    with serving(app, journal, auth=BY_HEADER) as served:
        alice, mallory = Session(served, user("alice")), Session(served, user("mallory"))
        made = alice.ask(call("tools/call", name="job", arguments={}, task={"ttl": 60_000}))
        id = made.json["result"]["task"]["taskId"]
        for method in ("tasks/get", "tasks/cancel", "tasks/result"):
            assert mallory.ask(call(method, taskId=id)).json["error"]["code"] == -32602
        served.open_gate("job")
        assert text_of(alice.ask(call("tasks/result", taskId=id)).json) == "secret of alice"
        assert b"secret" not in mallory.ask(call("tasks/list")).body


def test_cve_2026_59950_every_way_in_has_the_same_gate() -> None:
    """A WebSocket without Host and Origin checks: an offer of one changes nothing here."""
    with serving() as served:
        for name, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
            with served.connect() as wire:
                headers = [
                    (name, value),
                    ("Connection", "Upgrade"),
                    ("Upgrade", "websocket"),
                    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                    ("Sec-WebSocket-Version", "13"),
                ]
                assert wire.ask(wire.head("GET", "/mcp", headers)).status in (403, 421)


def test_cve_2026_0621_uri_templates_take_linear_time() -> None:
    app = Server("templates")

    @app.resource("note://{a}/{b}/{c}/{d}")
    async def note(a: str, b: str, c: str, d: str) -> str:
        """Return a note."""
        return a + b + c + d

    with serving(app) as served:
        session = Session(served)

        def read(size: int) -> None:
            answer = session.ask(call("resources/read", uri="note://" + "/" * size + "!"))
            assert "error" in answer.json

        assert_linear(read)


def test_cve_2026_25536_one_server_for_many_clients_leaks_no_answer(served: Served) -> None:
    """Clients with the same ids at once: each gets the answer to its own request."""
    failures: list[str] = []

    def talk(name: str) -> None:
        session = Session(served)
        for n in range(10):
            text = f"{name}-{n}"
            found = session.call("echo", id=n, text=text).json
            if (found["id"], text_of(found)) != (n, text):
                failures.append(f"{name}: {found}")
            with served.connect() as wire:
                found = wire.ask(single(wire, "echo", n, text=text)).json
                if (found["id"], text_of(found)) != (n, text):
                    failures.append(f"{name}: {found}")

    threads = [threading.Thread(target=talk, args=(f"client {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_cve_2025_49596_nothing_on_the_network_starts_a_command(
    served: Served, tmp_path: Path
) -> None:
    """A proxy that a page could tell to start a program: there is no such route or parameter."""
    proof = tmp_path / "proof"
    for target in (
        f"/sse?transportType=stdio&command=touch&args={proof}",
        f"/mcp?transportType=stdio&command=touch&args={proof}",
        f"/stdio?command=touch&args={proof}",
        f"/message?command=touch%20{proof}",
        f"/config?command=touch%20{proof}",
    ):
        with served.connect() as wire:
            answer = wire.ask(wire.head("GET", target, [("Accept", "text/event-stream")]))
            assert answer.status in (400, 404)
    assert not proof.exists()


def test_go_parsers_names_of_members_are_compared_exactly(served: Served) -> None:
    """GHSA-wvj2-96wp-fq3f and GHSA-q382-vc8q-7jhj: case folding, and NUL in names."""
    for body in (
        b'{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","method":"tools/list","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method\\u0000":"tools/call","method":"tools/list","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"Params":{"name":"echo"},"method":"tools/list"}',
    ):
        answer = Session(served).ask(body)
        assert answer.status in (200, 400)
        if answer.status == 200:
            assert "tools" in answer.json["result"]
    for body in (
        b'{"jsonrpc":"2.0","id":1,"METHOD":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"Method":"tools/list","params":{}}',
    ):
        answer = Session(served).ask(body)
        assert answer.status == 400, answer
