"""Access to a server of MCP: credentials in messages, and the tools of tenants."""
