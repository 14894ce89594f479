"""The endpoint of MCP over HTTP: routes, exchanges, sessions and single requests."""
