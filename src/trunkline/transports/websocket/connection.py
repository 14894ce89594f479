"""One WebSocket connection as a transport: a JSON-RPC message in each text message.

The `websockets` library parses and writes frames, without I/O; a `WebSocketTransport` joins it to
an asyncio transport. The two sides differ in how a connection begins: `client` and `server`.

The rules that live here, and only here:

* A message is one text message. A binary one ends the connection with 1003; one that is not UTF-8
  is delivered, so that it is answered, and ends it with 1007.  [RFC 6455, sections 5.6 and 8.1]
* A message over the limit is delivered as an `Oversize`, so that it is answered, and the connection
  then ends with 1009: the rest of the message cannot be skipped in bounded time.
* Fragments are joined, and bounded in number: empty ones take no room in the limit. Control frames
  are bounded per second, because each ping makes the receiver write.
* One turn parses a bounded number of frames, because an empty one costs as much as a message. The
  rest waits as bytes, and nothing is read meanwhile; see `receive_limits`.
* A message that arrives too slowly ends the connection of a server with 1008.
* A silent connection is pinged; if nothing is received within `PONG_TIMEOUT_S`, it is lost.
                                                               [RFC 6455, section 5.5.2]
* Both directions end together. `close` sends what was sent before, then a Close frame, and waits
  for that of the other side. An end without a Close frame is an error.
                                                               [RFC 6455, sections 7.1.1 and 7.1.5]
* There is no compression: the size of compressed data tells about secrets beside it, and a few
  bytes can unfold to many.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import CLIENT, SERVER, Protocol, State
from websockets.streams import StreamReader

from ...errors import LocalProtocolError, TransportError
from ...exception_text import as_redacted
from ...jsonrpc.framing.framing import Oversize, head_size
from ...redaction import show
from ...spec.jsonrpc import LOCAL_RULES
from ..base import HIGH_WATER, LOW_WATER, TransportBase, ignore, log_raised
from ..io.tls_backlog import TlsBacklog
from ..receive_limits import MAX_MESSAGES_PER_TURN, most_messages, receive_timeout

if TYPE_CHECKING:
    from ..base import Frame as Received

__all__ = ["READ_BYTES", "SILENT", "SUBPROTOCOL", "WebSocketFrames", "WebSocketTransport"]

_log: Final = logging.getLogger("trunkline.transports")

# The name of MCP in Sec-WebSocket-Protocol.
SUBPROTOCOL: Final = "mcp"
# What is read at once, and so the bytes of messages that are complete in one turn; that of a large
# one may have been read before.
READ_BYTES: Final = 64 * 1024
# Fragments of one message. Clients that fragment send 4 KiB or more in each.
MAX_FRAGMENTS: Final = 16_384
# Pings and pongs of the other side in one second.
MAX_CONTROL_FRAMES: Final = 100
# Time for anything to be received after a ping.
PONG_TIMEOUT_S: Final = 20.0
# Time in which the other side takes none of what it was sent before the connection is lost.
UNREAD_TIMEOUT_S: Final = 60.0
# How long `close` waits for a side that reads nothing, and then for its Close frame.
_CLOSE_TIMEOUT_S: Final = 5.0
_ANSWER_TIMEOUT_S: Final = 1.0
# Of the masking key, which precedes the payload of a client.
_MASK_BYTES: Final = 4
_NORMAL: Final = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY, CloseCode.NO_STATUS_RCVD)

# The library logs headers and payloads at level DEBUG, which hold secrets. This logger is in no
# hierarchy, so that nothing can enable it.
SILENT: Final = logging.Logger("trunkline.websocket", level=logging.CRITICAL + 1)


class _FrameReader(StreamReader):
    """The bytes of a connection; the parser stops before a frame that the turn has no room for.

    A long batch has room after others, and is then the last: a frame is weighed once it is parsed.
    """

    def __init__(self, frames: Protocol) -> None:
        super().__init__()
        self.frames_left = MAX_MESSAGES_PER_TURN
        self._frames = frames

    @property
    def is_stopped(self) -> bool:
        """Whether there are bytes that wait for the next turn."""
        return not self.frames_left and bool(self.buffer)

    def at_eof(self) -> Generator[None, None, bool]:
        """Return True at the end of the stream; the parser looks for that before each frame."""
        if self.buffer and self._frames.events:
            self._weigh(self._frames.events[-1])
        while not (self.buffer and self.frames_left):
            if self.eof and not self.buffer:
                return True
            yield
        self.frames_left -= 1
        return False

    def _weigh(self, last: Any) -> None:
        """Count the frame before this one by the elements that it may have of a batch."""
        if isinstance(last, Frame) and last.opcode in (Opcode.TEXT, Opcode.CONT):
            is_object = last.fin and last.opcode is Opcode.TEXT and last.data[:1] == b"{"
            if not is_object:
                self.frames_left = max(0, self.frames_left + 1 - most_messages(last.data))


class WebSocketFrames(Protocol):
    """The frames of a connection; `on_failure` is called before a Close frame that reports one."""

    reader: _FrameReader

    def __init__(self, *args: Any, **options: Any) -> None:
        self.on_failure: Callable[[int], object] = ignore
        super().__init__(*args, logger=SILENT, **options)
        # The parser has begun with the reader of the library.
        self.reader = _FrameReader(self)
        self.parser = self.parse()
        next(self.parser)

    def receive_more(self) -> None:
        """Parse what a turn before this one had no room for."""
        next(self.parser)

    def fail(self, code: CloseCode | int, reason: str = "") -> None:
        """End the connection because of what the other side sent."""
        self.on_failure(code)
        super().fail(code, reason)

    def unread_payload(self, size: int) -> bytes:
        """Return what was received, up to a size, of the payload of a frame that is too large."""
        data = bytes(self.reader.buffer[: size + _MASK_BYTES])
        if self.side is not SERVER:
            return data[:size]
        key, masked = data[:_MASK_BYTES], data[_MASK_BYTES:]
        return bytes(each ^ key[at % _MASK_BYTES] for at, each in enumerate(masked))


class WebSocketTransport(TransportBase, asyncio.BufferedProtocol):
    """The part of a connection that is the same on both sides.

    A subclass sets `_frames` to those of a finished handshake and calls `_begin`.
    """

    # For the keep-alive of a server: `check_rate` sees to slow messages.
    is_receiving = False
    completed = 0
    # What error texts call the other side.
    _other: str = "peer"
    # From `connection_made` on.
    _loop: asyncio.AbstractEventLoop
    _lost: asyncio.Future[None]

    def __init__(self, limit: int | None, buffer: memoryview | None = None) -> None:
        super().__init__("websocket")
        # Bytes of messages in total, not of pings; the keep-alive of a server reads them.
        self.received = 0
        # The address of the other side.
        self.peer = ""
        self._limit = limit
        self._buffer = buffer if buffer is not None else memoryview(bytearray(READ_BYTES))
        self._frames: WebSocketFrames | None = None
        self._transport: Any = None
        self._is_open = False
        self._is_reported = False
        self._ending: asyncio.Task[None] | None = None
        # While received data is processed: what is sent meanwhile is one write.
        self._is_receiving = False
        self._is_paused = False
        # Whether frames wait for the next turn, and whether that is scheduled.
        self._is_behind = False
        self._is_turn_due = False
        # Why the connection was lost, where that is reported after those frames.
        self._loss: TransportError | None = None
        self._sent = 0
        self._tls: TlsBacklog | None = None
        # The fragments of a message so far, and how many.
        self._parts: bytearray | None = None
        self._fragments = 0
        # The bytes that are kept of it, when it began (0 without one), and `received` then.
        self._unfinished = 0
        self._began = 0.0
        self._received_before = 0
        # Since when nothing was received, and whether it was pinged since.
        self._silent_since = 0.0
        self._has_pinged = False
        self._taken_since = 0.0
        self._taken = 0
        # Control frames in the second that began then.
        self._control_since = 0.0
        self._control_frames = 0

    # -- the transport contract --------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._is_open

    @property
    def backlog(self) -> int:
        """The number of bytes sent and not written yet."""
        if self._transport is None:
            return 0
        if self._tls is not None:
            return self._tls.size
        size: int = self._transport.get_write_buffer_size()
        return size

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._sent - self.backlog

    async def connect(self) -> None:
        """Open the connection, and start to call `on_message`."""
        raise NotImplementedError

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one message, without waiting.

        Raises:
            LocalProtocolError: it is not UTF-8, which text has to be; nothing was sent.
        """
        if not self._is_open or self._frames is None:
            return
        if not (frame.isascii() or _is_utf8(frame)):
            rule = "jsonrpc.framing.not-utf-8"
            raise LocalProtocolError(rule, got=f"{len(frame)} bytes", expected=LOCAL_RULES[rule])
        self._frames.send_text(frame)
        if not self._is_receiving:
            self._flush()

    async def close(self) -> None:
        """Write what was sent, and end the connection."""
        if self._ending is None:
            self._is_open = False
            self._ending = asyncio.get_running_loop().create_task(self._end())
        # A task of its own, so that it continues when a caller is cancelled.
        await asyncio.shield(self._ending)

    def pause(self) -> None:
        """Stop reading until `resume`; frames that were read already may still be delivered."""
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            if not self._is_behind:
                self._transport.pause_reading()

    def resume(self) -> None:
        """Continue to read."""
        if self._is_paused:
            self._is_paused = False
            self._silent_since = now = self._loop.time()
            if self._began:
                self._began = now  # the rest of the message was not read meanwhile
            if self._is_behind:
                self._schedule_turn()
            elif self._transport is not None:
                self._transport.resume_reading()

    # -- the connection ----------------------------------------------------------------------

    def _begin(self, frames: WebSocketFrames) -> None:
        """Carry messages over a connection whose handshake has succeeded."""
        self._frames = frames
        frames.on_failure = self._on_failure
        transport = self._transport
        transport.set_write_buffer_limits(high=HIGH_WATER, low=LOW_WATER)
        if transport.get_extra_info("ssl_object") is not None:
            self._tls = TlsBacklog(
                self._loop,
                transport,
                HIGH_WATER,
                LOW_WATER,
                on_slow=ignore,
                on_drained=lambda: self.on_drained(),
            )
        self._silent_since = self._taken_since = self._loop.time()
        self._is_open = True

    def connection_made(self, transport: Any) -> None:
        """Keep the asyncio transport."""
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._lost = self._loop.create_future()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end, if a Close frame has not."""
        self._sent -= self.backlog
        if self._tls is not None:
            self._tls.close()
            self._tls = None
        self._transport = None
        self._is_open = False
        self._stop()
        if not self._lost.done():
            self._lost.set_result(None)
        if self._frames is not None:
            reason = getattr(error, "strerror", None) or "without a Close frame"
            loss = TransportError(f"the {self._other} ended the connection: {reason}")
            if self._is_behind and self._frames.side is CLIENT:
                # What arrived may hold answers; a client that is gone cannot be answered.
                self._loss = loss
                self.resume()
            else:
                self._report(loss)

    def resume_writing(self) -> None:
        """Report that the other side has read, unless `TlsBacklog` does."""
        if self._tls is None:
            self.on_drained()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process what was read."""
        if self._frames is not None:
            self._feed(self._frames, bytes(self._buffer[:nbytes]))

    def _feed(self, frames: WebSocketFrames, data: bytes | None) -> None:
        """Process what one turn may handle of what was read; the rest waits for the next one.

        `data` is None for a turn that continues another one.
        """
        reader = frames.reader
        self._is_receiving = True
        reader.frames_left = MAX_MESSAGES_PER_TURN
        try:
            if data is None:
                frames.receive_more()
            else:
                self._silent_since, self._has_pinged = self._loop.time(), False
                frames.receive_data(data)
            self._process_events()
        except Exception as error:  # noqa: BLE001  # a defect; other connections go on
            _log.error("internal error of a WebSocket connection\n%s", as_redacted(error))
            self._fail(CloseCode.INTERNAL_ERROR, "internal error")
        finally:
            self._is_receiving = False
        self._flush()
        self._note_end()
        parts = self._parts
        unfinished = len(reader.buffer) + (0 if parts is None else len(parts))
        if not unfinished and parts is None:
            self._began = 0.0
        elif not self._began or self.received != self._received_before:
            self._began, self._received_before = self._silent_since, self.received
        if unfinished != self._unfinished:
            self._unfinished = unfinished
            self._note_unfinished(unfinished)
        if self._is_behind or not reader.frames_left:
            self._note_turn(reader)

    def _note_turn(self, reader: _FrameReader) -> None:
        """Read nothing while frames wait, and then go on."""
        was_behind, self._is_behind = self._is_behind, reader.is_stopped
        transport = self._transport
        if self._is_behind:
            if not was_behind and not self._is_paused and transport is not None:
                transport.pause_reading()
            self._schedule_turn()
        elif was_behind:
            if self._loss is not None:
                self._report(self._loss)
            elif transport is not None and not self._is_paused:
                transport.resume_reading()

    def _schedule_turn(self) -> None:
        if not self._is_turn_due and not self._is_paused:
            self._is_turn_due = True
            self._loop.call_soon(self._take_next_turn)

    def _take_next_turn(self) -> None:
        self._is_turn_due = False
        frames = self._frames
        if frames is not None and self._is_behind and not self._is_paused:
            self._feed(frames, None)

    def _note_unfinished(self, size: int) -> None:
        """Note the number of bytes that are kept of an unfinished message."""

    def eof_received(self) -> bool:
        """Close: the two directions end together."""
        if self._frames is not None and not self._is_behind:
            self._frames.receive_eof()
            self._process_events()
            self._note_end()
        return False

    # -- frames ------------------------------------------------------------------------------

    def _process_events(self) -> None:
        frames = self._frames
        if frames is None:
            return
        for event in frames.events_received():
            if isinstance(event, Frame):
                self._process(event, frames)

    def _process(self, frame: Frame, frames: WebSocketFrames) -> None:
        if frame.opcode is Opcode.TEXT and frame.fin:
            self._receive(bytes(frame.data))
        elif frame.opcode is Opcode.TEXT or frame.opcode is Opcode.CONT:
            self._join(frame, frames)
        elif frame.opcode is Opcode.PING or frame.opcode is Opcode.PONG:
            self._count_control(frames)
        elif frame.opcode is Opcode.BINARY:
            self._fail(CloseCode.UNSUPPORTED_DATA, "messages are text, not binary")

    def _join(self, frame: Frame, frames: WebSocketFrames) -> None:
        if self._parts is None:
            self._parts, self._fragments = bytearray(), 0
        self._parts += frame.data
        self._fragments += 1
        if frame.fin:
            message, self._parts = bytes(self._parts), None
            self._receive(message)
        elif self._fragments >= MAX_FRAGMENTS:
            self._fail(CloseCode.MESSAGE_TOO_BIG, f"more than {MAX_FRAGMENTS} fragments")

    def _count_control(self, frames: WebSocketFrames) -> None:
        now = self._silent_since
        if now - self._control_since >= 1.0:
            self._control_since, self._control_frames = now, 0
        self._control_frames += 1
        if self._control_frames > MAX_CONTROL_FRAMES:
            self._fail(CloseCode.POLICY_VIOLATION, "too many control frames")

    def _receive(self, message: bytes) -> None:
        self.received += len(message) or 1
        self._deliver(message)
        if not (message.isascii() or _is_utf8(message)):
            self._fail(CloseCode.INVALID_DATA, "the text is not UTF-8")

    def _deliver(self, frame: Received, route: Any = None) -> None:
        if self._is_reported:
            return
        try:
            self.on_message(frame, route)
        except Exception as error:  # noqa: BLE001  # a failed callback stops no later frame
            log_raised(error, "websocket transport: on_message raised, frame dropped")

    # -- the end -----------------------------------------------------------------------------

    def _fail(self, code: int, reason: str) -> None:
        """End the connection because of what the other side sent."""
        frames = self._frames
        if frames is None or self._is_reported or frames.state is not State.OPEN:
            return
        frames.fail(code, reason)
        self._is_open = False
        what = f"the {self._other} sent what is not accepted: {reason}"
        self._report(TransportError(what))

    def reject(self, reason: str) -> None:
        """End the connection with 1008: what the other side sends breaks a rule of this one."""
        self._fail(CloseCode.POLICY_VIOLATION, reason)
        if not self._is_receiving:
            self._flush()

    def _on_failure(self, code: int) -> None:
        """Deliver what precedes a failure, before the Close frame is written."""
        self._process_events()
        if code == CloseCode.MESSAGE_TOO_BIG and self._limit is not None:
            frames, parts = self._frames, self._parts or b""
            if frames is not None and self._fragments < MAX_FRAGMENTS:
                size = head_size(self._limit)
                head = bytes(parts[:size]) + frames.unread_payload(size)
                self._deliver(Oversize(head[:size], None, self._limit))
        self._parts = None

    def _note_end(self) -> None:
        """Report the end that the last frames have brought, if they have."""
        frames = self._frames
        if frames is None or frames.state is State.OPEN:
            return
        self._is_open = False
        if frames.close_rcvd is not None:
            code = frames.close_rcvd.code
            if code in _NORMAL and frames.parser_exc is None:
                self._report(None)
            else:
                text = f"{code} {show(frames.close_rcvd.reason)}"
                self._report(TransportError(f"the {self._other} closed the connection: {text}"))
        elif frames.parser_exc is not None and not isinstance(frames.parser_exc, EOFError):
            text = f"the {self._other} broke the WebSocket protocol: {frames.parser_exc}"
            self._report(TransportError(text))

    def _flush(self) -> None:
        """Write what the library has for the other side."""
        frames, transport = self._frames, self._transport
        if frames is None or transport is None:
            return
        pieces = frames.data_to_send()
        if not pieces:
            return
        # The empty one, at the end, means to end the output.
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if data:
            self._sent += len(data)
            transport.write(data)
            if self._tls is not None:
                self._tls.note_write()
        if not pieces[-1]:
            self._end_output(transport)

    def _end_output(self, transport: Any) -> None:
        if not transport.can_write_eof():
            transport.close()
            return
        try:
            transport.write_eof()
        except OSError:  # the other side has reset the connection
            transport.abort()
            return
        if self._ending is None:
            # The other side closes, or this does.
            self._ending = self._loop.create_task(self._end())

    async def _end(self) -> None:
        frames = self._frames
        if frames is None:
            self._abort()
        else:
            if frames.state is State.OPEN:
                frames.send_close(self._close_code())
                self._flush()
            self._report(None)
            self.resume()  # the Close frame has to be read
            await self._wait_for_end()
            self._abort()
        if self._transport is not None:
            await asyncio.wait((self._lost,))

    async def _wait_for_end(self) -> None:
        """Wait while the other side reads, and then for its Close frame."""
        while self._transport is not None:
            written = self.written
            timeout = _CLOSE_TIMEOUT_S if self.backlog else _ANSWER_TIMEOUT_S
            await asyncio.wait((self._lost,), timeout=timeout)
            if self.written == written:
                return

    def _close_code(self) -> int:
        """Return the code of the Close frame that `close` sends."""
        return CloseCode.NORMAL_CLOSURE

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def lose(self, reason: str) -> None:
        """End the connection at once, with an error."""
        self._is_open = False
        self._report(TransportError(reason))
        self._abort()

    def _stop(self) -> None:
        """Release what a connection that has ended holds."""

    def _report(self, error: TransportError | None) -> None:
        """Report the end of the connection, once."""
        self._is_open = False
        if not self._is_reported:
            self._is_reported = True
            try:
                self.on_error(error)
            except Exception as error:  # noqa: BLE001  # the connection is still to be released
                log_raised(error, "websocket transport: on_error raised")

    # -- keep-alive --------------------------------------------------------------------------

    def check_rate(self, now: float, timeout: float) -> None:
        """End a connection whose unfinished message arrives too slowly; see `receive_limits`."""
        if not self._began or self._is_paused or self._is_behind:
            return
        if now - self._began >= receive_timeout(timeout, self._unfinished):
            self.reject("a message took too long")

    def check(self, now: float, keep_alive: float) -> None:
        """Ping a silent connection; lose one that is dead, or that does not read."""
        if not self._is_open or self._frames is None:
            return
        written, backlog = self.written, self.backlog
        if written != self._taken or not backlog:
            if backlog and written != self._taken:
                # It reads, though a ping may be at the end of what it has to read.
                self._silent_since = now
            self._taken, self._taken_since = written, now
        elif now - self._taken_since >= UNREAD_TIMEOUT_S:
            self.lose(f"the {self._other} has read nothing for {UNREAD_TIMEOUT_S:g} s")
            return
        if self._is_paused:
            self._silent_since = now
            return
        silence = now - self._silent_since
        if silence < keep_alive:
            return
        if not self._has_pinged:
            self._has_pinged = True
            self._silent_since = now - keep_alive
            self._frames.send_ping(b"")
            self._flush()
        elif silence >= keep_alive + PONG_TIMEOUT_S:
            self.lose(f"the {self._other} has not answered a ping for {PONG_TIMEOUT_S:g} s")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
