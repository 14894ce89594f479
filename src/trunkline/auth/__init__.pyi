# Generated from __init__.py by tools/generate_exports.py: run `make exports`.
from .client.bearer import Bearer as Bearer
from .client.grants import ClientCredentials as ClientCredentials
from .client.grants import TokenExchange as TokenExchange
from .client.grants import WorkloadIdentity as WorkloadIdentity
from .client.oauth import OAuth as OAuth
from .client.storage.file_tokens import FileTokens as FileTokens
from .client.storage.keyring_tokens import KeyringTokens as KeyringTokens
from .client.storage.token_store import MemoryTokens as MemoryTokens
from .client.storage.token_store import TokenStorage as TokenStorage
from .jose import SigningKey as SigningKey
from .principal import Principal as Principal
from .server.audit import AuditEvent as AuditEvent
from .server.audit import JsonLinesAudit as JsonLinesAudit
from .server.peers import Fixed as Fixed
from .server.peers import PeerCertificate as PeerCertificate
from .server.peers import PeerUid as PeerUid
from .server.settings import AuthSettings as AuthSettings
from .server.tenants import TenantLimits as TenantLimits
from .server.tenants import Tenants as Tenants
from .server.verifiers.api_keys import ApiKey as ApiKey
from .server.verifiers.api_keys import ApiKeys as ApiKeys
from .server.verifiers.chain import Chain as Chain
from .server.verifiers.credential import Credential as Credential
from .server.verifiers.credential import InvalidCredential as InvalidCredential
from .server.verifiers.credential import Verifier as Verifier
from .server.verifiers.credential import VerifierUnavailable as VerifierUnavailable
from .server.verifiers.dpop import Dpop as Dpop
from .server.verifiers.introspection import Introspection as Introspection
from .server.verifiers.jwt_bearer import JwtBearer as JwtBearer


__all__ = [
    "ApiKey",
    "ApiKeys",
    "AuditEvent",
    "AuthSettings",
    "Bearer",
    "Chain",
    "ClientCredentials",
    "Credential",
    "Dpop",
    "FileTokens",
    "Fixed",
    "Introspection",
    "InvalidCredential",
    "JsonLinesAudit",
    "JwtBearer",
    "KeyringTokens",
    "MemoryTokens",
    "OAuth",
    "PeerCertificate",
    "PeerUid",
    "Principal",
    "SigningKey",
    "TenantLimits",
    "Tenants",
    "TokenExchange",
    "TokenStorage",
    "Verifier",
    "VerifierUnavailable",
    "WorkloadIdentity",
]
