"""Verbs that log in at a server, and show and delete logins."""
