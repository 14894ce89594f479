"""Have clients and protected servers rely on `oidc-provider`, and say how it went.

    python -m interop.oauth.run [--only TEXT]

The authorization server and the protected servers, two of ours and an official one, are processes.
Exits 0 if every check passed.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2

from trunkline.auth import ClientCredentials, SigningKey
from trunkline.testing import AuthorizationServer

from ..checks import Unexpected, describe, expect
from ..http import node
from ..http.process import ended, free_port, served
from . import official_client
from .our_client import login, our_client
from .our_server import make_server

# What one check and all of it may take, in seconds.
CHECK_LIMIT: Final = 20.0
LIMIT: Final = 120.0
ROOT: Final = Path(__file__).resolve().parent.parent.parent
SCRIPTS: Final = Path(__file__).resolve().parent / "oidc-provider"
READ: Final = ["files:read"]


class Scene(NamedTuple):
    """The servers that run: their URLs."""

    issuer: str
    ours: str
    ours_dpop: str
    official: str

    async def control(self, action: str) -> list[dict[str, str]]:
        """Change the authorization server; return the grants that it has exchanged."""
        async with httpx2.AsyncClient(trust_env=False) as http:
            response = await http.post(f"{self.issuer}/control/{action}")
            found: list[dict[str, str]] = response.json()
            return found

    async def grants(self, kind: str) -> int:
        """Return how often a type of grant was exchanged for tokens."""
        return sum(each["type"] == kind for each in await self.control("grants"))


Run = Callable[[Scene], Awaitable[None]]
CHECKS: Final[dict[str, Run]] = {}


def check(run: Run) -> Run:
    """Note a check; its name is the sentence that is printed."""
    CHECKS[run.__name__.replace("_", " ")] = run
    return run


def caller(result: Any) -> dict[str, Any]:
    """Return what the tool `whoami` returned."""
    found: dict[str, Any] = json.loads(result.content[0].text)
    return found


# -- the official client, and our server -------------------------------------------------------


async def _official_call(url: str, mode: str) -> tuple[Any, Any]:
    storage = official_client.Tokens()
    async with official_client.connected(url, storage, mode) as client:
        return await client.call_tool("whoami", {}), storage


async def _official_logs_in(scene: Scene, mode: str) -> None:
    result, storage = await _official_call(scene.ours, mode)
    found = caller(result)
    expect(found["issuer"], scene.issuer)
    expect(found["subject"], "ann")
    expect(found["client_id"], storage.client.client_id)
    expect(found["scopes"], READ)


@check
async def the_official_client_registers_logs_in_and_calls_our_server_legacy(scene: Scene) -> None:
    """In the era with sessions."""
    await _official_logs_in(scene, "legacy")


@check
async def the_official_client_registers_logs_in_and_calls_our_server_auto(scene: Scene) -> None:
    """In the era without."""
    await _official_logs_in(scene, "auto")


@check
async def the_official_client_logs_in_at_the_authorization_server_for_development(
    scene: Scene,
) -> None:
    """`trunkline.testing.AuthorizationServer`, with a server of ours in this process."""
    url = f"http://127.0.0.1:{free_port()}/mcp"
    async with AuthorizationServer(scopes=READ, resources=[url], user="ann") as login_server:
        app = make_server(url, login_server.issuer, is_dpop=False)
        async with app.listen(url):
            result, storage = await _official_call(url, "auto")
        found = caller(result)
        expect((found["issuer"], found["subject"]), (login_server.issuer, "ann"))
        expect(found["client_id"], storage.client.client_id)


@check
async def the_official_client_steps_up_to_the_scopes_of_a_tool_of_ours(scene: Scene) -> None:
    """By our challenge of 403, which names all scopes of the call."""
    storage = await official_client.registered(scene.issuer)
    async with official_client.connected(scene.ours, storage) as client:
        result = await client.call_tool("write", {})
    expect(result.content[0].text, "written")
    expect("files:write" in storage.tokens.scope.split(), True)


@check
async def the_official_client_refreshes_its_token_for_our_server(scene: Scene) -> None:
    """When its lifetime of a second has passed."""
    await scene.control("lifetime?seconds=1")
    try:
        storage = official_client.Tokens()
        async with official_client.connected(scene.ours, storage) as client:
            await client.call_tool("whoami", {})
            before = await scene.grants("refresh_token")
            await asyncio.sleep(1.1)
            await client.call_tool("whoami", {})
            expect(await scene.grants("refresh_token") > before, True)
    finally:
        await scene.control("lifetime?seconds=300")


# -- our client --------------------------------------------------------------------------------


async def _our_call(url: str, auth: Any, tool: str = "whoami", **options: Any) -> Any:
    async with our_client(url, auth, **options) as client:
        return await client.call_tool(tool)


async def _ours_logs_in(scene: Scene, **options: Any) -> None:
    before = await scene.grants("authorization_code")
    found = (await _our_call(scene.ours, login(), **options)).value
    expect(found["issuer"], scene.issuer)
    expect(found["subject"], "ann")
    expect(found["scopes"], READ)
    expect(await scene.grants("authorization_code"), before + 1)


@check
async def our_client_registers_logs_in_and_calls_our_server(scene: Scene) -> None:
    """In the newest revision."""
    await _ours_logs_in(scene)


@check
async def our_client_registers_logs_in_and_calls_our_server_in_2025_11_25(scene: Scene) -> None:
    """With a session."""
    await _ours_logs_in(scene, revision="2025-11-25")


@check
async def our_client_registers_logs_in_and_calls_the_official_server(scene: Scene) -> None:
    """In both eras."""
    for options in ({}, {"revision": "2025-11-25"}):
        result = await _our_call(scene.official, login(), **options)
        expect(json.loads(result.text)["scopes"], READ)


@check
async def our_client_logs_in_once_for_many_calls_at_once(scene: Scene) -> None:
    """And for a second client with the same login."""
    auth = login()
    before = await scene.grants("authorization_code")
    async with our_client(scene.ours, auth) as one, our_client(scene.ours, auth) as other:
        calls = [each.call_tool("whoami") for each in (one, other) for _ in range(5)]
        names = {result.value["client_id"] for result in await asyncio.gather(*calls)}
    expect(len(names), 1)
    expect(await scene.grants("authorization_code"), before + 1)


@check
async def our_client_steps_up_to_the_scopes_of_a_tool(scene: Scene) -> None:
    """And keeps what it had."""
    auth = login()
    async with our_client(scene.ours, auth) as client:
        expect((await client.call_tool("whoami")).value["scopes"], READ)
        expect((await client.call_tool("write")).text, "written")
        found = (await client.call_tool("whoami")).value
        expect(found["scopes"], ["files:read", "files:write"])


@check
async def our_client_refreshes_its_token_and_uses_the_next_refresh_token(scene: Scene) -> None:
    """Twice, because each refresh token is used once."""
    await scene.control("lifetime?seconds=1")
    try:
        async with our_client(scene.ours, login()) as client:
            await client.call_tool("whoami")
            codes = await scene.grants("authorization_code")
            before = await scene.grants("refresh_token")
            for _ in range(2):
                await asyncio.sleep(1.1)
                await client.call_tool("whoami")
            expect(await scene.grants("refresh_token") >= before + 2, True)
            expect(await scene.grants("authorization_code"), codes)
    finally:
        await scene.control("lifetime?seconds=300")


@check
async def our_client_binds_its_token_to_a_key_with_nonces(scene: Scene) -> None:
    """DPoP at the authorization server, which requires nonces, and at our server."""
    found = (await _our_call(scene.ours_dpop, login(dpop=True))).value
    expect(found["subject"], "ann")


@check
async def our_client_acts_for_itself_with_each_kind_of_credentials(scene: Scene) -> None:
    """A secret in the header or the body, and a key."""
    key = SigningKey.generate(key_id="1")
    keys = {"keys": [{**key.public_jwk, "use": "sig", "alg": key.algorithm}]}
    for method, extra in (
        ("client_secret_basic", {}),
        ("client_secret_post", {}),
        ("private_key_jwt", {"jwks": keys, "token_endpoint_auth_signing_alg": key.algorithm}),
    ):
        document = {
            "grant_types": ["client_credentials"],
            "response_types": [],
            "redirect_uris": [],
            "token_endpoint_auth_method": method,
            **extra,
        }
        async with httpx2.AsyncClient(trust_env=False) as http:
            client = (await http.post(f"{scene.issuer}/reg", json=document)).json()
        proof = {"private_key": key} if extra else {"client_secret": client["client_secret"]}
        method = None if extra else method
        auth = ClientCredentials(
            client["client_id"], method=method, issuer=scene.issuer, scopes=READ, **proof
        )
        found = (await _our_call(scene.ours, auth)).value
        expect(found["client_id"], client["client_id"])


@check
async def our_client_goes_on_after_the_keys_were_rotated(scene: Scene) -> None:
    """With its old token, and after a login with a new one."""
    async with our_client(scene.ours, login()) as client:
        await client.call_tool("whoami")
        await scene.control("rotate")
        await client.call_tool("whoami")
        await _ours_logs_in(scene)
        await client.call_tool("whoami")


# -- our server --------------------------------------------------------------------------------


async def _raw(url: str, token: str, scheme: str = "Bearer") -> httpx2.Response:
    headers = {
        "authorization": f"{scheme} {token}",
        "accept": "application/json, text/event-stream",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx2.AsyncClient(trust_env=False) as http:
        return await http.post(url, json=body, headers=headers)


def _expect_refused(response: httpx2.Response) -> None:
    expect(response.status_code, 401)
    challenge = response.headers["www-authenticate"]
    if 'error="invalid_token"' not in challenge:
        raise Unexpected(f"the challenge is {challenge}")


@check
async def our_server_refuses_a_token_for_another_server(scene: Scene) -> None:
    """Of the same issuer, and valid there."""
    _, storage = await _official_call(scene.official, "auto")
    _expect_refused(await _raw(scene.ours, storage.tokens.access_token))


@check
async def our_server_refuses_a_token_that_was_changed(scene: Scene) -> None:
    """In its signature."""
    _, storage = await _official_call(scene.ours, "auto")
    token = storage.tokens.access_token
    head, _, signature = token.rpartition(".")
    other = "A" if signature[10] != "A" else "B"
    changed = f"{head}.{signature[:10]}{other}{signature[11:]}"
    _expect_refused(await _raw(scene.ours, changed))


@check
async def our_server_finds_the_new_keys_and_keeps_the_old_ones(scene: Scene) -> None:
    """After a rotation, without a restart."""
    _, old = await _official_call(scene.ours, "auto")
    await scene.control("rotate")
    await _official_logs_in(scene, "auto")
    response = await _raw(scene.ours, old.tokens.access_token)
    expect(response.status_code != 401, True)


# -- all of it ---------------------------------------------------------------------------------


async def run_all(chosen: dict[str, Run], folder: Path) -> list[str]:
    """Run the checks one after another; return the names of those that failed."""
    failed = []
    async with AsyncExitStack() as stack:
        ports = {name: free_port() for name in ("issuer", "ours", "ours_dpop", "official")}
        urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        issuer = urls["issuer"]
        python = [sys.executable, "-m"]
        commands = {
            "issuer": node.command("server.mjs", str(ports["issuer"]), scripts=SCRIPTS),
            "ours": [*python, "interop.oauth.our_server", str(ports["ours"]), issuer],
            "ours_dpop": [
                *(*python, "interop.oauth.our_server", str(ports["ours_dpop"])),
                *(issuer, "dpop"),
            ],
            "official": [*python, "interop.oauth.official_server", str(ports["official"]), issuer],
        }
        processes = await asyncio.gather(
            *(
                stack.enter_async_context(served(command, ports[name], folder / f"{name}.log"))
                for name, command in commands.items()
            )
        )
        scene = Scene(issuer, *(f"{urls[name]}/mcp" for name in list(commands)[1:]))
        for name, run in chosen.items():
            if note := await _outcome(run(scene)):
                failed.append(name)
            print(f"{'FAIL' if note else 'pass':<8}P oidc-provider {name}{note}", flush=True)
        for name, process in zip(commands, processes, strict=True):
            is_ours = name.startswith("ours")
            stopped = ended(process, folder / f"{name}.log", is_quiet=is_ours)
            if note := await _outcome(stopped):
                failed.append(f"the process of {name} stops")
            print(f"{'FAIL' if note else 'pass':<8}P {name} stops{note}", flush=True)
    return failed


async def _outcome(work: Awaitable[None]) -> str:
    try:
        async with asyncio.timeout(CHECK_LIMIT):
            await work
    except Exception as error:  # noqa: BLE001  # what a check raises is what it found
        return f"  ({describe(error)})"
    return ""


def main() -> int:
    """Run the checks that were asked for."""
    parser = argparse.ArgumentParser(
        prog="interop.oauth.run", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help="part of the name of a check")
    args = parser.parse_args()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    logging.basicConfig(level=logging.CRITICAL)
    os.chdir(ROOT)
    # Installed before the clock starts.
    node.command("server.mjs", scripts=SCRIPTS)
    began = time.monotonic()
    chosen = {name: run for name, run in CHECKS.items() if args.only in name}
    with tempfile.TemporaryDirectory() as folder:
        failed = asyncio.run(run_all(chosen, Path(folder)))
    print(
        f"\n{len(chosen) - len(failed)} checks passed, {len(failed)} failed, "
        f"in {time.monotonic() - began:.0f} s"
    )
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
