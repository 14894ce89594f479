"""Exchanges over HTTP: a recording relay, servers as processes, and the table of exchanges."""
