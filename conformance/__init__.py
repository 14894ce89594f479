"""The official conformance suites of MCP, run against `examples/everything_server.py`."""
