"""Skills over MCP: folders of instructions that a server publishes and a client checks.

    app.extend(Skills("skills/"))               a server
    verify(entry, await client.read_resource(entry["uri"]))     a client

It is the extension io.modelcontextprotocol/skills, made with what any author has: `Extension`,
`Server.add_resource`, `Context`.

Nothing is imported until a name is used.  [PEP 562]
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .entries import SkillEntry, SkillResource
    from .frontmatter import FrontmatterError
    from .resources import Skills
    from .verification import VerificationFailed, verify

__all__ = [
    "FrontmatterError",
    "SkillEntry",
    "SkillResource",
    "Skills",
    "VerificationFailed",
    "verify",
]

_HOMES = {
    "FrontmatterError": "frontmatter",
    "SkillEntry": "entries",
    "SkillResource": "entries",
    "Skills": "resources",
    "VerificationFailed": "verification",
    "verify": "verification",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
