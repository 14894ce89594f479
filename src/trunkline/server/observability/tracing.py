"""OpenTelemetry spans and durations of the operations of a server, with the `otel` extra.

Only opentelemetry-api is imported, when tracing is enabled; spans go where the SDK of the
application sends them, and nowhere without one.

The rules that live here, and only here:

* A span is named by the method and, if registered, the tool or prompt; its kind is SERVER.
                                                       [OpenTelemetry GenAI conventions, MCP]
* Its parent is the span in `_meta` of the request; a span that is current where the request is
  received, as that of an HTTP request, is linked. Without one in `_meta` the current span is the
  parent.                                              [MCP 2026-07-28, basic: `_meta`; SEP-414]
* Arguments, results, URIs as sent, texts of errors, ids of sessions and of tasks are not recorded.
  `record_content` adds the first four, redacted and cut.
* A value of `_meta` that is longer than W3C allows is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import decode, encode

from ... import __version__
from ...engine.observability.operations import Observer, add_observer
from ...errors import visible
from ...exception_text import one_line
from ...extras import install_command
from ...redaction import HIDDEN, conceal, redact
from ..dispatch.params import ToolCall
from .operations import DURATION_BUCKETS, ServerOperation

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics, trace
    from opentelemetry.baggage.propagation import W3CBaggagePropagator
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise ImportError(f"tracing needs opentelemetry-api: {install_command('otel')}") from None

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from ...jsonrpc.messages import ErrorObject
    from ..api.core import ServerCore

__all__ = ["Tracing", "enable_tracing"]

_SCOPE: Final = "trunkline.server"
# Keys of `_meta` that carry the context.                                            [SEP-414]
_CONTEXT_KEYS: Final = ("traceparent", "tracestate", "baggage")
# Characters of one of them: the limit of W3C Baggage, which is the longest.
_MAX_CONTEXT_CHARS: Final = 8192
# JSON of arguments or of a result that is recorded; of more than that, only the size.
_MAX_CONTENT_BYTES: Final = 16 * 1024
# Of a request id that is recorded; an id may have 1024.
_MAX_ID_CHARS: Final = 64


class _Trace:
    """What tracing keeps for one operation."""

    __slots__ = ("context", "span")

    def __init__(self, span: Span, context: Context) -> None:
        self.span = span
        self.context = context


class Tracing(Observer[ServerOperation]):
    """Records spans and durations with OpenTelemetry."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        *,
        client_context: bool,
        record_content: bool,
    ) -> None:
        self._tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)
        meter = metrics.get_meter(_SCOPE, __version__, meter_provider)
        self._duration = meter.create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="Time from receiving a request to sending its answer.",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self._client_context = client_context
        self._record_content = record_content
        self._propagators = (TraceContextTextMapPropagator(), W3CBaggagePropagator())

    def begin(self, operation: ServerOperation) -> None:
        """Start the span of an operation."""
        ambient = trace.get_current_span().get_span_context()
        context = self._received_context(operation)
        parent = trace.get_current_span(context).get_span_context()
        is_linked = ambient.is_valid and ambient != parent
        target = operation.tool or operation.prompt
        span = self._tracer.start_span(
            operation.method if target is None else f"{operation.method} {target}",
            context,
            trace.SpanKind.SERVER,
            {**_facts(operation), **_request_facts(operation)},
            links=[trace.Link(ambient)] if is_linked else None,
        )
        if self._record_content and span.is_recording():
            _record_request(span, operation)
        operation.trace = _Trace(span, trace.set_span_in_context(span, context))

    def _received_context(self, operation: ServerOperation) -> Context:
        context = otel_context.get_current()
        meta = operation.meta
        if self._client_context and meta:
            given = {key: meta[key] for key in _CONTEXT_KEYS if key in meta}
            carrier = {
                key: value
                for key, value in given.items()
                if isinstance(value, str) and len(value) <= _MAX_CONTEXT_CHARS
            }
            if carrier:
                for propagator in self._propagators:
                    context = propagator.extract(carrier, context)
        return context

    def enter(self, operation: ServerOperation) -> Callable[[], object] | None:
        """Make the span current."""
        if operation.trace is None:
            return None
        return partial(otel_context.detach, otel_context.attach(operation.trace.context))

    def end(self, operation: ServerOperation) -> None:
        """End the span, and record the duration."""
        found: _Trace | None = operation.trace
        if found is None:
            return
        span, error, ending = found.span, operation.error, _ending_facts(operation)
        if span.is_recording():
            span.set_attributes(ending)
            if operation.error_type is not None:
                span.set_status(trace.StatusCode.ERROR, self._description(error))
            if error is not None:
                span.set_attribute("rpc.response.status_code", str(error.code))
            elif self._record_content and operation.tool is not None:
                span.set_attribute("gen_ai.tool.call.result", _content(operation.result))
        span.end()
        self._duration.record(
            operation.seconds, {**_facts(operation), **ending}, context=found.context
        )

    def _description(self, error: ErrorObject | None) -> str | None:
        # It may quote an argument.
        return one_line(error.message) if error is not None and self._record_content else None


def enable_tracing(
    core: ServerCore,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    client_context: bool = True,
    record_content: bool = False,
) -> None:
    """Trace the operations of a server, on connections opened from now on.

    Raises:
        RuntimeError: they are traced already.
    """
    if any(isinstance(each, Tracing) for each in core.runtime.observers):
        raise RuntimeError(f"tracing of the server {core.name!r} is enabled already")
    tracing = Tracing(
        tracer_provider,
        meter_provider,
        client_context=client_context,
        record_content=record_content,
    )
    add_observer(core.runtime, tracing)


# Attributes


def _facts(operation: ServerOperation) -> dict[str, str]:
    """Return the attributes of spans and durations that are known when a request is received."""
    values = {
        "mcp.method.name": operation.method,
        "gen_ai.tool.name": operation.tool,
        "gen_ai.prompt.name": operation.prompt,
        "gen_ai.operation.name": "execute_tool" if operation.method == "tools/call" else None,
        "network.transport": operation.network_transport,
        "network.protocol.name": operation.network_protocol,
    }
    return {name: value for name, value in values.items() if value is not None}


def _request_facts(operation: ServerOperation) -> dict[str, str]:
    """Return the attributes of a span alone."""
    found = {}
    id = operation.asked.id
    if id is not None:
        found["jsonrpc.request.id"] = visible(str(redact(str(id))), kept="")[:_MAX_ID_CHARS]
    if operation.resource is not None:
        found["mcp.resource.uri"] = str(redact(operation.resource))
    if operation.principal is not None:
        # A digest: traces often leave the organisation, and names of users stay here.
        found["enduser.pseudo.id"] = operation.principal.key
        if operation.principal.tenant is not None:
            found["trunkline.tenant"] = operation.principal.tenant
    return found


def _ending_facts(operation: ServerOperation) -> dict[str, str]:
    """Return the attributes that are known at the end: `initialize` chooses the revision."""
    found = {}
    if operation.revision is not None:
        found["mcp.protocol.version"] = operation.revision
    if operation.error_type is not None:
        found["error.type"] = operation.error_type
    return found


# Content, by option


def _record_request(span: Span, operation: ServerOperation) -> None:
    params = operation.asked.params
    if operation.tool is not None and type(params) is ToolCall and params.arguments is not UNSET:
        shown = _without(operation.secret_arguments, params.arguments)
        span.set_attribute("gen_ai.tool.call.arguments", _content(shown))
    if operation.uri is not None:
        span.set_attribute("mcp.resource.uri", one_line(operation.uri))


def _without(secret: frozenset[str], arguments: Raw) -> Any:
    """Return the arguments of a call, those hidden whose type is a secret."""
    if not secret:
        return arguments
    try:
        given = decode(arguments, type=dict[str, Raw])
    except ValueError:
        return HIDDEN
    return {name: HIDDEN if name in secret else value for name, value in given.items()}


def _unpacked(value: Any) -> Any:
    """Return a value with the JSON in its texts decoded, as tools return it for old clients.

    Names that suggest a secret are found in members, not inside of a text.
    """
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return decode(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, dict):
        return {name: _unpacked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_unpacked(each) for each in value]
    return value


def _content(value: Any) -> str:
    """Return a value as JSON, credentials hidden."""
    try:
        text = encode(value)
        if len(text) > _MAX_CONTENT_BYTES:
            return f"{len(text)} bytes, not recorded"
        return encode(conceal(_unpacked(decode(text)))).decode()
    except (TypeError, ValueError, RecursionError) as error:
        return f"not recorded: {type(error).__name__}"
