"""Registered tools, resources, templates, prompts and completers.

An entry holds its handler, how it is called, and how it is listed. It is independent of
connections and revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from ...mcp.types import (
    Annotations,
    Icon,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
    ToolAnnotations,
    ToolExecution,
)
from ..handlers.arguments import Arguments
from ..handlers.output import Output
from ..settings import CacheHint

if TYPE_CHECKING:
    from ...engine.access.guard import Guard
    from ...mcp.param_headers import ParamPath
    from .uri_template import RequestedUri, UriTemplate

__all__ = ["Completer", "Entry", "PromptEntry", "ResourceEntry", "ToolEntry"]


# `execution` of a tool, in the revision that has it.
_TASK_SUPPORT: Final[dict[str, ToolExecution | None]] = {
    "never": None,  # the same as "forbidden"
    "optional": ToolExecution("optional"),
    "required": ToolExecution("required"),
}


class Entry(Struct, kw_only=True, eq=False):
    """What all entries have."""

    name: str
    # The `ServerCore` it was registered with, also where that server is mounted.
    owner: Any
    arguments: Arguments
    title: str | None = None
    description: str = ""
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = None
    # Called on the event loop, not on a thread.
    inline: bool = False
    timeout: float | None = None
    cache: CacheHint | None = None
    # Who may use and see it; None is everyone.
    guard: Guard | None = None
    # The servers it was mounted through, the outermost first, and its name before.
    path: tuple[Any, ...] = ()
    own_name: str = ""

    @property
    def on_thread(self) -> bool:
        """Whether the handler would block the event loop."""
        return not (self.inline or self.arguments.is_async)

    @property
    def is_tool(self) -> bool:
        """Whether it is a tool."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class ToolEntry(Entry, kw_only=True, eq=False):
    """A tool."""

    output: Output
    annotations: ToolAnnotations | None = None
    # A JSON Schema in place of the signature: listed as it is, checked by `check`.
    input_schema: dict[str, Any] | None = None
    check: Any = None
    # The arguments that HTTP headers repeat.
    param_headers: tuple[ParamPath, ...] = ()
    deprecated: str = ""
    # Whether calls may run as tasks, and whether they become one at once or when the handler
    # awaits `become_task`.
    task: Literal["never", "optional", "required"] = "never"
    task_start: Literal["call", "handler"] = "call"
    # Whether texts are read as the values that they say; None as the server does.
    coerces: bool | None = None

    @property
    def is_tool(self) -> bool:
        """Whether it is a tool."""
        return True

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.arguments.schema if self.input_schema is None else self.input_schema

    def row(self, output_schema: dict[str, Any] | None) -> Tool:
        """Return the tool as it is listed."""
        description = self.description
        if self.deprecated:
            description = f"Deprecated: {self.deprecated} {description}".strip()
        return Tool(
            self.schema,
            self.name,
            meta=self.meta,
            annotations=self.annotations,
            description=description or None,
            execution=_TASK_SUPPORT[self.task],
            icons=self.icons,
            output_schema=output_schema,
            title=self.title or None,
        )


class ResourceEntry(Entry, kw_only=True, eq=False):
    """A resource, or a resource template."""

    uri: str
    template: UriTemplate | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None
    # Whether values of the template that lead out of a folder reach the handler.
    unsafe: bool = False
    # Whether the URI stays as it is where the server is mounted with a prefix.
    fixed_uri: bool = False
    # The URI that it was registered with, if it was mounted.
    own_uri: str = ""

    def match(self, uri: RequestedUri) -> dict[str, str] | None:
        """Return the values of the template in `uri`, or None if it does not match."""
        return None if self.template is None else self.template.match(uri, safe=not self.unsafe)

    def row(self) -> Resource | ResourceTemplate:
        """Return the resource, or the template, as it is listed."""
        shared: dict[str, Any] = {
            "meta": self.meta,
            "annotations": self.annotations,
            "description": self.description or None,
            "icons": self.icons,
            "mime_type": self.mime_type or None,
            "title": self.title or None,
        }
        if self.template is not None:
            return ResourceTemplate(self.name, self.uri, **shared)
        return Resource(self.name, self.uri, size=self.size, **shared)


class PromptEntry(Entry, kw_only=True, eq=False):
    """A prompt."""

    def row(self) -> Prompt:
        """Return the prompt as it is listed."""
        properties: Mapping[str, Any] = self.arguments.schema.get("properties", {})
        rows = [
            PromptArgument(
                name,
                description=properties.get(name, {}).get("description"),
                required=name in self.arguments.required,
                title=properties.get(name, {}).get("title"),
            )
            for name in self.arguments.names
        ]
        return Prompt(
            self.name,
            meta=self.meta,
            arguments=rows or None,
            description=self.description or None,
            icons=self.icons,
            title=self.title or None,
        )


class Completer(Entry, kw_only=True, eq=False):
    """Completes one argument of a prompt or of a URI template."""
