"""What every server here offers, so that one list of checks fits all of them.

The servers are written twice, with Trunkline and with the official SDK, each the way its users
would; what they have in common is these names and values.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

__all__ = [
    "ANSWERS",
    "DECLINE",
    "DISMISS",
    "HELLO",
    "INSTRUCTIONS",
    "LINK",
    "NAMED",
    "OFFICIAL_TOOLS",
    "OUR_TOOLS",
    "PAGE",
    "PIXEL",
    "PROMPTS",
    "REFUSE",
    "RESOURCES",
    "SHORT_PROMPTS",
    "SHORT_RESOURCES",
    "SHORT_TEMPLATES",
    "SHORT_TOOLS",
    "SOUND",
    "STALL",
    "STYLES",
    "TEMPLATES",
    "TOOLS",
]

INSTRUCTIONS: Final = "Ask for one city at a time."
HELLO: Final = "Grüße, 世界 \U0001f30d"
LINK: Final = "https://example.com/atlas"
# Where a user is sent.
PAGE: Final = "https://example.com/pay?for=Oslo"
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
    "ask_page",
    "ask_form",
    "ask_choices",
    "ask_often",
    "ask_together",
    "ask_tool",
    "pay_first",
    "brew",
    "brew_asking",
    "brew_failing",
    "brew_slow",
    "who",
)
# What only our server offers, after all else: word on the way through several rounds, a task from
# the middle on, one that is nothing else, and the end of the server.
OUR_TOOLS: Final = ("ask_steps", "brew_later", "brew_only", "leave")
# What only servers of the official SDK offer, after all else: an answer without a question, one
# question after another without end, one that was not declared to be welcome, and the end of
# every stream.
OFFICIAL_TOOLS: Final = ("come_back", "ask_forever", "ask_anyway", "hush")
RESOURCES: Final = ("note://hello", "note://pixel", "note://more")
TEMPLATES: Final = ("city://{name}", "street://{city}/{street}", "year://{year}", "safe://{name}")
PROMPTS: Final = ("review", "greet", "plain", "guide")

# What servers offer that are there for a conversation over HTTP only.
SHORT_TOOLS: Final = (
    "echo",
    "add",
    "forecast",
    "picture",
    "fails",
    "steps",
    "chatter",
    "slow",
    "given_up",
    "cut",
    "ask_model",
    "ask_user",
    "ask_form",
    "ask_roots",
    "who",
)
SHORT_RESOURCES: Final = ("note://hello", "note://pixel")
SHORT_TEMPLATES: Final = ("city://{name}",)
SHORT_PROMPTS: Final = ("review", "greet")

# What the user of either client fills in, wherever a form has such a field.
ANSWERS: Final[dict[str, Any]] = {
    "city": "Oslo",
    "day": "Sunday",
    "persons": 2,
    "price": 9.5,
    "breakfast": False,
    "extras": ["sauna", "dog"],
    "sure": True,
}
# Questions that the user does not agree to, and turns away from.
DECLINE: Final = "May I know your age?"
DISMISS: Final = "Are you still there?"
# Begins a question whose answer is what follows.
NAMED: Final = "Name it: "
# One that takes half a minute to answer.
STALL: Final = "What will the weather be?"
# One that is no question for the user at all.
REFUSE: Final = "What is your password?"


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
