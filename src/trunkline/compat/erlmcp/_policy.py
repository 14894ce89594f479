"""The policy and codecs of this package."""

from __future__ import annotations

from functools import cache
from typing import Final, get_args

from ...jsonrpc import Codec, Policy
from ...jsonrpc.limits import TransportName

__all__ = ["POLICY", "codec_for"]

POLICY: Final = Policy.erlmcp()


@cache
def codec_for(transport: TransportName = "default") -> Codec:
    """Return the codec with the size limit of one transport.

    Raises:
        LookupError: the transport is unknown; the text lists the known ones.
    """
    names = get_args(TransportName)
    if transport not in names:
        raise LookupError(f"no transport named {transport!r}; there are {', '.join(names)}")
    return Codec(POLICY, transport=transport)
