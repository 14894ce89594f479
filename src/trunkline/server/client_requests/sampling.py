"""Sampling: builds the params of `sampling/createMessage` from what a handler has at hand.

A message is a str, a content block, an earlier result of the model, a pair of role and content, or
a list of these. The form in each revision (one block or several, with or without tools) is decided
in `mcp.shaping`, when the request is sent.

The rules that live here, and only here:

* A bare str or block has the role "user"; a tool use has the role "assistant". Adjacent ones form
  one message, except that tool results stay separate.
* A message with tool results contains nothing else, has the role "user", and has exactly one result
  for each tool use of the previous message. This is checked before sending, since clients reject
  anything else.                                     [MCP 2025-11-25, client/sampling]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.json import decode

from ...errors import LocalProtocolError
from ...jsonrpc.codec.tokenizer import pointer
from ...jsonrpc.messages import shown_tuple
from ...mcp.types import (
    AudioContent,
    CreateMessageRequestParams,
    CreateMessageResult,
    ImageContent,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    SamplingMessageContentBlock,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)
from ...redaction import show
from ..handlers.arguments import arguments_of
from ..handlers.error_messages import fault
from ..handlers.json_encoding import encoded

__all__ = ["Messages", "Tools", "sampling_params"]

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
Role: TypeAlias = Literal["user", "assistant"]
Block: TypeAlias = SamplingMessageContentBlock
Message: TypeAlias = (
    str
    | Block
    | SamplingMessage
    | CreateMessageResult
    | Mapping[str, Any]
    | tuple[Role, "str | Block | Iterable[str | Block]"]
)
Messages: TypeAlias = Message | Iterable[Message]
Tools: TypeAlias = Iterable[Tool | Mapping[str, Any] | Callable[..., Any]]

_BLOCKS: Final = (TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent)
_ROLES: Final = ("user", "assistant")


def sampling_params(
    messages: Messages,
    *,
    max_tokens: int,
    system: str | None = None,
    model_preferences: ModelPreferences | Mapping[str, Any] | str | Iterable[str] | None = None,
    temperature: float | None = None,
    stop_sequences: Iterable[str] | None = None,
    include_context: Literal["allServers", "none", "thisServer"] | None = None,
    metadata: Mapping[str, Any] | None = None,
    tools: Tools | None = None,
    tool_choice: ToolChoice | Literal["auto", "none", "required"] | None = None,
) -> CreateMessageRequestParams:
    """Return the params of `sampling/createMessage`.

    `model_preferences` may be the name of a model, or several in order of preference. `tools` may
    be functions: their schemas are sent; the handler calls them.

    Raises:
        TypeError: an argument has a wrong type or value.
        LocalProtocolError: tool uses and tool results do not match.
    """
    found = _messages(messages)
    if not found:
        raise TypeError("sampling needs at least one message")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise TypeError(f"max_tokens is an integer of 1 or more, not {show(max_tokens)}")
    choice = ToolChoice(tool_choice) if isinstance(tool_choice, str) else tool_choice
    params = CreateMessageRequestParams(
        max_tokens,
        found,
        include_context=include_context,
        metadata=None if metadata is None else dict(metadata),
        model_preferences=_preferences(model_preferences),
        stop_sequences=_several(stop_sequences),
        system_prompt=system,
        temperature=temperature,
        tool_choice=choice,
        tools=None if tools is None else [_tool(each) for each in tools],
    )
    params = _typed(params)
    _check_tools(params.messages)
    return params


def _several(value: Iterable[str] | None) -> list[str] | None:
    if value is None:
        return None
    return [value] if isinstance(value, str) else list(value)


def _typed(params: CreateMessageRequestParams) -> CreateMessageRequestParams:
    """Return params with checked member types: constructing a Struct checks none."""
    try:
        return decode(encoded(params), type=CreateMessageRequestParams)
    except ValidationError as error:
        place, text = fault(error)
        raise TypeError(f'invalid sampling params: "{place}": {text}') from None


# -- messages --------------------------------------------------------------------------------


def _messages(value: Any) -> list[SamplingMessage]:
    items = [value] if _is_one(value) else value
    if not isinstance(items, Iterable):
        raise _not_a_message(value)
    found: list[SamplingMessage] = []
    for bare, group in groupby(items, _bare):
        together = list(group)
        if bare is None:
            found += map(_message, together)
        else:
            found.append(SamplingMessage(_content(together), bare.role))
    return found


class _Bare(NamedTuple):
    """The grouping key of bare blocks."""

    role: Role
    is_result: bool

    def __repr__(self) -> str:
        return shown_tuple(self)


def _is_one(value: Any) -> bool:
    return isinstance(value, str | Mapping | Struct) or _is_pair(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and value[0] in _ROLES


def _bare(value: Any) -> _Bare | None:
    if not isinstance(value, (str, *_BLOCKS)):
        return None
    role: Role = "assistant" if isinstance(value, ToolUseContent) else "user"
    return _Bare(role, isinstance(value, ToolResultContent))


def _message(value: Any) -> SamplingMessage:
    if isinstance(value, SamplingMessage):
        return SamplingMessage(_content(value.content), value.role, meta=value.meta)
    if isinstance(value, CreateMessageResult):
        return SamplingMessage(_content(value.content), value.role)
    if isinstance(value, Mapping):
        return _message(_converted(value, SamplingMessage, "a message"))
    if _is_pair(value):
        return SamplingMessage(_content(value[1]), value[0])
    raise _not_a_message(value)


def _not_a_message(value: Any) -> TypeError:
    return TypeError(f"a message is a str, a block or a pair of role and str, not {show(value)}")


def _content(value: Any) -> Block | list[Block]:
    items = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    blocks = [_block(each) for each in items]
    if not blocks:
        raise TypeError("a message needs at least one content block")
    return blocks[0] if len(blocks) == 1 else blocks


def _block(value: Any) -> Block:
    if isinstance(value, str):
        return TextContent(value)
    if isinstance(value, _BLOCKS):
        return value
    raise TypeError(
        f"a content block is text, image, audio, tool use or tool result, not {show(value)}"
    )


# -- tools -----------------------------------------------------------------------------------


def _tool(value: Any) -> Tool:
    if isinstance(value, Tool):
        return value
    if isinstance(value, Mapping):
        return _converted(value, Tool, "a tool")
    if callable(value):
        taken = arguments_of(value)
        name = getattr(value, "__name__", taken.label)
        return Tool(taken.schema, name, description=taken.description or None)
    raise TypeError(f"a tool is a Tool, a function or a dict, not {show(value)}")


def _check_tools(messages: list[SamplingMessage]) -> None:
    used: set[str] = set()
    for place, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, list) else [message.content]
        uses = {each.id for each in blocks if isinstance(each, ToolUseContent)}
        results = [each.tool_use_id for each in blocks if isinstance(each, ToolResultContent)]
        where = pointer(("messages", place, "content"))
        if results and len(results) < len(blocks):
            raise LocalProtocolError(
                "mcp.sampling.results-alone",
                where=where,
                expected="a message with tool results to contain nothing else",
            )
        if sorted(results) != sorted(used) or (results and message.role != "user"):
            raise _unmatched(where)
        used = uses
    if used:
        raise _unmatched(pointer(("messages",)))


def _unmatched(where: str) -> LocalProtocolError:
    return LocalProtocolError(
        "mcp.sampling.results-match",
        where=where,
        expected="a user message with one result for each tool use of the message before",
    )


# -- other arguments -------------------------------------------------------------------------


def _preferences(value: Any) -> ModelPreferences | None:
    if value is None:
        return None
    if isinstance(value, ModelPreferences):
        return value
    if isinstance(value, Mapping):
        return _converted(value, ModelPreferences, "model_preferences")
    names = [value] if isinstance(value, str) else list(value)
    return ModelPreferences(
        hints=[each if isinstance(each, ModelHint) else ModelHint(each) for each in names]
    )


def _converted(value: Mapping[str, Any], kind: type[S], what: str) -> S:
    try:
        return convert(value, kind)
    except ValidationError as error:
        place, text = fault(error)
        raise TypeError(f'{what}: "{place}": {text}' if place else f"{what}: {text}") from None
