"""The conversations of the soak test: ordinary ones in every revision, slow ones and hostile ones.

A session is a function of a `Scene`. It opens its own connections, checks what it is told, and
leaves nothing open, so that a run can pause between sessions.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tools.soak.server import MAX_MESSAGE_BYTES, TASK_TTL_S
from tools.soak.wire import ANSWER_TIMEOUT_S, Tally, Target, Wire, dial, nonsense
from trunkline import Client, RequestTimeout, Stdio, SyncClient, Tcp
from trunkline.errors import Cancelled, PeerError
from trunkline.spec.revisions import REVISIONS
from trunkline.transports.addresses import Tls, Unix

__all__ = ["SESSIONS", "STEPS", "Scene", "Session", "client_of", "work_with"]

MB: Final = 1_000_000
_HANDSHAKE: Final = REVISIONS[:-1]
_WITH_ELICITATION: Final = REVISIONS[2:]
_WITH_TASKS: Final = REVISIONS[3:]


@dataclass
class Scene:
    """What sessions share."""

    target: Target
    tally: Tally
    rng: random.Random

    def address(self) -> Any:
        """Return what a `Client` connects to."""
        address = self.target.address
        if address is None:
            return Stdio(self.target.command(), env=self.target.environment)
        if isinstance(address, Tcp) and self.target.ca:
            return Tcp(address.host, address.port, tls=Tls(ca=self.target.ca))
        return address

    def check(self, is_so: bool, text: str) -> None:
        """Note a failure unless something is so."""
        if not is_so:
            self.tally.fail(text)


Session: TypeAlias = Callable[[Scene], Awaitable[None]]
Step: TypeAlias = Callable[[Scene, Client], Awaitable[None]]


# -- clients of the library


async def calls(scene: Scene, client: Client) -> None:
    """Call several tools at once."""
    count = scene.rng.randint(1, 20)
    texts = [f"text {n}" for n in range(count)]
    tools = [scene.rng.choice(("echo", "threaded")) for _ in texts]
    results = await asyncio.gather(
        *(client.call_tool(tool, {"text": text}) for tool, text in zip(tools, texts, strict=True)),
        *(client.call_tool("inline", {"number": n}) for n in range(count)),
    )
    scene.tally.calls += len(results)
    expected = texts + [str(n) for n in range(count)]
    scene.check([each.text for each in results] == expected, "wrong results")


async def large_texts(scene: Scene, client: Client) -> None:
    """Send and receive texts of 1 MB."""
    text = "x" * MB
    results = await asyncio.gather(
        client.call_tool("echo", {"text": text}), client.call_tool("large", {"size": MB})
    )
    scene.tally.calls += 2
    scene.check(all(each.text == text for each in results), "a large text was changed")


async def failures(scene: Scene, client: Client) -> None:
    """Call what fails, and what is not there."""
    result = await client.call_tool("fails")
    scene.check(result.is_error and result.text == "as it should", "a failure was not one")
    scene.tally.calls += 2
    try:
        scene.check((await client.call_tool("absent")).is_error, "an absent tool was called")
    except PeerError:
        pass


async def progress(scene: Scene, client: Client) -> None:
    """Call a tool that reports and logs."""
    seen: list[float] = []
    result = await client.call_tool(
        "reports", {"times": 20}, on_progress=lambda done, total, text: seen.append(done)
    )
    scene.tally.calls += 1
    scene.check(result.text == "there" and seen == sorted(seen), "progress went backwards")


async def timeouts(scene: Scene, client: Client) -> None:
    """Let a call time out."""
    scene.tally.calls += 1
    try:
        await client.call_tool("sleep", {"seconds": 3600}, timeout=0.02)
    except RequestTimeout:
        return
    scene.check(False, "a call did not time out")


async def cancels(scene: Scene, client: Client) -> None:
    """Cancel calls."""
    pending = [client.submit_tool("sleep", {"seconds": 3600}) for _ in range(5)]
    await asyncio.sleep(scene.rng.choice((0, 0.01)))
    for each in pending:
        each.cancel()
    done = await asyncio.gather(*pending, return_exceptions=True)
    scene.tally.calls += len(pending)
    kinds = (Cancelled, asyncio.CancelledError)
    scene.check(all(isinstance(each, kinds) for each in done), f"not cancelled: {done!r}")


async def questions(scene: Scene, client: Client) -> None:
    """Answer a question of the server."""
    if client.revision in _WITH_ELICITATION:
        scene.tally.calls += 1
        result = await client.call_tool("asks")
        scene.check(result.text == "accept", f"the answer was not taken: {result.text}")


async def tasks(scene: Scene, client: Client) -> None:
    """Run a task, and cancel another."""
    if client.revision not in _WITH_TASKS:
        return
    scene.tally.calls += 2
    begun = asyncio.get_running_loop().time()
    handle = await client.call_tool_as_task("works", {"seconds": 0.01})
    try:
        scene.check((await handle.result()).text == "worked", "a task has another result")
    except PeerError as error:
        # On a machine that is busier than this, a task may be gone before it is looked at.
        has_expired = asyncio.get_running_loop().time() - begun > TASK_TTL_S
        scene.check(has_expired, f"a task was lost: {error}")
    other = await client.call_tool_as_task("works", {"seconds": 3600})
    await other.cancel()


async def subscriptions(scene: Scene, client: Client) -> None:
    """Follow changes of a resource and of the list of tools."""
    async with client.listen(tools=True, uris=["note://1"]) as changes:
        await client.call_tool("changes")
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            async for change in changes:
                if change.kind == "resource":
                    break
    scene.tally.calls += 1


async def lists(scene: Scene, client: Client) -> None:
    """Read lists, a resource and a prompt."""
    tools = {tool.name for tool in await client.list_tools(fresh=True)}
    scene.check("echo" in tools, "a tool is not listed")
    await client.read_resource("note://7", fresh=True)
    await client.get_prompt("greet", {"name": "Ada"})
    scene.tally.calls += 3


STEPS: Final[tuple[Step, ...]] = (
    calls,
    calls,
    calls,
    large_texts,
    failures,
    progress,
    timeouts,
    cancels,
    questions,
    tasks,
    subscriptions,
    lists,
)


async def work_with(scene: Scene, client: Client, steps: int) -> None:
    """Take some steps with a client."""
    for _ in range(steps):
        await scene.rng.choice(STEPS)(scene, client)


def client_of(scene: Scene, revision: str | None) -> Client:
    """Return a client with callbacks."""
    return Client(
        scene.address(),
        revision=revision,
        timeout=ANSWER_TIMEOUT_S,
        max_timeout=ANSWER_TIMEOUT_S,
        connect_timeout=ANSWER_TIMEOUT_S,
        probe_timeout=ANSWER_TIMEOUT_S,
        on_log=_ignore,
        on_elicit=lambda question: {"value": "word"},
    )


async def _ignore(message: object) -> None:
    pass


async def library(scene: Scene) -> None:
    """A client of the library, in some revision."""
    async with client_of(scene, scene.rng.choice((*REVISIONS, None))) as client:
        await work_with(scene, client, scene.rng.randint(1, 6))


async def script(scene: Scene) -> None:
    """A synchronous client, on a thread."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def work() -> None:
        try:
            with SyncClient(
                scene.address(),
                timeout=ANSWER_TIMEOUT_S,
                connect_timeout=ANSWER_TIMEOUT_S,
                on_log=str,
            ) as client:
                pending = [client.submit_tool("echo", {"text": str(n)}) for n in range(10)]
                texts = [each.result().text for each in pending]
                client.call_tool("reports", {"times": 5})
            said = "" if texts == [str(n) for n in range(10)] else f"wrong results: {texts}"
        except BaseException as error:  # noqa: BLE001  # told to the session
            said = repr(error)
        loop.call_soon_threadsafe(done.set_result, said)

    thread = threading.Thread(target=work, name="soak script")
    thread.start()
    said = await done
    thread.join()
    scene.tally.calls += 11
    scene.check(not said, f"synchronous client: {said}")


# -- raw clients


async def opened(scene: Scene) -> Wire:
    """Return a connection that has sent its first message, in either era."""
    wire = await Wire.open(scene.target)
    if scene.rng.random() < 0.5:
        await wire.handshake(scene.rng.choice(_HANDSHAKE))
    else:
        wire.request("server/discover")
        await wire.settle()
    return wire


async def ended(scene: Scene, wire: Wire) -> None:
    """Close a connection whose requests were all to be answered."""
    status = await wire.close()
    wire.ledger.close(scene.tally)
    scene.check(status in (None, 0), f"a server has exited with {status}")


def send_some(scene: Scene, wire: Wire, count: int) -> list[Any]:
    """Send requests of every kind; return their ids."""
    ids = []
    for _ in range(count):
        kind = scene.rng.randrange(10)
        if kind < 4:
            ids.append(wire.call("echo", text="x" * scene.rng.choice((1, 100, 5000))))
        elif kind < 6:
            ids.append(wire.call("inline", number=1))
        elif kind == 6:
            ids.append(wire.call("threaded", text="x"))
        elif kind == 7:
            ids.append(wire.call("echo", wrong="arguments"))
        elif kind == 8:
            ids.append(wire.request("no/such/method"))
        else:
            ids.append(wire.request("tools/list"))
    return ids


async def pipelined(scene: Scene) -> None:
    """Many requests at once, some of them cancelled."""
    wire = await opened(scene)
    ids = send_some(scene, wire, scene.rng.randint(20, 200))
    for id in scene.rng.sample(ids, len(ids) // 10):
        wire.cancel(id)
    await wire.settle()
    for _ in range(3):
        wire.cancel(wire.call("sleep", seconds=3600))
    wire.call("echo", text="last")
    await wire.settle()
    await ended(scene, wire)


async def slow_reader(scene: Scene) -> None:
    """A client that reads slowly what is large."""
    wire = await opened(scene)
    for _ in range(8):
        wire.call("large", size=MB // 2)
    await wire.settle(pause=0.02)
    await ended(scene, wire)


async def never_reader(scene: Scene) -> None:
    """A client that asks for much and reads nothing."""
    wire = await opened(scene)
    for _ in range(20):
        wire.call("large", size=MB)
    await asyncio.sleep(0.3)
    await hung_up(scene, wire)


async def garbage(scene: Scene) -> None:
    """Nonsense between requests; the requests are answered."""
    wire = await opened(scene)
    for _ in range(20):
        for _ in range(scene.rng.randint(0, 5)):
            wire.write(nonsense(scene.rng))
        send_some(scene, wire, 2)
    await wire.settle()
    await ended(scene, wire)


async def oversize(scene: Scene) -> None:
    """Messages over the limit: each is answered with an error."""
    wire = await opened(scene)
    for _ in range(2):
        wire.call("echo", text="x" * (MAX_MESSAGE_BYTES + 1))
        wire.call("echo", text="x")
    await wire.settle()
    await ended(scene, wire)


async def cut(scene: Scene) -> None:
    """Connections that end in the middle of a message, again and again."""
    for _ in range(1 if scene.target.address is None else 10):
        wire = await Wire.open(scene.target)
        frame = wire.frame(1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 500}})
        wire.write(frame[: scene.rng.randrange(len(frame))])
        await hung_up(scene, wire)
    # A server that is slower than this client is not flooded: it would refuse the others.
    wire = await opened(scene)
    await ended(scene, wire)


async def hung_up(scene: Scene, wire: Wire) -> None:
    """End a connection in a rude way; its requests are not counted."""
    if wire.process is None and scene.rng.random() < 0.5:
        wire.reset()
    elif wire.process is not None:
        # A client that is gone: both pipes are closed.
        wire.writer.close()
        wire.reader._transport.close()  # type: ignore[attr-defined]  # there is no other way
        await wire.process.wait()
        return
    await wire.close()


async def end_of_input(scene: Scene) -> None:
    """End the input while requests run: on pipes those that do not finish are abandoned."""
    if scene.target.kind == "tls":
        return  # it cannot end one direction alone
    wire = await opened(scene)
    for _ in range(3):
        wire.call("sleep", seconds=3600)
    send_some(scene, wire, 10)
    await wire.end_input()
    await wire.rest()
    status = await wire.close()
    wire.ledger.close(scene.tally, abandons=scene.target.address is None)
    scene.check(status in (None, 0), f"a server has exited with {status}")


async def silent(scene: Scene) -> None:
    """Connections that send nothing; with TLS they do not finish the handshake."""
    address = scene.target.address
    if address is None:
        return
    crowd = []
    for _ in range(5):
        if isinstance(address, Unix):
            crowd.append(await asyncio.open_unix_connection(sock=await dial(address)))
        else:
            crowd.append(await asyncio.open_connection(address.host, address.port))
    await asyncio.sleep(0.1)
    for _, writer in crowd:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass  # it gave way to another


# By name, and how many run at once on sockets. On pipes each starts a process.
SESSIONS: Final[dict[str, tuple[Session, int]]] = {
    "library client": (library, 3),
    "synchronous client": (script, 1),
    "pipelined": (pipelined, 2),
    "slow reader": (slow_reader, 1),
    "never reads": (never_reader, 1),
    "garbage": (garbage, 1),
    "oversize": (oversize, 1),
    "cut off": (cut, 1),
    "end of input": (end_of_input, 1),
    "silent": (silent, 1),
}
