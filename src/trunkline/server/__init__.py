"""MCP servers: what an author registers, served to any client in any revision.

    from trunkline import Server, Context

Nothing is imported until a name is used.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".accounts.shares": "ClientShares",
        ".engine.limits": "ServerLimits SocketLimits TaskSettings",
        "api.app": "Server",
        "api.middleware": "ErrorMap RateLimit RequestLog RequestTimer ResultCache",
        "client_requests.client_request": (
            "AcceptedElicitation ClientRequest DeclinedElicitation ElicitationResult "
            "InvalidClientResponse MissingCapability"
        ),
        "client_requests.form": "ChoiceTitles",
        "client_requests.multi_round_trip": (
            "InvalidRequestState ReplayMismatch RequestStateTooLarge RoundTripLimitExceeded"
        ),
        "context": "Context",
        "handlers.arguments": "ParamHeader",
        "handlers.content": "AssistantMessage Audio File Image UserMessage",
        "handlers.output": "ToolOutput",
        "observability.json_log": "JsonFormatter",
        "observability.prometheus": "CONTENT_TYPE=METRICS_CONTENT_TYPE",
        "observability.stats": "ServerStats",
        "registry.extensions": "Extension",
        "runtime.asgi": "AsgiApp",
        "runtime.http_listener": "HttpListener",
        "runtime.listener": "ServerListener",
        "settings": "CacheHint CapabilitySwitches",
    },
)
