"""Skills extension: folders of instructions that a server publishes and a client verifies.

    app.add_extension(Skills("skills/"))               a server
    verify(entry, await client.read_resource(entry["uri"]))     a client

The extension io.modelcontextprotocol/skills, written with the public API: `Extension`,
`Server.add_resource`, `Context`. Names are imported on first use.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "entries": "SkillEntry SkillResource",
        "frontmatter": "FrontmatterError",
        "resources": "Skills",
        "verification": "VerificationFailed verify",
    },
)
