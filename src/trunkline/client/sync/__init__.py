"""The synchronous client, over an event loop in a thread."""
