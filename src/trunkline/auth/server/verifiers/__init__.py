"""Verifiers of credentials: signed tokens, introspection, API keys, proofs of possession."""
