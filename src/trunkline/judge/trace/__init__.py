"""Recordings of conversations: reading and writing them."""
