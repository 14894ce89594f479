"""A driver per client: a process that does what the matrix asks of it with one library."""
