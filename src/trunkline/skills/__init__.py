"""Skills over MCP: folders of instructions that a server publishes and a client checks.

    app.add_extension(Skills("skills/"))               a server
    verify(entry, await client.read_resource(entry["uri"]))     a client

It is the extension io.modelcontextprotocol/skills, made with what any author has: `Extension`,
`Server.add_resource`, `Context`.

Nothing is imported until a name is used.  [PEP 562]
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
