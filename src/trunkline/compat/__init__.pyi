# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from . import erlmcp as erlmcp
from . import mcpp as mcpp
from . import pierre as pierre


__all__ = [
    "erlmcp",
    "mcpp",
    "pierre",
]
