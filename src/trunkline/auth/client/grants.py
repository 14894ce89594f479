"""Grants of clients that act without a user at hand: machines, workloads, enterprises.

    Client(URL, auth=ClientCredentials("reports", client_secret=..., issuer=ISSUER))

The rules that live here, and only here:

* Every token request names the resource, as the metadata of the server does.   [RFC 8707; SEC-17]
* Enterprise-managed authorization: the identity provider exchanges an ID token for an assertion
  that is for one authorization server and one resource; that server exchanges it for a token, and
  the client authenticates there.  [RFC 8693; RFC 7523; MCP enterprise-managed-authorization]
* Workload identity: the assertion of the platform is the grant itself, without any authentication
  of the client. An assertion that was refused is not sent again, and no other grant is tried.
                                                               [RFC 7523, section 2.1]
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from ...errors import AuthorizationFailed
from ...redaction import show
from .client_authentication import ClientIdentity
from .dpop import DpopProofs, signing_key_of
from .secret_source import SecretFunction, SecretSource
from .server_url import check_secure

if TYPE_CHECKING:
    from ..jose import SigningKey
    from .grant_session import GrantSession, ProtectedServer
    from .token_endpoint import IssuedToken, TokenEndpoint

__all__ = ["ClientCredentials", "TokenExchange", "WorkloadIdentity"]

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
