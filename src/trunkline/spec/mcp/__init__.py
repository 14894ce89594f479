"""The Model Context Protocol, as rows."""
