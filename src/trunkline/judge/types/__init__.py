"""Checks of values by the types of a revision."""
