# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .client.bearer import Bearer as Bearer
from .principal import Principal as Principal


__all__ = [
    "Bearer",
    "Principal",
]
