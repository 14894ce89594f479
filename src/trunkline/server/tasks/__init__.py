"""Tasks: tool calls that outlive their request."""
