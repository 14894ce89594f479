# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from ..accounts.shares import ClientShares as ClientShares
from ..engine.limits import ServerLimits as ServerLimits
from ..engine.limits import SocketLimits as SocketLimits
from ..engine.limits import TaskSettings as TaskSettings
from .api.app import Server as Server
from .api.middleware import ErrorMap as ErrorMap
from .api.middleware import RateLimit as RateLimit
from .api.middleware import RequestLog as RequestLog
from .api.middleware import RequestTimer as RequestTimer
from .api.middleware import ResultCache as ResultCache
from .client_requests.client_request import AcceptedElicitation as AcceptedElicitation
from .client_requests.client_request import ClientRequest as ClientRequest
from .client_requests.client_request import DeclinedElicitation as DeclinedElicitation
from .client_requests.client_request import ElicitationResult as ElicitationResult
from .client_requests.client_request import InvalidClientResponse as InvalidClientResponse
from .client_requests.client_request import MissingCapability as MissingCapability
from .client_requests.form import ChoiceTitles as ChoiceTitles
from .client_requests.multi_round_trip import InvalidRequestState as InvalidRequestState
from .client_requests.multi_round_trip import ReplayMismatch as ReplayMismatch
from .client_requests.multi_round_trip import RequestStateTooLarge as RequestStateTooLarge
from .client_requests.multi_round_trip import RoundTripLimitExceeded as RoundTripLimitExceeded
from .context import Context as Context
from .handlers.arguments import ParamHeader as ParamHeader
from .handlers.content import AssistantMessage as AssistantMessage
from .handlers.content import Audio as Audio
from .handlers.content import File as File
from .handlers.content import Image as Image
from .handlers.content import UserMessage as UserMessage
from .handlers.output import ToolOutput as ToolOutput
from .observability.json_log import JsonFormatter as JsonFormatter
from .observability.prometheus import CONTENT_TYPE as METRICS_CONTENT_TYPE
from .observability.stats import ServerStats as ServerStats
from .registry.extensions import Extension as Extension
from .runtime.asgi import AsgiApp as AsgiApp
from .runtime.http_listener import HttpListener as HttpListener
from .runtime.listener import ServerListener as ServerListener
from .settings import CacheHint as CacheHint
from .settings import CapabilitySwitches as CapabilitySwitches


__all__ = [
    "AcceptedElicitation",
    "AsgiApp",
    "AssistantMessage",
    "Audio",
    "CacheHint",
    "CapabilitySwitches",
    "ChoiceTitles",
    "ClientRequest",
    "ClientShares",
    "Context",
    "DeclinedElicitation",
    "ElicitationResult",
    "ErrorMap",
    "Extension",
    "File",
    "HttpListener",
    "Image",
    "InvalidClientResponse",
    "InvalidRequestState",
    "JsonFormatter",
    "METRICS_CONTENT_TYPE",
    "MissingCapability",
    "ParamHeader",
    "RateLimit",
    "ReplayMismatch",
    "RequestLog",
    "RequestStateTooLarge",
    "RequestTimer",
    "ResultCache",
    "RoundTripLimitExceeded",
    "Server",
    "ServerLimits",
    "ServerListener",
    "ServerStats",
    "SocketLimits",
    "TaskSettings",
    "ToolOutput",
    "UserMessage",
]
