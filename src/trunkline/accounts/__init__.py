"""Accounts: what each client uses of a server, over all its connections."""
