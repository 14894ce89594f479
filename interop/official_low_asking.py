"""How the low-level `Server` asks: by requests of its own, or by answers that are questions.

The SDK has the types of both, and leaves the rest to who uses this server. What was answered so
far travels in the state, as text that is not sealed: whatever is in it has to come back.
"""

from __future__ import annotations

import json
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import TypeAdapter

__all__ = ["Round", "ask", "come_back"]

# In every state: what a client must send back as it is, though it reads no word of it.
MARK: Final = 'Grüße, "世界"\t'
_answer: Final[TypeAdapter[Any]] = TypeAdapter(types.InputResponse)


class Round(Exception):
    """The call is answered with questions, and is made again."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("a round")
        self.result = result


async def ask(ctx: Any, params: Any, **asked: Any) -> dict[str, Any]:
    """Return the answers to questions, by the names they are asked under.

    Raises:
        Round: they are not there yet.
        MCPError: the client cannot be asked.
    """
    for request in asked.values():
        _check(ctx, request)
    if ctx.protocol_version != "2026-07-28":
        return {key: await _send(ctx, request) for key, request in asked.items()}
    answers = _carried(params) | (params.input_responses or {})
    missing = {key: request for key, request in asked.items() if key not in answers}
    if missing:
        raise Round(
            types.InputRequiredResult(input_requests=missing, request_state=_state(answers))
        )
    return answers


def come_back(ctx: Any, params: Any) -> str:
    """Return the state that was given out before, with nothing that was asked.

    Raises:
        Round: none was, and the revision has such a thing.
    """
    if params.request_state is None and ctx.protocol_version == "2026-07-28":
        raise Round(types.InputRequiredResult(request_state=MARK))
    return str(params.request_state)


def _carried(params: Any) -> dict[str, Any]:
    if params.request_state is None:
        return {}
    mark, answers = json.loads(params.request_state)
    if mark != MARK:
        raise MCPError(code=types.INVALID_PARAMS, message="That is not the state as it was.")
    return {key: _answer.validate_python(each) for key, each in answers.items()}


def _state(answers: dict[str, Any]) -> str:
    dumped = {
        key: each.model_dump(by_alias=True, mode="json", exclude_none=True)
        for key, each in answers.items()
    }
    return json.dumps([MARK, dumped], ensure_ascii=False)


async def _send(ctx: Any, request: Any) -> Any:
    kind: type[types.Result] = types.ElicitResult
    if isinstance(request, types.ListRootsRequest):
        kind = types.ListRootsResult
    elif isinstance(request, types.CreateMessageRequest):
        with_tools = request.params.tools is not None
        kind = types.CreateMessageResultWithTools if with_tools else types.CreateMessageResult
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, kind, metadata=related)


def _check(ctx: Any, request: Any) -> None:
    needed = types.ClientCapabilities()
    if isinstance(request, types.ListRootsRequest):
        needed.roots = types.RootsCapability()
    elif isinstance(request, types.CreateMessageRequest):
        tools = types.SamplingToolsCapability() if request.params.tools else None
        needed.sampling = types.SamplingCapability(tools=tools)
    else:
        is_page = isinstance(request.params, types.ElicitRequestURLParams)
        url = types.UrlElicitationCapability() if is_page else None
        needed.elicitation = types.ElicitationCapability(url=url)
    if not ctx.session.check_client_capability(needed):
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="The client cannot be asked.",
            data=data.model_dump(by_alias=True, mode="json", exclude_none=True),
        )
