"""Trunkline and the official SDK, talking to each other over standard input and output."""
