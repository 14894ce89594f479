"""Plays each script over every transport, in revisions that its rule is in.

In memory, and with `--full` over every transport, those are all revisions that the rule is in.
All scripts run on one event loop, which has a thread to itself: connections outlive a
script, and are shared by all of the same transport and revision.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conversation.journal import HANGS
from tests.conversation.rig import HANDSHAKE, TRANSPORTS, UNWATCHED, Rig, Shared, bounded
from tests.conversation.rules import Ruled

_HERE: Final = Path(__file__).parent
_IS_FOLLOWED: Final = "_is_followed_by_a_script"


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripts")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something to its end; nothing that it does takes longer than is bounded there."""
        __tracebackhide__ = True
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(4 * HANGS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Stage:
    """The loop, and the connections that are open on it. It can be opened again after `close`."""

    def __init__(self) -> None:
        self._loop: Loop | None = None
        self._shared: dict[tuple[str, str], Shared] = {}

    @property
    def loop(self) -> Loop:
        if self._loop is None:
            self._loop = Loop()
        return self._loop

    def rig(self, transport: str, revision: str, ruled: Ruled) -> Rig:
        shared = self._shared.setdefault((transport, revision), Shared(transport, revision))
        self.loop.run(shared.open())
        return Rig(transport, shared, ruled)

    def close(self) -> None:
        async def close_all() -> None:
            for shared in self._shared.values():
                await shared.close()

        if self._loop is None:
            return
        try:
            self._loop.run(close_all())
        finally:
            self._loop.close()
            self._loop = None
            self._shared.clear()


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest, stage: Stage) -> Iterator[Rig]:
    transport, revision = request.param
    yield stage.rig(transport, revision, request.function.ruled)
    # The shared connections would count as leftovers of tests in other folders.
    if not getattr(request.node, _IS_FOLLOWED):
        stage.close()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Note whether the next test of this process is a script as well."""
    is_followed = nextitem is not None and _HERE in nextitem.path.parents
    setattr(item, _IS_FOLLOWED, is_followed)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rig" not in metafunc.fixturenames:
        return
    ruled = getattr(metafunc.function, "ruled", None)
    if ruled is None:
        raise LookupError(f"{metafunc.function.__name__} names no rule: mark it with @rule")
    places = [
        (transport, revision)
        for transport in TRANSPORTS
        if not ruled.over or transport in ruled.over
        for revision in _revisions(ruled, transport, full=metafunc.config.option.full)
    ]
    metafunc.parametrize("rig", places, ids=["-".join(place) for place in places], indirect=True)


def _revisions(ruled: Ruled, transport: str, *, full: bool) -> tuple[str, ...]:
    """Return the revisions in which a script is played over a transport.

    In memory that is each of them. Most of what carries the messages knows no revision, so over
    the other transports the oldest and the newest do, unless the run is full. Over HTTP, where a
    session differs from a single request, so does the newest with a session. TCP differs from a
    Unix socket in its address: over one the newest is enough, over the other the oldest. ASGI
    differs from HTTP in its server, and the older way of SSE has sessions alone: the newest.
    """
    found = tuple(filter(TRANSPORTS[transport].when.holds, ruled.revisions))
    if not TRANSPORTS[transport].is_cheap and ruled.is_fresh:
        # A process for each script is too much, unless the run is full or the rule names them.
        is_named = transport in ruled.over and transport != UNWATCHED
        return found[-1:] if full or is_named else ()
    if full or transport == "memory":
        return found
    if transport in ("tcp", "asgi", "old-sse", UNWATCHED):
        return found[-1:]
    if transport == "unix":
        return found[:1]
    chosen = {*found[:1], *found[-1:]}
    if transport == "http":
        chosen.update(tuple(filter(HANDSHAKE.holds, found))[-1:])
    return tuple(sorted(chosen))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Play a script on the loop, close what it opened, and have it judged."""
    __tracebackhide__ = True
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    rig: Rig = pyfuncitem.funcargs["rig"]

    async def play() -> None:
        try:
            async with bounded():
                await pyfuncitem.obj(**given)
        finally:
            await rig.finish()
        rig.judge()

    pyfuncitem.funcargs["stage"].loop.run(play())
    return True
