"""The other end of a client in the same process, that answers with fixed bytes or not at all.

What a call then costs is the client's cost. In the handshake era only.
"""

from __future__ import annotations

import json
from typing import Any, Final

from trunkline import memory_pair

REVISION: Final = "2025-11-25"

_RESULT: Final = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"hi"}]}}'


class Deaf:
    """The other end of a client's connection: answers `echo` with fixed bytes, `hold` never."""

    def __init__(self) -> None:
        self.client_end, self._end = memory_pair()
        self._end.on_message = self._receive

    async def connect(self) -> None:
        """Begin to answer."""
        await self._end.connect()

    def _receive(self, frame: Any, _route: Any) -> None:
        # Found by hand: reading the whole message would cost as much as the client does.
        if b'"hold"' in frame:
            return
        if b'"tools/call"' in frame:
            begin = frame.index(b'"id":') + 5
            self._end.send(_RESULT % int(frame[begin : frame.index(b",", begin)]))
            return
        message = json.loads(frame)
        if "id" in message:
            info = {"name": "deaf", "version": "1"}
            result = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": info}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self._end.send(json.dumps(answer).encode())
