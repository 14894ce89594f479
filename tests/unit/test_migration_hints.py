"""Names of other libraries raise errors that name ours."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from trunkline import Client, Context, HttpLimits, HttpSettings, Server, migration_hints
from trunkline.migration_hints import missing_attribute, with_hints

OPTIONS: list[tuple[Callable[..., Any], dict[str, tuple[str, str]]]] = [
    (Server.__init__, dict(migration_hints.SERVER_OPTIONS)),
    (Server.add_tool, dict(migration_hints.TOOL_OPTIONS)),
    (Server.add_resource, dict(migration_hints.RESOURCE_OPTIONS)),
    (Server.resource, dict(migration_hints.RESOURCE_OPTIONS)),
    (Server.add_prompt, dict(migration_hints.PROMPT_OPTIONS)),
    (Server.mount, dict(migration_hints.MOUNT_OPTIONS)),
    (Server.run, dict(migration_hints.RUN_OPTIONS)),
    (Client.__init__, dict(migration_hints.CLIENT_OPTIONS)),
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
]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        *((Server, name) for name in migration_hints.SERVER_ATTRIBUTES),
        *((Client, name) for name in migration_hints.CLIENT_ATTRIBUTES),
    ],
)
def test_an_attribute_of_another_library_raises_an_error_that_names_ours(
    owner: type[Any], name: str
) -> None:
    is_server = owner is Server
    hints = migration_hints.SERVER_ATTRIBUTES if is_server else migration_hints.CLIENT_ATTRIBUTES
    ours, advice = hints[name]
    made = Server("a") if is_server else Client(Server("a"))
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
