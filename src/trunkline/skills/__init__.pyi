# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .entries import SkillEntry as SkillEntry
from .entries import SkillResource as SkillResource
from .frontmatter import FrontmatterError as FrontmatterError
from .resources import Skills as Skills
from .verification import VerificationFailed as VerificationFailed
from .verification import verify as verify


__all__ = [
    "FrontmatterError",
    "SkillEntry",
    "SkillResource",
    "Skills",
    "VerificationFailed",
    "verify",
]
