"""Soak test: mixed clients against real server processes, then a count of what is left."""
