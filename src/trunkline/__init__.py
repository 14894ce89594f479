"""Trunkline: JSON-RPC 2.0 and the Model Context Protocol, from one wire core.

Nothing is imported until a name is used; the version is a literal.
"""

from ._lazy_exports import lazy_exports

__version__ = "0.1.0"

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "": "auth jsonrpc judge mcp spec",
        "client": (
            "Client ClientExtension PendingCall ServerChange Subscription SyncClient "
            "TaskHandle ToolResult"
        ),
        "errors": (
            "AuthorizationFailed Cancelled ConnectionLost InputRequestFailed LocalProtocolError "
            "PeerError ProtocolError RemoteProtocolError RequestAborted RequestError "
            "RequestTimeout ResultTypeMismatch TooManyRoundTrips ToolError ToolFailed "
            "TransportError TrunklineError"
        ),
        "server": (
            "AssistantMessage Audio CacheHint ChoiceTitles Context ElicitationResult Extension "
            "File Image MissingCapability ParamHeader Server ServerLimits SocketLimits "
            "TaskSettings ToolOutput UserMessage"
        ),
        "spec.error_kinds": "ErrorKind",
        "transports": (
            "Http HttpLimits HttpOptions HttpSettings Stdio Tcp Tls Transport Unix Ws memory_pair"
        ),
    },
    "__version__",
)
