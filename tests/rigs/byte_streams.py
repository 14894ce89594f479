"""Byte streams for readers: cut anywhere, and metered, so that work is counted in bytes.

`meter_bytes` puts metered types in place of `bytes`, `bytearray` and `Pieces` in the modules of
framing; `cost` feeds a reader and returns what it spent.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st

from trunkline.jsonrpc.framing.framing import Pieces


@st.composite
def chunks(draw: st.DrawFn, stream: bytes) -> list[bytes | bytearray | memoryview]:
    """Cut `stream` anywhere, into any kind of buffer."""
    if draw(st.booleans()):
        cuts = list(range(len(stream)))
    else:
        cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    kind = draw(st.sampled_from([bytes, bytearray, memoryview]))
    return [kind(part) for part in parts]


class Meter:
    """Counts the bytes that a reader looks at or copies, instead of the time it takes.

    Mixed into the `bytes` and `bytearray` that its module sees. A method it does
    not know is charged for all the bytes of its object.
    """

    spent: ClassVar[int] = 0

    def __getitem__(self: Any, key: Any) -> Any:
        part = super().__getitem__(key)  # type: ignore[misc]
        if not isinstance(key, slice):
            return part
        Meter.spent += len(part)
        return type(self)(part)

    def __contains__(self: Any, part: Any) -> bool:
        Meter.spent += len(self)
        return bool(super().__contains__(part))  # type: ignore[misc]

    def __getattribute__(self: Any, name: str) -> Any:
        method = super().__getattribute__(name)
        if name.startswith("_") or name == "clear":
            return method

        def metered(*args: Any) -> Any:
            result = method(*args)
            if name == "find":
                start, stop = args[1:] or (0, len(self))
                Meter.spent += (min(stop, len(self)) if result < 0 else result) - start
            elif name in ("startswith", "endswith"):
                Meter.spent += len(args[0])
            else:
                Meter.spent += len(self)
            if isinstance(result, list | tuple):
                return type(result)(type(self)(part) for part in result)
            return type(self)(result) if isinstance(result, bytes) else result

        return metered


class MeteredBytes(Meter, bytes):
    def __new__(cls, source: Any = b"") -> MeteredBytes:
        Meter.spent += len(source)
        return super().__new__(cls, source)


class MeteredArray(Meter, bytearray):
    def __iadd__(self, more: Any) -> Any:  # type: ignore[misc]
        Meter.spent += len(more)
        return super().__iadd__(more)


class MeteredPieces(Pieces):
    def take(self) -> bytes:
        return MeteredBytes(super().take())


def meter_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the modules of framing use metered types."""
    for name in ("framing", "sse"):
        module = import_module(f"trunkline.jsonrpc.framing.{name}")
        monkeypatch.setattr(module, "bytes", MeteredBytes, raising=False)
        monkeypatch.setattr(module, "bytearray", MeteredArray, raising=False)
        monkeypatch.setattr(module, "Pieces", MeteredPieces)


def cost(reader: Any, stream: bytes, step: int) -> float:
    """Return how often, on average, a byte of `stream` is looked at or copied."""
    Meter.spent = 0
    for at in range(0, len(stream), step):
        reader.feed(stream[at : at + step])
    if hasattr(reader, "end"):
        reader.end()
    return Meter.spent / len(stream)
