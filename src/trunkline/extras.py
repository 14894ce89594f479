"""Extras of the package: how an error says to install one.

The rules that live here, and only here:

* The name is quoted: zsh takes brackets without quotes for a pattern, and refuses the command.
"""

from __future__ import annotations

__all__ = ["install_command"]


def install_command(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f'pip install "trunkline[{extra}]"'
