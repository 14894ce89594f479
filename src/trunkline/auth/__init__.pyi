# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .principal import Principal as Principal
from .server.credential import Credential as Credential
from .server.credential import InvalidCredential as InvalidCredential
from .server.credential import Verifier as Verifier
from .server.credential import VerifierUnavailable as VerifierUnavailable
from .server.settings import AuthSettings as AuthSettings


__all__ = [
    "AuthSettings",
    "Credential",
    "InvalidCredential",
    "Principal",
    "Verifier",
    "VerifierUnavailable",
]
