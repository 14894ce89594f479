"""Method-specific msgspec Structs with the fields of the official schemas.

They stand for the models a dialect hands to the codec, so that the typed depth does the work the
official models do: the same members, the same unions, values as plain dicts where theirs are.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType, field

Object = dict[str, Any]
Maybe = Object | UnsetType


class Icon(Struct, rename="camel"):
    """An icon offered for display."""

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class Implementation(Struct, rename="camel"):
    """Name and version of a client or server."""

    name: str
    version: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    website_url: str | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET


class RootsCapability(Struct, rename="camel"):
    """What a client offers about roots."""

    list_changed: bool | UnsetType = UNSET


class ElicitationCapability(Struct):
    """Which modes of elicitation a client offers."""

    form: Maybe = UNSET
    url: Maybe = UNSET


class SamplingCapability(Struct):
    """What a client offers about sampling."""

    context: Maybe = UNSET
    tools: Maybe = UNSET


class ClientCapabilities(Struct):
    """What a client offers."""

    experimental: dict[str, Object] | UnsetType = UNSET
    extensions: dict[str, Object] | UnsetType = UNSET
    roots: RootsCapability | UnsetType = UNSET
    sampling: SamplingCapability | UnsetType = UNSET
    elicitation: ElicitationCapability | UnsetType = UNSET
    tasks: Maybe = UNSET


class InitializeParams(Struct, rename="camel"):
    """Params of initialize."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation
    meta: Maybe = field(default=UNSET, name="_meta")


class TaskMetadata(Struct):
    """How long a task is kept."""

    ttl: int | UnsetType = UNSET


class CallToolParams(Struct):
    """Params of tools/call in the handshake revisions."""

    name: str
    arguments: Maybe = UNSET
    task: TaskMetadata | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


class RequestMeta(Struct):
    """The reserved members of `_meta` that a 2026-07-28 request carries."""

    protocol_version: str = field(name="io.modelcontextprotocol/protocolVersion")
    capabilities: ClientCapabilities = field(name="io.modelcontextprotocol/clientCapabilities")
    client_info: Implementation | UnsetType = field(
        default=UNSET, name="io.modelcontextprotocol/clientInfo"
    )
    log_level: str | UnsetType = field(default=UNSET, name="io.modelcontextprotocol/logLevel")
    progress_token: str | int | UnsetType = field(default=UNSET, name="progressToken")


class PerRequestCallToolParams(Struct, rename="camel"):
    """Params of tools/call in 2026-07-28."""

    name: str
    meta: RequestMeta = field(name="_meta")
    arguments: Maybe = UNSET
    input_responses: Maybe = UNSET
    request_state: str | UnsetType = UNSET


class ListToolsParams(Struct):
    """Params of tools/list."""

    cursor: str | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


class ProgressParams(Struct, rename="camel"):
    """Params of notifications/progress."""

    progress_token: str | int
    progress: float
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


class Annotations(Struct, rename="camel"):
    """For whom a content block is, and how much it matters."""

    audience: list[Literal["user", "assistant"]] | UnsetType = UNSET
    priority: float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class _Block(Struct, tag_field="type", rename="camel", kw_only=True):
    annotations: Annotations | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


class TextContent(_Block, tag="text", kw_only=True):
    """Text for a model."""

    text: str


class ImageContent(_Block, tag="image", kw_only=True):
    """An image in base64."""

    data: str
    mime_type: str


class AudioContent(_Block, tag="audio", kw_only=True):
    """Sound in base64."""

    data: str
    mime_type: str


class ResourceLink(_Block, tag="resource_link", kw_only=True):
    """A resource named but not included."""

    name: str
    uri: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET


class ResourceContents(Struct, rename="camel"):
    """A resource as text or as base64."""

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


class EmbeddedResource(_Block, tag="resource", kw_only=True):
    """A resource included."""

    resource: ResourceContents


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolResult(Struct, rename="camel"):
    """Result of tools/call."""

    content: list[ContentBlock]
    structured_content: Maybe = UNSET
    is_error: bool = False
    meta: Maybe = field(default=UNSET, name="_meta")


class ToolAnnotations(Struct, rename="camel"):
    """Hints about what a tool does."""

    title: str | UnsetType = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class ToolExecution(Struct, rename="camel"):
    """How a tool may be run."""

    task_support: Literal["forbidden", "optional", "required"] | UnsetType = UNSET


class Tool(Struct, rename="camel"):
    """A tool a server offers; its schemas are dicts, as in the official models."""

    name: str
    input_schema: Object
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    execution: ToolExecution | UnsetType = UNSET
    output_schema: Maybe = UNSET
    icons: list[Icon] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


class ToolsResult(Struct, rename="camel"):
    """Result of tools/list."""

    tools: list[Tool]
    next_cursor: str | UnsetType = UNSET
    meta: Maybe = field(default=UNSET, name="_meta")


PARAMS: Final[dict[str, dict[str, type[Struct]]]] = {
    "2025-11-25": {
        "initialize": InitializeParams,
        "tools/list": ListToolsParams,
        "tools/call": CallToolParams,
        "notifications/progress": ProgressParams,
    },
    "2026-07-28": {
        "tools/list": ListToolsParams,
        "tools/call": PerRequestCallToolParams,
    },
}
"""Shape of the params, by revision and method."""

RESULTS: Final[dict[str, type[Struct]]] = {"tools/list": ToolsResult, "tools/call": ToolResult}
"""Shape of the result, by the method of the request it answers."""
