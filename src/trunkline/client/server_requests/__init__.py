"""Requests from the server: elicitation, sampling and roots handlers."""
