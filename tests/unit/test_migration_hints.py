"""Names of other libraries raise errors that name ours."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import trunkline
from trunkline import (
    Client,
    Context,
    HttpLimits,
    HttpSettings,
    Server,
    SyncClient,
    ToolResult,
    migration_hints,
)
from trunkline.auth import OAuth
from trunkline.mcp import types
from trunkline.migration_hints import POSITIONAL, missing_attribute, with_hints

OPTIONS: list[tuple[Callable[..., Any], dict[str, tuple[str, str]]]] = [
    (Server.__init__, dict(migration_hints.SERVER_OPTIONS)),
    (Server.add_tool, dict(migration_hints.TOOL_OPTIONS)),
    (Server.add_resource, dict(migration_hints.RESOURCE_OPTIONS)),
    (Server.resource, dict(migration_hints.RESOURCE_OPTIONS)),
    (Server.add_prompt, dict(migration_hints.PROMPT_OPTIONS)),
    (Server.mount, dict(migration_hints.MOUNT_OPTIONS)),
    (Server.run, dict(migration_hints.RUN_OPTIONS)),
    (Client.__init__, dict(migration_hints.CLIENT_OPTIONS)),
    (OAuth.__init__, dict(migration_hints.OAUTH_OPTIONS)),
    (Context.elicit, dict(migration_hints.ELICIT_OPTIONS)),
    (Context.debug, dict(migration_hints.LOG_OPTIONS)),
    (Context.info, dict(migration_hints.LOG_OPTIONS)),
    (Context.warning, dict(migration_hints.LOG_OPTIONS)),
    (Context.error, dict(migration_hints.LOG_OPTIONS)),
]

OPTION_ROWS = [
    pytest.param(function, name, *hint, id=f"{function.__qualname__}-{name}")
    for function, hints in OPTIONS
    for name, hint in hints.items()
    if name != POSITIONAL
]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        *((Server, name) for name in migration_hints.SERVER_ATTRIBUTES),
        *((Client, name) for name in migration_hints.CLIENT_ATTRIBUTES),
        *((SyncClient, name) for name in migration_hints.CLIENT_ATTRIBUTES),
    ],
)
def test_an_attribute_of_another_library_raises_an_error_that_names_ours(
    owner: type[Any], name: str
) -> None:
    is_server = owner is Server
    hints = migration_hints.SERVER_ATTRIBUTES if is_server else migration_hints.CLIENT_ATTRIBUTES
    ours, advice = hints[name]
    made = Server("a") if is_server else owner(Server("a"))
    with pytest.raises(AttributeError) as caught:
        getattr(made, name)
    assert str(caught.value) == f"{owner.__name__!r} object has no attribute {name!r}; {advice}"
    assert caught.value.name == name
    assert not hasattr(made, name)
    # Or the advice would send its reader to something that is not there.
    assert not ours or hasattr(owner, ours)


@pytest.mark.parametrize("name", migration_hints.CONTEXT_ATTRIBUTES)
def test_an_attribute_of_another_context_is_logged_with_what_ours_is_called(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    ours, advice = migration_hints.CONTEXT_ATTRIBUTES[name]
    assert not hasattr(Context, name)
    assert not ours or hasattr(Context, ours)
    app = Server("a")

    @app.tool(inline=True)
    def read(ctx: Context) -> str:
        return str(getattr(ctx, name))

    async def main() -> None:
        async with Client(app) as client:
            assert (await client.call_tool("read")).is_error

    asyncio.run(main())
    assert f"AttributeError: 'Context' object has no attribute {name!r}; {advice}" in caplog.text


@pytest.mark.parametrize(("function", "name", "ours", "advice"), OPTION_ROWS)
def test_an_option_of_another_library_raises_an_error_that_names_ours(
    function: Callable[..., Any], name: str, ours: str, advice: str
) -> None:
    parameters = inspect.signature(function).parameters
    assert name not in parameters
    assert not ours or ours in parameters
    with pytest.raises(TypeError) as caught:
        function(**{name: 1})
    called = function.__qualname__.replace(".__init__", "")
    assert str(caught.value) == f"{called}() has no option {name!r}: {advice}"


@pytest.mark.parametrize(
    ("function", "hints"), [row for row in OPTIONS if POSITIONAL in row[1]], ids=lambda each: ""
)
def test_options_that_are_given_by_position_raise_an_error_that_names_one(
    function: Callable[..., Any], hints: dict[str, tuple[str, str]]
) -> None:
    ours, advice = hints[POSITIONAL]
    parameters = inspect.signature(function).parameters.values()
    assert ours in {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    positional = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    with pytest.raises(TypeError) as caught:
        function(*["x"] * (len(positional) + 1))
    text = str(caught.value)
    assert text.endswith(f", not {len(positional)}: {advice}")
    assert f" takes {len(positional) - 1 or 'no'} argument" in text


@pytest.mark.parametrize("name", ["as_proxy", "from_client", "from_fastapi", "from_openapi"])
def test_a_class_method_of_another_library_raises_an_error_that_names_ours(name: str) -> None:
    _, advice = migration_hints.SERVER_ATTRIBUTES[name]
    with pytest.raises(AttributeError) as caught:
        getattr(Server, name)
    assert str(caught.value) == f"type object 'Server' has no attribute {name!r}; {advice}"
    assert not hasattr(Server, name)
    assert isinstance(inspect.signature(Server), inspect.Signature)


@pytest.mark.parametrize("name", migration_hints.MODULE_NAMES)
def test_a_module_name_of_another_library_raises_an_error_that_names_ours(name: str) -> None:
    ours, advice = migration_hints.MODULE_NAMES[name]
    assert not ours or hasattr(trunkline, ours)
    assert not hasattr(trunkline, name)
    with pytest.raises(AttributeError) as missing:
        getattr(trunkline, name)
    assert str(missing.value) == f"module 'trunkline' has no attribute {name!r}; {advice}"
    with pytest.raises(ImportError) as refused:
        exec(f"from trunkline import {name}")  # the statement is what is tested
    assert str(refused.value) == f"cannot import name {name!r} from 'trunkline'; {advice}"


def test_a_name_of_another_package_of_this_library_raises_an_error_that_names_the_package() -> None:
    assert not hasattr(trunkline, "OAuth")
    with pytest.raises(ImportError, match=r"use `from trunkline.auth import OAuth`"):
        exec("from trunkline.server import OAuth")
    with pytest.raises(AttributeError, match=r"use `from trunkline import Server`"):
        trunkline.auth.Server  # type: ignore[attr-defined]  # noqa: B018  # reading it is the point


def test_an_import_of_a_name_that_is_nowhere_has_the_error_of_python() -> None:
    with pytest.raises(ImportError, match=r"^cannot import name 'Nothing' from 'trunkline' \("):
        exec("from trunkline import Nothing")
    for name in ("Nothing", "nothing", "__wrapped__"):
        with pytest.raises(AttributeError) as caught:
            getattr(trunkline, name)
        assert str(caught.value) == f"module 'trunkline' has no attribute {name!r}"


def test_a_module_with_the_name_of_another_library_is_imported() -> None:
    # In a new process: here it may be imported already.
    program = "from trunkline.spec import types; print(types.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "trunkline.spec.types\n", done.stderr


def test_public_names_that_advice_names_exist() -> None:
    advice = [text for _, text in migration_hints.MODULE_NAMES.values()]
    named = {
        name
        for text in advice
        for name in re.findall(r"\b(?:use|with|of|or|Client\()\s?([A-Z]\w+)\(?", text)
        if name not in ("HTTP", "OAuth", "OpenAPI", "FastAPI")
    }
    public = {name for each in (trunkline, trunkline.auth) for name in each.__all__}
    assert len(named) > 8
    assert named - public == set()


@pytest.mark.parametrize(
    ("made", "hints"),
    [
        (ToolResult.__new__(ToolResult), migration_hints.TOOL_RESULT_ATTRIBUTES),
        (types.ReadResourceResult([]), migration_hints.RESULT_ATTRIBUTES["ReadResourceResult"]),
        (types.GetPromptResult([]), migration_hints.RESULT_ATTRIBUTES["GetPromptResult"]),
        (types.Tool({}, "x"), migration_hints.RESULT_ATTRIBUTES["Tool"]),
        (
            types.CompleteResult(types.CompleteResultCompletion([])),
            migration_hints.RESULT_ATTRIBUTES["CompleteResult"],
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_attribute_of_another_result_raises_an_error_that_names_ours(
    made: Any, hints: dict[str, tuple[str, str]]
) -> None:
    for name, (ours, advice) in hints.items():
        assert hasattr(type(made), ours)
        assert not hasattr(made, name)
        if name == "[]":
            with pytest.raises(TypeError) as caught:
                made[0]
            assert str(caught.value).endswith(f"object is not subscriptable; {advice}")
            continue
        with pytest.raises(AttributeError) as missing:
            getattr(made, name)
        text = f"{type(made).__name__!r} object has no attribute {name!r}; {advice}"
        assert str(missing.value) == text


def test_every_result_with_hints_is_tested() -> None:
    tested = {"ReadResourceResult", "GetPromptResult", "Tool", "CompleteResult"}
    assert set(migration_hints.RESULT_ATTRIBUTES) == tested


def test_a_wire_name_of_a_member_raises_an_error_that_names_the_attribute() -> None:
    tool: Any = types.Tool({}, "x")
    with pytest.raises(AttributeError, match=r"'inputSchema'; use input_schema$"):
        tool.inputSchema  # noqa: B018  # reading it is the point
    with pytest.raises(TypeError, match=r"not subscriptable; use the attribute input_schema$"):
        tool["inputSchema"]
    with pytest.raises(TypeError, match=r"'Tool' object is not subscriptable$"):
        tool[0]
    assert not hasattr(tool, "inputSchema")
    assert copy.deepcopy(tool) == pickle.loads(pickle.dumps(tool)) == tool


def test_options_of_other_clients_for_a_call_raise_errors_that_name_ours() -> None:
    app = Server("a")
    parameters = inspect.signature(Client.call_tool).parameters

    async def main() -> None:
        async with Client(app) as client:
            call: Any = client.call_tool
            for name, (ours, advice) in migration_hints.CALL_OPTIONS.items():
                assert not ours or ours in parameters
                with pytest.raises(TypeError) as caught:
                    await call("x", **{name: 1})
                assert str(caught.value) == f"call_tool() has no option {name!r}: {advice}"
            with pytest.raises(TypeError, match=r"call_tool\('x', \{'city': \.\.\.\}\)$"):
                await call("x", city="Oslo")

    asyncio.run(main())
    with (
        SyncClient(app) as client,
        pytest.raises(TypeError, match="arguments of a tool are a dict"),
    ):
        client.call_tool("x", city="Oslo")  # type: ignore[call-overload]  # that is the point


def test_the_error_for_a_misspelt_attribute_has_what_python_needs_to_suggest_a_name() -> None:
    app: Any = Server("a")
    with pytest.raises(AttributeError) as caught:
        app.tols  # noqa: B018  # reading it is the point
    assert (caught.value.name, caught.value.obj) == ("tols", app)
    with pytest.raises(AttributeError) as advised:
        app.list_tools  # noqa: B018  # as above
    assert advised.value.obj is not app  # a suggestion would contradict the advice


@pytest.mark.parametrize("auth", ["oauth", "canary-7f3a"])
def test_a_text_as_authorization_is_refused_with_the_classes_to_use(auth: str) -> None:
    with pytest.raises(
        ValueError, match=r"such as OAuth\(\) or Bearer\(token\), not str"
    ) as caught:
        Client("http://127.0.0.1:1/mcp", auth=auth)  # type: ignore[arg-type]  # that is the point
    assert auth not in str(caught.value)


def test_a_decorator_passes_on_the_advice_about_its_options() -> None:
    app: Any = Server("a")
    with pytest.raises(TypeError, match="put them in meta="):
        app.tool(tags={"x"})(print)
    with pytest.raises(TypeError, match="put them in meta="):
        app.prompt(tags={"x"})(print)


def test_a_name_that_is_nowhere_has_the_usual_error() -> None:
    app: Any = Server("a")
    with pytest.raises(AttributeError, match=r"^'Server' object has no attribute 'nothing'$"):
        app.nothing  # noqa: B018  # reading it is the point
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        Server("a", colour="red")  # type: ignore[call-arg]  # that is the point
    error = missing_attribute("X", "y", {})
    assert str(error) == "'X' object has no attribute 'y'"
    assert error.name == "y"


def test_a_function_with_hints_is_called_with_what_it_takes() -> None:
    @with_hints({"old": ("new", "use new=")})
    def call(one: int, *, new: int = 0) -> tuple[int, int]:
        """Return both."""
        return one, new

    assert call(1, new=2) == (1, 2)
    assert call.__doc__ == "Return both."
    assert list(inspect.signature(call).parameters) == ["one", "new"]


@pytest.mark.parametrize("transport", sorted(migration_hints.RUN_TRANSPORTS))
def test_a_transport_of_another_library_is_explained(transport: str) -> None:
    with pytest.raises(ValueError, match=r"run\('http://127\.0\.0\.1:8000/mcp'") as caught:
        Server("a").run(transport)
    assert str(caught.value).startswith(f"cannot run on {transport!r}: ")
    assert ("old_sse=True" in str(caught.value)) is (transport == "sse")


@pytest.mark.parametrize("settings", [HttpLimits, HttpSettings])
def test_settings_of_http_that_advice_names_exist(settings: Any) -> None:
    tables = (
        migration_hints.SERVER_ATTRIBUTES,
        migration_hints.SERVER_OPTIONS,
        migration_hints.RUN_OPTIONS,
        {name: ("", advice) for name, advice in migration_hints.RUN_TRANSPORTS.items()},
    )
    advice = " ".join(text for table in tables for _, text in table.values())
    calls = re.findall(rf"{settings.__name__}\((.*?)\)", advice)
    named = {name for call in calls for name in re.findall(r"(\w+)=", call)}
    assert named
    assert named <= set(settings.__struct_fields__)


@pytest.mark.parametrize("words", [(), ("stdio",)])
def test_run_serves_standard_streams_by_default_and_by_name(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Server] = []
    monkeypatch.setattr("trunkline.server.api.run.run_stdio", lambda app, auth: served.append(app))
    app = Server("a")
    app.run(*words)
    assert served == [app]


@pytest.mark.parametrize("kind", ["tool", "prompt", "resource"])
def test_help_shows_each_option_of_a_decorator_with_a_line_of_explanation(kind: str) -> None:
    decorator, add = getattr(Server, kind), getattr(Server, f"add_{kind}")
    keywords = [
        name
        for name, parameter in inspect.signature(add).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    shown = inspect.signature(decorator).parameters
    assert list(shown)[2:] == keywords
    for name in keywords:
        assert f"\n    {name}: " in (inspect.getdoc(decorator) or "")
