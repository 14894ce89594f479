"""MCP hosts (Claude, Cursor, VS Code, …): where their configuration is, how to read and edit it."""
