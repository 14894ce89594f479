"""Authorization: principals and tenants of a server, credentials of a client.

    app = Server("files", auth=JwtBearer(issuer="https://login.example.org", audience=URL))
    client = Client(URL, auth=OAuth())

Needs the extra `auth`, except for `Principal`, `ApiKeys`, `Bearer` and functions of your own. Names
are imported on first use.  [PEP 562]
"""

from .._lazy_exports import lazy_exports

__all__, __getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "client.bearer": "Bearer",
        "client.storage.file_tokens": "FileTokens",
        "client.grants": "ClientCredentials TokenExchange WorkloadIdentity",
        "client.storage.keyring_tokens": "KeyringTokens",
        "client.oauth": "OAuth",
        "client.storage.token_store": "MemoryTokens TokenStorage",
        "jose": "SigningKey",
        "principal": "Principal",
        "server.verifiers.api_keys": "ApiKey ApiKeys",
        "server.audit": "AuditEvent JsonLinesAudit",
        "server.verifiers.chain": "Chain",
        "server.verifiers.credential": "Credential InvalidCredential Verifier VerifierUnavailable",
        "server.verifiers.dpop": "Dpop",
        "server.verifiers.introspection": "Introspection",
        "server.verifiers.jwt_bearer": "JwtBearer",
        "server.peers": "Fixed PeerCertificate PeerUid",
        "server.settings": "AuthSettings",
        "server.tenants": "TenantLimits Tenants",
    },
)
