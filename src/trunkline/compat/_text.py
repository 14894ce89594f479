"""Values that were parsed elsewhere, as the text that the codec reads.

The other systems hand parsed values to their parsers. Our rules of a message live
in the codec, which reads text, so such a value is written out before it is judged.
"""

from __future__ import annotations

from msgspec.json import encode

from ..jsonrpc import encode_errors

__all__ = ["text_of"]


def text_of(value: object) -> bytes:
    """Return `value` as JSON text.

    Raises:
        LocalProtocolError: JSON has no such value; the text says where and what to do.
    """
    try:
        text = encode(value)
    except encode_errors.UNWRITABLE as error:
        problem = encode_errors.explain(value, error)
    else:
        # The encoder writes NaN as null, which a reader would take for a value.
        if b"null" in text:
            encode_errors.check_finite(value)
        return text
    raise problem
