"""Authorization: `oidc-provider` from npm, and clients and servers that rely on it."""
