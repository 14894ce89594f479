"""The stand-in for the API of a model: a server on loopback that follows a script.

In each turn the model calls the next tool of the script, by whatever name the host offers it; with
no more calls to make, or none of its tools offered, it says that it is done. The number of results
in a request says how far the conversation is, so the model keeps nothing between requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from .dialects import DIALECTS, Asked, Call, Reply

__all__ = ["DONE", "SCRIPT", "Model", "Step", "reply_to"]

# What the model says at the end.
DONE: Final = "All four tools were called."
# A list for those who ask which models there are, in the forms of OpenAI, Anthropic and Google.
MODELS: Final = {
    "object": "list",
    "data": [{"id": "scripted", "object": "model", "type": "model", "created": 1}],
    "models": [],
    "has_more": False,
}


class Step(NamedTuple):
    """One call of the script, and what has to be in the result that the host hands to the model."""

    tool: str
    answer: str
    arguments: Mapping[str, Any] = MappingProxyType({})


LAMPS: Final = MappingProxyType({"item": "lamps"})
# The tools of `warehouse.py`, in order.
SCRIPT: Final = (
    Step("stock_level", "12 lamps in stock", LAMPS),
    Step("order_item", "not ordered: ", LAMPS),
    Step("count_shelves", "36 items on 3 shelves"),
    Step("audit_books", "the books are locked"),
)


def reply_to(asked: Asked, script: Sequence[Step] = SCRIPT) -> Reply:
    """Return what the model says to a request."""
    turn = len(asked.results)
    if turn >= len(script):
        return Reply(DONE)
    step = script[turn]
    # Hosts put the name of the server before that of the tool.
    for name, namespace in asked.tools.items():
        if name.endswith(step.tool):
            return Reply(call=Call(f"call_{turn + 1}", name, dict(step.arguments), namespace))
    return Reply(DONE)


class Model:
    """The server, on a free port, for the length of a `with` block."""

    def __init__(self) -> None:
        # Results that the host handed to the model, of the longest conversation.
        self.results: list[str] = []
        # Paths of requests that no dialect knows, and names of tools that were offered.
        self.other_requests: list[str] = []
        self.offered: set[str] = set()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._listener.daemon_threads = True

    @property
    def url(self) -> str:
        """Where hosts find it, without a path."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    def __enter__(self) -> Model:
        Thread(target=self._listener.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        """Return the content type and the text of a response to a POST."""
        plain, _, _ = path.partition("?")
        for dialect in DIALECTS:
            if plain.endswith(dialect.path) or (":" in plain and dialect.path in plain):
                asked = dialect.read(path, body)
                self.offered.update(asked.tools)
                if len(asked.results) >= len(self.results):
                    self.results = asked.results
                reply = reply_to(asked)
                if asked.is_streamed:
                    return "text/event-stream", "".join(dialect.events(body, reply))
                return "application/json", json.dumps(dialect.document(body, reply))
        self.other_requests.append(plain)
        # Hosts ask how many tokens a request has, and send events of their own.
        return "application/json", json.dumps({"input_tokens": 1, "totalTokens": 1})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *arguments: object) -> None:
                pass

            def do_GET(self) -> None:
                self._send("application/json", json.dumps(MODELS))

            def do_HEAD(self) -> None:
                self._send("application/json", "")

            def do_POST(self) -> None:
                try:
                    body = json.loads(self._body() or b"{}")
                except ValueError:
                    body = {}
                self._send(*model.answer(self.path, body if isinstance(body, dict) else {}))

            def _body(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                body = b""
                while size := int(self.rfile.readline().partition(b";")[0], 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def _send(self, kind: str, text: str) -> None:
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
