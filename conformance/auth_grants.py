"""Credentials of the scenarios that need no user: machines, workloads, enterprises.

`AUTH` has a function for each scenario. It takes the context that the scenario gives, and returns
the `auth=` of the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline.auth import ClientCredentials, TokenExchange, WorkloadIdentity

__all__ = ["AUTH"]

Context = Mapping[str, str]


def with_key(context: Context) -> ClientCredentials:
    """Authenticate with a private key."""
    return ClientCredentials(
        context["client_id"],
        private_key=context["private_key_pem"],
        algorithm=context["signing_algorithm"],
    )


def with_secret(context: Context) -> ClientCredentials:
    """Authenticate with a secret."""
    return ClientCredentials(context["client_id"], client_secret=context["client_secret"])


def with_id_token(context: Context) -> TokenExchange:
    """Exchange the ID token of a user at the identity provider of an enterprise."""
    return TokenExchange(
        context["client_id"],
        client_secret=context["client_secret"],
        id_token=context["idp_id_token"],
        idp_issuer=context["idp_issuer"],
        idp_token_endpoint=context["idp_token_endpoint"],
        idp_client_id=context["idp_client_id"],
    )


def with_assertion(context: Context) -> WorkloadIdentity:
    """Present the assertion of a platform."""
    return WorkloadIdentity(context["valid_jwt"], client_id=context["client_id"])


AUTH: Final[dict[str, Callable[[Context], Any]]] = {
    "auth/client-credentials-jwt": with_key,
    "auth/client-credentials-basic": with_secret,
    # The same flow under its older and its newer name.
    "auth/cross-app-access-complete-flow": with_id_token,
    "auth/enterprise-managed-authorization": with_id_token,
    "auth/wif-jwt-bearer": with_assertion,
}
