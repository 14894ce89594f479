"""One session with a server: what is sent, timeouts, decoding, diagnostics, and its end."""
