"""The transports of every MCP revision, and the custom ones of this library.

The specification defines stdio and one or two over HTTP, and allows custom transports. Ours are
marked `custom`: they carry any revision and follow the rules for custom transports.
"""

from __future__ import annotations

from typing import Final

from ..revisions import V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, Window
from ..rows import TransportRow

__all__ = ["POLLED", "RESUMED_STREAMS", "TRANSPORTS"]

# Revisions whose event streams can be resumed, and those whose server may close a stream early.
RESUMED_STREAMS: Final = Window(V2025_03_26, V2026_07_28)
POLLED: Final = Window(V2025_11_25, V2026_07_28)

GUARDED: Final = ("the Origin header is checked",)
ONE_PATH: Final = (
    "one path for everything",
    "each message is a POST of its own",
    "a client accepts JSON and event streams",
    *GUARDED,
)
RESUMED: Final = ("sessions", "a stream opened by GET", "streams resumed by Last-Event-ID")
ONE_LINE: Final = ("one message per line", "no line break inside a message", "UTF-8")

# One row per line, so that the table can be read beside the specification.
# fmt: off
TRANSPORTS: Final[tuple[TransportRow, ...]] = (
    TransportRow("stdio", "stream", "newline", connection_oriented=True, multiplexing=False, required=("the client starts the server", *ONE_LINE, "nothing but messages on stdin and stdout"), optional=("a log on stderr",), when=Window(until=V2026_07_28), doc="The client starts the server and uses its stdin and stdout.", anchor="2025-11-25 · basic/transports#stdio"),
    TransportRow("stdio", "stream", "newline", connection_oriented=True, multiplexing=False, required=("the client starts the server", *ONE_LINE, "nothing but messages on stdin and stdout", "a client cancels by notification"), optional=("a log on stderr", "the server is restarted after a crash"), when=Window(V2026_07_28), doc="The client starts the server and uses its stdin and stdout; the process is not a session.", anchor="2026-07-28 · basic/transports/stdio", adopt="Send no requests from the server and no responses from the client; send server/discover first if the server may be of the older era."),
    TransportRow("http+sse", "message", "sse", connection_oriented=True, multiplexing=False, required=("a GET that streams what the server sends", "a first event that names the URI to POST to", *GUARDED), when=Window(until=V2025_03_26), doc="The server sends on one event stream, the client by POST to the address in the first event.", anchor="2024-11-05 · basic/transports#http-with-sse"),
    TransportRow("http+sse", "message", "sse", connection_oriented=True, multiplexing=False, required=("a GET that streams what the server sends", "a first event that names the URI to POST to", *GUARDED), when=Window(V2025_03_26), status="deprecated", doc="The HTTP transport of 2024-11-05, kept for peers that support no other.", anchor="2026-07-28 · basic/transports/streamable-http#backward-compatibility", adopt="Serve streamable-http; keep this one only for peers that support no other."),
    TransportRow("streamable-http", "message", "http", connection_oriented=False, multiplexing=True, required=ONE_PATH, optional=(*RESUMED, "batches"), when=Window(V2025_03_26, V2025_06_18), doc="Each message is a POST, each answer JSON or an event stream; a GET opens a stream for unsolicited messages of the server.", anchor="2025-03-26 · basic/transports#streamable-http", adopt="Serve one path by POST and GET instead of an event stream with an address."),
    TransportRow("streamable-http", "message", "http", connection_oriented=False, multiplexing=True, required=(*ONE_PATH, "the protocol version is in a header"), optional=RESUMED, when=Window(V2025_06_18, V2025_11_25), doc="Each message is a POST, each answer JSON or an event stream; a GET opens a stream for unsolicited messages of the server.", anchor="2025-06-18 · basic/transports#streamable-http", adopt="Send MCP-Protocol-Version after initialize, and no batches."),
    TransportRow("streamable-http", "message", "http", connection_oriented=False, multiplexing=True, required=(*ONE_PATH, "the protocol version is in a header", "403 for an Origin that is not allowed"), optional=(*RESUMED, "a server that closes a connection, after which the client polls"), when=Window(V2025_11_25, V2026_07_28), doc="Each message is a POST, each answer JSON or an event stream; a GET opens a stream for unsolicited messages of the server.", anchor="2025-11-25 · basic/transports#streamable-http", adopt="Answer an Origin that is not allowed with 403; wait for the retry interval before reconnecting."),
    TransportRow("streamable-http", "message", "http", connection_oriented=False, multiplexing=True, required=(*ONE_PATH, "the protocol version is in a header", "403 for an Origin that is not allowed", "headers repeat the method and the name", "closing a response stream cancels"), optional=("comments that keep a stream alive",), when=Window(V2026_07_28), doc="Each message is a POST, each answer JSON or an event stream of that request; there are no sessions and no other streams.", anchor="2026-07-28 · basic/transports/streamable-http", adopt="Drop GET, DELETE, sessions and Last-Event-ID; send the request headers; treat a closed stream as a cancelled request, and retry a lost one with a new id."),
    TransportRow("tcp", "stream", "newline", connection_oriented=True, multiplexing=False, required=ONE_LINE, optional=("another framing, if both sides choose it",), custom=True, doc="The lines of stdio over a TCP connection.", anchor="2026-07-28 · basic/transports#custom-transports"),
    TransportRow("unix", "stream", "newline", connection_oriented=True, multiplexing=False, required=ONE_LINE, optional=("another framing, if both sides choose it",), custom=True, doc="The lines of stdio over a Unix domain socket.", anchor="2026-07-28 · basic/transports#custom-transports"),
    TransportRow("websocket", "message", "websocket", connection_oriented=True, multiplexing=False, required=("one message per text message", *GUARDED), custom=True, doc="One JSON-RPC message in each text message of a WebSocket.", anchor="2026-07-28 · basic/transports#custom-transports"),
)
# fmt: on
