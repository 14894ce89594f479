"""Parsed values as JSON text.

The other systems pass parsed values to their parsers. Our rules are in the codec,
which decodes text, so such a value is encoded before it is checked.
"""

from __future__ import annotations

from msgspec.json import encode

from ..jsonrpc.codec import encode_errors

__all__ = ["text_of"]


def text_of(value: object) -> bytes:
    """Return `value` as JSON text.

    Raises:
        LocalProtocolError: the value is not JSON; the text has the place and the remedy.
    """
    try:
        text = encode(value)
    except encode_errors.UNWRITABLE as error:
        problem = encode_errors.explain(value, error)
    else:
        # The encoder writes NaN as null, which a decoder would take for a value.
        if b"null" in text:
            encode_errors.check_finite(value)
        return text
    raise problem
