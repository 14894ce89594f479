"""Tasks over a store: handlers that run on after their request was answered, in any protocol."""
