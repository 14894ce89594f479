# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from . import auth as auth
from . import jsonrpc as jsonrpc
from . import judge as judge
from . import mcp as mcp
from . import spec as spec
from .client import Client as Client
from .client import ClientExtension as ClientExtension
from .client import PendingCall as PendingCall
from .client import ServerChange as ServerChange
from .client import Subscription as Subscription
from .client import SyncClient as SyncClient
from .client import TaskHandle as TaskHandle
from .client import ToolResult as ToolResult
from .errors import AuthorizationFailed as AuthorizationFailed
from .errors import Cancelled as Cancelled
from .errors import ConnectionLost as ConnectionLost
from .errors import InputRequestFailed as InputRequestFailed
from .errors import LocalProtocolError as LocalProtocolError
from .errors import PeerError as PeerError
from .errors import ProtocolError as ProtocolError
from .errors import RemoteProtocolError as RemoteProtocolError
from .errors import RequestAborted as RequestAborted
from .errors import RequestError as RequestError
from .errors import RequestTimeout as RequestTimeout
from .errors import ResultTypeMismatch as ResultTypeMismatch
from .errors import TooManyRoundTrips as TooManyRoundTrips
from .errors import ToolError as ToolError
from .errors import ToolFailed as ToolFailed
from .errors import TransportError as TransportError
from .errors import TrunklineError as TrunklineError
from .server import AssistantMessage as AssistantMessage
from .server import Audio as Audio
from .server import CacheHint as CacheHint
from .server import ChoiceTitles as ChoiceTitles
from .server import Context as Context
from .server import ElicitationResult as ElicitationResult
from .server import Extension as Extension
from .server import File as File
from .server import Image as Image
from .server import MissingCapability as MissingCapability
from .server import ParamHeader as ParamHeader
from .server import Server as Server
from .server import ServerLimits as ServerLimits
from .server import SocketLimits as SocketLimits
from .server import TaskSettings as TaskSettings
from .server import ToolOutput as ToolOutput
from .server import UserMessage as UserMessage
from .spec.error_kinds import ErrorKind as ErrorKind
from .transports import Http as Http
from .transports import HttpLimits as HttpLimits
from .transports import HttpOptions as HttpOptions
from .transports import HttpSettings as HttpSettings
from .transports import Stdio as Stdio
from .transports import Tcp as Tcp
from .transports import Tls as Tls
from .transports import Transport as Transport
from .transports import Unix as Unix
from .transports import Ws as Ws
from .transports import memory_pair as memory_pair

__version__: str

__all__ = [
    "AssistantMessage",
    "Audio",
    "AuthorizationFailed",
    "CacheHint",
    "Cancelled",
    "ChoiceTitles",
    "Client",
    "ClientExtension",
    "ConnectionLost",
    "Context",
    "ElicitationResult",
    "ErrorKind",
    "Extension",
    "File",
    "Http",
    "HttpLimits",
    "HttpOptions",
    "HttpSettings",
    "Image",
    "InputRequestFailed",
    "LocalProtocolError",
    "MissingCapability",
    "ParamHeader",
    "PeerError",
    "PendingCall",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestAborted",
    "RequestError",
    "RequestTimeout",
    "ResultTypeMismatch",
    "Server",
    "ServerChange",
    "ServerLimits",
    "SocketLimits",
    "Stdio",
    "Subscription",
    "SyncClient",
    "TaskHandle",
    "TaskSettings",
    "Tcp",
    "Tls",
    "TooManyRoundTrips",
    "ToolError",
    "ToolFailed",
    "ToolOutput",
    "ToolResult",
    "Transport",
    "TransportError",
    "TrunklineError",
    "Unix",
    "UserMessage",
    "Ws",
    "__version__",
    "auth",
    "jsonrpc",
    "judge",
    "mcp",
    "memory_pair",
    "spec",
]
