"""The steps of OAuth that every grant uses: discovery, registration, token requests."""
