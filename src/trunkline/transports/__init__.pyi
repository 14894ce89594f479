# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .addresses import Http as Http
from .addresses import Tcp as Tcp
from .addresses import Tls as Tls
from .addresses import Unix as Unix
from .addresses import Ws as Ws
from .addresses import parse_address as parse_address
from .base import Address as Address
from .base import Frame as Frame
from .base import Transport as Transport
from .http.client.settings import HttpOptions as HttpOptions
from .http.request import HttpRequest as HttpRequest
from .http.settings import HttpLimits as HttpLimits
from .http.settings import HttpSettings as HttpSettings
from .memory import MemoryTransport as MemoryTransport
from .memory import memory_pair as memory_pair
from .relay import Relay as Relay
from .stdio.client import Stdio as Stdio
from .stdio.server import StdioServer as StdioServer
from .tap import Tapped as Tapped
from .tap import TappedTransport as TappedTransport


__all__ = [
    "Address",
    "Frame",
    "Http",
    "HttpLimits",
    "HttpOptions",
    "HttpRequest",
    "HttpSettings",
    "MemoryTransport",
    "Relay",
    "Stdio",
    "StdioServer",
    "Tapped",
    "TappedTransport",
    "Tcp",
    "Tls",
    "Transport",
    "Unix",
    "Ws",
    "memory_pair",
    "parse_address",
]
