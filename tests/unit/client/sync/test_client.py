"""`SyncClient`: the verbs of `Client`, for threads that wait."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import traceback
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import Struct

from tests.http_client.stub_server import Asked, McpStub
from trunkline import Client, Context, PeerError, RequestTimeout, Server, ToolError, TrunklineError
from trunkline.client.requests.call import PendingCall
from trunkline.client.subscriptions.stream import Subscription
from trunkline.client.sync.client import SyncClient, SyncClientOptions
from trunkline.client.sync.handles import (
    SyncCallBatch,
    SyncPendingCall,
    SyncSubscription,
    SyncTaskHandle,
)
from trunkline.client.tasks.task_call import TaskHandle
from trunkline.errors import ConnectionLost, InputRequestFailed, LocalProtocolError
from trunkline.mcp.types import ElicitRequestParams

WAIT = 20.0
HANDSHAKE = "2025-11-25"


class Forecast(Struct):
    city: str
    degrees: int


@pytest.fixture
def app() -> Server:
    app = Server("weather", version="1.0.0", instructions="Ask nicely.")

    @app.tool
    async def forecast(city: str) -> Forecast:
        return Forecast(city, 7)

    @app.tool
    async def climb(ctx: Context, steps: int = 3) -> str:
        for step in range(1, steps + 1):
            await ctx.progress(step, steps, "on the way")
        return "there"

    @app.tool
    async def fails() -> str:
        raise ToolError("it is broken")

    @app.tool
    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    @app.tool
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Which city?", str, key="city")
        return f"{answer.action}: {getattr(answer, 'content', None)}"

    @app.tool(task="optional")
    async def simulate(days: int) -> str:
        return f"rain for {days} days"

    @app.resource("weather://oslo")
    async def oslo() -> str:
        return "rain"

    @app.prompt
    async def describe(city: str) -> str:
        return f"Describe {city}"

    return app


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())  # those of other tests in this process
    yield
    left = [each.name for each in threading.enumerate() if each not in before]
    own = [name for name in left if name.startswith("trunkline")]
    assert [name for name in own if not name.startswith("trunkline-asked")] == []


# The two have the same surface

STANDS_FOR = {
    "PendingCall": "SyncPendingCall",
    "CallBatch": "SyncCallBatch",
    "Subscription": "SyncSubscription",
    "TaskHandle": "SyncTaskHandle",
}


def public(kind: type) -> set[str]:
    # Not what raises advice in place of a name of other libraries.
    return {name for name in dir(kind) if not name.startswith("_") and hasattr(kind, name)}


def described(function: Any) -> tuple[list[tuple[object, ...]], str]:
    """Return the parameters of a function, and what it returns, as they are written."""
    signature = inspect.signature(function)
    given = [
        (each.name, each.kind, each.default, each.annotation)
        for each in signature.parameters.values()
    ]
    return given, str(signature.return_annotation)


def translated(returned: str) -> str:
    if returned == "Awaitable[None]":
        return "None"
    name, bracket, rest = returned.partition("[")
    return STANDS_FOR.get(name, name) + bracket + rest


def test_every_public_name_of_the_client_is_there() -> None:
    assert public(Client) - public(SyncClient) == set()


def test_no_name_is_there_that_the_client_has_not() -> None:
    assert public(SyncClient) - public(Client) == set()


@pytest.mark.parametrize("name", sorted(public(Client)))
def test_a_verb_takes_and_gives_what_that_of_the_client_does(name: str) -> None:
    ours, theirs = getattr(SyncClient, name), getattr(Client, name)
    if isinstance(theirs, property):
        assert isinstance(ours, property)
        parameters, returned = described(theirs.fget)
        assert described(ours.fget) == (parameters, returned.replace(", Client]", ", SyncClient]"))
        return
    parameters, returned = described(theirs)
    assert described(ours) == (parameters, translated(returned))
    assert not inspect.iscoroutinefunction(ours)
    overloads = [described(each) for each in typing.get_overloads(theirs)]
    expected = [(given, translated(returns)) for given, returns in overloads]
    assert [described(each) for each in typing.get_overloads(ours)] == expected


@pytest.mark.parametrize("name", sorted(public(Client)))
def test_a_verb_says_what_that_of_the_client_says(name: str) -> None:
    ours, theirs = getattr(SyncClient, name).__doc__, getattr(Client, name).__doc__
    plain = theirs.replace("`async with", "`with").replace("to await,", "to wait for,")
    assert ours == plain.replace("; awaiting it is optional", "")


def test_the_options_are_those_of_the_client() -> None:
    parameters = list(inspect.signature(Client).parameters.values())[1:]
    written = SyncClientOptions.__annotations__
    assert list(written) == [each.name for each in parameters]
    for each in parameters:
        assert written[each.name].__forward_arg__ == each.annotation, each.name


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SyncPendingCall, PendingCall),
        (SyncTaskHandle, TaskHandle),
        (SyncSubscription, Subscription),
    ],
)
def test_sync_handles_have_the_public_names_of_the_async_ones(ours: type, theirs: type) -> None:
    assert public(theirs) - public(ours) == set()


def test_a_batch_has_the_verbs_of_one() -> None:
    from trunkline.client.requests.batch import CallBatch

    for name in public(CallBatch):
        parameters, returned = described(getattr(CallBatch, name))
        assert described(getattr(SyncCallBatch, name)) == (parameters, translated(returned))


def test_an_option_that_there_is_not_is_refused(app: Server) -> None:
    with pytest.raises(TypeError, match="colour"):
        SyncClient(app, colour="red")  # type: ignore[call-arg]  # this is the test


# What the verbs do


def test_each_verb_asks_and_waits(app: Server) -> None:
    with SyncClient(app, name="script") as client:
        result = client.call_tool("forecast", {"city": "Oslo"}, result_type=Forecast)
        assert result.value == Forecast("Oslo", 7)
        assert client.call_tool("fails").is_error
        assert "forecast" in [tool.name for tool in client.list_tools()]
        assert client.list_tools_page().tools[0].name == "forecast"
        assert [each.uri for each in client.list_resources()] == ["weather://oslo"]
        assert client.list_resources_page().resources[0].uri == "weather://oslo"
        assert client.list_resource_templates() == []
        assert client.list_resource_templates_page().resource_templates == []
        assert client.read_resource("weather://oslo").contents[0].uri == "weather://oslo"
        assert [each.name for each in client.list_prompts()] == ["describe"]
        assert client.list_prompts_page().prompts[0].name == "describe"
        assert client.get_prompt("describe", {"city": "Oslo"}).messages
        assert client.discover().capabilities is not None
        client.set_logging_level("debug")
        assert client.request("tools/list")["tools"]
        assert client.notify("acme/hello", {"who": "me"}) is None


def test_the_verbs_of_the_handshake_work_too(app: Server) -> None:
    with SyncClient(app, revision=HANDSHAKE, roots=["file:///a"]) as client:
        assert client.ping() >= 0
        assert client.send_roots_list_changed() is None
        client.subscribe("weather://oslo")
        client.unsubscribe("weather://oslo")
        assert client.list_tasks() == []


def test_negotiated_properties_are_available_while_connected(app: Server) -> None:
    client = SyncClient(app)
    assert not client.is_connected
    assert repr(client) == "<SyncClient 'trunkline', not connected>"
    with pytest.raises(TrunklineError, match="use `with`, or call `connect"):
        _ = client.revision
    with client:
        assert client.is_connected
        assert (client.revision, client.era) == ("2026-07-28", "per_request")
        assert client.server_info is not None
        assert client.server_info.name == "weather"
        assert client.server_capabilities.tools is not None
        assert client.server_extensions
        assert client.instructions == "Ask nicely."
        assert client.initialize_result is None
        assert repr(client) == "<SyncClient 'trunkline', 2026-07-28>"
    assert not client.is_connected


@pytest.mark.parametrize("verb", ["list_tools", "batch"])
def test_a_client_that_is_not_connected_says_how_to(app: Server, verb: str) -> None:
    client = SyncClient(app)
    for _ in range(2):
        with pytest.raises(TrunklineError, match="use `with`, or call `connect"):
            getattr(client, verb)()
        with client:
            pass


def test_a_client_connects_again_after_it_was_closed(app: Server) -> None:
    client = SyncClient(app)
    for _ in range(3):
        client.connect()
        with pytest.raises(TrunklineError, match="already connected"):
            client.connect()
        assert client.call_tool("climb").text == "there"
        client.close()
        client.close()


def test_failed_connect_raises_and_leaves_no_thread() -> None:
    with pytest.raises(TrunklineError, match="cannot start"):
        SyncClient(["/no/such/command"]).connect()


# Errors


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:  # noqa: BLE001  # looked at
        return error
    raise AssertionError("nothing was raised")


def test_errors_are_those_of_the_client_with_a_short_trace(app: Server) -> None:
    with SyncClient(app) as client:
        cases: list[tuple[type[Exception], Callable[[], object]]] = [
            (PeerError, lambda: client.call_tool("no such tool")),
            (RequestTimeout, lambda: client.call_tool("forever", timeout=0.01)),
            (LocalProtocolError, client.ping),
            (ValueError, lambda: client.call_tool("climb", timeout=-1)),
            (PeerError, client.submit_tool("no such tool").result),
            (TimeoutError, lambda: client.submit_tool("forever").result(0.01)),
        ]
        with SyncClient(app, on_elicit=lambda request: {"city": 3}) as asked:
            cases.append((InputRequestFailed, lambda: asked.call_tool("asks")))
            for kind, call in cases:
                error = raised(call)
                assert type(error) is kind
                frames = traceback.extract_tb(error.__traceback__)
                # Two of the test, the verb, and what waits.
                assert len(frames) <= 4, traceback.format_exception(error)
                files = {frame.filename.rpartition("/")[2] for frame in frames}
                assert files <= {
                    "test_client.py",
                    "client.py",
                    "base.py",
                    "handles.py",
                    "event_loop_thread.py",
                }


def test_an_error_holds_no_frame_that_holds_it(app: Server) -> None:
    with SyncClient(app) as client:
        for call in (lambda: client.call_tool("nothing"), client.submit_tool("nothing").result):
            error = raised(call)
            frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
            assert [each for each in frames if error in each.f_locals.values()] == []


def test_errors_of_unawaited_calls_are_not_logged(
    app: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with SyncClient(app) as client:
        for _ in range(3):
            client.submit_tool("no such tool")
        client.submit_tool("forever")
        client.call_tool("climb")
    gc.collect()
    assert caplog.records == []


# Callbacks and handlers


def test_progress_is_reported_before_the_call_returns(app: Server) -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    with SyncClient(app) as client:
        for _ in range(20):
            seen.clear()
            client.call_tool("climb", {"steps": 9}, on_progress=lambda *told: seen.append(told))
            assert seen == [(step, 9, "on the way") for step in range(1, 10)]
        call = client.submit_tool("climb", on_progress=lambda *told: seen.append(told))
        call.result(WAIT)
        assert seen[-1] == (3, 3, "on the way")


def test_progress_of_a_task_is_reported_before_the_call_returns() -> None:
    app, seen = Server("slow"), list[tuple[float, float | None, str | None]]()

    @app.tool(task="required")
    def work(context: Context) -> str:
        context.progress(1, 2, "half")
        return "done"

    with SyncClient(app) as client:
        assert client.call_tool("work", on_progress=lambda *told: seen.append(told)).text == "done"
    assert seen == [(1, None, "half (1 of 2)")]


def test_a_callback_may_use_the_client(app: Server) -> None:
    found: list[object] = []
    main = threading.get_ident()

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert threading.get_ident() != main
        found.append(client.call_tool("forecast", {"city": "Oslo"}).structured_content["degrees"])
        found.append(client.submit_tool("climb").result(WAIT).text)

    with SyncClient(app) as client:
        client.call_tool("climb", {"steps": 2}, on_progress=on_progress)
        assert found == [7, "there"] * 2


def test_events_are_reported_on_the_thread_of_callbacks() -> None:
    stub = McpStub()
    names: list[tuple[str, str]] = []

    def answer(asked: Asked) -> None:
        if len(stub.asked("tools/call")) == 1:
            asked.status(503, {"Retry-After": "0"})
        else:
            asked.text("done")

    def on_event(kind: str, text: str) -> None:
        names.append((kind, threading.current_thread().name))

    async def scene() -> None:
        def call() -> None:
            with SyncClient(stub.url, on_event=on_event) as client:
                assert client.call_tool("echo").text == "done"

        async with asyncio.timeout(WAIT), stub:
            await asyncio.to_thread(call)

    stub.on["tools/call"] = answer
    asyncio.run(scene())
    assert names == [("retry", "trunkline-told")]


def test_a_callback_may_close_the_client(app: Server) -> None:
    closed = threading.Event()

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        client.close()
        closed.set()

    client = SyncClient(app)
    client.connect()
    call = client.submit_tool("climb", on_progress=on_progress)
    assert closed.wait(WAIT)
    assert isinstance(call.exception(), ConnectionLost | None)
    assert not client.is_connected
    client.close()


def test_exception_of_a_callback_is_logged(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    def on_progress(*told: object) -> None:
        raise (ValueError("a fault"), SystemExit(1))[len(caplog.records) % 2]

    with SyncClient(app) as client:
        assert client.call_tool("climb", {"steps": 2}, on_progress=on_progress).text == "there"
        assert client.call_tool("climb").text == "there"
    texts = [record.getMessage() for record in caplog.records]
    assert "on_progress raised an exception" in texts[0]
    assert texts[1] == "on_progress raised SystemExit: ignored on the callback thread"


def test_a_callback_may_be_async(app: Server) -> None:
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    with SyncClient(app) as client:
        client.call_tool("climb", on_progress=on_progress)
        # A plain function that returns something to be awaited is awaited, too.
        client.call_tool("climb", on_progress=lambda *told: on_progress(*told))
    assert seen == [1, 2, 3] * 2


def test_sys_exit_on_the_loop_does_not_end_it(
    app: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def on_elicit(request: ElicitRequestParams) -> dict[str, Any]:
        asyncio.get_running_loop().call_soon(exit, 3)
        await asyncio.sleep(0)
        return {"value": "Oslo"}

    with SyncClient(app, on_elicit=on_elicit) as client:
        assert client.call_tool("asks", timeout=WAIT).text == "accept: Oslo"
        assert client.call_tool("climb").text == "there"
    assert "SystemExit on the event loop" in caplog.text


def test_a_plain_handler_may_use_the_client(app: Server) -> None:
    def on_elicit(request: ElicitRequestParams) -> dict[str, Any]:
        return {"value": client.call_tool("forecast", {"city": "Bergen"}).value["city"]}

    with SyncClient(app, on_elicit=on_elicit) as client:
        assert client.call_tool("asks", timeout=WAIT).text == "accept: Bergen"


def test_an_async_handler_that_uses_the_client_is_refused_and_does_not_hang(app: Server) -> None:
    caught: list[str] = []

    async def on_elicit(request: ElicitRequestParams) -> None:
        for verb in (client.list_tools, client.batch, client.connect, client.close):
            with pytest.raises(TrunklineError, match="would wait for itself") as error:
                verb()
            caught.append(str(error.value))
        with pytest.raises(TrunklineError, match="would wait for itself"):
            SyncClient(app).connect()

    with SyncClient(app, on_elicit=on_elicit) as client:
        assert client.call_tool("asks", timeout=WAIT).text == "decline: None"
    assert len(caught) == 4


def test_change_notifications_reach_the_callbacks(app: Server) -> None:
    told: list[object] = []
    with SyncClient(app, on_list_changed=told.append, on_resource_updated=told.append) as client:
        client.subscribe("weather://oslo")
        app.notify_resource_updated("weather://oslo")
        client.call_tool("climb")
        assert told == ["weather://oslo"]


# Threads and loops


def test_many_threads_use_one_client(app: Server) -> None:
    def ask(n: int) -> str:
        result = client.call_tool("forecast", {"city": f"city {n}"}, result_type=Forecast)
        return result.value.city

    with SyncClient(app) as client, ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(400), timeout=WAIT)) == [f"city {n}" for n in range(400)]


def test_threads_connect_and_close_clients_at_will(app: Server) -> None:
    def work(n: int) -> str:
        with SyncClient(app) as client:
            return client.call_tool("climb").text

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(60), timeout=WAIT)) == {"there"}


def test_all_clients_share_one_loop(app: Server) -> None:
    with SyncClient(app) as one, SyncClient(app) as two:
        assert one.is_connected
        assert two.is_connected
        names = [each.name for each in threading.enumerate()]
        assert names.count("trunkline-loop") == 1


def test_closing_ends_what_other_threads_wait_for(app: Server) -> None:
    client = SyncClient(app)
    client.connect()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(client.call_tool, "forever") for _ in range(4)]
        client.call_tool("climb")
        client.close()
        for each in waiting:
            # One that was late to the loop is told that there is no connection.
            assert isinstance(each.exception(WAIT), TrunklineError)


def test_sync_client_works_inside_a_running_event_loop(app: Server) -> None:
    async def cell() -> str:
        with SyncClient(app) as client:
            with client.listen(uris=["weather://oslo"]):
                pass
            return client.call_tool("climb").text

    assert asyncio.run(cell()) == "there"


def test_a_client_that_is_forgotten_is_closed_when_it_is_collected(app: Server) -> None:
    def forget() -> None:
        client = SyncClient(app)
        client.connect()
        assert client.call_tool("climb", on_progress=lambda *told: None).text == "there"

    before = set(threading.enumerate())

    def threads() -> set[threading.Thread]:
        return set(threading.enumerate()) - before

    with pytest.warns(ResourceWarning, match="was not closed") as warned:
        forget()
    # It names the place at which the client was dropped.
    ours = [each for each in warned if "was not closed" in str(each.message)]
    assert [each.filename for each in ours] == [__file__]
    for thread in threads():
        thread.join(WAIT)
    assert threads() == set()


def test_a_client_that_another_thread_closes_meanwhile_says_how_to_connect_it(app: Server) -> None:
    with SyncClient(app) as client:
        # As far as a call that is on its way to the event loop can see.
        client._proxy.run(client._client.close)
        with pytest.raises(TrunklineError, match="use `with`, or call `connect") as caught:
            client.list_tools()
    assert "async" not in str(caught.value)
