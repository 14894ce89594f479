"""What HTTP has to know of tools: arguments that headers repeat, and calls that may be repeated.

The rules that live here, and only here:

* Over HTTP, a tool whose `x-mcp-header` annotations are faulty is left out of the list, and the
  log says why; the others stay.         [MCP 2026-07-28, basic/transports/streamable-http]
  In the revisions before, the annotations mean nothing.
* A tool may be called twice if its annotations say that it is idempotent, or only reads.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ...mcp.param_headers import InvalidParamHeader, ParamPath, param_headers
from ...redaction import show

if TYPE_CHECKING:
    from ...mcp.types import Tool

__all__ = ["ToolHeaders"]

_log: Final = logging.getLogger("trunkline.client")

# Tools that are remembered; a server decides how many it lists.
_MAX_TOOLS: Final = 10_000


class ToolHeaders:
    """What was read of the tools of one session."""

    def __init__(self) -> None:
        self._params: dict[str, tuple[ParamPath, ...]] = {}
        self._repeatable: set[str] = set()
        self._warned: set[str] = set()

    def attach(self, transport: Any) -> None:
        """Tell a transport of HTTP about tools; others do not ask."""
        if hasattr(transport, "param_headers"):
            transport.param_headers = self.of
            transport.is_idempotent = self.is_idempotent

    def of(self, tool: str) -> tuple[ParamPath, ...]:
        """Return the arguments of a tool that headers repeat."""
        return self._params.get(tool, ())

    def is_idempotent(self, tool: str) -> bool:
        """Return True if a tool is known to do nothing more when it is called twice."""
        return tool in self._repeatable

    def usable(self, tools: list[Tool], *, annotates: bool) -> list[Tool]:
        """Remember listed tools; return those that can be called over HTTP.

        `annotates` is True if the revision has annotations for headers.
        """
        for tool in tools:
            self._note_hints(tool)
        return [tool for tool in tools if self._take(tool)] if annotates else tools

    def _take(self, tool: Tool) -> bool:
        try:
            headers = param_headers(tool.input_schema)
        except InvalidParamHeader as error:
            self._params.pop(tool.name, None)
            if tool.name not in self._warned and len(self._warned) < _MAX_TOOLS:
                self._warned.add(tool.name)
                _log.warning("tool %s left out: %s", show(tool.name), error)
            return False
        if not headers:
            self._params.pop(tool.name, None)
        elif tool.name in self._params or len(self._params) < _MAX_TOOLS:
            self._params[tool.name] = headers
        return True

    def _note_hints(self, tool: Tool) -> None:
        hints = tool.annotations
        if (
            hints is not None
            and (hints.idempotent_hint is True or hints.read_only_hint is True)
            and len(self._repeatable) < _MAX_TOOLS
        ):
            self._repeatable.add(tool.name)
        else:
            self._repeatable.discard(tool.name)
