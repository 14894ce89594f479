"""HTTP client: connections, their pool, and the transport of a client."""
