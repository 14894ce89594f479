"""Write what handlers return as JSON, once, or say why it cannot be.

JSON has no NaN and no infinity, and the writer would put null for them without a word: a
client would then read a number that was never there. So where a null was written, the value
is looked through for one.
"""

from __future__ import annotations

import math
from typing import Any, Final

from msgspec import to_builtins
from msgspec.json import Encoder

from ...errors import TrunklineError
from .pydantic_models import write_model

__all__ = ["OutputMismatch", "encoded", "sendable"]


class OutputMismatch(TrunklineError, TypeError):
    """What a handler returned cannot be sent, or is not what it said it would return.

    The text says where and why, and shows nothing of the value.
    """


_ENCODER: Final = Encoder(enc_hook=write_model)


def encoded(value: Any) -> bytes:
    """Return a value as JSON.

    Raises:
        OutputMismatch: there is something in it that JSON does not have.
    """
    try:
        written = _ENCODER.encode(value)
    except NotImplementedError:
        raise OutputMismatch("there is an object in it that JSON has no form for") from None
    except RecursionError:
        raise OutputMismatch("it is nested too deeply, or contains itself") from None
    except UnicodeEncodeError:
        raise OutputMismatch("there is half a character in one of its texts") from None
    except (TypeError, ValueError, OverflowError):
        # The error's own text may quote the value.
        raise OutputMismatch("there is something in it that JSON has no form for") from None
    if b"null" in written and _has_no_number(value):
        raise OutputMismatch("there is a NaN or an infinity in it, which JSON does not have")
    return written


def sendable(text: str) -> str:
    """Return a text that can be sent.

    Raises:
        OutputMismatch: there is half of a surrogate pair in it.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise OutputMismatch("there is half a character in the text") from None
    return text


def _has_no_number(value: Any) -> bool:
    """Say whether there is a number in a value that is none."""
    waiting = [to_builtins(value, str_keys=True, enc_hook=write_model)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return True
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
    return False
