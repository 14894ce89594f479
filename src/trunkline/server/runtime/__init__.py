"""Runs a server: standard streams, sockets, keepalive, lifespan."""
