"""Checks of single messages."""
