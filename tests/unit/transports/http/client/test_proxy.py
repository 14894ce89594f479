from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import trunkline.transports.http.client.proxy as proxy_module
from tests.certificates import Authority
from tests.http_client.stub_server import Asked, McpStub, StubServer
from tests.unit.transports.http.client.test_pool import server_context
from trunkline import Client, Http, HttpOptions, Tls
from trunkline.errors import TransportError
from trunkline.transports.http.client.proxy import ProxyAddress, dial, parse_proxy, proxy_for

CANARY = "CANARY-5d1"
PROXY = "http://proxy.example.org:3128"
MADE = ProxyAddress("proxy.example.org", 3128)


@pytest.mark.parametrize(
    ("scheme", "environment", "made"),
    [
        ("http", {"HTTP_PROXY": PROXY}, MADE),
        ("http", {"http_proxy": PROXY}, MADE),
        ("http", {"http_proxy": PROXY, "HTTP_PROXY": "http://other:1"}, MADE),
        ("http", {"http_proxy": "", "HTTP_PROXY": PROXY}, None),
        ("http", {"HTTPS_PROXY": PROXY}, None),
        ("https", {"HTTPS_PROXY": PROXY}, MADE),
        ("https", {"https_proxy": PROXY}, MADE),
        ("https", {"HTTP_PROXY": PROXY}, None),
        # In a CGI program HTTP_PROXY is a header of the client.
        ("http", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "POST"}, None),
        ("https", {"HTTPS_PROXY": PROXY, "REQUEST_METHOD": "POST"}, MADE),
        ("http", {}, None),
    ],
)
def test_the_environment_names_a_proxy_by_scheme(
    scheme: str, environment: dict[str, str], made: ProxyAddress | None
) -> None:
    assert proxy_for(scheme, "example.org", environment) == made


@pytest.mark.parametrize(
    ("rules", "host", "is_direct"),
    [
        ("*", "example.org", True),
        ("example.org", "example.org", True),
        ("example.org", "api.example.org", True),
        (".example.org", "api.example.org", True),
        ("Example.ORG", "api.example.org", True),
        ("example.org", "API.EXAMPLE.ORG", True),
        ("example.org:8080", "example.org", True),
        ("other.org, example.org", "example.org", True),
        ("example.org", "badexample.org", False),
        ("example.org", "example.org.evil.net", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("192.168.1.1", "192.168.1.1", True),
        ("fd00::/8", "fd00::1", True),
        ("fd00::/8", "10.0.0.1", False),
        ("10.0.0.0/8", "ten.example.org", False),
        ("", "example.org", False),
        (",,", "example.org", False),
        ("", "localhost", True),
        ("", "127.0.0.2", True),
        ("", "::1", True),
    ],
)
def test_hosts_that_no_proxy_lists_are_reached_directly(
    rules: str, host: str, is_direct: bool
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        found = proxy_for("http", host, {"HTTP_PROXY": PROXY, name: rules})
        assert found == (None if is_direct else MADE)


def test_a_proxy_may_have_credentials_and_no_scheme_or_port() -> None:
    made = parse_proxy("http://us%3Aer:pa%40ss@proxy.example.org:3128", "HTTP_PROXY")
    assert made == ProxyAddress("proxy.example.org", 3128, "Basic dXM6ZXI6cGFAc3M=")
    assert parse_proxy("proxy.example.org", "HTTP_PROXY") == ProxyAddress("proxy.example.org", 8080)


@pytest.mark.parametrize(
    "url",
    [
        f"socks5://user:{CANARY}@proxy:1080",
        f"https://user:{CANARY}@proxy:1080",
        f"http://user:{CANARY}@proxy:99999",
        f"http://user:{CANARY}@proxy:port",
        f"http://user:{CANARY}@",
        f"http://user:{CANARY}@[::1",
        "http://",
    ],
)
def test_an_error_names_the_variable_of_a_proxy_and_not_its_url(url: str) -> None:
    with pytest.raises(TransportError, match="HTTPS_PROXY is not a proxy") as caught:
        proxy_for("https", "example.org", {"HTTPS_PROXY": url})
    assert CANARY not in str(caught.value)


def test_credentials_are_in_no_repr() -> None:
    made = parse_proxy(f"http://user:{CANARY}@proxy:1", "HTTP_PROXY")
    assert made.authorization is not None
    assert made.authorization not in repr(made)
    assert repr(made) == "ProxyAddress('proxy', 1)"
    assert CANARY not in repr(HttpOptions(proxy=f"http://user:{CANARY}@proxy:1"))


# -- tunnels ---------------------------------------------------------------------------------


@asynccontextmanager
async def deaf() -> AsyncIterator[tuple[str, int]]:
    """Yield an address at which a connection is neither accepted nor refused."""
    with socket.socket() as listener, ExitStack() as fill:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        where = listener.getsockname()
        for _ in range(4):  # more than its backlog
            waiting = fill.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(where)
        yield where


@pytest.mark.skipif(sys.platform != "linux", reason="backlogs differ")
@pytest.mark.parametrize("is_deaf", [True, False])
def test_the_addresses_of_a_host_are_tried_until_one_accepts(
    is_deaf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_module, "HAPPY_EYEBALLS_DELAY_S", 0.01)

    async def scene() -> None:
        async with deaf() as nowhere, StubServer(Asked.drop) as closed, McpStub() as stub:
            await closed.__aexit__(None)
            first = nowhere if is_deaf else ("127.0.0.1", closed.port)
            rows = [
                (socket.AF_INET, 1, 6, "", where) for where in (first, ("127.0.0.1", stub.port))
            ]

            async def getaddrinfo(*_: object, **__: object) -> list[Any]:
                return rows

            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
            with await dial("example.org", stub.port) as sock:
                assert sock.getpeername()[1] == stub.port
            rows[1:] = []
            if not is_deaf:
                with pytest.raises(ConnectionRefusedError):
                    await dial("example.org", stub.port)
            rows.clear()
            with pytest.raises(OSError, match="the host has no address"):
                await dial("example.org", stub.port)

    asyncio.run(scene())


class Proxy:
    """A proxy that answers CONNECT as a test says, and then leads to the port that was asked."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Established\r\n\r\n") -> None:
        self.answer = answer
        self.heads: list[str] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            writer.write(self.answer)
            if self.answer.startswith(b"HTTP/1.1 2"):
                await self._lead(head, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _lead(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, _, port = head.split(" ")[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
            target.close()

        try:
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        finally:
            far_writer.close()


@pytest.mark.parametrize("status", [b"200 Established", b"204 Established", b"200"])
def test_a_tunnel_leads_to_the_server_with_credentials_for_the_proxy_alone(status: bytes) -> None:
    async def scene() -> None:
        proxy = Proxy(b"HTTP/1.1 %b\r\nVia: x\r\n\r\n" % status)
        async with proxy.running(), McpStub() as stub:
            options = HttpOptions(proxy=f"http://user:{CANARY}@127.0.0.1:{proxy.port}")
            async with Client(stub.url, http=options) as client:
                assert (await client.call_tool("echo")).text == "done"
            lines = proxy.heads[0].split("\r\n")
            assert lines[0] == f"CONNECT 127.0.0.1:{stub.port} HTTP/1.1"
            assert lines[1] == f"Host: 127.0.0.1:{stub.port}"
            assert lines[2].startswith("Proxy-Authorization: Basic ")
            assert all("proxy-authorization" not in each.headers for each in stub.requests)
            assert len(stub.requests) >= 2

    asyncio.run(scene())


def test_tls_is_spoken_with_the_server_behind_the_proxy(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scene() -> None:
        async with (
            Proxy().running() as proxy,
            McpStub(context=server_context(authority)) as stub,
        ):
            options = HttpOptions(
                proxy=f"127.0.0.1:{proxy.port}", headers={"Authorization": CANARY}
            )
            address = Http("127.0.0.1", stub.port, tls=Tls(ca=authority.ca))
            async with Client(address, http=options) as client:
                assert (await client.call_tool("echo")).text == "done"
            assert CANARY not in "".join(proxy.heads)
            assert stub.requests[0].headers["authorization"] == CANARY

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "answered CONNECT with 407"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "answered CONNECT with 502"),
        (b"", "did not answer CONNECT"),
        (b"HTTP/1.1 200 OK\r\n", "did not answer CONNECT"),
        (b"SSH-2.0 \x1b[31mred\x1b[0m\r\n\r\n", "did not answer CONNECT"),
        (b"\r\n\r\n", "did not answer CONNECT"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 4096, "did not answer CONNECT"),
    ],
)
def test_a_proxy_that_refuses_is_named_without_credentials(answer: bytes, text: str) -> None:
    async def scene() -> None:
        # A head without end is not a tunnel; the proxy closes after it.
        proxy = Proxy()
        proxy.answer = answer.replace(b"HTTP/1.1 2", b"HTTP/1.0 2")
        async with proxy.running():
            options = HttpOptions(proxy=f"http://user:{CANARY}@127.0.0.1:{proxy.port}")
            with pytest.raises(TransportError, match=f"example.invalid:80/mcp .*{text}") as caught:
                await Client("http://example.invalid/mcp", http=options).connect()
            assert f"127.0.0.1:{proxy.port}" in str(caught.value)
            assert CANARY not in str(caught.value)
            assert "\x1b" not in str(caught.value)

    asyncio.run(scene())


def test_a_proxy_that_does_not_listen_is_an_error() -> None:
    async def scene() -> None:
        async with Proxy().running() as proxy:
            port = proxy.port
        options = HttpOptions(proxy=f"http://user:{CANARY}@127.0.0.1:{port}")
        with pytest.raises(TransportError, match="cannot be reached") as caught:
            await Client("http://example.invalid/mcp", http=options).connect()
        assert CANARY not in str(caught.value)

    asyncio.run(scene())
