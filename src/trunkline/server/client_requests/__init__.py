"""Requests to the client from within a handler: elicitation, sampling, roots."""
