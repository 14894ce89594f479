"""A server in one revision of MCP: its methods, capabilities and the form of its results.

A `ServerRevision` is made once per revision, on first use. Each message is assigned one, so that
other code does not test for revisions. The methods come from the rows of the specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import decode, encode
from msgspec.structs import replace

from ...jsonrpc.codec.codec import Codec
from ...jsonrpc.error_codes import named_error
from ...jsonrpc.limits import TransportName
from ...jsonrpc.messages import ErrorObject
from ...jsonrpc.policy import Policy
from ...mcp.extensions import declared_in, has_extensions
from ...mcp.meta import SERVER_INFO, WRAPPED, Caller, required_keys
from ...mcp.shaping import narrow, narrowing
from ...mcp.tables import requires, result_types
from ...mcp.types import (
    CallToolResult,
    DiscoverResult,
    InitializeResult,
    InputRequiredResult,
    LoggingMessageNotificationParams,
    ServerCapabilities,
    ServerCapabilitiesPrompts,
    ServerCapabilitiesResources,
    ServerCapabilitiesTasks,
    ServerCapabilitiesTasksRequests,
    ServerCapabilitiesTasksRequestsTools,
    ServerCapabilitiesTools,
    TextContent,
)
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import capability, methods
from ...spec.mcp.behaviour import BAD_ARGUMENTS_ARE_RESULTS, MISSING_CAPABILITIES_ARE_RESULTS
from ...spec.mcp.meta import LOG_LEVELS
from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from ...spec.types import type_
from ..handlers.output import Output
from ..settings import CacheHint
from .params import PARAMS

if TYPE_CHECKING:
    from ..api.core import ServerCore
    from .connection import Connection
    from .request import MethodHandler

__all__ = ["LEVELS", "ServerRevision"]

# Severity by level, from 0.
LEVELS: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LOG_LEVELS)}

# Of a page of a list in revisions with a handshake: hundreds of tools with long schemas, and less
# than clients limit a message to.
MAX_PAGE_BYTES: Final = 512 * 1024

# The capability of a server with tasks, where tasks are not an extension.
_TASKS: Final = ServerCapabilitiesTasks(
    cancel={},
    list={},
    requests=ServerCapabilitiesTasksRequests(ServerCapabilitiesTasksRequestsTools({})),
)


class ServerRevision:
    """One server in one revision; called `rev` where it is passed around."""

    def __init__(self, core: ServerCore, revision: str, served: dict[str, MethodHandler]) -> None:
        self.core = core
        self.revision = revision
        self.policy: Policy = core.policy.replace(revision=revision)
        rows = [row for row in methods(revision) if "client" in row.senders]
        # A revision has a handshake if it has `initialize`.
        self.has_handshake = any(row.name == "initialize" for row in rows)
        # Methods of an extension are served if the extension was added.
        self._own_methods: dict[str, MethodHandler] = {
            row.name: served[row.name]
            for row in rows
            if row.kind == "request"
            and row.form == "wire"
            and row.name in served
            and not row.extension
            and core.catalog.offers(row.capability)
        }
        self.has_extensions = has_extensions(revision)
        # The keys that `_meta` has in every request.
        self.required_meta = required_keys(revision)
        self.methods: dict[str, MethodHandler] = {}
        self.refresh()
        # Whether questions are sent inside results, and answers come as params.
        self.asks_in_results = InputRequiredResult in result_types("tools/call", revision)
        # Many clients of these revisions read the first page only.
        self.page_bytes = MAX_PAGE_BYTES if self.has_handshake else None
        self._codecs: dict[str, Codec] = {}
        self._info = narrow(core.info, revision)
        # Whether each result carries `resultType` and the server's `_meta`.
        self._says_type = "resultType" in requires("CallToolResult", revision)
        self._narrow_tool_result = narrowing(CallToolResult, revision, absent=("result_type",))
        self._caches = "ttlMs" in requires("ListToolsResult", revision)
        self._own_meta = {SERVER_INFO: Raw(encode(self._info))} if self._says_type else {}
        self.meta: dict[str, Any] | None = self._own_meta or None
        self._logs = core.catalog.offers("logging")
        logging = capability("logging", revision, "server")
        # A deprecated capability is declared only where it is of use.
        self._always_declares_logging = core.catalog.always_logs or (
            logging is not None and logging.status != "deprecated"
        )
        self._structured = _structured(revision)
        self._failures_are_errors = self.policy.tool_failures == "error"
        # Whether invalid arguments of a tool give a result, not an error.
        self.bad_arguments_are_results = (
            not self._failures_are_errors and BAD_ARGUMENTS_ARE_RESULTS.holds(revision)
        )
        # The same of a tool that asks what its client cannot be asked.
        self.missing_capabilities_are_results = (
            not self._failures_are_errors and MISSING_CAPABILITIES_ARE_RESULTS.holds(revision)
        )

    def __repr__(self) -> str:
        return f"<ServerRevision of {self.core.name!r} in {self.revision}>"

    def refresh(self) -> None:
        """Update the methods of extensions; those of tasks need a revision with extensions."""
        added = self.core.extension_methods
        if not self.has_extensions and TASKS in self.core.extensions:
            tasks = self.core.extensions[TASKS].extension.methods
            added = {name: serve for name, serve in added.items() if name not in tasks}
        self.methods = {**added, **self._own_methods}

    def codec(self, transport: TransportName) -> Codec:
        """Return the codec for requests of this revision."""
        found = self._codecs.get(transport)
        if found is None:
            found = Codec(self.policy, expect="calls", transport=transport, params=PARAMS)
            self._codecs[transport] = found
        return found

    # -- results -----------------------------------------------------------------------------

    def narrowed(self, value: Any) -> Any:
        """Return a value without the fields that this revision does not have."""
        return narrow(value, self.revision)

    def result(self, value: Any) -> Any:
        """Return a result as it is sent in this revision."""
        value = narrow(value, self.revision)
        if self._says_type:
            meta = self.meta if value.meta is None else {**self._own_meta, **value.meta}
            # Other results have their type as a constant.
            if "result_type" in value.__struct_fields__:
                return replace(value, meta=meta, result_type="complete")
            return replace(value, meta=meta)
        return value

    def tool_result(self, value: CallToolResult, output: Output) -> CallToolResult:
        """Return the result of a tool as it is sent in this revision."""
        structured = value.structured_content
        if structured is not UNSET and self._structured == "object":
            if output.wraps:
                value = _wrapped(value, structured)
            elif not _is_object(structured):
                # It has no output schema, and this revision allows only objects.
                value = replace(value, structured_content=UNSET)
        if value.meta is None and self._says_type:
            # As `result` does, without a look at each field: this is the hot path.
            if self._narrow_tool_result is not None:
                value = self._narrow_tool_result(value)
            return CallToolResult(
                value.content,
                meta=self.meta,
                is_error=value.is_error,
                result_type="complete",
                structured_content=value.structured_content,
            )
        if not self._says_type and type(value) is CallToolResult and value.result_type is None:
            # As above.
            narrowed = self._narrow_tool_result
            return value if narrowed is None else narrowed(value)
        return self.result(value)  # type: ignore[no-any-return]  # the type of the argument

    def failed_tool(self, value: CallToolResult) -> CallToolResult | ErrorObject:
        """Return the result or the error of a failed tool, as the policy says."""
        if not self._failures_are_errors:
            return self.result(value)  # type: ignore[no-any-return]  # the type of the argument
        block = value.content[0]
        text = block.text if isinstance(block, TextContent) else None
        return named_error(ErrorKind.TOOL_EXECUTION_FAILED, policy=self.policy, message=text)

    def output_schema(self, output: Output) -> dict[str, Any] | None:
        """Return the output schema of a tool as this revision lists it."""
        schema = output.wrapped if self._structured == "object" else output.schema
        return schema

    def empty(self) -> Any:
        """Return an empty result."""
        return {"resultType": "complete", "_meta": self.meta} if self._says_type else {}

    def tail(self, cache: CacheHint) -> bytes:
        """Return the JSON members at the end of each page of a list, after a comma."""
        if not self._says_type:
            return b""
        members: dict[str, Any] = {"resultType": "complete"}
        if self._caches:
            members |= {"ttlMs": cache.milliseconds, "cacheScope": cache.scope}
        members["_meta"] = self.meta
        return b"," + encode(members)[1:-1]

    def cached(self, result: Any, cache: CacheHint) -> Any:
        """Return a result with its cache hint, if the revision has that."""
        if not self._caches:
            return result
        return replace(result, ttl_ms=cache.milliseconds, cache_scope=cache.scope)

    # -- negotiation -------------------------------------------------------------------------

    def capabilities(self) -> ServerCapabilities:
        """Return the capabilities in this revision: what is not switched off."""
        core = self.core
        changes = True if core.options.list_changed else None
        completes = core.catalog.has_completions and capability(
            "completions", self.revision, "server"
        )
        declared = narrow(
            ServerCapabilities(
                tools=ServerCapabilitiesTools(list_changed=changes)
                if core.catalog.offers("tools")
                else None,
                prompts=ServerCapabilitiesPrompts(list_changed=changes)
                if core.catalog.offers("prompts")
                else None,
                resources=ServerCapabilitiesResources(
                    list_changed=changes, subscribe=True if core.options.subscribe else None
                )
                if core.catalog.offers("resources")
                else None,
                completions={} if completes else None,
                logging={} if self._declares_logging() else None,
                experimental=dict(core.options.experimental or {}) or None,
                tasks=_TASKS if TASKS in core.extensions else None,
            ),
            self.revision,
        )
        # Not narrowed: in `initialize` they are declared too.
        extensions = declared_in(self.revision, core.extension_settings())
        return replace(declared, extensions=extensions) if extensions else declared

    def _declares_logging(self) -> bool:
        return self._logs and (self._always_declares_logging or self.core.can_log)

    def initialized(self) -> InitializeResult:
        """Return the result of `initialize`."""
        return InitializeResult(
            self.capabilities(),
            self.revision,
            self._info,
            instructions=self.core.options.instructions or None,
        )

    def discovered(self) -> DiscoverResult:
        """Return the result of `server/discover`."""
        cache = self.core.options.cache
        return DiscoverResult(
            cache.scope,
            self.capabilities(),
            list(self.core.revisions),
            cache.milliseconds,
            meta=self.meta,
            instructions=self.core.options.instructions or None,
        )

    # -- logging -----------------------------------------------------------------------------

    def log_params(
        self,
        connection: Connection,
        caller: Caller | None,
        level: str,
        data: Any,
        logger: str | None,
    ) -> LoggingMessageNotificationParams | None:
        """Return the params of a log message, or None if the client does not want the level, or the
        server does not log to clients.

        Raises:
            ValueError: the level is unknown; the text lists the levels.
        """
        rank = _rank(level)
        if not self._logs:
            return None
        wanted: str | None
        if self.has_handshake:
            session = connection.session
            wanted = None if session is None else session.log_level
        else:
            wanted = None if caller is None else caller.log_level
        if wanted is None or rank < LEVELS[wanted]:
            return None
        named = logger or self.core.name
        return LoggingMessageNotificationParams(data, level, logger=named)  # type: ignore[arg-type]  # ranked above


def _rank(level: str) -> int:
    rank = LEVELS.get(level)
    if rank is None:
        raise ValueError(f"unknown log level {level!r}; levels are {', '.join(LEVELS)}")
    return rank


def _structured(revision: str) -> str:
    """Return what `structuredContent` may be: "nothing", "object" or "any"."""
    view = type_("CallToolResult", revision)
    found = None if view is None else view.fields.get("structuredContent")
    if found is None:
        return "nothing"
    return "any" if found.type == "any" else "object"


def _wrapped(value: CallToolResult, structured: Any) -> CallToolResult:
    """Return a result with its value as an object, and a mark where the text is another."""
    written = bytes(structured) if isinstance(structured, Raw) else encode(structured)
    shown = decode(written) if written[:1] == b'"' else written.decode()
    block = value.content[0] if len(value.content) == 1 else None
    meta = value.meta
    if not isinstance(block, TextContent) or block.text != shown:
        meta = {**(meta or {}), WRAPPED: True}
    return replace(value, structured_content={"result": structured}, meta=meta)


def _is_object(value: Any) -> bool:
    # Raw JSON comes from our own encoder: its first byte tells its type.
    return memoryview(value)[0] == ord("{") if isinstance(value, Raw) else isinstance(value, dict)
