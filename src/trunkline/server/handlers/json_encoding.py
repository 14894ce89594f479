"""JSON encoding of what handlers return.

JSON has no NaN and no infinity, and the encoder writes null for them: a client would read a
value that was never there. So if the JSON has a null, the value is searched for such a number.
"""

from __future__ import annotations

import math
from typing import Any, Final

from msgspec import to_builtins
from msgspec.json import Encoder

from ...errors import TrunklineError
from .custom_types import write_custom

__all__ = ["OutputMismatch", "encoded", "sendable"]


class OutputMismatch(TrunklineError, TypeError):
    """A handler returned a value that cannot be encoded or does not fit its output schema.

    The text says where and why, and shows nothing of the value.
    """


_ENCODER: Final = Encoder(enc_hook=write_custom)


def encoded(value: Any) -> bytes:
    """Return a value as JSON.

    Raises:
        OutputMismatch: it contains something that JSON cannot express.
    """
    try:
        written = _ENCODER.encode(value)
    except NotImplementedError:
        raise OutputMismatch(
            "it contains an object of a class that cannot be encoded as JSON"
        ) from None
    except RecursionError:
        raise OutputMismatch("it is nested too deeply, or contains itself") from None
    except UnicodeEncodeError:
        raise OutputMismatch(
            "one of its texts contains a lone surrogate and cannot be encoded as UTF-8"
        ) from None
    except (TypeError, ValueError, OverflowError):
        # The error's own text may quote the value.
        raise OutputMismatch("it contains a value that cannot be encoded as JSON") from None
    if b"null" in written and _has_nan(value):
        raise OutputMismatch("it contains a NaN or an infinity, which JSON does not have")
    return written


def sendable(text: str) -> str:
    """Return the text, which can be encoded.

    Raises:
        OutputMismatch: it contains a lone surrogate.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise OutputMismatch(
                "the text contains a lone surrogate and cannot be encoded as UTF-8"
            ) from None
    return text


def _has_nan(value: Any) -> bool:
    waiting = [to_builtins(value, str_keys=True, enc_hook=write_custom)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return True
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
    return False
