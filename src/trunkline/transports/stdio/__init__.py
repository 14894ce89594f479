"""Standard streams: the server side, the client side, child processes."""
