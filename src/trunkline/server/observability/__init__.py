"""Metrics, tracing and structured logs of a server."""
