"""Turns the Python functions of authors into MCP handlers: signatures, schemas, results."""
