"""MCP servers: what an author registers, served to any client in any revision.

    from trunkline import Server, Context

Nothing is imported until a name is used.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "app": "Server",
        "client_requests.client_request": (
            "AcceptedElicitation ClientRequest DeclinedElicitation ElicitationResult "
            "InvalidClientResponse MissingCapability"
        ),
        "client_requests.form": "ChoiceTitles",
        "client_requests.multi_round_trip": (
            "InvalidRequestState ReplayMismatch RequestStateTooLarge RoundTripLimitExceeded"
        ),
        "context": "Context",
        "extensions": "Extension",
        "handlers.arguments": "ParamHeader",
        "handlers.content": "AssistantMessage Audio File Image UserMessage",
        "handlers.output": "ToolOutput",
        "middleware": "ErrorMap RateLimit RequestLog RequestTimer ResultCache",
        "observability.json_log": "JsonFormatter",
        "observability.prometheus": "CONTENT_TYPE=METRICS_CONTENT_TYPE",
        "runtime.asgi": "AsgiApp",
        "runtime.http_listener": "HttpListener",
        "runtime.listener": "ServerListener",
        "settings": "CacheHint CapabilitySwitches ServerLimits SocketLimits TaskSettings",
        "stats": "ServerStats",
    },
)
