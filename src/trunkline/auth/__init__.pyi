# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .client.bearer import Bearer as Bearer
from .client.file_tokens import FileTokens as FileTokens
from .client.keyring_tokens import KeyringTokens as KeyringTokens
from .principal import Principal as Principal
from .server.credential import Credential as Credential
from .server.credential import InvalidCredential as InvalidCredential
from .server.credential import Verifier as Verifier
from .server.credential import VerifierUnavailable as VerifierUnavailable


__all__ = [
    "Bearer",
    "Credential",
    "FileTokens",
    "InvalidCredential",
    "KeyringTokens",
    "Principal",
    "Verifier",
    "VerifierUnavailable",
]
