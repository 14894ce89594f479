"""Canaries in every place where a secret can be: none of them is ever seen in a log or a text."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from typing import Any

import pytest
from msgspec import Struct

from tests.faults.piped_server import Piped, address, piped
from tests.rigs.leaks import run
from tests.rigs.messages import HANDSHAKE, initialize_params
from trunkline import Client, Context, Server, Stdio, TrunklineError
from trunkline.jsonrpc import Policy
from trunkline.judge import TraceEntry

# Each begins differently from the others, so that a leak names its place.
CANARY = "canary7f3a91c2"


def canary(place: str) -> str:
    return f"{CANARY}-{place}"


ARGUMENTS = {
    "password": canary("argument"),
    "nested": {"api_key": canary("nested"), "list": [{"token": canary("deep")}]},
    "url": f"https://user:{canary('url')}@example.org/",
    "header": f"Bearer {canary('bearer')}",
}


@pytest.fixture
def seen(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.DEBUG)

    def assert_unseen(*shown: object) -> None:
        for record in caplog.records:
            assert CANARY not in caplog.handler.format(record), record.getMessage()
        for each in shown:
            assert CANARY not in repr(each)
            assert CANARY not in str(each)

    return assert_unseen


def make() -> Server:
    app = Server("secrets")

    @app.tool
    async def fine(password: str, nested: dict[str, Any], url: str, header: str) -> str:
        return "fine"

    @app.tool
    async def typed(number: int) -> int:
        return number

    @app.tool
    async def fails(ctx: Context, password: str) -> str:
        raise RuntimeError(f"login with password={password} failed, Authorization: {password}")

    @app.tool
    async def fails_chained(password: str) -> str:
        try:
            raise KeyError(f"token={password}")
        except KeyError as error:
            raise ValueError(f'{{"api_key": "{password}"}}') from error

    @app.tool
    async def returns_what_it_should_not(password: str) -> int:
        return {"password": password}  # type: ignore[return-value]  # this is the fault

    @app.tool
    async def shows_its_context(ctx: Context, password: str) -> str:
        logging.getLogger("author").info("%r %r", ctx, ctx.client)
        return "shown"

    @app.resource("secret://{token}")
    async def resource(token: str) -> str:
        raise RuntimeError(f"token={token}")

    @app.prompt
    async def prompt(password: str) -> str:
        raise RuntimeError(f"password={password}")

    return app


@pytest.mark.parametrize("revision", [HANDSHAKE, "2026-07-28"])
def test_no_canary_is_seen_in_logs_reprs_or_errors_of_either_side(revision: str, seen: Any) -> None:
    app = make()
    meta = {"org.example/token": canary("meta"), "org.example/password": canary("meta-password")}

    async def script() -> None:
        async with Client(app, revision=revision) as client:
            shown: list[object] = [client, app]

            async def attempt(tool: str, arguments: dict[str, Any]) -> None:
                try:
                    result = await client.call_tool(tool, arguments, meta=meta)
                except TrunklineError as error:
                    shown.append(error)
                else:
                    shown.append(result.text)

            secret = {"password": canary("password")}
            await attempt("fine", ARGUMENTS)
            await attempt("typed", {"number": canary("wrong-type")})
            await attempt("typed", {"number": 1, **secret})
            await attempt("typed", {"number": 1, "api_key": canary("unknown")})
            await attempt("fails", secret)
            await attempt("fails_chained", secret)
            await attempt("returns_what_it_should_not", secret)
            await attempt("shows_its_context", secret)
            for ask in (
                client.read_resource(f"secret://token={CANARY}-uri"),
                client.get_prompt("prompt", {"password": canary("prompt")}),
                client.request("example/unknown", {"password": canary("unknown-method")}),
            ):
                with pytest.raises(TrunklineError) as raised:
                    await ask
                shown.append(raised.value)
            call = client.submit_tool("fine", ARGUMENTS)
            shown.append(call)
            await call
            shown.append(call)
            seen(*shown)

    asyncio.run(script())


def test_no_canary_of_the_environment_or_the_command_is_seen(seen: Any) -> None:
    prints = (
        "import os, sys; sys.stdin.readline();"
        "print(os.environ['API_TOKEN'], sys.argv, file=sys.stderr, flush=True); sys.exit(7)"
    )
    target = Stdio(
        [sys.executable, "-c", prints, "--token", canary("argv"), f"--password={canary('argv2')}"],
        env={"API_TOKEN": canary("env")},
    )

    async def script() -> None:
        client = Client(target)
        with pytest.raises(TrunklineError) as raised:
            await client.connect()
        # Its last words are there, without what it was trusted with.
        assert "exit status 7" in str(raised.value)
        assert "[redacted]" in str(raised.value)
        seen(raised.value, target, client, getattr(raised.value, "stderr", ()))
        missing = Stdio(
            ["/no/such/command", "--token", canary("argv")], env={"API_TOKEN": canary("env")}
        )
        with pytest.raises(TrunklineError) as raised:
            await Client(missing).connect()
        seen(raised.value, missing)

    run(script)


def test_no_canary_of_a_server_is_seen_by_its_client(seen: Any) -> None:
    async def script() -> None:
        target = address("peer.py", "strays", json.dumps(strays))
        async with Client(target, revision=HANDSHAKE) as client:
            await client.call_tool("echo", {"text": "on"})
            seen(client)

    strays = [
        {"jsonrpc": "2.0", "id": 99, "result": {"token": canary("stray")}},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": f"token={canary('error')}"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": f"Bearer {canary('b')}"}},
        {"jsonrpc": "2.0", "result": {"password": canary("both")}, "error": 1, "id": 99},
        {"jsonrpc": "1.0", "method": "notifications/message", "params": {"token": canary("v")}},
        {"jsonrpc": "2.0", "method": f"token={canary('method')}", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"token": canary("p")}},
        f"password={canary('text')}",
    ]
    run(script)


def attack(server: Piped) -> None:
    """Send canaries in every place there is."""
    secret = canary("raw")
    server.write(f"password={secret}\n".encode())
    server.write(f'{{"jsonrpc":"2.0","id":1,"password":"{secret}\n'.encode())
    for message in (
        {"jsonrpc": "2.0", "id": f"token={secret}", "method": "ping", "params": [secret]},
        {"jsonrpc": "2.0", "id": 2, "method": f"token={secret}"},
        {"jsonrpc": "2.0", "method": f"token={secret}", "params": {"password": secret}},
        {"jsonrpc": "2.0", "id": 3, "result": {"password": secret}},
        {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": f"Bearer {secret}"}},
        {"jsonrpc": "1.0", "id": 4, "method": "ping", "params": {"password": secret}},
        {"jsonrpc": "2.0", "id": 5, "method": "ping", "headers": {"Authorization": secret}},
        {"jsonrpc": "2.0", "id": 6, "method": "ping", "auth": f"Bearer {secret}"},
        server.request("tools/call", 7, name=f"token={secret}", arguments={"password": secret}),
        server.request("tools/call", 8, name="quick", arguments={"number": secret}),
        server.request("tools/call", 9, name="quick", arguments={"number": 1, "token": secret}),
        server.request("resources/read", 10, uri=f"https://u:{secret}@host/?token={secret}"),
        server.request(
            "prompts/get", 11, name="raising_prompt", arguments={"what": f"token={secret}"}
        ),
        server.request("tools/call", 12, name="echo", arguments={}, _meta={"token": secret}),
        server.request("tools/call", 13, name="raises", arguments={"what": f"token={secret}"}),
    ):
        server.send(message)
    assert server.serves()


@pytest.mark.parametrize("level", ["DEBUG", "WARNING"])
def test_no_canary_reaches_the_stderr_of_a_server_process(level: str) -> None:
    environment = {**os.environ, "LEVEL": level, "API_TOKEN": canary("env")}
    with piped(env=environment) as server:
        attack(server)
        server.end_input()
        server.rest()
        assert server.wait() == 0
        log = server.log()
        assert "from the client" in log  # it was logged
        lines = [line for line in log.splitlines() if CANARY in line]
        assert lines == []


def test_no_canary_of_an_envelope_with_credentials_is_seen(seen: Any) -> None:
    app = Server("pierre", policy=Policy.pierre())
    found: list[Any] = []

    @app.tool
    async def shows(ctx: Context) -> str:
        found.append(dict(ctx.headers))
        logging.getLogger("author").info("%r", ctx)
        raise RuntimeError("failed")

    async def script() -> None:
        near = app.transport(app._core.policy)
        answers: list[Any] = []
        near.on_message = lambda frame, _: answers.append(json.loads(frame))
        near.on_error = lambda _: None
        await near.connect()
        params = initialize_params()
        extra = {
            "auth": f"Bearer {canary('auth')}",
            "headers": {"X-Api-Key": canary("header"), "Cookie": canary("cookie")},
            "metadata": {"token": canary("metadata")},
        }
        call = {"name": "shows", "arguments": {}}
        for id, method, asked in ((1, "initialize", params), (2, "tools/call", call)):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": asked, **extra}
            near.send(json.dumps(message).encode())
        async with asyncio.timeout(10):
            while len(answers) < 2:
                await asyncio.sleep(0)
        # The handler has them, and nobody else.
        assert found == [extra["headers"]]
        seen(app, answers)
        await near.close()

    run(script)


def test_the_repr_of_an_elicited_answer_shows_no_canary() -> None:
    class Login(Struct):
        password: str

    app = Server("asks")
    shown: list[str] = []

    @app.tool
    async def typed(ctx: Context) -> str:
        shown.append(repr(await ctx.elicit("log in", Login)))
        return "in"

    @app.tool
    async def plain(ctx: Context) -> str:
        form = {"type": "object", "properties": {"password": {"type": "string"}}}
        shown.append(repr(await ctx.elicit("log in", form)))
        return "in"

    async def script() -> None:
        async with Client(app, on_elicit=lambda _: {"password": "hunter2-CANARY"}) as client:
            for name in ("typed", "plain"):
                assert (await client.call_tool(name)).text == "in"

    run(script)
    message = {"params": {"password": "hunter2-CANARY"}}
    shown.append(repr(TraceEntry(sender="client", message=message)))
    assert len(shown) == 3
    assert "CANARY" not in "".join(shown)
    assert all("password" in each for each in shown)
