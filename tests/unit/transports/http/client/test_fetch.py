from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.cases import for_each
from tests.rigs.memory import held_by
from trunkline.errors import TransportError
from trunkline.transports.http.client import fetch as module
from trunkline.transports.http.client.fetch import (
    FetchedResponse,
    FetchRefused,
    check_url,
    fetch,
    is_loopback_host,
)

CANARY = "CANARY-f3c"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(answer: Callable[[bytes], bytes]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve raw answers on a loopback port; yield the URL and what was asked."""
    asked: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.split(b"\r\n") if line.startswith(b"content-length")]
            body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
            asked.append(head + body)
            writer.write(answer(head))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http://127.0.0.1:{port}", asked


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(main(), 60))  # type: ignore[arg-type]  # a coroutine


def test_a_response_is_returned_whatever_its_status() -> None:
    async def main() -> None:
        text = b"HTTP/1.1 404 Not Found\r\nX-A: 1\r\nX-A: 2\r\ncontent-length: 3\r\n\r\nno\n"
        async with serving(lambda _: text) as (url, asked):
            found = await fetch(f"{url}/a?b=c", allow_private=True, headers={"accept": "x/y"})
            assert (found.status, found.body) == (404, b"no\n")
            assert found.header(b"x-a") == b"1"
            assert found.all_headers(b"x-a") == [b"1", b"2"]
            assert found.header(b"x-b") is None
            assert asked[0].startswith(b"GET /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:")
            assert b"\r\naccept: x/y\r\n" in asked[0]

    run(main)


def test_a_body_is_posted_with_its_length() -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, asked):
            await fetch(url, method="POST", body=b"a=b", allow_private=True)
            await fetch(url, method="POST", allow_private=True)
            assert asked[0].startswith(b"POST / HTTP/1.1\r\n")
            assert asked[0].endswith(b"content-length: 3\r\n\r\na=b")
            assert asked[1].endswith(b"content-length: 0\r\n\r\n")

    run(main)


def redirect(location: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


def test_a_redirect_is_followed_within_the_origin_and_a_few_times_only() -> None:
    async def main() -> None:
        pages = {b"/a": redirect("/b"), b"/b": redirect("c?d"), b"/c?d": OK, b"/e": redirect("/e")}

        def answer(head: bytes) -> bytes:
            return pages[head.split(b" ")[1]]

        async with serving(answer) as (url, asked):
            assert (await fetch(f"{url}/a", allow_private=True)).body == b"ok"
            assert len(asked) == 3
            with pytest.raises(FetchRefused, match="redirects too often"):
                await fetch(f"{url}/e", allow_private=True)
            assert len(asked) == 7
            # The caller of a POST decides by itself.
            assert (await fetch(f"{url}/a", method="POST", allow_private=True)).status == 302

    run(main)


def test_a_redirect_to_another_origin_is_refused_before_anything_is_sent_there() -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (other, theirs):
            for location in (f"{other}/x", "https://evil.example/", "//evil.example/", "file:///x"):
                page = redirect(location)
                async with serving(lambda _, page=page: page) as (url, asked):  # type: ignore[misc]  # a default
                    headers = {"authorization": f"Bearer {CANARY}"}
                    with pytest.raises(FetchRefused) as caught:
                        await fetch(url, headers=headers, allow_private=True)
                    assert len(asked) == 1
                    assert CANARY not in str(caught.value)
            assert theirs == []

    run(main)


def test_a_body_beyond_the_limit_is_refused_while_it_arrives() -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: 9000000\r\n\r\n"
        async with serving(lambda _: head + b"x" * 2000) as (url, _):
            with pytest.raises(FetchRefused, match="too large"):
                await fetch(url, allow_private=True, max_bytes=1999)

    run(main)


def test_a_body_in_tiny_parts_takes_about_its_size_in_memory() -> None:
    async def main() -> None:
        done: asyncio.Future[FetchedResponse] = asyncio.get_running_loop().create_future()
        size = 256 * 1024
        body = b"x" * size
        handler = module._Handler(done, size)
        handler.on_head(200, [])

        def feed() -> None:
            for at in range(0, size, 2):
                handler.on_data(body[at : at + 2])

        assert held_by(feed) < 2 * size
        handler.on_complete()
        assert len((await done).body) == size

    run(main)


def test_a_server_that_does_not_answer_is_given_up() -> None:
    async def main() -> None:
        async with serving(lambda _: b"HTTP/1.1 200") as (url, _):
            with pytest.raises(TransportError, match="closed the connection"):
                await fetch(url, allow_private=True)
        held = asyncio.Event()

        async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await held.wait()
            writer.close()

        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(TransportError, match=r"did not answer within 0\.05 s"):
                await fetch(f"http://127.0.0.1:{port}/", allow_private=True, timeout=0.05)
            held.set()
        with pytest.raises(TransportError, match="cannot be reached"):
            await fetch(f"http://127.0.0.1:{port}/", allow_private=True)

    run(main)


@for_each(
    "url",
    [
        "http://example.org/",
        "http://127.0.0.1.example.org/",
        "http://localhost.example.org/",
        "ftp://localhost/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://user@example.org/",
        "https://user:pass@example.org/",
        "https://example.org/#x",
        "https://exa mple.org/",
        "https://example.org/\r\nx: y",
        "https://example.org\\@evil.example/",
        "https://example.org:99999/",
        "https://[::1/",
        "https:///x",
        "//example.org/",
        "https://exämple.org/",
        "https://example.org/" + "a" * 5000,
        "",
    ],
)
def test_urls_that_are_not_asked(url: str) -> None:
    with pytest.raises(FetchRefused):
        check_url(url)


@for_each(
    "url",
    ["https://example.org/a?b", "http://localhost:1/", "http://[::1]/", "http://a.localhost/"],
)
def test_urls_that_may_be_asked(url: str) -> None:
    assert check_url(url).geturl() == url


@for_each(
    ("host", "expected"),
    [
        ("localhost", True),
        ("app.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost.", False),
        ("10.0.0.1", False),
        ("notlocalhost", False),
        ("2130706433", False),
    ],
)
def test_hosts_of_this_machine(host: str, expected: bool) -> None:
    assert is_loopback_host(host) is expected


PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "ff02::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::",
    "2001:0:0:0:0:0:f5ff:fffe",
    # Networks of a site, local translators, IPv4 addresses in other forms, and documentation.
    "fec0::1",
    "64:ff9b:1::a00:1",
    "::7f00:1",
    "::ffff:0:7f00:1",
    "5f00::1",
    "3fff::1",
    "192.0.0.8",
]


@for_each("address", PRIVATE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert module._why_not_public(address) is not None


@for_each("address", ["93.184.215.14", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_addresses_that_are_public(address: str) -> None:
    assert module._why_not_public(address) is None


@for_each(
    ("host", "expected"),
    [
        *((host, True) for host in ("localhost", "LOCALHOST.", "a.localhost", "10.0.0.1", "::1")),
        *(
            (host, True)
            for host in ("127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "10.1")
        ),
        *((host, False) for host in ("a.example", "8.8.8.8", "2606:4700::1111", "bad.de", "9.9.9")),
        *((host, False) for host in ("134744072", "localhost.example", "1.2.3.4.5", "")),
    ],
)
def test_hosts_that_are_written_as_private(host: str, expected: bool) -> None:
    assert module.is_private_host(host) is expected


@for_each("host", ["127.1", "a.localhost", "169.254.169.254", "2852039166"])
def test_a_proxy_is_not_asked_for_a_host_that_is_written_as_private(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, asked):
            monkeypatch.setenv("HTTPS_PROXY", url)
            for name in ("https_proxy", "no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            with pytest.raises(FetchRefused, match="not public"):
                await fetch(f"https://{host}/")
            assert asked == []

    run(main)


def test_a_name_of_this_machine_that_leads_elsewhere_gets_nothing_in_the_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        tried: list[Any] = []

        async def connect(self: Any, sock: socket.socket, address: Any) -> None:
            tried.append(address)
            raise ConnectionRefusedError(111, "refused")

        resolve_to(monkeypatch, ["203.0.113.7", "10.0.0.1"])
        monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", connect)
        with pytest.raises(FetchRefused, match="not encrypted"):
            await fetch("http://a.localhost/", allow_private=True)
        assert tried == []

    run(main)


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Make names resolve to the given addresses, one list after another; return what was asked."""
    left, asked = list(answers), []

    async def getaddrinfo(self: Any, host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        family = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(family[":" in each], socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return asked


def test_a_name_that_leads_to_a_private_address_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with serving(lambda _: OK) as (url, asked):
            port = url.rpartition(":")[2]
            resolve_to(monkeypatch, ["127.0.0.1"])
            with pytest.raises(FetchRefused, match="not public"):
                await fetch(f"https://metadata.example:{port}/")
            with pytest.raises(FetchRefused, match="not public"):
                await fetch(url)
            assert asked == []

    run(main)


def test_a_name_is_looked_up_once_and_its_checked_address_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name server that answers with a private address the second time changes nothing."""

    async def main() -> None:
        asked = resolve_to(monkeypatch, ["203.0.113.7"], ["127.0.0.1"])
        tried: list[Any] = []

        async def connect(self: Any, sock: socket.socket, address: Any) -> None:
            tried.append(address)
            raise ConnectionRefusedError(111, "refused")

        monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", connect)
        monkeypatch.setattr(module, "_why_not_public", lambda address: None)
        with pytest.raises(TransportError, match="cannot be reached"):
            await fetch("https://rebinding.example/")
        assert (asked, tried) == (["rebinding.example"], [("203.0.113.7", 443)])

    run(main)


def test_private_addresses_among_public_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        resolve_to(monkeypatch, ["10.0.0.1", "93.184.215.14", "::1"])
        tried: list[Any] = []

        async def connect(self: Any, sock: socket.socket, address: Any) -> None:
            tried.append(address[0])
            raise ConnectionRefusedError(111, "refused")

        monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", connect)
        with pytest.raises(TransportError, match="refused"):
            await fetch("https://mixed.example/")
        assert tried == ["93.184.215.14"]

    run(main)


def test_no_secret_is_in_an_error_a_repr_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        texts = []
        with caplog.at_level(logging.DEBUG):
            async with serving(lambda _: OK) as (url, _):
                found = await fetch(
                    f"{url}/?code={CANARY}",
                    method="POST",
                    body=CANARY.encode(),
                    headers={"authorization": CANARY},
                    allow_private=True,
                )
                texts += [repr(found), repr(found.__rich_repr__())]
            for attempt in (
                fetch(f"{url}/?code={CANARY}", allow_private=True),
                fetch(f"https://x:{CANARY}@a.example/"),
                fetch(f"ftp://{CANARY}/"),
                fetch(f"{url}/", headers={"authorization": f"{CANARY}\n"}, allow_private=True),
                fetch(f"https://10.0.0.1/?token={CANARY}"),
            ):
                with pytest.raises(TransportError) as caught:
                    await attempt
                texts += [str(caught.value), repr(caught.value)]
        assert CANARY not in "".join([*texts, caplog.text])

    run(main)
