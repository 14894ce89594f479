"""Checks of the options that authors give to servers, tools, resources and prompts.

An option of the wrong type would otherwise be sent as it is, and a client could not read the
handshake or a list because of it. Each function returns the option or raises TypeError or
ValueError with a text that names it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import ValidationError

from ...mcp.types import Icon
from ..handlers.json_encoding import OutputMismatch, encoded

__all__ = [
    "check_flags",
    "check_server",
    "check_store",
    "check_texts",
    "icons_of",
    "instance_of",
    "meta_of",
    "seconds",
    "typed",
    "whole_number",
]


def check_texts(**options: Any) -> None:
    """Raise TypeError for an option that is neither a text nor None."""
    for name, value in options.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is a text, not {_shown(value)}")


def check_flags(**options: Any) -> None:
    """Raise TypeError for an option that is neither True nor False."""
    for name, value in options.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {_shown(value)}")


def seconds(option: str, value: Any) -> float | None:
    """Return a duration above 0, or None.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not above 0, or not finite.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{option} is a number of seconds, not {_shown(value)}")
    if not value > 0 or math.isinf(value):
        raise ValueError(f"{option} is a number of seconds above 0, not {value!r}")
    return value


def whole_number(option: str, value: Any, *, least: int) -> int | None:
    """Return an integer of at least `least`, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{option} is an integer, not {_shown(value)}")
    if value < least:
        raise ValueError(f"{option} is at least {least}, not {value}")
    return value


def instance_of(option: str, value: Any, kind: type) -> None:
    """Raise TypeError for an option that is not of its class."""
    if not isinstance(value, kind):
        raise TypeError(f"{option} is {_article(kind.__name__)}, not {_shown(value)}")


def icons_of(icons: Any) -> list[Icon] | None:
    """Return icons as they are sent; a text is the URL of one, a dict has the names of the wire.

    Raises:
        TypeError: they are not a list, or one of them is not an icon.
    """
    if isinstance(icons, str | Icon | Mapping) or not isinstance(icons, Iterable):
        shown = f"icons=[{icons!r}]" if isinstance(icons, str) else "icons=[...]"
        raise TypeError(f"icons is a list of addresses or Icons: write {shown}")
    found = [Icon(icon) if isinstance(icon, str) else _icon(icon) for icon in icons]
    return found or None


def _icon(icon: Any) -> Icon:
    found = typed("an icon", icon, Icon)
    if not isinstance(found, Icon):
        raise TypeError("an icon is an address or an Icon, not None")
    return found


def meta_of(meta: Any) -> dict[str, Any] | None:
    """Return the `_meta` of an entry.

    Raises:
        TypeError: it is not a dict with texts as keys, or cannot be sent.
    """
    if meta is None:
        return None
    if not isinstance(meta, dict) or not all(isinstance(key, str) for key in meta):
        raise TypeError(f"meta is a dict with texts as keys, not {_shown(meta)}")
    try:
        encoded(meta)
    except OutputMismatch as error:
        raise TypeError(f"meta cannot be sent: {error}") from None
    return meta or None


def typed(option: str, value: Any, kind: Any) -> Any:
    """Return an option as a Struct; a dict has the names of the wire.

    Raises:
        TypeError: it is neither, or a member is unknown or of the wrong type.
    """
    if value is None:
        return None
    if not isinstance(value, kind):
        if not isinstance(value, Mapping):
            raise TypeError(f"{option} is {_article(kind.__name__)} or a dict, not {_shown(value)}")
        unknown = set(value) - set(kind.__struct_encode_fields__)
        if unknown:
            known = ", ".join(kind.__struct_encode_fields__)
            raise TypeError(f"{option} has no member {sorted(map(str, unknown))[0]!r}; use {known}")
    try:
        # The constructor of a Struct does not check its members.
        return msgspec.convert(msgspec.to_builtins(value), kind)
    except (ValidationError, TypeError) as error:
        raise TypeError(f"{option} is not a valid {kind.__name__}: {error}") from None


def check_server(
    *,
    name: Any,
    version: Any,
    texts: Mapping[str, Any],
    flags: Mapping[str, Any],
    page_size: Any,
    lifespan: Any,
    state_keys: Any,
    experimental: Any,
    revisions: Any,
) -> None:
    """Raise TypeError or ValueError for an option of `Server` that cannot work."""
    for option, value in (("name", name), ("version", version)):
        if not isinstance(value, str):
            raise TypeError(f"the {option} of a server is a text, not {_shown(value)}")
    if not name:
        raise ValueError("the name of a server has at least one character")
    check_texts(**texts)
    check_flags(**flags)
    whole_number("page_size", page_size, least=1)
    _check_lifespan(lifespan)
    is_list = isinstance(state_keys, Sequence) and not isinstance(state_keys, bytes | str)
    if not is_list or not all(isinstance(key, bytes) for key in state_keys):
        raise TypeError("state_keys is a list of keys, which are bytes")
    if isinstance(revisions, str) or not isinstance(revisions, Iterable):
        raise TypeError("revisions is a list: write revisions=['2025-11-25']")
    if experimental is not None:
        instance_of("experimental", experimental, Mapping)
        for key, value in experimental.items():
            if not isinstance(key, str) or not isinstance(value, Mapping):
                raise TypeError("experimental has dicts by the names of capabilities")


def check_store(store: Any) -> None:
    """Raise TypeError for what cannot be a store: an address, or a class that was not called."""
    # Stores have no common class, only methods.
    if store is not None and (isinstance(store, type) or not hasattr(store, "get")):
        raise TypeError(f"store is a Store, such as MemoryStore(), not {_shown(store)}")


def _check_lifespan(lifespan: Any) -> None:
    """Raise TypeError for a function that does not return an async context manager."""
    if lifespan is None:
        return
    if not callable(lifespan):
        raise TypeError(
            f"lifespan is a function that returns an async context manager, not {_shown(lifespan)}"
        )
    inner = inspect.unwrap(lifespan)
    if inspect.isasyncgenfunction(lifespan) or inspect.isgeneratorfunction(inner):
        text = "write @asynccontextmanager above `async def`, from contextlib"
    elif inspect.iscoroutinefunction(lifespan):
        text = "write @asynccontextmanager above it, and yield the state instead of returning it"
    else:
        return
    name = getattr(lifespan, "__name__", "lifespan")
    raise TypeError(f"lifespan: {name}() does not return an async context manager: {text}")


def _shown(value: Any) -> str:
    """Return an option as it is shown in an error: short ones as they were given."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
