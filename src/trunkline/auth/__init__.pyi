# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .client.bearer import Bearer as Bearer
from .client.file_tokens import FileTokens as FileTokens
from .client.keyring_tokens import KeyringTokens as KeyringTokens
from .principal import Principal as Principal


__all__ = [
    "Bearer",
    "FileTokens",
    "KeyringTokens",
    "Principal",
]
