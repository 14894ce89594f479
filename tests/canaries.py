"""Secrets in every shape that arguments of a call have, each with a word to look for."""

from __future__ import annotations

from typing import Any

__all__ = ["CANARY", "SECRETS"]

CANARY = "CANARY"
SECRETS: dict[str, Any] = {
    "auth": "CANARY-auth",
    "pass": "CANARY-pass",
    "jwt": "CANARY-jwt",
    "bearer": "CANARY-bearer",
    "codeVerifier": "CANARY-verifier",
    "password": {"value": "CANARY-nested"},
    "cookies": ["CANARY-list"],
    "h": {"name": "X-Api-Key", "value": "CANARY-header"},
    "pair": ["Authorization", "CANARY-pair"],
    "accessKeyId": "CANARY-akid",
    "api.key": "CANARY-dot",
    "private_key_pem": "CANARY-pem",
}
