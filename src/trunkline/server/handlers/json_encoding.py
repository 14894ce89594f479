"""JSON encoding of what handlers return.

JSON has no NaN and no infinity, and the encoder writes null for them: a client would read a
value that was never there. So if the JSON has a null, the value is searched for such a number.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any, Final

from msgspec import to_builtins
from msgspec.json import Encoder

from ...errors import TrunklineError
from .custom_types import write_custom
from .error_messages import quoted

__all__ = ["OutputMismatch", "encoded", "sendable"]


class OutputMismatch(TrunklineError, TypeError):
    """A handler returned a value that cannot be encoded or does not fit its output schema.

    The text says where and why, and shows nothing of the value.
    """


_ENCODER: Final = Encoder(enc_hook=write_custom)

# Parts of a value that are searched for one that cannot be encoded.
_MAX_SEARCHED: Final = 100_000


def encoded(value: Any) -> bytes:
    """Return a value as JSON.

    Raises:
        OutputMismatch: it contains something that JSON cannot express.
    """
    try:
        written = _ENCODER.encode(value)
    except NotImplementedError:
        raise OutputMismatch(_unencodable(value)) from None
    except RecursionError:
        raise OutputMismatch("it is nested too deeply, or contains itself") from None
    except UnicodeEncodeError:
        raise OutputMismatch(
            "one of its texts contains a lone surrogate and cannot be encoded as UTF-8"
        ) from None
    except (TypeError, ValueError, OverflowError):
        # The error's own text may quote the value.
        raise OutputMismatch(_unencodable(value)) from None
    if b"null" in written and _has_nan(value):
        raise OutputMismatch("it contains a NaN or an infinity, which JSON does not have")
    return written


def _unencodable(value: Any) -> str:
    """Return which part of a value cannot be encoded: its type, and where it is."""
    waiting: list[tuple[str, Any]] = [("", value)]
    for place, each in waiting:
        if len(waiting) > _MAX_SEARCHED:
            break
        if isinstance(each, dict):
            for key, inner in each.items():
                name = quoted(key)[1:-1] if isinstance(key, str) else "..."
                waiting.append((f"{place}.{name}" if place else name, inner))
                if not isinstance(key, str) and not _is_encodable({key: 0}):
                    return f"{_named(key)} as a key{_at(place)} cannot be encoded as JSON"
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += [(f"{place}[{at}]", inner) for at, inner in enumerate(each)]
        elif (members := _members(each)) is not None:
            dot = f"{place}." if place else ""
            waiting += [(f"{dot}{name}", inner) for name, inner in members.items()]
        elif inspect.iscoroutine(each):
            each.close()  # or Python warns that it was never awaited, without its place
            return f"it is a coroutine{_at(place)}: is an await missing?"
        elif inspect.isawaitable(each):
            return f"it is {_named(each)}{_at(place)}: is an await missing?"
        elif not _is_encodable(each):
            advice = ": return a list" if isinstance(each, Iterator) else ""
            return f"{_named(each)}{_at(place)} cannot be encoded as JSON{advice}"
    return "it contains a value that cannot be encoded as JSON"


def _members(value: Any) -> dict[str, Any] | None:
    """Return the members of a Struct or a dataclass."""
    if isinstance(value, type):
        return None
    names = getattr(value, "__struct_fields__", None) or getattr(
        value, "__dataclass_fields__", None
    )
    return None if names is None else {name: getattr(value, name, None) for name in names}


def _is_encodable(value: Any) -> bool:
    try:
        _ENCODER.encode(value)
    except Exception:  # noqa: BLE001  # also what a serializer of the author raises
        return False
    return True


def _named(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _at(place: str) -> str:
    return f' at "{place}"' if place else ""


def sendable(text: str) -> str:
    """Return the text, which can be encoded.

    Raises:
        OutputMismatch: it contains a lone surrogate.
    """
    if not text.isascii():
        try:
            # For a text of such characters alone this is a copy, many times as fast as UTF-8.
            text.encode("latin-1")
            return text
        except UnicodeEncodeError:
            pass
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
