"""Requests to the server: methods, pagination, caching, timeouts, decoding of results."""
