"""Observation of requests: operations, their observers, and the audit."""
