"""Requests of one connection: negotiation, method handlers, running handlers."""
