"""Our client, with a login by a browser without a window."""

from __future__ import annotations

from typing import Any

from trunkline import Client
from trunkline.auth import OAuth

from .browser import REDIRECT, visit

__all__ = ["login", "our_client"]


def login(**options: Any) -> OAuth:
    """Return a login that answers by itself."""
    return OAuth(redirect_uri=REDIRECT, on_authorize=visit, **options)


def our_client(url: str, auth: OAuth, **options: Any) -> Client:
    """Return a client that logs in when the server asks for it."""
    return Client(url, auth=auth, **options)
