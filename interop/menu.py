"""What every server here offers, so that one list of checks fits all of them.

The servers are written twice, with Trunkline and with the official SDK, each the way its users
would; what they have in common is these names and values.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

__all__ = [
    "HELLO",
    "INSTRUCTIONS",
    "LINK",
    "PIXEL",
    "PROMPTS",
    "RESOURCES",
    "SOUND",
    "STYLES",
    "TEMPLATES",
    "TOOLS",
]

INSTRUCTIONS: Final = "Ask for one city at a time."
HELLO: Final = "Grüße, 世界 \U0001f30d"
LINK: Final = "https://example.com/atlas"
STYLES: Final = ("short", "long", "kind")

# In the order in which they are registered, which is the order in which they are listed.
TOOLS: Final = (
    "echo",
    "add",
    "forecast",
    "picture",
    "sound",
    "link",
    "embedded",
    "fails",
    "steps",
    "chatter",
    "slow",
    "given_up",
    "grow",
    "touch",
    "ask_model",
    "ask_user",
    "ask_roots",
    "who",
)
RESOURCES: Final = ("note://hello", "note://pixel", "note://more")
TEMPLATES: Final = ("city://{name}", "street://{city}/{street}", "year://{year}")
PROMPTS: Final = ("review", "greet", "plain")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# One grey pixel, and four silent samples: the smallest that every reader takes for what it is.
PIXEL: Final = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\x00\x80"))
    + _chunk(b"IEND", b"")
)
SOUND: Final = (
    b"RIFF"
    + struct.pack("<I", 40)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data"
    + struct.pack("<I", 4)
    + b"\x80" * 4
)
