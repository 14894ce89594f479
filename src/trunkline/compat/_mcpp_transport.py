"""The transport interface of mcpp over any transport of Trunkline.

mcpp calls its transport from any thread, and returns flags; a transport here belongs to one event
loop, and raises. So each connection has an event loop on a thread of its own.

The rules that live here, and only here:

* Nothing is opened before `connect`, and `disconnect` ends what it has opened; a transport may
  connect again.                                                             [C-12, C-17]
* Both callbacks run on the thread of the connection, one after the other.   [C-19, C-20]
* `send` does not wait: it returns False if a slow reader has HIGH_WATER bytes left to read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from ..errors import TransportError
from ..jsonrpc import Policy
from ..transports.base import HIGH_WATER, Frame, ignore, log_raised
from ..transports.base import Transport as Connection

if TYPE_CHECKING:
    from ..client.connect.targets import TargetLike

__all__ = ["MessageCallback", "Transport"]

# Called with one complete message.
MessageCallback: TypeAlias = Callable[[bytes], None]
_TextCallback: TypeAlias = Callable[[str], None]

_POLICY: Final = Policy.mcpp()


class Transport:
    """One connection that carries whole JSON-RPC messages, with the functions of mcpp.

    `Transport("tcp://127.0.0.1:9000")` takes whatever a `Client` connects to: an address, a
    command, a `Server`. The functions may be called on any thread. The callbacks run on the thread
    of the connection, one after the other: they must not block.
    """

    __slots__ = ("_lock", "_on_error", "_on_message", "_policy", "_target", "_thread")

    MessageCallback: ClassVar[Any] = MessageCallback
    # Called with a text; the `ErrorCallback` of a client is called with a `JsonRpcError`.
    ErrorCallback: ClassVar[Any] = _TextCallback

    def __init__(self, target: TargetLike, *, policy: Policy = _POLICY) -> None:
        # Imported here: the types of mcpp need no client.
        from ..client.connect.targets import target_of

        self._target = target_of(target).address
        self._policy = policy
        self._on_message: MessageCallback = ignore
        self._on_error: _TextCallback = ignore
        # Held while a connection is opened.
        self._lock = Lock()
        self._thread: _ConnectionThread | None = None

    def connect(self) -> bool:
        """Open the connection; return False if that fails, and pass the reason to the callback.

        Returns True at once if it is open already.
        """
        with self._lock:
            if self.is_connected():
                return True
            make = partial(self._target.transport, self._policy)
            thread = _ConnectionThread(make, self._received, self._failed)
            thread.start()
            self._thread = thread
            return thread.opened()

    def disconnect(self) -> None:
        """Send what is left, and close the connection; no callback follows.

        In a callback it returns before the connection is closed.
        """
        thread = self._thread
        if thread is not None:
            thread.close()

    def is_connected(self) -> bool:
        """Return True while messages can be sent."""
        return self._thread is not None and self._thread.is_open

    def send(self, message: bytes | str) -> bool:
        """Send one message; return False if there is no connection, or its backlog is too long.

        Line breaks in it, and at its end, are white space.
        """
        frame = message.encode() if isinstance(message, str) else message
        # They would end the frame, and mean nothing in JSON.
        return self._thread is not None and self._thread.send(b" ".join(frame.splitlines()))

    def set_message_callback(self, cb: MessageCallback) -> None:
        """Call `cb` with each message that is received. Set it before `connect`."""
        self._on_message = cb

    def set_error_callback(self, cb: _TextCallback) -> None:
        """Call `cb` with a text if the connection fails, the other side ends it, or a message
        cannot be read.
        """
        self._on_error = cb

    def _received(self, frame: Frame) -> None:
        try:
            if isinstance(frame, bytes):
                self._on_message(frame)
            else:
                self._on_error(f"a message cannot be read: {frame!r}")
        except Exception as error:  # noqa: BLE001  # application code; the connection goes on
            log_raised(error, "a callback of a transport raised an exception")

    def _failed(self, text: str) -> None:
        try:
            self._on_error(text)
        except Exception as error:  # noqa: BLE001  # as above
            log_raised(error, "the error callback of a transport raised an exception")


class _ConnectionThread:
    """One connection, on an event loop of its own."""

    def __init__(
        self,
        make: Callable[[], Connection],
        received: Callable[[Frame], None],
        failed: Callable[[str], None],
    ) -> None:
        self._make = make
        self._connection: Connection | None = None
        self._received = received
        self._failed = failed
        self._lock = Lock()
        # Bytes that were passed to `send` and that the connection does not have yet.
        self._waiting = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event
        self._is_left = False
        self._opened: Future[bool] = Future()
        # A program that forgets to disconnect can end.
        self._thread = Thread(target=self._main, name="trunkline-mcpp-transport", daemon=True)

    @property
    def is_open(self) -> bool:
        connection = self._connection
        return connection is not None and not self._is_left and connection.is_connected

    def start(self) -> None:
        self._thread.start()

    def opened(self) -> bool:
        return self._opened.result()

    def close(self) -> None:
        self._is_left = True
        self._soon(lambda: self._leave.set())
        if self._thread.ident != get_ident():
            self._thread.join()

    def send(self, frame: bytes) -> bool:
        connection = self._connection
        if connection is None or not self.is_open:
            return False
        with self._lock:
            if self._waiting + connection.backlog >= HIGH_WATER:
                return False
            self._waiting += len(frame)
        return self._soon(partial(self._write, connection, frame))

    def _write(self, connection: Connection, frame: bytes) -> None:
        with self._lock:
            self._waiting -= len(frame)
        connection.send(frame)  # in memory it may call back before it returns

    def _soon(self, function: Callable[[], object]) -> bool:
        """Call a function on the loop; return False if the loop has ended."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function)
                return True
        except RuntimeError:
            pass  # the loop is closed
        return False

    # -- on the thread -----------------------------------------------------------------------

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except Exception as error:  # noqa: BLE001  # `connect` waits for it
            log_raised(error, "the thread of a transport ended with an exception")
        finally:
            self._loop = None
            self._is_left = True
            if not self._opened.done():
                self._opened.set_result(False)

    async def _run(self) -> None:
        self._leave = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._is_left:  # before there was a loop to leave
            return
        try:
            # On the loop that it will belong to.
            connection = self._connection = self._make()
            connection.on_message = self._on_frame
            connection.on_error = self._on_end
            await connection.connect()
        except TransportError as error:
            self._failed(str(error))
            return
        self._opened.set_result(True)
        await self._leave.wait()
        self._is_left = True
        await connection.close()

    def _on_frame(self, frame: Frame, _: Any) -> None:
        if not self._is_left:
            self._received(frame)

    def _on_end(self, error: TransportError | None) -> None:
        if not self._is_left:
            self._is_left = True
            self._failed("the other side ended the connection" if error is None else str(error))
        self._leave.set()
