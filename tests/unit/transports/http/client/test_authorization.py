"""Credentials of the requests of an HTTP client, and what it does when one is refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import trunkline.client.connect.connection as connection_module
import trunkline.transports.http.client.transport as transport_module
from tests.canaries import CANARY
from tests.http_client.stub_server import PER_REQUEST, SESSION, WAIT, Asked, McpStub
from tests.unit.transports.http.client.test_old_sse import OldServer
from tests.unit.transports.http.client.test_post import ERAS, play, succeeds
from tests.unit.transports.websocket.test_client import accepting, scripted
from trunkline import Client, HttpOptions, SyncClient
from trunkline.auth import Bearer
from trunkline.errors import AuthorizationFailed, PeerError
from trunkline.jsonrpc import Policy
from trunkline.transports import Http, Ws
from trunkline.transports.http.client.authorization import MAX_REPEATS
from trunkline.transports.http.client.fetch import is_public_address


class Numbered:
    """Credentials that are numbers; a server accepts one of them."""

    def __init__(self, number: int = 0, *, fails: bool = False) -> None:
        self.number = number
        self.fails = fails
        # True if a credential has to be obtained before the first request.
        self.needs_preparation = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.steps: list[tuple[str, ...]] = []
        self.urls: set[tuple[str, str]] = set()
        self.nonces: list[bytes] = []
        self.context: Any = None
        self.is_private: Callable[[], bool] = bool
        self._lock = asyncio.Lock()

    def for_server(
        self, url: str, *, context: Any = None, is_private: Callable[[], bool] = bool
    ) -> Numbered:
        self.steps.append(("for", url))
        self.context, self.is_private = context, is_private
        return self

    def headers(self, method: str, url: str) -> bytes | None:
        self.urls.add((method, url))
        return None if self.needs_preparation else b"authorization: Number %d\r\n" % self.number

    async def prepare(self, url: str) -> None:
        async with self._lock:
            self.steps.append(("prepare",))
            await self.gate.wait()
            self.fail()
            self.needs_preparation = False

    async def refused(
        self, method: str, url: str, status: int, headers: list[tuple[bytes, bytes]], sent: bytes
    ) -> bool:
        async with self._lock:
            if sent != b"authorization: Number %d\r\n" % self.number:
                return True
            challenges = [value.decode() for name, value in headers if name == b"www-authenticate"]
            self.steps.append(("refused", method, str(status), *challenges))
            await self.gate.wait()
            self.fail()
            self.number += 1
            return True

    def fail(self) -> None:
        if self.fails:
            raise AuthorizationFailed("no", step="token", error="invalid_grant")

    def responded(self, url: str, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.nonces += [value for name, value in headers if name == b"x-nonce"]


class Guarded(McpStub):
    """A server that accepts one credential; the others are answered with a challenge."""

    def __init__(self, revision: str = PER_REQUEST, *, accepts: int = 1, status: int = 401) -> None:
        super().__init__(revision)
        self.accepts = accepts
        self.refuses = status
        self.inner = self.answer
        self.answer = self._guard

    def _guard(self, asked: Asked) -> Any:
        if asked.headers.get("authorization") == f"Number {self.accepts}":
            return self.inner(asked)
        return asked.status(self.refuses, {"WWW-Authenticate": 'Bearer scope="a"', "X-Nonce": "n"})


# -- each request ------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ERAS)
def test_every_request_has_the_credential_that_was_obtained(revision: str) -> None:
    auth = Numbered()
    stub = Guarded(revision)
    stub.on["GET"] = lambda asked: asked.stream(": hello\n\n", ends=False)

    async def script(client: Client) -> None:
        await succeeds(client)
        if revision == SESSION:
            await stub.until(lambda: bool(stub.asked("GET")))

    play(stub, script, auth=auth)
    assert auth.steps == [
        ("for", stub.url),
        ("refused", "POST", "401", 'Bearer scope="a"'),
    ]
    accepted = [each for each in stub.requests if each.headers["authorization"] == "Number 1"]
    assert len(accepted) == len(stub.requests) - 1
    methods = {each.method for each in accepted}
    assert methods == ({"POST", "GET", "DELETE"} if revision == SESSION else {"POST"})
    assert auth.urls == {(method, stub.url) for method in methods}
    assert auth.nonces == [b"n"]
    assert auth.context is None
    assert auth.is_private()


@pytest.mark.parametrize("revision", ERAS)
def test_a_credential_is_obtained_before_the_first_request(revision: str) -> None:
    auth = Numbered(1)
    auth.needs_preparation = True
    stub = Guarded(revision)
    play(stub, succeeds, auth=auth)
    assert auth.steps == [("for", stub.url), ("prepare",)]
    assert {each.headers["authorization"] for each in stub.requests} == {"Number 1"}


def test_requests_in_flight_wait_for_one_authorization() -> None:
    auth = Numbered(1)
    stub = Guarded()

    async def script(client: Client) -> None:
        await succeeds(client)
        stub.accepts = 2
        auth.gate.clear()
        calls = [asyncio.create_task(client.call_tool("echo")) for _ in range(8)]
        await stub.until(lambda: len(stub.asked("tools/call")) == 9)
        late = [asyncio.create_task(client.call_tool("echo")) for _ in range(3)]
        auth.gate.set()
        for each in (*calls, *late):
            assert (await each).text == "done"

    play(stub, script, auth=auth)
    assert [each[0] for each in auth.steps] == ["for", "refused"]


@pytest.mark.parametrize("revision", ERAS)
def test_exception_of_credentials_is_raised_as_authorization_failed(revision: str) -> None:
    class Broken(Numbered):
        def fail(self) -> None:
            if self.fails:
                raise KeyError("secret-text")

    auth = Broken(1)
    stub = Guarded(revision)

    async def script(client: Client) -> None:
        stub.accepts, auth.fails = 2, True
        with pytest.raises(AuthorizationFailed, match="KeyError was raised") as caught:
            await client.call_tool("echo")
        assert isinstance(caught.value.__cause__, KeyError)
        assert "secret-text" not in str(caught.value)
        auth.fails = False
        await succeeds(client)

    play(stub, script, auth=auth)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("revision", ERAS)
def test_a_failed_authorization_reaches_the_caller_and_the_connection_stays(
    revision: str, status: int
) -> None:
    auth = Numbered(1)
    stub = Guarded(revision, status=status)

    async def script(client: Client) -> None:
        auth.fails = True
        stub.accepts = 2
        with pytest.raises(AuthorizationFailed) as caught:
            await client.call_tool("echo")
        assert (caught.value.step, caught.value.error) == ("token", "invalid_grant")
        assert client.is_connected
        auth.fails = False
        await succeeds(client)

    play(stub, script, auth=auth)


@pytest.mark.parametrize("needs_preparation", [True, False])
@pytest.mark.parametrize("revision", [None, *ERAS])
def test_a_failed_authorization_reaches_connect_which_can_be_tried_again(
    revision: str | None, needs_preparation: bool
) -> None:
    async def main() -> None:
        auth = Numbered(fails=True)
        auth.needs_preparation = needs_preparation
        async with asyncio.timeout(WAIT), Guarded(revision or PER_REQUEST) as stub:
            client = Client(stub.url, revision=revision, auth=auth)
            for _ in range(2):
                with pytest.raises(AuthorizationFailed, match="token: no"):
                    await client.connect()
            # The era of a server that refuses everything is not guessed at.
            assert not needs_preparation or not stub.requests
            assert len({(each.method, each.body) for each in stub.requests}) <= 1
            auth.fails = False
            await client.connect()
            await succeeds(client)
            await client.close()

    asyncio.run(main())


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("has_error", [True, False])
@pytest.mark.parametrize("auth", [None, Bearer("other")])
def test_the_first_request_that_is_refused_is_not_taken_for_an_old_server(
    auth: Any, has_error: bool, status: int
) -> None:
    def refuse(asked: Asked) -> None:
        if has_error:
            asked.error(-32001, "no", status)
        else:
            asked.status(status)

    async def main() -> None:
        stub = McpStub()
        stub.answer = refuse
        async with asyncio.timeout(WAIT), stub:
            with pytest.raises(AuthorizationFailed, match=f"status {status}") as caught:
                await Client(stub.url, auth=auth).connect()
            assert ("OAuth" in str(caught.value)) == (auth is None and status == 401)
            assert [each.message["method"] for each in stub.requests] == ["server/discover"]

    asyncio.run(main())


def test_a_refusal_of_a_call_with_an_error_of_json_rpc_is_that_error() -> None:
    async def script(client: Client) -> None:
        with pytest.raises(PeerError, match="not yours"):
            await client.call_tool("echo")
        await succeeds(client)

    stub = McpStub()
    answers = [lambda asked: asked.error(-31000, "not yours", 403), stub._tools_call]
    stub.on["tools/call"] = lambda asked: answers.pop(0)(asked)
    play(stub, script, auth=Bearer("t"))


def test_a_server_that_refuses_for_ever_is_asked_a_bounded_number_of_times() -> None:
    auth = Numbered(1)
    stub = Guarded()

    async def script(client: Client) -> None:
        stub.accepts = -1
        with pytest.raises(AuthorizationFailed, match="status 401"):
            await client.call_tool("echo")
        assert len(stub.asked("tools/call")) == MAX_REPEATS + 1
        stub.accepts = auth.number
        await succeeds(client)

    play(stub, script, auth=auth)


def test_a_call_that_is_cancelled_while_it_waits_is_not_sent_again() -> None:
    auth = Numbered(1)
    stub = Guarded()

    async def script(client: Client) -> None:
        stub.accepts = 2
        auth.gate.clear()
        call = asyncio.create_task(client.call_tool("echo"))
        await stub.until(lambda: len(auth.steps) == 2)
        call.cancel()
        await asyncio.wait([call])
        auth.gate.set()
        await succeeds(client)
        ids = [each.id for each in stub.asked("tools/call")]
        assert ids.count(ids[0]) == 1

    play(stub, script, auth=auth)


def test_closing_ends_an_authorization() -> None:
    async def main() -> None:
        auth = Numbered()
        auth.gate.clear()
        async with asyncio.timeout(WAIT), Guarded() as stub:
            client = Client(stub.url, auth=auth)
            connecting = asyncio.create_task(client.connect())
            await stub.until(lambda: len(auth.steps) == 2)
            connecting.cancel()
            await asyncio.wait([connecting])
            assert connecting.cancelled()
            assert not auth._lock.locked()

    asyncio.run(main())


# -- time --------------------------------------------------------------------------------------


def test_the_time_of_a_login_counts_for_no_timeout() -> None:
    async def main() -> None:
        auth = Numbered()
        auth.gate.clear()
        async with asyncio.timeout(WAIT), Guarded() as stub:
            client = Client(
                stub.url, auth=auth, connect_timeout=0.5, probe_timeout=0.1, timeout=0.5
            )
            connecting = asyncio.create_task(client.connect())
            await stub.until(lambda: len(auth.steps) == 2)
            await asyncio.sleep(0.8)
            assert len(stub.requests) == 1
            auth.gate.set()
            await connecting
            assert [each.message["method"] for each in stub.requests] == ["server/discover"] * 2
            stub.accepts = 2
            auth.gate.clear()
            call = asyncio.create_task(client.call_tool("echo"))
            await stub.until(lambda: len(auth.steps) == 3)
            await asyncio.sleep(0.8)
            auth.gate.set()
            assert (await call).text == "done"
            await client.close()

    asyncio.run(main())


def test_a_pause_of_the_connect_timeout_is_bounded_and_leaves_what_was_left() -> None:
    async def main() -> None:
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(100) as limit:
            pause = connection_module._pausing(limit, 1000)
            pause(True)
            assert 999 < (limit.when() or 0) - now() <= 1000
            pause(False)
            assert 99 < (limit.when() or 0) - now() <= 100
            limit.reschedule(now() - 1)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(WAIT)
            pause(True)  # it has expired: nothing is left to pause
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()

    asyncio.run(main())


# -- redirects, streams, other transports ------------------------------------------------------


def test_a_redirect_within_the_origin_has_the_credential_and_one_elsewhere_is_not_followed() -> (
    None
):
    auth = Numbered(1)
    stub = Guarded()

    def redirect(asked: Asked) -> None:
        here = asked.path == "/mcp"
        asked.status(308, {"Location": "/other"}) if here else asked.text("done")

    async def script(client: Client) -> None:
        await succeeds(client)
        stub.on["tools/call"] = lambda asked: asked.status(
            308, {"Location": f"http://127.0.0.2:{stub.port}/mcp"}
        )
        with pytest.raises(Exception, match="status 308"):
            await client.call_tool("echo")

    stub.on["tools/call"] = redirect
    play(stub, script, auth=auth)
    assert {each.headers["authorization"] for each in stub.requests} == {"Number 1"}
    assert ("POST", stub.url.replace("/mcp", "/other")) in auth.urls
    assert {each.headers["host"] for each in stub.requests} == {f"127.0.0.1:{stub.port}"}


def test_a_stream_whose_credential_has_ended_is_reopened_with_another() -> None:
    auth = Numbered(1)
    stub = Guarded(SESSION)
    stub.on["GET"] = lambda asked: asked.stream(": hello\n\nretry: 100\n\n", ends=True)

    async def script(client: Client) -> None:
        await stub.until(lambda: bool(stub.asked("GET")))
        stub.accepts = 2
        await stub.until(lambda: stub.requests[-1].headers["authorization"] == "Number 2")
        assert stub.requests[-1].method == "GET"

    play(stub, script, auth=auth)


def test_a_stream_that_cannot_be_authorized_is_given_up_and_calls_go_on() -> None:
    auth = Numbered(1)
    stub = Guarded(SESSION)

    def refuse(asked: Asked) -> None:
        auth.fails = True
        asked.status(401)

    stub.on["GET"] = refuse

    async def script(client: Client) -> None:
        await stub.until(lambda: ("refused", "GET", "401") in auth.steps)
        await succeeds(client)

    events = play(stub, script, auth=auth)
    assert ("given-up", "the stream of the session: token: no (invalid_grant)") in events


def test_an_old_server_gets_the_credential_with_its_stream_and_each_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auth = Numbered()
    auth.gate.clear()
    stub = OldServer()
    inner = stub.answer

    def guard(asked: Asked) -> Any:
        is_known = asked.headers.get("authorization") == "Number 1"
        return (
            inner(asked)
            if is_known or (asked.path == "/mcp" and asked.method == "POST")
            else (asked.status(401))
        )

    stub.answer = guard
    parts = transport_module._ENDPOINT_TIMEOUT_PARTS
    part_s = transport_module._ENDPOINT_TIMEOUT_S / parts
    wait = asyncio.wait
    passed = 0

    async def wait_a_part(given: Any, *, timeout: float | None = None, **options: Any) -> Any:
        """Let the login take twice the time that such a server has for its address, at once."""
        nonlocal passed
        if timeout != part_s or passed == 2 * parts:
            return await wait(given, timeout=WAIT if timeout == part_s else timeout, **options)
        await stub.until(lambda: len(auth.steps) == 2)
        passed += 1
        if passed == 2 * parts:
            auth.gate.set()
        return set(), given

    monkeypatch.setattr(asyncio, "wait", wait_a_part)

    async def main() -> None:
        async with (
            asyncio.timeout(WAIT),
            stub,
            Client(stub.url, revision=SESSION, auth=auth) as client,
        ):
            await succeeds(client)

    asyncio.run(main())
    assert passed == 2 * parts
    assert [each[:2] for each in auth.steps[1:]] == [("refused", "GET")]
    assert ("POST", stub.url.replace("/mcp", "/messages?session=1")) in auth.urls


def test_an_old_server_that_cannot_be_authorized_fails_the_caller() -> None:
    async def main() -> None:
        stub = OldServer()
        inner = stub.answer
        stub.answer = lambda asked: asked.status(401) if asked.method == "GET" else inner(asked)
        async with asyncio.timeout(WAIT), stub:
            with pytest.raises(AuthorizationFailed, match="token: no"):
                await Client(stub.url, revision=SESSION, auth=Numbered(fails=True)).connect()

    asyncio.run(main())


def test_a_websocket_is_opened_with_the_credential_that_was_obtained() -> None:
    heads: list[str] = []

    async def script(reader: Any, writer: Any, head: str) -> None:
        heads.append(head)
        if "authorization: Number 1\r\n" in head:
            writer.write(accepting(head))
        else:
            challenge = 'WWW-Authenticate: Bearer scope="a"'
            writer.write(f"HTTP/1.1 401 x\r\n{challenge}\r\nContent-Length: 0\r\n\r\n".encode())

    async def main() -> None:
        async with asyncio.timeout(WAIT), scripted(script) as port:

            async def connect(auth: Any) -> None:
                options = HttpOptions(auth=auth)
                transport = Ws("127.0.0.1", port, options=options).transport(Policy())
                try:
                    await transport.connect()
                finally:
                    assert transport.is_connected == (auth is not None and not auth.fails)
                    await transport.close()

            auth, there = Numbered(), f"http://127.0.0.1:{port}/mcp"
            await connect(auth)
            assert auth.steps == [("for", there), ("refused", "GET", "401", 'Bearer scope="a"')]
            assert auth.urls == {("GET", there)}
            assert auth.is_private()
            with pytest.raises(AuthorizationFailed, match="token: no"):
                await connect(Numbered(fails=True))
            with pytest.raises(AuthorizationFailed, match="401 Unauthorized"):
                await connect(None)

    asyncio.run(main())
    assert len(heads) == 4


# -- options -----------------------------------------------------------------------------------


def test_a_bearer_token_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    token = f"{CANARY}-token"
    stub = McpStub()
    shown: list[str] = []

    async def script(client: Client) -> None:
        await succeeds(client)
        session: Any = client._connection.session
        transport = session.transport
        stub.on["tools/call"] = lambda asked: asked.status(401, body=asked.raw)
        with pytest.raises(AuthorizationFailed) as caught:
            await client.call_tool("echo")
        shown.extend(map(repr, (client, session, transport, transport.auth, transport.options)))
        shown.extend((str(caught.value), repr(caught.value), repr(Bearer(token))))

    with caplog.at_level(logging.DEBUG):
        events = play(stub, script, auth=Bearer(token))
    assert {each.headers["authorization"] for each in stub.requests} == {f"Bearer {token}"}
    assert token not in "".join([*shown, caplog.text, repr(events)])


def test_a_synchronous_client_has_credentials_too() -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT), Guarded() as stub:

            def use() -> None:
                with SyncClient(stub.url, auth=Numbered()) as client:
                    assert client.call_tool("echo").text == "done"

            await asyncio.to_thread(use)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        (
            "https://a.example/mcp",
            {"auth": "secret-text"},
            "auth is one of trunkline.auth, such as OAuth\\(\\) or Bearer\\(token\\), not str",
        ),
        (
            "https://a.example/mcp",
            {"auth": Bearer("t"), "headers": {"authorization": "Bearer x"}},
            "give one",
        ),
        (["python", "server.py"], {"auth": Bearer("t")}, "addresses such as https"),
    ],
)
def test_credentials_that_cannot_be_used_are_refused(
    target: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        Client(target, **options)
    assert "secret-text" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://mcp.example.org/mcp", "ftp://127.0.0.1/", "//localhost/"])
def test_a_token_is_not_sent_without_encryption(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        Bearer("t").for_server(url)


@pytest.mark.parametrize("text", ["", "xyz xyz", "xyz\r\nx: y", "xyzü", 7])
def test_a_text_that_is_not_a_token_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="token") as caught:
        Bearer(text)
    assert "xyz" not in str(caught.value)


@pytest.mark.parametrize("address", [Http("mcp.example.org", 80), Ws("mcp.example.org", 80)])
def test_a_connection_that_would_show_a_token_is_not_opened(address: Any) -> None:
    async def main() -> None:
        guarded = replace(address, options=HttpOptions(auth=Bearer("t")))
        transport = guarded.transport(Policy())
        with pytest.raises(ValueError, match="https"):
            await transport.connect()
        await transport.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:7f00:1::", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
    ],
)
def test_an_address_is_public_by_what_it_leads_to(address: str, is_public: bool) -> None:
    assert is_public_address(address) is is_public


def test_one_public_connection_makes_a_server_public() -> None:
    from trunkline.transports.http.client.authorization import ServerNetwork

    class To:
        def __init__(self, *address: str) -> None:
            self.address = address

        def getpeername(self) -> tuple[str, ...]:
            if not self.address:
                raise OSError("not connected")
            return (*self.address, "80")

    def network(*peers: Any) -> bool:
        made = ServerNetwork()
        for each in peers:
            made.add(each)
        return made.is_private()

    assert not network()
    assert not network(To())
    assert ServerNetwork("10.0.0.1").is_private()
    assert ServerNetwork("localhost").is_private()
    assert not ServerNetwork("93.184.216.34").is_private()
    assert not ServerNetwork("mcp.example.org").is_private()
    assert network(To("10.0.0.1"), To("127.0.0.1"))
    assert not network(To("93.184.216.34"), To("127.0.0.1"))
    assert not network(To("127.0.0.1"), To("93.184.216.34"))
