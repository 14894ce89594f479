"""An authorization server for tests and tutorials, in the process of the test."""
