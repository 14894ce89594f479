"""Calls of ours that servers of the official SDK make tasks of; see `official_tasks`."""

from __future__ import annotations

from trunkline import Cancelled, PeerError
from trunkline.spec.revisions import V2025_11_25, V2026_07_28, Window

from .checks import ANY, Checks, expect, raised, until
from .official_tasks import ID
from .our_client import STRUCTURED, Talk, declared, said, until_given_up
from .recordings import sent

__all__ = ["CHECKS"]

PER_REQUEST = Window(V2026_07_28)
CORE = Window(V2025_11_25, V2026_07_28)
WITH_TASKS = Window(V2025_11_25)
CHECKS = Checks()


@CHECKS.about(ANY)
async def long_work_has_a_result(talk: Talk) -> None:
    """A call that may become a task has its result in the end, as one or as none."""
    expect(await said(talk, "brew", {"cups": 3}), "3 cups")
    looked = len(sent(talk.recording, "client", "tasks/get"))
    # In 2025-11-25 a call becomes a task if the client asks for it, and nothing here does.
    expect(looked > 0, PER_REQUEST.holds(talk.revision), "it was looked at")


@CHECKS.about(STRUCTURED)
async def long_work_asks(talk: Talk) -> None:
    """What is asked in the middle is asked of the same handlers."""
    expect(await said(talk, "brew_asking"), "Oslo Which way? That way.")


@CHECKS.about(ANY)
async def long_work_fails(talk: Talk) -> None:
    """A tool that failed has a result that says so."""
    result = await talk.client.call_tool("brew_failing")
    expect((result.is_error, "no beans" in result.text), (True, True))


def _offered(talk: Talk) -> None:
    """See that the server says that it has tasks, before it is asked for one."""
    if CORE.holds(talk.revision):
        declared(talk, "tasks", "requests", "tools", "call")
    else:
        extensions = talk.client.server_capabilities.extensions
        expect(extensions is not None and ID in extensions, True, "the extension")


@CHECKS.about(WITH_TASKS)
async def a_task_is_followed(talk: Talk) -> None:
    """A task that we hold is looked at to its end, which changes nothing any more."""
    _offered(talk)
    task = await talk.client.call_tool_as_task("brew", {"cups": 2})
    expect([status async for status in task], ["working", "completed"])
    expect((await task.result()).text, "2 cups")
    again = talk.client.task(str(task.id))
    expect((await again.refresh(), (await again.result()).text), ("completed", "2 cups"))


@CHECKS.about(WITH_TASKS)
async def a_task_is_cancelled(talk: Talk) -> None:
    """A task that we cancel stops there."""
    _offered(talk)
    before = int(await said(talk, "given_up"))
    task = await talk.client.call_tool_as_task("brew_slow")
    await task.cancel()
    await until_given_up(talk, before + 1)
    await raised(task.result(), Cancelled)


@CHECKS.about(WITH_TASKS)
async def a_task_asks(talk: Talk) -> None:
    """What a task asks goes to our handlers, while its result is waited for."""
    _offered(talk)
    task = await talk.client.call_tool_as_task("brew_asking")
    expect((await task.result()).text, "Oslo Which way? That way.")


@CHECKS.about(CORE)
async def tasks_are_listed(talk: Talk) -> None:
    """The tasks of this connection are listed."""
    _offered(talk)
    task = await talk.client.call_tool_as_task("brew", {"cups": 1})
    listed = [each.task_id for each in await talk.client.list_tasks()]
    expect(task.id in listed, True, "in the list")


@CHECKS.about(PER_REQUEST)
async def a_caller_who_leaves_ends_the_task(talk: Talk) -> None:
    """A call that is cancelled here, and is a task there, is ended there."""
    before = int(await said(talk, "given_up"))
    call = talk.client.submit_tool("brew_slow")
    looked = len(sent(talk.recording, "client", "tasks/get"))
    await until(
        lambda: len(sent(talk.recording, "client", "tasks/get")) > looked, "look at the task"
    )
    call.cancel()
    await until_given_up(talk, before + 1)


@CHECKS.about(WITH_TASKS)
async def a_task_of_nobody_is_refused(talk: Talk) -> None:
    """A task that is not there is -32602."""
    _offered(talk)
    error = await raised(talk.client.task("none").refresh(), PeerError)
    expect(error.code, -32602)
