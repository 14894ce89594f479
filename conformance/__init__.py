"""The official conformance suites of MCP, run against our server and client."""
