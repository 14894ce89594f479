"""Scopes, `allow` and `visible`: enforced before the handler, wherever an entry is used."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST
from tests.unit.server.access.callers import BOTH, caller, connected_as
from trunkline import Context, Server
from trunkline.errors import RequestError
from trunkline.server.methods.entry_methods import ENTRY_METHODS
from trunkline.spec.lookup import method as method_row

pytestmark = pytest.mark.anyio

READ, WRITE = "files:read", "files:write"
REFUSED = {"requiredScopes": [READ, WRITE], "missingScopes": [WRITE]}


class Files:
    """A server with guarded entries, and what its handlers have done."""

    def __init__(self, **options: Any) -> None:
        self.app = app = Server("files", **options)
        self.calls: list[str] = []

        @app.tool(scopes=[READ, WRITE])
        async def save(path: str) -> str:
            """Write a file."""
            self.calls.append(f"save {path}")
            return path

        @app.tool
        async def open_to_all() -> str:
            """Ask for no scope."""
            return "open"

        @app.resource("file:///{path}", scopes=[READ])
        async def file(path: str) -> str:
            """Read a file."""
            self.calls.append(f"read {path}")
            return path

        @app.prompt(scopes=[READ])
        async def review(path: str) -> str:
            """Review a file."""
            self.calls.append(f"review {path}")
            return path

        @app.completion(prompt="review", argument="path")
        async def paths(typed: str) -> list[str]:
            self.calls.append("complete review")
            return [typed]

        @app.completion(resource="file:///{path}", argument="path")
        async def more_paths(typed: str) -> list[str]:
            self.calls.append("complete file")
            return [typed]


USES = {
    "tool": ("tools/call", {"name": "save", "arguments": {"path": "a"}}),
    "tool with bad arguments": ("tools/call", {"name": "save", "arguments": {"no": 1}}),
    "resource": ("resources/read", {"uri": "file:///a"}),
    "subscription": ("resources/subscribe", {"uri": "file:///a"}),
    "prompt": ("prompts/get", {"name": "review", "arguments": {"path": "a"}}),
    "prompt without its argument": ("prompts/get", {"name": "review", "arguments": {}}),
    "completion of a prompt": (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "path", "value": "a"},
        },
    ),
    "completion of an argument without one": (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "review"},
            "argument": {"name": "other", "value": "a"},
        },
    ),
    "completion of a template": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "file:///{path}"},
            "argument": {"name": "path", "value": "a"},
        },
    ),
}


def in_its_revisions(uses: dict[str, Any]) -> list[Any]:
    """Return each use with each of the two revisions that have its method."""
    return [
        pytest.param(use, revision, id=f"{name}-{revision}")
        for name, use in uses.items()
        for revision in BOTH
        if method_row(use[0], revision) is not None
    ]


@pytest.mark.parametrize(("use", "revision"), in_its_revisions(USES))
async def test_a_caller_without_the_scopes_is_refused_before_the_handler(
    use: tuple[str, dict[str, Any]], revision: str
) -> None:
    files = Files()
    method, params = use
    async with connected_as(files.app, caller("ann", "other"), revision) as wire:
        refused = await wire.request(method, **params)
        assert refused["code"] == 403
        assert refused["message"] == "Insufficient permissions"
        needed = refused["data"]["requiredScopes"]
        assert needed == refused["data"]["missingScopes"] != []
        wire.become(None)
        anonymous = await wire.request(method, **params)
        assert (anonymous["code"], anonymous["message"]) == (401, "Authentication required")
        assert anonymous["data"]["requiredScopes"] == needed
        assert files.calls == []
        wire.become(caller("ann", *needed))
        served = await wire.request(method, **params)
        assert served.get("code") not in (401, 403)


async def test_a_refusal_names_all_scopes_of_the_operation_and_those_that_are_missing() -> None:
    files = Files()
    async with connected_as(files.app, caller("ann", READ)) as wire:
        assert (await wire.tool("save", path="a"))["data"] == REFUSED
        wire.become(caller("ann", READ, WRITE))
        assert (await wire.tool("save", path="a"))["content"][0]["text"] == "a"
        assert files.calls == ["save a"]


async def test_a_scope_that_implies_others_suffices() -> None:
    files = Files(implies={"files:admin": ["files:edit"], "files:edit": [READ, WRITE]})
    async with connected_as(files.app, caller("ann", "files:admin")) as wire:
        assert "content" in await wire.tool("save", path="a")
        wire.become(caller("ann", "Files:Admin"))
        assert (await wire.tool("save", path="a"))["code"] == 403


async def test_an_entry_that_lacks_only_scopes_stays_listed_unless_it_is_hidden() -> None:
    for hide, names in ((False, ["save", "open_to_all"]), (True, ["open_to_all"])):
        files = Files(hide_unscoped=hide)
        async with connected_as(files.app, caller("ann")) as wire:
            listed = (await wire.request("tools/list"))["tools"]
            assert [each["name"] for each in listed] == names
            # Hidden from the list, and still refused by name: the client may ask for the scopes.
            assert (await wire.tool("save", path="a"))["code"] == 403
            wire.become(caller("ann", READ, WRITE))
            assert len((await wire.request("tools/list"))["tools"]) == 2
            assert len((await wire.request("prompts/list"))["prompts"]) == 1
            wire.become(None)
            assert len((await wire.request("prompts/list"))["prompts"]) == int(not hide)
            templates = await wire.request("resources/templates/list")
            assert len(templates["resourceTemplates"]) == int(not hide)


async def test_the_elements_of_a_batch_are_refused_one_by_one() -> None:
    files = Files()
    async with connected_as(files.app, caller("ann", READ), "2025-03-26") as wire:
        wire.send(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
                | ({"id": name} if name else {})
                for name in ("save", "open_to_all")
            ]
        )
        await wire.until(1)
        refused, served = wire.got[0]
        assert (refused["id"], refused["error"]["code"]) == ("save", 403)
        assert served["result"]["content"][0]["text"] == "open"


# -- allow -----------------------------------------------------------------------------------


def lending(allow: Any, **options: Any) -> tuple[Server, list[str]]:
    app, lent = Server("books"), []

    @app.tool(allow=allow, **options)
    def lend(book: str, days: int = 7) -> str:
        """Lend a book."""
        lent.append(book)
        return f"{book} for {days} days"

    return app, lent


async def test_allow_decides_by_context_and_arguments_before_the_handler() -> None:
    seen: list[Any] = []

    def allow(context: Context, days: int, *, book: str) -> bool:
        seen.append((context.principal and context.principal.subject, context.name, book, days))
        return days < 10

    app, lent = lending(allow)
    async with connected_as(app, caller("ann")) as wire:
        assert "content" in await wire.tool("lend", book="a")
        refused = await wire.tool("lend", book="b", days=10)
        assert refused == {"code": 403, "message": "Insufficient permissions"}
        wire.become(None)
        assert (await wire.tool("lend", book="c", days=10))["code"] == 401
    assert lent == ["a"]
    assert seen == [("ann", "lend", "a", 7), ("ann", "lend", "b", 10), (None, "lend", "c", 10)]


async def _later(context: Context, **arguments: Any) -> bool:
    await asyncio.sleep(0)
    return bool(arguments["book"] == "a")


def _raises(context: Context) -> bool:
    raise PermissionError("not for the client: s3cret-canary")


async def _breaks(context: Context, book: str) -> bool:
    if book == "a":
        return True
    raise ValueError("password=s3cret-canary")


@pytest.mark.parametrize("allow", [_later, _breaks], ids=["async", "broken"])
async def test_allow_may_wait_and_one_that_breaks_refuses(
    allow: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app, lent = lending(allow)
    async with connected_as(app, caller()) as wire:
        assert "content" in await wire.tool("lend", book="a")
        assert (await wire.tool("lend", book="b"))["code"] == 403
    assert lent == ["a"]
    broken = [each for each in caplog.records if "access is refused" in each.getMessage()]
    assert len(broken) == (allow is _breaks)
    assert "s3cret-canary" not in caplog.text


async def test_permission_error_is_refused_without_sending_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app, lent = lending(_raises)
    async with connected_as(app, caller()) as wire:
        refused = await wire.tool("lend", book="a")
    assert refused == {"code": 403, "message": "Insufficient permissions"}
    assert lent == []
    assert "canary" not in caplog.text


async def test_scopes_are_checked_before_allow_is_asked() -> None:
    asked: list[str] = []
    app, _ = lending(lambda context, book: asked.append(book) or True, scopes=[WRITE])
    async with connected_as(app, caller()) as wire:
        assert (await wire.tool("lend", book="a"))["code"] == 403
        assert asked == []
        wire.become(caller("ann", WRITE))
        await wire.tool("lend", book="a")
        assert asked == ["a"]


async def test_allow_of_a_template_gets_its_variables_also_to_subscribe() -> None:
    app = Server("notes")

    @app.resource("note://{owner}/{name}", allow=lambda context, owner: owner == "ann")
    def note(owner: str, name: str) -> str:
        return name

    async with connected_as(app, caller()) as wire:
        assert "contents" in await wire.request("resources/read", uri="note://ann/1")
        assert (await wire.request("resources/read", uri="note://bob/1"))["code"] == 403
        assert await wire.request("resources/subscribe", uri="note://ann/1") == {}
        assert (await wire.request("resources/subscribe", uri="note://bob/1"))["code"] == 403
        wire.got.clear()
        for owner in ("bob", "ann"):
            app.notify_resource_updated(f"note://{owner}/1")
        await wire.until(1)
        assert [each["params"]["uri"] for each in wire.got] == ["note://ann/1"]


async def test_allow_of_a_prompt_and_of_a_raw_tool_get_their_arguments() -> None:
    app = Server("raw")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    @app.tool(input_schema=schema, allow=lambda context, n=0: n > 1)
    def count(arguments: dict[str, Any]) -> str:
        return "counted"

    @app.prompt(allow=lambda context, name: name == "ann")
    def greet(name: str) -> str:
        return name

    async with connected_as(app, caller()) as wire:
        assert "content" in await wire.tool("count", n=2)
        assert (await wire.tool("count", n=1))["code"] == 403
        assert (await wire.tool("count"))["code"] == 403
        for name, is_allowed in (("ann", True), ("bob", False)):
            got = await wire.request("prompts/get", name="greet", arguments={"name": name})
            assert ("messages" in got) is is_allowed


async def test_completions_ask_the_functions_that_need_no_arguments() -> None:
    app, is_open = Server("prompts"), True

    @app.prompt(allow=lambda context: is_open)
    def one(name: str) -> str:
        return name

    @app.prompt(allow=lambda context, name: False)
    def other(name: str) -> str:
        return name

    for prompt in ("one", "other"):

        @app.completion(prompt=prompt, argument="name")
        def names(typed: str) -> list[str]:
            return ["ann"]

    async def complete(prompt: str) -> Any:
        ref, argument = {"type": "ref/prompt", "name": prompt}, {"name": "name", "value": ""}
        return await wire.request("completion/complete", ref=ref, argument=argument)

    async with connected_as(app, caller()) as wire:
        assert (await complete("one"))["completion"]["values"] == ["ann"]
        assert (await complete("other"))["completion"]["values"] == ["ann"]
        is_open = False
        assert (await complete("one"))["code"] == 403


# -- visible ---------------------------------------------------------------------------------


def secretive(**options: Any) -> Server:
    app = Server("secrets", **options)

    def is_boss(context: Context) -> bool:
        return context.principal is not None and context.principal.subject == "boss"

    @app.tool(visible=is_boss, scopes=[WRITE])
    def hire(name: str) -> str:
        return name

    @app.resource("plan://a", visible=is_boss)
    def plan() -> str:
        return "plan"

    @app.resource("plan://{year}", visible=is_boss)
    def plans(year: int) -> str:
        return "plan"

    @app.prompt(visible=is_boss)
    def speech(topic: str) -> str:
        return topic

    @app.completion(prompt="speech", argument="topic")
    def topics(typed: str) -> list[str]:
        return ["sales"]

    return app


HIDDEN_USES = {
    "tool": ("tools/call", lambda name: {"name": name, "arguments": {"name": "x"}}, "hire"),
    "prompt": ("prompts/get", lambda name: {"name": name, "arguments": {"topic": "x"}}, "speech"),
    "resource": ("resources/read", lambda uri: {"uri": uri}, "plan://a"),
    "template": ("resources/read", lambda uri: {"uri": uri}, "plan://2027"),
    "subscription": ("resources/subscribe", lambda uri: {"uri": uri}, "plan://a"),
    "completion": (
        "completion/complete",
        lambda name: {
            "ref": {"type": "ref/prompt", "name": name},
            "argument": {"name": "topic", "value": ""},
        },
        "speech",
    ),
}


def forbidding() -> tuple[Server, list[str]]:
    """Return a server whose `allow` refuses every use of every entry, and what ran all the same."""
    app, ran = Server("forbidding"), []

    def never(context: Context) -> bool:
        return False

    @app.tool(allow=never)
    def save(path: str) -> str:
        ran.append("tool")
        return path

    @app.resource("file:///{path}", allow=never)
    def file(path: str) -> str:
        ran.append("resource")
        return path

    @app.prompt(allow=never)
    def review(path: str, other: str = "") -> str:
        ran.append("prompt")
        return path

    @app.completion(prompt="review", argument="path")
    def paths(typed: str) -> list[str]:
        ran.append("completion")
        return [typed]

    return app, ran


# Params that cannot be used are refused before `allow`, which would get them.
USABLE = {name: use for name, use in USES.items() if " with bad " not in name}
USABLE.pop("prompt without its argument")


@pytest.mark.parametrize(("use", "revision"), in_its_revisions(USABLE))
async def test_use_that_allow_refuses_changes_nothing(
    use: tuple[str, dict[str, Any]], revision: str
) -> None:
    method, params = use
    app, ran = forbidding()
    async with connected_as(app, caller("ann"), revision) as wire:
        refused = await wire.request(method, **params)
        assert (refused.get("code"), ran) == (403, [])
        subscribed = app._core.services.streams.connections.values()
        assert not any(each.named for each in subscribed)


def test_every_method_that_names_an_entry_is_tried_without_scopes_and_hidden() -> None:
    assert {method for method, _ in USABLE.values()} == set(ENTRY_METHODS)
    assert {method for method, _ in USES.values()} == set(ENTRY_METHODS)
    assert {method for method, *_ in HIDDEN_USES.values()} == set(ENTRY_METHODS)


@pytest.mark.parametrize(("use", "revision"), in_its_revisions(HIDDEN_USES))
async def test_hidden_entry_is_answered_like_an_unknown_one(use: Any, revision: str) -> None:
    method, params, name = use
    app, unknown = secretive(), name[:-1] + "?"
    async with connected_as(app, caller("ann", WRITE), revision) as wire:
        hidden = await wire.request(method, **params(name))
        missing = await wire.request(method, **params(unknown))
        assert str(hidden).replace(name, unknown) == str(missing)
        assert hidden["code"] < 0
        wire.become(caller("boss", WRITE))
        assert (await wire.request(method, **params(name))).get("code") != hidden["code"]


async def test_lists_show_what_is_visible_to_the_caller() -> None:
    async with connected_as(secretive(), caller("ann"), PER_REQUEST) as wire:
        for method, member in (
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ):
            wire.become(caller("ann"))
            theirs = await wire.request(method)
            wire.become(caller("boss"))
            whole = await wire.request(method)
            assert (len(theirs[member]), len(whole[member])) == (0, 1)
            assert theirs["cacheScope"] == whole["cacheScope"] == "private"


async def test_a_visible_that_breaks_hides_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("broken")

    def visible(context: Context) -> bool:
        raise KeyError("token=s3cret-canary")

    @app.tool(visible=visible)
    def one() -> str:
        return "one"

    async with connected_as(app, caller()) as wire:
        assert (await wire.request("tools/list"))["tools"] == []
        assert (await wire.tool("one"))["code"] == -32602
    assert "visible= of 'one' failed" in caplog.text
    assert "canary" not in caplog.text


# -- lists that differ -----------------------------------------------------------------------


def shelf(count: int = 6) -> Server:
    from trunkline import CacheHint

    app = Server("shelf", page_size=2, cache=CacheHint(60, "public"))
    for n in range(count):
        app.add_tool(
            lambda: "x",
            f"t{n}",
            visible=None if n % 2 else lambda context: context.principal is not None,
        )
    return app


async def test_pages_of_a_list_that_differs_are_made_for_one_caller() -> None:
    app = shelf()
    async with connected_as(app, None, PER_REQUEST) as wire:
        seen: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await wire.request("tools/list", **cursor)
            seen += [each["name"] for each in page["tools"]]
            assert page["cacheScope"] == "private"
            assert page["ttlMs"] == 60_000
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert seen == ["t1", "t3", "t5"]
        wire.become(caller("ann"))
        assert [each["name"] for each in (await wire.request("tools/list"))["tools"]] == [
            "t0",
            "t1",
        ]


async def test_a_cursor_of_another_caller_is_invalid() -> None:
    app = shelf()
    async with connected_as(app, caller("ann"), PER_REQUEST) as wire:
        cursor = (await wire.request("tools/list"))["nextCursor"]
        ours = await wire.request("tools/list", cursor=cursor)
        for other in (
            caller("bob"),
            caller("ann", tenant="t2"),
            caller("ann", client_id="app"),
            None,
        ):
            wire.become(other)
            refused = await wire.request("tools/list", cursor=cursor)
            assert (refused["code"], "cursor" in refused["message"]) == (-32602, True)
        # Another token of the same principal may go on.
        wire.become(caller("ann", "more:scopes"))
        assert await wire.request("tools/list", cursor=cursor) == ours


async def test_a_list_without_guards_keeps_its_shared_pages() -> None:
    app = Server("plain", page_size=2)
    for n in range(4):
        app.add_tool(lambda: "x", f"t{n}", scopes=["a"] if n else ())
    async with connected_as(app, caller("ann"), PER_REQUEST) as wire:
        first = await wire.request("tools/list")
        wire.become(caller("bob"))
        assert await wire.request("tools/list") == first
        assert "tools" in await wire.request("tools/list", cursor=first["nextCursor"])
        assert len(app._core.catalog.tools._current().pages) == 2


async def test_a_guarded_resource_is_never_cached_by_shared_caches() -> None:
    from trunkline import CacheHint

    app = Server("cached", cache=CacheHint(60, "public"))
    for uri, scopes in (("a://open", []), ("a://guarded", [READ])):
        app.add_resource(lambda: "x", uri, scopes=scopes)
    async with connected_as(app, caller("ann", READ), PER_REQUEST) as wire:
        for uri, scope in (("a://open", "public"), ("a://guarded", "private")):
            read = await wire.request("resources/read", uri=uri)
            assert (read["cacheScope"], read["ttlMs"]) == (scope, 60_000)


# -- mounts, middleware ----------------------------------------------------------------------


async def test_the_guards_of_a_mount_and_of_what_is_mounted_hold_together() -> None:
    files = Files()
    outer = Server("outer", implies={"all": [READ, WRITE]})
    outer.mount(
        files.app,
        prefix="f",
        scopes=["outer"],
        allow=lambda context: context.principal.subject != "eve",
        visible=lambda context: context.principal is not None,
    )
    async with connected_as(outer, caller("ann", "outer")) as wire:
        refused = await wire.tool("f_save", path="a")
        assert refused["data"]["requiredScopes"] == [READ, WRITE, "outer"]
        assert refused["data"]["missingScopes"] == [READ, WRITE]
        wire.become(caller("ann", READ, WRITE))
        assert (await wire.tool("f_save", path="a"))["data"]["missingScopes"] == ["outer"]
        assert (await wire.tool("f_open_to_all"))["data"]["missingScopes"] == ["outer"]
        wire.become(caller("ann", "all", "outer"))
        assert "content" in await wire.tool("f_save", path="a")
        wire.become(caller("eve", "all", "outer"))
        assert (await wire.tool("f_save", path="a"))["code"] == 403
        read = await wire.request("resources/read", uri="file://f//x")
        assert read["code"] == 403
        assert files.calls == ["save a"]
        wire.become(None)
        assert (await wire.tool("f_save", path="a"))["code"] == -32602
        assert (await wire.request("tools/list"))["tools"] == []
    # What is registered later is guarded too, and the mounted server has its own guards alone.
    files.app.add_tool(lambda: "late", "late")
    async with connected_as(outer, caller("ann")) as wire:
        assert (await wire.tool("f_late"))["data"]["requiredScopes"] == ["outer"]
    async with connected_as(files.app, caller("ann")) as wire:
        assert "content" in await wire.tool("late")


async def test_middleware_sees_a_refusal_and_its_answer_counts() -> None:
    files = Files()
    seen: list[Any] = []

    @files.app.middleware
    async def watch(context: Context, proceed: Any) -> Any:
        try:
            return await proceed()
        except RequestError as error:
            seen.append((context.name, str(error.kind)))
            if context.name == "lend":
                return "lent all the same"
            raise

    @files.app.tool(allow=lambda context: False)
    def lend() -> str:
        return "lent"

    async with connected_as(files.app, caller("ann")) as wire:
        assert (await wire.tool("save", path="a"))["data"]["requiredScopes"] == [READ, WRITE]
        assert (await wire.tool("lend"))["content"][0]["text"] == "lent all the same"
        assert (await wire.request("resources/subscribe", uri="file:///a"))["code"] == 403
        assert "content" in await wire.tool("open_to_all")
    assert seen == [
        ("save", "INSUFFICIENT_PERMISSIONS"),
        ("lend", "INSUFFICIENT_PERMISSIONS"),
        ("file:///a", "INSUFFICIENT_PERMISSIONS"),
    ]


# -- subscriptions ---------------------------------------------------------------------------


async def test_a_session_cannot_subscribe_to_what_it_may_not_read() -> None:
    files = Files()
    async with connected_as(files.app, caller("ann")) as wire:
        assert (await wire.request("resources/subscribe", uri="file:///a"))["code"] == 403
        wire.become(caller("ann", READ))
        assert await wire.request("resources/subscribe", uri="file:///a") == {}
        app = secretive()
    async with connected_as(app, caller("ann")) as wire:
        hidden = await wire.request("resources/subscribe", uri="plan://a")
        missing = await wire.request("resources/subscribe", uri="plan://?")
        assert str(hidden).replace("plan://a", "plan://?") == str(missing)


async def test_a_change_is_not_sent_to_a_subscriber_that_may_not_read_it_any_more() -> None:
    app = Server("changing")
    app.add_resource(lambda: "x", "a://1")
    async with (
        connected_as(app, caller("ann")) as ann,
        connected_as(app, caller("bob", READ)) as bob,
    ):
        for wire in (ann, bob):
            assert await wire.request("resources/subscribe", uri="a://1") == {}
        app.remove_resource("a://1")
        app.add_resource(lambda: "x", "a://1", scopes=[READ])
        app.add_resource(lambda: "x", "a://2")
        for wire in (ann, bob):
            await wire.request("resources/subscribe", uri="a://2")
            wire.got.clear()
        app.notify_resource_updated("a://1")
        app.notify_resource_updated("a://2")

        def updated(wire: Any) -> list[str]:
            return [each["params"]["uri"] for each in wire.got if "uri" in each.get("params", {})]

        await until_async(lambda: not ("a://2" not in updated(ann) or "a://2" not in updated(bob)))
        assert updated(bob) == ["a://1", "a://2"]
        assert updated(ann) == ["a://2"]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_stream_is_opened_for_the_resources_that_the_caller_may_read(waits: bool) -> None:
    app = secretive()
    app.add_resource(lambda: "x", "open://1")
    app.add_resource(lambda: "x", "guarded://1", scopes=[READ])

    async def allow(context: Context, n: int) -> bool:
        await asyncio.sleep(0)
        return n == 1

    if waits:

        @app.resource("asked://{n}", allow=allow)
        def asked(n: int) -> str:
            return str(n)

    wanted = ["plan://a", "plan://2027", "open://1", "guarded://1", "no://1"]
    wanted += ["asked://1", "asked://2", "asked://x"] if waits else []

    async def honoured(scopes: tuple[str, ...]) -> list[str]:
        wire.become(caller("ann", *scopes))
        wire.got.clear()
        params = {"notifications": {"resourceSubscriptions": wanted}, "_meta": META}
        wire.ask(f"s{len(scopes)}", "subscriptions/listen", params)
        await wire.until(1)
        found: list[str] = wire.got[0]["params"]["notifications"]["resourceSubscriptions"]
        return found

    async with connected_as(app, None, PER_REQUEST) as wire:
        more = ["asked://1"] if waits else []
        assert await honoured(()) == ["open://1", *more]
        assert await honoured((READ,)) == ["open://1", "guarded://1", *more]
        assert not app._core.services.streams.opening


# -- mistakes of authors ---------------------------------------------------------------------


MISTAKES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "one text": ({"scopes": "a b"}, TypeError, "scopes is a list"),
    "a bad scope": ({"scopes": ["a b"]}, ValueError, "is not a scope"),
    "allow is not a function": ({"allow": True}, TypeError, "allow is a function"),
    "allow without context": ({"allow": lambda: True}, TypeError, "takes the context first"),
    "allow of another argument": ({"allow": lambda context, x: True}, TypeError, "parameter 'x'"),
    "allow with positional": ({"allow": lambda context, *x: True}, TypeError, "by name"),
    "visible is not a function": ({"visible": 1}, TypeError, "visible is a function"),
    "visible of more": ({"visible": lambda context, x: True}, TypeError, "context alone"),
    "async visible": ({"visible": _breaks}, TypeError, "is async"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_where_it_was_made(
    mistake: tuple[dict[str, Any], type[Exception], str],
) -> None:
    options, kind, text = mistake
    app = Server("mistakes")
    with pytest.raises(kind, match=text):
        app.add_tool(lambda: "x", "t", **options)
    with pytest.raises(kind, match=text):
        app.add_resource(lambda: "x", "a://b", **options)
    with pytest.raises(kind, match=text):
        app.add_prompt(lambda: "x", "p", **options)
    assert (
        len(app._core.catalog.tools),
        len(app._core.catalog.resources),
        len(app._core.catalog.prompts),
    ) == (0, 0, 0)


def test_hierarchies_are_checked_when_a_server_is_made() -> None:
    with pytest.raises(ValueError, match="is not a scope"):
        Server("x", implies={"a b": ["c"]})
    with pytest.raises(TypeError, match="hide_unscoped"):
        Server("x", hide_unscoped="yes")  # type: ignore[arg-type]  # what an author may write


def test_an_entry_without_options_has_no_guard() -> None:
    app = Server("x")
    app.add_tool(lambda: "x", "t")
    entry = app._core.catalog.tools.get("t")
    assert entry is not None
    assert entry.guard is None


async def test_nothing_of_a_refusal_is_an_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = Files()
    with caplog.at_level(logging.WARNING):
        async with connected_as(files.app, None, HANDSHAKE) as wire:
            await wire.tool("save", path="a")
    assert caplog.records == []
