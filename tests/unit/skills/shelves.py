"""Skills on disk, for tests."""

from __future__ import annotations

from pathlib import Path


def write(home: Path, files: dict[str, str | bytes]) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def skill(folder: Path, name: str = "pdf", description: str = "Reads PDFs.", **files: str) -> Path:
    """Write a skill with a frontmatter that is in order; return its folder."""
    home = folder / name
    head = f"---\nname: {home.name}\ndescription: {description}\n---\n# {name}\n"
    write(home, {"SKILL.md": head, **files})
    return home
