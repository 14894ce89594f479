"""Types beyond those of the decoder: paths, addresses, patterns, dataclasses, classes of pydantic.

The decoder passes a value for a class it does not know to `read_custom`, and the encoder an
object it does not know to `write_custom`.

No library is imported for its classes: if a handler names one, it is loaded already.

The rules that live here, and only here:

* A path, an IP address or a pattern is a text in JSON. A deque and an `Iterable` are arrays.
* `object` takes any value, as `Any` does.
* A secret of pydantic (`SecretStr`) is written as asterisks.
* Of what handlers return, a mapping is written as an object, a sequence or a set as an array.
* A decoded dataclass has all its fields. The decoder leaves one that was not sent to the default
  on the class; the encoder looks at the instance alone, and would leave it out.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from msgspec import Struct, ValidationError, convert

from .error_messages import kind_of, worded
from .pydantic_models import is_model, is_validated, read_model, read_validated, write_model

__all__ = [
    "ARRAYS",
    "Adapted",
    "custom_schema",
    "filled",
    "filler",
    "read_custom",
    "write_custom",
]

# Marks a dataclass; importing `dataclasses` would slow down the start.
_FIELDS: Final = "__dataclass_fields__"
# Longer ones are not written by people; compiling one takes time that grows with its length.
_MAX_PATTERN_CHARS: Final = 10_000

# Classes that are arrays or objects in JSON, and have the types of their items in brackets.
ARRAYS: Final[Mapping[Any, Any]] = {deque: list, Iterable: list, OrderedDict: dict}


_BUILTIN: Final = (list, tuple, set, frozenset, dict)


class _TakesAny(type):
    """The decoder checks what the hook returned with `isinstance`."""

    def __instancecheck__(cls, _: object) -> bool:
        return True


class Adapted(metaclass=_TakesAny):
    """Base of classes that stand for an annotation which the decoder does not support.

    A subclass has a `reader`, which makes the value from decoded JSON.
    """

    reader: Any = None


class _Text(NamedTuple):
    """A class whose values are texts in JSON."""

    module: str
    name: str
    format: str
    expected: str

    def covers(self, cls: Any) -> bool:
        loaded = sys.modules.get(self.module)
        return loaded is not None and issubclass(cls, getattr(loaded, self.name))


_TEXTS: Final = (
    _Text("pathlib", "PurePath", "path", "a path"),
    _Text("ipaddress", "IPv4Interface", "ipv4interface", "an IPv4 address with a prefix"),
    _Text("ipaddress", "IPv6Interface", "ipv6interface", "an IPv6 address with a prefix"),
    _Text("ipaddress", "IPv4Address", "ipv4", "an IPv4 address"),
    _Text("ipaddress", "IPv6Address", "ipv6", "an IPv6 address"),
    _Text("ipaddress", "IPv4Network", "ipv4network", "an IPv4 network"),
    _Text("ipaddress", "IPv6Network", "ipv6network", "an IPv6 network"),
    _Text("re", "Pattern", "regex", "a regular expression"),
)


@lru_cache(maxsize=256)
def _text(cls: Any) -> _Text | None:
    return next((row for row in _TEXTS if row.covers(cls)), None)


def custom_schema(cls: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of a class in this module's tables, or None."""
    if cls is object:
        return {}
    if cls in ARRAYS:
        return {"type": "object" if ARRAYS[cls] is dict else "array"}
    row = _text(cls) if isinstance(cls, type) else None
    return None if row is None else {"type": "string", "format": row.format}


def read_custom(type_: Any, value: Any) -> Any:
    """Return a value of a class that the decoder does not know; the `dec_hook` of decoders.

    Raises:
        ValueError: the value does not fit; the text says why, and shows nothing of it.
    """
    cls = get_origin(type_) or type_
    if cls is object:
        return value
    reader = getattr(cls, "reader", None) if issubclass(cls, Adapted) else None
    if reader is not None:
        return reader.read(value)
    if is_model(cls):
        return read_model(type_, value)
    if cls in ARRAYS:
        return _made(cls, _converted(value, _plain_form(type_)))
    row = _text(cls)
    if row is not None:
        return _from_text(cls, row, value)
    if is_validated(cls):
        return read_validated(type_, value)
    raise ValueError(f"values of {cls.__name__} cannot be decoded from JSON")


def _converted(value: Any, type_: Any) -> Any:
    read = partial(convert, type=type_, str_keys=True, dec_hook=read_custom)
    try:
        return read(value)
    except ValidationError as error:
        # Imported here, because most values are converted at once.
        from ...mcp.integers import convert_integers

        try:
            return convert_integers(value, read, error)
        except ValidationError as still:
            raise ValueError(worded(still)) from None


def _from_text(cls: Any, row: _Text, value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"expected {row.expected}, got {kind_of(value)}")
    make: Callable[[str], Any] = _pattern if row.module == "re" else cls
    try:
        return make(value)
    except (ValueError, re.error, RecursionError, OverflowError):
        # Its own text quotes the value.
        raise ValueError(f"expected {row.expected}") from None


def _pattern(value: str) -> re.Pattern[str]:
    if len(value) > _MAX_PATTERN_CHARS:
        raise ValueError
    return re.compile(value)


def _plain_form(type_: Any) -> Any:
    """Return `deque[int]` as `list[int]`."""
    cls, inner = get_origin(type_) or type_, get_args(type_)
    form = ARRAYS[cls]
    return form[inner] if inner else form


def _made(cls: Any, value: Any) -> Any:
    return value if cls is Iterable else cls(value)


def write_custom(value: Any) -> Any:
    """Return an object that the encoder does not know as JSON values; the `enc_hook` of encoders.

    Raises:
        NotImplementedError: JSON has no form for it.
    """
    cls: Any = type(value)
    if cls in _BUILTIN:
        raise NotImplementedError  # a key of an object
    if is_model(cls):
        return write_model(value)
    row = _text(cls)
    if row is not None:
        return value.pattern if row.module == "re" else str(value)
    if is_validated(cls):
        return write_model(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set | deque):
        return list(value)
    raise NotImplementedError


# -- dataclasses -----------------------------------------------------------------------------


def filler(kind: Any) -> Callable[[Any], Any] | None:
    """Return `filled` if a type can hold a dataclass, else None."""
    return filled if _may_hold_dataclass(kind, set()) else None


def _may_hold_dataclass(kind: Any, seen: set[int]) -> bool:
    if hasattr(kind, _FIELDS):
        return True
    if id(kind) in seen:
        return False  # a type may contain itself
    seen.add(id(kind))
    inner = list(get_args(kind))
    if isinstance(kind, type) and hasattr(kind, "__annotations__"):
        try:
            inner += get_type_hints(kind).values()
        except (NameError, TypeError, AttributeError):
            return True  # names that cannot be resolved here: look at each value
    return any(_may_hold_dataclass(each, seen) for each in inner)


def filled(value: Any) -> Any:
    """Return the value, in which every dataclass instance has all its fields."""
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            filled(item)
    elif isinstance(value, dict):
        for item in value.values():
            filled(item)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            filled(getattr(value, name))
    elif hasattr(value, _FIELDS) and not isinstance(value, type):
        # With slots every field is set.
        own = getattr(value, "__dict__", None)
        for name in getattr(value, _FIELDS):
            member = getattr(value, name, None)
            if own is not None and name not in own and hasattr(value, name):
                object.__setattr__(value, name, member)  # also where it is frozen
            filled(member)
    return value
