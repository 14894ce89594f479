"""Introspection: what an answer says, its cache, and failures of the authorization server."""

from __future__ import annotations

import asyncio
import logging
import socket
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.cases import for_each
from tests.rigs.clock import Clock
from tests.rigs.event_loop import on_a_loop
from tests.unit.auth.tokens import AUDIENCE, NOW, JsonServer, bearer, issuer
from trunkline.auth import (
    Credential,
    Introspection,
    InvalidCredential,
    Principal,
    VerifierUnavailable,
)
from trunkline.auth.server.tenants import TenantRefused
from trunkline.auth.server.verifiers import introspection as module

INACTIVE = "The token is not active"


class IntrospectionVerifier:
    def __init__(self, server: JsonServer, **settings: Any) -> None:
        self.server = server
        self.clock = Clock(NOW)
        given = {
            "issuer": server.origin,
            "client_id": "files",
            "client_secret": "CANARY-secret",
            "audience": AUDIENCE,
            "clock": self.clock,
            **settings,
        }
        self.verifier = Introspection(**given)

    async def verify(self, text: str = "opaque", **more: Any) -> Principal | str:
        """Return the principal, or why there is none."""
        try:
            found = self.verifier.verify(bearer(text, **more))
            if found is not None and not isinstance(found, Principal):
                found = await found
        except InvalidCredential as error:
            return error.description
        except VerifierUnavailable:
            return "unavailable"
        assert found is not None
        return found

    @property
    def asked(self) -> int:
        return self.server.paths.count("/introspect")


def answer(**changes: Any) -> dict[str, Any]:
    """Return an answer about a valid token; a change to `...` leaves a member out."""
    found = {
        "active": True,
        "sub": "ann",
        "client_id": "editor",
        "scope": "files:read",
        "aud": AUDIENCE,
        "exp": NOW + 300,
        **changes,
    }
    return {name: value for name, value in found.items() if value is not ...}


@asynccontextmanager
async def scene_of(response: Any = None, **settings: Any) -> AsyncIterator[IntrospectionVerifier]:
    async with issuer() as server:
        server.answers["/introspect"] = answer() if response is None else response
        yield IntrospectionVerifier(server, **settings)


@on_a_loop
async def test_an_active_token_names_its_principal() -> None:
    async with scene_of(answer(tenant="acme"), tenant_claim="tenant") as scene:
        found = await scene.verify()
        assert isinstance(found, Principal)
        assert (found.issuer, found.subject) == (scene.server.origin, "ann")
        assert (found.client_id, found.tenant) == ("editor", "acme")
        assert found.scopes == {"files:read"}
        assert found.expires_at == NOW + 330


@on_a_loop
async def test_an_answer_without_the_claim_of_the_tenant_is_cached_and_refused() -> None:
    async with scene_of(tenant_claim="tenant") as scene:
        for _ in range(3):
            with pytest.raises(TenantRefused, match="the token has no claim 'tenant'"):
                await scene.verify()
        assert scene.asked == 1
    async with scene_of(tenant_claim="tenant", tenant_required=False) as scene:
        found = await scene.verify()
        assert isinstance(found, Principal)
        assert found.tenant is None


@on_a_loop
async def test_the_server_authenticates_itself_in_the_header() -> None:
    async with scene_of(client_id="a b", client_secret="CANARY:%&") as scene:
        await scene.verify("opa+que/=")
        _, headers, body = scene.server.requests[-1]
        scheme, _, pair = headers["authorization"].partition(" ")
        assert (scheme, b64decode(pair)) == ("Basic", b"a+b:CANARY%3A%25%26")
        assert parse_qs(body.decode()) == {
            "token": ["opa+que/="],
            "token_type_hint": ["access_token"],
        }
        assert headers["content-type"] == "application/x-www-form-urlencoded"


@on_a_loop
async def test_the_server_authenticates_itself_in_the_form() -> None:
    async with scene_of(method="post") as scene:
        await scene.verify()
        _, headers, body = scene.server.requests[-1]
        assert "authorization" not in headers
        form = parse_qs(body.decode())
        assert (form["client_id"], form["client_secret"]) == (["files"], ["CANARY-secret"])


@on_a_loop
async def test_a_known_endpoint_needs_no_metadata() -> None:
    async with issuer() as server:
        server.answers["/here"] = answer()
        scene = IntrospectionVerifier(server, issuer=None, endpoint=f"{server.origin}/here")
        found = await scene.verify()
        assert isinstance(found, Principal)
        # The endpoint tells the subjects of one server from those of another.
        assert found.issuer == f"{server.origin}/here"
        assert server.paths == ["/here"]


@for_each("active", [False, None, "true", 1, "yes", [], ...])
@on_a_loop
async def test_only_true_is_active(active: object) -> None:
    async with scene_of(answer(active=active)) as scene:
        assert await scene.verify() == INACTIVE


@for_each(
    ("change", "outcome"),
    [
        ({"aud": "https://other"}, "The token is not for this server"),
        ({"aud": ...}, "The token is not for this server"),
        ({"aud": 1}, "The token is not for this server"),
        ({"exp": NOW - 31}, "The token has expired"),
        ({"exp": "1"}, "A time of the token is malformed"),
        ({"nbf": NOW + 31}, "The token is not valid yet"),
        ({"iss": "https://other"}, "The token is of another issuer"),
        ({"sub": 1}, "The token does not name its subject"),
        ({"cnf": {"jkt": "x"}}, "The token is bound to a key that was not proved"),
    ],
)
@on_a_loop
async def test_an_active_token_that_is_not_for_here_is_refused(
    change: dict[str, Any], outcome: str
) -> None:
    async with scene_of(answer(**change)) as scene:
        assert await scene.verify() == outcome


@on_a_loop
async def test_the_audience_is_left_out_if_that_is_stated() -> None:
    async with scene_of(answer(aud=...), audience=None) as scene:
        assert isinstance(await scene.verify(), Principal)


def test_the_audience_has_to_be_stated() -> None:
    with pytest.raises(TypeError, match="audience"):
        Introspection(issuer="https://x", client_id="a", client_secret="b")  # type: ignore[call-arg]  # as it is meant


@on_a_loop
async def test_a_token_without_an_end_is_accepted_and_cached_for_a_while() -> None:
    async with scene_of(answer(exp=...)) as scene:
        found = await scene.verify()
        assert isinstance(found, Principal)
        assert found.expires_at is None
        scene.clock.now += module.MAX_AGE_S
        await scene.verify()
        assert scene.asked == 2


# The cache


@on_a_loop
async def test_an_answer_is_at_hand_for_a_while() -> None:
    async with scene_of() as scene:
        await scene.verify()
        scene.clock.now += module.MAX_AGE_S - 1
        assert isinstance(scene.verifier.verify(bearer("opaque")), Principal)
        assert scene.asked == 1
        scene.server.answers["/introspect"] = {"active": False}
        scene.clock.now += 1
        assert await scene.verify() == INACTIVE
        assert scene.asked == 2


@on_a_loop
async def test_a_cached_answer_ends_with_its_token() -> None:
    async with scene_of(answer(exp=NOW + 10), leeway=0) as scene:
        assert isinstance(await scene.verify(), Principal)
        scene.clock.now += 10
        assert await scene.verify() == "The token has expired"


@on_a_loop
async def test_a_refusal_is_cached_for_a_short_time() -> None:
    async with scene_of({"active": False}) as scene:
        for _ in range(10):
            assert await scene.verify() == INACTIVE
        assert scene.asked == 1
        scene.server.answers["/introspect"] = answer()
        scene.clock.now += module.INVALID_MAX_AGE_S
        assert isinstance(await scene.verify(), Principal)


@on_a_loop
async def test_a_flood_of_wrong_tokens_displaces_no_valid_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 8)

    def respond(body: bytes) -> dict[str, Any]:
        return answer() if b"token=good" in body else {"active": False}

    async with scene_of(respond) as scene:
        assert isinstance(await scene.verify("good"), Principal)
        for number in range(30):
            assert await scene.verify(f"bad-{number}") == INACTIVE
        assert len(scene.verifier._invalid) == 8
        asked = scene.asked
        assert isinstance(await scene.verify("good"), Principal)
        assert scene.asked == asked
        for number in range(30):
            await scene.verify(f"good-{number}")
        assert len(scene.verifier._valid) == 8


@on_a_loop
async def test_the_cache_holds_no_token() -> None:
    async with scene_of() as scene:
        await scene.verify("CANARY-token")
        assert "CANARY" not in repr([*scene.verifier._valid, *scene.verifier._invalid])


@on_a_loop
async def test_a_bound_token_is_checked_each_time_although_it_is_cached() -> None:
    async with scene_of(answer(cnf={"jkt": "print"})) as scene:
        assert isinstance(await scene.verify(key_thumbprint="print"), Principal)
        assert await scene.verify() == "The token is bound to a key that was not proved"
        assert await scene.verify(key_thumbprint="other") != "unavailable"
        assert isinstance(await scene.verify(key_thumbprint="print"), Principal)
        assert scene.asked == 1


# One request at a time, and few in all


@on_a_loop
async def test_one_request_is_sent_for_a_token_at_a_time() -> None:
    async with scene_of() as scene:
        scene.server.gate = asyncio.Event()
        waiting = [asyncio.create_task(scene.verify()) for _ in range(20)]
        while not scene.server.requests:
            await asyncio.sleep(0)
        waiting[0].cancel()
        scene.server.gate.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, Principal) for each in found[1:])
        assert scene.asked == 1


def good_or_held(held: asyncio.Event) -> Any:
    """Return an answer that is at once for tokens of the name good, and later for others."""

    async def respond(body: bytes) -> dict[str, Any]:
        if b"token=good" not in body:
            await held.wait()
        return answer()

    return respond


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)


@on_a_loop
async def test_requests_in_flight_are_bounded_and_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 3)
    most = 0
    async with scene_of() as scene:

        async def respond(body: bytes) -> dict[str, Any]:
            nonlocal most
            most = max(most, scene.verifier._slots._slots.used)
            return answer()

        scene.server.answers["/introspect"] = respond
        waiting = [asyncio.create_task(scene.verify(f"t{each}")) for each in range(30)]
        found = await asyncio.gather(*waiting)
        assert all(isinstance(each, Principal) for each in found)
        # Alone, a client has two of three.
        assert (scene.asked, most) == (30, 2)
        await asyncio.sleep(0)
        assert scene.verifier._running == {}


@on_a_loop
async def test_tokens_of_other_addresses_are_verified_while_one_has_all_it_can_get() -> None:
    held = asyncio.Event()
    async with scene_of(good_or_held(held), timeout=60) as scene:
        await scene.verify("good")  # with the metadata
        flood = [
            asyncio.create_task(scene.verify(f"r{each}", client="2001:db8::1"))
            for each in range(1000)
        ]
        await until(lambda: scene.asked == 1 + module.MAX_IN_FLIGHT * 7 // 8)
        for number in range(20):
            found = await scene.verify(f"good-{number}", client=f"192.0.2.{number}")
            assert isinstance(found, Principal)
        # Another address of its network is the same client.
        assert await scene.verify("good-other", client="2001:db8::2") == "unavailable"
        held.set()
        outcomes = await asyncio.gather(*flood)
        assert outcomes.count("unavailable") == 1000 - 56 - module.MAX_WAITING * 7 // 8
        assert not len(scene.verifier._slots)


@on_a_loop
async def test_verification_that_waits_longer_than_the_timeout_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 1)
    held = asyncio.Event()
    async with scene_of(good_or_held(held)) as scene:
        await scene.verifier._find_endpoint()
        first = asyncio.create_task(scene.verify("held"))
        await until(lambda: scene.asked)
        scene.verifier._timeout = 0.001
        assert await scene.verify("good") == "unavailable"
        held.set()
        assert isinstance(await first, Principal)


@on_a_loop
async def test_cancelled_verification_that_waits_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 1)
    held = asyncio.Event()
    async with scene_of(good_or_held(held)) as scene:
        await scene.verifier._find_endpoint()
        first = asyncio.create_task(scene.verify("held"))
        await until(lambda: scene.asked)
        queue = scene.verifier._slots._queue
        waiting = [asyncio.create_task(scene.verify("good")) for _ in range(2)]
        await until(lambda: queue.used)
        # One of its callers is left.
        waiting[0].cancel()
        await asyncio.wait([waiting[0]])
        assert queue.used == 1
        waiting[1].cancel()
        # A caller that comes now starts a verification of its own.
        later = asyncio.create_task(scene.verify("good"))
        await asyncio.wait([waiting[1]])
        held.set()
        assert isinstance(await later, Principal)
        await first
        assert scene.asked == 2
        await asyncio.sleep(0)
        assert scene.verifier._running == {}
        assert not len(scene.verifier._slots)


def test_requests_of_an_event_loop_that_has_ended_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_IN_FLIGHT", 1)
    scenes: list[IntrospectionVerifier] = []

    async def leave() -> None:
        async with scene_of(good_or_held(asyncio.Event())) as scene:
            await scene.verifier._find_endpoint()
            scenes.append(scene)
            asyncio.create_task(scene.verify("held"))  # noqa: RUF006  # it ends with the loop
            await until(lambda: scene.asked)

    # Unlike asyncio.run, which cancels what is left.
    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    verifier = scenes[0].verifier

    async def ask() -> None:
        async with scene_of() as other:
            verifier._given_endpoint = verifier._endpoint = f"{other.server.origin}/introspect"
            other.verifier = verifier
            for text in ("held", "good"):
                assert isinstance(await other.verify(text), Principal)

    asyncio.run(ask())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


# Failures


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        found: int = sock.getsockname()[1]
        return found


@for_each(
    ("status", "response"),
    [(500, None), (503, None), (301, None), (200, b"<html>"), (200, b"[]"), (200, b"x" * 100_000)],
    ids=["500", "503", "301", "html", "list", "large"],
)
@on_a_loop
async def test_a_failure_is_not_a_refusal(status: int, response: Any) -> None:
    async with scene_of(response) as scene:
        await scene.verifier._find_endpoint()
        scene.server.status = status
        assert await scene.verify() == "unavailable"
        # The next request about the token waits: an outage is not made worse.
        asked = len(scene.server.requests)
        for _ in range(20):
            assert await scene.verify() == "unavailable"
        assert len(scene.server.requests) == asked
        scene.server.status = 200
        scene.server.answers["/introspect"] = answer()
        scene.clock.now += 1
        assert isinstance(await scene.verify(), Principal)


def fails_for_bad(body: bytes) -> Any:
    """Return an answer that is a failure for tokens of the name bad."""
    return b"oops" if b"token=bad" in body else answer()


@on_a_loop
async def test_token_that_provokes_failures_does_not_open_the_breaker() -> None:
    async with scene_of(fails_for_bad) as scene:
        for number in range(3 * module.MAX_FAILURES):
            assert await scene.verify("bad") == "unavailable"
            assert scene.asked == number + 1
            scene.clock.now += 1
        assert isinstance(await scene.verify("good"), Principal)


@on_a_loop
async def test_breaker_opens_after_failures_of_different_tokens_in_a_row() -> None:
    async with scene_of(fails_for_bad) as scene:
        for number in range(module.MAX_FAILURES - 1):
            assert await scene.verify(f"bad-{number}") == "unavailable"
        # A success ends the row.
        assert isinstance(await scene.verify("good"), Principal)
        for number in range(module.MAX_FAILURES - 1):
            assert await scene.verify(f"bad-{number}") == "unavailable"
        assert isinstance(await scene.verify("good-2"), Principal)
        for number in range(module.MAX_FAILURES):
            assert await scene.verify(f"bad-{number}") == "unavailable"
        asked = scene.asked
        assert await scene.verify("good-3") == "unavailable"
        assert scene.asked == asked
        scene.clock.now += 1
        # The tokens that failed do not open it again, and another one does.
        assert await scene.verify("bad-0") == "unavailable"
        assert scene.asked == asked + 1
        assert await scene.verify("bad-6") == "unavailable"
        assert scene.asked == asked + 2
        assert await scene.verify("good-3") == "unavailable"
        assert scene.asked == asked + 2
        scene.clock.now += 2
        assert isinstance(await scene.verify("good-3"), Principal)


@on_a_loop
async def test_requests_without_an_answer_open_the_breaker_whatever_the_token() -> None:
    async with scene_of() as scene:
        endpoint = await scene.verifier._find_endpoint()
        port = unused_port()
        scene.verifier._given_endpoint = scene.verifier._endpoint = f"http://127.0.0.1:{port}/"
        for number in range(module.MAX_FAILURES):
            with pytest.raises(VerifierUnavailable, match="cannot be reached"):
                await scene.verifier.verify(bearer("opaque"))  # type: ignore[misc]  # it has to ask
            assert (scene.verifier._retry_at > NOW) == (number == module.MAX_FAILURES - 1)
        scene.verifier._given_endpoint = scene.verifier._endpoint = endpoint
        for text in ("opaque", "other"):
            assert await scene.verify(text) == "unavailable"
        assert not scene.asked
        scene.clock.now += 1
        assert isinstance(await scene.verify(), Principal)


@on_a_loop
async def test_timeouts_open_the_breaker_once_however_many_run() -> None:
    held = asyncio.Event()
    async with scene_of(good_or_held(held), timeout=0.05) as scene:
        await scene.verifier._find_endpoint()
        flood = [scene.verify(f"held-{each}") for each in range(module.MAX_IN_FLIGHT)]
        assert set(await asyncio.gather(*flood)) == {"unavailable"}
        # Those that waited for a slot were not sent, once it was open.
        assert scene.asked < module.MAX_IN_FLIGHT * 7 // 8 + module.MAX_FAILURES
        held.set()
        # The first delay: the others failed while it was open.
        assert 0 < scene.verifier._retry_at - NOW <= 1
        scene.clock.now += 1
        scene.verifier._timeout = 5
        assert isinstance(await scene.verify("good"), Principal)


@on_a_loop
async def test_failures_that_a_client_provokes_are_logged_once_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene_of(fails_for_bad) as scene:
        for number in range(20):
            await scene.verify("bad")
            await scene.verify(f"good-{number}")
        assert caplog.text.count("introspection failed") == 1
        scene.clock.now += 1
        await scene.verify("bad")
        assert caplog.text.count("introspection failed") == 2


@for_each("status", [400, 401, 403, 429])
@on_a_loop
async def test_a_refusal_of_this_server_affects_one_token(status: int) -> None:
    async with scene_of() as scene:
        await scene.verify("good")
        scene.server.status = status
        assert await scene.verify("strange") == "unavailable"
        scene.server.status = 200
        assert isinstance(await scene.verify("other"), Principal)


@on_a_loop
async def test_a_cached_token_outlives_an_outage() -> None:
    async with scene_of() as scene:
        await scene.verify()
        scene.server.status = 500
        assert await scene.verify("other") == "unavailable"
        assert isinstance(await scene.verify(), Principal)


@on_a_loop
async def test_a_failure_that_no_caller_waits_for_is_not_reported_as_lost() -> None:
    """A task whose exception is never retrieved is logged by asyncio: here it is not."""
    async with scene_of() as scene:
        await scene.verifier._find_endpoint()
        scene.server.gate = asyncio.Event()
        scene.server.status = 500
        waiting = asyncio.create_task(scene.verify())
        while not scene.asked:
            await asyncio.sleep(0)
        (running,) = [each.task for each in scene.verifier._running.values()]
        waiting.cancel()
        scene.server.gate.set()
        await asyncio.wait([running, waiting])
        await asyncio.sleep(0)
        assert scene.verifier._running == {}
        assert not running._log_traceback  # what asyncio reads


# What is asked about


@for_each("text", ["", "a b", "tök", "a\r\nx: y", "=", "x" * 20_000, "\ud800"])
def test_malformed_token_is_not_sent_to_the_endpoint(text: str) -> None:
    found = Introspection(
        endpoint="https://login.example.org/i", client_id="a", client_secret="b", audience=None
    )
    assert found.verify(bearer(text)) is None


def test_tokens_of_another_kind_are_not_sent() -> None:
    found = Introspection(
        endpoint="https://login.example.org/i",
        client_id="a",
        client_secret="b",
        audience=None,
        prefix="opq_",
    )
    assert found.verify(bearer("tlk_key")) is None
    assert found.verify(Credential("dpop", "opq_x")) is None


@for_each(
    "settings",
    [
        {"issuer": None},
        {"client_id": ""},
        {"client_secret": ""},
        {"audience": ""},
        {"audience": []},
        {"method": "none"},
        {"issuer": "http://login.example.org"},
        {"endpoint": "ftp://login.example.org"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "issuer": "https://login.example.org",
        "client_id": "a",
        "client_secret": "CANARY",
        "audience": AUDIENCE,
        **settings,
    }
    with pytest.raises(ValueError, match="Introspection") as raised:
        Introspection(**given)
    assert "CANARY" not in str(raised.value)


@on_a_loop
async def test_no_secret_is_in_a_log_a_repr_or_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with scene_of(b"CANARY-body") as scene:
        texts = [repr(scene.verifier)]
        for text in ("CANARY-token", "CANARY-other"):
            with pytest.raises(VerifierUnavailable) as raised:
                await scene.verifier.verify(bearer(text))  # type: ignore[misc]  # it has to ask
            texts += [str(raised.value), repr(raised.value)]
        assert caplog.text
        assert not [each for each in [*texts, caplog.text] if "CANARY" in each]
