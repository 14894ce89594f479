"""Tasks: calls that outlive their request, polled to their end."""
