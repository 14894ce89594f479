"""MCP over HTTP: admission, exchanges, sessions and the HTTP/1.1 server."""
