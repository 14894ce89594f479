"""Ways around the guards of a server: each has to meet the same refusal as the direct one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.auth.issuing import ANN, Who, auth
from tests.faults.http.serving import (
    Response,
    Served,
    Session,
    call,
    make_app,
    serving,
    single_headers,
)
from tests.rigs.messages import META
from trunkline import Server
from trunkline.server.api.middleware import ResultCache

SECRET = "what only readers get"
BOB = Who(subject="bob")


def ask(
    served: Served, who: list[tuple[str, str]], method: str, named: str | None = None, **params: Any
) -> Response:
    with served.connect() as wire:
        message = call(method, **params, _meta=META)
        return wire.ask(wire.post(message, [*single_headers(method, named), *who]))


# -- a cache in front of the guards ----------------------------------------------------------


def cached_app(**options: Any) -> Server:
    app, _ = make_app(hide_unscoped=True)
    methods = ("resources/read", "prompts/get", "completion/complete", "tools/list")
    app.middleware(ResultCache(600, tools=["secret"], methods=methods, **options))

    @app.tool(scopes=["read"])
    async def secret() -> str:
        """Return it."""
        return SECRET

    @app.resource("memo://all", scopes=["read"])
    async def memo() -> str:
        return SECRET

    @app.prompt(scopes=["read"])
    async def words(kind: str) -> str:
        """Return them."""
        return SECRET

    @app.completion(prompt="words", argument="kind")
    async def kinds(value: str) -> list[str]:
        return [SECRET]

    return app


REQUESTS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "a tool": ("tools/call", "secret", {"name": "secret", "arguments": {}}),
    "a resource": ("resources/read", "memo://all", {"uri": "memo://all"}),
    "a prompt": ("prompts/get", "words", {"name": "words", "arguments": {"kind": "a"}}),
    "a completion": (
        "completion/complete",
        None,
        {"ref": {"type": "ref/prompt", "name": "words"}, "argument": {"name": "kind", "value": ""}},
    ),
}


@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize(("method", "named", "params"), REQUESTS.values(), ids=REQUESTS)
def test_a_cached_result_is_not_for_a_token_without_the_scopes(
    method: str, named: str | None, params: dict[str, Any], shared: bool
) -> None:
    """A token of the same principal with fewer scopes, and another principal."""
    with serving(cached_app(shared=shared), auth=auth()) as served:
        for _ in range(2):
            answer = ask(served, ANN.headers(scope="read"), method, named, **params)
            assert SECRET in answer.body.decode()
        for who in (ANN, BOB):
            answer = ask(served, who.headers(scope="other"), method, named, **params)
            assert (answer.status, SECRET in answer.body.decode()) == (403, False)


def test_a_list_that_differs_between_callers_is_not_shared_by_a_cache() -> None:
    with serving(cached_app(shared=True), auth=auth()) as served:
        seen = [
            "secret" in ask(served, ANN.headers(scope=scope), "tools/list").body.decode()
            for scope in ("read", "other", "read")
        ]
    assert seen == [True, False, True]


# -- templates that overlap ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"scopes": ["read"]}, {"allow": lambda context: False}])
def test_a_template_that_does_not_take_a_name_does_not_open_that_of_another(
    options: dict[str, Any],
) -> None:
    """A guarded template behind one without a guard, whose handler takes numbers."""
    app, journal = make_app()

    @app.resource("file:///{number}")
    async def by_number(number: int) -> str:
        return f"file {number}"

    @app.resource("file:///{name}", **options)
    async def by_name(name: str) -> str:
        return SECRET

    with serving(app, journal, auth=auth()) as served:
        session = Session(served, ANN.headers())
        for method in ("resources/read", "resources/subscribe"):
            assert "result" in session.ask(call(method, uri="file:///7")).json
            answer = session.ask(call(method, uri="file:///seven"))
            assert (answer.status, answer.json["error"]["code"]) == (403, 403)
        with served.connect() as wire:
            wanted = {"resourceSubscriptions": ["file:///7", "file:///seven"]}
            message = call("subscriptions/listen", notifications=wanted, _meta=META)
            headers = [*single_headers("subscriptions/listen"), *ANN.headers()]
            wire.send(wire.post(message, headers))
            assert wire.start().status == 200
            honoured = wire.message()["params"]["notifications"]
            assert honoured["resourceSubscriptions"] == ["file:///7"]


def test_a_change_is_sent_by_the_guard_of_the_template_that_serves_the_name() -> None:
    app, journal = make_app()

    @app.resource("file:///{number}")
    async def by_number(number: int) -> str:
        return f"file {number}"

    @app.resource("file:///{name}")
    async def by_name(name: str) -> str:
        return SECRET

    with serving(app, journal, auth=auth()) as served:
        session = Session(served, ANN.headers())
        for uri in ("file:///seven", "file:///7"):
            assert "result" in session.ask(call("resources/subscribe", uri=uri)).json

        def guard() -> None:
            app.remove_resource("file:///{name}")
            app.resource("file:///{name}", scopes=["read"])(by_name)

        served.on_loop(guard)
        with served.connect() as wire:
            wire.send(session.get(wire))
            assert wire.start().status == 200
            for uri in ("file:///seven", "file:///7"):
                served.on_loop(app.notify_resource_updated, uri)
            while (message := wire.message())["method"] != "notifications/resources/updated":
                pass
            assert message["params"]["uri"] == "file:///7"
