"""Reaches a server for a verb: targets, arguments, elicitation."""
