"""Refusals of access over HTTP: the status, the challenge, and where neither can be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from tests.faults.http.serving import (
    Response,
    Served,
    Session,
    call,
    serving,
    single,
    single_headers,
)
from tests.rigs.messages import META
from trunkline import Context, ParamHeader, Server
from trunkline.auth import AuthSettings, Principal
from trunkline.auth.challenge import Challenge, parse_challenges

READ, WRITE = "files:read", "files:write"
KEYS = {
    "reader": [READ],
    "writer": [READ, WRITE],
    "admin": ["files:admin"],
    "stranger": [],
}


def make_app() -> Server:
    app = Server("files", implies={"files:admin": [READ, WRITE]})

    @app.tool(scopes=[READ, WRITE])
    async def save(path: str) -> str:
        """Write a file."""
        return path

    @app.tool
    async def status() -> str:
        """Need nothing."""
        return "fine"

    async def slowly(context: Context, seconds: float) -> bool:
        await context.progress(1, message="checking")
        await asyncio.sleep(0)
        return False

    @app.tool(allow=slowly)
    async def slow(seconds: float) -> str:
        return "never"

    @app.tool(allow=lambda context: False)
    async def closed() -> str:
        return "never"

    @app.resource("file:///{path}", scopes=[READ])
    async def file(path: str) -> str:
        return path

    return app


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    def by_name(request: Any) -> Principal | None:
        given = request.header(b"authorization")
        if given is None:
            return None
        name = given.decode().removeprefix("Bearer ")
        return Principal(issuer="https://as.example", subject=name, scopes=frozenset(KEYS[name]))

    class Named:
        schemes = ("bearer",)
        authorization_servers = ("https://as.example",)
        scopes_supported = ()
        dpop_algorithms = ()

        def verify(self, credential: Any) -> Principal | None:
            return by_name(credential.request)

    auth = AuthSettings(verifiers=[Named()], required=False, resource="https://files.example/mcp")
    with serving(make_app(), auth=auth) as found:
        yield found


def bearer(name: str | None) -> list[tuple[str, str]]:
    return [] if name is None else [("Authorization", f"Bearer {name}")]


def save(served: Served, name: str | None) -> Response:
    with served.connect() as wire:
        return wire.ask(single(wire, "save", headers=bearer(name), path="a"))


def challenge(answer: Response) -> Challenge:
    value = answer.header("www-authenticate")
    assert value is not None
    (found,) = parse_challenges([value])
    return found


def test_missing_scopes_are_403_with_all_scopes_of_the_operation_at_once(served: Served) -> None:
    answer = save(served, "reader")
    assert answer.status == 403
    found = challenge(answer)
    assert (found.scheme, found.error) == ("bearer", "insufficient_scope")
    assert found.scopes == {READ, WRITE}
    assert found.resource_metadata == (
        "https://files.example/.well-known/oauth-protected-resource/mcp"
    )
    error = answer.json["error"]
    assert (answer.json["id"], error["code"]) == (1, 403)
    assert error["data"] == {"requiredScopes": [READ, WRITE], "missingScopes": [WRITE]}
    assert answer.header("cache-control") == "no-store"


def test_an_anonymous_caller_is_asked_to_authenticate(served: Served) -> None:
    answer = save(served, None)
    assert answer.status == 401
    found = challenge(answer)
    assert (found.error, found.scopes) == (None, {READ, WRITE})
    assert answer.json["error"]["code"] == 401


def test_scopes_that_suffice_and_that_imply_others_are_served(served: Served) -> None:
    for name in ("writer", "admin"):
        answer = save(served, name)
        assert (answer.status, answer.header("www-authenticate")) == (200, None)


def test_more_scopes_do_not_help_where_allow_refuses(served: Served) -> None:
    with served.connect() as wire:
        answer = wire.ask(single(wire, "closed", headers=bearer("writer")))
        assert (answer.status, answer.header("www-authenticate")) == (403, None)
        anonymous = wire.ask(single(wire, "closed"))
        assert (anonymous.status, challenge(anonymous).error) == (401, None)


def test_a_session_is_refused_the_same_way_and_goes_on(served: Served) -> None:
    session = Session(served, bearer("reader"))
    answer = session.call("save", path="a")
    assert (answer.status, challenge(answer).scopes) == (403, {READ, WRITE})
    assert answer.json["error"]["code"] == 403
    assert session.call("status").status == 200
    for method in ("resources/read", "resources/subscribe"):
        assert session.ask(call(method, 2, uri="file:///a")).status == 200


def test_a_token_of_the_same_principal_with_more_scopes_continues_a_session() -> None:
    scopes = {"weak": [], "strong": [READ, WRITE]}

    class OnePrincipal:
        schemes = ("bearer",)
        authorization_servers = ()
        scopes_supported = ()
        dpop_algorithms = ()

        def verify(self, credential: Any) -> Principal | None:
            return Principal(subject="ann", scopes=frozenset(scopes[credential.token]))

    with serving(make_app(), auth=OnePrincipal()) as served:
        session = Session(served, bearer("weak"))
        assert session.call("save", path="a").status == 403
        session.extra = bearer("strong")
        assert session.call("save", path="a").status == 200
        session.extra = bearer("weak")
        assert session.call("save", path="a").status == 403


def test_in_a_batch_each_element_is_an_error_by_itself(served: Served) -> None:
    session = Session(served, bearer("reader"), "2025-03-26")
    answer = session.ask(
        [call("tools/call", name, name=name, arguments={"path": "a"}) for name in ("save", "no")]
        + [call("tools/call", "status", name="status", arguments={})]
    )
    assert (answer.status, answer.header("www-authenticate")) == (200, None)
    found = {each["id"]: each for each in answer.json}
    assert found["save"]["error"]["data"]["missingScopes"] == [WRITE]
    assert found["no"]["error"]["code"] == -32602
    assert "result" in found["status"]


def test_in_a_stream_that_was_begun_the_refusal_is_an_error(served: Served) -> None:
    with served.connect() as wire:
        wire.send(single(wire, "slow", headers=bearer("writer"), token="p", seconds=1))
        assert wire.start().status == 200
        assert wire.message()["method"] == "notifications/progress"
        assert wire.message()["error"]["code"] == 403


def test_a_client_that_takes_event_streams_only_gets_the_status_too(served: Served) -> None:
    with served.connect() as wire:
        headers = [*bearer("reader"), ("Accept", "text/event-stream")]
        answer = wire.ask(single(wire, "save", headers=headers, path="a"))
        assert (answer.status, challenge(answer).error) == (403, "insufficient_scope")


def test_middleware_that_answers_in_place_of_a_refusal_is_not_refused() -> None:
    app = make_app()

    @app.middleware
    async def lenient(context: Context, proceed: Any) -> Any:
        try:
            return await proceed()
        except Exception:  # noqa: BLE001  # the refusal, which it hides
            return "allowed all the same"

    def reader(request: Any) -> Principal:
        return Principal(subject="ann", scopes=frozenset({READ}))

    with serving(app, auth=reader) as served:
        answer = save(served, None)
        assert (answer.status, answer.header("www-authenticate")) == (200, None)
        assert "allowed all the same" in answer.body.decode()


def test_a_completion_and_a_stream_of_changes_follow_the_same_rules(served: Served) -> None:
    message = call(
        "completion/complete",
        3,
        ref={"type": "ref/resource", "uri": "file:///{path}"},
        argument={"name": "path", "value": ""},
        _meta=META,
    )
    with served.connect() as wire:
        headers = [*single_headers("completion/complete"), *bearer("stranger")]
        answer = wire.ask(wire.post(message, headers))
        # Without a completion the server does not offer the method.
        assert answer.status in (403, 404)
    for name, uris in (("stranger", None), ("reader", ["file:///a"])):
        with served.connect() as wire:
            wanted = {"resourceSubscriptions": ["file:///a"]}
            message = call("subscriptions/listen", 4, notifications=wanted, _meta=META)
            headers = [*single_headers("subscriptions/listen"), *bearer(name)]
            wire.send(wire.post(message, headers))
            assert wire.start().status == 200
            honoured = wire.message()["params"]["notifications"]
            assert honoured.get("resourceSubscriptions") == uris


def test_the_headers_of_a_hidden_tool_tell_nothing_of_it() -> None:
    app = Server("hidden")

    @app.tool(visible=lambda context: False)
    async def hidden(region: Annotated[str, ParamHeader("Region")]) -> str:
        return region

    with serving(app, auth=lambda request: "ann") as served, served.connect() as wire:
        found = wire.ask(single(wire, "hidden", region="eu"))
        missing = wire.ask(single(wire, "hiddem", region="eu"))
        assert found.status == missing.status == 200
        assert found.body.replace(b"hidden", b"hiddem") == missing.body


def test_a_retry_with_its_state_is_checked_again() -> None:
    app, scopes = Server("asks"), [WRITE]

    @app.tool(scopes=[WRITE], allow=lambda context, path: path != "b")
    async def ask_first(ctx: Context, path: str) -> str:
        """Ask before writing."""
        answer = await ctx.elicit("Sure?", None)
        return answer.action

    def caller(request: Any) -> Principal:
        return Principal(subject="ann", scopes=frozenset(scopes))

    meta = META | {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}

    def call_with(**more: Any) -> Any:
        arguments = {"path": "a"}
        message = call("tools/call", 1, name="ask_first", arguments=arguments, _meta=meta, **more)
        with served.connect() as wire:
            return wire.ask(wire.post(message, single_headers("tools/call", "ask_first"))).json

    with serving(app, auth=caller) as served:
        asked = call_with()["result"]
        (key,) = asked["inputRequests"]
        retry = {
            "inputResponses": {key: {"action": "accept", "content": {}}},
            "requestState": asked["requestState"],
        }
        scopes.clear()
        assert call_with(**retry)["error"]["code"] == 403
        scopes.append(WRITE)
        assert call_with(**retry)["result"]["content"][0]["text"] == "accept"
