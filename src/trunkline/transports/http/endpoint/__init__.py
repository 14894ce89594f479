"""The routes of a listener, and the endpoint of MCP: exchanges, sessions, single requests."""
