"""TCP, TLS and Unix sockets."""
