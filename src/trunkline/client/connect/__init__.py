"""Opens a session: targets, version negotiation, declared capabilities."""
