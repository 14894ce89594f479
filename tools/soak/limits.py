"""How many clients the HTTP targets of the soak test have."""

from __future__ import annotations

from typing import Final

__all__ = ["HTTP_CLIENTS"]

# By target: what they all need of two cores is about what the first of them uses alone.
HTTP_CLIENTS: Final = {"http": 200, "https": 50, "asgi": 50}
