"""The API of erlmcp: its codec, parsers, limits, ids and error helpers.

Everything here decodes and encodes under `Policy.erlmcp()`, except `SpecParser`, which
applies the official rules of any revision. The original returns ok and error pairs;
here a function returns the value, or raises a typed error; `reason_of` converts an
`InvalidMessage` to the original's reason. Atoms are strings, records our messages
and rows, and `undefined` is None.

The error codes have their names in the original's header:
`MCP_ERROR_TOOL_NOT_FOUND`, `JSONRPC_PARSE_ERROR`, `ELICITATION_FAILED`,
`REFUSAL_QUEUE_CAP_EXCEEDED`, and so on for every row of profile `erlmcp`.
"""

from __future__ import annotations

from ...errors import IdsExhausted, InvalidMessage, LocalProtocolError
from . import (
    access,
    codec,
    constants,
    errors,
    helpers,
    ids,
    limits,
    parser,
    session,
    spec_parser,
)
from .access import *  # noqa: F403
from .codec import *  # noqa: F403
from .constants import *  # noqa: F403
from .errors import *  # noqa: F403
from .helpers import *  # noqa: F403
from .ids import *  # noqa: F403
from .limits import *  # noqa: F403
from .parser import *  # noqa: F403
from .session import *  # noqa: F403
from .spec_parser import *  # noqa: F403

# Besides the names of each module, the exceptions of their functions.
__all__ = ["IdsExhausted", "InvalidMessage", "LocalProtocolError"]
__all__ += access.__all__
__all__ += codec.__all__
__all__ += constants.__all__
__all__ += errors.__all__
__all__ += helpers.__all__
__all__ += ids.__all__
__all__ += limits.__all__
__all__ += parser.__all__
__all__ += session.__all__
__all__ += spec_parser.__all__


def __getattr__(name: str) -> int:
    number = constants.CODE_CONSTANTS.get(name)
    if number is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return number


def __dir__() -> list[str]:
    return sorted({*__all__, *constants.CODE_CONSTANTS})
