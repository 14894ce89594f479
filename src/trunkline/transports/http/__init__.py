"""HTTP: the gate, the routes of a listener, the endpoint of MCP, the HTTP/1.1 server and client."""
