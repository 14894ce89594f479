"""The client: flows that obtain credentials, and where they are kept."""
