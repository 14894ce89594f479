"""TLS: who is trusted, what is said of who is not, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
import ssl
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import PASSWORD, Authority
from tests.rigs.conditions import until_async
from tests.rigs.leaks import run
from tests.rigs.socket_listener import accepting
from trunkline import Client, ConnectionLost, RequestTimeout, Server, SocketLimits, TransportError
from trunkline.jsonrpc import Limits, Policy
from trunkline.transports.addresses import Tcp, Tls
from trunkline.transports.sockets.connection import AcceptedSocket
from trunkline.transports.sockets.listener import Listener
from trunkline.transports.sockets.tls import client_context, server_context

POLICY = Policy()
MIB = 1024 * 1024


class Files:
    """Certificates of one authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.cert, self.key = self.authority.certificate("server", "127.0.0.1")
        self.mine, self.my_key = self.authority.certificate("client")
        self.server = Tls(cert=self.cert, key=self.key)
        self.strict = Tls(cert=self.cert, key=self.key, ca=self.authority.ca)
        self.client = Tls(ca=self.authority.ca)
        self.known = Tls(ca=self.authority.ca, cert=self.mine, key=self.my_key)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have OpenSSL find no terminal to ask for a password at."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())


class Recorder:
    """Record the frames and the ends that a transport reports."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.frames: list[Any] = []
        self.ends: list[TransportError | None] = []
        transport.on_message = lambda frame, _: self.frames.append(frame)
        transport.on_error = self.ends.append


@asynccontextmanager
async def accepting_tls(
    tls: Any, handshake: float = 10.0, policy: Policy = POLICY
) -> AsyncIterator[tuple[int, Callable[[], Awaitable[AcceptedSocket]]]]:
    address = Tcp("127.0.0.1", 0, tls=tls)
    async with accepting(address, policy, handshake=handshake) as (where, arrived):
        assert isinstance(where, Tcp)
        yield where.port, arrived


@asynccontextmanager
async def joined(
    client: Any, server: Any, policy: Policy = POLICY, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[Recorder, Recorder]]:
    async with accepting_tls(server, policy=policy) as (port, arrived):
        near = Recorder(Tcp(host, port, tls=client).transport(policy))
        connecting = asyncio.create_task(near.transport.connect())
        far = Recorder(await arrived())
        await far.transport.connect()
        await connecting
        try:
            yield near, far
        finally:
            await near.transport.close()


async def refused(client: Any, server: Any, host: str = "127.0.0.1") -> tuple[str, str]:
    """Return what a client and a server say that do not trust each other, or "" """
    said = []
    async with accepting_tls(server) as (port, arrived):
        near = Recorder(Tcp(host, port, tls=client).transport(POLICY))
        connecting = asyncio.create_task(near.transport.connect())
        far = Recorder(await arrived())
        for each in (connecting, asyncio.create_task(far.transport.connect())):
            await asyncio.wait((each,))
            said.append(str(each.exception() or ""))
        await near.transport.close()
    return said[0], said[1]


# Who is trusted


def test_system_trust_store_is_the_default(files: Files) -> None:
    async def script() -> None:
        near, far = await refused(True, files.server)
        assert "TLS handshake failed: unable to get local issuer certificate" in near
        assert "TLS handshake failed" in far
        near, _ = await refused(Tls(), files.server)
        assert "unable to get local issuer certificate" in near

    run(script)


def test_an_authority_that_was_named_is_the_only_one(files: Files, tmp_path: Path) -> None:
    async def script() -> None:
        async with joined(files.client, files.server) as (near, far):
            near.transport.send(b"hello")
            await until_async(lambda: far.frames == [b"hello"])
        other = Authority(tmp_path, "other")
        near_said, _ = await refused(Tls(ca=other.ca), files.server)
        assert "TLS handshake failed" in near_said
        context = client_context(files.client)
        assert len(context.get_ca_certs()) == 1
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname

    run(script)


def test_a_certificate_for_another_host_will_not_do(files: Files) -> None:
    async def script() -> None:
        near, far = await refused(files.client, files.server, "localhost")
        assert "Hostname mismatch" in near
        assert "localhost" in near
        assert far
        async with joined(
            Tls(ca=files.authority.ca, server_name="127.0.0.1"), files.server, host="localhost"
        ):
            pass
        wrong = Tls(ca=files.authority.ca, server_name="example.org")
        near, _ = await refused(wrong, files.server)
        assert "example.org" in near

    run(script)


def test_a_certificate_whose_time_is_over_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tests.certificates as certificates

    authority = Authority(tmp_path)

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) - timedelta(days=30)

    monkeypatch.setattr(certificates, "datetime", Earlier)
    cert, key = authority.certificate("old", "127.0.0.1")

    async def script() -> None:
        near, _ = await refused(Tls(ca=authority.ca), Tls(cert=cert, key=key))
        assert "certificate has expired" in near

    run(script)


def test_a_client_shows_its_certificate_where_one_is_asked_for(files: Files) -> None:
    async def script() -> None:
        async with joined(files.known, files.strict) as (near, far):
            far.transport.send(b"welcome")
            await until_async(lambda: near.frames == [b"welcome"])
        # One that is not asked shows nothing, and is let in.
        async with joined(files.known, files.server):
            pass

    run(script)


def app() -> Server:
    app = Server("tls")

    @app.tool
    async def echo(text: str) -> str:
        return text

    return app


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_client_without_accepted_certificate_gets_the_tls_alert(
    files: Files, version: ssl.TLSVersion, tmp_path: Path
) -> None:
    """By TLS 1.3 the client has agreed before the server looks at what it was shown."""
    other = Authority(tmp_path, "stranger")
    cert, key = other.certificate("stranger-client")

    async def script() -> None:
        async with app().listen(Tcp("127.0.0.1", 0, tls=files.strict)) as listening:
            port = listening.address.port  # type: ignore[union-attr]
            for shown in (files.client, Tls(ca=files.authority.ca, cert=cert, key=key)):
                for _ in range(10):
                    context = client_context(shown)
                    context.maximum_version = version
                    client = Client(Tcp("127.0.0.1", port, tls=context))
                    with pytest.raises(TransportError) as caught:
                        await client.connect()
                    assert "TLS" in str(caught.value), caught.value
                    assert "alert" in str(caught.value), caught.value
                    await client.close()
            async with Client(Tcp("127.0.0.1", port, tls=files.known)) as client:
                assert (await client.call_tool("echo", {"text": "in"})).text == "in"

    run(script)


def test_tls_1_1_is_refused(files: Files) -> None:
    for make in (client_context(files.client), server_context(files.server)):
        assert make.minimum_version == ssl.TLSVersion.TLSv1_2

    async def script() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            with contextlib.suppress(ssl.SSLError):
                old.set_ciphers("ALL:@SECLEVEL=0")
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        near, far = await refused(old, files.server)
        assert near
        assert "TLS handshake failed" in far

    run(script)


# Files


def test_unusable_tls_file_is_named(files: Files, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    missing = tmp_path / "missing.pem"
    for make in (client_context, server_context):
        for tls, says in (
            (Tls(cert=missing), "missing.pem cannot be read: No such file"),
            (Tls(cert=nonsense), "nonsense.pem cannot be used for TLS"),
            (Tls(cert=files.cert), "cannot be used for TLS"),
            (Tls(cert=files.cert, key=missing), "missing.pem cannot be read"),
            (Tls(cert=files.cert, key=files.my_key), "key values mismatch"),
            (Tls(cert=files.cert, key=files.key, ca=missing), "missing.pem cannot be read"),
            (Tls(cert=files.cert, key=files.key, ca=nonsense), "nonsense.pem cannot be used"),
        ):
            with pytest.raises(TransportError, match=says):
                make(tls)


@pytest.mark.parametrize("tls", [True, Tls(), Tls(ca="x")])
def test_a_server_needs_a_certificate(tls: Any) -> None:
    async def script() -> None:
        with pytest.raises(TransportError, match="needs a certificate"):
            await Listener(Tcp("127.0.0.1", 0, tls=tls), POLICY, print).open()

    run(script)


def test_encrypted_key_is_opened_by_its_password_without_a_prompt(
    files: Files, tmp_path: Path
) -> None:
    cert, key = Authority(tmp_path, "locked").certificate("l", "127.0.0.1", password=PASSWORD)
    server_context(Tls(cert=cert, key=key, password=PASSWORD))
    for wrong in (None, "", "wrong", PASSWORD + "x", "x" * 5000):
        for make in (client_context, server_context):
            with pytest.raises(TransportError, match=r"l\.pem with .*l\.key cannot be used") as it:
                make(Tls(cert=cert, key=key, password=wrong))
            error: BaseException | None = it.value
            while error is not None:
                assert "canary" not in f"{error!r} {error}"
                error = error.__context__
    # A password that is not needed does no harm.
    server_context(Tls(cert=files.cert, key=files.key, password=PASSWORD))


def test_key_and_certificate_may_be_in_one_file(files: Files, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(files.cert.read_bytes() + files.key.read_bytes())
    server_context(Tls(cert=both))


def test_a_context_of_ones_own_is_used_as_it_is(files: Files) -> None:
    mine = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert client_context(mine) is mine
    assert server_context(mine) is mine


# Who does not speak TLS, or says nothing


def test_silent_tls_client_times_out(files: Files) -> None:
    async def script() -> None:
        async with accepting_tls(files.server, handshake=0.05) as (port, arrived):
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
            transports = [await arrived() for _ in silent]
            ended = await asyncio.gather(
                *(each.connect() for each in transports), return_exceptions=True
            )
            assert {str(each) for each in ended} == {"TLS handshake timed out"}
            for each in silent:
                each.close()

    run(script, timers_too=True)


def test_stalled_tls_handshake_times_out(files: Files) -> None:
    async def script() -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = client_context(files.client).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        hello = outgoing.read()
        async with accepting_tls(files.server, handshake=0.05) as (port, arrived):
            for part in (hello, hello[:5], hello[:50]):
                with socket.create_connection(("127.0.0.1", port)) as half:
                    half.sendall(part)
                    transport = await arrived()
                    with pytest.raises(TransportError, match="timed out"):
                        await transport.connect()
            with socket.create_connection(("127.0.0.1", port)) as half:
                half.sendall(hello)
                half.shutdown(socket.SHUT_WR)
                transport = await arrived()
                with pytest.raises(TransportError, match="the other side closed"):
                    await transport.connect()

    run(script, timers_too=True)


def test_plain_client_of_a_tls_server_raises(files: Files) -> None:
    async def script() -> None:
        async with app().listen(Tcp("127.0.0.1", 0, tls=files.server)) as listening:
            port = listening.address.port  # type: ignore[union-attr]
            client = Client(f"tcp://127.0.0.1:{port}")
            with pytest.raises((TransportError, ConnectionLost)):
                await client.connect()
            await client.close()
            await until_async(lambda: listening.connections == 0)

    run(script)


def test_tls_client_of_a_plain_server_raises_handshake_failed(files: Files) -> None:
    """A plain server waits for the end of a line in what it takes for a very strange one."""

    async def script() -> None:
        async with app().listen(
            "tcp://127.0.0.1:0", limits=SocketLimits(idle=0.3, keep_alive=None)
        ) as listening:
            port = listening.address.port  # type: ignore[union-attr]
            client = Client(Tcp("127.0.0.1", port, tls=files.client))
            with pytest.raises(TransportError, match="TLS handshake failed"):
                await client.connect()
            await client.close()

    run(script)


def test_client_handshake_with_a_silent_server_times_out(files: Files) -> None:
    async def script() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = Tcp(*silent.getsockname(), tls=files.client)
            client = Client(address, connect_timeout=0.1)
            with pytest.raises(RequestTimeout, match="no connection within"):
                await client.connect()
            await client.close()
            transport = address.transport(POLICY)
            connecting = asyncio.create_task(transport.connect())
            await asyncio.sleep(0.05)
            assert not connecting.done()
            await transport.close()
            with pytest.raises(TransportError, match="closed while connecting"):
                await connecting

    run(script, timers_too=True)


# Once it is agreed on


def test_the_largest_frames_come_through_both_ways(files: Files) -> None:
    policy = POLICY.replace(limits=Limits(tcp=16 * MIB))

    async def script() -> None:
        async with joined(files.known, files.strict, policy) as (near, far):
            large = b"x" * (16 * MIB)
            for one, other in ((near, far), (far, near)):
                one.transport.send(large)
                one.transport.send(b"after")
                await until_async(lambda other=other: len(other.frames) == 2)
                assert other.frames == [large, b"after"]
                assert one.transport.backlog == 0

    run(script)


def test_both_may_send_more_than_anybody_reads_at_once(files: Files) -> None:
    async def script() -> None:
        async with joined(files.client, files.server) as (near, far):
            for _ in range(200):
                for each in (near, far):
                    each.transport.send(b"x" * 100_000)
                await asyncio.sleep(0)
            await until_async(lambda: len(near.frames) == len(far.frames) == 200)

    run(script)


def test_frames_can_be_sent_after_the_tls_peer_has_ended_its_output(files: Files) -> None:
    """Within TLS too the directions end one by one."""

    async def script() -> None:
        async with accepting_tls(files.server) as (port, arrived):
            with socket.create_connection(("127.0.0.1", port)) as sock:
                sock.setblocking(False)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                tls = client_context(files.client).wrap_bio(
                    incoming, outgoing, server_hostname="127.0.0.1"
                )
                loop = asyncio.get_running_loop()

                async def step(do: Callable[[], Any]) -> Any:
                    while True:
                        try:
                            value = do()
                        except ssl.SSLWantReadError:
                            await loop.sock_sendall(sock, outgoing.read())
                            data = await loop.sock_recv(sock, MIB)
                            incoming.write(data) if data else incoming.write_eof()
                        else:
                            await loop.sock_sendall(sock, outgoing.read())
                            return value

                shaking = asyncio.create_task(step(tls.do_handshake))
                far = Recorder(await arrived())
                await far.transport.connect()
                await shaking
                await step(lambda: tls.write(b"question\n"))
                with contextlib.suppress(ssl.SSLWantReadError):
                    tls.unwrap()
                await loop.sock_sendall(sock, outgoing.read())
                await until_async(lambda: far.ends)
                assert far.ends == [None]
                assert far.frames == [b"question"]
                assert far.transport.is_connected
                far.transport.send(b"answer")
                closing = asyncio.create_task(far.transport.close())
                assert await step(lambda: tls.read(100)) == b"answer\n"
                # And it says in order that this was all.
                with pytest.raises(ssl.SSLZeroReturnError):
                    await step(lambda: tls.read(100))
                sock.close()
                await closing

    run(script)


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_connection_that_is_cut_in_the_middle_of_a_frame_ends_once(
    files: Files, how: str
) -> None:
    async def script() -> None:
        async with joined(files.client, files.server, POLICY.replace(framing="length-prefix")) as (
            near,
            far,
        ):
            far.transport.on_message = lambda frame, _: far.frames.append(frame)
            near.transport._writer.write(b"\0\0\1\0half")
            await asyncio.sleep(0.02)
            sock = near.transport._socket
            if how == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                near.transport._clear_away()
            else:
                sock.shutdown(socket.SHUT_RDWR)
            await until_async(lambda: far.ends)
            assert not any(isinstance(frame, bytes) for frame in far.frames)
            assert (far.ends[0] is None) == (how == "end")
            await far.transport.close()
            assert len(far.ends) == 1

    run(script, timers_too=True)


def test_frames_received_before_a_loss_are_delivered_before_it(files: Files) -> None:
    async def script() -> None:
        async with joined(files.client, files.server) as (near, far):
            near.transport.send(b"hello")
            await until_async(lambda: far.frames)
            near.transport.pause()  # writing fails before anything is read
            far.transport.send(b"no room for you")
            await asyncio.sleep(0.02)
            far.transport._clear_away()
            for _ in range(3):
                near.transport.send(b"x")
                await asyncio.sleep(0.01)
            assert not near.transport.is_connected
            assert near.ends == []
            near.transport.resume()
            await until_async(lambda: near.ends)
            assert near.frames == [b"no room for you"]

    run(script, timers_too=True)


def test_client_that_ends_its_tls_output_still_receives_frames(files: Files) -> None:
    async def script() -> None:
        async with joined(files.client, files.server) as (near, far):
            near.transport.send(b"question")
            await near.transport.finish()
            await until_async(lambda: far.ends)
            assert far.ends == [None]
            assert far.frames == [b"question"]
            for n in range(3):
                far.transport.send(b"%d" % n * 100_000)
                await asyncio.sleep(0.01)
            await until_async(lambda: len(near.frames) == 3)
            assert near.ends == []
            await far.transport.close()
            await until_async(lambda: near.ends)
            assert near.ends == [None]

    run(script, timers_too=True)


def test_a_server_that_finishes_within_tls_ends_its_client(files: Files) -> None:
    async def script() -> None:
        async with joined(files.client, files.server) as (near, far):
            far.transport.send(b"last")
            await far.transport.finish()
            await until_async(lambda: near.ends and far.ends)
            assert (near.ends, near.frames) == ([None], [b"last"])
            assert far.ends == [None]

    run(script, timers_too=True)


def test_invalid_tls_record_ends_the_connection_with_an_error(files: Files) -> None:
    async def script() -> None:
        async with joined(files.client, files.server) as (near, far):
            near.transport.send(b"good")
            await until_async(lambda: far.frames)
            near.transport._socket.send(b"\x17\x03\x03\x00\x20" + b"n" * 32)
            await until_async(lambda: far.ends)
            assert "the connection was lost: TLS error:" in str(far.ends[0])
            assert far.frames == [b"good"]
            far.transport.send(b"dropped")
            await far.transport.close()

    run(script, timers_too=True)


def test_failed_connect_reports_no_end(files: Files) -> None:
    """Whoever called `connect` was told by what it raised."""

    async def script() -> None:
        async with accepting_tls(files.server) as (port, arrived):
            near = Recorder(Tcp("127.0.0.1", port, tls=True).transport(POLICY))
            connecting = asyncio.create_task(near.transport.connect())
            far = Recorder(await arrived())
            serving = asyncio.create_task(far.transport.connect())
            await asyncio.wait((connecting, serving))
            for side, task in ((near, connecting), (far, serving)):
                assert isinstance(task.exception(), TransportError)
                await side.transport.close()
                assert side.ends == []

    run(script)
