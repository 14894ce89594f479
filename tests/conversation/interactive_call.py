"""A call that needs input: elicitation, sampling or roots, in the way of its revision.

With a handshake the server sends requests meanwhile; since 2026-07-28 it answers with its
questions, and the request is sent again with the answers. A script sees questions come and
gives answers, in the order of the questions.
"""

from __future__ import annotations

from typing import Any

from tests.conversation.rig import Raw, is_reply

Json = dict[str, Any]


def accept(**content: Any) -> Json:
    """What a user gives who fills in a form."""
    return {"action": "accept", "content": content}


DECLINE = {"action": "decline"}
CANCEL = {"action": "cancel"}
SAMPLE = {
    "role": "assistant",
    "model": "model-1",
    "content": {"type": "text", "text": "Paris"},
    "stopReason": "endTurn",
}
FOLDERS = {"roots": [{"uri": "file:///home/script", "name": "home"}]}


class InteractiveCall:
    """One request, from its first sending to its result."""

    def __init__(self, raw: Raw, method: str, params: Json, **meta: Any) -> None:
        self.raw = raw
        self._method = method
        self._params = params
        self.arguments: Json = params.get("arguments", {})
        self._meta = meta
        # The ids under which it was sent, and what it was answered in between.
        self.ids = [raw.start(method, params, **meta)]
        self.rounds: list[Json] = []
        self._open: list[Json] = []
        # Requests of the server that are not about this one, or were answered.
        self._seen: set[Any] = {each["id"] for each in raw.received if "id" in each}

    @classmethod
    def of_tool(cls, raw: Raw, name: str, **arguments: Any) -> InteractiveCall:
        return cls(raw, "tools/call", {"name": name, "arguments": arguments})

    async def questions(self, count: int = 1) -> list[Json]:
        """Return what the server asks, once it has asked so much: methods and params."""
        if self.raw.is_new:
            found = list((await self.round())["inputRequests"].values())
        else:
            await self.raw.until(lambda _: len(self._unanswered()) >= count)
            self._open = found = self._unanswered()
        assert len(found) == count, found
        return found

    async def round(self) -> Json:
        """Return a result that asks, where results do."""
        reply = await self.raw.reply(self.ids[-1])
        assert "result" in reply, reply
        found: Json = reply["result"]
        assert found["resultType"] == "input_required", found
        self.rounds.append(found)
        return found

    def _unanswered(self) -> list[Json]:
        return [
            each
            for each in self.raw.received
            if "method" in each and "id" in each and each["id"] not in self._seen
        ]

    def answer(self, *answers: Json) -> None:
        """Answer what was asked last, in order."""
        if self.raw.is_new:
            asked = self.rounds[-1]
            keys = asked.get("inputRequests", {})
            self.send_again(dict(zip(keys, answers, strict=True)), asked["requestState"])
            return
        for question, given in zip(self._open, answers, strict=True):
            self._seen.add(question["id"])
            self.raw.send({"jsonrpc": "2.0", "id": question["id"], "result": given})

    def send_again(self, responses: Any, state: Any = None, **params: Any) -> None:
        """Send the request again, with whatever a script likes."""
        again = {**self._params, "inputResponses": responses, **params}
        if state is not None:
            again["requestState"] = state
        self.ids.append(self.raw.start(self._method, again, **self._meta))

    async def reply(self) -> Json:
        """Return what the request was answered when it was last sent."""
        return await self.raw.reply(self.ids[-1])

    async def result(self) -> Json:
        """Return its result, which asks for nothing more."""
        reply = await self.reply()
        assert "result" in reply, reply
        found: Json = reply["result"]
        if self.raw.is_new:
            assert found["resultType"] == "complete", found
        return found

    async def text(self) -> str:
        """Return the text of its result."""
        text: str = (await self.result())["content"][0]["text"]
        return text

    async def error(self) -> Json:
        """Return the error that it was answered with."""
        reply = await self.reply()
        assert "error" in reply, reply
        found: Json = reply["error"]
        return found

    def was_answered_once(self) -> bool:
        return all(sum(is_reply(each, id) for each in self.raw.received) == 1 for id in self.ids)
