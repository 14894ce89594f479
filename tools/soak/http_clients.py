"""The conversations of the soak test over HTTP: both eras, streams that break, clients that return.

A conversation is a function of a `HttpScene`. It opens its own connections and closes them; its
session it deletes, or leaves to expire.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tools.soak.http_wire import HttpWire, Register, Response
from tools.soak.server import SESSION_IDLE_S, TASK_TTL_S
from tools.soak.wire import ANSWER_TIMEOUT_S, Tally
from trunkline.spec.revisions import LATEST, REVISIONS
from trunkline.transports.addresses import Http

__all__ = [
    "CONVERSATIONS",
    "HANDSHAKE",
    "WITH_ELICITATION",
    "Conversation",
    "Gone",
    "HttpClient",
    "HttpScene",
]

HANDSHAKE: Final = REVISIONS[:-1]
# Revisions with streams that a client can resume, questions, and streams that a server can end.
_WITH_RESUMPTION: Final = REVISIONS[1:-1]
WITH_ELICITATION: Final = REVISIONS[2:]
_WITH_POLLING: Final = REVISIONS[3:-1]
_INFO: Final = {"name": "soak", "version": "1"}
_CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {"form": {}}}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientCapabilities": _CAPABILITIES,
    "io.modelcontextprotocol/clientInfo": _INFO,
}
_ACCEPT: Final = "application/json, text/event-stream"
_NAMED: Final = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}


class Gone(Exception):
    """The session does not exist any more."""


@dataclass
class HttpScene:
    """What conversations share."""

    address: Http
    tally: Tally
    register: Register
    rng: random.Random
    # Of HTTPS.
    context: ssl.SSLContext | None = None
    # The address of the clients; None is that of the server.
    source: str | None = None

    async def connect(self, receive_buffer: int | None = None) -> HttpWire:
        """Return a new connection."""
        return await HttpWire.open(self.address, self.context, self.source, receive_buffer)

    def check(self, is_so: bool, text: str) -> None:
        """Note a failure unless something is so."""
        if not is_so:
            self.tally.fail(text)


Conversation: TypeAlias = Callable[[HttpScene], Awaitable[None]]


class HttpClient:
    """A client in one revision; a session of the handshake era outlives its connections."""

    def __init__(self, scene: HttpScene, revision: str) -> None:
        self.scene = scene
        self.revision = revision
        self.is_session = revision != LATEST
        self.session_id = ""
        # Where requests are sent.
        self.path = scene.address.path
        self._wire: HttpWire | None = None
        # When a request was sent last.
        self.used = 0.0
        # Requests that were not answered yet.
        self._open: set[int] = set()

    # -- connections

    @property
    def is_connected(self) -> bool:
        """Whether it has a connection that is kept alive."""
        return self._wire is not None

    async def wire(self) -> HttpWire:
        """Return the connection that is kept alive, connected if it is not."""
        if self._wire is None:
            self._wire = await self.scene.connect()
        return self._wire

    async def disconnect(self, *, resets: bool = False) -> None:
        """Close the connection; the session stays."""
        wire, self._wire = self._wire, None
        if wire is not None:
            if resets:
                wire.reset()
            await wire.close()

    # -- requests

    def new(self, *, runs: bool = True) -> int:
        """Return the number of another request."""
        number = self.scene.register.new(runs=runs)
        self._open.add(number)
        return number

    def abandon(self) -> None:
        """Wait for no answer any more."""
        for number in self._open:
            self.scene.register.abandon(number)
        self._open.clear()

    def encoded(self, message: Any, **headers: str) -> bytes:
        """Return a POST."""
        method, params = message.get("method", ""), message.get("params", {})
        given = {"Content-Type": "application/json", "Accept": _ACCEPT, **headers}
        if self.is_session:
            given |= self.session_headers()
        else:
            message = {
                **message,
                "params": {**params, "_meta": {**_META, **params.get("_meta", {})}},
            }
            given |= {"MCP-Protocol-Version": LATEST, "Mcp-Method": method}
            if method in _NAMED:
                given["Mcp-Name"] = params[_NAMED[method]]
        body = json.dumps(message).encode()
        if self.scene.rng.random() < 0.2:
            given["Transfer-Encoding"] = "chunked"
            half = len(body) // 2
            body = b"".join(
                b"%x\r\n%b\r\n" % (len(each), each) for each in (body[:half], body[half:])
            )
            body += b"0\r\n\r\n"
        else:
            given["Content-Length"] = str(len(body))
        return self.head("POST", given) + body

    def session_headers(self) -> dict[str, str]:
        """Return the headers of a request in the session, if there is one."""
        if not self.session_id:
            return {}
        return {"Mcp-Session-Id": self.session_id, "MCP-Protocol-Version": self.revision}

    def head(self, method: str, headers: dict[str, str]) -> bytes:
        """Return the head of a request."""
        address = self.scene.address
        lines = [f"{method} {self.path} HTTP/1.1", f"Host: {address.host}:{address.port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join((*lines, "", "")).encode()

    async def send(self, data: bytes) -> tuple[HttpWire, Response]:
        """Send a request; return the head of its response."""
        wire = await self.wire()
        before, self.used = self.used, asyncio.get_running_loop().time()
        wire.send(data)
        response = await wire.response()
        await self.check_session(wire, response, before)
        return wire, response

    async def check_session(self, wire: HttpWire, response: Response, used: float) -> None:
        """Check that a session that has ended was idle for long enough, on a busy machine."""
        if response.status == 404 and self.session_id:
            await wire.body(response)
            idle = asyncio.get_running_loop().time() - used
            self.scene.check(idle >= SESSION_IDLE_S, f"a session has ended after {idle:.1f} s")
            raise Gone

    def message(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return a request."""
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def called(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the call of a tool that counts."""
        params: dict[str, Any] = {"name": tool, "arguments": {"number": number, **arguments}}
        if tool == "count_slowly":
            params["_meta"] = {"progressToken": number}
        return self.message(number, "tools/call", params)

    async def messages(
        self, wire: HttpWire, response: Response
    ) -> AsyncIterator[tuple[str | None, Any]]:
        """Read the messages of a response; answers are registered."""
        if not response.is_stream:
            body = await wire.body(response)
            if body:
                yield None, self.taken(json.loads(body))
            return
        async for id, message in wire.events(response):
            yield id, self.taken(message)

    def taken(self, message: Any) -> Any:
        """Register a message if it is an answer; return it."""
        if message is not None and "method" not in message:
            number = message.get("id")
            is_known = self.scene.register.answer(number)
            self.scene.check(is_known, f"an answer to nothing: {message}")
            self._open.discard(number)
        return message

    async def request(self, number: int, method: str, params: dict[str, Any]) -> Any:
        """Send a request; return its result."""
        return await self.result(number, self.message(number, method, params))

    async def result(self, number: int, message: dict[str, Any]) -> Any:
        """Send a request, and read all of the response; return the result."""
        wire, response = await self.send(self.encoded(message))
        found = None
        async for _, each in self.messages(wire, response):
            if each is not None and "method" not in each:
                self.scene.check(each.get("id") == number, f"the answer to another: {each}")
                found = each.get("result", each)
        self.scene.check(response.status == 200, f"{response.status} for {message}: {found}")
        return found

    async def count(self, tool: str = "count", **arguments: Any) -> None:
        """Call a tool that counts, and check its answer."""
        number = self.new()
        result = await self.result(number, self.called(number, tool, **arguments))
        self.checked(number, result)

    def checked(self, number: int, result: Any) -> None:
        """Check the answer of a tool that counts."""
        self.scene.tally.calls += 1
        content = result.get("content") if isinstance(result, dict) else None
        text = content[0].get("text") if content else None
        self.scene.check(text == str(number), f"the answer to {number} is {result}")

    async def notify(self, message: dict[str, Any]) -> None:
        """Send a notification, or a reply."""
        wire, response = await self.send(self.encoded(message))
        body = await wire.body(response)
        self.scene.check(response.status == 202, f"{response.status} for {message}: {body!r}")

    def get(self, **headers: str) -> bytes:
        """Return a GET for a stream."""
        given = {"Accept": "text/event-stream", **self.session_headers()}
        return self.head("GET", {**given, **headers})

    # -- sessions

    def initialize_params(self) -> dict[str, Any]:
        """Return what a session begins with."""
        return {
            "protocolVersion": self.revision,
            "capabilities": _CAPABILITIES if self.revision in WITH_ELICITATION else {},
            "clientInfo": _INFO,
        }

    async def open(self) -> None:
        """Open a session, in a revision that has them."""
        if not self.is_session:
            return
        self.session_id = ""
        number = self.new(runs=False)
        params = self.initialize_params()
        wire, response = await self.send(self.encoded(self.message(number, "initialize", params)))
        async for _, each in self.messages(wire, response):
            found = each.get("result", {}).get("protocolVersion")
            self.scene.check(found == self.revision, f"not initialized: {each}")
        self.session_id = response.headers.get("mcp-session-id", "")
        self.scene.check(bool(self.session_id), "a session has no id")
        await self.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def delete(self) -> None:
        """End the session."""
        wire, response = await self.send(self.head("DELETE", {"Mcp-Session-Id": self.session_id}))
        await wire.body(response)
        self.scene.check(response.status in (200, 204), f"{response.status} for DELETE")


@asynccontextmanager
async def client_of(scene: HttpScene, revisions: tuple[str, ...]) -> AsyncIterator[HttpClient]:
    """Provide a client that is connected; at the end its session is deleted, or left."""
    client = HttpClient(scene, scene.rng.choice(revisions))
    try:
        await client.open()
        yield client
        if client.is_session and scene.rng.random() < 0.5:
            await client.delete()
    except Gone:
        client.abandon()
    finally:
        await client.disconnect(resets=scene.rng.random() < 0.3)


# -- the conversations


async def caller(scene: HttpScene) -> None:
    """Calls, one after the other; now and then the client goes away and comes back."""
    async with client_of(scene, REVISIONS) as client:
        for _ in range(scene.rng.randint(1, 12)):
            await client.count(
                scene.rng.choice(("count", "count", "count_inline", "count_threaded"))
            )
            if scene.rng.random() < 0.1:
                await client.disconnect(resets=scene.rng.random() < 0.5)
                await asyncio.sleep(scene.rng.uniform(0, 0.2))


async def pipelined(scene: HttpScene) -> None:
    """Several calls are sent before the first is answered; the answers are in order."""
    async with client_of(scene, REVISIONS) as client:
        wire = await client.wire()
        numbers = [client.new() for _ in range(scene.rng.randint(2, 20))]
        before, client.used = client.used, asyncio.get_running_loop().time()
        for number in numbers:
            tool = scene.rng.choice(("count", "count_inline", "count_slowly"))
            wire.send(client.encoded(client.called(number, tool)))
        for number in numbers:
            response = await wire.response()
            await client.check_session(wire, response, before)
            async for _, each in client.messages(wire, response):
                if each is not None and "method" not in each:
                    scene.check(each.get("id") == number, f"out of order: {each}")
                    client.checked(number, each.get("result"))


async def lists(scene: HttpScene) -> None:
    """Lists, a resource and a prompt."""
    async with client_of(scene, REVISIONS) as client:
        for method, params in (
            ("tools/list", {}),
            ("resources/read", {"uri": "note://7"}),
            ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
        ):
            result = await client.request(client.new(runs=False), method, params)
            scene.check("error" not in result, f"{method}: {result}")


async def streamed(scene: HttpScene) -> None:
    """Calls with progress, which are streams; some of them take long."""
    async with client_of(scene, REVISIONS) as client:
        for _ in range(scene.rng.randint(1, 3)):
            number = client.new()
            seconds = scene.rng.choice((0, 0.01, 0.1))
            message = client.called(number, "count_slowly", times=5, seconds=seconds)
            wire, response = await client.send(client.encoded(message))
            seen: list[float] = []
            async for _, each in client.messages(wire, response):
                if each is not None and each.get("method") == "notifications/progress":
                    seen.append(each["params"]["progress"])
                elif each is not None and "method" not in each:
                    client.checked(number, each.get("result"))
            # A revision before 2024-11-05 does not exist: all have progress.
            scene.check(seen == [1, 2, 3, 4, 5], f"progress of {number}: {seen}")


async def resumed(scene: HttpScene) -> None:
    """A stream breaks, more than once perhaps, and is resumed where it broke."""
    async with client_of(scene, _WITH_RESUMPTION) as client:
        number = client.new()
        message = client.called(number, "count_slowly", times=8, seconds=0.02)
        wire, response = await client.send(client.encoded(message))
        last, seen = "", list[float]()
        for break_after in (scene.rng.randint(1, 4), scene.rng.randint(1, 8), 100):
            count = 0
            async for id, each in client.messages(wire, response):
                last, count = id or last, count + 1
                if each is not None and "progress" in each.get("method", ""):
                    seen.append(each["params"]["progress"])
                elif each is not None and "method" not in each:
                    client.checked(number, each.get("result"))
                if count >= break_after and last:
                    break
            if scene.register.is_answered(number):
                break
            await client.disconnect(resets=scene.rng.random() < 0.5)
            await asyncio.sleep(scene.rng.choice((0, 0.05)))
            wire, response = await client.send(client.get(**{"Last-Event-ID": last}))
            scene.check(response.status == 200, f"{response.status} for resuming after {last}")
            if response.status != 200:
                await wire.body(response)
                break
        scene.check(seen == list(range(1, 9)), f"progress of {number} over {last}: {seen}")
        await client.disconnect()


async def polled(scene: HttpScene) -> None:
    """The server ends the stream of a long call; the client comes back for the answer."""
    async with client_of(scene, _WITH_POLLING) as client:
        number = client.new()
        message = client.called(number, "count_later", seconds=0.1)
        wire, response = await client.send(client.encoded(message))
        last = ""
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            while True:
                async for id, each in client.messages(wire, response):
                    last = id or last
                    if each is not None and "method" not in each:
                        client.checked(number, each.get("result"))
                if scene.register.is_answered(number):
                    return
                await asyncio.sleep(0.05)
                wire, response = await client.send(client.get(**{"Last-Event-ID": last}))
                scene.check(response.status == 200, f"{response.status} for polling after {last}")
                if response.status != 200:
                    await wire.body(response)
                    return


async def asked(scene: HttpScene) -> None:
    """The server asks for a word."""
    async with client_of(scene, WITH_ELICITATION) as client:
        number = client.new()
        if not client.is_session:
            await asked_in_a_result(client, number)
            return
        wire, response = await client.send(client.encoded(client.called(number, "count_asked")))
        async for _, each in client.messages(wire, response):
            if each is None:
                continue
            if each.get("method") == "elicitation/create":
                answer = {"action": "accept", "content": {"value": "word"}}
                other = HttpClient(scene, client.revision)
                other.session_id, other.used = client.session_id, client.used
                await other.notify({"jsonrpc": "2.0", "id": each["id"], "result": answer})
                await other.disconnect()
            elif "method" not in each:
                client.checked(number, each.get("result"))


async def asked_in_a_result(client: HttpClient, number: int) -> None:
    """Send the call again with what the result of the first asks for."""
    first = client.called(number, "count_asked")
    result = await client.result(number, first)
    if result.get("resultType") != "input_required":
        client.scene.check(False, f"the server has not asked: {result}")
        return
    answer = {"action": "accept", "content": {"value": "word"}}
    again = client.new(runs=False)
    params = {
        **first["params"],
        "inputResponses": dict.fromkeys(result["inputRequests"], answer),
        "requestState": result["requestState"],
    }
    client.checked(number, await client.request(again, "tools/call", params))


async def tasks(scene: HttpScene) -> None:
    """A call goes on as a task, whose result another connection fetches; another is cancelled."""
    async with client_of(scene, _WITH_POLLING) as client:
        begun = asyncio.get_running_loop().time()
        task = await begun_task(client, 0.05)
        await client.disconnect()
        result = await client.request(client.new(runs=False), "tasks/result", {"taskId": task})
        has_expired = asyncio.get_running_loop().time() - begun > TASK_TTL_S
        content = result.get("content", [{}])
        scene.check(content[0].get("text") == "worked" or has_expired, f"a task has {result}")
        await begun_task(client, 0.5)
        other = await begun_task(client, 3600)
        await client.request(client.new(runs=False), "tasks/cancel", {"taskId": other})


async def begun_task(client: HttpClient, seconds: float) -> str:
    """Begin a task; return its id."""
    params = {"name": "works", "arguments": {"seconds": seconds}, "task": {}}
    result = await client.request(client.new(runs=False), "tools/call", params)
    client.scene.tally.calls += 1
    task: str = result.get("task", {}).get("taskId", "")
    client.scene.check(bool(task), f"not a task: {result}")
    return task


async def unread(scene: HttpScene) -> None:
    """A client that asks for much and reads nothing."""
    async with client_of(scene, REVISIONS) as client:
        wire = await client.wire()
        for _ in range(5):
            params = {"name": "large", "arguments": {"size": 1_000_000}}
            wire.send(client.encoded(client.message(client.new(runs=False), "tools/call", params)))
        await asyncio.sleep(0.2)
        client.abandon()
        await client.disconnect(resets=True)


async def listening(scene: HttpScene) -> None:
    """A stream of changes, and a change."""
    async with client_of(scene, REVISIONS) as client:
        other = HttpClient(scene, client.revision)
        other.session_id = client.session_id
        try:
            if client.is_session:
                plain = client.new(runs=False)
                found = await client.request(plain, "resources/subscribe", {"uri": "note://1"})
                if "error" in found:
                    raise ValueError(f"not subscribed: {found}")
                stream = client.get()
            else:
                number = client.new(runs=False)
                wanted = {"resourceSubscriptions": ["note://1"]}
                params = {"notifications": wanted}
                stream = client.encoded(client.message(number, "subscriptions/listen", params))
            wire, response = await client.send(stream)
            if not response.is_stream:
                raise ValueError(f"{response.status} for a stream")
            if not client.is_session:
                async for _, each in client.messages(wire, response):
                    if each is not None:
                        break  # what is honoured of the filter
            other.used = client.used
            result = await other.request(
                other.new(runs=False), "tools/call", {"name": "changes", "arguments": {}}
            )
            if "error" in result:
                raise ValueError(f"no change: {result}")
            async for _, each in client.messages(wire, response):
                if each is not None and each.get("method") == "notifications/resources/updated":
                    break
            client.abandon()
            await client.disconnect(resets=scene.rng.random() < 0.5)
        finally:
            await other.disconnect()


async def dropped(scene: HttpScene) -> None:
    """The client goes in the middle of a body, of a wait or of a stream, and comes back."""
    async with client_of(scene, REVISIONS) as client:
        for _ in range(scene.rng.randint(1, 4)):
            number = client.new()
            slowly = scene.rng.random() < 0.7
            tool, more = (
                ("count_slowly", {"times": 50, "seconds": 0.02}) if slowly else ("count", {})
            )
            data = client.encoded(client.called(number, tool, **more))
            wire = await client.wire()
            now = asyncio.get_running_loop().time()
            way = scene.rng.randrange(3)
            if way == 0:
                wire.send(data[: scene.rng.randrange(len(data))])
            else:
                wire.send(data)
            if way == 2:
                await read_some(client, wire)
                client.used = now  # only then the server has certainly seen it
            else:
                await asyncio.sleep(scene.rng.choice((0, 0.01)))
            client.abandon()
            await client.disconnect(resets=scene.rng.random() < 0.5)
        await client.count()


async def read_some(client: HttpClient, wire: HttpWire) -> None:
    response = await wire.response()
    await client.check_session(wire, response, client.used)
    count = 0
    async for _ in client.messages(wire, response):
        count += 1
        if count > 3:
            return


async def garbage(scene: HttpScene) -> None:
    """Bytes that are not HTTP, and requests that are refused."""
    rng = scene.rng
    for _ in range(3):
        wire = await scene.connect()
        wire.send(
            rng.choice(
                (
                    rng.randbytes(rng.randint(1, 500)),
                    b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                    b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                    b"POST /mcp HTTP/1.1\r\nContent-Length: 5\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n",
                    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"MCP-Protocol-Version: 2026-07-28\r\nContent-Length: 2\r\n\r\n[]",
                )
            )
        )
        await asyncio.sleep(rng.choice((0, 0.02)))
        if rng.random() < 0.5:
            wire.reset()
        await wire.close()


# By name, and how many run at once: 200 clients with those of old SSE; a target may have fewer.
CONVERSATIONS: Final[dict[str, tuple[Conversation, int]]] = {
    "calls": (caller, 40),
    "pipelined": (pipelined, 15),
    "lists": (lists, 10),
    "streamed": (streamed, 25),
    "resumed": (resumed, 25),
    "polled": (polled, 15),
    "asked": (asked, 15),
    "listening": (listening, 10),
    "dropped": (dropped, 20),
    "tasks": (tasks, 5),
    "unread": (unread, 3),
    "garbage": (garbage, 5),
}
