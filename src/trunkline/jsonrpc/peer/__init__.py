"""One side of a connection: requests, replies, and those that are open."""
