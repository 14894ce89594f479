"""Principals of sockets and standard streams: by configuration, by user, by certificate."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.certificates import Authority
from tests.rigs.leaks import run
from tests.rigs.server_connection import connected
from trunkline import Client, Context, Server, TrunklineError
from trunkline.auth import AuthSettings, Fixed, PeerCertificate, PeerUid, Principal
from trunkline.auth.server.peers import peer_rules_of
from trunkline.server.dispatch import connection as connections
from trunkline.transports.addresses import Tcp, Tls, Unix

ANN = Principal(issuer="unix", subject="ann", tenant="acme", scopes={"files:read"})


def app(**options: Any) -> Server:
    made = Server("peers", **options)

    @made.tool
    async def whoami(ctx: Context) -> list[str | None]:
        found = ctx.principal
        if found is None:
            return [None, None, ctx.tenant]
        return [found.issuer, found.subject, ctx.tenant]

    @made.tool
    async def wait() -> str:
        await asyncio.sleep(60)
        return "over"

    return made


async def who(address: Any) -> list[str | None]:
    async with Client(address) as client:
        found: Any = (await client.call_tool("whoami")).structured_content
        return list(found)


@asynccontextmanager
async def listening(address: Any, auth: Any, **options: Any) -> AsyncIterator[Any]:
    async with app(**options).listen(address, auth=auth) as found:
        yield found


# -- by configuration --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_all_clients_of_a_listener_may_be_one_principal(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        address: Any = Unix(tmp_path / "s") if kind == "unix" else Tcp("127.0.0.1", 0)
        async with listening(address, Fixed(ANN)) as found:
            assert await who(found.address) == ["unix", "ann", "acme"]

    run(main)


def test_the_principal_of_the_server_is_that_of_connections_inside_the_process() -> None:
    async def main() -> None:
        assert await who(app(auth=Fixed("ann"))) == ["", "ann", None]
        # A verifier of tokens knows nothing of them: they are anonymous.
        assert await who(app(auth=lambda request: "bob")) == [None, None, None]
        assert await who(app()) == [None, None, None]

    run(main)


def test_a_single_connection_has_the_principal_that_it_is_served_with() -> None:
    made = app(auth=Fixed("bob"))

    async def main() -> None:
        for auth, expected in ((Fixed(ANN), ANN), (None, Principal(subject="bob"))):
            async with connected(made, auth=auth):
                (connection,) = made._core.runtime.connections
                assert connection.principal == expected

    run(main)


def test_a_server_with_verifiers_of_tokens_alone_does_not_start_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = app(auth=lambda request: "bob")
    for address in (Unix(tmp_path / "s"), Tcp("127.0.0.1", 0)):
        with pytest.raises(ValueError, match=r"function cannot recognise a client on .*add Fixed"):
            made.listen(address)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(ValueError, match="standard streams"):
        made.run()
    # Unless anonymous clients are admitted.
    optional = AuthSettings(verifiers=[lambda request: "bob"], required=False)

    async def main() -> None:
        async with listening(Unix(tmp_path / "s"), optional) as found:
            assert await who(found.address) == [None, None, None]

    run(main)


# -- by user -----------------------------------------------------------------------------------

needs_peercred = pytest.mark.skipif(
    not hasattr(__import__("socket"), "SO_PEERCRED"), reason="the system does not tell"
)


@needs_peercred
def test_the_user_of_a_process_is_its_principal(tmp_path: Path) -> None:
    async def main() -> None:
        uid = os.getuid()
        for rule, expected in (
            (PeerUid(), ["unix", str(uid), None]),
            (PeerUid([uid]), ["unix", str(uid), None]),
            (PeerUid({uid: "ann"}), ["unix", "ann", None]),
            (PeerUid({uid: ANN, uid + 1: "bob"}), ["unix", "ann", "acme"]),
        ):
            async with listening(Unix(tmp_path / "s"), rule) as found:
                assert await who(found.address) == expected

    run(main)


@needs_peercred
def test_a_user_that_is_not_listed_is_refused_before_anything_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        made = app()
        path = tmp_path / "s"
        async with made.listen(Unix(path), auth=PeerUid([os.getuid() + 1])):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            answer = await reader.read()
            assert b'"id":null' in answer
            assert b"Authentication required" in answer
            writer.close()
            assert made._core.runtime.connections == set()
            assert made.stats().refused_connections == 1
        assert "refused: its client is not known" in caplog.text

    run(main)


def test_rules_are_asked_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        rules = [PeerCertificate(), PeerUid([os.getuid() + 1]), Fixed(ANN), lambda request: "bob"]
        async with listening(Unix(tmp_path / "s"), rules) as found:
            assert await who(found.address) == ["unix", "ann", "acme"]

    run(main)


@pytest.mark.parametrize("users", [{"0": "root"}, ["0"], [True], [-1], {0: 7}])
def test_users_are_numbers_and_their_principals_are_named(users: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"PeerUid.users|a principal is"):
        PeerUid(users)


# -- by certificate ----------------------------------------------------------------------------


def tls(authority: Authority, name: str, *hosts: str) -> Tls:
    cert, key = authority.certificate(name, *hosts)
    return Tls(ca=authority.ca, cert=cert, key=key)


@pytest.mark.parametrize(
    ("rule", "subject"),
    [
        (PeerCertificate(), "robot"),
        (PeerCertificate("dns"), "robot.example.org"),
        (PeerCertificate(names=["robot"]), "robot"),
        (PeerCertificate(names={"robot": "R2"}), "R2"),
    ],
)
def test_the_name_of_a_certificate_is_the_subject(
    tmp_path: Path, rule: PeerCertificate, subject: str
) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        server = Tcp("127.0.0.1", 0, tls=tls(authority, "localhost", "127.0.0.1"))
        async with listening(server, rule) as found:
            client = tls(authority, "robot", "robot.example.org")
            address = Tcp("127.0.0.1", found.address.port, tls=client)
            assert await who(address) == ["x509:commonName=authority", subject, None]

    run(main)


@pytest.mark.parametrize("rule", [PeerCertificate(names=["other"]), PeerCertificate("email")])
def test_a_certificate_without_a_known_name_is_refused(
    tmp_path: Path, rule: PeerCertificate
) -> None:
    authority = Authority(tmp_path)

    async def main() -> None:
        server = Tcp("127.0.0.1", 0, tls=tls(authority, "localhost", "127.0.0.1"))
        async with listening(server, rule) as found:
            address = Tcp("127.0.0.1", found.address.port, tls=tls(authority, "robot"))
            with pytest.raises(TrunklineError):
                await who(address)

    run(main)


def test_certificates_have_to_be_required(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certificate("localhost", "127.0.0.1")
    optional = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    optional.load_cert_chain(cert, key)
    for given in (Tls(cert=cert, key=key), optional):
        with pytest.raises(ValueError, match=r"requires certificates of clients: Tls\(ca"):
            app().listen(Tcp("127.0.0.1", 0, tls=given), auth=PeerCertificate())
    # It is for TLS alone.
    with pytest.raises(ValueError, match="cannot recognise"):
        app().listen(Tcp("127.0.0.1", 0), auth=PeerCertificate())
    optional.verify_mode = ssl.CERT_REQUIRED
    assert peer_rules_of(PeerCertificate(), "tls", Tcp("127.0.0.1", 0, tls=optional))
    assert (
        PeerCertificate().principal_of_peer(SimpleNamespace(peer_certificate=lambda: None)) is None
    )


def test_a_part_of_a_certificate_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"PeerCertificate\.name is one of"):
        PeerCertificate("serial")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a list of names"):
        PeerCertificate(names="ann")


# -- the end of a credential -------------------------------------------------------------------


def test_a_connection_ends_with_the_credential_of_its_principal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SimpleNamespace(time=lambda: 1000.0)
    monkeypatch.setattr(connections, "time", clock)

    async def main() -> None:
        ends = Principal(subject="ann", expires_at=1000.05)
        async with listening(Unix(tmp_path / "s"), Fixed(ends)) as found:
            with pytest.raises(TrunklineError):
                async with Client(found.address) as client:
                    await client.call_tool("wait")
        assert "the credential of the client has ended" in caplog.text

    with caplog.at_level(logging.WARNING):
        run(main)


def test_a_connection_that_is_over_leaves_no_timer(tmp_path: Path) -> None:
    async def main() -> None:
        later = Principal(subject="ann", expires_at=time.time() + 3600)
        async with listening(Unix(tmp_path / "s"), Fixed(later)) as found:
            for _ in range(3):
                assert await who(found.address) == ["", "ann", None]
        loop: Any = asyncio.get_running_loop()
        left = [each for each in loop._scheduled if not each.cancelled()]
        assert [each for each in left if "end" in repr(each)] == []

    run(main)


def test_one_principal_for_all_is_not_authentication(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with caplog.at_level(logging.WARNING):
            async with listening(Tcp("0.0.0.0", 0), Fixed(ANN)):
                pass

    run(main)
    assert "without authentication" in caplog.text
