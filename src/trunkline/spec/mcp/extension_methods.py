"""Methods of official extensions whose types are not among the rows.

The rows of `methods.py` have the methods of the tasks extension, with their types.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EXTENSION_METHODS"]

SKILLS: Final = "io.modelcontextprotocol/skills"

# The method, and the extension that defines it.
EXTENSION_METHODS: Final[dict[str, str]] = {
    "skills/list": SKILLS,
    "skills/get": SKILLS,
    "resources/directory/read": SKILLS,
}
